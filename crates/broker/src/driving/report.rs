//! What runners tell. What belongs to a turn or a run names it, so that a late one is recognised.

use std::sync::Arc;

use qd_harness::native::{Failure, Piece, StopReason};
use qd_session::id::{CallId, HookRunId, ProcessKey, RunId, ToolName, TurnId};
use qd_session::logbook::{Frozen, Used};
use qd_session::machine::{AgentError, HarnessTrouble, ToolCall, ToolOutcome};
use qd_session::policy::Tightening;

#[derive(Debug, Clone)]
pub enum Report {
    // Of the harness, whoever it is.
    Ready,
    Exited {
        code: Option<i32>,
        why: Option<Arc<str>>,
    },
    /// What an operator should read about it; the session goes on.
    Trouble {
        error: AgentError,
    },
    /// The agent's own id of the session.
    VendorSession {
        id: Arc<str>,
    },
    /// The agent's version.
    Version {
        version: Arc<str>,
    },
    /// It said something that nobody understood.
    Unrecognised {
        text: Arc<str>,
    },
    /// The process that carries it.
    Process {
        process: ProcessKey,
    },
    /// That process is gone.
    ProcessEnded {
        process: ProcessKey,
    },
    /// What that process has started of itself: a client's other half.
    Kin {
        processes: Vec<ProcessKey>,
    },
    /// A piece of the answer: shown, not kept. Never the last one, which is a report of its own.
    Piece {
        turn: TurnId,
        piece: Piece,
    },
    /// Nothing to show, but the answer is still being worked on.
    Alive {
        turn: TurnId,
    },
    Completed {
        turn: TurnId,
        text: Option<Arc<str>>,
        stop: StopReason,
        /// The whole answer, where the model keeps no past of its own.
        frozen: Option<Box<Frozen>>,
    },
    Failed {
        turn: TurnId,
        trouble: HarnessTrouble,
        /// What is known besides, where we asked the provider ourselves.
        failure: Option<Box<Failure>>,
        /// What it took all the same.
        used: Used,
    },

    // Of an agent that runs its own tools.
    ToolReported {
        turn: TurnId,
        call: ToolCall,
    },
    ToolEnded {
        turn: TurnId,
        call: CallId,
        is_error: bool,
        /// What came out, as much of it as is kept.
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
    Withdrawn {
        turn: TurnId,
        call: CallId,
    },
    BatchHeld {
        turn: TurnId,
    },

    // Of our own runners.
    Surveyed {
        turn: Option<TurnId>,
        ground: Box<Ground>,
    },
    ToolStarted {
        run: RunId,
    },
    ToolFinished {
        run: RunId,
        outcome: ToolOutcome,
    },
    HookStarted {
        run: HookRunId,
    },
    HookFinished {
        run: HookRunId,
        error: Option<Arc<str>>,
        output: Option<Arc<str>>,
    },
}

/// What calls are judged on besides the operator's rules.
#[derive(Debug, Clone, Default)]
pub struct Ground {
    /// What the repository forbids.
    pub tightening: Tightening,
    /// Those of the tools asked about that may change something.
    pub mutating: Vec<ToolName>,
}
