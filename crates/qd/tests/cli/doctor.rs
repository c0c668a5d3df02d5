//! The doctor finds nothing wrong where nothing is, and says what is where it is.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::world::{Outcome, World};

/// The verdict of one check.
#[track_caller]
fn verdict(outcome: &Outcome, check: &str) -> String {
    let report = outcome.json();
    let checks = report["checks"].as_array().expect("checks");
    let found = checks.iter().find(|found| found["check"] == check);
    let found = found.unwrap_or_else(|| panic!("no check {check}: {report:#}"));
    found["verdict"].as_str().expect("a verdict").to_owned()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("there").permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
}

#[test]
fn a_healthy_set_up_has_nothing_bad() {
    let world = World::new();
    let _daemon = world.daemon();
    fs::create_dir_all(world.path("home/.claude/projects")).expect("made");
    world.run(&["hooks", "install", "claude-code", "--yes"]).expect(0);
    let outcome = world.run(&["doctor", "--json"]).expect(0);
    let report = outcome.json();
    assert_eq!(report["ok"], true);
    for check in report["checks"].as_array().expect("checks") {
        // How many files may be watched is the machine's.
        if check["check"] != "file watches" {
            assert_eq!(check["verdict"], "ok", "{check:#}");
        }
        assert!(check["reason"].as_str().is_some_and(|reason| !reason.is_empty()));
    }
    let told = world.run(&["doctor"]).expect(0).out;
    assert!(told.contains("ok     daemon") && told.contains("claude_code"), "{told}");
}

#[test]
fn a_clients_version_is_told_beside_the_tested_ones_and_what_could_not_be_read() {
    let world = World::new();
    let line = r#"{"type":"user","uuid":"u1","sessionId":"s1","version":"2.1.999","cwd":"/w","timestamp":"2026-11-18T08:00:00.000Z","message":{"role":"user","content":"hello"}}"#;
    let file = world.write("home/.claude/projects/-w/s1.jsonl", &format!("{line}\n"));
    let _daemon = world.daemon();
    for event in ["UserPromptSubmit", "BrandNewHook"] {
        world.hook(json!({"session_id": "s1", "hook_event_name": event, "prompt": "hello",
            "transcript_path": file, "cwd": "/w"}));
    }
    let deadline = Instant::now() + Duration::from_secs(30);
    let told = loop {
        let outcome = world.run(&["doctor", "--json"]);
        let report = outcome.json();
        let checks = report["checks"].as_array().expect("checks");
        let client = checks.iter().find(|check| check["check"] == "client");
        let reason = client.and_then(|client| client["reason"].as_str());
        if let Some(reason) = reason.filter(|reason| reason.contains("2.1.999")) {
            let verdict = client.map(|client| &client["verdict"]);
            assert_eq!(verdict, Some(&json!("ok")), "a newer version is no alarm");
            break reason.to_owned();
        }
        assert!(Instant::now() < deadline, "{report:#}");
    };
    assert!(told.starts_with("Claude Code: 2.1.999, newer than tested (2.1.325 to "), "{told}");
    assert!(told.ends_with("1 message could not be read"), "{told}");
}

#[test]
fn a_missing_daemon_is_bad_and_says_what_to_do() {
    let world = World::new();
    let outcome = world.run(&["doctor"]).expect(1);
    assert!(outcome.out.contains("BAD    daemon") && outcome.out.contains("→"), "{outcome:?}");
    assert!(outcome.err.contains("bad"), "{outcome:?}");
    assert!(!world.state().exists(), "looking changes nothing");
}

#[test]
fn open_rights_are_found_and_repaired() {
    let world = World::new();
    let _daemon = world.daemon();
    let token = world.state().join("tokens/admin");
    set_mode(&world.state(), 0o755);
    set_mode(&token, 0o644);
    set_mode(&world.socket(), 0o666);
    let outcome = world.run(&["doctor", "--json"]).expect(1);
    assert_eq!(verdict(&outcome, "state folder"), "bad");
    assert_eq!(verdict(&outcome, "socket"), "bad");
    assert_eq!(mode(&token), 0o644, "looking changes nothing");
    let outcome = world.run(&["doctor", "--fix", "--json"]).expect(0);
    assert_eq!(verdict(&outcome, "state folder"), "fixed");
    assert_eq!(verdict(&outcome, "socket"), "fixed");
    let modes = [&world.state(), &token, &world.socket()].map(|path| mode(path));
    assert_eq!(modes, [0o700, 0o600, 0o600]);
}

#[test]
fn a_dead_socket_goes_and_another_file_stays() {
    let world = World::new();
    fs::create_dir_all(world.socket().parent().expect("a folder")).expect("made");
    drop(UnixListener::bind(world.socket()).expect("bound"));
    let outcome = world.run(&["doctor", "--fix", "--json"]).expect(1);
    assert_eq!(verdict(&outcome, "socket"), "fixed");
    assert!(!world.socket().exists());
    fs::write(world.socket(), "mine").expect("written");
    let outcome = world.run(&["doctor", "--fix", "--json"]).expect(1);
    assert_eq!(verdict(&outcome, "socket"), "bad");
    assert_eq!(fs::read(world.socket()).expect("there"), b"mine");
}

#[test]
fn the_spool_tells_of_waiting_lost_and_odd_files() {
    let world = World::new();
    world.agent_starts("s-1");
    let spool = world.state().join("spool");
    fs::write(spool.join("lost"), "ffu").expect("written");
    fs::create_dir_all(spool.join("aside")).expect("made");
    let (old, new) = (spool.join("aside/old"), spool.join("aside/new"));
    for file in [&old, &new, &spool.join("lost")] {
        fs::write(file, if file.ends_with("lost") { "ffu" } else { "?" }).expect("written");
        set_mode(file, 0o600);
    }
    set_mode(&spool.join("aside"), 0o700);
    let long_ago = SystemTime::now() - Duration::from_secs(30 * 24 * 60 * 60);
    fs::File::options().write(true).open(&old).expect("open").set_modified(long_ago).expect("set");
    let outcome = world.run(&["doctor", "--json"]).expect(1);
    for check in ["spool", "lost hooks", "set aside"] {
        assert_eq!(verdict(&outcome, check), "warn", "{outcome:?}");
    }
    assert!(outcome.out.contains("1 hooks wait for a daemon"), "{outcome:?}");
    assert!(outcome.out.contains("2 because nothing else could be dropped"), "{outcome:?}");
    world.run(&["doctor", "--fix"]).expect(1);
    assert_eq!((old.exists(), new.exists()), (false, true));
}

#[test]
fn hooks_that_drifted_are_bad_and_vendor_files_are_left_alone() {
    let world = World::new();
    let _daemon = world.daemon();
    fs::create_dir_all(world.path("home/.claude")).expect("made");
    let hooks = |outcome: &Outcome| verdict(outcome, "hooks");
    assert_eq!(hooks(&world.run(&["doctor", "--json"]).expect(0)), "warn");
    world.run(&["hooks", "install", "claude-code", "--yes"]).expect(0);
    let file = world.path("home/.claude/settings.json");
    let text = fs::read_to_string(&file).expect("settings");
    let mut settings: Value = serde_json::from_str(&text).expect("JSON");
    let removed = settings["hooks"].as_object_mut().expect("hooks").remove("Stop");
    assert!(removed.is_some());
    fs::write(&file, settings.to_string()).expect("written");
    let drifted = fs::read(&file).expect("there");
    assert_eq!(hooks(&world.run(&["doctor", "--json", "--fix"]).expect(1)), "bad");
    assert_eq!(fs::read(&file).expect("there"), drifted);
    fs::write(&file, "{ half").expect("written");
    assert_eq!(hooks(&world.run(&["doctor", "--json", "--fix"]).expect(1)), "bad");
    assert_eq!(fs::read(&file).expect("there"), b"{ half");
}

#[test]
fn a_daemon_in_another_runtime_folder_is_found() {
    let world = World::new();
    let mut command = world.qd(&["serve", "--port", "0"]);
    command.env_remove("XDG_RUNTIME_DIR");
    let daemon = crate::world::Running::start(command, "Quarterdeck listens");
    let outcome = world.run(&["doctor", "--json"]).expect(1);
    assert_eq!(verdict(&outcome, "runtime folder"), "bad");
    assert_eq!(daemon.stop(Signal::TERM), Some(0));
}

#[test]
fn a_forwarder_that_is_gone_or_broken_is_bad() {
    let world = World::new();
    fs::create_dir_all(world.path("bin")).expect("made");
    let qd = world.path("bin/qd");
    if fs::hard_link(env!("CARGO_BIN_EXE_qd"), &qd).is_err() {
        fs::copy(env!("CARGO_BIN_EXE_qd"), &qd).expect("copied");
    }
    let doctor = || {
        let output = world.command(&qd).args(["doctor", "--json"]).output();
        Outcome::of(output.expect("it runs")).expect(1)
    };
    assert_eq!(verdict(&doctor(), "forwarder"), "bad");
    world.program("bin/qd-hook", "echo qd-hook 0.0.0-other");
    assert_eq!(verdict(&doctor(), "forwarder"), "bad");
    world.program("bin/qd-hook", &format!("echo qd-hook {}", env!("CARGO_PKG_VERSION")));
    assert_eq!(verdict(&doctor(), "forwarder"), "ok");
}

#[test]
fn layers_that_cannot_be_used_are_told_with_their_place() {
    let world = World::new();
    let _daemon = world.daemon();
    let folder = world.path("home/.config/quarterdeck");
    fs::create_dir_all(&folder).expect("made");
    let write = |text: &str| fs::write(folder.join("layers.toml"), text).expect("written");
    write("[[rule]]\nlabel = \"x\"\n");
    assert_eq!(verdict(&world.run(&["doctor", "--json"]), "layers"), "ok");
    write("[[rule]]\nicon = \"unicorn\"\n\n[[rule]]\nwhen = { command = \"(\" }\n");
    let told = world.run(&["doctor"]).out;
    assert!(told.contains("rule 1: `unicorn` is no icon"), "{told}");
    assert!(told.contains("rule 2: the pattern `(`: unclosed group"), "{told}");
    write("rule = [\n");
    let outcome = world.run(&["doctor", "--json"]);
    assert_eq!(verdict(&outcome, "layers"), "warn");
}
