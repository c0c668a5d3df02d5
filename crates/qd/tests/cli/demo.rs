//! The demo has a daemon of its own and leaves nothing behind.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use crate::world::{Outcome, Running, World};

/// A look takes some milliseconds, and the recording goes on within seconds.
const ATTEMPTS_MAX: u32 = 5_000;

/// A demo that runs, and what makes other commands find it.
struct Demo<'a> {
    world: &'a World,
    running: Running,
    place: String,
}

impl<'a> Demo<'a> {
    fn start(world: &'a World) -> Self {
        let words = ["demo", "--no-watch", "--speed", "20"];
        let mut running = Running::start(world.qd(&words), "The demo listens");
        assert_eq!(running.next_line(), "Look at it with:\n");
        let place = running.next_line();
        Self { world, running, place }
    }

    fn ask(&self, command: &[&str]) -> Outcome {
        let mut asked = self.world.qd(command);
        for word in self.place.split_whitespace().filter(|word| word.contains('=')) {
            let (name, value) = word.split_once('=').expect("a variable");
            asked.env(name, value);
        }
        Outcome::of(asked.output().expect("qd runs"))
    }

    fn wait(&self, state: &str) {
        self.ask(&["wait", "--until", state, "--timeout", "120"]).expect(0);
    }

    fn sessions(&self) -> Vec<Value> {
        let board = self.ask(&["status", "--json"]).expect(0).json();
        board["sessions"].as_array().expect("sessions").clone()
    }

    fn end(self) {
        assert_eq!(self.running.stop(Signal::INT), Some(0));
        let left = fs::read_dir(self.world.path("tmp")).expect("a folder");
        assert_eq!(left.count(), 0);
    }
}

#[test]
fn recorded_sessions_are_on_a_board_of_their_own() {
    let world = World::new();
    let demo = Demo::start(&world);
    for state in ["needs-permission", "awaiting-input", "task-complete,idle,error"] {
        demo.wait(state);
    }
    let sessions = demo.sessions();
    assert!(sessions.len() >= 3, "{sessions:?}");
    // The operator's own daemon would be here; the demo is not.
    world.run(&["status"]).expect(3);
    demo.end();
}

#[test]
fn what_a_recording_asks_is_answered_and_nothing_else_is_done_to_it() {
    let world = World::new();
    let demo = Demo::start(&world);
    let answerable = |session: &Value| {
        let requests = session["requests"].as_array().expect("requests");
        requests.iter().any(|one| one["kind"] == "permission" && one["way"] == "recording")
    };
    // Gemini CLI's is on the board, too, and is not answered from here.
    let asking = (0..ATTEMPTS_MAX).find_map(|_| {
        demo.wait("needs-permission");
        demo.sessions().into_iter().find(answerable)
    });
    let id = asking.expect("one that can be answered")["sessionId"].clone();
    let id = id.as_str().expect("an id");
    let told = demo.ask(&["approve", id, "--json"]).expect(0).out;
    let told: Value = serde_json::from_str(&told).expect("JSON");
    assert!(told["decisionId"].is_string() && told["state"].is_string(), "{told}");
    for command in [&["send", id, "hello"][..], &["interrupt", id], &["stop", id]] {
        let refused = demo.ask(command);
        assert!(refused.code != Some(0), "{refused:?}");
        assert!(refused.err.contains("this is a recording"), "{refused:?}");
    }
    // It goes on: what was answered is confirmed by what the recording says next.
    let is_confirmed = |_| {
        let records = demo.ask(&["audit", "--json", "--session", id]).out;
        records.contains("confirmed")
    };
    assert!((0..ATTEMPTS_MAX).any(is_confirmed));
    demo.end();
}

#[test]
fn without_a_terminal_the_demo_says_so_and_leaves_nothing() {
    let world = World::new();
    let outcome = world.run(&["demo"]).expect(1);
    assert!(outcome.err.contains("--no-watch"), "{outcome:?}");
    assert_eq!(fs::read_dir(world.path("tmp")).expect("a folder").count(), 0);
    world.run(&["demo", "--speed", "0"]).expect(2);
}
