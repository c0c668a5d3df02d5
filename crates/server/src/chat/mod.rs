//! `/api/chat`: a conversation with a model over our own harness, as lines of JSON.
//!
//! A prompt's answer comes as one line for each thing that happens. A call that needs a person's
//! word is a `TOOL_USE` line; behind the last of them the stream closes, and `POST /api/chat/tool`
//! goes on with it. Whoever goes away leaves the turn as a card on the board. There is one session
//! for each folder until another is named.

mod lines;
mod turn;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Extension, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use qd_broker::desk::{Answering, Commanding};
use qd_broker::{Card, NotFound};
use qd_daemon::runtime::{Board, SpawnWanted};
use qd_harness::Harness;
use qd_session::decision::{Answer, Command, Decision, Scope};
use qd_session::id::SessionId;
use qd_session::logbook::Brief;
use qd_session::monitor::RequestKind;
use qd_session::policy::Preset;

use self::turn::Turn;
use crate::acting::{Caller, answer_of, fresh_id, problem, read};
use crate::driving::unspawned;
use crate::error::Refusal;
use crate::limits::{NAME_BYTES_MAX, PROMPT_BYTES_MAX, WORKSPACE_BYTES_MAX};
use crate::server::Server;
use crate::wire::{ChatConfig, ChatConfigWanted, ChatPrompt, ChatTools, ChatWhere, ToolDecision};

pub async fn prompt(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    wanted: Result<Json<ChatPrompt>, JsonRejection>,
) -> Result<Response, Refusal> {
    let ChatPrompt { folder_path, session_id, prompt, stream, model, provider } = read(wanted)?;
    let names = [model.as_deref(), provider.as_deref(), session_id.as_deref()];
    let is_long = names.into_iter().flatten().any(|name| name.len() > NAME_BYTES_MAX)
        || folder_path.as_ref().is_some_and(|folder| folder.len() > WORKSPACE_BYTES_MAX)
        || prompt.len() > PROMPT_BYTES_MAX;
    if is_long || prompt.trim().is_empty() {
        return Err(Refusal::Unreadable);
    }
    // Before anything is asked, so that nothing is missed.
    let board = server.handle().board_of(|_| None).await?;
    let known = known(&server, session_id.as_deref(), folder_path.as_deref()).await?;
    let session = match known.filter(is_usable) {
        Some(card) => {
            let command = Command::Prompt { text: prompt };
            let session = card.session_id;
            if let Err(refused) = carry_out(&server, caller, &session, command).await? {
                return Ok(refused);
            }
            session
        }
        None if session_id.is_some() => return Err(NotFound::Nobody.into()),
        None => {
            let Some(folder) = folder_path else { return Err(Refusal::Unreadable) };
            let brief = Brief {
                workspace: folder.as_str().into(),
                model: model.map(Into::into),
                provider: provider.map(Into::into),
                preset: Preset::Manual,
                prompt: Some(prompt.into()),
                is_chat: true,
            };
            let wanted = SpawnWanted { harness: Harness::Native, brief };
            match server.handle().spawn_session(wanted).await? {
                Ok(session) => session,
                Err(why) => return Ok(unspawned(&why)),
            }
        }
    };
    answer(&server, board, Turn::begun(session), stream.unwrap_or(true)).await
}

pub async fn tool(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    wanted: Result<Json<ChatTools>, JsonRejection>,
) -> Result<Response, Refusal> {
    let ChatTools { session_id, tool_calls, stream } = read(wanted)?;
    let board = server.handle().board_of(|_| None).await?;
    let card = known(&server, Some(&session_id), None).await?.ok_or(NotFound::Nobody)?;
    let mut turn = Turn::waiting(card.session_id.clone());
    for ToolDecision { tool_id, approved, message } in tool_calls {
        let request = card.requests.iter().find(|request| request.request_id == tool_id);
        let Some((request, key)) = request.and_then(|it| Some((it, it.key.clone()?))) else {
            let why = format!("nothing is asked under {tool_id}");
            return Ok(problem(StatusCode::NOT_FOUND, "no_such_request", &why, false));
        };
        let text = || request.text.clone().unwrap_or_default();
        let decision = match (request.kind, approved) {
            (RequestKind::Question, true) => Decision::Answer {
                answers: vec![Answer {
                    question: text(),
                    values: vec![message.unwrap_or_default()],
                }],
            },
            (RequestKind::Plan, true) => Decision::ApprovePlan { mode: None },
            (RequestKind::Permission, true) => Decision::Allow { input: None, scope: Scope::Once },
            (RequestKind::Plan, false) => Decision::RejectPlan { feedback: message },
            (RequestKind::Permission | RequestKind::Question, false) => {
                Decision::Deny { message, interrupt: false }
            }
        };
        turn.answered(&key);
        let answering = Answering {
            decision: fresh_id(),
            request: key,
            by: caller.clone().by(),
            rule: None,
            answer: decision,
            revision: None,
            key: None,
        };
        let taken = server.handle().decide(answering).await?;
        if taken.is_err() {
            return Ok(answer_of(taken));
        }
    }
    answer(&server, board, turn, stream.unwrap_or(true)).await
}

pub async fn config(
    State(server): State<Server>,
    Query(ChatWhere { folder_path, session_id }): Query<ChatWhere>,
) -> Result<Json<ChatConfig>, Refusal> {
    let card = known(&server, session_id.as_deref(), folder_path.as_deref()).await?;
    let preset = card.and_then(|card| card.drive).and_then(|drive| drive.preset);
    Ok(Json(ChatConfig { yolo_mode: preset == Some(Preset::Yolo) }))
}

pub async fn set_config(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
    wanted: Result<Json<ChatConfigWanted>, JsonRejection>,
) -> Result<Response, Refusal> {
    let ChatConfigWanted { folder_path, session_id, yolo_mode } = read(wanted)?;
    let card = known(&server, session_id.as_deref(), folder_path.as_deref()).await?;
    let session = card.ok_or(NotFound::Nobody)?.session_id;
    match carry_out(&server, caller, &session, Command::Yolo { on: yolo_mode }).await? {
        Ok(()) => Ok(Json(ChatConfig { yolo_mode }).into_response()),
        Err(refused) => Ok(refused),
    }
}

/// The driven session that is meant: by its id, or the one of that folder.
async fn known(
    server: &Server,
    session: Option<&str>,
    folder: Option<&str>,
) -> Result<Option<Card>, Refusal> {
    let word = match (session, folder) {
        (Some(session), _) => session,
        (None, Some(folder)) => return Ok(server.handle().chat(folder).await?.map(|card| *card)),
        (None, None) => return Err(Refusal::Unreadable),
    };
    let found = server.handle().card(word).await?;
    let card = match found {
        Ok(card) => card,
        Err(NotFound::Nobody) => None,
        Err(several @ NotFound::Several) => return Err(several.into()),
    };
    Ok(card.map(|card| *card).filter(|card| card.drive.is_some()))
}

/// One that has ended is not gone on with unless it is named; nor is it then.
fn is_usable(card: &Card) -> bool {
    use qd_session::machine::Kind;
    card.drive.as_ref().is_some_and(|drive| drive.state != Kind::Stopped)
}

async fn carry_out(
    server: &Server,
    caller: Caller,
    session: &SessionId,
    command: Command,
) -> Result<Result<(), Response>, Refusal> {
    let (decision, session) = (fresh_id(), session.clone());
    let commanding = Commanding { decision, session, by: caller.by(), command, key: None };
    let taken = server.handle().command(commanding).await?;
    Ok(match taken {
        Ok(_) => Ok(()),
        Err(_) => Err(answer_of(taken)),
    })
}

async fn answer(
    server: &Server,
    board: Board,
    turn: Turn,
    is_stream: bool,
) -> Result<Response, Refusal> {
    match is_stream {
        true => Ok(lines::streamed(server, board, turn)),
        false => Ok(lines::at_once(server, board, turn).await),
    }
}
