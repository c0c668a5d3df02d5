//! The one thread that writes. Everything that waits goes in one transaction, one sync; then
//! whoever waits is told; then a little upkeep.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::group::Group;
use crate::head::{Durability, Head};
use crate::job::{Answer, Job};
use crate::limits::{HEAD_EVERY, UPKEEP_STEPS_PER_GROUP};
use crate::lock::Lock;
use crate::memory::Memory;
use crate::place::{self, Place};
use crate::queue::{Next, Queue};
use crate::read::Reader;
use crate::receipt::Reply;
use crate::upkeep::Upkeep;
use crate::{Error, Result, Settings, schema};

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
    /// How often the journal was taken away and written anew.
    pub written_anew: u64,
    /// Why pruning stopped; it is tried again after the next transaction that succeeds.
    pub upkeep_error: Option<Error>,
}

pub(crate) struct Writer {
    // Before the connection: it has to close first.
    reader: Arc<Reader>,
    /// None between a journal that was taken away and the one that was written anew.
    connection: Option<Connection>,
    place: Place,
    /// Where the lock was taken away, too.
    lock: Option<Lock>,
    /// What was last written beside the journal, and when.
    head: (Head, Instant),
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
        path: &Path,
        connection: Connection,
        memory: Memory,
        settings: Settings,
        (queue, health, reader): (Arc<Queue>, Arc<Mutex<Health>>, Arc<Reader>),
    ) -> Self {
        let writer = Self {
            reader,
            connection: Some(connection),
            place: Place::of(path),
            lock: None,
            head: (memory.head(), Instant::now()),
            settings,
            memory,
            stale: false,
            upkeep: Upkeep::default(),
            tidying: Vec::new(),
            queue,
            health,
        };
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
        self.write_head(Duration::ZERO);
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
                        job @ (Job::Write(..)
                        | Job::Snapshot { .. }
                        | Job::SetAside(..)
                        | Job::Check(_)) => job.settle(Ok(answer)),
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
        self.see_that_it_stands()?;
        if jobs.iter().all(|job| matches!(job, Job::Check(_))) {
            return Ok(jobs.iter().map(|_| Answer::Done).collect());
        }
        self.refresh()?;
        let connection = self.connection.as_mut().expect("it was just seen to");
        let mut group = Group::begin(connection, &mut self.memory)?;
        let answers = jobs.iter().map(|job| group.apply(job)).collect::<Result<_>>()?;
        group.commit()?;
        self.write_head(HEAD_EVERY);
        Ok(answers)
    }

    /// Writes how far the journal has come beside it: with each record at once, else now and then.
    /// Where that fails the old one stays, which is behind and not wrong.
    fn write_head(&mut self, every: Duration) {
        let (head, (written, at)) = (self.memory.head(), self.head);
        let durability = match head.last == written.last {
            true if head == written || at.elapsed() < every => return,
            true => Durability::Cheap,
            false => Durability::Durable,
        };
        if !self.stale && head.write(self.place.path(), durability).is_ok() {
            self.head = (head, Instant::now());
        }
    }

    /// A journal that was deleted, moved or replaced is written anew from the open one.
    fn see_that_it_stands(&mut self) -> Result<()> {
        if self.connection.is_some() && self.place.stands() {
            return Ok(());
        }
        self.write_anew().map_err(|error| match error.is_temporary() {
            true => error,
            false => Error::Away(error.to_string()),
        })?;
        self.report(|health| health.written_anew += 1);
        Ok(())
    }

    fn write_anew(&mut self) -> Result<()> {
        if let Some(connection) = &self.connection {
            self.place.write_anew(connection)?;
            // Who closes a journal last removes its log by name: before the new one is there.
            self.reader.replace(Connection::open_in_memory()?);
            self.connection = None;
            self.place.clear()?;
        }
        place::take_place(self.place.path())?;
        let path = self.place.path().to_owned();
        if !self.place.is_locked() {
            self.lock = Some(Lock::take(&path)?);
        }
        let (connection, _) = schema::connect(&path, &self.settings)?;
        self.memory = Memory::read(&connection, &self.settings)?;
        self.stale = false;
        self.reader.replace(schema::connect_reader(&path)?);
        self.connection = Some(connection);
        self.place = Place::of(&path);
        Ok(())
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
        let Some(connection) = &mut self.connection else { return };
        let outcome = self.upkeep.run(chore, connection, &mut self.memory, &self.settings);
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
            let connection = self.connection.as_ref().expect("it was just seen to");
            connection.pragma_update(None, "synchronous", "FULL")?;
            self.memory = Memory::read(connection, &self.settings)?;
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
