//! Grok Build: it reads Claude Code's settings and runs the hooks in them, each to its end. It has
//! no card of Claude Code's, and nothing of ours holds it.

use qd_testbed::{Client, Script};
use serde_json::Value;

use crate::world::World;

/// `grok -p`, in a home where Claude Code's hooks are installed: what it printed.
fn asked(world: &World) -> Vec<String> {
    let grok = Client::grok(&world.home, &world.model).unwrap();
    let run = grok.arguments(["-p", "say hi"]).headless().unwrap();
    let status = run.wait_for_exit().unwrap();
    assert!(status.success(), "{:?} {:?}", run.lines(), run.errors());
    run.lines()
}

#[test]
fn claude_codes_hooks_neither_hold_it_nor_take_it_for_claude_code() {
    // It asks for a title, too.
    let world = World::served(Script::new().says("Hi there.").says("Hi there."));
    let claude = Client::claude_code(&world.home, &world.model).unwrap();
    world.install_hooks("claude-code", &claude);
    // Our Stop hook would wait for a day.
    let said = asked(&world);
    assert!(said.iter().any(|line| line.contains("Hi there.")), "{said:?}");
    let doctor = world.qd(&["doctor", "--json"]).1;
    let doctor: Value = serde_json::from_str(doctor.lines().next().unwrap_or_default()).unwrap();
    let checks = doctor["checks"].as_array().cloned().unwrap_or_default();
    let readers = checks.iter().find(|check| check["check"] == "other readers");
    let reason = readers.and_then(|check| check["reason"].as_str()).unwrap_or_default();
    // It did run them: the test would prove nothing otherwise.
    assert!(reason.contains("Grok Build (") && reason.contains(" hooks ignored)"), "{checks:#?}");
    let cards = world.status();
    assert!(cards.iter().all(|card| card["harness"] != "claude_code"), "{cards:#?}");
}
