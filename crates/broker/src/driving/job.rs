//! What a runner is asked to do.

use std::sync::Arc;

use qd_harness::Harness;
use qd_session::id::{CallId, HookRunId, RunId, SessionId, ToolName, TurnId};
use qd_session::logbook::{Brief, Message};
use qd_session::machine::{HarnessAnswer, HookConfig, ToolOrder};
use qd_session::policy::Preset;

/// Something for a runner, once all that led to it is on disk.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    pub session: SessionId,
    pub work: Work,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// Bring the harness up; it reports `Ready`, or `Exited`.
    Start(Box<Start>),
    /// Ask for one answer. An agent that is not there any more is started first.
    Send(Box<Sending>),
    /// Look at the ground that policy judges on; with a turn, its answer waits for it.
    Survey {
        turn: Option<TurnId>,
        workspace: Arc<str>,
        tools: Vec<ToolName>,
    },
    /// All at once; each reports for itself.
    RunTools {
        workspace: Arc<str>,
        tools: Vec<ToolOrder>,
    },
    CancelTool {
        run: RunId,
    },
    RunHook {
        run: HookRunId,
        hook: Box<HookConfig>,
        workspace: Arc<str>,
        tool_runs: Vec<HookedRun>,
    },
    CancelHook {
        run: HookRunId,
    },
    /// Give an agent that runs its own tools the operator's answer.
    Answer {
        call: CallId,
        answer: HarnessAnswer,
    },
    /// Let an agent that is held after its batch go on.
    Release,
    /// End the turn; the session lives on.
    Interrupt {
        turn: TurnId,
    },
    /// Ask the harness to end. It reports `Exited`.
    Stop,
    /// Kill the whole process tree.
    Kill,
}

/// Who is to be started, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    pub harness: Harness,
    pub brief: Brief,
    /// The preset that holds now: the operator may have switched YOLO since.
    pub preset: Preset,
    /// It is held after each batch of its tools, so that our hooks run.
    pub is_held: bool,
    /// The agent's own id of the session, where it is gone on with.
    pub vendor_id: Option<Arc<str>>,
}

/// One request to a model, or one prompt to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sending {
    pub turn: TurnId,
    pub attempt: u8,
    pub start: Start,
    /// What the operator wrote; none where the model goes on, or is asked the same once more.
    pub text: Option<Arc<str>>,
    /// What the operator wrote last, for an agent that keeps its own past and may not have heard
    /// it. None where it has begun to act on it: it is never told to do the same twice.
    pub again: Option<Arc<str>>,
    /// All that was said, the newest last: for a model that knows nothing else.
    pub conversation: Vec<Arc<Message>>,
}

impl Work {
    /// For the log.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Start(_) => "start",
            Self::Send(_) => "send",
            Self::Survey { .. } => "survey",
            Self::RunTools { .. } => "run tools",
            Self::CancelTool { .. } => "cancel tool",
            Self::RunHook { .. } => "run hook",
            Self::CancelHook { .. } => "cancel hook",
            Self::Answer { .. } => "answer",
            Self::Release => "release",
            Self::Interrupt { .. } => "interrupt",
            Self::Stop => "stop",
            Self::Kill => "kill",
        }
    }
}

/// A run of the batch that a hook is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookedRun {
    pub run: RunId,
    pub tool: ToolName,
}
