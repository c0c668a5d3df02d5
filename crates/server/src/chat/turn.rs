//! One turn as lines of JSON: what the loop tells of a session in, what a client reads out. Pure.

use std::collections::BTreeSet;

use qd_broker::Card;
use qd_broker::news::BoardNews as News;
use qd_harness::native::{Payload, StreamEvent};
use qd_session::id::{RequestKey, SessionId};
use qd_session::machine::{Change, Kind, RunStatus, Shown, StateChanged, ToolLifecycle};
use qd_session::operator::{Group, SubState};
use serde::Serialize;
use serde_json::Value;

#[derive(Debug)]
pub struct Turn {
    session: SessionId,
    /// It has begun to work: rest before that is no end.
    has_begun: bool,
    /// Requests that were answered just now and may still be shown.
    answered: BTreeSet<RequestKey>,
}

/// A line of the answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE", rename_all_fields = "snake_case")]
pub enum Line {
    Init {
        session_id: SessionId,
    },
    Message {
        role: &'static str,
        content: String,
        delta: bool,
    },
    /// A call that waits for a person's word.
    ToolUse(ToolUse),
    /// A call has ended.
    ToolResult {
        tool_id: String,
        status: &'static str,
    },
    Error {
        code: String,
        message: String,
    },
    /// The last line of a turn that is over.
    Result {
        status: &'static str,
        state: String,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolUse {
    pub tool_name: String,
    pub parameters: Value,
    pub tool_id: String,
}

/// How the answer to one request of a client ends.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// Somebody has to decide about these first.
    Asks(Vec<ToolUse>),
    Over(Line),
}

/// What follows from one piece of news.
#[derive(Debug, Default, PartialEq)]
pub struct Told {
    pub line: Option<Line>,
    pub end: Option<End>,
}

impl Turn {
    /// A prompt was just given.
    pub fn begun(session: SessionId) -> Self {
        Self { session, has_begun: false, answered: BTreeSet::new() }
    }

    /// It waits for answers that are being given.
    pub fn waiting(session: SessionId) -> Self {
        Self { session, has_begun: true, answered: BTreeSet::new() }
    }

    pub fn answered(&mut self, request: &RequestKey) {
        self.answered.insert(request.clone());
    }

    pub fn session(&self) -> &SessionId {
        &self.session
    }

    pub fn take(&mut self, news: &News) -> Told {
        match news {
            News::Streamed(event) if event.session_id == self.session => said(event).into(),
            News::Changed(shown) if shown.session_id == self.session => self.changed(shown).into(),
            News::Shown(card) if card.session_id == self.session => {
                Told { line: None, end: self.end(card) }
            }
            News::Removed(session) if *session == self.session => {
                let state = SubState::SESSION_ENDED.as_str().to_owned();
                let over = Line::Result { status: "error", state };
                Told { line: None, end: Some(End::Over(over)) }
            }
            News::Streamed(_)
            | News::Changed(_)
            | News::Shown(_)
            | News::Removed(_)
            | News::Today(_)
            | News::Unreadable(_) => Told::default(),
        }
    }

    fn changed(&mut self, shown: &Shown) -> Option<Line> {
        match &shown.change {
            Change::StateChanged(StateChanged { to, .. }) => {
                self.has_begun |= *to == Kind::CallingLlm;
                None
            }
            Change::ToolLifecycle(ToolLifecycle { call_id, status, is_error, .. }) => {
                let status = match status {
                    RunStatus::Succeeded if *is_error => "error",
                    RunStatus::Succeeded => "success",
                    RunStatus::Failed => "error",
                    RunStatus::Canceled => "canceled",
                    RunStatus::Queued | RunStatus::Running => return None,
                };
                Some(Line::ToolResult { tool_id: call_id.to_string(), status })
            }
            Change::SessionError(error) => {
                let code = serde_json::to_value(error.code).unwrap_or_default();
                let code = code.as_str().unwrap_or_default().to_owned();
                Some(Line::Error { code, message: error.message.to_string() })
            }
            Change::HookLifecycle(_) => None,
        }
    }

    /// Whether the turn is over, or waits for somebody.
    pub fn end(&self, card: &Card) -> Option<End> {
        let is_new =
            |key: &Option<RequestKey>| key.as_ref().is_some_and(|key| !self.answered.contains(key));
        let asked = card.requests.iter().filter(|request| is_new(&request.key));
        let asked: Vec<ToolUse> = asked
            .map(|request| ToolUse {
                tool_name: request.tool.clone().unwrap_or_default(),
                parameters: request.input.clone().unwrap_or_default(),
                tool_id: request.request_id.clone(),
            })
            .collect();
        if !asked.is_empty() {
            return Some(End::Asks(asked));
        }
        let is_over = card.agent_state.group != Group::Autonomous && card.requests.is_empty();
        let drive = card.drive.as_ref()?;
        let failed = drive.last_error.is_some();
        (is_over && (self.has_begun || failed)).then(|| {
            let status = if failed { "error" } else { "success" };
            End::Over(Line::Result { status, state: card.agent_state.state.as_str().to_owned() })
        })
    }
}

fn said(event: &StreamEvent) -> Option<Line> {
    match &event.payload {
        Payload::TextDelta { text, role } => {
            Some(Line::Message { role, content: text.to_string(), delta: true })
        }
        Payload::ThinkingDelta { .. }
        | Payload::ToolCallDelta { .. }
        | Payload::ToolCallCompleted { .. }
        | Payload::ArtifactDelta { .. }
        | Payload::Metadata { .. }
        | Payload::Status { .. }
        | Payload::Completed { .. }
        | Payload::Error { .. } => None,
    }
}

impl From<Option<Line>> for Told {
    fn from(line: Option<Line>) -> Self {
        Self { line, end: None }
    }
}
