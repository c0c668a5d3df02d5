//! Notes: the events one signal becomes, all of one session and, if not said otherwise, one time.

use std::sync::Arc;

use qd_session::id::{AgentId, RequestId};
use qd_session::moment::{Source, Timestamp};
use qd_session::monitor::{AgentEvent, Fact};

use crate::signal::{Direction, Sighting, Signal};

#[derive(Debug)]
pub struct Notes {
    session: Arc<str>,
    /// Which main agent is meant: that of the process the signal is of.
    pub lead: AgentId,
    /// When the signal reached us: what timers count from.
    pub now: Timestamp,
    /// When what it tells happened.
    pub at: Timestamp,
    seq: u32,
    source: Source,
    list: Vec<Sighting>,
}

impl Notes {
    /// What happened when it was told: hooks and protocol messages.
    pub fn of(signal: &Signal<'_>, session: Arc<str>) -> Self {
        Self {
            session,
            lead: AgentId::MAIN,
            now: signal.at,
            at: signal.at,
            // What is written to an agent answers what it said in the same millisecond.
            seq: match signal.direction {
                Direction::FromAgent => signal.seq,
                Direction::ToAgent => signal.seq.saturating_add(1),
            },
            source: signal.channel.source(),
            list: Vec::new(),
        }
    }

    /// What carries its own time. A stamp from the future is somebody's wrong clock.
    pub fn stamped(mut self, happened: Option<Timestamp>) -> Self {
        self.at = happened.map_or(self.now, |happened| happened.min(self.now));
        self
    }

    /// What carries no time but stands after something that did: the `nth` such.
    pub fn after(mut self, known: Timestamp, nth: u32) -> Self {
        self.at = known.min(self.now);
        self.seq = self.seq.saturating_add(nth);
        self
    }

    pub fn session(&self) -> Arc<str> {
        self.session.clone()
    }

    pub fn tell(&mut self, agent: &AgentId, fact: Fact) {
        let sighting = self.sighting(agent, fact);
        self.list.push(sighting);
    }

    pub fn tell_main(&mut self, fact: Fact) {
        self.tell(&AgentId::MAIN, fact);
    }

    /// What follows from the rest of the signal, in the same moment but after it.
    pub fn tell_next(&mut self, agent: &AgentId, fact: Fact) {
        let mut sighting = self.sighting(agent, fact);
        sighting.event.seq = self.seq.saturating_add(1);
        self.list.push(sighting);
    }

    /// What is told so comes in the same moment, but after the rest of the signal.
    pub fn afterwards<T>(&mut self, tell: impl FnOnce(&mut Self) -> T) -> T {
        let seq = self.seq;
        self.seq = seq.saturating_add(1);
        let told = tell(self);
        self.seq = seq;
        told
    }

    /// What happened earlier than the signal.
    pub fn tell_at(&mut self, at: Timestamp, agent: &AgentId, fact: Fact) {
        let mut sighting = self.sighting(agent, fact);
        sighting.event.at = at.min(self.now);
        self.list.push(sighting);
    }

    /// A request's id that is the same for each process, made its own.
    pub fn request_id(&self, id: String) -> RequestId {
        match self.lead.terminal_pid() {
            Some(pid) => RequestId::new(format!("{id}@{pid}")),
            None => RequestId::new(id),
        }
    }

    /// What was noted before and may be known now.
    pub fn add(&mut self, sightings: impl IntoIterator<Item = Sighting>) {
        self.list.extend(sightings);
    }

    /// An event of this signal that is not told yet.
    pub fn sighting(&self, agent: &AgentId, fact: Fact) -> Sighting {
        Sighting {
            session: self.session.clone(),
            event: AgentEvent {
                at: self.at,
                seq: self.seq,
                source: self.source,
                agent: if agent.is_main() { self.lead.clone() } else { agent.clone() },
                fact,
            },
        }
    }

    pub fn into_sightings(self) -> Vec<Sighting> {
        self.list
    }
}
