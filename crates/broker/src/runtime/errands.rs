//! Decisions on their way to agents, and those who want to know what becomes of them.

use std::collections::BTreeMap;
use std::future::pending;

use qd_session::decision::Standing;
use qd_session::id::{DecisionId, ProcessKey, Way};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::sync::oneshot;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;

use super::Runtime;
use super::handle;
use super::waiting::ReplyOutcome;
use crate::desk::{Carried, Declined, Errand, Taken, Task};
use crate::limits::{ENDING_WAIT, ERRANDS_MAX};
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
        if self.under_way.len() >= ERRANDS_MAX {
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
            Task::Answer { .. }
            | Task::Prompt { .. }
            | Task::Interrupt { .. }
            | Task::Yolo { .. } => {
                self.errands.carry(decision, way, async { failed("its server is not in reach") });
            }
        }
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
