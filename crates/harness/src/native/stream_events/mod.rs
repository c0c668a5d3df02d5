//! Pieces of an answer in the envelopes of `agent:stream_event`, as they are shown.
//!
//! One value for each stream. `seq` begins at 1 and has no gaps; `completed` or `error` is the
//! last event, and nothing comes after it. `spec/stream-events.md` is the table.

mod payload;

use std::sync::Arc;

use qd_session::id::{CallId, ChangeId, SessionId, ToolName, TurnId};
use qd_session::moment::Timestamp;

pub use self::payload::{
    CompletedReason, Payload, StatusKind, StreamErrorCode, StreamEvent, ToolStatus, UsageTold,
};
use super::failure::Cause;
use super::{Failure, Piece, StopReason, Usage};
use crate::Harness;
use crate::secret::ArgumentStreams;

/// Makes the events of one stream. A stream that failed or was completed stays silent.
#[derive(Debug)]
pub struct StreamEvents {
    session: SessionId,
    harness: Harness,
    provider: Option<Arc<str>>,
    stream: TurnId,
    asked_at: Timestamp,
    seq: u64,
    is_over: bool,
    usage: Usage,
    arguments: ArgumentStreams,
}

impl StreamEvents {
    pub fn new(
        session: SessionId,
        harness: Harness,
        provider: Option<Arc<str>>,
        stream: TurnId,
        asked_at: Timestamp,
    ) -> Self {
        Self {
            session,
            harness,
            provider,
            stream,
            asked_at,
            seq: 0,
            is_over: false,
            usage: Usage::default(),
            arguments: ArgumentStreams::default(),
        }
    }

    /// The events of a piece; a piece that is only counted has none.
    pub fn take(&mut self, now: Timestamp, piece: &Piece) -> Vec<StreamEvent> {
        let mut payloads = Vec::new();
        match piece {
            Piece::Text { text } => {
                payloads.push(Payload::TextDelta { text: text.clone(), role: "assistant" });
            }
            Piece::Thinking { text } => {
                payloads.push(Payload::ThinkingDelta { text: text.clone() });
            }
            Piece::CallArguments { call, tool, part } => {
                let shown = self.arguments.take(call, tool, part);
                payloads.extend(shown.map(|shown| arguments_delta(call, tool, shown)));
            }
            Piece::Metadata { model, request_id } => payloads.push(Payload::Metadata {
                model: model.clone().unwrap_or_else(|| "unknown".into()),
                latency_ms: now.ms_since(self.asked_at),
                provider_request_id: request_id.clone(),
            }),
            Piece::Usage(usage) => self.usage = *usage,
            Piece::End { reason, usage, .. } => {
                payloads.extend(self.held_arguments());
                self.usage = *usage;
                payloads.push(self.completed((*reason).into()));
            }
            Piece::Failed(failure) => payloads.push(error(failure)),
        }
        payloads.into_iter().filter_map(|payload| self.emit(now, payload)).collect()
    }

    /// The answer is whole.
    pub fn complete(
        &mut self,
        now: Timestamp,
        reason: CompletedReason,
        usage: UsageTold,
    ) -> Vec<StreamEvent> {
        let mut payloads = self.held_arguments();
        payloads.push(Payload::Completed { reason, usage });
        payloads.into_iter().filter_map(|payload| self.emit(now, payload)).collect()
    }

    pub fn stream(&self) -> &TurnId {
        &self.stream
    }

    /// What was held back of arguments, in case a secret was cut in two.
    fn held_arguments(&mut self) -> Vec<Payload> {
        let held = self.arguments.finish();
        let held = held.iter().map(|(call, tool, rest)| {
            let rest = rest.as_str().into();
            arguments_delta(call, tool, rest)
        });
        held.collect()
    }

    /// The operator put an end to it.
    pub fn abort(&mut self, now: Timestamp) -> Option<StreamEvent> {
        let completed = self.completed(CompletedReason::UserAbort);
        self.emit(now, completed)
    }

    /// Any event, in its envelope and without secrets; none after the last.
    pub fn emit(&mut self, now: Timestamp, payload: Payload) -> Option<StreamEvent> {
        if self.is_over {
            return None;
        }
        self.is_over = payload.is_last();
        self.seq += 1;
        Some(StreamEvent {
            schema_version: SCHEMA_VERSION,
            event_id: self.event_id(),
            session_id: self.session.clone(),
            harness: self.harness,
            provider: self.provider.clone(),
            stream_id: self.stream.clone(),
            seq: self.seq,
            timestamp_ms: now,
            payload: payload.without_secrets(),
            message_id: None,
            parent_message_id: None,
        })
    }

    /// A stream's id is never used twice and neither is a number in it.
    fn event_id(&self) -> ChangeId {
        let stream = self.stream.as_str();
        let stream = stream.strip_prefix("turn_").unwrap_or(stream);
        ChangeId::new(format!("evt_{stream}_{}", self.seq))
    }

    fn completed(&self, reason: CompletedReason) -> Payload {
        Payload::Completed { reason, usage: self.usage() }
    }

    /// What the stream itself has told of what it took.
    pub fn usage(&self) -> UsageTold {
        let Usage { tokens, reasoning } = self.usage;
        UsageTold {
            input_tokens: tokens.context(),
            output_tokens: tokens.output,
            reasoning_tokens: (reasoning > 0).then_some(reasoning),
        }
    }
}

fn arguments_delta(call: &CallId, tool: &ToolName, shown: Arc<str>) -> Payload {
    let (call_id, tool_name) = (call.clone(), tool.clone());
    Payload::ToolCallDelta { call_id, tool_name, arguments_delta: shown }
}

impl From<StopReason> for CompletedReason {
    fn from(reason: StopReason) -> Self {
        match reason {
            StopReason::Done | StopReason::Calls | StopReason::Refused => Self::Stop,
            StopReason::Length | StopReason::ContextFull => Self::Length,
        }
    }
}

fn error(failure: &Failure) -> Payload {
    let code = match failure.cause {
        Cause::Garbled | Cause::BadArguments | Cause::NotAStream | Cause::TooLong => {
            StreamErrorCode::ProtocolError
        }
        Cause::RateLimited
        | Cause::OutOfCredit
        | Cause::Overloaded
        | Cause::ServerError
        | Cause::TimedOut
        | Cause::Unreachable
        | Cause::Dropped
        | Cause::SignInNeeded
        | Cause::NotAllowed
        | Cause::ContextFull
        | Cause::UnknownModel
        | Cause::BadRequest
        | Cause::Untrusted
        | Cause::Redirected => StreamErrorCode::ProviderError,
    };
    let mut details = serde_json::json!({"cause": failure.cause.name()});
    if let Some(status) = failure.status {
        details["status"] = status.into();
    }
    if let Some(wait) = failure.retry_after_ms {
        details["retryAfterMs"] = wait.into();
    }
    if let Some(id) = &failure.request_id {
        details["providerRequestId"] = (**id).into();
    }
    let recoverable = failure.cause.trouble() == qd_session::machine::TroubleKind::Passing;
    Payload::Error { code, message: failure.message().into(), recoverable, details: Some(details) }
}

/// The version of the envelope.
const SCHEMA_VERSION: &str = "1.0";
