//! What a session will have to say later: ends that wait to be confirmed, and facts whose own time
//! has not come.

use qd_session::id::CallId;
use qd_session::moment::{Source, Timestamp};
use qd_session::monitor::Fact;

use super::session::Session;
use crate::outbox::Outbox;
use crate::signal::Sighting;

/// Most things that wait at once; the one due first goes first.
const ITEMS_MAX: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    pub due: Timestamp,
    /// When it happened, or will have happened.
    pub at: Timestamp,
    pub source: Source,
    pub what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum What {
    /// A call ends, at a time that was known before.
    CallEnds { call: CallId, ok: bool },
    /// The turn stops, at a time that was known before.
    TurnStops(Fact),
    /// The turn is over, unless it goes on meanwhile.
    TurnEnds(Fact),
    /// The batch is over and the turn is not: the model is asked again.
    ModelAsked,
    /// A plan that nothing approved by itself waits for a person.
    PlanWaits(CallId),
    /// A compaction whose end nobody told is over.
    CompactionOver,
}

#[derive(Debug, Default)]
pub struct Agenda {
    items: Vec<Item>,
}

impl Agenda {
    pub fn add(&mut self, item: Item) {
        if self.items.contains(&item) {
            return;
        }
        let at = self.items.partition_point(|other| other.due <= item.due);
        self.items.insert(at, item);
        if self.items.len() > ITEMS_MAX {
            self.items.remove(0);
        }
    }

    pub fn next_due(&self) -> Option<Timestamp> {
        self.items.first().map(|item| item.due)
    }

    /// The next thing that is due, if one is.
    pub fn take_due(&mut self, now: Timestamp) -> Option<Item> {
        (self.next_due()? <= now).then(|| self.items.remove(0))
    }

    /// Takes the waiting end of the turn, to be told at once.
    pub fn take_end(&mut self) -> Option<Item> {
        let at = self.items.iter().position(|item| matches!(item.what, What::TurnEnds(_)))?;
        Some(self.items.remove(at))
    }

    /// Work at this time: an end before it was none, and the model need not be guessed at.
    pub fn work_goes_on(&mut self, at: Timestamp) {
        self.items.retain(|item| match item.what {
            What::TurnEnds(_) => item.at >= at,
            What::ModelAsked => false,
            What::CallEnds { .. }
            | What::TurnStops(_)
            | What::PlanWaits(_)
            | What::CompactionOver => true,
        });
    }

    /// The end of the turn waits to be confirmed.
    pub fn is_ending(&self) -> bool {
        self.items.iter().any(|item| matches!(item.what, What::TurnEnds(_)))
    }

    /// The turn is over.
    pub fn turn_over(&mut self) {
        self.items.retain(|item| match item.what {
            What::CallEnds { .. } | What::TurnStops(_) | What::CompactionOver => true,
            What::TurnEnds(_) | What::ModelAsked | What::PlanWaits(_) => false,
        });
    }

    pub fn compaction_over(&mut self) {
        self.items.retain(|item| item.what != What::CompactionOver);
    }
}

impl Session {
    /// What is due of the agenda.
    pub fn come_due(&mut self, now: Timestamp) -> Vec<Sighting> {
        let mut sightings = Vec::new();
        while let Some(Item { at, source, what, .. }) = self.agenda.take_due(now) {
            let mut out = Outbox::new(self.id.clone(), at, 0, source);
            self.happen(what, &mut out);
            sightings.extend(out.into_sightings());
        }
        sightings
    }

    /// Its time has come.
    pub fn happen(&mut self, what: What, out: &mut Outbox) {
        match what {
            What::CallEnds { call, ok } => self.end_call(&call, ok, out),
            What::TurnStops(ending) | What::TurnEnds(ending) => self.end_turn(ending, out),
            What::ModelAsked => self.think(out),
            What::CompactionOver => self.end_compaction(out),
            What::PlanWaits(call) => self.plan_waits(&call, out),
        }
    }

    fn end_call(&mut self, id: &CallId, ok: bool, out: &mut Outbox) {
        let delegated = self.calls.by_id(id).is_some_and(|call| {
            call.ended = true;
            call.delegates()
        });
        out.tell(Fact::ToolCompleted { call: id.clone(), ok, exit_code: None });
        self.call_ended(delegated, out);
    }
}
