//! A disk without space: the daemon says so, loses nothing, and goes on when there is some.
//!
//! (A file size limit fails in the middle of a write, as a full disk does, and needs no
//! privileges. It is the daemon's only: forwarders still have their spool.)

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::dice::Dice;
use crate::recorded::{Story, dated};
use crate::reference::Reference;
use crate::world::{World, now, until};

#[test]
fn what_comes_while_the_disk_is_full_is_taken_once_there_is_space() {
    check(Space::Again);
}

#[test]
fn a_daemon_that_is_killed_while_the_disk_is_full_loses_nothing() {
    check(Space::AfterAKill);
}

/// When there is space.
#[derive(PartialEq, Eq)]
enum Space {
    Again,
    AfterAKill,
}

fn check(space: Space) {
    let mut dice = Dice::cast();
    let world = World::new();
    let place = world.place("d");
    let stories = Story::hooks(&mut dice, &[("claude-code", "claude-code")]);
    let lines: Vec<&String> = stories.iter().flat_map(|story| &story.lines).take(30).collect();
    let mut sent = Vec::new();
    let mut send = |line: &str| {
        let payload = dated(line, now());
        place.hook("claude-code", &payload);
        sent.push(payload.into_bytes());
    };
    let mut daemon = place.serve();
    lines[..10].iter().for_each(|line| send(line));
    assert_eq!(place.spooled(), 0);
    may_write(daemon.pid(), Some(0));
    lines[10..20].iter().for_each(|line| send(line));
    assert_eq!(place.spooled(), 10, "the forwarders keep what the daemon cannot");
    let health = place.get("/api/health").expect("it answers");
    assert!(health["journalError"].is_string(), "{health}");
    match space {
        Space::Again => may_write(daemon.pid(), None),
        Space::AfterAKill => {
            daemon.kill();
            daemon = place.serve();
        }
    }
    until("the spool is empty", || place.spooled() == 0);
    lines[20..].iter().for_each(|line| send(line));
    until("it takes hooks again", || place.spooled() == 0);
    let health = place.get("/api/health").expect("it answers");
    assert!(health["journalError"].is_null(), "{health}");
    daemon.stop();
    let frames = place.frames();
    let taken: Vec<Vec<u8>> = frames.iter().map(|frame| frame.payload.clone()).collect();
    assert_eq!(taken, sent, "each once, in order");
    let daemon = place.serve();
    Reference::of(&frames).check(&place);
    daemon.stop();
}

/// Sets how long a file the daemon may write.
fn may_write(daemon: Pid, bytes: Option<u64>) {
    prlimit(Some(daemon), Resource::Fsize, Rlimit { current: bytes, maximum: None })
        .expect("our own child");
}
