//! A turn on its way to a client: as it happens, or all at once.

use std::convert::Infallible;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use qd_broker::Card;
use qd_broker::news::BoardNews as News;
use qd_daemon::runtime::{Board, Handle};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::timeout;

use super::turn::{End, Line, Told, ToolUse, Turn};
use crate::limits::STREAM_PING_EVERY;
use crate::server::Server;
use crate::stream::Reading;
use crate::wire::{ChatAnswer, ToolApprovalRequired};

/// One client, and what it has to be told.
struct Follower {
    handle: Handle,
    board: Board,
    turn: Turn,
    /// Lines that wait to be sent.
    next: Vec<Line>,
    is_over: bool,
    /// While it reads, somebody watches.
    _reading: Reading,
}

pub fn streamed(server: &Server, board: Board, turn: Turn) -> Response {
    let mut follower = Follower::new(server, board, turn);
    follower.next.push(Line::Init { session_id: follower.turn.session().clone() });
    let lines = unfold(follower, async |mut follower| {
        let text = follower.text().await?;
        Some((Ok::<_, Infallible>(text), follower))
    });
    let headers = [(CONTENT_TYPE, "application/x-ndjson"), (CACHE_CONTROL, "no-store")];
    (headers, Body::from_stream(lines)).into_response()
}

/// The whole answer; a call that needs a person's word is a conflict.
pub async fn at_once(server: &Server, board: Board, turn: Turn) -> Response {
    let session_id = turn.session().clone();
    let mut follower = Follower::new(server, board, turn);
    let (mut response, mut errors) = (String::new(), Vec::new());
    loop {
        let Told { line, end } = follower.told().await;
        match line {
            Some(Line::Message { content, .. }) => response.push_str(&content),
            Some(Line::Error { message, .. }) => errors.push(message),
            Some(
                Line::Init { .. }
                | Line::ToolUse(_)
                | Line::ToolResult { .. }
                | Line::Result { .. },
            )
            | None => {}
        }
        match end {
            None => {}
            Some(End::Asks(tool_calls)) => {
                let refused = ToolApprovalRequired {
                    code: "TOOL_APPROVAL_REQUIRED",
                    message: "it asks before it goes on: answer with POST /api/chat/tool".into(),
                    session_id,
                    tool_calls: tool_calls.iter().map(approval).collect(),
                };
                return (StatusCode::CONFLICT, Json(refused)).into_response();
            }
            Some(End::Over(line)) => {
                let Line::Result { status, state } = line else {
                    return StatusCode::SERVICE_UNAVAILABLE.into_response();
                };
                let status = status.to_owned();
                let answer = ChatAnswer { session_id, response, status, state, errors };
                return Json(answer).into_response();
            }
        }
    }
}

fn approval(call: &ToolUse) -> serde_json::Value {
    serde_json::json!({
        "type": "TOOL_USE", "tool_name": call.tool_name,
        "parameters": call.parameters, "tool_id": call.tool_id,
    })
}

impl Follower {
    fn new(server: &Server, board: Board, turn: Turn) -> Self {
        let reading = server.readers().begin();
        let handle = server.handle().clone();
        Self { handle, board, turn, next: Vec::new(), is_over: false, _reading: reading }
    }

    /// The next lines; none after the last.
    async fn text(&mut self) -> Option<Bytes> {
        loop {
            if !self.next.is_empty() {
                let lines = self.next.drain(..).map(|line| {
                    let line = serde_json::to_string(&line).expect("a line is plain data");
                    line + "\n"
                });
                return Some(lines.collect::<String>().into());
            }
            if self.is_over {
                return None;
            }
            let told = timeout(STREAM_PING_EVERY, self.told()).await;
            // An empty line is a sign of life, and no JSON.
            let Ok(Told { line, end }) = told else { return Some(Bytes::from_static(b"\n")) };
            self.next.extend(line);
            match end {
                None => {}
                Some(End::Asks(calls)) => {
                    self.next.extend(calls.into_iter().map(Line::ToolUse));
                    self.is_over = true;
                }
                Some(End::Over(line)) => {
                    self.next.push(line);
                    self.is_over = true;
                }
            }
        }
    }

    /// Of a board, the card of the session that is followed.
    fn ours(&self) -> impl Fn(Card) -> Option<Card> + use<> {
        let session = self.turn.session().clone();
        move |card| (card.session_id == session).then_some(card)
    }

    /// May be dropped and asked again.
    async fn told(&mut self) -> Told {
        match self.board.changes.recv().await {
            Ok(change) => self.turn.take(&change.news),
            // Some were missed: what is shown now says where it is.
            Err(RecvError::Lagged(_)) => match self.handle.board_of(self.ours()).await {
                Ok(mut board) => {
                    let card = board.cards.pop();
                    self.board = board;
                    let told = card.map(|card| self.turn.take(&News::Shown(Box::new(card))));
                    told.unwrap_or_default()
                }
                Err(_) => stopped(),
            },
            Err(RecvError::Closed) => stopped(),
        }
    }
}

/// The daemon ends; the turn is on record.
fn stopped() -> Told {
    let over = Line::Result { status: "error", state: "daemon_stopped".to_owned() };
    Told { line: None, end: Some(End::Over(over)) }
}
