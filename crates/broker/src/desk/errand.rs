//! What has to be carried to an agent, and what became of it.

use qd_harness::Harness;
use qd_session::decision::Decision;
use qd_session::id::{AgentId, CallId, DecisionId, ProcessKey, RequestId, SessionId, Way};

use super::{CODEX, HOOK, OPENCODE};
use crate::hook_intake::{FrameId, HookReply};
use crate::sources::terminal::Pane;

/// A decision on its way.
#[derive(Debug, Clone, PartialEq)]
pub struct Errand {
    pub decision: DecisionId,
    pub task: Task,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    /// To a forwarder that waits.
    Reply {
        frame: FrameId,
        reply: HookReply,
    },
    /// To the server that the session lives on.
    Answer {
        harness: Harness,
        session: SessionId,
        request: RequestId,
        agent: AgentId,
        call: Option<CallId>,
        answer: Decision,
    },
    Prompt {
        harness: Harness,
        session: SessionId,
        text: String,
    },
    Interrupt {
        harness: Harness,
        session: SessionId,
    },
    Yolo {
        harness: Harness,
        session: SessionId,
        on: bool,
    },
    /// Ask the process to end.
    End {
        process: ProcessKey,
    },
    /// Bring the terminal to the front.
    Focus {
        pane: Pane,
    },
}

/// What became of an errand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Carried {
    Delivered,
    /// It surely did not arrive.
    Failed {
        why: String,
    },
    /// It was sent, and nobody can say whether it arrived.
    Lost,
}

impl Task {
    /// As records name it.
    pub fn way(&self) -> Way {
        Way::new(match self {
            Self::Reply { .. } => HOOK,
            Self::Answer { harness, .. }
            | Self::Prompt { harness, .. }
            | Self::Interrupt { harness, .. }
            | Self::Yolo { harness, .. } => match harness {
                Harness::Codex => CODEX,
                Harness::ClaudeCode
                | Harness::GeminiCli
                | Harness::KiloCode
                | Harness::Cline
                | Harness::Opencode
                | Harness::Acp => OPENCODE,
            },
            Self::End { .. } => "signal",
            Self::Focus { .. } => "tmux",
        })
    }
}
