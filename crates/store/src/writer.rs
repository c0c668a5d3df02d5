//! The one thread that writes. Everything that waits goes in one transaction, one sync; then
//! whoever waits is told; then a little upkeep.

use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;

use crate::group::Group;
use crate::job::{Answer, Job};
use crate::limits::UPKEEP_STEPS_PER_GROUP;
use crate::memory::Memory;
use crate::queue::{Next, Queue};
use crate::receipt::Reply;
use crate::upkeep::Upkeep;
use crate::{Error, Result, Settings};

/// How the journal is doing.
#[derive(Debug, Clone, Default)]
pub struct Health {
    pub last_seq: u64,
    pub entries: usize,
    pub sessions: usize,
    /// Records in `set_aside`.
    pub set_aside: u64,
    /// Why the last transaction failed; none since one succeeded.
    pub write_error: Option<Error>,
    /// Why pruning stopped; it is tried again after the next transaction that succeeds.
    pub upkeep_error: Option<Error>,
}

pub(crate) struct Writer {
    connection: Connection,
    settings: Settings,
    memory: Memory,
    /// A transaction failed: what is remembered may be more than what is on disk.
    stale: bool,
    upkeep: Upkeep,
    tidying: Vec<Reply<()>>,
    queue: Arc<Queue>,
    health: Arc<Mutex<Health>>,
}

impl Writer {
    pub fn new(
        connection: Connection,
        memory: Memory,
        settings: Settings,
        queue: Arc<Queue>,
        health: Arc<Mutex<Health>>,
    ) -> Self {
        let upkeep = Upkeep::default();
        let (stale, tidying) = (false, Vec::new());
        let writer = Self { connection, settings, memory, stale, upkeep, tidying, queue, health };
        writer.report(|_| {});
        writer
    }

    /// Until the queue is closed and empty.
    pub fn run(mut self) {
        // Also when this thread panics: nobody may queue for a writer that is gone.
        let _abandon = Abandon(Arc::clone(&self.queue));
        loop {
            let has_chores = self.has_chores();
            if !has_chores {
                self.finish_tidying();
            }
            match self.queue.next(has_chores) {
                Next::Group(jobs) => {
                    self.handle(jobs);
                    for _ in 0..UPKEEP_STEPS_PER_GROUP {
                        self.do_chore();
                    }
                }
                Next::Spare => self.do_chore(),
                Next::End => break,
            }
        }
        self.finish_tidying();
    }

    fn handle(&mut self, jobs: Vec<Job>) {
        let outcome = self.write(&jobs);
        let error = outcome.as_ref().err().cloned();
        self.stale |= error.is_some();
        self.report(|health| {
            if error.is_none() {
                health.upkeep_error = None;
            }
            health.write_error = error;
        });
        match outcome {
            Ok(answers) => {
                for (job, answer) in jobs.into_iter().zip(answers) {
                    match job {
                        Job::Tidy(reply) => self.tidying.push(reply),
                        job @ (Job::Write(..) | Job::Snapshot { .. } | Job::SetAside(..)) => {
                            job.settle(Ok(answer));
                        }
                    }
                }
            }
            Err(error) => {
                for job in jobs {
                    job.settle(Err(error.clone()));
                }
            }
        }
    }

    /// All of them in one transaction, or none.
    fn write(&mut self, jobs: &[Job]) -> Result<Vec<Answer>> {
        self.refresh()?;
        let mut group = Group::begin(&mut self.connection, &mut self.memory)?;
        let answers = jobs.iter().map(|job| group.apply(job)).collect::<Result<_>>()?;
        group.commit()?;
        Ok(answers)
    }

    fn has_chores(&mut self) -> bool {
        !self.stale
            && self.health().upkeep_error.is_none()
            && self.upkeep.next(&self.memory, &self.settings).is_some()
    }

    fn do_chore(&mut self) {
        if self.stale || self.health().upkeep_error.is_some() {
            return;
        }
        let Some(chore) = self.upkeep.next(&self.memory, &self.settings) else { return };
        let outcome =
            self.upkeep.run(chore, &mut self.connection, &mut self.memory, &self.settings);
        self.stale |= outcome.is_err();
        self.report(|health| health.upkeep_error = outcome.err());
    }

    fn finish_tidying(&mut self) {
        let health = self.health();
        for reply in self.tidying.drain(..) {
            reply.answer(match health.upkeep_error.clone().or(health.write_error.clone()) {
                Some(error) => Err(error),
                None => Ok(()),
            });
        }
    }

    /// Reads what is remembered again after a transaction failed.
    fn refresh(&mut self) -> Result<()> {
        if self.stale {
            self.connection.pragma_update(None, "synchronous", "FULL")?;
            self.memory = Memory::read(&self.connection, &self.settings)?;
            self.stale = false;
        }
        Ok(())
    }

    fn health(&self) -> Health {
        self.health.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn report(&self, change: impl FnOnce(&mut Health)) {
        let mut health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut health);
        if !self.stale {
            health.last_seq = self.memory.last;
            health.entries = self.memory.tallies.entries();
            health.sessions = self.memory.tallies.sessions().len();
            health.set_aside = self.memory.set_aside;
        }
    }
}

struct Abandon(Arc<Queue>);

impl Drop for Abandon {
    fn drop(&mut self) {
        self.0.abandon();
    }
}
