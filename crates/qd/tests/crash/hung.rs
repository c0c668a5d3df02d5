//! A daemon that is stopped in the middle of everything: forwarders leave what they have on disk
//! and go; it goes on as if nothing had been.

use std::collections::BTreeSet;

use rustix::process::Signal;

use crate::dice::Dice;
use crate::recorded::{Story, dated};
use crate::reference::Reference;
use crate::world::{World, now, until};

#[test]
fn hooks_that_met_a_hung_daemon_are_taken_once_when_it_goes_on() {
    let mut dice = Dice::cast();
    let world = World::new();
    let place = world.place("d");
    let stories = Story::hooks(&mut dice, &[("claude-code", "claude-code"), ("codex", "codex")]);
    let daemon = place.serve();
    let payloads: BTreeSet<String> =
        stories.iter().take(24).map(|story| dated(&story.lines[0], now())).collect();
    daemon.signal(Signal::STOP);
    std::thread::scope(|scope| {
        for payload in &payloads {
            scope.spawn(|| place.hook("claude-code", payload));
        }
    });
    // Nobody could have acknowledged one. Each also waits in the socket's queue.
    assert_eq!(place.spooled(), payloads.len());
    daemon.signal(Signal::CONT);
    until("the spool is empty", || place.spooled() == 0);
    let hooks = place.get("/api/health").expect("it answers")["hooks"].clone();
    assert_eq!(hooks, payloads.len());
    daemon.stop();
    let frames = place.frames();
    let text = |payload: &[u8]| String::from_utf8(payload.to_vec()).expect("text");
    assert_eq!(frames.len(), payloads.len());
    assert_eq!(frames.iter().map(|frame| text(&frame.payload)).collect::<BTreeSet<_>>(), payloads);
    let daemon = place.serve();
    Reference::of(&frames).check(&place);
    daemon.stop();
}
