//! Two hundred hooks while the daemon comes and goes: each arrives once, and in order.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, mpsc};

use qd_hook_wire::FrameId;
use qd_sources::hook_intake::{Frame, KnownIds};

use crate::world::{Daemon, GENEROUS, Journal, Manner, World, now_ms};

const FAMILIES: usize = 20;
const HOOKS_OF_A_FAMILY: usize = 10;

#[test]
fn hooks_arrive_exactly_once_and_in_order_while_the_daemon_comes_and_goes() {
    let (world, journal) = (World::new(), Arc::new(Mutex::new(Journal::default())));
    std::thread::scope(|scope| {
        let (done, ends) = mpsc::channel();
        for family in 0..FAMILIES {
            let (world, done) = (&world, done.clone());
            scope.spawn(move || {
                for hook in 0..HOOKS_OF_A_FAMILY {
                    let payload = format!("{family} {hook}");
                    world.hook("send --harness codex").run(payload.as_bytes());
                    done.send(()).expect("somebody counts");
                }
            });
        }
        drop(done);
        come_and_go(&world, &journal, &ends);
    });
    drain(&world, &mut journal.lock().expect("whole").frames);

    let mut frames = std::mem::take(&mut journal.lock().expect("whole").frames);
    frames.sort_by_key(|frame| frame.id);
    let expected: Vec<usize> = (0..HOOKS_OF_A_FAMILY).collect();
    let families = by_family(&frames);
    assert_eq!(families.len(), FAMILIES);
    for (family, hooks) in families {
        assert_eq!(hooks, expected, "family {family}");
    }
}

/// Each daemon lives, and each absence lasts, for some ends of hooks.
fn come_and_go(world: &World, journal: &Arc<Mutex<Journal>>, ends: &mpsc::Receiver<()>) {
    let lives = [
        Some(Manner::Acknowledges),
        None,
        Some(Manner::TakesInSilence),
        Some(Manner::Closes),
        Some(Manner::Acknowledges),
        Some(Manner::Hangs),
        None,
        Some(Manner::Refuses),
    ];
    let mut left = FAMILIES * HOOKS_OF_A_FAMILY;
    for life in lives.into_iter().cycle() {
        let daemon = life.map(|manner| Daemon::start(world, manner, journal));
        for _ in 0..13.min(left) {
            ends.recv_timeout(GENEROUS).expect("hooks end");
            left -= 1;
        }
        drop(daemon);
        if left == 0 {
            return;
        }
    }
}

/// What a daemon does at its start: it knows what the journal has, and takes the rest.
fn drain(world: &World, journal: &mut Vec<Frame>) {
    let ids: Vec<FrameId> = journal.iter().map(|frame| frame.id).collect();
    let (spool, mut known) = (world.spool(), KnownIds::restored(ids));
    let mut drained = Vec::new();
    loop {
        let batch = spool.next_batch(now_ms(), &mut known).expect("read");
        assert!(batch.set_aside.is_empty(), "{:?}", batch.set_aside);
        if batch.frames.is_empty() {
            break;
        }
        drained.extend(batch.frames.iter().cloned());
        spool.settle(batch, &mut known).expect("settled");
    }
    assert!(drained.is_sorted_by_key(|frame| frame.id), "oldest first");
    assert!(by_family(&drained).values().all(|hooks| hooks.is_sorted()));
    assert_eq!(spool.losses().expect("read"), Default::default());
    journal.extend(drained);
}

fn by_family(frames: &[Frame]) -> BTreeMap<usize, Vec<usize>> {
    let mut families: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for frame in frames {
        let text = std::str::from_utf8(&frame.payload).expect("ours");
        let (family, hook) = text.split_once(' ').expect("ours");
        let family = family.parse().expect("a number");
        families.entry(family).or_default().push(hook.parse().expect("a number"));
    }
    families
}
