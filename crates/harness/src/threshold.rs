//! The threshold every handler's sightings pass: what nobody understood makes no session.
//!
//! A handler may know a session before anything can be told of it, and then hear something it does
//! not understand. That is evidence on a card; it must not be what puts the card on the board. Nor
//! may a session whose id is empty, or no id by its length. On its way in, a signal is mended.

use std::collections::BTreeMap;
use std::sync::Arc;

use qd_session::moment::Timestamp;
use qd_session::monitor::{Fact, Monitor};

use crate::payload;
use crate::signal::{Handler, Sighting, Signal};

/// Most sessions remembered as told of; the longer silent half goes first. More than any handler
/// keeps; one that is forgotten loses the evidence of a riddle until its next fact.
const SESSIONS_MAX: usize = 1_024;

/// Longest id that is believed to be one: vendors' are at most 40 bytes, and stream names are paths.
const ID_BYTES_MAX: usize = 4 << 10;

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
            if sighting.session.is_empty() || sighting.session.len() > ID_BYTES_MAX {
                return false;
            }
            // That nobody holds a session is news only of one that has said something.
            let told_of = &sighting.event.fact;
            let understood = !matches!(told_of, Fact::Unrecognised { .. } | Fact::ProcessMissing);
            match self.told.get_mut(&sighting.session) {
                Some(told_at) => *told_at = now.max(*told_at),
                None if understood => {
                    make_room(&mut self.told);
                    self.told.insert(sighting.session.clone(), now);
                }
                None => return false,
            }
            true
        });
        sightings
    }
}

/// Forgets the longer silent half at once: one signal may name thousands of sessions, and to look
/// for the one longest silent each time would take their square.
fn make_room(told: &mut BTreeMap<Arc<str>, Timestamp>) {
    if told.len() < SESSIONS_MAX {
        return;
    }
    let mut times: Vec<Timestamp> = told.values().copied().collect();
    times.sort_unstable();
    let middle = times[times.len() / 2];
    told.retain(|_, told_at| *told_at > middle);
}

impl<H: Handler> Handler for Threshold<H> {
    fn handle_signal(&mut self, signal: &Signal<'_>) -> Vec<Sighting> {
        let payload = payload::mended(signal.payload);
        let sightings = self.handler.handle_signal(&Signal { payload: &payload, ..*signal });
        self.pass(signal.at, sightings)
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        self.handler.next_timeout()
    }

    fn handle_timeout(&mut self, now: Timestamp) -> Vec<Sighting> {
        let sightings = self.handler.handle_timeout(now);
        self.pass(now, sightings)
    }

    fn recall(&mut self, session: &Arc<str>, known: &Monitor) {
        make_room(&mut self.told);
        self.told.insert(session.clone(), known.last_signal());
        self.handler.recall(session, known);
    }

    fn unrecognised(&self) -> u64 {
        self.handler.unrecognised()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Harness;
    use crate::signal::{Channel, Direction};
    use crate::story::Story;

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
    fn half_of_a_pair_costs_no_line() {
        let hook =
            br#"{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"a \ud83d"}"#;
        for harness in [Harness::ClaudeCode, Harness::Codex] {
            let mut story = Story::of(harness);
            story.play(1_000, Channel::Hook, Direction::FromAgent, None, hook);
            assert_eq!(story.state(), "autonomous/thinking", "{harness:?}");
        }
    }

    #[test]
    fn what_is_no_id_makes_no_session() {
        for id in [String::new(), "s".repeat(ID_BYTES_MAX + 1)] {
            for harness in [Harness::ClaudeCode, Harness::Codex, Harness::GeminiCli] {
                let mut story = Story::of(harness);
                let hook = json!({"session_id": id, "hook_event_name": "SessionStart"});
                story.hear(1_000, Channel::Hook, &hook);
                let exit = json!({"sessionId": id, "exited": true});
                story.hear(2_000, Channel::Process, &exit);
                assert_eq!(story.sessions(), 0, "{harness:?}");
            }
        }
    }

    #[test]
    fn a_signal_that_names_thousands_forgets_the_longer_silent_half() {
        let mut told = BTreeMap::new();
        for number in 0..3_000_u64 {
            make_room(&mut told);
            told.insert(number.to_string().into(), Timestamp(number));
            assert!(told.len() <= SESSIONS_MAX);
        }
        assert!(told.contains_key("2999") && told.len() > SESSIONS_MAX / 4);
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
