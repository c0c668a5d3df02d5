//! A journal that is deleted, moved, replaced or damaged: what was acknowledged is there, or it is
//! told that it is not.

use std::fs;
use std::path::PathBuf;

use qd_store::{DecisionLog, Gap, Head, Journal, JournalReader, Settings};

use super::decisions::write;
use super::sample::{Live, entries, loaded};
use super::scratch::Scratch;

fn part(scratch: &Scratch, part: &str) -> PathBuf {
    PathBuf::from(format!("{}{part}", scratch.journal().display()))
}

/// What whoever comes next finds on disk.
fn on_disk(scratch: &Scratch) -> u64 {
    JournalReader::open(&scratch.journal()).expect("it is there").last().expect("readable")
}

/// Takes these away from an open journal: all that was acknowledged is on disk again.
fn check(taken: &[&str]) {
    let scratch = Scratch::new();
    let (journal, mut live) = (scratch.open(), Live::default());
    let (before, after) = (entries(1, 0..20), entries(2, 20..30));
    journal.append(before.clone()).wait().expect("written");
    write(&journal, 1..4);
    taken.iter().for_each(|name| fs::remove_file(part(&scratch, name)).expect("taken away"));
    journal.check().wait().expect("written anew");
    assert_eq!(on_disk(&scratch), 23, "{taken:?}: before anything else is written");
    assert_eq!(journal.health().written_anew, 1, "{taken:?}");
    journal.append(after.clone()).wait().expect("it goes on");
    assert_eq!(on_disk(&scratch), 33, "{taken:?}");
    assert_eq!(journal.history(&after[0].session, 0, 100).expect("readable").len(), 10);
    assert!(!part(&scratch, ".anew").exists() && !part(&scratch, ".anew-part").exists());
    drop(journal);
    let (journal, opened) = scratch.opened(Settings::default());
    assert_eq!((opened.set_aside, opened.gap), (None, None), "{taken:?}");
    assert_eq!(journal.record_ends().expect("readable").last.seq, 3, "{taken:?}");
    [before, after].iter().for_each(|entries| live.apply(entries));
    let found = loaded(&journal);
    assert!(live.bytes().keys().all(|session| found.contains_key(session)), "{taken:?}");
    assert_eq!(journal.entries(0, 100).expect("readable").len(), 33);
}

#[test]
fn a_journal_that_is_deleted_while_it_is_open_is_written_anew() {
    check(&[""]);
    check(&["-wal"]);
    check(&["-shm"]);
    check(&["", "-wal", "-shm"]);
    check(&["", "-wal", "-shm", ".lock", ".head"]);
}

#[test]
fn what_is_written_next_is_preceded_by_the_same_look() {
    let scratch = Scratch::new();
    let journal = scratch.open();
    journal.append(entries(1, 0..5)).wait().expect("written");
    for name in ["", "-wal", "-shm"] {
        fs::remove_file(part(&scratch, name)).expect("taken away");
    }
    journal.append(entries(1, 5..6)).wait().expect("written");
    assert_eq!(on_disk(&scratch), 6);
}

#[test]
fn a_folder_that_is_removed_comes_back_with_the_journal_and_its_lock() {
    let scratch = Scratch::new();
    let path = scratch.folder().join("state/journal.db");
    let (journal, _) = Journal::open(&path, Settings::default()).expect("it opens");
    journal.append(entries(1, 0..5)).wait().expect("written");
    fs::remove_dir_all(path.parent().expect("a folder")).expect("removed");
    journal.check().wait().expect("written anew");
    assert_eq!(JournalReader::open(&path).expect("there").last().expect("readable"), 5);
    Journal::open(&path, Settings::default()).expect_err("it is still held");
}

#[test]
fn an_older_copy_that_takes_the_place_of_an_open_journal_is_set_aside() {
    let scratch = Scratch::new();
    let journal = scratch.open();
    journal.append(entries(1, 0..5)).wait().expect("written");
    drop(journal);
    let copy = scratch.folder().join("copy");
    fs::copy(scratch.journal(), &copy).expect("copied");
    let journal = scratch.open();
    journal.append(entries(1, 5..9)).wait().expect("written");
    fs::rename(&copy, scratch.journal()).expect("replaced");
    journal.append(entries(1, 9..10)).wait().expect("written");
    assert_eq!(on_disk(&scratch), 10);
    assert!(part(&scratch, ".replaced-1").exists(), "it is kept: {:?}", scratch.files());
}

#[test]
fn a_journal_that_was_taken_away_or_replaced_between_two_runs_is_told_until_somebody_says_so() {
    for replaced in [false, true] {
        let scratch = Scratch::new();
        let journal = scratch.open();
        write(&journal, 1..3);
        drop(journal);
        let copy = scratch.folder().join("copy");
        fs::copy(scratch.journal(), &copy).expect("copied");
        let journal = scratch.open();
        write(&journal, 3..8);
        drop(journal);
        match replaced {
            true => fs::rename(&copy, scratch.journal()).expect("replaced"),
            false => fs::remove_file(scratch.journal()).expect("taken away"),
        }
        let missing = if replaced { (5, 5) } else { (7, 7) };
        if replaced {
            let head = Head::read(&scratch.journal()).expect("readable").expect("there");
            let log = DecisionLog::open(&scratch.journal()).expect("readable").expect("there");
            assert_eq!(log.missing(&head).expect("readable"), Some(missing));
        }
        let (journal, opened) = scratch.opened(Settings::default());
        let gap = opened.gap.expect("it is noticed");
        assert_eq!((gap.entries, gap.records), missing);
        drop(journal);
        assert_eq!(scratch.opened(Settings::default()).1.gap, None, "it is not a new one");
        assert_eq!(Gap::all(&scratch.journal()).expect("readable"), [gap]);
    }
}

#[test]
fn a_damaged_journal_is_a_gap_with_the_place_where_it_lies() {
    let scratch = Scratch::new();
    let journal = scratch.open();
    write(&journal, 1..5);
    drop(journal);
    fs::write(scratch.journal(), "not a database at all ".repeat(400)).expect("garbage");
    let gap = scratch.opened(Settings::default()).1.gap.expect("it is noticed");
    assert_eq!((gap.entries, gap.records), (4, 4));
    assert!(gap.set_aside.ends_with("journal.db.damaged-1"), "{gap:?}");
}

#[test]
fn a_copy_that_a_crash_left_beside_takes_its_place_at_the_next_start() {
    let scratch = Scratch::new();
    let journal = scratch.open();
    journal.append(entries(1, 0..5)).wait().expect("written");
    drop(journal);
    fs::rename(scratch.journal(), part(&scratch, ".anew")).expect("as after a crash");
    let (_, opened) = scratch.opened(Settings::default());
    assert_eq!((opened.created, opened.last_seq, opened.gap), (false, 5, None));
}
