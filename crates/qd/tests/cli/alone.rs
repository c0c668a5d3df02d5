//! `qd` without a command.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

use crate::world::World;

/// The daemon that was started, stopped at the end.
pub struct Started(Pid);

impl Started {
    pub fn by(world: &World) -> Self {
        let told = world.run(&[]).expect(0);
        assert!(told.out.contains("/sign-in#"), "{told:?}");
        let (_, rest) = told.err.split_once("process ").expect("it says which");
        let pid = rest.split(',').next().and_then(|pid| pid.parse().ok()).expect("a number");
        Self(Pid::from_raw(pid).expect("a process"))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::TERM);
    }
}

#[test]
fn a_daemon_is_started_once_and_outlives_the_command() {
    let world = World::new();
    let started = Started::by(&world);
    let stat = fs::read_to_string(format!("/proc/{}/stat", started.0)).expect("it lives");
    let session = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(3));
    assert_eq!(session, Some(started.0.to_string().as_str()), "a session of its own");
    let again = world.run(&[]).expect(0);
    assert!(again.err.is_empty(), "{again:?}");
    let log = fs::read_to_string(world.state().join("qd.log")).expect("a log");
    assert!(log.contains("listening"), "{log}");
}

#[test]
fn a_link_is_for_one_browser_and_browsers_are_listed() {
    let world = World::new();
    let _started = Started::by(&world);
    let link = |arguments: &[&str]| world.run(arguments).expect(0).out;
    let one = link(&["open", "--no-browser"]);
    assert!(one.starts_with("http://127.0.0.1:") && one.contains("/sign-in#"), "{one}");
    assert_ne!(one, link(&["open", "--no-browser"]));
    let elsewhere = link(&["open", "--host", "box.example.ts.net", "--scope", "observe"]);
    assert!(elsewhere.starts_with("https://box.example.ts.net/sign-in#"), "{elsewhere}");
    assert_eq!(link(&["browsers", "--json"]).trim(), "[]");
    let nobody = world.run(&["browsers", "forget", "1234"]).expect(1);
    assert!(nobody.err.contains("no browser of that id"), "{nobody:?}");
    let ingest = world.run(&["open", "--scope", "ingest"]).expect(1);
    assert!(ingest.err.contains("observe, operate or admin"), "{ingest:?}");
}

#[test]
fn a_long_log_is_put_aside() {
    let world = World::new();
    let log = world.write("state/quarterdeck/qd.log", "");
    fs::File::options().write(true).open(&log).expect("open").set_len((8 << 20) + 1).expect("long");
    let _started = Started::by(&world);
    let old = world.state().join("qd.log.old");
    assert_eq!(fs::metadata(old).expect("put aside").len(), (8 << 20) + 1);
    assert!(fs::metadata(log).expect("a new one").len() < 1 << 20);
}

#[test]
fn a_daemon_that_cannot_start_says_why() {
    let world = World::new();
    world.write("state/quarterdeck/journal.db/in-the-way", "");
    let outcome = world.run(&[]).expect(1);
    assert!(
        outcome.err.contains("did not start") && outcome.err.contains("journal"),
        "{outcome:?}"
    );
}
