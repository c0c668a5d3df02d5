//! From what a client shows to what the daemon says: the real clients, a scripted model.
//!
//! The screen is looked at every two milliseconds; the daemon's word counts when its stream
//! brings it. Negative: the daemon knew before the screen showed it. Nothing is asserted.

#[path = "../tests/live/board.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod board;
#[path = "../tests/live/world.rs"]
#[allow(dead_code, reason = "the tests use more of it")]
mod world;

use std::time::{Duration, Instant};

use qd_testbed::{Client, Key, Reply, Script, Terminal};
use serde_json::{Value, json};

use world::{PATIENCE, World};

const REPETITIONS: usize = 10;
const LOOK_EVERY: Duration = Duration::from_millis(2);

fn main() {
    for hooks in [true, false] {
        let what = if hooks { "Claude Code, hooks" } else { "Claude Code, no hooks" };
        let world = World::served(Script::new());
        let client = Client::claude_code(&world.home, &world.model).unwrap();
        if hooks {
            world.install_hooks("claude-code", &client);
        }
        let call = json!({"command": "touch made", "description": "Make a file"});
        let dialog = "Do you want to proceed?";
        measure(what, &world, &client.in_terminal().unwrap(), dialog, "Bash", &call);
    }
    for (what, hooks, daemon) in [
        ("Codex, hooks", true, false),
        ("Codex, no hooks", false, false),
        ("Codex, its daemon", false, true),
    ] {
        let world = World::served(Script::new());
        let mut client = Client::codex(&world.home, &world.model).unwrap();
        if hooks {
            world.install_hooks("codex", &client);
        }
        if !daemon {
            client = client.argument("--no-daemon");
        }
        let command = format!("touch {}", world.home.path().join("made").display());
        let call = json!({"cmd": command, "sandbox_permissions": "require_escalated",
            "justification": "Need to write outside the workspace"});
        let dialog = "Would you like to run the following command?";
        measure(what, &world, &client.in_terminal().unwrap(), dialog, "exec_command", &call);
    }
}

/// A permission and the end of its turn, again and again.
fn measure(what: &str, world: &World, terminal: &Terminal, dialog: &str, tool: &str, call: &Value) {
    let (mut asked, mut ended) = (Vec::new(), Vec::new());
    for number in 0..REPETITIONS {
        let last = format!("File {number} is made.");
        let said = Reply::says(last.as_str());
        world.model.then(Script::new().replies(Reply::calls(tool, call.clone())).replies(said));
        let from = world.board().len();
        terminal.submit(&format!("make file {number}")).unwrap();
        asked.push(delay(world, from, "needs_permission", || terminal.screen().contains(dialog)));
        let from = world.board().len();
        terminal.press_until_gone(Key::Enter, dialog).unwrap();
        ended.push(delay(world, from, "task_complete", || terminal.screen().contains(&last)));
    }
    print(what, "permission", asked);
    print(what, "turn's end", ended);
}

/// Milliseconds from the screen's word to the daemon's.
fn delay(world: &World, from: usize, state: &str, is_shown: impl Fn() -> bool) -> f64 {
    let deadline = Instant::now() + PATIENCE;
    while !is_shown() {
        assert!(Instant::now() < deadline, "the client does not show {state}");
        std::thread::sleep(LOOK_EVERY);
    }
    let seen = Instant::now();
    let told = world.board().wait_from(from, PATIENCE, |card| world::state(card) == state);
    let told = told.unwrap_or_else(|| panic!("the daemon never says {state}")).at;
    match told.checked_duration_since(seen) {
        Some(later) => later.as_secs_f64() * 1e3,
        None => -(seen - told).as_secs_f64() * 1e3,
    }
}

fn print(what: &str, scenario: &str, mut delays: Vec<f64>) {
    delays.sort_by(f64::total_cmp);
    let at = |share: usize| delays[(delays.len() * share / 100).min(delays.len() - 1)];
    println!(
        "{what:<22} {scenario:<11} p50 {:>6.0} ms  p95 {:>6.0} ms  max {:>6.0} ms  n {}",
        at(50),
        at(95),
        at(100),
        delays.len()
    );
}
