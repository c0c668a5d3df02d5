//! Liveness: which processes carried the session, and whether one still does.
//!
//! By process, never by session id alone: the same session may be open in a terminal and be
//! resumed by a second process whose end says nothing about the first.

use serde::{Deserialize, Serialize};

use super::latest::raise;
use crate::id::ProcessKey;
use crate::limits::PROCESSES_MAX;
use crate::moment::Stamp;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Liveness {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    processes: Vec<Process>,
    /// A start or an end that named no process.
    #[serde(skip_serializing_if = "never")]
    started: Stamp,
    #[serde(skip_serializing_if = "never")]
    ended: Stamp,
    /// Somebody looked and found no process.
    #[serde(skip_serializing_if = "never")]
    missing: Stamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Process {
    key: ProcessKey,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first_seen: Option<Stamp>,
    #[serde(default, skip_serializing_if = "never")]
    seen: Stamp,
    #[serde(default, skip_serializing_if = "never")]
    gone: Stamp,
}

fn never(stamp: &Stamp) -> bool {
    !stamp.happened()
}

/// What is known about the process behind a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// A process is known and has not been seen to end.
    Alive,
    /// The session ended, or its last process did.
    Ended { at: Stamp },
    /// Looked for, and not found.
    Missing { at: Stamp },
    /// Nothing can be said: a container, another machine, or nobody looked.
    Unobserved,
}

impl Process {
    fn alive_at(&self, at: Stamp) -> bool {
        let begun = self.first_seen.is_some_and(|first| first <= at);
        begun && (self.gone < self.seen || self.gone > at)
    }
}

impl Liveness {
    /// The session said hello, with or without naming its process.
    pub(super) fn started(&mut self, stamp: Stamp, process: Option<&ProcessKey>) {
        raise(&mut self.started, stamp);
        if let Some(key) = process {
            self.seen(stamp, key);
        }
    }

    pub(super) fn seen(&mut self, stamp: Stamp, process: &ProcessKey) {
        let process = self.process(process);
        raise(&mut process.seen, stamp);
        process.first_seen = Some(process.first_seen.map_or(stamp, |first| first.min(stamp)));
    }

    pub(super) fn gone(&mut self, stamp: Stamp, process: Option<&ProcessKey>) {
        match process {
            Some(key) => raise(&mut self.process(key).gone, stamp),
            None => raise(&mut self.ended, stamp),
        }
    }

    pub(super) fn missing(&mut self, stamp: Stamp) {
        raise(&mut self.missing, stamp);
    }

    pub(super) fn set_back(&mut self, by_ms: u64) {
        let Self { processes, started, ended, missing } = self;
        for Process { key: _, first_seen, seen, gone } in processes {
            first_seen.iter_mut().chain([seen, gone]).for_each(|stamp| stamp.set_back(by_ms));
        }
        [started, ended, missing].into_iter().for_each(|stamp| stamp.set_back(by_ms));
    }

    fn process(&mut self, key: &ProcessKey) -> &mut Process {
        if let Some(at) = self.processes.iter().position(|process| process.key == *key) {
            return &mut self.processes[at];
        }
        if self.processes.len() == PROCESSES_MAX {
            let oldest = (0..PROCESSES_MAX)
                .min_by_key(|at| self.processes[*at].seen.max(self.processes[*at].gone))
                .expect("the list is full");
            self.processes.remove(oldest);
        }
        let at = self.processes.partition_point(|process| process.key < *key);
        let new =
            Process { key: key.clone(), first_seen: None, seen: Stamp::NEVER, gone: Stamp::NEVER };
        self.processes.insert(at, new);
        &mut self.processes[at]
    }

    /// The processes that were seen to carry it and not to end.
    pub(super) fn carriers(&self) -> impl Iterator<Item = &ProcessKey> {
        self.processes.iter().filter(|process| process.seen > process.gone).map(|known| &known.key)
    }

    /// The processes that carry it or have carried it, as far back as they are kept.
    pub(super) fn processes(&self) -> impl Iterator<Item = &ProcessKey> {
        self.processes.iter().map(|known| &known.key)
    }

    /// The last time the session said hello.
    pub(super) fn last_start(&self) -> Stamp {
        self.started
    }

    /// The last time nothing was left of the session: what was open before is over with it, also
    /// when the session is resumed.
    pub(super) fn last_end(&self) -> Stamp {
        let ends = self.processes.iter().map(|process| process.gone);
        ends.filter(|end| end.happened() && !self.processes.iter().any(|p| p.alive_at(*end)))
            .chain([self.ended])
            .max()
            .unwrap_or_default()
    }

    /// `worked` is the last sign of work: an agent that works after an end was resumed.
    pub(super) fn life(&self, worked: Stamp) -> Life {
        let alive = self.processes.iter().any(|process| process.seen > process.gone);
        let gone = self.processes.iter().map(|process| process.gone).max().unwrap_or_default();
        let ended = gone.max(self.ended);
        // An end that named no process ends the session even where a process was named before:
        // a handler that knows better names it.
        if ended.happened() && ended >= worked.max(self.started) && (!alive || self.ended == ended)
        {
            return Life::Ended { at: ended };
        }
        if alive {
            return Life::Alive;
        }
        if self.missing > worked.max(self.started) {
            return Life::Missing { at: self.missing };
        }
        Life::Unobserved
    }
}
