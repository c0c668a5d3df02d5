//! What a driver tells of its agent: the machine's events without their turn, and what is shown
//! beside them.

use std::sync::Arc;

use qd_session::id::{CallId, ToolName, TurnId};
use qd_session::machine::{Event, HarnessTrouble, ToolCall, TroubleKind};
use qd_session::moment::Timestamp;
use qd_session::monitor::{Failure, FailureKind};
use qd_session::policy::ToolKind;
use serde_json::Value;

use super::Output;
use crate::excerpt;
use crate::usage::Tokens;

#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    /// It has come up and takes a prompt.
    Ready,
    /// The session's id by the vendor: what it can be resumed by.
    VendorSession {
        id: Arc<str>,
    },
    /// Its version.
    Version {
        version: Arc<str>,
    },
    /// The agent began to work without being asked: a background task of its own came back.
    Woke,
    /// A piece of the answer, for whoever looks on.
    Delta(Delta),
    /// Nothing to show, but it lives.
    Alive,
    /// The turn is over, by itself or because it was interrupted.
    Completed {
        text: Option<Arc<str>>,
        cut_off: bool,
    },
    /// The turn is over because the model could not be used.
    Failed(HarnessTrouble),
    ToolReported(ToolCall),
    ToolEnded {
        call: CallId,
        is_error: bool,
        /// What came out, where the agent tells: its beginning and its end.
        output: Option<Arc<str>>,
    },
    /// A permission, or a plan (`ExitPlanMode`, `switch_mode`, `plan`).
    ApprovalAsked(ToolCall),
    QuestionAsked(ToolCall),
    /// The agent no longer waits for it.
    RequestWithdrawn {
        call: CallId,
    },
    /// The batch is over, and the agent waits until it is released.
    BatchHeld,
    /// What the turn, or the session, has cost so far, as the agent counts.
    Spent(Spending),
    /// When it asks from now on, in the agent's own words.
    ModeChanged {
        mode: Arc<str>,
    },
    /// The agent said no to something that was wanted of it.
    Refused {
        what: &'static str,
        why: Arc<str>,
    },
    /// A line that nobody understood, shortened. It changes nothing.
    Unrecognised {
        text: Arc<str>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    Text(Arc<str>),
    Thinking(Arc<str>),
}

/// What the agent says that it has used.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Spending {
    pub model: Option<Arc<str>>,
    /// Of the turn so far; none where only the context is told.
    pub tokens: Option<Tokens>,
    /// Of the whole session, in this process.
    pub cost_usd: Option<f64>,
    pub context_tokens: Option<u64>,
    pub context_window: Option<u64>,
}

impl Report {
    /// The machine's event, with the turn that it belongs to. None for what is only shown.
    pub fn event(&self, turn: &TurnId) -> Option<Event> {
        let turn = turn.clone();
        Some(match self {
            Self::Ready => Event::HarnessReady,
            Self::Delta(_) | Self::Alive => Event::StreamDelta { turn },
            Self::Completed { text, cut_off } => {
                Event::StreamCompleted { turn, text: text.clone(), cut_off: *cut_off }
            }
            Self::Failed(trouble) => Event::StreamFailed { turn, trouble: trouble.clone() },
            Self::ToolReported(call) => Event::ToolReported { turn, call: call.clone() },
            Self::ToolEnded { call, is_error, output } => {
                let (call, output) = (call.clone(), output.clone());
                Event::ToolEnded { turn, call, is_error: *is_error, output }
            }
            Self::ApprovalAsked(call) => Event::ApprovalAsked { turn, call: call.clone() },
            Self::QuestionAsked(call) => Event::QuestionAsked { turn, call: call.clone() },
            Self::RequestWithdrawn { call } => Event::RequestWithdrawn { turn, call: call.clone() },
            Self::BatchHeld => Event::BatchHeld { turn },
            Self::VendorSession { .. }
            | Self::Version { .. }
            | Self::Woke
            | Self::Spent(_)
            | Self::ModeChanged { .. }
            | Self::Refused { .. }
            | Self::Unrecognised { .. } => return None,
        })
    }
}

/// A call of the agent's, classified by the name of its tool. What is not known may do anything.
pub(crate) fn called(call: &str, tool: &str, arguments: Value) -> ToolCall {
    let mutating = match ToolKind::of(tool) {
        ToolKind::Edit | ToolKind::Run | ToolKind::Other => true,
        ToolKind::Read | ToolKind::Search | ToolKind::Fetch | ToolKind::Question => false,
    };
    let (call_id, name) = (CallId::new(call), ToolName::new(tool));
    ToolCall { call_id, name, arguments, mutating }
}

/// Why a turn failed. The agents have tried again by themselves before they say so.
pub(crate) fn failed(now: Timestamp, failure: Failure) -> Report {
    let trouble = match failure.kind {
        FailureKind::UsageLimit => TroubleKind::UsageLimit,
        FailureKind::Auth => TroubleKind::Auth,
        FailureKind::Server => TroubleKind::Passing,
        FailureKind::Other => TroubleKind::Lasting,
    };
    let retry_after_ms = failure.resets_at.map(|at| at.0.saturating_sub(now.0));
    let message = failure.message.unwrap_or_else(|| "the agent does not say why".into());
    Report::Failed(HarnessTrouble { trouble, message, retry_after_ms })
}

pub(crate) fn unrecognised(line: &[u8]) -> Output {
    Output::Report(Report::Unrecognised { text: excerpt::unrecognised(line) })
}
