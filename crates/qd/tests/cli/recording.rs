//! What is recorded can be replayed, and holds no secret.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::world::{GENEROUS, Outcome, Running, World};

fn recorder(world: &World, arguments: &[&str]) -> Running {
    let out = world.path("capture");
    let mut command = world.qd(&["record", "--out", out.to_str().expect("text")]);
    command.args(arguments);
    Running::start_saying_on_stderr(command, "Recording into")
}

/// Waits until so many signals of an agent are on disk: they come to the recorder after the hook
/// was answered.
#[track_caller]
fn recorded(world: &World, harness: &str, count: usize) {
    let file = world.path("capture").join(harness).join("signals.jsonl");
    let begun = Instant::now();
    let is_hook = |line: &&str| line.contains(r#""source":"hook""#);
    let hooks = |text: String| text.lines().filter(is_hook).count();
    let lines = || fs::read_to_string(&file).map_or(0, hooks);
    while lines() < count {
        assert!(begun.elapsed() < GENEROUS, "{} of {count} signals", lines());
        std::thread::yield_now();
    }
}

/// The states of a replay, one after the other.
fn states(replay: &Outcome) -> Vec<String> {
    let lines = replay.out.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    lines.map(|line| line["state"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_recording_replays_to_the_states_that_were_seen() {
    let world = World::new();
    let _daemon = world.daemon();
    let recorder = recorder(&world, &[]);
    world.agent_starts("s-1");
    world.agent_asks("s-1");
    world.run(&["wait", "--until", "needs-permission", "--timeout", "60"]).expect(0);
    let home = world.path("home");
    let secret = format!("export API_KEY=hunter2; cat {}/x # ann", home.display());
    world.hook(json!({"session_id": "s-1", "hook_event_name": "UserPromptSubmit",
        "prompt": secret}));
    recorded(&world, "claude_code", 4);
    assert_eq!(recorder.stop(Signal::INT), Some(0));

    let capture = world.path("capture");
    let signals = fs::read_to_string(capture.join("signals.jsonl")).expect("a capture");
    let hooks = signals.lines().filter(|line| line.contains(r#""source":"hook""#)).count();
    assert_eq!(hooks, 4, "{signals}");
    assert!(signals.contains("export API_KEY=REDACTED; cat /home/me/x # me"), "{signals}");
    assert!(!signals.contains("hunter2") && !signals.contains(home.to_str().expect("text")));
    let replay = world.run(&["replay", capture.to_str().expect("text"), "--json"]).expect(0);
    let states = states(&replay);
    assert!(states.contains(&"needs_permission".to_owned()), "{states:?}");
    assert_eq!(states.last().map(String::as_str), Some("thinking"), "{states:?}");
}

#[test]
fn one_session_can_be_recorded_alone() {
    let world = World::new();
    let _daemon = world.daemon();
    world.agent_starts("wanted-1");
    let recorder = recorder(&world, &["wanted-1"]);
    world.agent_starts("other-2");
    world.agent_asks("wanted-1");
    recorded(&world, "claude_code", 2);
    assert_eq!(recorder.stop(Signal::TERM), Some(0));
    let signals = fs::read_to_string(world.path("capture/signals.jsonl")).expect("a capture");
    assert!(signals.contains("wanted-1") && !signals.contains("other-2"), "{signals}");
    world.run(&["record", "nobody", "--out", "/nowhere"]).expect(4);
}

#[test]
fn several_agents_make_several_captures() {
    let world = World::new();
    let _daemon = world.daemon();
    let recorder = recorder(&world, &[]);
    world.agent_starts("s-1");
    let mut codex = world.command(env!("CARGO_BIN_EXE_qd-hook"));
    codex.args(["send", "--harness", "codex"]);
    let payload = json!({"session_id": "c-1", "hook_event_name": "UserPromptSubmit"});
    codex.stdin(fs::File::open(world.write("payload", &payload.to_string())).expect("open"));
    assert!(codex.status().expect("it runs").success());
    recorded(&world, "claude_code", 1);
    recorded(&world, "codex", 1);
    assert_eq!(recorder.stop(Signal::INT), Some(0));
    for harness in ["claude_code", "codex"] {
        let folder = world.path("capture").join(harness);
        world.run(&["replay", folder.to_str().expect("text")]).expect(0);
    }
}

#[test]
fn nothing_is_overwritten_and_an_empty_recording_leaves_nothing() {
    let world = World::new();
    let _daemon = world.daemon();
    let kept = world.write("kept/notes.txt", "mine");
    let folder = world.path("kept");
    let outcome = world.run(&["record", "--out", folder.to_str().expect("text")]).expect(1);
    assert!(outcome.err.contains("not empty"), "{outcome:?}");
    assert_eq!(fs::read_to_string(kept).expect("there"), "mine");
    let empty = world.path("empty");
    world.run(&["record", "--for", "0", "--out", empty.to_str().expect("text")]).expect(0);
    assert!(!empty.exists());
}

#[test]
fn a_daemon_that_stops_ends_the_recording_and_keeps_it() {
    let world = World::new();
    let daemon = world.daemon();
    let recorder = recorder(&world, &[]);
    world.agent_starts("s-1");
    recorded(&world, "claude_code", 1);
    assert_eq!(daemon.stop(Signal::TERM), Some(0));
    assert_eq!(recorder.ended(), Some(0));
    assert!(world.path("capture/signals.jsonl").is_file());
}

#[test]
fn raw_signals_are_for_admins_only() {
    let world = World::new();
    let daemon = world.daemon();
    let (_, rest) = daemon.said[0].split_once("http://").expect("an address");
    let address = rest.split_whitespace().next().expect("an address");
    let answer = |scope: &str| {
        let token = world.run(&["token", "--scope", scope]).expect(0).out;
        let mut stream = TcpStream::connect(address).expect("it listens");
        let head = "GET /api/live/signals HTTP/1.1\r\n";
        let rest = format!("Host: {address}\r\nAuthorization: Bearer {}\r\n\r\n", token.trim());
        stream.write_all([head, &rest].concat().as_bytes()).expect("sent");
        let mut status = [0; 12];
        stream.read_exact(&mut status).expect("an answer");
        String::from_utf8_lossy(&status).into_owned()
    };
    for weak in ["ingest", "observe", "operate"] {
        assert_eq!(answer(weak), "HTTP/1.1 403", "{weak}");
    }
    assert_eq!(answer("admin"), "HTTP/1.1 200");
}
