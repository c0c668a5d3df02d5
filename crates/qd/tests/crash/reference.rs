//! A board that was never interrupted: the same hooks through one broker, on their own clock.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use qd_broker::{Broker, Input};
use qd_harness::Harness;
use qd_session::moment::Timestamp;
use qd_sources::hook_intake::Frame;
use serde_json::Value;

use crate::world::{Place, now};

/// Longer than any timer of a handler, several times over.
const PATIENCE: Duration = Duration::from_secs(30);

#[allow(missing_debug_implementations)]
pub struct Reference {
    broker: Broker,
}

impl Reference {
    /// Hears the frames in the order of their stamps.
    pub fn of(frames: &[Frame]) -> Self {
        let mut sorted: Vec<&Frame> = frames.iter().collect();
        sorted.sort_by_key(|frame| (frame.at_ms, frame.seq));
        let mut reference = Self { broker: Broker::default() };
        for frame in sorted {
            let at = Timestamp(frame.at_ms);
            reference.wait_until(at);
            let harness = Harness::named(&frame.harness).expect("a client of the captures");
            let process = frame.process();
            let signal = frame.signal(process.as_deref());
            reference.broker.handle(at, Input::Signal { harness, signal });
        }
        reference
    }

    /// Waits until the daemon's board is this one.
    #[track_caller]
    pub fn check(&mut self, place: &Place) {
        until_same(|| (place.board(), self.board(now())));
    }

    /// The board at that time.
    fn board(&mut self, now: Timestamp) -> Vec<Value> {
        self.wait_until(now);
        // Through text, as a reader of the daemon's answer gets its numbers.
        let cards = serde_json::to_string(&self.broker.cards(now)).expect("JSON");
        sorted(serde_json::from_str(&cards).expect("a list"))
    }

    fn wait_until(&mut self, now: Timestamp) {
        while let Some(wake) = self.broker.next_wake().filter(|wake| *wake <= now) {
            self.broker.handle(wake, Input::Woken);
        }
    }
}

/// Waits until two boards are the same, and shows the cards that differ if they never are.
#[track_caller]
pub fn until_same(mut boards: impl FnMut() -> (Vec<Value>, Vec<Value>)) {
    let begun = Instant::now();
    loop {
        let (board, expected) = boards();
        if board == expected {
            return;
        }
        if begun.elapsed() > PATIENCE {
            let mut lines = Vec::new();
            differences("", &Value::from(board), &Value::from(expected), &mut lines);
            panic!("the boards differ (found, expected):\n{}", lines.join("\n"));
        }
    }
}

/// Every leaf that differs, a line each.
fn differences(path: &str, found: &Value, expected: &Value, lines: &mut Vec<String>) {
    match (found, expected) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for key in keys {
                differences(&format!("{path}.{key}"), &found[key], &expected[key], lines);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (nth, (found, expected)) in one.iter().zip(other).enumerate() {
                differences(&format!("{path}[{nth}]"), found, expected, lines);
            }
        }
        (one, other) if one == other => {}
        (one, other) => lines.push(format!("{path}: {one} {other}")),
    }
}

/// Cards by their ids, without what a card is not shown anew for: the list of its signs, and when
/// the last one came. A daemon also sees on its own which process ran a hook, and what can be done
/// about it.
pub fn sorted(mut cards: Vec<Value>) -> Vec<Value> {
    for card in &mut cards {
        card["agentState"].as_object_mut().expect("a state").remove("evidence");
        let card = card.as_object_mut().expect("a card");
        let is_its_own =
            |name: &String| ["lastSignal", "where", "capabilities"].contains(&name.as_str());
        card.retain(|name, _| !is_its_own(name));
    }
    cards.sort_by_key(|card| card["sessionId"].to_string());
    cards
}
