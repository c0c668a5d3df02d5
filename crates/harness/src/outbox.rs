//! The sightings that one signal or timer gives, all of one session and stamped alike.

use std::sync::Arc;

use qd_session::id::AgentId;
use qd_session::moment::{Source, Timestamp};
use qd_session::monitor::{AgentEvent, Fact};

use crate::signal::Sighting;

#[derive(Debug)]
pub struct Outbox {
    session: Arc<str>,
    at: Timestamp,
    arrival: Timestamp,
    seq: u32,
    source: Source,
    sightings: Vec<Sighting>,
}

impl Outbox {
    pub fn new(session: Arc<str>, at: Timestamp, seq: u32, source: Source) -> Self {
        Self { session, at, arrival: at, seq, source, sightings: Vec::new() }
    }

    /// The same signal, telling of another time than its own.
    pub fn at_time(&self, at: Timestamp) -> Self {
        Self { session: self.session.clone(), at, sightings: Vec::new(), ..*self }
    }

    /// When the signal reached us.
    pub fn arrival(&self) -> Timestamp {
        self.arrival
    }

    /// When what it tells of happened.
    pub fn at(&self) -> Timestamp {
        self.at
    }

    pub fn source(&self) -> Source {
        self.source
    }

    /// Something that happened to the main agent when the signal says.
    pub fn tell(&mut self, fact: Fact) {
        self.tell_of(AgentId::MAIN, fact);
    }

    pub fn tell_of(&mut self, agent: AgentId, fact: Fact) {
        let (at, seq, source) = (self.at, self.seq, self.source);
        let event = AgentEvent { at, seq, source, agent, fact };
        self.sightings.push(Sighting { session: self.session.clone(), event });
    }

    /// Takes in what another one tells.
    pub fn append(&mut self, other: Self) {
        self.sightings.extend(other.sightings);
    }

    pub fn into_sightings(self) -> Vec<Sighting> {
        self.sightings
    }
}
