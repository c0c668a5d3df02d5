//! What a session waits for: permissions and questions.

use std::sync::Arc;

use qd_session::id::{CallId, RequestId, ToolName};
use qd_session::moment::Timestamp;
use qd_session::monitor::{Ask, Fact, Failure, FailureKind, Stage};
use serde_json::{Value, json};

use super::handler::{Handler, Told};
use super::part::questions_text;
use super::session::{WaitKind, Waiting};
use super::wire::Properties;
use crate::excerpt::{brief, input};

/// A client with rules of its own answers a permission as soon as it sees the event. Wait that
/// long, or each of them would flash on the phone.
const REVIEW_MS: u64 = 250;

impl Handler {
    pub(super) fn permission(
        &mut self,
        at: Timestamp,
        id: &Arc<str>,
        asked: Properties,
        told: &mut Told,
    ) -> Option<()> {
        let request = RequestId::new(asked.id.as_deref()?);
        let session = self.session(id, at);
        if !session.requests.contains_key(&request) {
            let due = Some(at.plus_ms(REVIEW_MS));
            let waiting =
                Waiting { kind: WaitKind::Permission, ask: permission_ask(&asked), asked: at, due };
            told.push(id, waiting.fact(&request, Stage::UnderReview));
            session.ask(request, waiting);
        }
        Some(())
    }

    pub(super) fn question(
        &mut self,
        at: Timestamp,
        id: &Arc<str>,
        asked: Properties,
        told: &mut Told,
    ) -> Option<()> {
        let request = RequestId::new(asked.id.as_deref()?);
        let session = self.session(id, at);
        if !session.requests.contains_key(&request) {
            let waiting = question_waiting(at, &asked);
            let stand_in = waiting.ask.call.as_ref().and_then(|call| session.drop_stand_in(call));
            told.push(id, waiting.fact(&request, Stage::Waiting));
            stand_in.into_iter().for_each(|fact| told.push(id, fact));
            session.ask(request, waiting);
        }
        Some(())
    }

    /// A request is answered; also one that was asked before we listened.
    pub(super) fn settled(
        &mut self,
        at: Timestamp,
        id: &Arc<str>,
        request: &str,
        kind: WaitKind,
        answer: Answered,
        told: &mut Told,
    ) {
        let request = RequestId::new(request);
        let session = self.session(id, at);
        let known = session.requests.remove(&request);
        session.turned_down |= answer == Answered::TurnedDown;
        let kind = known.as_ref().map_or(kind, |waiting| waiting.kind);
        told.push(id, kind.settled(request));
        // Its call never runs, and says so itself a moment later. What the operator turned down
        // has not failed.
        let call = known.and_then(|waiting| waiting.ask.call);
        if let Some(call) = call.filter(|_| answer == Answered::TurnedDown) {
            told.push(id, Fact::ToolCompleted { call, ok: true, exit_code: None });
        }
    }

    /// What a pending list holds and we do not know waits; what we know and it lacks does not.
    pub(super) fn pending(
        &mut self,
        at: Timestamp,
        polled_at: Timestamp,
        list: Vec<Properties>,
        kind: WaitKind,
        told: &mut Told,
    ) {
        let mut listed = Vec::new();
        for asked in list {
            let (Some(id), Some(request)) = (asked.session_id.as_deref(), asked.id.as_deref())
            else {
                continue;
            };
            let (id, request) = (Arc::<str>::from(id), RequestId::new(request));
            listed.push(request.clone());
            let server = self.server.clone();
            let session = self.session(&id, at);
            session.server = server;
            if let Some(known) = session.requests.get_mut(&request) {
                if known.due.take().is_some() {
                    told.push(&id, known.fact(&request, Stage::Waiting));
                }
                continue;
            }
            let waiting = match kind {
                WaitKind::Permission => {
                    Waiting { kind, ask: permission_ask(&asked), asked: at, due: None }
                }
                WaitKind::Question | WaitKind::Plan => question_waiting(at, &asked),
            };
            let stand_in = waiting.ask.call.as_ref().and_then(|call| session.drop_stand_in(call));
            stand_in.into_iter().for_each(|fact| told.push(&id, fact));
            told.push(&id, waiting.fact(&request, Stage::Waiting));
            session.ask(request, waiting);
        }
        let of_kind = |waiting: &Waiting| {
            (waiting.kind == WaitKind::Permission) == (kind == WaitKind::Permission)
        };
        let server = self.server.clone();
        let of_server = self.sessions().iter_mut().filter(|(_, session)| session.server == server);
        for (id, session) in of_server {
            session.requests.retain(|request, waiting| {
                let gone =
                    of_kind(waiting) && waiting.asked < polled_at && !listed.contains(request);
                if gone {
                    told.push(id, waiting.kind.settled(request.clone()));
                }
                !gone
            });
        }
    }
}

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// Allowed or answered, as far as is known.
    Given,
    TurnedDown,
}

impl Answered {
    pub fn turned_down(is_turned_down: bool) -> Self {
        if is_turned_down { Self::TurnedDown } else { Self::Given }
    }
}

fn permission_ask(asked: &Properties) -> Ask {
    let metadata = asked.metadata.as_ref();
    let command = metadata.and_then(|metadata| metadata.get("command")?.as_str());
    let patterns = asked.patterns.as_ref().and_then(Value::as_array);
    let patterns =
        patterns.map(|all| all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "));
    let whole = json!({
        "permission": asked.permission,
        "patterns": asked.patterns,
        "metadata": asked.metadata,
        "always": asked.always,
    });
    Ask {
        call: call_of(asked),
        tool: asked.permission.as_deref().map(ToolName::new),
        text: command.or(patterns.as_deref()).map(|text| brief(text, 2_000)),
        input: Some(input(&whole.to_string())),
    }
}

/// A plan that is finished is asked about with the question tool's means.
fn question_waiting(at: Timestamp, asked: &Properties) -> Waiting {
    let questions = asked.questions.as_ref();
    let suggested = asked.text.as_deref().map(|text| brief(text, 2_000));
    let text = questions.and_then(questions_text).or(suggested);
    let is_plan = text.as_deref().is_some_and(|text| {
        text.starts_with("Plan at ") && text.contains("switch to the build agent")
    });
    let ask = Ask {
        call: call_of(asked),
        tool: Some(ToolName::new("question")),
        text,
        input: questions.map(|questions| input(&questions.to_string())),
    };
    let kind = if is_plan { WaitKind::Plan } else { WaitKind::Question };
    Waiting { kind, ask, asked: at, due: None }
}

/// A question known only by its running tool; its own request has a while to come.
pub fn question_stand_in(at: Timestamp, call: &CallId, questions: &Value) -> Waiting {
    let ask = Ask {
        call: Some(call.clone()),
        tool: Some(ToolName::new("question")),
        text: questions_text(questions),
        input: Some(input(&questions.to_string())),
    };
    Waiting { kind: WaitKind::Question, ask, asked: at, due: Some(at.plus_ms(REVIEW_MS)) }
}

fn call_of(asked: &Properties) -> Option<CallId> {
    asked.tool.as_ref()?.call_id.as_deref().map(CallId::new)
}

/// What a refused request to start a turn means.
pub fn refused(status: u16, body: Option<&Value>) -> Fact {
    let said = body.map(|body| body.as_str().map_or_else(|| body.to_string(), str::to_owned));
    let kind = match status {
        401 | 403 => FailureKind::Auth,
        402 | 429 => FailureKind::UsageLimit,
        500.. => FailureKind::Server,
        _ => FailureKind::Other,
    };
    let message = said.as_deref().map(|said| brief(said, 2_000));
    let failure = Failure { kind, message, resets_at: None };
    Fact::TurnFailed { failure }
}
