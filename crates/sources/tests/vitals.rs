//! Signs of life of processes beside what their sessions say: stopped, stalled, and neither.

use qd_broker::vital::Vital;
use qd_broker::{Broker, Card, Input, Output};
use qd_harness::{Channel, Direction, Harness, Signal};
use qd_session::id::ProcessKey;
use qd_session::moment::Timestamp;
use serde_json::{Value, json};

const BEGIN: Timestamp = Timestamp(1_794_800_000_000);
const MINUTE_MS: u64 = 60_000;

#[derive(Default)]
struct World {
    broker: Broker,
    now: Timestamp,
    /// As the board was last told.
    card: Option<Box<Card>>,
}

impl World {
    fn working() -> Self {
        let mut world = Self { now: BEGIN, ..Self::default() };
        let prompt = json!({"session_id": "s", "hook_event_name": "UserPromptSubmit",
            "prompt": "go", "cwd": "/w"});
        world.hear(Channel::Hook, &prompt);
        world.hear(Channel::Process, &json!({"sessionId": "s", "pid": 7, "procStart": 42}));
        assert_eq!(world.state(), "thinking");
        world
    }

    fn hand_in(&mut self, input: Input<'_>) {
        for output in self.broker.handle(self.now, input) {
            if let Output::Show(card) = output {
                self.card = Some(card);
            }
        }
    }

    fn hear(&mut self, channel: Channel, payload: &Value) {
        let (at, payload) = (self.now, payload.to_string());
        let direction = Direction::FromAgent;
        let payload = payload.as_bytes();
        let signal = Signal { at, seq: 0, channel, direction, file: None, payload };
        self.hand_in(Input::Signal { harness: Harness::ClaudeCode, signal });
    }

    fn see(&mut self, is_stopped: bool, moved: Option<bool>) {
        let watched = self.broker.watched();
        let process = ProcessKey::new("7:42");
        assert_eq!(watched.iter().map(|one| &one.process).collect::<Vec<_>>(), [&process]);
        self.hand_in(Input::Vitals(vec![Vital { process, is_stopped, moved, at: self.now }]));
    }

    /// Looks every ten seconds.
    fn see_for(&mut self, minutes: u64, moved: Option<bool>) {
        let until = self.now.plus_ms(minutes * MINUTE_MS);
        while self.now < until {
            self.wait(10_000);
            self.see(false, moved);
        }
    }

    fn wait(&mut self, ms: u64) {
        let until = self.now.plus_ms(ms);
        while let Some(wake) = self.broker.next_wake().filter(|wake| *wake <= until) {
            self.now = self.now.max(wake);
            self.hand_in(Input::Woken);
        }
        self.now = until;
    }

    fn state(&self) -> &str {
        self.card.as_ref().expect("a card").agent_state.state.as_str()
    }
}

#[test]
fn a_stopped_process_is_shown_at_once_and_until_it_goes_on() {
    let mut world = World::working();
    world.see(false, None);
    assert_eq!(world.state(), "thinking");
    world.wait(2_000);
    world.see(true, None);
    assert_eq!(world.state(), "stopped");
    let since = world.card.as_ref().expect("a card").agent_state.since;
    assert_eq!(since, BEGIN.plus_ms(2_000));
    world.wait(60 * MINUTE_MS);
    world.see(true, None);
    assert_eq!(world.card.as_ref().expect("a card").agent_state.since, since);
    world.see(false, None);
    assert_eq!(world.state(), "thinking");
}

#[test]
fn work_is_stalled_once_nothing_moved_for_as_long_as_the_operator_has_patience() {
    let mut world = World::working();
    world.broker.set_stalled_after(Some(3 * MINUTE_MS));
    world.see_for(2, Some(false));
    assert_eq!(world.state(), "thinking");
    world.see_for(2, Some(true));
    assert_eq!(world.state(), "thinking", "a tool visibly works");
    world.see_for(2, Some(false));
    assert_eq!(world.state(), "thinking");
    world.see_for(2, Some(false));
    assert_eq!(world.state(), "stalled");
    world.see(false, Some(true));
    assert_eq!(world.state(), "thinking", "it lives");
    world.see_for(4, Some(false));
    assert_eq!(world.state(), "stalled");
    let tool = json!({"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_use_id": "c1", "tool_input": {"command": "ls"}});
    world.hear(Channel::Hook, &tool);
    assert_eq!(world.state(), "acting", "it was heard of");
}

#[test]
fn what_cannot_be_measured_is_never_stalled() {
    let mut world = World::working();
    world.see_for(60, None);
    assert_eq!(world.state(), "thinking");
    // Nor what was measured once, and not any more.
    world.see_for(2, Some(false));
    world.see_for(60, None);
    assert_eq!(world.state(), "thinking");
    let mut off = World::working();
    off.broker.set_stalled_after(None);
    off.see_for(60, Some(false));
    assert_eq!(off.state(), "thinking");
}

#[test]
fn the_time_that_the_machine_slept_is_no_stall() {
    let mut world = World::working();
    world.see_for(8, Some(false));
    world.now = world.now.plus_ms(480 * MINUTE_MS);
    world.hand_in(Input::Slept { ms: 480 * MINUTE_MS });
    world.see(false, Some(false));
    assert_eq!(world.state(), "thinking");
}
