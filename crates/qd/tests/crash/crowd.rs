//! A thousand forwarders at once: every prompt that was acknowledged has its entry in the journal,
//! also where it overtook another one or was typed in the same millisecond.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

use qd_hook_wire::{ACK, Agent, FrameId, Mode};
use qd_session::event::Event;
use qd_session::monitor::Fact;
use qd_sources::hook_intake::{Caller, Frame};

use crate::dice::Dice;
use crate::world::{Place, World, now};

const PROMPTS: usize = 1_000;
/// Few enough that none has more entries than the journal keeps of one session.
const SESSIONS: usize = 8;
const SENDERS: usize = 32;
/// Prompts that fall into the same millisecond, of the same session among them.
const OF_ONE_MILLISECOND: usize = 2 * SESSIONS;

#[test]
fn every_prompt_of_a_thousand_forwarders_has_its_entry() {
    let mut dice = Dice::cast();
    let world = World::new();
    let place = world.place("d");
    let daemon = place.serve();
    let mut frames: Vec<Frame> = (0..PROMPTS).map(prompt).collect();
    // Processes that start together arrive in any order.
    dice.shuffle(&mut frames);
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..SENDERS {
            scope.spawn(|| {
                while let Some(frame) = frames.get(next.fetch_add(1, Ordering::SeqCst)) {
                    assert_eq!(send(&place, frame), ACK, "it is taken");
                }
            });
        }
    });
    daemon.stop();
    assert_eq!(place.frames().len(), PROMPTS, "every frame was taken");
    let wanted: BTreeSet<String> = (0..PROMPTS).map(text).collect();
    let missing: Vec<String> = wanted.difference(&prompts(&place)).cloned().collect();
    assert_eq!(missing, Vec::<String>::new(), "{} prompts have no entry", missing.len());
}

fn text(nth: usize) -> String {
    format!("prompt {nth}")
}

fn prompt(nth: usize) -> Frame {
    let session = nth % SESSIONS;
    let at_ms = now().0 - 60_000 + (nth / OF_ONE_MILLISECOND) as u64;
    let payload = serde_json::json!({
        "hook_event_name": "UserPromptSubmit", "session_id": format!("s{session}"),
        "prompt": text(nth), "prompt_id": format!("p{nth}"),
    });
    Frame {
        mode: Mode::Send,
        id: FrameId(u128::from(at_ms * 1_000_000) << 64 | nth as u128),
        at_ms,
        seq: nth as u32,
        harness: "claude-code".to_owned(),
        event: None,
        entry: None,
        by: None,
        agent: Some(Agent { pid: std::process::id(), started: None }),
        cut: None,
        payload: payload.to_string().into_bytes(),
        whole: None,
        caller: Caller::Spooled,
    }
}

/// Over a connection of its own, as each forwarder does; gives the daemon's answer.
fn send(place: &Place, frame: &Frame) -> u8 {
    let mut stream = place.connect();
    stream.write_all(&frame.delivery().body).expect("written");
    let mut answer = [0];
    stream.read_exact(&mut answer).expect("an answer");
    answer[0]
}

fn prompts(place: &Place) -> BTreeSet<String> {
    let (journal, mut found, mut after) = (place.journal(), BTreeSet::new(), 0);
    loop {
        let page = journal.entries(after, 10_000).expect("readable");
        let Some(last) = page.last() else { return found };
        after = last.seq;
        for numbered in page {
            if let Event::Observed { event } = numbered.entry.event
                && let Fact::UserPrompt { text: Some(text) } = event.fact
            {
                found.insert(text.to_string());
            }
        }
    }
}
