//! A full disk: an error that says so, nothing lost, and on it goes when there is space again.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use qd_store::{Error, Journal, Settings};

use super::sample::{Live, entry, loaded, long_entry, session};
use super::scratch::Scratch;

#[test]
fn a_full_journal_says_so_and_goes_on_once_there_is_space() {
    let scratch = Scratch::new();
    let settings =
        Settings { file_bytes_max: 1 << 20, entries_per_session_max: 8, ..Settings::default() };
    let (journal, _) = scratch.opened(Settings { entries_per_session_max: 10_000, ..settings });
    let mut live = Live::default();
    let error = loop {
        let n = live.0.get(&session(1)).map_or(0, |_| journal.last_seq());
        match journal.append(vec![long_entry(1, n, 10_000)]).wait() {
            Ok(written) => {
                assert_eq!(written.last(), Some(n + 1));
                live.apply(&[long_entry(1, n, 10_000)]);
            }
            Err(error) => break error,
        }
        assert!(n < 200, "a megabyte is a megabyte");
    };
    assert!(matches!(error, Error::NoSpace), "{error}");
    assert!(error.is_temporary());
    assert!(matches!(journal.health().write_error, Some(Error::NoSpace)));
    assert_eq!(loaded(&journal), live.bytes());
    let last = journal.last_seq();
    // What is shorter than what was refused may still fit, and gets the next number.
    if let Ok(written) = journal.append(vec![entry(1, last)]).wait() {
        assert_eq!(written.last(), Some(last + 1));
        live.apply(&[entry(1, last)]);
    }
    drop(journal);

    // More retention, more space: what is there folds, and there is room again.
    let (journal, _) = scratch.opened(Settings { file_bytes_max: 2 << 20, ..settings });
    assert_eq!(loaded(&journal), live.bytes());
    journal.tidy().wait().expect("tidy");
    assert_eq!(loaded(&journal), live.bytes());
    let n = journal.last_seq();
    journal.append(vec![entry(1, n)]).wait().expect("there is room");
    live.apply(&[entry(1, n)]);
    assert_eq!(loaded(&journal), live.bytes());
}

/// The kernel refuses to let the files grow; later it lets them. The child is one journal all the
/// while. (A file size limit fails in the middle of a write, as a full disk does, and needs no
/// privileges.)
#[test]
#[cfg(target_os = "linux")]
fn a_write_that_the_kernel_refuses_loses_nothing_and_is_done_when_it_allows() {
    let scratch = Scratch::new();
    let exe = std::env::current_exe().expect("this test");
    let mut child = Command::new("sh")
        .args(["-c", r#"trap "" XFSZ; ulimit -S -f 400; exec "$@""#, "sh"])
        .arg(exe)
        .args(["--exact", "full_disk::child_with_a_limit", "--nocapture"])
        .env(LIMITED, scratch.journal())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let mut heard = |word: &str| {
        let found =
            lines.find_map(|line| line.expect("text").strip_prefix(word).map(str::to_owned));
        found.unwrap_or_else(|| panic!("the child ended without saying {word}"))
    };
    let acknowledged: u64 = heard("refused after ").parse().expect("a number");
    assert!(acknowledged > 0);
    let pid = child.id().to_string();
    let raised = Command::new("prlimit").args(["--pid", &pid, "--fsize=unlimited"]).status();
    assert!(raised.expect("prlimit").success());
    writeln!(child.stdin.take().expect("its input"), "go on").expect("it listens");
    let last: u64 = heard("went on to ").parse().expect("a number");
    assert!(child.wait().expect("its end").success());
    let mut live = Live::default();
    for n in 0..last {
        live.apply(&[long_entry(1, n, 5_000)]);
    }
    let journal = scratch.open();
    assert_eq!(journal.last_seq(), last);
    assert_eq!(loaded(&journal), live.bytes());
}

#[test]
fn child_with_a_limit() {
    let Some(path) = std::env::var_os(LIMITED) else { return };
    let (journal, _) = Journal::open(path, Settings::default()).expect("it opens");
    let append = |n| journal.append(vec![long_entry(1, n, 5_000)]).wait();
    let mut n = 0;
    let error = loop {
        match append(n) {
            Ok(_) => n += 1,
            Err(error) => break error,
        }
    };
    assert!(error.is_temporary(), "{error}");
    assert!(append(n).is_err(), "it is still full");
    println!("\nrefused after {n}");
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("a pipe");
    for n in n..n + 50 {
        append(n).expect("there is space again");
    }
    println!("\nwent on to {}", n + 50);
}

const LIMITED: &str = "QD_STORE_TEST_LIMITED";
