//! What has to be carried to an agent, and what became of it.

use qd_harness::Harness;
use qd_hook_wire::{FrameId, HookReply};
use qd_session::decision::Decision;
use qd_session::id::{AgentId, CallId, DecisionId, ProcessKey, RequestId, SessionId, Way};
use qd_session::machine;

use super::{CODEX, DRIVER, HOOK, OPENCODE, RECORDING};
use crate::terminal::Pane;

/// Who decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answerer {
    Person,
    /// A rule or a preset: some requests are not for those.
    Rule,
}

/// What is known of a thread that shall ask again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expecting {
    /// Nothing else would change: it is a mistake where it asks already.
    Yolo,
    /// It may have been changed in its terminal, or rules have answered for it.
    Either,
}

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
        by: Answerer,
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
    },
    /// It asks again, as it did before if that is known.
    EndYolo {
        harness: Harness,
        session: SessionId,
        before: Option<String>,
        expecting: Expecting,
    },
    /// To the machine of a session that we drive. The broker hands it over itself.
    Drive {
        session: SessionId,
        events: Vec<machine::Event>,
    },
    /// Ask the process to end.
    End {
        process: ProcessKey,
    },
    /// Nothing: it is kept here.
    Keep,
    /// Bring the terminal to the front.
    Focus {
        pane: Pane,
    },
    /// To the recording that the session is played from: it goes on as it did.
    GoOn {
        session: SessionId,
    },
}

/// What became of an errand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Carried {
    Delivered,
    /// The client's own switch was turned. How it asked before, in its words; none once it asks
    /// again.
    Switched {
        before: Option<String>,
    },
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
            | Self::Yolo { harness, .. }
            | Self::EndYolo { harness, .. } => match harness {
                Harness::Codex => CODEX,
                Harness::ClaudeCode
                | Harness::GeminiCli
                | Harness::KiloCode
                | Harness::Cline
                | Harness::Opencode
                | Harness::Acp
                | Harness::Native => OPENCODE,
            },
            Self::Drive { .. } => DRIVER,
            Self::End { .. } => "signal",
            Self::Keep => "policy",
            Self::Focus { .. } => "tmux",
            Self::GoOn { .. } => RECORDING,
        })
    }
}
