//! One session as its handler remembers it: just enough to settle races and join what belongs
//! together. What is true about the session is the monitor's business.

mod about;
mod dialog;
mod turn;

use std::sync::Arc;

use qd_session::id::AgentId;
use qd_session::moment::{Source, Timestamp};
use qd_session::monitor::Fact;

use self::about::About;
pub use self::turn::Prompt;
use self::turn::Said;
use super::background::Background;
use super::call::Calls;
use super::holders::Holders;
use super::notes::Notes;
use super::registry::Registered;
use super::request::Requests;
use crate::excerpt::head;
use crate::signal::Sighting;

/// How long the end of a turn, or a rejection, is held back. Another Stop hook's veto and the
/// interrupt after a rejected dialog follow within a few dozen milliseconds.
const HOLD_MS: u64 = 300;

/// Most events held back at once; more than an end from each source never are.
const HELD_MAX: usize = 16;

/// Most subagents whose start was told.
const SUBAGENTS_MAX: usize = 64;

#[derive(Debug, Default)]
pub struct Session {
    pub heard_at: Timestamp,
    pub calls: Calls,
    pub requests: Requests,
    pub background: Background,
    pub holders: Holders,
    pub registered: Registered,
    /// Its JSON stream is seen: there, `can_use_tool` tells who is asked, and nothing else does.
    pub stream: bool,
    /// The time of the last transcript line that had one, and how many without came after it.
    pub line_at: Timestamp,
    pub untimed: u32,
    /// When something last went forward: a dialog from before it is not open any more.
    pub moved_at: Timestamp,
    /// Something was taken from the queue, and no turn has shown yet: it may be a command.
    taken_up: bool,
    /// The prompt that began the current turn, and when.
    turn: Option<Arc<str>>,
    turn_at: Timestamp,
    /// The turn is over, for all that is known.
    idle: bool,
    compacting: bool,
    said: Option<Said>,
    held: Vec<Held>,
    subagents: Vec<Arc<str>>,
    about: About,
}

#[derive(Debug)]
struct Held {
    due: Timestamp,
    sighting: Sighting,
}

impl Session {
    pub fn compaction_started(&mut self, notes: &mut Notes) {
        self.release(notes);
        self.compacting = true;
        notes.tell_main(Fact::CompactionStarted);
    }

    /// Tells it only where one is open: a failed compaction has no end of its own.
    pub fn compaction_ended(&mut self, notes: &mut Notes) {
        if std::mem::take(&mut self.compacting) {
            notes.tell_main(Fact::CompactionEnded);
        }
    }

    pub fn subagent_started(&mut self, notes: &mut Notes, id: &str, kind: Option<&str>) {
        let known = self.subagents.iter().any(|known| **known == *id);
        if known && kind.is_none() {
            return;
        }
        if !known {
            if self.subagents.len() == SUBAGENTS_MAX {
                self.subagents.remove(0);
            }
            self.subagents.push(head(id, 128).into());
        }
        let kind = kind.map(|kind| head(kind, 128).into());
        notes.tell(&AgentId::sub(id), Fact::SubagentStarted { kind });
    }

    pub fn subagent_ended(&mut self, notes: &mut Notes, id: &str) {
        let agent = AgentId::sub(id);
        self.subagents.retain(|known| **known != *id);
        notes.tell(&agent, Fact::SubagentEnded);
        self.settle(notes, &agent);
    }

    /// A stream may know a subagent only by the call that started it.
    pub fn subagent_of_call_ended(&mut self, notes: &mut Notes, call: &str) {
        if self.subagents.iter().any(|known| **known == *call) {
            self.subagent_ended(notes, call);
        }
    }

    /// A process opened it again: it is at its prompt, whatever the last one left unfinished.
    /// Where another may still hold it, what that one waits for is left alone.
    pub fn resumed(&mut self, notes: &mut Notes, alone: bool) {
        if !alone && !self.requests.is_empty() {
            return;
        }
        self.release(notes);
        let background = alone.then_some(0);
        notes.tell_main(Fact::TurnCompleted { last_message: None, background, cut_off: false });
        if alone {
            self.subagents_lost(notes);
        }
        self.settle(notes, &AgentId::MAIN);
    }

    fn subagents_lost(&mut self, notes: &mut Notes) {
        for id in std::mem::take(&mut self.subagents) {
            notes.tell(&AgentId::sub(id), Fact::SubagentEnded);
        }
    }

    /// The session is over; what was held back is told with it.
    pub fn ended(&mut self, notes: &mut Notes, exit_code: Option<i32>) {
        self.release(notes);
        notes.tell_main(Fact::SessionEnded { process: None, exit_code });
        self.subagents_lost(notes);
        self.calls.clear();
        self.requests.clear();
        self.background.clear();
        self.compacting = false;
        self.stream = false;
        self.turn = None;
    }

    pub fn hold(&mut self, notes: &Notes, sighting: Sighting) {
        if self.held.len() < HELD_MAX {
            self.held.push(Held { due: notes.now.plus_ms(HOLD_MS), sighting });
        }
    }

    /// The registry said after that time that the turn is over, and is held back.
    fn is_registered_idle_since(&self, at: Timestamp) -> bool {
        let mut told = self.held.iter().map(|held| &held.sighting.event);
        told.any(|event| event.source == Source::Registry && event.at >= at)
    }

    /// What was held back is certain, or does not matter any more: something later was told.
    pub fn release(&mut self, notes: &mut Notes) {
        let at = notes.at;
        let earlier = self.held.extract_if(.., |held| held.sighting.event.at <= at);
        notes.add(earlier.map(|held| held.sighting));
    }

    pub fn next_due(&self) -> Option<Timestamp> {
        let held = self.held.iter().map(|held| held.due).min();
        held.into_iter().chain(self.requests.next_due()).min()
    }

    pub fn due(&mut self, now: Timestamp) -> Vec<Sighting> {
        let mut sightings = self.requests.due(now);
        sightings
            .extend(self.held.extract_if(.., |held| held.due <= now).map(|held| held.sighting));
        sightings
    }

    /// All that is held back, for a session that is to be forgotten.
    pub fn last_words(self) -> impl Iterator<Item = Sighting> {
        self.held.into_iter().map(|held| held.sighting)
    }
}
