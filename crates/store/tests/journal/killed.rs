//! `kill -9` at any moment: whatever was acknowledged is there, once, in order.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use qd_store::{Journal, Settings, Written};

use super::sample::{delivery, entries, entry, session, spoken};
use super::scratch::Scratch;

/// Each child appends from this many threads, with receipts in flight…
const APPENDERS: u64 = 3;
/// …and one delivers from a spool, from the beginning each time, as after a crash.
const SPOOL: u64 = 99;

const ROUNDS: u64 = 25;

#[test]
fn whatever_was_acknowledged_is_there_once_and_in_order() {
    let seed: u64 = std::env::var("KILL_SEED").map_or(7, |seed| seed.parse().expect("a number"));
    println!("KILL_SEED={seed}");
    let mut dice = Dice(seed);
    let scratch = Scratch::new();
    // For each session, how many of its entries were acknowledged.
    let mut acknowledged = [0_u64; 100];
    for round in 0..ROUNDS {
        let patience = dice.roll() % 120;
        for (of, next) in acknowledgements(&scratch.journal(), patience) {
            let known = &mut acknowledged[of as usize];
            *known = next.max(*known);
        }
        let (journal, opened) = scratch.opened(settings(round));
        assert_eq!(opened.set_aside, None, "a kill is no damage");
        for of in (0..APPENDERS).chain([SPOOL]) {
            // Pruning leaves the newest; together with the snapshot that is all of them.
            let written = journal.history(&session(of), 0, 10_000).expect("readable");
            let first = written.first().map_or(0, spoken);
            let next = first + written.len() as u64;
            assert!(written.iter().map(spoken).eq(first..next), "round {round}: {of} has a gap");
            assert!(written.is_sorted_by_key(|one| one.seq));
            let least = acknowledged[of as usize];
            assert!(next >= least, "round {round}: {of} has {next}, acknowledged were {least}");
            let mut live = qd_session::Session::new(session(of));
            for entry in entries(of, 0..next) {
                live.apply(&entry);
            }
            let folded = journal.load_session(&session(of)).expect("it loads").sessions;
            if next > 0 {
                assert_eq!(folded[0].session, live, "round {round}: {of}");
            }
        }
    }
    assert!(acknowledged.iter().sum::<u64>() > ROUNDS, "something was written");
}

/// Odd rounds prune as hard as they can, so that a kill also hits the upkeep.
fn settings(round: u64) -> Settings {
    let kept = if round % 2 == 1 { 30 } else { 2_000 };
    Settings { entries_per_session_max: kept, ..Settings::default() }
}

/// Runs a child until it has acknowledged so many, kills it, and gives all it has acknowledged.
fn acknowledgements(journal: &Path, patience: u64) -> Vec<(u64, u64)> {
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "killed::child_that_appends_until_it_is_killed", "--nocapture"])
        .env(PATH, journal)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let mut seen = Vec::new();
    let take = |seen: &mut Vec<(u64, u64)>, line: String| {
        let Some(numbers) = line.strip_prefix("ack ") else { return };
        // The last line may be cut off by the kill: without its end mark it says nothing.
        let Some((of, next)) = numbers.strip_suffix(" .").and_then(|text| text.split_once(' '))
        else {
            return;
        };
        seen.push((of.parse().expect("a session"), next.parse().expect("a number")));
    };
    while (seen.len() as u64) < patience {
        let line = lines.next().expect("the child goes on until it is killed").expect("text");
        take(&mut seen, line);
    }
    child.kill().expect("killed");
    for line in lines.map_while(Result::ok) {
        take(&mut seen, line);
    }
    child.wait().expect("gone");
    seen
}

#[test]
fn child_that_appends_until_it_is_killed() {
    let Some(path) = std::env::var_os(PATH) else { return };
    let kept = Settings { entries_per_session_max: 30, ..Settings::default() };
    let (journal, _) = Journal::open(path, kept).expect("it opens");
    let threads: Vec<_> = (0..APPENDERS)
        .map(|of| {
            let journal = journal.clone();
            std::thread::spawn(move || append_for_ever(&journal, of))
        })
        .collect();
    for n in 0.. {
        let written = journal.append_once(delivery("spool", n), vec![entry(SPOOL, n)]).wait();
        match written.expect("written") {
            Written::Fresh(_) | Written::Repeated => acknowledge(SPOOL, n + 1),
        }
    }
    drop(threads);
}

/// Goes on after what is there, a few receipts in flight at a time.
fn append_for_ever(journal: &Journal, of: u64) {
    let written = journal.history(&session(of), 0, 10_000).expect("readable");
    let mut n = written.last().map_or(0, |last| spoken(last) + 1);
    loop {
        let receipts: Vec<_> = (0..4)
            .map(|_| {
                let batch = entries(of, n..n + 1 + n % 3);
                n += batch.len() as u64;
                (n, journal.append(batch))
            })
            .collect();
        for (next, receipt) in receipts {
            receipt.wait().expect("written");
            acknowledge(of, next);
        }
    }
}

/// One write, so that lines of several threads do not mix.
fn acknowledge(of: u64, next: u64) {
    let line = format!("\nack {of} {next} .\n");
    // A parent that is gone has nothing more to check.
    if std::io::stdout().lock().write_all(line.as_bytes()).is_err() {
        std::process::exit(1);
    }
}

const PATH: &str = "QD_STORE_TEST_KILLED";

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}
