//! The states of a driven session. Each carries only what is valid in it.

use serde::{Deserialize, Serialize};

use super::batch::Batch;
use super::change::AgentError;
use super::event::PauseCause;
use super::hooks::HookPass;
use super::timer::StopPhase;
use crate::finished_turn::{FinishedTurn, Sign, judge};
use crate::id::TurnId;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all_fields = "camelCase")]
pub enum State {
    Idle,
    Starting {
        /// Outputs that the model has not been given, from before a stop or a crash.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owed: Option<Batch>,
    },
    Ready(Ready),
    CallingLlm {
        turn: Turn,
    },
    ProcessingResponse {
        turn: Turn,
        said: Said,
    },
    AwaitingApproval {
        turn: Turn,
        batch: Batch,
    },
    AwaitingInput {
        turn: Turn,
        batch: Batch,
    },
    ExecutingTools {
        turn: Turn,
        batch: Batch,
    },
    PostToolsHook {
        turn: Turn,
        batch: Batch,
        hooks: HookPass,
    },
    Paused {
        cause: PauseCause,
        then: Box<Next>,
    },
    Error {
        error: AgentError,
        way_on: WayOn,
    },
    Stopping {
        phase: StopPhase,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owed: Option<Batch>,
    },
    Stopped {
        exit_code: Option<i32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owed: Option<Batch>,
    },
}

/// One model request in flight or being worked on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Turn {
    pub id: TurnId,
    /// 1 for the first try of this request.
    pub attempt: u8,
    /// Asked for, and taken at the next boundary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<PauseCause>,
    /// The agent was asked to end its turn and has not said so (`tools: theirs`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupting: bool,
}

/// The end of an answer: judged once, when it was frozen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Said {
    pub sign: Sign,
}

impl Said {
    pub(super) fn frozen(text: Option<&str>, cut_off: bool) -> Self {
        Self { sign: judge(&FinishedTurn { last_message: text, cut_off }).sign }
    }

    pub(super) fn nothing() -> Self {
        Self { sign: Sign::NoText }
    }
}

/// Waiting for the operator's next word.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ready {
    pub after: After,
    /// A batch whose outputs the model has not been given. They go with the next input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owed: Option<Batch>,
}

/// What came before Ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "after", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum After {
    Start,
    Turn(Said),
    Interrupted,
    /// `last_error`, and what an explicit retry would repeat.
    Failed {
        error: AgentError,
        again: Again,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Again {
    Llm,
    /// The failed runs of the batch that is owed, in the turn they belong to.
    Tools {
        turn: TurnId,
    },
    Nothing,
}

/// What an error may be followed by.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "retry", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum WayOn {
    /// Ask the model again.
    Llm { turn: Turn, timer: RetryTimer },
    /// Run what failed again.
    Tools { turn: Turn, batch: Batch, timer: RetryTimer },
    /// Run the failed hook again.
    Hook { turn: Turn, batch: Batch, hooks: HookPass, timer: RetryTimer },
    /// Start the harness again.
    Harness {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owed: Option<Batch>,
    },
}

/// Whether what failed comes again by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryTimer {
    Running {
        after_ms: u64,
    },
    /// Only the operator repeats it.
    None,
}

/// Where a paused session goes on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "next", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Next {
    Ready(Ready),
    /// Give the model the batch's outputs.
    Llm {
        turn: Turn,
        batch: Batch,
    },
    Tools {
        turn: Turn,
        batch: Batch,
    },
    Hooks {
        turn: Turn,
        batch: Batch,
    },
    Retry {
        error: AgentError,
        way_on: WayOn,
    },
}

/// The name of a state, as changes and tables spell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Kind {
    Idle,
    Starting,
    Ready,
    CallingLlm,
    ProcessingResponse,
    AwaitingApproval,
    AwaitingInput,
    ExecutingTools,
    PostToolsHook,
    Paused,
    Error,
    Stopping,
    Stopped,
}

impl Kind {
    pub const ALL: [Self; 13] = [
        Self::Idle,
        Self::Starting,
        Self::Ready,
        Self::CallingLlm,
        Self::ProcessingResponse,
        Self::AwaitingApproval,
        Self::AwaitingInput,
        Self::ExecutingTools,
        Self::PostToolsHook,
        Self::Paused,
        Self::Error,
        Self::Stopping,
        Self::Stopped,
    ];
}

impl State {
    pub fn kind(&self) -> Kind {
        match self {
            Self::Idle => Kind::Idle,
            Self::Starting { .. } => Kind::Starting,
            Self::Ready(_) => Kind::Ready,
            Self::CallingLlm { .. } => Kind::CallingLlm,
            Self::ProcessingResponse { .. } => Kind::ProcessingResponse,
            Self::AwaitingApproval { .. } => Kind::AwaitingApproval,
            Self::AwaitingInput { .. } => Kind::AwaitingInput,
            Self::ExecutingTools { .. } => Kind::ExecutingTools,
            Self::PostToolsHook { .. } => Kind::PostToolsHook,
            Self::Paused { .. } => Kind::Paused,
            Self::Error { .. } => Kind::Error,
            Self::Stopping { .. } => Kind::Stopping,
            Self::Stopped { .. } => Kind::Stopped,
        }
    }

    /// The turn that is being worked on.
    pub fn turn(&self) -> Option<&Turn> {
        match self {
            Self::CallingLlm { turn }
            | Self::ProcessingResponse { turn, .. }
            | Self::AwaitingApproval { turn, .. }
            | Self::AwaitingInput { turn, .. }
            | Self::ExecutingTools { turn, .. }
            | Self::PostToolsHook { turn, .. } => Some(turn),
            Self::Error { way_on, .. } => way_on.turn(),
            Self::Idle
            | Self::Starting { .. }
            | Self::Ready(_)
            | Self::Paused { .. }
            | Self::Stopping { .. }
            | Self::Stopped { .. } => None,
        }
    }
}

impl State {
    /// The batch that is worked on, or whose outputs the model has not been given.
    pub fn batch(&self) -> Option<&Batch> {
        match self {
            Self::AwaitingApproval { batch, .. }
            | Self::AwaitingInput { batch, .. }
            | Self::ExecutingTools { batch, .. }
            | Self::PostToolsHook { batch, .. } => Some(batch),
            Self::Starting { owed } | Self::Stopping { owed, .. } | Self::Stopped { owed, .. } => {
                owed.as_ref()
            }
            Self::Ready(ready) => ready.owed.as_ref(),
            Self::Paused { then, .. } => match &**then {
                Next::Ready(ready) => ready.owed.as_ref(),
                Next::Llm { batch, .. } | Next::Tools { batch, .. } | Next::Hooks { batch, .. } => {
                    Some(batch)
                }
                Next::Retry { way_on, .. } => way_on.batch(),
            },
            Self::Error { way_on, .. } => way_on.batch(),
            Self::Idle | Self::CallingLlm { .. } | Self::ProcessingResponse { .. } => None,
        }
    }

    pub(super) fn turn_mut(&mut self) -> Option<&mut Turn> {
        match self {
            Self::CallingLlm { turn }
            | Self::ProcessingResponse { turn, .. }
            | Self::AwaitingApproval { turn, .. }
            | Self::AwaitingInput { turn, .. }
            | Self::ExecutingTools { turn, .. }
            | Self::PostToolsHook { turn, .. } => Some(turn),
            Self::Idle
            | Self::Starting { .. }
            | Self::Ready(_)
            | Self::Paused { .. }
            | Self::Error { .. }
            | Self::Stopping { .. }
            | Self::Stopped { .. } => None,
        }
    }
}

impl WayOn {
    pub fn turn(&self) -> Option<&Turn> {
        match self {
            Self::Llm { turn, .. } | Self::Tools { turn, .. } | Self::Hook { turn, .. } => {
                Some(turn)
            }
            Self::Harness { .. } => None,
        }
    }

    pub fn timer(&self) -> RetryTimer {
        match self {
            Self::Llm { timer, .. } | Self::Tools { timer, .. } | Self::Hook { timer, .. } => {
                *timer
            }
            Self::Harness { .. } => RetryTimer::None,
        }
    }

    pub fn batch(&self) -> Option<&Batch> {
        match self {
            Self::Tools { batch, .. } | Self::Hook { batch, .. } => Some(batch),
            Self::Harness { owed } => owed.as_ref(),
            Self::Llm { .. } => None,
        }
    }

    /// The batch whose outputs the model has not been given.
    pub fn into_owed(self) -> Option<Batch> {
        match self {
            Self::Llm { .. } => None,
            Self::Tools { batch, .. } | Self::Hook { batch, .. } => Some(batch),
            Self::Harness { owed } => owed,
        }
    }
}
