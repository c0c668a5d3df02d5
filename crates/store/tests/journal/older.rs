//! Journals of other versions. The old ones are made here, as the program of that time made them.

use qd_session::snapshot::Snapshot;
use qd_store::{Alias, DecisionLog, Ends, Error, Journal, Settings, Written};
use rusqlite::{Connection, params};

use super::sample::{Live, delivery, entries, loaded, session};
use super::scratch::Scratch;

/// As the first version spelled it; never to be changed.
const VERSION_1: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA application_id = 1902406252;
    CREATE TABLE schema_version (version INTEGER NOT NULL);
    INSERT INTO schema_version VALUES (1);
    CREATE TABLE session (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE entry (seq INTEGER PRIMARY KEY, session INTEGER NOT NULL, body TEXT NOT NULL);
    CREATE INDEX entry_of_session ON entry (session);
    CREATE TABLE snapshot (session INTEGER PRIMARY KEY, upto INTEGER NOT NULL, body TEXT NOT NULL);
    CREATE TABLE sequence (last INTEGER NOT NULL);
    INSERT INTO sequence VALUES (0);
    CREATE TABLE set_aside (id INTEGER PRIMARY KEY, seq INTEGER NOT NULL, session TEXT NOT NULL,
        kind TEXT NOT NULL, body, reason TEXT NOT NULL);
    CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;";

/// Session 1 with a snapshot up to 3 and two entries after it, session 2 with entries only.
fn version_1(connection: &Connection) -> Live {
    connection.execute_batch(VERSION_1).expect("the old schema");
    let mut live = Live::default();
    let mut seq = 0;
    for (of, count) in [(1_u64, 5), (2, 4)] {
        let name = session(of);
        connection
            .execute("INSERT INTO session VALUES (?1, ?2)", params![of, name.as_str()])
            .expect("a session");
        for entry in entries(of, 0..count) {
            seq += 1;
            let body = serde_json::to_string(&entry).expect("JSON");
            connection
                .execute("INSERT INTO entry VALUES (?1, ?2, ?3)", params![seq, of, body])
                .expect("an entry");
            live.apply(&[entry]);
            if seq == 3 {
                let body = serde_json::to_string(&Snapshot::of(&live.0[&name])).expect("JSON");
                connection
                    .execute("INSERT INTO snapshot VALUES (1, 3, ?1)", params![body])
                    .expect("a snapshot");
            }
        }
    }
    connection.execute("UPDATE sequence SET last = ?1", params![seq]).expect("the last number");
    live
}

#[test]
fn a_journal_of_version_1_is_migrated_and_folds_as_before() {
    let scratch = Scratch::new();
    let live = version_1(&scratch.sql());
    let (journal, opened) = scratch.opened(Settings::default());
    assert_eq!(opened.migrated_from, Some(1));
    assert_eq!((opened.last_seq, opened.entries, opened.sessions), (9, 9, 2));
    assert_eq!(loaded(&journal), live.bytes());
    // What the new version can do, it can do here.
    let alias = Alias { harness: "codex".into(), vendor_id: "v".into(), session: session(1) };
    journal.set_alias(alias).wait().expect("written");
    let written =
        journal.append_once(delivery("spool", 1), entries(1, 5..6)).wait().expect("written");
    assert_eq!(written, Written::Fresh(10..11));
    drop(journal);
    let (journal, opened) = scratch.opened(Settings::default());
    assert_eq!(opened.migrated_from, None);
    assert_eq!(journal.alias("codex", "v").expect("readable"), Some(session(1)));
}

/// What the second version added; never to be changed.
const VERSION_2: &str = "
    CREATE TABLE alias (harness TEXT NOT NULL, vendor_id TEXT NOT NULL, session INTEGER NOT NULL,
        PRIMARY KEY (harness, vendor_id)) WITHOUT ROWID;
    CREATE INDEX alias_of_session ON alias (session);
    CREATE TABLE delivered (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, body BLOB);
    INSERT INTO delivered (id, body) VALUES ('spool-1', x'00');
    UPDATE schema_version SET version = 2;";

#[test]
fn a_journal_of_version_2_is_migrated_and_takes_records() {
    let scratch = Scratch::new();
    let live = version_1(&scratch.sql());
    scratch.sql().execute_batch(VERSION_2).expect("the old schema");
    let log = DecisionLog::open(&scratch.journal()).expect("readable").expect("there");
    let ends = log.follow(|_, line| panic!("{line:?}")).expect("readable");
    assert_eq!(ends, Ends::default());
    let (journal, opened) = scratch.opened(Settings::default());
    assert_eq!(opened.migrated_from, Some(2));
    assert_eq!(loaded(&journal), live.bytes());
    let known = journal.append_once(delivery("spool", 1), entries(1, 5..6)).wait();
    assert_eq!(known.expect("written"), Written::Repeated);
    super::decisions::write(&journal, 1..4);
    assert_eq!(super::decisions::whole(&scratch.journal()), 3);
}

#[test]
fn a_migration_that_cannot_be_done_leaves_the_old_journal() {
    let scratch = Scratch::new();
    let live = version_1(&scratch.sql());
    let in_the_way = "CREATE TABLE delivered (something TEXT)";
    scratch.sql().execute_batch(in_the_way).expect("in the way");
    let refused = Journal::open(scratch.journal(), Settings::default());
    assert!(matches!(refused, Err(Error::Sql(_))), "{refused:?}");
    let version: u32 = scratch
        .sql()
        .query_row("SELECT version FROM schema_version", [], |row| row.get(0))
        .expect("the version");
    assert_eq!(version, 1);
    scratch.sql().execute_batch("DROP TABLE delivered").expect("out of the way");
    assert_eq!(loaded(&scratch.open()), live.bytes());
}

#[test]
fn a_newer_journal_is_not_touched() {
    let scratch = Scratch::new();
    drop(scratch.open());
    scratch.sql().execute_batch("UPDATE schema_version SET version = 99").expect("newer");
    let before = std::fs::read(scratch.journal()).expect("the file");
    let refused = Journal::open(scratch.journal(), Settings::default());
    assert!(matches!(refused, Err(Error::NewerSchema { found: 99, .. })), "{refused:?}");
    assert_eq!(std::fs::read(scratch.journal()).expect("the file"), before);
}

#[test]
fn somebody_elses_database_is_not_touched() {
    let scratch = Scratch::new();
    scratch.sql().execute_batch("CREATE TABLE recipe (name TEXT)").expect("a cook's");
    let before = std::fs::read(scratch.journal()).expect("the file");
    let refused = Journal::open(scratch.journal(), Settings::default());
    assert!(matches!(refused, Err(Error::Foreign(_))), "{refused:?}");
    assert_eq!(std::fs::read(scratch.journal()).expect("the file"), before);
}
