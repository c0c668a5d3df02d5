//! Records of decisions: one chain, with the entries they belong to, whatever breaks.

use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::path::Path;
use std::process::{Command, Stdio};

use qd_session::decision::{Body, Broken, Chain, Flaw, Hash, Link, Record};
use qd_session::moment::Timestamp;
use qd_store::{Batch, DecisionLog, Error, Journal, Settings};

use super::sample::{entry, session, spoken};
use super::scratch::Scratch;

/// The record that follows, this long and then some.
fn record(last: Link, bytes: usize) -> Record {
    let decision = format!("dec_{}", last.seq + 1).as_str().into();
    let body = Body::Failed { decision, why: "x".repeat(bytes) };
    Record::after(last, Timestamp(last.seq), body)
}

/// Each record with an entry that has the same number.
fn batch(last: Link, bytes: usize) -> Batch {
    let entries = vec![entry(1, last.seq + 1)];
    Batch { entries, records: vec![record(last, bytes)], ..Batch::default() }
}

pub fn write(journal: &Journal, numbers: Range<u64>) {
    for n in numbers {
        let last = journal.record_ends().expect("readable").last;
        assert_eq!(last.seq + 1, n);
        journal.write(&batch(last, 10)).wait().expect("written");
    }
}

/// Follows the chain as `qd audit` does: how many there are, or every flaw.
fn followed(path: &Path) -> Result<u64, Vec<Broken>> {
    let log = DecisionLog::open(path).expect("readable").expect("there");
    let (mut chain, mut flaws, mut count) = (None, Vec::new(), 0);
    let ends = log
        .follow(|ends, line| {
            let chain = chain.get_or_insert_with(|| Chain::after(ends.dropped));
            count += 1;
            flaws.extend(chain.take(line.seq, &line.line).err());
        })
        .expect("readable");
    flaws.extend(chain.unwrap_or_else(|| Chain::after(ends.dropped)).end(ends.last).err());
    if flaws.is_empty() { Ok(count) } else { Err(flaws) }
}

pub fn whole(path: &Path) -> u64 {
    followed(path).expect("the chain is whole")
}

#[test]
fn records_are_read_back_in_order_beside_the_writer_and_after_it() {
    let scratch = Scratch::new();
    let journal = scratch.open();
    assert_eq!(whole(&scratch.journal()), 0);
    write(&journal, 1..8);
    assert_eq!(whole(&scratch.journal()), 7);
    let page = journal.record_lines(2, 3).expect("readable");
    assert!(page.iter().map(|line| line.seq).eq(3..6));
    let (read, claimed) = Record::read(&page[0].line).expect("a record");
    assert_eq!((read.seq, read.hash), (3, claimed));
    drop(journal);
    assert_eq!(whole(&scratch.journal()), 7);
    let journal = scratch.open();
    write(&journal, 8..9);
    assert_eq!(whole(&scratch.journal()), 8);
    assert!(DecisionLog::open(&scratch.folder().join("none.db")).expect("readable").is_none());
}

#[test]
fn a_record_that_does_not_follow_is_refused_with_its_batch() {
    let scratch = Scratch::new();
    let journal = scratch.open();
    write(&journal, 1..3);
    let last = journal.record_ends().expect("readable").last;
    let ahead = Link { seq: last.seq + 1, ..last };
    let other = Link { hash: Hash::of("another history"), ..last };
    for wrong in [ahead, other, Link::default()] {
        let refused = journal.write(&batch(wrong, 10)).wait();
        assert!(matches!(refused, Err(Error::RecordApart { last: 2, .. })), "{refused:?}");
    }
    assert_eq!(journal.history(&session(1), 0, 10).expect("readable").len(), 2);
    write(&journal, 3..4);
    assert_eq!(whole(&scratch.journal()), 3);
}

#[test]
fn damage_is_found_and_the_chain_goes_on_after_it() {
    for (damage, found) in [
        ("UPDATE decisions SET line = replace(line, 'xx', 'xy') WHERE seq = 3", (3, Flaw::Changed)),
        ("DELETE FROM decisions WHERE seq = 3", (4, Flaw::Gap)),
        ("DELETE FROM decisions WHERE seq = 1", (2, Flaw::Gap)),
        ("DELETE FROM decisions WHERE seq > 4", (6, Flaw::Gap)),
        ("UPDATE decisions SET seq = 9 WHERE seq = 5", (9, Flaw::Misnumbered)),
        ("UPDATE decisions_chain SET dropped = 2", (1, Flaw::Gap)),
        ("DELETE FROM decisions_chain", (5, Flaw::CutOff { last: 0 })),
        ("UPDATE decisions_chain SET last_hash = 'x'", (5, Flaw::Replaced)),
    ] {
        let scratch = Scratch::new();
        let journal = scratch.open();
        write(&journal, 1..6);
        drop(journal);
        scratch.sql().execute_batch(damage).expect("damaged");
        let flaws = followed(&scratch.journal()).expect_err(damage);
        if !damage.contains("seq > 4") {
            assert_eq!((flaws[0].seq, &flaws[0].why), (found.0, &found.1), "{damage}");
        }
        // What comes next is taken, and follows what is there.
        let journal = scratch.open();
        let next = journal.record_ends().expect("readable").last.seq + 1;
        write(&journal, next..next + 2);
        let after = followed(&scratch.journal());
        if matches!(found.1, Flaw::CutOff { .. }) {
            // The ends are written anew with each record; the records themselves were whole.
            assert_eq!(after, Ok(7));
        } else {
            assert!(after.is_err(), "{damage} is hidden");
        }
    }
}

#[test]
fn the_oldest_are_dropped_and_the_rest_can_still_be_verified() {
    let kept = Settings { records_max: 40, ..Settings::default() };
    let few_bytes = Settings { records_bytes_max: 40 * 230, ..Settings::default() };
    for settings in [kept, few_bytes] {
        let scratch = Scratch::new();
        let (journal, _) = scratch.opened(settings);
        write(&journal, 1..200);
        journal.tidy().wait().expect("tidy");
        let count = whole(&scratch.journal());
        assert!((30..=60).contains(&count), "{count}");
        let ends = journal.record_ends().expect("readable");
        assert_eq!((ends.last.seq, ends.dropped.seq), (199, 199 - count));
        drop(journal);
        let (journal, _) = scratch.opened(settings);
        write(&journal, 200..260);
        journal.tidy().wait().expect("tidy");
        whole(&scratch.journal());
        let nothing = Settings { records_max: 0, ..settings };
        drop(journal);
        let (journal, _) = scratch.opened(nothing);
        journal.tidy().wait().expect("tidy");
        assert_eq!(whole(&scratch.journal()), 0);
        write(&journal, 260..261);
        drop(journal);
        // Who drops records by hand is found out.
        let drop = "DELETE FROM decisions; UPDATE decisions_chain SET dropped = last - 1";
        scratch.sql().execute_batch(drop).expect("damaged");
        followed(&scratch.journal()).expect_err("the last one is gone");
    }
}

#[test]
fn a_full_journal_takes_no_record_without_its_entry() {
    let scratch = Scratch::new();
    let full = Settings { file_bytes_max: 1 << 20, ..Settings::default() };
    let (journal, _) = scratch.opened(full);
    let mut last = Link::default();
    let error = loop {
        let next = batch(last, 20_000);
        match journal.write(&next).wait() {
            Ok(_) => last = next.records[0].link(),
            Err(error) => break error,
        }
        assert!(last.seq < 200, "a megabyte is a megabyte");
    };
    assert!(matches!(error, Error::NoSpace), "{error}");
    assert_eq!(journal.record_ends().expect("readable").last, last);
    assert_eq!(whole(&scratch.journal()), last.seq);
    assert_eq!(numbers(&journal), last.seq);
    drop(journal);
    let journal = scratch.open();
    write(&journal, last.seq + 1..last.seq + 3);
    assert_eq!((whole(&scratch.journal()), numbers(&journal)), (last.seq + 2, last.seq + 2));
}

/// The last entry's number; there is one for each record.
fn numbers(journal: &Journal) -> u64 {
    let entries = journal.history(&session(1), 0, 10_000).expect("readable");
    entries.last().map_or(0, spoken)
}

#[test]
fn after_a_kill_the_chain_is_whole_and_each_record_has_its_entry() {
    let scratch = Scratch::new();
    let mut acknowledged = 0;
    for round in 0..12_u64 {
        let mut child = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "decisions::child_that_decides_until_it_is_killed", "--nocapture"])
            .env(PATH, scratch.journal())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child");
        let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
        let mut patience = 1 + round * 7 % 31;
        let mut take = |line: String| {
            let number = line.strip_prefix("ack ").and_then(|rest| rest.strip_suffix(" ."));
            let number = number.map(|number| number.parse().expect("a number"));
            acknowledged = number.unwrap_or(acknowledged);
            number.is_some()
        };
        while patience > 0 {
            let line = lines.next().expect("the child goes on until it is killed").expect("text");
            patience -= u64::from(take(line));
        }
        child.kill().expect("killed");
        for line in lines.map_while(Result::ok) {
            take(line);
        }
        child.wait().expect("gone");
        // First as somebody who only reads sees it, then as the next daemon does.
        let count = whole(&scratch.journal());
        assert!(count >= acknowledged, "round {round}: {count} of {acknowledged}");
        let journal = scratch.open();
        let last = journal.record_ends().expect("readable").last.seq;
        assert_eq!((last, numbers(&journal)), (count, count), "round {round}");
    }
    assert!(acknowledged > 12);
}

#[test]
fn child_that_decides_until_it_is_killed() {
    let Some(path) = std::env::var_os(PATH) else { return };
    let (journal, _) = Journal::open(path, Settings::default()).expect("it opens");
    let mut last = journal.record_ends().expect("readable").last;
    loop {
        // Several on their way at once.
        let receipts: Vec<_> = (0..4)
            .map(|_| {
                let next = batch(last, 100);
                last = next.records[0].link();
                (last.seq, journal.write(&next))
            })
            .collect();
        for (seq, receipt) in receipts {
            receipt.wait().expect("written");
            let line = format!("\nack {seq} .\n");
            if std::io::stdout().lock().write_all(line.as_bytes()).is_err() {
                std::process::exit(1);
            }
        }
    }
}

const PATH: &str = "QD_STORE_TEST_DECIDES";
