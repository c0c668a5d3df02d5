//! Signs of life of the processes that carry sessions: whether they are stopped, and whether they
//! move.
//!
//! Not journaled: after a start they are looked at anew within seconds, and nothing is called
//! stalled before it was measured for as long as the operator has patience.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use qd_session::Session;
use qd_session::id::ProcessKey;
use qd_session::limits::STALLED_AFTER_MS;
use qd_session::moment::Timestamp;
use qd_session::monitor::Monitor;
use qd_session::operator::Vitals;

/// How often it is measured what moves.
pub const MOVES_EVERY: Duration = Duration::from_secs(10);

/// A process to look at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Watched {
    pub process: ProcessKey,
    pub works: bool,
}

/// What was seen of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vital {
    pub process: ProcessKey,
    pub is_stopped: bool,
    /// Something of it has moved since it was measured before, so long ago at least. `None` where
    /// that was not or could not be measured.
    pub moved: Option<bool>,
    pub at: Timestamp,
}

/// What was last seen of each process.
#[derive(Debug)]
pub struct VitalSigns {
    of: BTreeMap<ProcessKey, Known>,
    /// The operator's patience with work that shows no sign of life; none: for ever.
    pub stalled_after_ms: Option<u64>,
}

impl Default for VitalSigns {
    fn default() -> Self {
        Self { of: BTreeMap::new(), stalled_after_ms: Some(STALLED_AFTER_MS) }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Known {
    stopped_since: Option<Timestamp>,
    /// Since when it is measured whether anything moves, and when that was last done.
    measured: Option<(Timestamp, Timestamp)>,
    moved_at: Timestamp,
}

impl Known {
    fn take(self, vital: &Vital) -> Self {
        let Vital { process: _, is_stopped, moved, at } = *vital;
        let measured_from = at.minus_ms(MOVES_EVERY.as_millis() as u64);
        let begun = self.measured.map_or(measured_from, |(since, _)| since);
        let is_stale = self.measured.is_some_and(|(_, last)| at.ms_since(last) > MEASURED_FOR_MS);
        Self {
            stopped_since: is_stopped.then(|| self.stopped_since.unwrap_or(at)),
            measured: match moved {
                Some(_) => Some((if is_stale { measured_from } else { begun }, at)),
                None => self.measured.filter(|_| !is_stale),
            },
            moved_at: if moved == Some(true) { at } else { self.moved_at },
        }
    }
}

/// A process that was not measured for so long has to be measured anew.
const MEASURED_FOR_MS: u64 = 60_000;

impl VitalSigns {
    /// Takes in what was seen of every process that is looked at. Gives those of which something
    /// else is known now than before.
    pub fn take(&mut self, seen: &[Vital]) -> BTreeSet<ProcessKey> {
        let before = std::mem::take(&mut self.of);
        let mut changed = BTreeSet::new();
        for vital in seen {
            let known = before.get(&vital.process).copied().unwrap_or_default();
            let new = known.take(vital);
            let was = (known.stopped_since, known.measured.is_some());
            if was != (new.stopped_since, new.measured.is_some()) {
                changed.insert(vital.process.clone());
            }
            self.of.insert(vital.process.clone(), new);
        }
        changed
    }

    /// The clock was set back: all is measured anew.
    pub fn forget(&mut self) {
        self.of.clear();
    }

    /// What the processes of a session say together: one that goes on is enough.
    pub fn of(&self, session: &Session) -> Vitals {
        let monitor = session.monitor();
        if session.machine().is_some() {
            return Vitals::default();
        }
        let known = || monitor.carriers().map(|process| self.of.get(process));
        if known().next().is_none() {
            return Vitals::default();
        }
        let stopped = known().map(|known| known?.stopped_since);
        let silent = known().map(|known| {
            let Known { measured, moved_at, .. } = known?;
            measured.map(|(since, _)| since.max(*moved_at))
        });
        let latest = |all: Option<Vec<Timestamp>>| all.and_then(|all| all.into_iter().max());
        Vitals {
            stopped_since: latest(stopped.collect()),
            silent_since: latest(silent.collect()).map(|at| at.max(last_word(monitor))),
        }
    }
}

fn last_word(monitor: &Monitor) -> Timestamp {
    monitor.awake_since(monitor.last_word())
}
