//! What may be shown: the four changes of `agent:state_event`, and errors.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::state::Kind;
use crate::id::{CallId, ChangeId, HookRunId, RunId, SessionId, ToolName, TurnId};
use crate::moment::Timestamp;

/// A change in its envelope, as it goes over the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Shown {
    pub event_id: ChangeId,
    pub timestamp_ms: Timestamp,
    pub session_id: SessionId,
    #[serde(flatten)]
    pub change: Change,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Change {
    StateChanged(StateChanged),
    ToolLifecycle(ToolLifecycle),
    HookLifecycle(HookLifecycle),
    SessionError(AgentError),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StateChanged {
    pub from: Kind,
    pub to: Kind,
    pub reason: Reason,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream_id: Option<TurnId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolLifecycle {
    pub run_id: RunId,
    pub call_id: CallId,
    pub tool_name: ToolName,
    pub mutating: bool,
    pub status: RunStatus,
    /// It succeeded in having a result, and the result is an error: a command that returned
    /// non-zero.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    pub attempt: u8,
    pub started_at_ms: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at_ms: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<str>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookLifecycle {
    pub run_id: HookRunId,
    pub hook_name: Arc<str>,
    pub tool_run_ids: Vec<RunId>,
    pub status: RunStatus,
    pub attempt: u8,
    pub started_at_ms: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at_ms: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<str>>,
    /// What it wrote, once it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Arc<str>>,
}

/// The lifecycle of a tool's or a hook's run. Every run ends in exactly one of the last three.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    Queued,
    Running,
    Succeeded,
    Failed,
    Canceled,
}

/// Why the state changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    UserInput,
    StreamCompleted,
    ToolsRequested,
    ToolsCompleted,
    HooksCompleted,
    StopRequested,
    HarnessExited,
    Spawned,
    HarnessReady,
    RetryDue,
    RetryRequested,
    ApprovalRequired,
    ApprovalDecided,
    InputRequired,
    InputGiven,
    HooksSkipped,
    Paused,
    Resumed,
    Failed,
    RetriesExhausted,
    TimedOut,
    Interrupted,
}

impl Reason {
    pub const ALL: [Self; 22] = [
        Self::UserInput,
        Self::StreamCompleted,
        Self::ToolsRequested,
        Self::ToolsCompleted,
        Self::HooksCompleted,
        Self::StopRequested,
        Self::HarnessExited,
        Self::Spawned,
        Self::HarnessReady,
        Self::RetryDue,
        Self::RetryRequested,
        Self::ApprovalRequired,
        Self::ApprovalDecided,
        Self::InputRequired,
        Self::InputGiven,
        Self::HooksSkipped,
        Self::Paused,
        Self::Resumed,
        Self::Failed,
        Self::RetriesExhausted,
        Self::TimedOut,
        Self::Interrupted,
    ];
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentError {
    pub code: ErrorCode,
    pub message: Arc<str>,
    pub retryable: bool,
    pub source: ErrorSource,
    /// When a usage limit ends, if the provider tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorCode {
    SessionNotFound,
    StateTransitionInvalid,
    HarnessFailed,
    ToolExecutionFailed,
    HookExecutionFailed,
    StreamingFailed,
    HookConfigInvalid,
    UsageLimit,
    AuthFailed,
    /// The provider does not have the model.
    ModelNotFound,
    /// The conversation no longer fits into the model's context.
    ContextFull,
    /// A crash of ours cut it off; what it did before is not known.
    Interrupted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorSource {
    Harness,
    Tool,
    Hook,
    Orchestrator,
}

/// What went wrong with a model request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HarnessTrouble {
    pub trouble: TroubleKind,
    pub message: Arc<str>,
    /// How long the provider asks to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TroubleKind {
    /// Worth another try: overloaded, 5xx, a dropped stream, a short rate limit.
    Passing,
    /// Signing in is needed.
    Auth,
    /// The provider will not serve us for longer than we wait.
    UsageLimit,
    /// The provider does not have the model.
    UnknownModel,
    /// The conversation no longer fits into the model's context.
    ContextFull,
    /// Asking the same again gives the same answer.
    Lasting,
}
