//! What a driven session waits for a person for.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{AgentId, RequestId};
use crate::machine::{Batch, Fate, State, ToolCall};
use crate::moment::{Source, Stamp, Timestamp};
use crate::monitor::{Ask, Open, RequestKind, Stage};
use crate::policy::is_plan;

/// A request of the machine's, as the operator is shown it. Its id is the call's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    request: RequestId,
    kind: RequestKind,
    ask: Ask,
    asked: Stamp,
}

/// Subagents of a driven agent ask through its driver, in the session's name.
static MAIN: AgentId = AgentId::MAIN;

impl Waiting {
    pub(super) fn permission(at: Timestamp, call: &ToolCall) -> Self {
        let plan = is_plan(call.name.as_str());
        Self::of(at, if plan { RequestKind::Plan } else { RequestKind::Permission }, call)
    }

    pub(super) fn question(at: Timestamp, call: &ToolCall) -> Self {
        Self::of(at, RequestKind::Question, call)
    }

    fn of(at: Timestamp, kind: RequestKind, call: &ToolCall) -> Self {
        let text = |field: &str| call.arguments.get(field).and_then(Value::as_str).map(Into::into);
        Self {
            request: RequestId::new(call.call_id.as_str()),
            kind,
            ask: Ask {
                call: Some(call.call_id.clone()),
                tool: Some(call.name.clone()),
                text: text("question").or_else(|| text("plan")),
                input: Some(call.arguments.to_string().into()),
            },
            asked: Stamp { at, seq: 0, source: Source::Driver },
        }
    }

    pub fn request(&self) -> &RequestId {
        &self.request
    }

    pub(super) fn open(&self) -> Open<'_> {
        let Self { request, kind, ask, asked } = self;
        let (stage, since) = (Stage::Waiting, *asked);
        let (asked, asked_before) = (*asked, &[][..]);
        Open { id: request, agent: &MAIN, kind: *kind, stage, ask, asked, asked_before, since }
    }

    /// The machine still waits for it.
    pub(super) fn is_open_in(&self, state: &State) -> bool {
        let wanted = match self.kind {
            RequestKind::Question => Fate::Unanswered,
            RequestKind::Permission | RequestKind::Plan => Fate::Undecided,
        };
        let open = |batch: &Batch| {
            batch
                .runs()
                .iter()
                .any(|run| run.fate == wanted && self.ask.call.as_ref() == Some(&run.call.call_id))
        };
        match state {
            State::AwaitingApproval { batch, .. } | State::AwaitingInput { batch, .. } => {
                open(batch)
            }
            State::Idle
            | State::Starting { .. }
            | State::Ready(_)
            | State::CallingLlm { .. }
            | State::ProcessingResponse { .. }
            | State::ExecutingTools { .. }
            | State::PostToolsHook { .. }
            | State::Paused { .. }
            | State::Error { .. }
            | State::Stopping { .. }
            | State::Stopped { .. } => false,
        }
    }
}
