//! The writer's bounded queue. A full one holds the sender back; nothing is ever dropped.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::job::Job;
use crate::limits::{
    GROUP_BYTES_MAX, GROUP_ENTRIES_MAX, QUEUE_BYTES_MAX, QUEUE_LEN_MAX, QUEUE_WAIT_MAX,
};
use crate::{Error, Result};

#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    came: Condvar,
    went: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    bytes: usize,
    closed: bool,
}

/// What the writer does next.
#[derive(Debug)]
pub(crate) enum Next {
    Group(Vec<Job>),
    /// Nothing waits, and there was something else to do.
    Spare,
    /// Closed, and everything that was queued has been handed out.
    End,
}

/// Why a job did not get in.
#[derive(Debug)]
pub(crate) enum NotTaken {
    Full,
    Closed,
}

impl Queue {
    /// Waits while the queue is full, but not for ever.
    pub fn push(&self, job: Job) -> Result<()> {
        let deadline = Instant::now() + QUEUE_WAIT_MAX;
        let mut waiting = self.lock();
        while waiting.is_full_for(&job) {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Error::Stalled);
            }
            let woken = self.went.wait_timeout(waiting, left);
            waiting = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        if waiting.closed {
            return Err(Error::Closed);
        }
        waiting.add(job);
        self.came.notify_one();
        Ok(())
    }

    /// Takes the job only if there is room at once.
    pub fn try_push(&self, job: Job) -> std::result::Result<(), NotTaken> {
        let mut waiting = self.lock();
        if waiting.closed {
            return Err(NotTaken::Closed);
        }
        if waiting.is_full_for(&job) {
            return Err(NotTaken::Full);
        }
        waiting.add(job);
        self.came.notify_one();
        Ok(())
    }

    /// The next group: everything that waits, as far as it fits in one transaction.
    pub fn next(&self, something_else_to_do: bool) -> Next {
        let mut waiting = self.lock();
        while waiting.jobs.is_empty() {
            if waiting.closed {
                return Next::End;
            }
            if something_else_to_do {
                return Next::Spare;
            }
            waiting = self.came.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        let group = waiting.group();
        self.went.notify_all();
        Next::Group(group)
    }

    /// No more jobs; what waits is still done.
    pub fn close(&self) {
        self.lock().closed = true;
        self.came.notify_all();
        self.went.notify_all();
    }

    /// No more jobs, and what waits is not done: the replies say so as they are dropped.
    pub fn abandon(&self) {
        self.close();
        let jobs = std::mem::take(&mut self.lock().jobs);
        drop(jobs);
    }

    pub fn len(&self) -> usize {
        self.lock().jobs.len()
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn is_full_for(&self, job: &Job) -> bool {
        !self.closed
            && !self.jobs.is_empty()
            && (self.jobs.len() >= QUEUE_LEN_MAX || self.bytes + job.bytes() > QUEUE_BYTES_MAX)
    }

    fn add(&mut self, job: Job) {
        self.bytes += job.bytes();
        self.jobs.push_back(job);
    }

    fn group(&mut self) -> Vec<Job> {
        let (mut group, mut entries, mut bytes) = (Vec::new(), 0, 0);
        while let Some(job) = self.jobs.front() {
            entries += job.entries();
            bytes += job.bytes();
            let too_long = entries > GROUP_ENTRIES_MAX || bytes > GROUP_BYTES_MAX;
            if too_long && !group.is_empty() {
                break;
            }
            self.bytes -= job.bytes();
            group.extend(self.jobs.pop_front());
        }
        group
    }
}
