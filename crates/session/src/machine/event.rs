//! What can happen to a driven session: commands, the harness's reports, runners' reports, timers.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::batch::{Judged, ToolCall};
use super::change::HarnessTrouble;
use super::timer::Timer;
use crate::decision::{Answer, RetryTarget};
use crate::id::{CallId, HookRunId, RunId, TurnId};

/// One event. What belongs to a turn or a run names it, so that a late one is recognised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Event {
    // What the operator, or the broker for them, asked.
    Spawned,
    UserInput {
        text: Arc<str>,
    },
    ApprovalDecided {
        call: CallId,
        approved: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Arc<str>>,
        /// How the agent works on after its plan was approved, in its own word.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<Arc<str>>,
    },
    /// YOLO on releases what waits; off changes nothing that was already decided.
    YoloSwitched {
        on: bool,
    },
    InputGiven {
        call: CallId,
        text: Arc<str>,
        /// The same one by one, for an agent that asked several questions at once.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        answers: Vec<Answer>,
    },
    RetryRequested {
        target: RetryTarget,
    },
    PauseRequested {
        cause: PauseCause,
    },
    ResumeRequested,
    InterruptRequested,
    StopRequested,
    /// The broker came back after a crash: nothing that was in flight is in flight any more.
    Restarted,

    // What the harness did.
    HarnessReady,
    HarnessExited {
        code: Option<i32>,
        /// What is known besides: the end of what it wrote about itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<Arc<str>>,
    },
    /// A piece of the answer. Not journaled; it only shows that the stream lives.
    StreamDelta {
        turn: TurnId,
    },
    StreamCompleted {
        turn: TurnId,
        /// The answer's text, frozen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<Arc<str>>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cut_off: bool,
    },
    StreamFailed {
        turn: TurnId,
        #[serde(flatten)]
        trouble: HarnessTrouble,
    },
    /// The frozen answer's calls, classified by the tool runner and judged by policy.
    ResponseParsed {
        turn: TurnId,
        calls: Vec<Judged>,
    },

    // What an agent that runs its own tools reports (`tools: theirs`).
    ToolReported {
        turn: TurnId,
        call: ToolCall,
    },
    ToolEnded {
        turn: TurnId,
        call: CallId,
        is_error: bool,
        /// What came out, where the agent tells: its beginning and its end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Arc<str>>,
    },
    ApprovalAsked {
        turn: TurnId,
        call: ToolCall,
    },
    QuestionAsked {
        turn: TurnId,
        call: ToolCall,
    },
    /// The agent no longer waits for it: answered elsewhere, or given up.
    RequestWithdrawn {
        turn: TurnId,
        call: CallId,
    },
    /// The agent's batch is over, and it is held until we let it go on.
    BatchHeld {
        turn: TurnId,
    },

    // What our runners report.
    ToolStarted {
        run: RunId,
    },
    ToolFinished {
        run: RunId,
        #[serde(flatten)]
        outcome: ToolOutcome,
    },
    HookStarted {
        run: HookRunId,
    },
    HookFinished {
        run: HookRunId,
        /// Why it failed; absent if it did not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Arc<str>>,
        /// What it wrote: shown, and not told to the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Arc<str>>,
    },

    TimerFired {
        timer: Timer,
    },
}

/// How a tool's run ended. A command that returned non-zero, or ran into its time limit, has a
/// *result*; `Failed` means that there is none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ToolOutcome {
    Succeeded { output: Arc<str>, is_error: bool },
    Failed { error: Arc<str> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseCause {
    Operator,
    /// Tokens, money or minutes are spent.
    Budget,
    /// It asks nobody, and nobody watches it.
    Unwatched,
}

impl Event {
    /// The name of the event, as the spec's tables spell it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Spawned => "Spawned",
            Self::UserInput { .. } => "UserInput",
            Self::ApprovalDecided { .. } => "ApprovalDecided",
            Self::YoloSwitched { .. } => "YoloSwitched",
            Self::InputGiven { .. } => "InputGiven",
            Self::RetryRequested { .. } => "RetryRequested",
            Self::PauseRequested { .. } => "PauseRequested",
            Self::ResumeRequested => "ResumeRequested",
            Self::InterruptRequested => "InterruptRequested",
            Self::StopRequested => "StopRequested",
            Self::Restarted => "Restarted",
            Self::HarnessReady => "HarnessReady",
            Self::HarnessExited { .. } => "HarnessExited",
            Self::StreamDelta { .. } => "StreamDelta",
            Self::StreamCompleted { .. } => "StreamCompleted",
            Self::StreamFailed { .. } => "StreamFailed",
            Self::ResponseParsed { .. } => "ResponseParsed",
            Self::ToolReported { .. } => "ToolReported",
            Self::ToolEnded { .. } => "ToolEnded",
            Self::ApprovalAsked { .. } => "ApprovalAsked",
            Self::QuestionAsked { .. } => "QuestionAsked",
            Self::RequestWithdrawn { .. } => "RequestWithdrawn",
            Self::BatchHeld { .. } => "BatchHeld",
            Self::ToolStarted { .. } => "ToolStarted",
            Self::ToolFinished { .. } => "ToolFinished",
            Self::HookStarted { .. } => "HookStarted",
            Self::HookFinished { .. } => "HookFinished",
            Self::TimerFired { .. } => "TimerFired",
        }
    }

    /// What it says came out of a call of an agent that runs its own tools. The answer to a
    /// question is what came of it.
    pub fn came_out(&self) -> Option<(&CallId, &Arc<str>)> {
        if let Self::ToolEnded { call, output: Some(text), .. }
        | Self::InputGiven { call, text, .. } = self
        {
            return Some((call, text));
        }
        None
    }

    /// The turn it belongs to, where it belongs to one.
    pub fn turn(&self) -> Option<&TurnId> {
        match self {
            Self::StreamDelta { turn }
            | Self::StreamCompleted { turn, .. }
            | Self::StreamFailed { turn, .. }
            | Self::ResponseParsed { turn, .. }
            | Self::ToolReported { turn, .. }
            | Self::ToolEnded { turn, .. }
            | Self::ApprovalAsked { turn, .. }
            | Self::QuestionAsked { turn, .. }
            | Self::RequestWithdrawn { turn, .. }
            | Self::BatchHeld { turn } => Some(turn),
            Self::TimerFired { timer } => timer.turn(),
            Self::Spawned
            | Self::UserInput { .. }
            | Self::ApprovalDecided { .. }
            | Self::YoloSwitched { .. }
            | Self::InputGiven { .. }
            | Self::RetryRequested { .. }
            | Self::PauseRequested { .. }
            | Self::ResumeRequested
            | Self::InterruptRequested
            | Self::StopRequested
            | Self::Restarted
            | Self::HarnessReady
            | Self::HarnessExited { .. }
            | Self::ToolStarted { .. }
            | Self::ToolFinished { .. }
            | Self::HookStarted { .. }
            | Self::HookFinished { .. } => None,
        }
    }
}
