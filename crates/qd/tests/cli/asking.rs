//! The commands that ask the daemon, and how they end.

use serde_json::json;

use crate::world::World;

#[test]
fn without_a_daemon_every_question_ends_with_3() {
    let world = World::new();
    for command in [
        &["status"][..],
        &["status", "--json"],
        &["explain", "x"],
        &["wait", "--until", "idle"],
        &["dismiss", "x"],
        &["archive", "x"],
        &["archive", "--older-than", "7d"],
        &["unarchive", "x"],
        &["record"],
    ] {
        let outcome = world.run(command).expect(3);
        assert!(outcome.err.contains("no daemon runs here"), "{outcome:?}");
    }
}

#[test]
fn a_second_daemon_says_where_the_first_is() {
    let world = World::new();
    let first = world.daemon();
    let second = world.run(&["serve", "--port", "0"]).expect(1);
    for told in [&first.pid().to_string(), "http://127.0.0.1:", "qd.sock"] {
        assert!(second.err.contains(told), "{second:?}");
    }
    assert_eq!(first.stop(rustix::process::Signal::TERM), Some(0));
    assert!(!world.socket().exists());
}

#[test]
fn a_session_is_shown_waited_for_explained_and_dismissed() {
    let world = World::new();
    let _daemon = world.daemon();
    let empty = world.run(&["status"]).expect(0);
    assert!(empty.out.starts_with("No agent has been seen here yet."), "{empty:?}");
    world.agent_starts("s-1");
    world.agent_asks("s-1");
    let asks = ["wait", "s-1", "--until", "needs-permission", "--timeout", "60", "--json"];
    let card = world.run(&asks).expect(0).json();
    assert_eq!((&card["vendorId"], &card["requests"][0]["tool"]), (&"s-1".into(), &"Bash".into()));
    let status = world.run(&["status"]).expect(0);
    assert!(status.out.contains("Needs You (1)") && status.out.contains("Bash"), "{status:?}");
    let explained = world.run(&["explain", "s-1"]).expect(0);
    assert!(explained.out.contains("evidence  hook"), "{explained:?}");
    world.run(&["dismiss", "s-1"]).expect(0);
    world.run(&["wait", "s-1", "--until", "delivered,autonomous", "--timeout", "60"]).expect(0);
    for unknown in [["explain", "nobody"], ["dismiss", "nobody"]] {
        world.run(&unknown).expect(4);
    }
    world.run(&["wait", "--until", "usage-limit", "--timeout", "0"]).expect(5);
    world.run(&["wait"]).expect(2);
}

#[test]
fn what_is_old_is_archived_at_once_and_brought_back() {
    let world = World::new();
    let _daemon = world.daemon();
    for session in ["s-1", "s-2"] {
        world.posts(&json!({"session_id": session, "hook_event_name": "PermissionRequest",
            "tool_name": "Bash", "tool_input": {"command": "make"}}));
        let asks = ["wait", session, "--until", "needs-permission", "--timeout", "60"];
        world.run(&asks).expect(0);
    }
    world.agent_starts("alive");
    let young = world.run(&["archive", "--older-than", "1h"]).expect(0);
    assert_eq!(young.out, "Nothing to archive\n");
    let all = world.run(&["archive", "--older-than", "0m"]).expect(0);
    assert!(
        all.out.starts_with("Moved to History: 2 sessions\nUndo: qd unarchive sess_"),
        "{all:?}"
    );
    let status = world.run(&["status"]).expect(0);
    assert!(!status.out.contains("Bash") && status.out.contains("Autonomous (1)"), "{status:?}");
    let alive = world.run(&["archive", "alive"]).expect(1);
    assert!(alive.err.contains("still running"), "{alive:?}");
    let again = world.run(&["archive", "s-1"]).expect(1);
    assert!(again.err.contains("1 session not archived: already in History"), "{again:?}");

    let back = world.run(&["unarchive", "s-1", "s-2"]).expect(0);
    assert_eq!(back.out, "Moved back: 2 sessions\n");
    let status = world.run(&["status"]).expect(0);
    assert!(status.out.contains("Needs You (2)"), "{status:?}");
    world.run(&["archive", "nobody"]).expect(4);
    world.run(&["archive"]).expect(2);
    world.run(&["archive", "s-1", "--older-than", "7d"]).expect(2);
    world.run(&["archive", "--older-than", "soon"]).expect(2);
}

#[test]
fn completions_are_there_for_every_command() {
    let world = World::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = world.run(&["completions", shell]).expect(0).out;
        for command in ["watch", "record", "demo", "doctor", "service", "serve"] {
            assert!(script.contains(command), "{shell} knows no {command}");
        }
    }
    world.run(&["completions", "tcl"]).expect(2);
}

#[test]
fn every_command_explains_itself() {
    let world = World::new();
    let help = world.run(&["--help"]).expect(0).out;
    assert!(help.contains("Exit codes"), "{help}");
    for command in ["watch", "record", "demo", "doctor", "service", "serve", "status", "wait"] {
        assert!(help.contains(&format!("\n  {command}")), "{help}");
        assert!(world.run(&[command, "--help"]).expect(0).out.contains("Usage: qd"));
    }
}
