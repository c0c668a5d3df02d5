//! Decisions on their way to agents, and those who want to know what becomes of them.

use std::collections::{BTreeMap, HashMap};
use std::future::pending;
use std::time::Duration;

use qd_broker::desk::{Carried, Declined, Errand, Taken, Task};
use qd_harness::Harness;
use qd_harness::codex::plan_turn;
use qd_hook_wire::FrameId;
use qd_host::processes::Process;
use qd_session::decision::Standing;
use qd_session::id::{AgentId, DecisionId, ProcessKey, SessionId, Way};
use qd_sources::codex_daemon::errand as codex;
use qd_sources::errand::{ErrandOutcome, ErrandReceipt};
use qd_sources::opencode_servers::errand as opencode;
use qd_sources::terminal::{Fronted, bring_to_front};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::sync::oneshot;
use tokio::task::{Id, JoinSet, spawn_blocking};
use tokio::time::timeout;

use super::waiting::ReplyOutcome;
use super::{Runtime, handle};

/// Errands that are carried at once. Each is a person's decision or a rule's; one that finds no
/// room has not arrived, and says so.
const CARRIED_MAX: usize = 256;

/// How long a process may take to end after it was asked to.
const ENDING_WAIT: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub struct Errands {
    under_way: JoinSet<Carried>,
    /// What each of them carries.
    cargo: HashMap<Id, Cargo>,
    callers: BTreeMap<DecisionId, Vec<Caller>>,
}

type Caller = oneshot::Sender<Result<Taken, Declined>>;

/// What is carried, and by which way.
#[derive(Debug)]
pub struct Cargo {
    pub decision: DecisionId,
    pub way: Way,
    /// The forwarder that it is for.
    pub frame: Option<FrameId>,
}

/// What a carrier brought back.
#[derive(Debug)]
pub struct Done {
    pub cargo: Cargo,
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
            let (id, carried) = match self.under_way.join_next_with_id().await {
                Some(Ok((id, carried))) => (id, carried),
                // One that panicked may have sent something before.
                Some(Err(error)) => (error.id(), Carried::Lost),
                None => return pending().await,
            };
            if let Some(cargo) = self.cargo.remove(&id) {
                return Done { cargo, carried };
            }
        }
    }

    fn carry(&mut self, cargo: Cargo, errand: impl Future<Output = Carried> + Send + 'static) {
        // A reply is out already, and only so many forwarders wait.
        let is_full = self.under_way.len() >= CARRIED_MAX && cargo.frame.is_none();
        let carrier = match is_full {
            true => self.under_way.spawn(async { failed("too much is on its way already") }),
            false => self.under_way.spawn(errand),
        };
        self.cargo.insert(carrier.id(), cargo);
    }

    /// One whose record was not written is not carried.
    pub fn give_back(&mut self, errand: Errand) {
        let Errand { decision, task } = errand;
        let cargo = Cargo { decision, way: task.way(), frame: None };
        self.carry(cargo, async { failed("it cannot be put on record") });
    }
}

impl Runtime {
    /// Its record is on disk: now it may have an effect.
    pub(super) fn carry(&mut self, errand: Errand) {
        let Errand { decision, task } = errand;
        let cargo = Cargo { decision, way: task.way(), frame: None };
        match task {
            Task::Reply { frame, reply } => {
                let receipt = self.waiting.answer(frame, reply);
                let cargo = Cargo { frame: Some(frame), ..cargo };
                self.errands.carry(cargo, async {
                    match receipt.outcome().await {
                        ReplyOutcome::Delivered => Carried::Delivered,
                        ReplyOutcome::Failed => failed("the hook that asked is gone"),
                        ReplyOutcome::Lost => Carried::Lost,
                    }
                });
            }
            Task::GoOn { session } => {
                let carried = self.go_on(&session);
                self.errands.carry(cargo, async { carried });
            }
            Task::Keep => self.errands.carry(cargo, async { Carried::Delivered }),
            // The broker hands these over itself.
            Task::Drive { .. } => {
                self.errands.carry(cargo, async { failed("it is not driven from here") });
            }
            Task::End { process } => self.errands.carry(cargo, end(process)),
            Task::Focus { pane } => self.errands.carry(cargo, async move {
                match spawn_blocking(move || bring_to_front(&pane)).await {
                    Ok(Fronted::Shown) => Carried::Delivered,
                    Ok(Fronted::Unattached) => {
                        failed("no terminal is attached to its tmux; it is in front there now")
                    }
                    Ok(Fronted::Gone) | Err(_) => failed("its tmux pane is gone"),
                }
            }),
            Task::Answer { session, request, agent, call, answer, by, .. } => {
                let receipt = self.to_server(&session, &agent, |harness| match harness {
                    Harness::Codex => {
                        let (decision, turn) = (answer.clone(), plan_turn(&request));
                        let what = match (call.clone(), turn.map(str::to_owned)) {
                            (Some(call), _) => Some(codex::Task::Answer { call, decision, by }),
                            (None, Some(turn)) => Some(codex::Task::JudgePlan { turn, decision }),
                            (None, None) => None,
                        };
                        what.map(ServerTask::Codex)
                    }
                    Harness::Opencode | Harness::KiloCode => {
                        let (request, decision) = (request.to_string(), answer.clone());
                        Some(ServerTask::Opencode(opencode::Task::Answer { request, decision }))
                    }
                    Harness::ClaudeCode
                    | Harness::GeminiCli
                    | Harness::Cline
                    | Harness::Acp
                    | Harness::Native => None,
                });
                self.errands.carry(cargo, on_server(receipt));
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
                self.errands.carry(cargo, on_server(receipt));
            }
            Task::Interrupt { session, .. } => {
                let receipt = self.to_server(&session, &AgentId::MAIN, |harness| {
                    ServerTask::of(harness, codex::Task::Interrupt, opencode::Task::Interrupt)
                });
                self.errands.carry(cargo, on_server(receipt));
            }
            Task::Yolo { session, .. } => {
                let receipt = self.to_codex(&session, codex::Task::Yolo);
                self.errands.carry(cargo, async {
                    match settled(receipt).await {
                        Ok(before @ Some(_)) => Carried::Switched { before },
                        // It was so already: what is remembered still holds.
                        Ok(None) => Carried::Delivered,
                        Err(carried) => carried,
                    }
                });
            }
            Task::EndYolo { session, before, expecting, .. } => {
                let receipt = self.to_codex(&session, codex::Task::EndYolo { before, expecting });
                self.errands.carry(cargo, async {
                    match settled(receipt).await {
                        Ok(_) => Carried::Switched { before: None },
                        Err(carried) => carried,
                    }
                });
            }
        }
    }

    /// Lets the recording go on that a session is played from.
    fn go_on(&self, session: &SessionId) -> Carried {
        let told = self.recordings.as_ref().zip(self.broker.vendor_id(session).cloned());
        match told.map(|(recordings, name)| recordings.send(name)) {
            Some(Ok(_)) => Carried::Delivered,
            Some(Err(_)) | None => failed("the recording has ended"),
        }
    }

    /// Has Codex's daemon asked what a thread waits for. It tells so as it tells the rest.
    pub(super) fn look_into(&mut self, session: &SessionId, agent: &AgentId) {
        if let Some((Harness::Codex, vendor_id)) = self.broker.named_on_server(session) {
            self.codex_daemons.look_into(name_on_server(&vendor_id, agent));
        }
    }

    /// Of all clients' servers only Codex's has a switch of its own.
    fn to_codex(&self, session: &SessionId, task: codex::Task) -> Option<ErrandReceipt> {
        self.to_server(session, &AgentId::MAIN, |harness| match harness {
            Harness::Codex => Some(ServerTask::Codex(task)),
            Harness::ClaudeCode
            | Harness::GeminiCli
            | Harness::KiloCode
            | Harness::Cline
            | Harness::Opencode
            | Harness::Acp
            | Harness::Native => None,
        })
    }

    /// Sends somebody to the server that a session lives on, if there is one.
    fn to_server(
        &self,
        session: &SessionId,
        agent: &AgentId,
        task: impl FnOnce(Harness) -> Option<ServerTask>,
    ) -> Option<ErrandReceipt> {
        let (harness, vendor_id) = self.broker.named_on_server(session)?;
        let session = name_on_server(&vendor_id, agent);
        Some(match task(harness)? {
            ServerTask::Codex(what) => {
                self.codex_daemons.carry(codex::Errand { thread: session, what })
            }
            ServerTask::Opencode(what) => {
                self.opencode_servers.carry(opencode::Errand { session, what })
            }
        })
    }
}

/// A subagent is a session of its own there.
fn name_on_server(vendor_id: &str, agent: &AgentId) -> String {
    match agent.is_main() {
        true => vendor_id.to_owned(),
        false => agent.as_str().to_owned(),
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
            Harness::ClaudeCode
            | Harness::GeminiCli
            | Harness::Cline
            | Harness::Acp
            | Harness::Native => None,
        }
    }
}

async fn on_server(receipt: Option<ErrandReceipt>) -> Carried {
    match settled(receipt).await {
        Ok(_) => Carried::Delivered,
        Err(carried) => carried,
    }
}

/// What the server said when it was done, or what became of the errand instead.
async fn settled(receipt: Option<ErrandReceipt>) -> Result<Option<String>, Carried> {
    let Some(receipt) = receipt else { return Err(failed("its server is not in reach")) };
    match receipt.await {
        ErrandOutcome::Done { detail } => Ok(detail),
        ErrandOutcome::Refused { why } | ErrandOutcome::Unreachable { why } => {
            Err(Carried::Failed { why })
        }
        ErrandOutcome::Lost => Err(Carried::Lost),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_carrier_that_breaks_down_leaves_its_decision_in_doubt_and_nobody_waiting() {
        let mut errands = Errands::default();
        let (caller, told) = oneshot::channel();
        let decision = DecisionId::new("d");
        let taken = Taken { decision: decision.clone(), standing: Standing::InFlight };
        errands.tell_later(Ok(taken), caller);
        let cargo = Cargo { decision: decision.clone(), way: Way::new("codex"), frame: None };
        errands.carry(cargo, async { panic!("broken down") });
        let done = errands.next().await;
        assert_eq!((&done.cargo.decision, &done.carried), (&decision, &Carried::Lost));
        let unsettled = Taken { decision, standing: Standing::Unsettled };
        errands.settle(&unsettled);
        assert_eq!(told.await.expect("told"), Ok(unsettled));
    }
}
