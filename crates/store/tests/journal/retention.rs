//! Retention: bounded, and never at the price of what a session is.

use qd_store::limits::{DELIVERIES_MAX, DELIVERY_BODIES_BYTES_MAX, DELIVERY_BODIES_MAX};
use qd_store::{Alias, Batch, Delivery, Journal, Settings};

use super::sample::{Live, delivery, entries, entry, loaded, session, spoken};
use super::scratch::Scratch;

fn small() -> Settings {
    Settings { entries_per_session_max: 40, entries_max: 100, ..Settings::default() }
}

fn count(journal: &Journal, of: u64) -> usize {
    journal.history(&session(of), 0, 10_000).expect("readable").len()
}

#[test]
fn entries_that_a_snapshot_covers_are_pruned_to_the_newest() {
    let scratch = Scratch::new();
    let (journal, _) = scratch.opened(small());
    let mut live = Live::default();
    live.apply(&entries(1, 0..60));
    journal.append(entries(1, 0..40)).wait().expect("written");
    journal.append(entries(1, 40..60)).wait().expect("written");
    journal.snapshot(&live.0[&session(1)], 60).wait().expect("taken");
    journal.tidy().wait().expect("tidy");
    let kept = journal.history(&session(1), 0, 1_000).expect("readable");
    assert!(kept.iter().map(spoken).eq(20..60));
    assert_eq!(loaded(&journal), live.bytes());
    assert_eq!(journal.health().entries, 40);
}

#[test]
fn without_a_snapshot_the_journal_takes_its_own_and_stays_bounded() {
    let scratch = Scratch::new();
    let (journal, _) = scratch.opened(small());
    let mut live = Live::default();
    for n in 0..300 {
        journal.append(vec![entry(1, n), entry(2 + n % 3, n)]).wait().expect("written");
        live.apply(&[entry(1, n), entry(2 + n % 3, n)]);
    }
    journal.tidy().wait().expect("tidy");
    assert!(count(&journal, 1) <= 45, "{}", count(&journal, 1));
    let all = journal.entries(0, 10_000).expect("readable");
    assert!(all.len() <= 112, "{}", all.len());
    assert_eq!(all.len(), journal.health().entries);
    assert_eq!(loaded(&journal), live.bytes());
    drop(journal);
    let (journal, opened) = scratch.opened(small());
    assert_eq!((opened.entries, opened.last_seq), (all.len(), 600));
    assert_eq!(loaded(&journal), live.bytes());
}

#[test]
fn numbers_rise_even_when_everything_is_pruned() {
    let scratch = Scratch::new();
    let nothing = Settings { entries_per_session_max: 0, entries_max: 0, ..Settings::default() };
    let (journal, _) = scratch.opened(nothing);
    let mut live = Live::default();
    live.apply(&entries(1, 0..20));
    journal.append(entries(1, 0..20)).wait().expect("written");
    journal.tidy().wait().expect("tidy");
    assert_eq!(journal.health().entries, 0);
    drop(journal);
    let (journal, _) = scratch.opened(nothing);
    assert_eq!(loaded(&journal), live.bytes());
    assert_eq!(journal.append(entries(1, 20..21)).wait().expect("written").last(), Some(21));
}

#[test]
fn many_sessions_share_the_total() {
    let scratch = Scratch::new();
    let (journal, _) = scratch.opened(small());
    let mut live = Live::default();
    for of in 0..150 {
        journal.append(entries(of, 0..2)).wait().expect("written");
        live.apply(&entries(of, 0..2));
    }
    journal.tidy().wait().expect("tidy");
    assert!(journal.health().entries <= 112);
    assert_eq!(loaded(&journal), live.bytes());
}

#[test]
fn sessions_beyond_the_limit_are_forgotten_whole_the_stalest_first() {
    let scratch = Scratch::new();
    let settings = Settings { sessions_max: 10, ..Settings::default() };
    let (journal, _) = scratch.opened(settings);
    for of in 0..30 {
        journal.append(entries(of, 0..3)).wait().expect("written");
        let alias = |harness: &str| Alias {
            harness: harness.into(),
            vendor_id: format!("v-{of}"),
            session: session(of),
        };
        journal.set_alias(alias("codex")).wait().expect("written");
    }
    // An old one that speaks again is not stale.
    journal.append(entries(21, 3..4)).wait().expect("written");
    journal.tidy().wait().expect("tidy");
    assert!(journal.health().sessions <= 11);
    let mut live = Live::default();
    for of in (20..30)
        .filter(|of| journal.alias("codex", &format!("v-{of}")).expect("readable").is_some())
    {
        live.apply(&entries(of, 0..if of == 21 { 4 } else { 3 }));
    }
    assert!(live.0.contains_key(&session(21)));
    assert_eq!(loaded(&journal), live.bytes());
    assert_eq!(journal.aliases().expect("readable").len(), live.0.len());
}

#[test]
fn a_damaged_entry_does_not_stop_pruning() {
    let scratch = Scratch::new();
    let journal = scratch.open();
    journal.append(entries(1, 0..200)).wait().expect("written");
    drop(journal);
    scratch.sql().execute_batch("UPDATE entry SET body = '{' WHERE seq = 17").expect("damaged");
    let (journal, _) = scratch.opened(small());
    journal.tidy().wait().expect("tidy");
    let mut live = Live::default();
    live.apply(&entries(1, 0..16));
    live.apply(&entries(1, 17..200));
    assert_eq!(loaded(&journal), live.bytes());
    assert_eq!(journal.health().entries, 40);
    let aside = journal.set_aside(10).expect("readable");
    assert_eq!(aside.iter().map(|record| record.seq).collect::<Vec<_>>(), [17]);
    assert_eq!(journal.health().set_aside, 1);
}

#[test]
fn deliveries_are_remembered_for_long_and_their_bodies_for_a_while() {
    let scratch = Scratch::new();
    let journal = scratch.open();
    let all = DELIVERIES_MAX + 3_000;
    for begin in (0..all).step_by(1_000) {
        let deliveries = (begin..begin + 1_000).map(|n| delivery("hook", n)).collect();
        journal.write(&Batch { deliveries, ..Batch::default() }).wait().expect("written");
    }
    journal.tidy().wait().expect("tidy");
    let kept = journal.deliveries().expect("readable");
    let slack = 1_024;
    assert!((DELIVERIES_MAX..=DELIVERIES_MAX + slack).contains(&(kept.len() as u64)));
    let bodies = kept.iter().filter(|kept| !kept.body.is_empty()).count() as u64;
    assert!((DELIVERY_BODIES_MAX..=DELIVERY_BODIES_MAX + slack).contains(&bodies), "{bodies}");
    let newest = kept.last().expect("one");
    assert!(newest.body.starts_with(b"body "), "{newest:?}");
}

#[test]
fn the_bodies_of_deliveries_are_bounded_in_bytes() {
    const BODY: usize = 512 << 10;
    let scratch = Scratch::new();
    let journal = scratch.open();
    let long = |n: u64| Delivery { id: format!("long-{n:04}"), body: vec![b'x'; BODY] };
    let all = 3 * DELIVERY_BODIES_BYTES_MAX / BODY as u64;
    for n in 0..all {
        let batch = Batch { deliveries: vec![long(n)], ..Batch::default() };
        journal.write(&batch).wait().expect("written");
    }
    journal.tidy().wait().expect("tidy");
    check_newest(&journal, all, BODY);
    // What is counted is what lies there.
    drop(journal);
    let journal = scratch.open();
    journal
        .write(&Batch { deliveries: vec![long(all)], ..Batch::default() })
        .wait()
        .expect("written");
    journal.tidy().wait().expect("tidy");
    check_newest(&journal, all + 1, BODY);
}

/// Every id is known, and of the newest also the bodies, as many as are kept.
fn check_newest(journal: &Journal, all: u64, body: usize) {
    let kept = journal.deliveries().expect("readable");
    assert_eq!(kept.len() as u64, all);
    let bytes: u64 = kept.iter().map(|one| one.body.len() as u64).sum();
    let slack = DELIVERY_BODIES_BYTES_MAX / 8;
    let least = DELIVERY_BODIES_BYTES_MAX - body as u64;
    assert!((least..=DELIVERY_BODIES_BYTES_MAX + slack).contains(&bytes), "{bytes} bytes");
    let first = kept.iter().position(|one| !one.body.is_empty()).expect("some");
    assert!(kept[first..].iter().all(|one| one.body.len() == body), "the newest, without gaps");
}
