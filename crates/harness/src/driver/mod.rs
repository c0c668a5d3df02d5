//! Drivers: what talks to an agent that we started.
//!
//! Pure. The agent's lines and the operator's commands come in; what is to be done with its process
//! and what is to be told about it go out, in order. One driver for each session, one file
//! `driver.rs` for each protocol: Claude Code's stdio control, Codex's app-server, ACP, and the
//! say/ask streams of Kilo and Cline.
//! Invariant: a driver never fails. A line nobody understands is a [`Report::Unrecognised`], and a
//! command that the agent cannot take is [`Cannot`], with nothing written.

mod launch;
mod report;

use std::fmt::Debug;
use std::sync::Arc;

use qd_session::decision::Decision;
use qd_session::id::CallId;
use qd_session::machine::Process;
use qd_session::moment::Timestamp;

pub use self::launch::{Invocation, Launch, Mode, Protocol, Resume};
pub use self::report::{Delta, Report, Spending};
pub(crate) use self::report::{called, failed, unrecognised};
use crate::excerpt;

/// How one agent product is driven.
pub trait Driver: Debug + Send + Sync {
    /// How long one of its processes lives: the machine's setup wants to know.
    fn process(&self) -> Process;

    /// What begins the session. The first output starts a process.
    fn start(&mut self) -> Vec<Output>;

    /// One line of the agent, without its end.
    fn handle_line(&mut self, now: Timestamp, line: &[u8]) -> Vec<Output>;

    /// What the operator, or the machine for them, wants of it.
    fn command(&mut self, now: Timestamp, command: &Command) -> Result<Vec<Output>, Cannot>;

    /// Its process has ended. Whoever runs it tells the machine; this is for what is left to say.
    fn handle_exit(&mut self, _code: Option<i32>) -> Vec<Output> {
        Vec::new()
    }

    /// When it wants to be woken if nothing comes.
    fn next_timeout(&self) -> Option<Timestamp> {
        None
    }

    fn handle_timeout(&mut self, _now: Timestamp) -> Vec<Output> {
        Vec::new()
    }
}

/// What comes out of a driver, in the order in which it is to happen.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// Start the program so. There is one process at a time.
    Start(Invocation),
    /// One line to its standard input, without its end.
    Write(String),
    /// There is nothing more to write: a polite stop.
    CloseInput,
    /// Ask the process to end by a signal: a polite stop where closing its input is none.
    Terminate,
    Report(Report),
    /// It cannot be used, for this reason: end the process and say so.
    GiveUp(Arc<str>),
}

/// What is wanted of an agent.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Begins a turn.
    Prompt {
        text: Arc<str>,
    },
    /// Goes on with a turn that failed: nothing new is said.
    Retry,
    /// The operator's answer to what was asked under this call.
    Decide {
        call: CallId,
        decision: Decision,
    },
    /// The same in words, to a question.
    AnswerInWords {
        call: CallId,
        text: Arc<str>,
    },
    /// Ends the turn; the session lives on.
    Interrupt,
    SetMode(Mode),
    /// Lets an agent that is held after its batch go on.
    Release,
    /// Ends the session, politely. No agent promises to.
    Stop,
}

/// Why a command was not carried out. Nothing was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cannot {
    /// It has not come up yet.
    NotReady,
    /// A turn runs already.
    Busy,
    /// No turn runs.
    Idle,
    /// Nothing is asked under that call, or not any more.
    NotAsked,
    /// The agent knows no such answer or setting.
    NotOffered(&'static str),
}

/// What goes on with a turn that failed: the agents keep the prompt and have no word for it.
pub(crate) const GO_ON: &str = "Continue.";

/// Reports the version that the agent names. False if that version is not driven: the driver has
/// given up then.
pub(crate) fn accepts_version(
    launch: &Launch,
    version: Option<&str>,
    out: &mut Vec<Output>,
) -> bool {
    let Some(version) = version else { return true };
    let refusal = launch.tested.and_then(|(name, tested)| tested.refusal(name, version));
    if let Some(why) = refusal {
        out.push(Output::GiveUp(why.into()));
        return false;
    }
    out.push(Output::Report(Report::Version { version: excerpt::label(version) }));
    true
}

/// Most requests of one agent that are open at once. Agents run a dozen calls side by side; one
/// more than this is told no.
pub(crate) const OPEN_MAX: usize = 64;
