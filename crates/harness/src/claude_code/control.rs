//! The stdio control protocol: who is asked what, and what was answered.
//!
//! Control messages name no session; they belong to the one their stream carries. A request's id
//! is the protocol's own, so that the answer can be written without looking anything up.

use qd_session::id::{AgentId, CallId, RequestId};
use qd_session::monitor::{Fact, Stage, Usage};
use serde_json::Value;

use super::hooks;
use super::notes::Notes;
use super::request::{Kind, ask};
use super::session::{HOLD_MS, Session};
use super::wire::{ControlRequest, ControlResponse, Hook, StreamLine};
use crate::signal::Direction;

/// Takes a control message in. False if it is none that is known.
pub fn take(
    session: &mut Session,
    notes: &mut Notes,
    line: &StreamLine<'_>,
    direction: Direction,
) -> bool {
    let id = line.request_id.as_deref().unwrap_or_default();
    match (line.kind.as_deref().unwrap_or_default(), direction) {
        ("control_request", Direction::FromAgent) => {
            line.request.as_ref().is_some_and(|request| asked(session, notes, id, request))
        }
        // What became of it, the agent tells.
        ("control_request", Direction::ToAgent) => true,
        ("control_response", Direction::ToAgent) => {
            if let Some(response) = &line.response {
                answered(session, notes, response);
            }
            true
        }
        ("control_response", Direction::FromAgent) => {
            if let Some(response) = &line.response {
                told(session, notes, response);
            }
            true
        }
        ("control_cancel_request", _) => {
            // Mostly the turn was interrupted; the next message says so.
            if let Some(resolution) = session.requests.resolution(notes, id) {
                session.hold(notes, HOLD_MS, resolution);
            }
            true
        }
        _ => false,
    }
}

fn asked(session: &mut Session, notes: &mut Notes, id: &str, request: &ControlRequest) -> bool {
    let agent = request.agent_id.as_deref().map_or(AgentId::MAIN, AgentId::sub);
    let about = request.decision_reason.as_deref().or(request.description.as_deref());
    let (kind, ask) = match request.subtype.as_deref().unwrap_or_default() {
        "can_use_tool" => {
            let tool = request.tool_name.as_deref().unwrap_or("a tool");
            let call = request.tool_use_id.as_deref().map(CallId::new);
            session.request_replaced(notes, request.tool_use_id.as_deref(), id);
            let kind = Kind::of_tool(tool);
            let text = about.filter(|_| kind == Kind::Permission);
            (kind, ask(call, tool, request.input.as_ref(), text))
        }
        "elicitation" | "request_user_dialog" => {
            let text = request.message.as_deref().or(about);
            (Kind::Question, ask(None, "elicitation", request.input.as_ref(), text))
        }
        "hook_callback" => return hook_callback(session, notes, request),
        "mcp_message" => return true,
        _ => return false,
    };
    session.requests.ask(notes, &agent, kind, RequestId::new(id), Stage::Waiting, ask);
    true
}

/// A hook that whoever drives the stream has registered: the same payload, the same meaning.
fn hook_callback(session: &mut Session, notes: &mut Notes, request: &ControlRequest) -> bool {
    let hook = request.input.clone().and_then(|input| serde_json::from_value::<Hook>(input).ok());
    hook.is_some_and(|hook| hooks::take(session, notes, &hook, false))
}

fn answered(session: &mut Session, notes: &mut Notes, response: &ControlResponse) {
    let Some(id) = response.request_id.as_deref() else { return };
    let interrupt = response.response.as_ref().and_then(|answer| answer.get("interrupt"));
    if interrupt == Some(&Value::Bool(true)) {
        if let Some(resolution) = session.requests.resolution(notes, id) {
            session.hold(notes, HOLD_MS, resolution);
        }
    } else if let Some(call) = session.requests.resolve(notes, id) {
        session.calls.answered(notes.now, &call);
    }
}

/// What the client answers to its driver: the mode, what the window holds.
fn told(session: &mut Session, notes: &mut Notes, response: &ControlResponse) {
    let Some(answer) = &response.response else { return };
    let text = |key: &str| answer.get(key).and_then(Value::as_str);
    session.mode_known(notes, text("mode").or(text("current_permission_mode")));
    let number = |key: &str| answer.get(key).and_then(Value::as_u64);
    if let (Some(tokens), Some(window)) = (number("totalTokens"), number("maxTokens")) {
        let usage = Usage {
            model: text("model").map(Into::into),
            context_tokens: Some(tokens),
            context_window: Some(window),
        };
        notes.tell_main(Fact::UsageReported { usage });
    }
}
