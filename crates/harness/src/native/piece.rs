//! What a stream brings, piece by piece, whoever sends it.

use std::sync::Arc;

use qd_session::id::{CallId, ToolName};

use super::{AssistantMessage, Failure};
use crate::usage::Tokens;

/// One thing that came. After [`Piece::End`] or [`Piece::Failed`] comes nothing more.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece {
    /// The answer has begun.
    Metadata {
        /// The model that answers, which may be a dated version of the one that was asked.
        model: Option<Arc<str>>,
        request_id: Option<Arc<str>>,
    },
    Text {
        text: Arc<str>,
    },
    Thinking {
        text: Arc<str>,
    },
    /// A part of a call's arguments; the first of a call may be empty.
    CallArguments {
        call: CallId,
        tool: ToolName,
        part: Arc<str>,
    },
    /// What was used so far; it replaces what was said before.
    Usage(Usage),
    End {
        reason: StopReason,
        message: AssistantMessage,
        usage: Usage,
    },
    Failed(Failure),
}

impl Piece {
    pub fn is_last(&self) -> bool {
        match self {
            Self::End { .. } | Self::Failed(_) => true,
            Self::Metadata { .. }
            | Self::Text { .. }
            | Self::Thinking { .. }
            | Self::CallArguments { .. }
            | Self::Usage(_) => false,
        }
    }
}

/// Tokens of one answer. The price table takes them as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    pub tokens: Tokens,
    /// Output that was thought and not said; it is within the output.
    pub reasoning: u64,
}

/// Why the model stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopReason {
    /// It has said what it had to say.
    Done,
    /// It wants tools to run.
    Calls,
    /// Its answer became too long.
    Length,
    /// The conversation filled its context.
    ContextFull,
    /// It, or a filter of its provider, refused.
    Refused,
}

impl StopReason {
    pub const ALL: [Self; 5] =
        [Self::Done, Self::Calls, Self::Length, Self::ContextFull, Self::Refused];

    /// The answer is not whole: somebody has to look at it.
    pub fn is_cut_off(self) -> bool {
        match self {
            Self::Length | Self::ContextFull | Self::Refused => true,
            Self::Done | Self::Calls => false,
        }
    }
}
