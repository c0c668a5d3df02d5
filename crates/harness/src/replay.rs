//! A capture played on a virtual clock: the real handler, the real monitor, the real resolver.
//!
//! Pure: the clock is the captures' own, and timers fire when it passes them.

use std::collections::BTreeMap;
use std::sync::Arc;

use qd_session::moment::Timestamp;
use qd_session::monitor::{AgentEvent, Monitor};
use qd_session::operator::{AgentState, next_look, resolve};

use crate::Harness;
use crate::signal::{Handler, Sighting, Signal};

/// How long the clock runs on after the last signal, so that what was pending comes due.
const AFTERMATH_MS: u64 = 60_000;

/// Something a reader of the story may want to see.
#[derive(Debug, Clone, PartialEq)]
pub enum Scene {
    /// What a handler made of a signal or a timer.
    Event { at: Timestamp, session: Arc<str>, event: AgentEvent },
    /// The operator's view changed.
    Changed { at: Timestamp, session: Arc<str>, state: AgentState },
}

/// One run of one capture.
#[allow(missing_debug_implementations)]
pub struct Replay {
    handler: Box<dyn Handler + Send>,
    now: Timestamp,
    sessions: BTreeMap<Arc<str>, Watched>,
}

#[derive(Default)]
struct Watched {
    monitor: Monitor,
    shown: Option<AgentState>,
}

impl Replay {
    pub fn new(harness: Harness) -> Self {
        Self { handler: harness.handler(), now: Timestamp::ZERO, sessions: BTreeMap::new() }
    }

    /// Plays one signal, and before it whatever came due.
    pub fn play(&mut self, signal: &Signal<'_>) -> Vec<Scene> {
        let mut scenes = self.run_until(signal.at);
        self.now = self.now.max(signal.at);
        let sightings = self.handler.handle_signal(signal);
        self.take_in(sightings, &mut scenes);
        scenes
    }

    /// Lets the clock run on after the last signal.
    pub fn finish(&mut self) -> Vec<Scene> {
        self.run_until(self.now.plus_ms(AFTERMATH_MS))
    }

    /// Moves the clock to `until`, stopping wherever a timer is due.
    pub fn run_until(&mut self, until: Timestamp) -> Vec<Scene> {
        let mut scenes = Vec::new();
        while let Some(due) = self.next_due().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            let sightings = match self.handler.next_timeout() {
                Some(timeout) if timeout <= self.now => self.handler.handle_timeout(self.now),
                Some(_) | None => Vec::new(),
            };
            self.take_in(sightings, &mut scenes);
        }
        scenes
    }

    /// The session's beliefs, for a reader who asks why.
    pub fn sessions(&self) -> impl Iterator<Item = (&Arc<str>, &Monitor)> {
        self.sessions.iter().map(|(id, watched)| (id, &watched.monitor))
    }

    pub fn now(&self) -> Timestamp {
        self.now
    }

    fn next_due(&self) -> Option<Timestamp> {
        let looks =
            self.sessions.values().filter_map(|watched| next_look(self.now, &watched.monitor));
        self.handler.next_timeout().into_iter().chain(looks).min()
    }

    fn take_in(&mut self, sightings: Vec<Sighting>, scenes: &mut Vec<Scene>) {
        for Sighting { session, event } in sightings {
            let watched = self.sessions.entry(session.clone()).or_default();
            watched.monitor.apply(&event);
            scenes.push(Scene::Event { at: self.now, session, event });
        }
        for (session, watched) in &mut self.sessions {
            let state = resolve(self.now, &watched.monitor);
            if watched.shown.as_ref().is_none_or(|shown| !shown.looks_like(&state)) {
                scenes.push(Scene::Changed {
                    at: self.now,
                    session: session.clone(),
                    state: state.clone(),
                });
            }
            watched.shown = Some(state);
        }
    }
}
