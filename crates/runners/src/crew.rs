//! The crew: those who run things for driven sessions. The runtime hands them one job each.
//!
//! A crew knows workspaces, tools, models and agents, and no session. Errors are values: whatever
//! goes wrong comes back as an outcome. When the future of a job ends, nothing of it runs any more,
//! also when it was told to stop.

use std::pin::Pin;
use std::sync::Arc;

use qd_broker::driving::{Ground, HookedRun, Sending, Start};
use qd_harness::Harness;
use qd_session::id::{CallId, ToolName, TurnId};
use qd_session::logbook::Brief;
use qd_session::machine::{AgentError, HarnessAnswer, HookConfig, Setup, ToolOrder, ToolOutcome};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::hooks::HookEnd;
use crate::teller::Teller;

pub type Task<T> = Pin<Box<dyn Future<Output = T> + Send>>;

pub trait Crew: Send + Sync + 'static {
    /// How a session of that harness is driven, or a sentence why it cannot be.
    fn muster(&self, harness: Harness, brief: &Brief) -> Result<Muster, String>;

    /// Which harnesses there are.
    fn offers(&self) -> Vec<HarnessOffer>;

    /// What the repository forbids, and which of these tools may change something.
    fn survey(&self, workspace: Arc<str>, tools: Vec<ToolName>) -> Task<Ground>;

    fn run_tool(
        &self,
        workspace: Arc<str>,
        order: ToolOrder,
        stop: CancellationToken,
    ) -> Task<ToolOutcome>;

    fn run_hook(
        &self,
        hook: HookConfig,
        workspace: Arc<str>,
        tool_runs: Vec<HookedRun>,
        stop: CancellationToken,
    ) -> Task<HookEnd>;

    /// Brings a harness up, tells when it is ready, and serves its orders until it ends, is asked
    /// to or is stopped.
    fn run_harness(
        &self,
        start: Start,
        orders: mpsc::Receiver<HarnessOrder>,
        tell: Teller,
        stop: CancellationToken,
    ) -> Task<Ended>;
}

/// How a new session is driven.
#[derive(Debug, Clone, PartialEq)]
pub struct Muster {
    pub setup: Setup,
    /// The agent's own id, where we choose it.
    pub vendor_id: Option<Arc<str>>,
    /// Hooks that cannot be used: the session goes on without them.
    pub trouble: Option<AgentError>,
}

/// How a harness ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// None if it was killed, or never ran.
    pub code: Option<i32>,
    /// What an operator should read about it.
    pub why: Option<Arc<str>>,
}

/// A harness that a session can be begun with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HarnessOffer {
    pub harness: Harness,
    /// Why none can be begun here.
    pub obstacle: Option<String>,
    /// What can be chosen as its provider: names of the configuration.
    pub choices: Vec<String>,
}

/// Something for a harness that is up.
#[derive(Debug, Clone, PartialEq)]
pub enum HarnessOrder {
    Send(Box<Sending>),
    Answer { call: CallId, answer: HarnessAnswer },
    Release,
    Interrupt { turn: TurnId },
    Stop,
}

impl Ended {
    /// As it was asked to.
    pub fn well() -> Self {
        Self { code: Some(0), why: None }
    }

    pub fn killed() -> Self {
        Self { code: None, why: None }
    }
}
