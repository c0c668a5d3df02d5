//! One session as its handler remembers it: just enough to settle races and join what belongs
//! together. What is true about the session is the monitor's business.

mod about;
mod dialog;
mod turn;

use std::sync::Arc;

use qd_session::id::{AgentId, ProcessKey};
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
pub const HOLD_MS: u64 = 300;

/// Most events held back at once: ends from each source, of the session and its subagents.
const HELD_MAX: usize = 128;

/// How long after its totals a client that has not left would say something else.
const LEAVING_MS: u64 = 1_000;

/// How long the supervisor of background sessions may take to replace a worker. It waits 10 s.
const RESPAWN_MS: u64 = 60_000;

/// The same, once the supervisor has said that it is about to: it may have to try again.
const ANNOUNCED_MS: u64 = 600_000;

/// How long a worker that replaces another needs to take up what that one left.
const TAKE_OVER_MS: u64 = 5_000;

/// The work in the background that a lost worker leaves: another one is started.
const WORKER: &str = "worker";

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
    /// Another process has the session open, too, or had until a moment ago.
    pub shared: bool,
    /// It is known which process this is, so that its end is not guessed.
    pub process_known: bool,
    /// Its hooks name their process: its end will be told by one, or by its exit.
    pub hooks_known: bool,
    /// The process has said that it leaves, or was seen to.
    pub leaving: Option<Leaving>,
    /// Its JSON stream is seen: there, `can_use_tool` tells who is asked, and nothing else does.
    pub stream: bool,
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
    /// The session's end, if nothing is heard of it by then.
    ending: Option<Held>,
    /// When a worker came in the place of one that was lost.
    replaced_at: Option<Timestamp>,
    subagents: Vec<Arc<str>>,
    about: About,
}

/// A process lets go of the session.
#[derive(Debug, Clone, Copy, Default)]
pub struct Leaving {
    pub exit_code: Option<i32>,
    /// It was lost, and is about to be replaced.
    pub respawns: bool,
}

#[derive(Debug)]
struct Held {
    due: Timestamp,
    sighting: Sighting,
}

impl Held {
    /// What is certain only then happened then.
    fn told_at(mut self, at: Timestamp) -> Sighting {
        self.sighting.event.at = at;
        self.sighting
    }
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

    /// It was at work before a restart.
    pub fn subagent_recalled(&mut self, id: &str) {
        if self.subagents.len() < SUBAGENTS_MAX {
            self.subagents.push(head(id, 128).into());
        }
    }

    pub fn has_subagent(&self, id: &str) -> bool {
        self.subagents.iter().any(|known| **known == *id)
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
        if self.takes_over(notes.now) {
            // It may go on by itself with what was cut off; the registry tells.
            return;
        }
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

    /// The ends of all subagents, to be told when that is certain.
    pub fn subagents_over(&mut self, notes: &Notes) -> Vec<Sighting> {
        let over = std::mem::take(&mut self.subagents);
        over.into_iter().map(|id| notes.sighting(&AgentId::sub(id), Fact::SubagentEnded)).collect()
    }

    /// The client's own list of what runs on is the truth: its other subagents have ended.
    pub fn subagents_are(&mut self, notes: &mut Notes, running: &[&str]) {
        let (kept, over) = std::mem::take(&mut self.subagents)
            .into_iter()
            .partition(|known| running.contains(&&**known));
        self.subagents = kept;
        let over: Vec<Arc<str>> = over;
        for id in over {
            self.subagent_ended(notes, &id);
        }
    }

    fn subagents_lost(&mut self, notes: &mut Notes) {
        for id in std::mem::take(&mut self.subagents) {
            notes.tell(&AgentId::sub(id), Fact::SubagentEnded);
        }
    }

    /// The session is over; what was held back is told with it.
    pub fn ended(&mut self, notes: &mut Notes, exit_code: Option<i32>) {
        self.release(notes);
        if !notes.lead.is_main() {
            notes.tell_main(Fact::SubagentEnded);
        }
        notes.tell_main(Fact::SessionEnded { process: None, exit_code });
        self.forget(notes);
    }

    /// Its process has left, and others have the session open.
    pub fn left(&mut self, notes: &mut Notes, process: Option<ProcessKey>) {
        self.release(notes);
        notes.tell_main(Fact::SubagentEnded);
        if let Some(process) = process {
            let process = Some(process);
            notes.tell_main(Fact::SessionEnded { process, exit_code: None });
        }
        self.forget(notes);
    }

    /// The client wrote its totals, as it does when it leaves. Where nothing will tell better,
    /// that is believed if no word of it follows. Who waits for a person has not left: another
    /// process did.
    pub fn totals_written(&mut self, notes: &mut Notes) {
        let waits = self.registered.is_panel() || self.registered.waits_since().is_some();
        if self.hooks_known || self.shared || waits {
            return;
        }
        self.ends_in(notes, LEAVING_MS);
    }

    fn ends_in(&mut self, notes: &Notes, hold_ms: u64) {
        let ended = Fact::SessionEnded { process: None, exit_code: None };
        let due = notes.now.plus_ms(hold_ms);
        self.ending = Some(Held { due, sighting: notes.sighting(&AgentId::MAIN, ended) });
    }

    /// The worker of a background session was killed: another takes its place, unless none comes.
    pub fn worker_lost(&mut self, notes: &mut Notes) {
        self.release(notes);
        self.forget(notes);
        self.idle = true;
        self.background.launched(WORKER);
        notes.afterwards(|notes| {
            notes.tell_main(Fact::LlmStarted);
            let background = Some(1);
            let end = Fact::TurnCompleted { last_message: None, background, cut_off: false };
            notes.tell_next(&AgentId::MAIN, end);
        });
        self.ends_in(notes, RESPAWN_MS);
    }

    /// Its supervisor says that another worker is on its way.
    pub fn worker_announced(&mut self, now: Timestamp) {
        if let Some(ending) = &mut self.ending {
            ending.due = ending.due.max(now.plus_ms(ANNOUNCED_MS));
        }
    }

    /// Another process has it open now; perhaps in the place of a worker that was lost.
    pub fn opened_again(&mut self, now: Timestamp) {
        if self.ending.take().is_some() {
            self.background.none_left();
            self.replaced_at = Some(now);
        }
    }

    /// A worker came just now in the place of one that was lost.
    pub fn takes_over(&self, now: Timestamp) -> bool {
        self.replaced_at.is_some_and(|at| now.ms_since(at) <= TAKE_OVER_MS)
    }

    /// An end that was held back is certain.
    pub fn release_end(&mut self, notes: &mut Notes) {
        let at = notes.at;
        notes.add(self.ending.take().map(|ending| ending.told_at(at)));
    }

    /// It is there after all.
    pub fn stays(&mut self) {
        self.ending = None;
    }

    /// What was open in the process is over with it.
    fn forget(&mut self, notes: &mut Notes) {
        self.subagents_lost(notes);
        self.held.clear();
        self.ending = None;
        self.holders = Holders::default();
        self.registered = Registered::default();
        self.idle = false;
        self.calls.clear();
        self.requests.clear();
        self.background.clear();
        self.compacting = false;
        self.stream = false;
        self.turn = None;
    }

    pub fn hold(&mut self, notes: &Notes, hold_ms: u64, sighting: Sighting) {
        if self.held.len() < HELD_MAX {
            self.held.push(Held { due: notes.now.plus_ms(hold_ms), sighting });
        }
    }

    /// Forgets work from before that time which was not told yet. True if there was any.
    pub fn drop_held_work(&mut self, until: Timestamp) -> bool {
        let len = self.held.len();
        self.held.retain(|held| {
            let event = &held.sighting.event;
            event.fact != Fact::LlmStarted || event.source != Source::Registry || event.at > until
        });
        self.held.len() < len
    }

    /// The registry said after that time that the turn is over, and is held back.
    fn is_registered_idle_since(&self, at: Timestamp) -> bool {
        let mut told = self.held.iter().map(|held| &held.sighting.event);
        told.any(|event| {
            let is_end = matches!(event.fact, Fact::TurnCompleted { .. });
            is_end && event.source == Source::Registry && event.at >= at
        })
    }

    /// What was held back is certain, or does not matter any more: something later was told.
    pub fn release(&mut self, notes: &mut Notes) {
        let at = notes.at;
        let earlier = self.held.extract_if(.., |held| held.sighting.event.at <= at);
        notes.add(earlier.map(|held| held.sighting));
    }

    pub fn next_due(&self) -> Option<Timestamp> {
        let held = self.held.iter().chain(&self.ending).map(|held| held.due).min();
        held.into_iter().chain(self.requests.next_due()).min()
    }

    pub fn due(&mut self, now: Timestamp) -> Vec<Sighting> {
        let mut sightings = self.requests.due(now);
        sightings
            .extend(self.held.extract_if(.., |held| held.due <= now).map(|held| held.sighting));
        let ending = self.ending.take_if(|ending| ending.due <= now);
        sightings.extend(ending.map(|ending| ending.told_at(now)));
        sightings
    }

    /// All that is held back, for a session that is to be forgotten.
    pub fn last_words(self) -> impl Iterator<Item = Sighting> {
        self.held.into_iter().map(|held| held.sighting)
    }
}
