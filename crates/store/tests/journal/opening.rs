//! Opening: one process, private files, damage set aside, strangers left alone.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use qd_store::limits::DAMAGED_FILES_MAX;
use qd_store::{Error, Journal, Settings};

use super::sample::{Live, entries, loaded};
use super::scratch::Scratch;

#[test]
fn a_journal_is_made_private_with_its_folder() {
    let scratch = Scratch::new();
    let path = scratch.folder().join("state").join("journal.db");
    let (journal, opened) = Journal::open(&path, Settings::default()).expect("it opens");
    assert!(opened.created);
    journal.append(entries(1, 0..1)).wait().expect("written");
    #[cfg(unix)]
    for entry in fs::read_dir(path.parent().expect("a folder")).expect("the folder") {
        use std::os::unix::fs::PermissionsExt;
        let entry = entry.expect("a file");
        let mode = entry.metadata().expect("its mode").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{entry:?}");
    }
    drop(journal);
    let (_, opened) = Journal::open(&path, Settings::default()).expect("it opens");
    assert!(!opened.created);
    assert_eq!((opened.last_seq, opened.entries, opened.sessions), (1, 1, 1));
}

#[test]
fn a_second_opening_is_told_who_holds_it() {
    let scratch = Scratch::new();
    let journal = scratch.open();
    let error = Journal::open(scratch.journal(), Settings::default()).expect_err("it is held");
    let Error::HeldBy { pid, .. } = &error else { panic!("{error}") };
    assert_eq!(*pid, std::process::id());
    drop(journal);
    scratch.open();
}

#[test]
fn a_second_process_is_told_who_holds_it_until_that_one_dies() {
    let scratch = Scratch::new();
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "opening::child_that_holds_the_journal", "--nocapture"])
        .env(HOLD, scratch.journal())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child");
    let output = BufReader::new(child.stdout.take().expect("its output"));
    let held = output.lines().any(|line| line.expect("text") == "held");
    assert!(held, "the child holds it");
    let error = Journal::open(scratch.journal(), Settings::default()).expect_err("it is held");
    assert!(error.to_string().ends_with(&format!("in use by process {}", child.id())), "{error}");
    child.kill().expect("killed");
    child.wait().expect("gone");
    scratch.open();
}

#[test]
fn child_that_holds_the_journal() {
    let Some(path) = std::env::var_os(HOLD) else { return };
    let _journal = Journal::open(path, Settings::default()).expect("it opens");
    println!("\nheld");
    // Until the parent kills us, or is gone itself.
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("a pipe");
}

const HOLD: &str = "QD_STORE_TEST_HOLD";

#[test]
fn a_file_that_is_no_database_is_set_aside_and_kept() {
    let scratch = Scratch::new();
    let garbage = "not a database at all ".repeat(400);
    fs::write(scratch.journal(), &garbage).expect("garbage");
    let (journal, opened) = scratch.opened(Settings::default());
    let aside = opened.set_aside.expect("it says so");
    assert!(aside.path.ends_with("journal.db.damaged-1"), "{aside:?}");
    assert_eq!(fs::read_to_string(&aside.path).expect("still there"), garbage);
    journal.append(entries(1, 0..3)).wait().expect("a new one was begun");
    drop(journal);
    assert_eq!(scratch.opened(Settings::default()).1.set_aside, None);
}

#[test]
fn a_torn_database_is_set_aside_with_its_log() {
    let scratch = Scratch::new();
    let journal = scratch.open();
    for n in 0..40 {
        journal.append(entries(1, n * 50..n * 50 + 50)).wait().expect("written");
    }
    drop(journal);
    // Some pages in the middle are not what was written.
    let mut bytes = fs::read(scratch.journal()).expect("the file");
    assert!(bytes.len() > 40 * 4096);
    bytes[8 * 4096..24 * 4096].fill(0xa5);
    fs::write(scratch.journal(), &bytes).expect("damaged");
    fs::write(scratch.folder().join("journal.db-wal"), b"half a log").expect("damaged");
    let (journal, opened) = scratch.opened(Settings::default());
    let aside = opened.set_aside.expect("it says so");
    assert!(!aside.reason.is_empty());
    assert_eq!(fs::read(&aside.path).expect("still there").len(), bytes.len());
    journal.append(entries(2, 0..3)).wait().expect("a new one was begun");
    let mut live = Live::default();
    live.apply(&entries(2, 0..3));
    assert_eq!(loaded(&journal), live.bytes());
}

#[test]
fn a_file_that_was_cut_off_is_set_aside() {
    let scratch = Scratch::new();
    let journal = scratch.open();
    for n in 0..40 {
        journal.append(entries(1, n * 50..n * 50 + 50)).wait().expect("written");
    }
    drop(journal);
    let file = fs::OpenOptions::new().write(true).open(scratch.journal()).expect("the file");
    file.set_len(20 * 4096 + 17).expect("cut off");
    let (journal, opened) = scratch.opened(Settings::default());
    assert!(opened.set_aside.is_some());
    journal.append(entries(1, 0..1)).wait().expect("a new one was begun");
}

#[test]
fn damaged_files_pile_up_to_a_limit_and_none_is_overwritten() {
    let scratch = Scratch::new();
    for nth in 1..=DAMAGED_FILES_MAX {
        fs::write(scratch.journal(), format!("{nth:0>200}")).expect("garbage");
        let (_, opened) = scratch.opened(Settings::default());
        let aside = opened.set_aside.expect("it says so").path;
        assert_eq!(fs::read_to_string(aside).expect("kept"), format!("{nth:0>200}"));
    }
    fs::write(scratch.journal(), "x".repeat(200)).expect("garbage");
    let refused = Journal::open(scratch.journal(), Settings::default());
    assert!(matches!(refused, Err(Error::TooManyDamaged { .. })), "{refused:?}");
    assert_eq!(fs::read_to_string(scratch.journal()).expect("untouched"), "x".repeat(200));
}

#[test]
fn an_empty_file_is_a_new_journal() {
    let scratch = Scratch::new();
    fs::write(scratch.journal(), "").expect("an empty file");
    let (journal, opened) = scratch.opened(Settings::default());
    assert_eq!((opened.set_aside, opened.migrated_from), (None, None));
    journal.append(entries(1, 0..1)).wait().expect("written");
    drop(journal);
    // Closed in order, it leaves no log behind.
    assert_eq!(scratch.files(), ["journal.db", "journal.db.head", "journal.db.lock"]);
}

#[test]
fn a_path_that_cannot_be_is_said_plainly() {
    let scratch = Scratch::new();
    fs::write(scratch.folder().join("file"), "x").expect("a file");
    let refused =
        Journal::open(scratch.folder().join("file").join("journal.db"), Settings::default());
    assert!(matches!(refused, Err(Error::Io { .. })), "{refused:?}");
    fs::create_dir(scratch.journal()).expect("a folder in its place");
    let refused = Journal::open(scratch.journal(), Settings::default());
    assert!(refused.is_err(), "{refused:?}");
}
