//! The database's shape, and how an older one becomes the present one.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rusqlite::{Connection, OpenFlags, TransactionBehavior, params};

use crate::limits::{BUSY_WAIT_MAX, CACHE_KIB, STATEMENTS_MAX, WAL_BYTES_KEPT, WAL_PAGES};
use crate::{Error, Result, Settings};

/// Steps from nothing to the present shape. A step that was released is never changed: a journal
/// of that age still exists somewhere. The version is how many of them were taken.
pub(crate) const STEPS: [&str; 3] = [
    // 1: entries and snapshots. `session` spells out each id once; `sequence` keeps numbers rising
    // when the newest entries are gone.
    "CREATE TABLE session (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
     CREATE TABLE entry (seq INTEGER PRIMARY KEY, session INTEGER NOT NULL, body TEXT NOT NULL);
     CREATE INDEX entry_of_session ON entry (session);
     CREATE TABLE snapshot (session INTEGER PRIMARY KEY, upto INTEGER NOT NULL, body TEXT NOT NULL);
     CREATE TABLE sequence (last INTEGER NOT NULL);
     INSERT INTO sequence VALUES (0);
     CREATE TABLE set_aside (id INTEGER PRIMARY KEY, seq INTEGER NOT NULL, session TEXT NOT NULL,
         kind TEXT NOT NULL, body, reason TEXT NOT NULL);
     CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;",
    // 2: vendor ids, and what was delivered lately.
    "CREATE TABLE alias (harness TEXT NOT NULL, vendor_id TEXT NOT NULL, session INTEGER NOT NULL,
         PRIMARY KEY (harness, vendor_id)) WITHOUT ROWID;
     CREATE INDEX alias_of_session ON alias (session);
     CREATE TABLE delivered (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, body BLOB);",
    // 3: records of decisions, and both ends of their chain: the last one that retention dropped
    // and the last one written. Without a row nothing was written.
    "CREATE TABLE decisions (seq INTEGER PRIMARY KEY, hash TEXT NOT NULL, line TEXT NOT NULL);
     CREATE TABLE decisions_chain (id INTEGER PRIMARY KEY CHECK (id = 1),
         dropped INTEGER NOT NULL, dropped_hash TEXT NOT NULL,
         last INTEGER NOT NULL, last_hash TEXT NOT NULL, bytes INTEGER NOT NULL);",
];

/// The version that is written.
pub(crate) const VERSION: u32 = STEPS.len() as u32;

/// What a database of ours looks like.
#[derive(Debug)]
pub(crate) struct Shape {
    /// Says to `file(1)` and to us whose database it is.
    pub application_id: i32,
    pub steps: &'static [&'static str],
}

static JOURNAL: Shape = Shape {
    // `qdjl`
    application_id: 0x7164_6a6c,
    steps: &STEPS,
};

/// The writer's connection, checked, with the present schema; and the version that was found.
pub(crate) fn connect(path: &Path, settings: &Settings) -> Result<(Connection, u32)> {
    check_header(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    configure(&connection)?;
    check(&connection)?;
    JOURNAL.version(&connection, path)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "wal_autocheckpoint", WAL_PAGES)?;
    connection.pragma_update(None, "journal_size_limit", WAL_BYTES_KEPT)?;
    let page_size: u64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
    let pages = (settings.file_bytes_max / page_size).clamp(1, u64::from(u32::MAX) - 1);
    connection.pragma_update(None, "max_page_count", pages)?;
    let found = JOURNAL.migrate(&mut connection, path)?;
    Ok((connection, found))
}

/// A connection that only reads, beside the writer's.
pub(crate) fn connect_reader(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    configure(&connection)?;
    Ok(connection)
}

/// The same for a file that somebody else may be writing; its schema may be older.
pub(crate) fn connect_beside(path: &Path) -> Result<(Connection, u32)> {
    check_header(path)?;
    let connection = connect_reader(path)?;
    let found = JOURNAL.version(&connection, path)?;
    Ok((connection, found))
}

/// A journal that this program can read as it is.
pub(crate) fn check_readable(connection: &Connection, path: &Path) -> Result<()> {
    match JOURNAL.version(connection, path)? {
        0 => Err(Error::Foreign(path.to_owned())),
        _ => Ok(()),
    }
}

fn configure(connection: &Connection) -> Result<()> {
    connection.busy_timeout(BUSY_WAIT_MAX)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    connection.pragma_update(None, "cache_size", -i64::from(CACHE_KIB))?;
    Ok(())
}

/// SQLite takes a file that is shorter than a page for an empty one, and would write over it.
pub(crate) fn check_header(path: &Path) -> Result<()> {
    let mut begin = Vec::new();
    File::open(path)
        .and_then(|file| file.take(PAGE_BYTES_MIN).read_to_end(&mut begin))
        .map_err(Error::io("cannot read", path))?;
    if begin.is_empty() {
        return Ok(());
    }
    if !begin.starts_with(b"SQLite format 3\0") {
        return Err(Error::Damaged("it is no database".to_owned()));
    }
    if (begin.len() as u64) < PAGE_BYTES_MIN {
        return Err(Error::Damaged("it was cut off".to_owned()));
    }
    Ok(())
}

/// SQLite's smallest page.
const PAGE_BYTES_MIN: u64 = 512;

/// Reads every page once. Retention keeps the file small enough for that at each start.
fn check(connection: &Connection) -> Result<()> {
    let verdict: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if verdict == "ok" { Ok(()) } else { Err(Error::Damaged(verdict)) }
}

impl Shape {
    /// The schema's version; 0 for an empty file.
    pub fn version(&self, connection: &Connection, path: &Path) -> Result<u32> {
        let tables: u32 =
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        if tables == 0 {
            return Ok(0);
        }
        let owner: i32 = connection.query_row("PRAGMA application_id", [], |row| row.get(0))?;
        if owner != self.application_id {
            return Err(Error::Foreign(path.to_owned()));
        }
        let found = connection
            .query_row("SELECT version FROM schema_version", [], |row| row.get(0))
            .map_err(|error| Error::Damaged(format!("no schema version: {error}")))?;
        let known = self.latest();
        if found > known {
            return Err(Error::NewerSchema { found, known });
        }
        Ok(found)
    }

    /// All missing steps in one transaction: a crash leaves the old schema or the new one. The
    /// version that was found.
    pub fn migrate(&self, connection: &mut Connection, path: &Path) -> Result<u32> {
        let latest = self.latest();
        if self.version(connection, path)? == latest {
            return Ok(latest);
        }
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Somebody else may have done it while we waited.
        let found = self.version(&transaction, path)?;
        if found == 0 {
            transaction.pragma_update(None, "application_id", self.application_id)?;
            transaction.execute_batch(
                "CREATE TABLE schema_version (version INTEGER NOT NULL);
                 INSERT INTO schema_version VALUES (0);",
            )?;
        }
        for step in &self.steps[found as usize..] {
            transaction.execute_batch(step)?;
        }
        transaction.execute("UPDATE schema_version SET version = ?1", params![latest])?;
        transaction.commit()?;
        Ok(found)
    }

    fn latest(&self) -> u32 {
        self.steps.len() as u32
    }
}
