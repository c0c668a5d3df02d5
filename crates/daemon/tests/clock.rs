//! The machine's clock jumps while agents work: nothing freezes, and no silence is counted that
//! nobody could have broken. Time is a number here; the recordings are real.

use std::path::Path;

use qd_broker::{Broker, Card, Input, Output};
use qd_harness::Harness;
use qd_harness::capture::{Recorded, Scenario};
use qd_harness::{Channel, Direction, Signal};
use qd_session::Session;
use qd_session::event::Entry;
use qd_session::id::SessionId;
use qd_session::moment::Timestamp;
use qd_session::snapshot::fold;
use serde_json::{Value, json};

const HOUR_MS: u64 = 3_600_000;
const BEGIN: Timestamp = Timestamp(1_794_800_000_000);

/// One signal of a recording, with the times that its client wrote into it.
struct Said {
    at: Timestamp,
    seq: u32,
    channel: Channel,
    payload: Value,
}

impl Said {
    fn set_back(&self, by_ms: u64) -> Self {
        let mut payload = self.payload.clone();
        for name in ["startedAt", "updatedAt", "statusUpdatedAt"] {
            let at = payload.get(name).and_then(Value::as_u64);
            if let Some(at) = at {
                payload[name] = (at - by_ms).into();
            }
        }
        let Self { at, seq, channel, .. } = *self;
        Self { at: at.minus_ms(by_ms), seq, channel, payload }
    }
}

/// What hooks, registry and processes said in a recording.
fn said(name: &str) -> (Harness, Vec<Said>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../harness/captured").join(name);
    let text = |file: &str| std::fs::read_to_string(folder.join(file)).expect(file);
    let scenario: Scenario = serde_json::from_str(&text("scenario.json")).expect("a scenario");
    let mut all = Vec::new();
    for line in text("signals.jsonl").lines() {
        let recorded: Recorded = serde_json::from_str(line).expect("a signal");
        let signal = recorded.signal().expect("a known source");
        let is_timed = matches!(signal.channel, Channel::Hook | Channel::Registry);
        if is_timed || signal.channel == Channel::Process {
            let payload = serde_json::from_slice(signal.payload).expect("JSON");
            all.push(Said { at: signal.at, seq: signal.seq, channel: signal.channel, payload });
        }
    }
    (scenario.harness, all)
}

#[derive(Default)]
struct World {
    broker: Broker,
    now: Timestamp,
    entries: Vec<Entry>,
}

impl World {
    fn hand_in(&mut self, input: Input<'_>) {
        for output in self.broker.handle(self.now, input) {
            if let Output::Append(entry) = output {
                self.entries.push(entry);
            }
        }
    }

    fn wait_until(&mut self, until: Timestamp) {
        while let Some(wake) = self.broker.next_wake().filter(|wake| *wake <= until) {
            self.now = self.now.max(wake);
            self.hand_in(Input::Woken);
        }
        self.now = self.now.max(until);
    }

    fn hear(&mut self, harness: Harness, said: &Said) {
        self.wait_until(said.at);
        let payload = said.payload.to_string();
        let (at, seq, channel) = (said.at, said.seq, said.channel);
        let payload = payload.as_bytes();
        let signal =
            Signal { at, seq, channel, direction: Direction::FromAgent, file: None, payload };
        self.hand_in(Input::Signal { harness, signal });
    }

    /// The loop has seen that the clock was set back, and lets handlers hear hooks again.
    fn set_back(&mut self, by_ms: u64, harness: Harness, heard: &[Said]) {
        self.now = self.now.minus_ms(by_ms);
        self.hand_in(Input::ClockSetBack { by_ms });
        for said in heard.iter().filter(|said| said.channel == Channel::Hook) {
            let said = said.set_back(by_ms);
            let payload = said.payload.to_string();
            let (at, seq, channel) = (said.at, said.seq, said.channel);
            let payload = payload.as_bytes();
            let signal =
                Signal { at, seq, channel, direction: Direction::FromAgent, file: None, payload };
            self.hand_in(Input::Reheard { harness, signal });
        }
    }

    fn shown(&self) -> Vec<String> {
        let mut cards = self.broker.cards(self.now);
        cards.sort_by(|one, other| one.vendor_id.cmp(&other.vendor_id));
        cards.iter().map(seen_as).collect()
    }
}

fn seen_as(card: &Card) -> String {
    let (state, open) = (&card.agent_state, card.requests.len());
    format!("{:?}/{} {} open {open}", state.group, state.state.as_str(), state.label)
}

const CAPTURES: [&str; 4] = [
    "claude-code/tui-permission-allow",
    "claude-code/tui-permission-deny",
    "claude-code/tui-background-agent",
    "claude-code/tui-ask-user-question",
];

/// Whenever the clock is set back, what follows is seen as if it had not been.
#[test]
fn a_clock_set_back_an_hour_freezes_no_session() {
    let hooked = CAPTURES.map(|name| (name, said(name)));
    // Without hooks the registry alone tells, by times that its client writes.
    let registered = CAPTURES.map(|name| {
        let (harness, mut all) = said(name);
        all.retain(|one| one.channel == Channel::Registry);
        (name, (harness, all))
    });
    for (name, (harness, all)) in hooked.into_iter().chain(registered) {
        for cut in 1..all.len() {
            let (before, after) = all.split_at(cut);
            let mut plain = World::default();
            let mut moved = World::default();
            for one in before {
                plain.hear(harness, one);
                moved.hear(harness, one);
            }
            // What a timer still holds back is told first: a handler that begins anew forgets it.
            let calm = plain.now.plus_ms(3_000);
            plain.wait_until(calm);
            moved.wait_until(calm);
            let shown = moved.shown();
            moved.set_back(HOUR_MS, harness, before);
            assert_eq!(moved.shown(), shown, "{name} {cut}: nothing else has changed");
            for (nth, one) in after.iter().enumerate() {
                plain.hear(harness, one);
                moved.hear(harness, &one.set_back(HOUR_MS));
                let newest = moved.broker.ahead_ms(moved.now);
                assert_eq!(newest, 0, "{name} {cut}+{nth}: nothing lies in the future");
            }
            let end = plain.now.plus_ms(10_000);
            plain.wait_until(end);
            moved.wait_until(end.minus_ms(HOUR_MS));
            assert_eq!(moved.shown(), plain.shown(), "{name} {cut}");
        }
    }
}

/// A journal that was written in the future folds to what was shown.
#[test]
fn a_journal_with_a_set_back_clock_folds_to_the_live_state() {
    let (harness, all) = said("claude-code/tui-permission-allow");
    let (before, after) = all.split_at(all.len() / 2);
    let mut world = World::default();
    before.iter().for_each(|one| world.hear(harness, one));
    world.set_back(HOUR_MS, harness, before);
    after.iter().for_each(|one| world.hear(harness, &one.set_back(HOUR_MS)));
    let ids: Vec<SessionId> =
        world.broker.cards(world.now).into_iter().map(|card| card.session_id).collect();
    assert!(!ids.is_empty());
    for id in ids {
        let tail: Vec<&Entry> = world.entries.iter().filter(|one| one.session == id).collect();
        let folded =
            fold(Session::new(id.clone()), tail.into_iter().cloned().collect::<Vec<_>>().iter());
        assert_eq!(Some(folded), world.broker.session(&id).map(|live| live.into_owned()));
    }
}

fn hook(at: Timestamp, event: &str) -> Said {
    let payload = json!({"session_id": "s", "hook_event_name": event, "prompt": "go",
        "cwd": "/home/ann/acme"});
    Said { at, seq: 0, channel: Channel::Hook, payload }
}

/// Nobody can observe the process of this one, so its silence tells something after ten minutes.
#[test]
fn the_time_that_the_machine_slept_is_no_silence() {
    let harness = Harness::ClaudeCode;
    let state =
        |world: &World| world.broker.cards(world.now)[0].agent_state.state.as_str().to_owned();
    let mut world = World::default();
    world.hear(harness, &hook(BEGIN, "UserPromptSubmit"));
    world.wait_until(BEGIN.plus_ms(60_000));
    assert_eq!(state(&world), "thinking");
    world.now = world.now.plus_ms(8 * HOUR_MS);
    world.hand_in(Input::Slept { ms: 8 * HOUR_MS });
    assert_eq!(state(&world), "thinking", "it has not been silent for long");
    world.wait_until(world.now.plus_ms(599_000));
    assert_eq!(state(&world), "thinking");
    world.wait_until(world.now.plus_ms(2_000));
    assert_eq!(state(&world), "unknown");
    // Another night makes nothing of it that was not there the evening before.
    world.now = world.now.plus_ms(8 * HOUR_MS);
    world.hand_in(Input::Slept { ms: 8 * HOUR_MS });
    assert_eq!(state(&world), "unknown");
}

/// A hook that lay in the spool was stamped by the clock before it was set back.
#[test]
fn a_signal_from_the_future_is_of_now() {
    let harness = Harness::ClaudeCode;
    let mut world = World { now: BEGIN, ..World::default() };
    let ahead = hook(BEGIN.plus_ms(HOUR_MS), "UserPromptSubmit");
    let payload = ahead.payload.to_string();
    let (at, payload) = (ahead.at, payload.as_bytes());
    let signal = Signal {
        at,
        seq: 0,
        channel: Channel::Hook,
        direction: Direction::FromAgent,
        file: None,
        payload,
    };
    world.hand_in(Input::Signal { harness, signal });
    assert_eq!(world.broker.ahead_ms(world.now), 0);
}
