//! The events of a stream as they go over the wire.

use std::sync::Arc;

use qd_session::id::{CallId, ChangeId, SessionId, ToolName, TurnId};
use qd_session::moment::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::{Harness, secret};

/// An event in its envelope.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StreamEvent {
    pub schema_version: &'static str,
    pub event_id: ChangeId,
    pub session_id: SessionId,
    pub harness: Harness,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Arc<str>>,
    pub stream_id: TurnId,
    pub seq: u64,
    pub timestamp_ms: Timestamp,
    #[serde(flatten)]
    pub payload: Payload,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_message_id: Option<Arc<str>>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", content = "payload", rename_all = "snake_case")]
#[serde(rename_all_fields = "camelCase")]
pub enum Payload {
    TextDelta {
        text: Arc<str>,
        role: &'static str,
    },
    ThinkingDelta {
        text: Arc<str>,
    },
    ToolCallDelta {
        call_id: CallId,
        tool_name: ToolName,
        arguments_delta: Arc<str>,
    },
    /// For agents that run their tools while they answer; ours run after `completed`.
    ToolCallCompleted {
        call_id: CallId,
        tool_name: ToolName,
        arguments: Value,
        output: Arc<str>,
        status: ToolStatus,
        #[serde(skip_serializing_if = "Option::is_none")]
        error_message: Option<Arc<str>>,
    },
    ArtifactDelta {
        artifact_id: Arc<str>,
        artifact_type: Arc<str>,
        content_delta: Arc<str>,
    },
    Metadata {
        model: Arc<str>,
        latency_ms: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        provider_request_id: Option<Arc<str>>,
    },
    /// Telemetry; no state follows from it.
    Status {
        state: StatusKind,
        #[serde(skip_serializing_if = "Option::is_none")]
        detail: Option<Arc<str>>,
    },
    Completed {
        reason: CompletedReason,
        usage: UsageTold,
    },
    Error {
        code: StreamErrorCode,
        message: Arc<str>,
        recoverable: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    Completed,
    Failed,
    Canceled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StatusKind {
    Idle,
    Processing,
    Waiting,
    Aborted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CompletedReason {
    Stop,
    Length,
    ToolError,
    UserAbort,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamErrorCode {
    ProviderError,
    StreamGap,
    ProtocolError,
    ToolError,
    SessionAborted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UsageTold {
    /// All that the model had before it, cached or not.
    pub input_tokens: u64,
    pub output_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
}

impl Payload {
    /// Its `type` on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::TextDelta { .. } => "text_delta",
            Self::ThinkingDelta { .. } => "thinking_delta",
            Self::ToolCallDelta { .. } => "tool_call_delta",
            Self::ToolCallCompleted { .. } => "tool_call_completed",
            Self::ArtifactDelta { .. } => "artifact_delta",
            Self::Metadata { .. } => "metadata",
            Self::Status { .. } => "status",
            Self::Completed { .. } => "completed",
            Self::Error { .. } => "error",
        }
    }

    pub fn is_last(&self) -> bool {
        match self {
            Self::Completed { .. } | Self::Error { .. } => true,
            Self::TextDelta { .. }
            | Self::ThinkingDelta { .. }
            | Self::ToolCallDelta { .. }
            | Self::ToolCallCompleted { .. }
            | Self::ArtifactDelta { .. }
            | Self::Metadata { .. }
            | Self::Status { .. } => false,
        }
    }

    pub(super) fn without_secrets(mut self) -> Self {
        match &mut self {
            Self::ToolCallCompleted { arguments, output, error_message, .. } => {
                *arguments = secret::redacted_json(arguments);
                *output = secret::redacted(output).into();
                *error_message = error_message.take().map(|text| secret::redacted(&text).into());
            }
            // Arguments that come in parts were redacted before they were cut; words of a model
            // are what it said.
            Self::ToolCallDelta { .. }
            | Self::TextDelta { .. }
            | Self::ThinkingDelta { .. }
            | Self::ArtifactDelta { .. }
            | Self::Metadata { .. }
            | Self::Status { .. }
            | Self::Completed { .. }
            | Self::Error { .. } => {}
        }
        self
    }
}
