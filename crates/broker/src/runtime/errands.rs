//! Decisions on their way to agents, and those who want to know what becomes of them.

use std::collections::BTreeMap;
use std::future::pending;

use qd_harness::Harness;
use qd_session::decision::Standing;
use qd_session::id::{AgentId, DecisionId, ProcessKey, SessionId, Way};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::sync::oneshot;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;

use super::Runtime;
use super::handle;
use super::waiting::ReplyOutcome;
use crate::desk::{Carried, Declined, Errand, Taken, Task};
use crate::limits::{CARRIED_MAX, ENDING_WAIT};
use crate::sources::codex_daemon::errand as codex;
use crate::sources::errand::{ErrandOutcome, ErrandReceipt};
use crate::sources::opencode_servers::errand as opencode;
use crate::sources::processes::Process;

#[derive(Debug, Default)]
pub struct Errands {
    under_way: JoinSet<Done>,
    callers: BTreeMap<DecisionId, Vec<Caller>>,
}

type Caller = oneshot::Sender<Result<Taken, Declined>>;

/// What a carrier brought back.
#[derive(Debug)]
pub struct Done {
    pub decision: DecisionId,
    pub way: Way,
    pub carried: Carried,
}

impl Errands {
    /// Answers a caller now, or once it is known what became of the decision.
    pub fn tell_later(&mut self, taken: Result<Taken, Declined>, caller: Caller) {
        match taken {
            Ok(Taken { decision, standing: Standing::InFlight | Standing::Ending }) => {
                self.callers.entry(decision).or_default().push(caller);
            }
            settled @ (Ok(_) | Err(_)) => handle::answer(caller, settled),
        }
    }

    pub fn settle(&mut self, taken: &Taken) {
        for caller in self.callers.remove(&taken.decision).unwrap_or_default() {
            handle::answer(caller, Ok(taken.clone()));
        }
    }

    /// The next one that is done; never, while none is under way. May be dropped and asked again.
    pub async fn next(&mut self) -> Done {
        loop {
            match self.under_way.join_next().await {
                Some(Ok(done)) => return done,
                // A carrier that panicked or was cancelled brings nothing back; its decision stays
                // as it is until its way comes back for it.
                Some(Err(_)) => {}
                None => return pending().await,
            }
        }
    }

    fn carry(
        &mut self,
        decision: DecisionId,
        way: Way,
        errand: impl Future<Output = Carried> + Send + 'static,
    ) {
        if self.under_way.len() >= CARRIED_MAX {
            let carried = Carried::Failed { why: "too much is on its way already".to_owned() };
            self.under_way.spawn(async { Done { decision, way, carried } });
            return;
        }
        self.under_way.spawn(async move { Done { decision, way, carried: errand.await } });
    }
}

impl Runtime {
    /// Its record is on disk: now it may have an effect.
    pub(super) fn carry(&mut self, errand: Errand) {
        let Errand { decision, task } = errand;
        let way = task.way();
        match task {
            Task::Reply { frame, reply } => {
                let receipt = self.waiting.answer(frame, reply);
                self.errands.carry(decision, way, async {
                    match receipt.outcome().await {
                        ReplyOutcome::Delivered => Carried::Delivered,
                        ReplyOutcome::Failed => failed("the hook that asked is gone"),
                        ReplyOutcome::Lost => Carried::Lost,
                    }
                });
            }
            Task::End { process } => self.errands.carry(decision, way, end(process)),
            Task::Focus { pane } => self.errands.carry(decision, way, async move {
                match spawn_blocking(move || pane.select()).await {
                    Ok(true) => Carried::Delivered,
                    Ok(false) | Err(_) => failed("its tmux pane is gone"),
                }
            }),
            Task::Answer { session, request, agent, call, answer, .. } => {
                let receipt = self.to_server(&session, &agent, |harness| match harness {
                    Harness::Codex => {
                        let decision = answer.clone();
                        call.clone()
                            .map(|call| ServerTask::Codex(codex::Task::Answer { call, decision }))
                    }
                    Harness::Opencode | Harness::KiloCode => {
                        let (request, decision) = (request.to_string(), answer.clone());
                        Some(ServerTask::Opencode(opencode::Task::Answer { request, decision }))
                    }
                    Harness::ClaudeCode | Harness::GeminiCli | Harness::Cline | Harness::Acp => {
                        None
                    }
                });
                self.errands.carry(decision, way, on_server(receipt));
            }
            Task::Prompt { session, text, .. } => {
                let receipt = self.to_server(&session, &AgentId::MAIN, |harness| {
                    let text = text.clone();
                    ServerTask::of(
                        harness,
                        codex::Task::Prompt { text: text.clone() },
                        opencode::Task::Prompt { text },
                    )
                });
                self.errands.carry(decision, way, on_server(receipt));
            }
            Task::Interrupt { session, .. } => {
                let receipt = self.to_server(&session, &AgentId::MAIN, |harness| {
                    ServerTask::of(harness, codex::Task::Interrupt, opencode::Task::Interrupt)
                });
                self.errands.carry(decision, way, on_server(receipt));
            }
            Task::Yolo { session, on, .. } => {
                let receipt = self.to_server(&session, &AgentId::MAIN, |harness| match harness {
                    Harness::Codex if on => Some(ServerTask::Codex(codex::Task::Yolo)),
                    Harness::Codex => {
                        Some(ServerTask::Codex(codex::Task::EndYolo { before: None }))
                    }
                    Harness::ClaudeCode
                    | Harness::GeminiCli
                    | Harness::KiloCode
                    | Harness::Cline
                    | Harness::Opencode
                    | Harness::Acp => None,
                });
                self.errands.carry(decision, way, on_server(receipt));
            }
        }
    }

    /// Sends somebody to the server that a session lives on, if there is one.
    fn to_server(
        &self,
        session: &SessionId,
        agent: &AgentId,
        task: impl FnOnce(Harness) -> Option<ServerTask>,
    ) -> Option<ErrandReceipt> {
        let (harness, vendor_id) = self.broker.named_on_server(session)?;
        // A subagent is a session of its own there.
        let session = match agent.is_main() {
            true => vendor_id.to_string(),
            false => agent.as_str().to_owned(),
        };
        Some(match task(harness)? {
            ServerTask::Codex(what) => {
                self.codex_daemon.carry(codex::Errand { thread: session, what })
            }
            ServerTask::Opencode(what) => {
                self.opencode_servers.carry(opencode::Errand { session, what })
            }
        })
    }
}

enum ServerTask {
    Codex(codex::Task),
    Opencode(opencode::Task),
}

impl ServerTask {
    fn of(harness: Harness, codex: codex::Task, opencode: opencode::Task) -> Option<Self> {
        match harness {
            Harness::Codex => Some(Self::Codex(codex)),
            Harness::Opencode | Harness::KiloCode => Some(Self::Opencode(opencode)),
            Harness::ClaudeCode | Harness::GeminiCli | Harness::Cline | Harness::Acp => None,
        }
    }
}

async fn on_server(receipt: Option<ErrandReceipt>) -> Carried {
    let Some(receipt) = receipt else { return failed("its server is not in reach") };
    match receipt.await {
        ErrandOutcome::Done { .. } => Carried::Delivered,
        ErrandOutcome::Refused { why } | ErrandOutcome::Unreachable { why } => {
            Carried::Failed { why }
        }
        ErrandOutcome::Lost => Carried::Lost,
    }
}

/// Asks a process to end, and waits until it has.
async fn end(key: ProcessKey) -> Carried {
    let Some(process) = Process::named(key.as_str()) else {
        return failed("its process has no number");
    };
    let asked = || {
        let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw)?;
        let descriptor = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        // It is still the same one, now that it cannot become another.
        process.is_alive().then_some(())?;
        pidfd_send_signal(&descriptor, Signal::TERM).ok()
    };
    if asked().is_none() {
        return failed("its process is gone");
    }
    let ended = timeout(ENDING_WAIT, async {
        while process.is_alive() {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    });
    match ended.await {
        Ok(()) => Carried::Delivered,
        Err(_) => failed("it was asked to end and did not"),
    }
}

fn failed(why: &str) -> Carried {
    Carried::Failed { why: why.to_owned() }
}
