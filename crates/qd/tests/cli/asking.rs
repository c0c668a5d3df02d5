//! The commands that ask the daemon, and how they end.

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
