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
    seq: u32,
    source: Source,
    sightings: Vec<Sighting>,
}

impl Outbox {
    pub fn new(session: Arc<str>, at: Timestamp, seq: u32, source: Source) -> Self {
        Self { session, at, seq, source, sightings: Vec::new() }
    }

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

    /// Something that happened at another time than the signal's own.
    pub fn tell_at(&mut self, at: Timestamp, fact: Fact) {
        let event = AgentEvent { seq: self.seq, ..AgentEvent::main(at, self.source, fact) };
        self.sightings.push(Sighting { session: self.session.clone(), event });
    }

    pub fn into_sightings(self) -> Vec<Sighting> {
        self.sightings
    }
}
