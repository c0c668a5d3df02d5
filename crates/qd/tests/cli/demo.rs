//! The demo has a daemon of its own and leaves nothing behind.

use std::fs;

use rustix::process::Signal;

use crate::world::{Outcome, Running, World};

#[test]
fn recorded_sessions_are_on_a_board_of_their_own() {
    let world = World::new();
    let mut demo =
        Running::start(world.qd(&["demo", "--no-watch", "--speed", "20"]), "The demo listens");
    assert_eq!(demo.next_line(), "Look at it with:\n");
    let line = demo.next_line();
    let ask = |command: &[&str]| {
        let mut asked = world.qd(command);
        for word in line.split_whitespace().filter(|word| word.contains('=')) {
            let (name, value) = word.split_once('=').expect("a variable");
            asked.env(name, value);
        }
        Outcome::of(asked.output().expect("qd runs"))
    };
    for state in ["needs-permission", "awaiting-input", "task-complete,idle,error"] {
        ask(&["wait", "--until", state, "--timeout", "120"]).expect(0);
    }
    let board = ask(&["status", "--json"]).expect(0).json();
    let sessions = board["sessions"].as_array().expect("sessions");
    assert!(sessions.len() >= 3, "{board}");
    // The operator's own daemon would be here; the demo is not.
    world.run(&["status"]).expect(3);
    assert_eq!(demo.stop(Signal::INT), Some(0));
    assert_eq!(fs::read_dir(world.path("tmp")).expect("a folder").count(), 0);
}

#[test]
fn without_a_terminal_the_demo_says_so_and_leaves_nothing() {
    let world = World::new();
    let outcome = world.run(&["demo"]).expect(1);
    assert!(outcome.err.contains("--no-watch"), "{outcome:?}");
    assert_eq!(fs::read_dir(world.path("tmp")).expect("a folder").count(), 0);
    world.run(&["demo", "--speed", "0"]).expect(2);
}
