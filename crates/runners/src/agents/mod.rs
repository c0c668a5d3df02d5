//! Processes of vendor agents: lines in and out, and their end.
//!
//! A [`run`] is one agent: it starts what its driver says, gives it the agent's lines and the
//! orders that come, writes what comes back, and tells what there is to tell. It decides nothing.
//! An agent is a program of the operator's: it is not confined, and its [`Warden`] ends it with all
//! that it started, also when we are killed.
//! Invariant: when the future ends, whatever the agent has started is dead. Garbage, half a line, a
//! line without end and silence are reports or a clear error, never a hang.

pub mod limits;
mod lines;
mod process;
mod runner;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use qd_harness::driver::{Cannot, Command, Report};
use tokio::sync::oneshot;

pub use self::runner::run;
use super::warden::Warden;

/// One agent to be run.
#[derive(Debug, Clone)]
pub struct AgentJob {
    pub program: PathBuf,
    /// Where it works: the workspace.
    pub cwd: PathBuf,
    /// All the environment it gets, see [`of_agent`](super::environment::of_agent).
    pub environment: BTreeMap<String, String>,
    /// Below which it runs.
    pub warden: Warden,
    /// How long it may take to come up.
    pub start_max: Duration,
}

impl AgentJob {
    pub fn new(program: impl Into<PathBuf>, cwd: impl Into<PathBuf>, warden: Warden) -> Self {
        Self {
            program: program.into(),
            cwd: cwd.into(),
            environment: BTreeMap::new(),
            warden,
            start_max: limits::START_MAX,
        }
    }
}

/// A command on its way to an agent, and who wants to know whether it was taken.
#[derive(Debug)]
pub struct Order {
    pub command: Command,
    /// Told once the command is on its way to the agent, or cannot be.
    pub taken: oneshot::Sender<Result<(), Cannot>>,
}

impl Order {
    pub fn new(command: Command) -> (Self, oneshot::Receiver<Result<(), Cannot>>) {
        let (taken, answer) = oneshot::channel();
        (Self { command, taken }, answer)
    }
}

/// What is told of an agent, in the order in which it happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// A process of it runs: its pid, and when it started in the system's own unit.
    Started {
        pid: u32,
        start: u64,
    },
    Report(Report),
    /// Its process has ended, and with it everything that it had started.
    Exited(Exit),
}

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// None if a signal ended it, or it never ran.
    pub code: Option<i32>,
    /// What an operator should read, if it did not simply end well: ours, and the end of what the
    /// agent wrote to its standard error.
    pub error: Option<Arc<str>>,
}
