//! Loading: snapshot and tail give the live session; what is damaged is set aside, the rest folds.

use qd_session::Session;
use qd_store::{Damage, DamagedRecord, Error, Journal, Kept};

use super::sample::{Live, bytes, entries, loaded, session};
use super::scratch::Scratch;

/// A journal of two sessions, ten entries each, and what it folds to without the left out.
fn written(scratch: &Scratch, without: &[u64]) -> (Journal, Live) {
    let journal = scratch.open();
    let mut live = Live::default();
    for n in 0..10 {
        for of in [1, 2] {
            let seq = journal.append(entries(of, n..n + 1)).wait().expect("written").last();
            if !without.contains(&seq.expect("one entry")) {
                live.apply(&entries(of, n..n + 1));
            }
        }
    }
    (journal, live)
}

#[test]
fn a_snapshot_and_its_tail_fold_to_the_live_session() {
    let scratch = Scratch::new();
    let (journal, mut live) = written(&scratch, &[]);
    let kept = journal.snapshot(&live.0[&session(1)], journal.last_seq()).wait();
    assert_eq!(kept.expect("taken"), Kept::Taken);
    journal.append(entries(1, 10..15)).wait().expect("written");
    live.apply(&entries(1, 10..15));
    assert_eq!(loaded(&journal), live.bytes());
    let one = journal.load_session(&session(1)).expect("it loads").sessions;
    assert_eq!(one.len(), 1);
    assert_eq!(one[0].upto, 25);
    assert_eq!(bytes(&one[0].session), bytes(&live.0[&session(1)]));
    assert!(journal.load_session(&session(7)).expect("it loads").sessions.is_empty());
    drop(journal);
    assert_eq!(loaded(&scratch.open()), live.bytes());
}

#[test]
fn history_that_was_never_journaled_can_be_snapshotted() {
    let scratch = Scratch::new();
    let (journal, mut live) = written(&scratch, &[]);
    let mut found = Live::default();
    found.apply(&entries(3, 0..1_000));
    let taken = journal.snapshot(&found.0[&session(3)], journal.last_seq()).wait();
    assert_eq!(taken.expect("taken"), Kept::Taken);
    journal.append(entries(3, 1_000..1_003)).wait().expect("written");
    live.apply(&entries(3, 0..1_003));
    assert_eq!(loaded(&journal), live.bytes());
}

#[test]
fn a_snapshot_cannot_hide_entries() {
    let scratch = Scratch::new();
    let (journal, live) = written(&scratch, &[]);
    let session_1 = &live.0[&session(1)];
    let ahead = journal.snapshot(session_1, 21).wait();
    assert!(matches!(ahead, Err(Error::SnapshotAhead { upto: 21, last: 20 })), "{ahead:?}");
    assert_eq!(journal.snapshot(session_1, 20).wait().expect("taken"), Kept::Taken);
    let late = journal.snapshot(&Session::new(session(1)), 3).wait();
    assert_eq!(late.expect("answered"), Kept::Superseded { upto: 20 });
    assert_eq!(loaded(&journal), live.bytes());
}

/// Damages a journal, loads it, and looks at what was reported and kept.
fn check(damage: &str, without: &[u64], reported: &[(u64, u64, Damage)]) {
    let scratch = Scratch::new();
    let (journal, live) = written(&scratch, without);
    scratch.sql().execute_batch(damage).expect("damaged");
    let found = journal.load().expect("the rest loads");
    assert!(found.not_set_aside.is_none());
    let names: Vec<_> = found.damaged.iter().map(named).collect();
    assert_eq!(names, reported);
    let folded: Vec<String> = found.sessions.iter().map(|one| bytes(&one.session)).collect();
    assert_eq!(folded, live.bytes().into_values().collect::<Vec<_>>());

    // They are out of the way, with the reason, and once is enough.
    assert_eq!(loaded(&journal), live.bytes());
    let kept = journal.set_aside(100).expect("readable");
    assert_eq!(kept.len(), reported.len());
    for (kept, record) in kept.iter().rev().zip(&found.damaged) {
        assert_eq!((kept.seq, &kept.reason), (record.seq, &record.reason));
        assert_eq!(kept.kind, record.damage.to_string());
    }
    drop(journal);
    let journal = scratch.open();
    assert_eq!(loaded(&journal), live.bytes());
    assert_eq!(journal.append(entries(1, 10..11)).wait().expect("written").last(), Some(21));
}

fn named(record: &DamagedRecord) -> (u64, u64, Damage) {
    let of = record.session.as_str().strip_prefix("sess_").expect("one of ours");
    (of.parse().expect("a number"), record.seq, record.damage)
}

#[test]
fn entries_that_are_no_json_are_set_aside() {
    check(
        "UPDATE entry SET body = substr(body, 1, 20) WHERE seq = 3;
         UPDATE entry SET body = '' WHERE seq = 8;",
        &[3, 8],
        &[(1, 3, Damage::Entry), (2, 8, Damage::Entry)],
    );
}

#[test]
fn entries_that_are_no_text_are_set_aside() {
    check(
        "UPDATE entry SET body = x'ff00fe' WHERE seq = 5;
         UPDATE entry SET body = cast(x'22ff22' AS TEXT) WHERE seq = 7;
         UPDATE entry SET body = 12 WHERE seq = 9;",
        &[5, 7, 9],
        &[(1, 5, Damage::Entry), (1, 7, Damage::Entry), (1, 9, Damage::Entry)],
    );
}

#[test]
fn entries_of_a_version_that_is_not_known_are_set_aside() {
    check(
        r#"UPDATE entry SET body = replace(body, '"v":1', '"v":2') WHERE seq = 20;"#,
        &[20],
        &[(2, 20, Damage::Entry)],
    );
}

#[test]
fn an_entry_that_says_it_is_of_another_session_is_set_aside() {
    check("UPDATE entry SET session = 2 WHERE seq = 1;", &[1], &[(2, 1, Damage::Entry)]);
}

#[test]
fn without_its_snapshot_a_session_folds_from_the_entries_that_are_kept() {
    check(
        "INSERT INTO snapshot VALUES (1, 12, '{\"v\":1,\"session\":');",
        &[],
        &[(1, 12, Damage::Snapshot)],
    );
}

#[test]
fn damage_that_cannot_be_set_aside_is_reported_all_the_same() {
    let scratch = Scratch::new();
    let (journal, live) = written(&scratch, &[3]);
    let other = scratch.sql();
    other
        .execute_batch("UPDATE entry SET body = 'x' WHERE seq = 3; BEGIN IMMEDIATE")
        .expect("held");
    let found = journal.load().expect("the rest loads");
    assert!(matches!(found.not_set_aside, Some(Error::Locked)));
    assert_eq!(found.damaged.len(), 1);
    let folded: Vec<String> = found.sessions.iter().map(|one| bytes(&one.session)).collect();
    assert_eq!(folded, live.bytes().into_values().collect::<Vec<_>>());
}
