//! `kill -9` while hooks of many sessions arrive: each is taken once, in order, and the board is
//! that of a daemon nobody killed.

use std::sync::mpsc::{self, Receiver};
use std::time::Instant;

use qd_sources::hook_intake::Frame;
use serde_json::Value;

use crate::dice::Dice;
use crate::recorded::{Story, dated};
use crate::reference::Reference;
use crate::world::{GENEROUS, Place, World, now, until};

const KILLS: usize = 14;
const SENDERS: usize = 4;

#[test]
fn hooks_are_taken_once_and_in_order_however_often_the_daemon_is_killed() {
    let mut dice = Dice::cast();
    let world = World::new();
    let place = world.place("d");
    let clients = [("claude-code", "claude-code"), ("codex", "codex"), ("gemini-cli", "gemini")];
    let mut stories = Story::hooks(&mut dice, &clients);
    stories.truncate(48);
    std::thread::scope(|scope| {
        let (done, ends) = mpsc::channel();
        for nth in 0..SENDERS {
            let (place, stories, done) = (&place, &stories, done.clone());
            scope.spawn(move || {
                let mine: Vec<usize> = (nth..stories.len()).step_by(SENDERS).collect();
                let longest = mine.iter().map(|one| stories[*one].lines.len()).max().unwrap_or(0);
                // One hook of each story in turn, as of agents that work side by side.
                for turn in 0..longest {
                    for one in &mine {
                        let Some(line) = stories[*one].lines.get(turn) else { continue };
                        let line = dated(line, now());
                        let payload = format!(r#"{{"story":{one},"turn":{turn},{}"#, &line[1..]);
                        place.hook(stories[*one].harness, &payload);
                        // Nobody counts any more once there were kills enough.
                        let _ = done.send(());
                    }
                }
            });
        }
        drop(done);
        kill_again_and_again(&place, &mut dice, &ends);
    });
    assert_eq!(place.lost(), 0, "no forwarder gave up");

    let daemon = place.serve();
    until("the spool is empty", || place.spooled() == 0);
    daemon.stop();
    let frames = place.frames();
    let sent: Vec<Vec<u64>> =
        stories.iter().map(|story| (0..story.lines.len() as u64).collect()).collect();
    assert_eq!(taken(&frames, stories.len()), sent, "each hook once, in its order");
    let daemon = place.serve();
    Reference::of(&frames).check(&place);
    daemon.stop();
    assert_eq!(place.frames().len(), frames.len(), "looking changes nothing");
}

/// Each daemon lives for some hooks, sometimes for none and sometimes too short to listen; then
/// there is none for some. Until nobody sends any more.
fn kill_again_and_again(place: &Place, dice: &mut Dice, ends: &Receiver<()>) {
    let wait_for = |count: usize| (0..count).all(|_| ends.recv_timeout(GENEROUS).is_ok());
    let begun = Instant::now();
    let (mut kills, mut sending) = (0, true);
    while sending || kills < KILLS {
        assert!(begun.elapsed() < GENEROUS, "the senders hang");
        let mut daemon = place.start();
        if dice.below(3) > 0 {
            daemon.wait_until_it_listens();
        }
        sending = wait_for(dice.below(24));
        daemon.kill();
        kills += 1;
        sending &= wait_for(dice.below(8));
    }
    println!("{kills} kills in {:?}", begun.elapsed());
}

/// Which turns of each story the journal has, in the journal's order.
fn taken(frames: &[Frame], stories: usize) -> Vec<Vec<u64>> {
    let mut taken = vec![Vec::new(); stories];
    for frame in frames {
        let said: Value = serde_json::from_slice(&frame.payload).expect("JSON");
        let (story, turn) = (&said["story"], &said["turn"]);
        taken[story.as_u64().expect("a number") as usize].push(turn.as_u64().expect("a number"));
    }
    taken
}
