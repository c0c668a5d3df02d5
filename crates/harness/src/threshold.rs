//! The threshold every handler's sightings pass: what nobody understood makes no session.
//!
//! A handler may know a session before anything can be told of it, and then hear something it does
//! not understand. That is evidence on a card; it must not be what puts the card on the board.

use std::collections::BTreeMap;
use std::sync::Arc;

use qd_session::moment::Timestamp;
use qd_session::monitor::Fact;

use crate::signal::{Handler, Sighting, Signal};

/// Most sessions remembered as told of; the one longest silent goes first. More than any handler
/// keeps; one that is forgotten loses the evidence of a riddle until its next fact.
const SESSIONS_MAX: usize = 1_024;

/// A handler behind the threshold.
#[allow(missing_debug_implementations)]
pub struct Threshold<H> {
    handler: H,
    told: BTreeMap<Arc<str>, Timestamp>,
}

impl<H> Threshold<H> {
    pub fn of(handler: H) -> Self {
        Self { handler, told: BTreeMap::new() }
    }

    fn pass(&mut self, now: Timestamp, mut sightings: Vec<Sighting>) -> Vec<Sighting> {
        sightings.retain(|sighting| {
            let understood = !matches!(sighting.event.fact, Fact::Unrecognised { .. });
            match self.told.get_mut(&sighting.session) {
                Some(told_at) => *told_at = now.max(*told_at),
                None if understood => {
                    self.told.insert(sighting.session.clone(), now);
                }
                None => return false,
            }
            true
        });
        while self.told.len() > SESSIONS_MAX {
            let silent = self.told.iter().min_by_key(|(_, told_at)| **told_at);
            let Some(silent) = silent.map(|(id, _)| id.clone()) else { break };
            self.told.remove(&silent);
        }
        sightings
    }
}

impl<H: Handler> Handler for Threshold<H> {
    fn handle_signal(&mut self, signal: &Signal<'_>) -> Vec<Sighting> {
        let sightings = self.handler.handle_signal(signal);
        self.pass(signal.at, sightings)
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        self.handler.next_timeout()
    }

    fn handle_timeout(&mut self, now: Timestamp) -> Vec<Sighting> {
        let sightings = self.handler.handle_timeout(now);
        self.pass(now, sightings)
    }
}

#[cfg(test)]
mod tests {
    use crate::Harness;
    use crate::signal::Channel;
    use crate::story::Story;
    use serde_json::{Value, json};

    fn check(harness: Harness, channel: Channel, riddle: Value, known: Value) {
        let mut story = Story::of(harness);
        story.hear(1_000, channel, &riddle);
        assert_eq!((story.sessions(), story.told.len()), (0, 0), "{harness:?}");
        story.hear(2_000, channel, &known);
        assert_eq!(story.sessions(), 1, "{harness:?}");
        story.hear(9_000, channel, &riddle);
        assert_eq!(story.told.last().map(String::as_str), Some("unrecognised"), "{harness:?}");
    }

    #[test]
    fn a_riddle_makes_no_session_and_is_kept_for_one() {
        let hook = |name: &str| json!({"session_id": "s", "hook_event_name": name});
        for harness in [Harness::ClaudeCode, Harness::Codex, Harness::GeminiCli] {
            check(harness, Channel::Hook, hook("Tomorrow"), hook("SessionStart"));
        }
        let exec = |name: &str| json!({"type": name, "thread_id": "s"});
        check(Harness::Codex, Channel::Exec, exec("tomorrow"), exec("thread.started"));
        let update = |update: Value| json!({"method": "session/update", "params": {"sessionId": "s", "update": update}});
        check(
            Harness::Acp,
            Channel::Acp,
            update(json!({"sessionUpdate": "tomorrow"})),
            update(json!({"sessionUpdate": "current_mode_update", "currentModeId": "plan"})),
        );
    }
}
