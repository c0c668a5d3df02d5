//! What the machine asks the outside to do. Advisory: whoever carries it out reports by an event.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::batch::{CallOutput, ToolCall};
use super::timer::Timer;
use crate::decision::Answer;
use crate::id::{CallId, HookRunId, RunId, TurnId};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Action {
    StartHarness,
    /// One model request (or, for an agent with its own tools, one prompt). `outputs` and `text`
    /// are what is new in the conversation; a repeated request adds nothing.
    SendToHarness {
        turn: TurnId,
        attempt: u8,
        outputs: Vec<CallOutput>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<Arc<str>>,
    },
    /// Classify and judge the frozen answer; comes back as `ResponseParsed`.
    ParseResponse {
        turn: TurnId,
    },
    /// Put a permission before the operator.
    RequestApproval {
        call: ToolCall,
    },
    /// Put a question before the operator.
    RequestInput {
        call: ToolCall,
    },
    ExecuteTools {
        tools: Vec<ToolOrder>,
    },
    CancelTool {
        run: RunId,
    },
    /// Hooks run one at a time, in the session's workspace root.
    RunPostToolHook {
        run: HookRunId,
        hook: Arc<str>,
        tool_runs: Vec<RunId>,
    },
    CancelHook {
        run: HookRunId,
    },
    /// Give an agent that runs its own tools the operator's answer.
    AnswerHarness {
        call: CallId,
        answer: HarnessAnswer,
    },
    /// Let an agent that is held after its batch go on.
    ReleaseHarness,
    /// End the current turn; the session lives on.
    InterruptHarness {
        turn: TurnId,
    },
    StopHarness,
    /// Kill the whole process tree.
    KillHarness,
    StartTimer {
        timer: Timer,
        after_ms: u64,
    },
    CancelTimer {
        timer: Timer,
    },
}

/// One tool to run, in the order of the calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolOrder {
    pub run: RunId,
    pub attempt: u8,
    pub call: ToolCall,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum HarnessAnswer {
    Approved {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<Arc<str>>,
    },
    Rejected {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Arc<str>>,
    },
    Input {
        text: Arc<str>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        answers: Vec<Answer>,
    },
}

impl Action {
    /// The name of the action, as the spec's tables spell it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::StartHarness => "StartHarness",
            Self::SendToHarness { .. } => "SendToHarness",
            Self::ParseResponse { .. } => "ParseResponse",
            Self::RequestApproval { .. } => "RequestApproval",
            Self::RequestInput { .. } => "RequestInput",
            Self::ExecuteTools { .. } => "ExecuteTools",
            Self::CancelTool { .. } => "CancelTool",
            Self::RunPostToolHook { .. } => "RunPostToolHook",
            Self::CancelHook { .. } => "CancelHook",
            Self::AnswerHarness { .. } => "AnswerHarness",
            Self::ReleaseHarness => "ReleaseHarness",
            Self::InterruptHarness { .. } => "InterruptHarness",
            Self::StopHarness => "StopHarness",
            Self::KillHarness => "KillHarness",
            Self::StartTimer { .. } => "StartTimer",
            Self::CancelTimer { .. } => "CancelTimer",
        }
    }
}
