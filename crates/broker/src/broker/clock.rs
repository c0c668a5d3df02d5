//! The machine's clock jumped: the broker's half that keeps sessions from freezing.
//!
//! Facts are joined by the time they happened. After a clock was set back, what was known before
//! would win over everything new until the clock has caught up; after a sleep, silence that nobody
//! could have broken would count. Both are told once, by the loop that compares two clocks.

use std::sync::Arc;

use qd_harness::Harness;
use qd_session::Session;
use qd_session::event::{Entry, Event};
use qd_session::id::SessionId;
use qd_session::limits::UNOBSERVED_WORK_MAX_MS;
use qd_session::moment::Timestamp;

use super::{Broker, Output};

impl Broker {
    /// How far the newest thing that is known lies in the future: so much was the clock set back
    /// while nobody looked.
    pub fn ahead_ms(&self, now: Timestamp) -> u64 {
        let newest = self.roster.values().map(|tracked| tracked.session.newest()).max();
        newest.map_or(0, |newest| newest.ms_since(now))
    }

    /// Brings what lies in the future back, and begins anew with the handlers: they remember times
    /// as well. Whoever calls lets them hear again what they heard.
    pub(super) fn clock_set_back(&mut self, now: Timestamp, by_ms: u64, outputs: &mut Vec<Output>) {
        let ahead = self.roster.iter().filter(|(_, tracked)| tracked.session.newest() > now);
        let ahead: Vec<SessionId> = ahead.map(|(id, _)| id.clone()).collect();
        for id in &ahead {
            let entry = Entry::new(id.clone(), now, Event::ClockSetBack { by_ms });
            self.journal(id, entry, outputs);
        }
        self.desk.set_back(by_ms);
        self.vitals.forget();
        self.rest_at = None;
        for tracked in self.roster.values_mut() {
            tracked.work.set_back(by_ms);
        }
        self.handlers.clear();
        let known: Vec<(Harness, Arc<str>, SessionId)> = self
            .found
            .iter()
            .map(|((harness, vendor_id), id)| (*harness, vendor_id.clone(), id.clone()))
            .collect();
        for (harness, vendor_id, id) in known {
            let Some(tracked) = self.roster.get(&id) else { continue };
            let handler = self.handlers.entry(harness).or_insert_with(|| harness.handler());
            handler.recall(&vendor_id, tracked.session.peek().monitor());
        }
        self.show_all(now, outputs);
    }

    /// The machine slept for so long. Where silence was about to tell something, it begins anew.
    pub(super) fn slept(&mut self, now: Timestamp, ms: u64, outputs: &mut Vec<Output>) {
        let before = now.minus_ms(ms);
        // Days are not a silence that a sleep would make longer than it was.
        let waits = |session: &Session| {
            let look = session.next_look(before);
            look.is_some_and(|look| look.ms_since(before) <= UNOBSERVED_WORK_MAX_MS)
        };
        let shown = self.roster.iter().filter(|(_, tracked)| tracked.shown.is_some());
        let waiting = shown.filter(|(_, tracked)| waits(&tracked.session.peek()));
        let waiting: Vec<SessionId> = waiting.map(|(id, _)| id.clone()).collect();
        for id in waiting {
            let entry = Entry::new(id.clone(), now, Event::Slept);
            self.journal(&id, entry, outputs);
            self.show(now, &id, outputs);
        }
    }

    pub(super) fn show_all(&mut self, now: Timestamp, outputs: &mut Vec<Output>) {
        let shown = self.roster.iter().filter(|(_, tracked)| tracked.shown.is_some());
        let shown: Vec<SessionId> = shown.map(|(id, _)| id.clone()).collect();
        shown.iter().for_each(|id| self.show(now, id, outputs));
    }
}
