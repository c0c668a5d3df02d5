//! What is wrong with the machine or with our own files is said while it is wrong, by the doctor,
//! `qd status` and the daemon's health, and everybody still gets an answer.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::world::{GENEROUS, Running, World};

/// What one check of the doctor says: its verdict and its reason.
fn check(world: &World, name: &str) -> Option<(String, String)> {
    let report = world.run(&["doctor", "--json"]).json();
    let found =
        report["checks"].as_array()?.iter().find(|found| found["check"] == name).cloned()?;
    let text = |key: &str| found[key].as_str().expect("text").to_owned();
    Some((text("verdict"), text("reason")))
}

fn is_told(world: &World, name: &str, verdict: &str, reason: &str) -> bool {
    check(world, name).is_some_and(|(is, why)| is == verdict && why.contains(reason))
}

#[track_caller]
fn until(what: &str, mut is: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < GENEROUS, "it never came to that: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The daemon behind a shell that changes something first.
fn daemon_after(world: &World, line: &str, wrapper: &[&str]) -> Running {
    let qd = world.qd(&["serve", "--port", "0"]);
    let script = format!("{line}; exec \"$0\" serve --port 0");
    let mut words: Vec<String> = wrapper.iter().map(|word| (*word).to_owned()).collect();
    words.extend(["sh".to_owned(), "-c".to_owned(), script]);
    words.push(env!("CARGO_BIN_EXE_qd").to_owned());
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).env_clear();
    command.envs(qd.get_envs().filter_map(|(key, value)| Some((key, value?))));
    Running::start(command, "Quarterdeck listens")
}

/// The whole attack: decisions and entries are on record, the journal is turned into garbage, and
/// the daemon begins a new one. Everything used to look healthy.
#[test]
fn a_damaged_journal_is_told_by_the_doctor_the_status_and_the_audit() {
    let world = World::new();
    let daemon = world.daemon();
    world.agent_starts("s-1");
    assert_eq!(daemon.stop(Signal::TERM), Some(0));
    let journal = world.state().join("journal.db");
    fs::write(&journal, "no database ".repeat(1_000)).expect("damaged");
    let daemon = world.daemon();
    let doctor = world.run(&["doctor"]).expect(1);
    assert!(doctor.out.contains("journal was damaged and set aside"), "{doctor:?}");
    let status = world.run(&["status"]).expect(0);
    assert!(status.out.contains("! The journal was damaged"), "{status:?}");
    let audit = world.run(&["audit", "--verify"]).expect(6);
    assert!(audit.err.contains("journal.db.damaged-1"), "{audit:?}");
    assert!(!audit.out.contains("each as it was written"), "{audit:?}");
    assert_eq!(daemon.stop(Signal::TERM), Some(0));
    // Also without a daemon, and until somebody says that they know.
    assert!(is_told(&world, "journal gap", "bad", "damaged"));
    world.run(&["audit", "--verify"]).expect(6);
    fs::remove_file(world.state().join("journal.db.gaps")).expect("seen");
    world.run(&["audit", "--verify"]).expect(0);
}

#[test]
fn a_journal_that_was_taken_away_between_two_runs_is_told() {
    let world = World::new();
    let daemon = world.daemon();
    world.agent_starts("s-1");
    assert_eq!(daemon.stop(Signal::TERM), Some(0));
    fs::remove_file(world.state().join("journal.db")).expect("taken away");
    let audit = world.run(&["audit", "--verify"]).expect(6);
    assert!(audit.err.contains("taken away or replaced"), "before any daemon: {audit:?}");
    let _daemon = world.daemon();
    assert!(is_told(&world, "journal gap", "bad", "taken away or replaced"));
    world.run(&["audit", "--verify"]).expect(6);
}

/// `rm -f journal.db*` while the daemon runs, and `kill -9` after that: nothing is lost.
#[test]
fn a_journal_deleted_under_the_daemon_is_there_again_at_once() {
    let world = World::new();
    let daemon = world.daemon();
    world.agent_starts("s-1");
    let journal = world.state().join("journal.db");
    for part in ["", "-wal", "-shm"] {
        let path = format!("{}{part}", journal.display());
        fs::remove_file(path).expect("it was there");
    }
    // Nothing is written meanwhile: it is noticed all the same.
    until("the journal is back", || journal.exists());
    until("it is told", || is_told(&world, "journal place", "warn", "written anew"));
    world.agent_starts("s-2");
    assert_eq!(daemon.stop(Signal::KILL), None);
    let _daemon = world.daemon();
    let board = world.run(&["status", "--json"]).expect(0).json();
    assert_eq!(board["sessions"].as_array().map(Vec::len), Some(2), "{board}");
    world.run(&["audit", "--verify"]).expect(0);
}

#[test]
fn a_journal_that_another_program_has_locked_is_told_while_it_is() {
    let world = World::new();
    let _daemon = world.daemon();
    world.agent_starts("s-1");
    let other = rusqlite::Connection::open(world.state().join("journal.db")).expect("open");
    other.execute_batch("BEGIN EXCLUSIVE").expect("locked");
    world.agent_starts("s-2");
    until("it is told", || is_told(&world, "journal", "bad", "another program has it locked"));
    let status = world.run(&["status"]).expect(0);
    assert!(status.out.contains("! The journal can't be written"), "{status:?}");
    other.execute_batch("ROLLBACK").expect("let go");
    until("it is over", || is_told(&world, "journal", "ok", "sessions"));
    until("the hook is taken", || {
        let board = world.run(&["status", "--json"]).expect(0).json();
        board["sessions"].as_array().map(Vec::len) == Some(2)
    });
}

#[test]
fn few_open_files_are_told_and_everybody_is_answered() {
    let world = World::new();
    let _daemon = daemon_after(&world, "ulimit -n 64", &[]);
    world.agent_starts("s-1");
    assert!(is_told(&world, "open files", "warn", "no more than 64 may be"));
    let board = world.run(&["status", "--json"]).expect(0).json();
    assert_eq!(board["sessions"].as_array().map(Vec::len), Some(1), "{board}");
}

/// In a user namespace of its own: the limit is the daemon's and nobody else's.
#[test]
fn exhausted_watches_are_told_while_they_are() {
    let world = World::new();
    fs::create_dir_all(world.path("home/.claude/projects/a")).expect("made");
    let limit = "echo 2 > /proc/sys/user/max_inotify_watches";
    let _daemon = daemon_after(&world, limit, &["/usr/bin/unshare", "--user", "--map-root-user"]);
    until("it is told", || is_told(&world, "file watches", "warn", "no more file watches"));
    world.agent_starts("s-1");
    let status = world.run(&["status"]).expect(0);
    assert!(status.out.contains("! The kernel grants no more file watches"), "{status:?}");
    let json: Value = world.run(&["status", "--json"]).expect(0).json();
    assert_eq!(json["sessions"].as_array().map(Vec::len), Some(1));
}

/// Hooks that the spool could not keep are counted, and the daemon that takes the rest says so.
#[test]
fn dropped_hooks_are_told_by_the_daemon_that_drains_the_spool() {
    let world = World::new();
    world.agent_starts("s-1");
    fs::write(world.state().join("spool/lost"), "sssf").expect("written");
    let daemon = world.daemon();
    until("it is told", || {
        let status = world.run(&["status"]).expect(0).out;
        status.contains("4 hooks were dropped: 3 that newer ones of their session superseded")
    });
    assert_eq!(daemon.stop(Signal::TERM), Some(0));
    let _daemon = world.daemon();
    let status = world.run(&["status"]).expect(0).out;
    assert!(!status.contains("hooks were dropped"), "the last daemon told it: {status}");
}
