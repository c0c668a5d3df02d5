//! What is known of driven sessions besides their journal: gone with the process, and not missed.

use std::collections::{BTreeMap, BTreeSet};

use qd_harness::native::StreamEvents;
use qd_session::id::{ProcessKey, SessionId};
use qd_session::policy::Tightening;
use qd_session::seed::Seed;

use super::alarms::Alarms;
use super::job::Work;
use crate::desk::Errand;

#[derive(Debug, Default)]
pub struct Drives {
    pub sessions: BTreeMap<SessionId, Drive>,
    pub alarms: Alarms,
    /// Decisions for machines, which take effect at once.
    pub errands: Vec<Errand>,
    sown: u64,
}

#[derive(Debug, Default)]
pub struct Drive {
    /// What the repository forbids, as it was last looked at.
    pub tightening: Option<Tightening>,
    /// Jobs that wait for somebody who looks what the repository forbids now.
    pub held: Vec<Work>,
    /// Calls that nobody was asked about and nobody watched.
    pub unwatched: u32,
    /// An agent with its own tools has begun a call since it was last told something.
    pub has_acted: bool,
    /// Whatever these processes carry is this session.
    pub processes: BTreeSet<ProcessKey>,
    /// Reports of old turns, ended runs and forgotten timers.
    pub late: u64,
    /// The answer that is being given, as it is shown.
    pub stream: Option<StreamEvents>,
}

impl Drives {
    /// Where new ids come from: one random number for each run of the program.
    pub fn sow(&mut self, seed: Seed) {
        self.sown = seed.0;
    }

    /// Fresh randomness for one event.
    pub fn seed(&mut self) -> Seed {
        // SplitMix64's step; `Seed` mixes it when it spells an id.
        self.sown = self.sown.wrapping_add(0x9e37_79b9_7f4a_7c15);
        Seed(self.sown)
    }

    /// The session that a process of ours carries.
    pub fn carried_by(&self, process: &ProcessKey) -> Option<&SessionId> {
        let mut sessions = self.sessions.iter();
        sessions.find(|(_, drive)| drive.processes.contains(process)).map(|(id, _)| id)
    }

    pub fn forget(&mut self, session: &SessionId) {
        self.sessions.remove(session);
        self.alarms.forget(session);
    }
}
