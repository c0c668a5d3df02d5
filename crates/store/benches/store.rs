//! How fast the journal is, beside what the disk allows.
//!
//! `cargo bench -p qd-store`. Ratios count, not absolutes: the disk and the cores are shared, so
//! the disk's own syncs are measured before and after each durable line, in the same run.

use std::fs::{self, File};
use std::hint::black_box;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use qd_session::Session;
use qd_session::event::{Entry, Event};
use qd_session::id::{CallId, SessionId, ToolName};
use qd_session::moment::{Source, Timestamp};
use qd_session::monitor::{AgentEvent, Fact};
use qd_store::{Journal, Settings};

/// How long each durable line is measured.
const PATIENCE: Duration = Duration::from_secs(3);

/// Enough to replay that the clock is no matter.
const REPLAYED: u64 = 200_000;

const SESSIONS: u64 = 200;

fn main() {
    let scratch = std::env::temp_dir().join(format!("qd-store-bench-{}", std::process::id()));
    fs::create_dir_all(&scratch).expect("a folder to work in");
    durable("singly", &scratch, 1, 1);
    durable("singly, 64 senders", &scratch, 1, 64);
    durable("in batches of 100", &scratch, 100, 1);
    durable("in batches of 100, 8 in flight", &scratch, 100, 8);
    replay(&scratch);
    fs::remove_dir_all(&scratch).expect("the folder goes");
}

/// Appends for a while, each sender waiting for its receipt, and prints it beside the disk.
fn durable(what: &str, scratch: &Path, batch: u64, senders: u64) {
    let before = syncs_per_second(scratch);
    let journal = fresh(scratch);
    let begun = Instant::now();
    let threads: Vec<_> = (0..senders)
        .map(|sender| {
            let journal = journal.clone();
            std::thread::spawn(move || {
                let mut n = 0;
                while begun.elapsed() < PATIENCE {
                    let entries = (n..n + batch).map(|n| entry(sender, n)).collect();
                    journal.append(entries).wait().expect("written");
                    n += batch;
                }
                n
            })
        })
        .collect();
    let count: u64 = threads.into_iter().map(|thread| thread.join().expect("it ends")).sum();
    let per_second = count as f64 / begun.elapsed().as_secs_f64();
    drop(journal);
    let syncs = f64::midpoint(before, syncs_per_second(scratch));
    println!(
        "append {what}: {per_second:.0} entries/s, fdatasync {syncs:.0}/s, ratio {:.2}",
        per_second / syncs
    );
}

/// What the disk does when a page is added and synced, as a log does.
fn syncs_per_second(scratch: &Path) -> f64 {
    let mut file = File::create(scratch.join("syncs")).expect("a file");
    let page = [7_u8; 4096];
    let begun = Instant::now();
    let mut count = 0_u32;
    while begun.elapsed() < PATIENCE / 3 {
        file.write_all(&page).expect("written");
        file.sync_data().expect("synced");
        count += 1;
    }
    f64::from(count) / begun.elapsed().as_secs_f64()
}

/// A restart: open with its check, fold everything.
fn replay(scratch: &Path) {
    let journal = fresh(scratch);
    let mut bytes = 0;
    for begin in (0..REPLAYED).step_by(1_000) {
        let entries: Vec<Entry> =
            (begin..begin + 1_000).map(|n| entry(n % SESSIONS, n / SESSIONS)).collect();
        bytes += serde_json::to_vec(&entries).expect("JSON").len();
        journal.append(entries).wait().expect("written");
    }
    drop(journal);
    let begun = Instant::now();
    let (journal, opened) = Journal::open(path(scratch), kept()).expect("it opens");
    let opening = begun.elapsed();
    let begun = Instant::now();
    let loaded = journal.load().expect("it loads");
    let loading = begun.elapsed();
    assert_eq!(loaded.sessions.len() as u64, SESSIONS);
    println!(
        "open: {:.0} ms for {} entries, {:.0} MB",
        opening.as_secs_f64() * 1e3,
        opened.entries,
        bytes as f64 / 1e6
    );
    let replayed = REPLAYED as f64 / loading.as_secs_f64();
    let floor = parsed_and_folded_per_second();
    println!(
        "replay: {replayed:.0} entries/s, parse and fold alone {floor:.0}/s, ratio {:.2}",
        replayed / floor
    );
    for replayed in &loaded.sessions {
        journal.snapshot(&replayed.session, replayed.upto).wait().expect("taken");
    }
    drop(journal);
    let begun = Instant::now();
    let (journal, _) = Journal::open(path(scratch), kept()).expect("it opens");
    journal.load().expect("it loads");
    println!("restart with snapshots: {:.0} ms", begun.elapsed().as_secs_f64() * 1e3);
}

/// What is left of a replay without a database.
fn parsed_and_folded_per_second() -> f64 {
    let written: Vec<String> = (0..REPLAYED / SESSIONS)
        .map(|n| serde_json::to_string(&entry(1, n)).expect("JSON"))
        .collect();
    let begun = Instant::now();
    for _ in 0..SESSIONS {
        let mut session = Session::new(entry(1, 0).session);
        for line in &written {
            session.apply(&serde_json::from_str(line).expect("an entry"));
        }
        black_box(&session);
    }
    REPLAYED as f64 / begun.elapsed().as_secs_f64()
}

fn path(scratch: &Path) -> PathBuf {
    scratch.join("state").join("journal.db")
}

/// An empty journal.
fn fresh(scratch: &Path) -> Journal {
    let folder = scratch.join("state");
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("the last one goes");
    }
    Journal::open(path(scratch), kept()).expect("it opens").0
}

/// Nothing is pruned while we count.
fn kept() -> Settings {
    let all = usize::MAX;
    Settings { entries_per_session_max: all, entries_max: all, ..Settings::default() }
}

/// What turns of ten tool calls leave behind.
fn entry(of: u64, n: u64) -> Entry {
    let call = CallId::new(format!("toolu_{:024x}", n / 2));
    let fact = match n % 22 {
        0 => Fact::TurnStarted,
        1 => Fact::UserPrompt { text: Some("make the tests pass, then tidy up".into()) },
        even if even % 2 == 0 => Fact::ToolStarted {
            call,
            tool: ToolName::from("Bash"),
            about: Some("cargo test --workspace --no-fail-fast 2>&1 | tail -40".into()),
        },
        _ => Fact::ToolCompleted { call, ok: true, exit_code: None },
    };
    let at = Timestamp(1_760_000_000_000 + n);
    let event = AgentEvent::main(at, Source::Hook, fact);
    let id = SessionId::new(format!("sess_{of:08x}-0000-4000-8000-000000000000"));
    Entry::new(id, at, Event::Observed { event })
}
