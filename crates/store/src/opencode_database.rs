//! The database that OpenCode, and Kilo from 7 on, keep their sessions in. Read, never written.
//!
//! While a client has it open, its write-ahead log lies beside it and is read with it. Where there
//! is none, nobody has it open: then it is read as a file that does not change, because SQLite
//! would make a log of its own there otherwise.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, OptionalExtension, params};

use crate::file::beside;
use crate::limits::{
    CACHE_KIB, CLIENT_BUSY_WAIT_MAX, CLIENT_LOG_BYTES_MAX, CLIENT_ROW_BYTES_MAX,
    CLIENT_SESSIONS_MAX,
};
use crate::{Error, Result};

#[derive(Debug)]
pub struct OpencodeDatabase {
    connection: Connection,
    /// Its log, where it was opened without one.
    log: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientSession {
    pub id: String,
    /// The session whose subagent it is.
    pub parent: Option<String>,
    pub directory: Option<String>,
}

/// A part of a message, and the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientPart<'a> {
    /// Grows with each part that is written.
    pub row: i64,
    pub id: &'a str,
    pub session: &'a str,
    pub created_ms: i64,
    pub part: &'a [u8],
    pub message: &'a [u8],
}

impl OpencodeDatabase {
    pub fn open(path: &Path) -> Result<Self> {
        let log = beside(path, "-wal");
        parts_are_regular(path)?;
        let log_len = log.metadata().map_or(0, |about| about.len());
        if log_len > CLIENT_LOG_BYTES_MAX {
            return Err(odd(&log));
        }
        let has_log = log_len > 0;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_URI;
        let connection = Connection::open_with_flags(address(path, has_log), flags)?;
        connection.busy_timeout(CLIENT_BUSY_WAIT_MAX)?;
        connection.pragma_update(None, "query_only", true)?;
        connection.pragma_update(None, "cache_size", -i64::from(CACHE_KIB))?;
        Ok(Self { connection, log: (!has_log).then_some(log) })
    }

    pub fn sessions(&self) -> Result<Vec<ClientSession>> {
        let mut select = self
            .connection
            .prepare("SELECT id, parent_id, directory FROM session ORDER BY rowid DESC LIMIT ?1")?;
        let rows = select.query_map([CLIENT_SESSIONS_MAX], |row| {
            Ok(ClientSession { id: row.get(0)?, parent: row.get(1)?, directory: row.get(2)? })
        })?;
        rows.map(|row| Ok(row?)).collect()
    }

    /// Parts in which `mark` stands, that were written after the row `after`; those that are too
    /// long are left out. The last row there is.
    ///
    /// An error may come after some parts: what was given out then is void.
    pub fn parts(
        &self,
        after: i64,
        mark: &str,
        mut each: impl FnMut(ClientPart<'_>),
    ) -> Result<i64> {
        let transaction = self.connection.unchecked_transaction()?;
        let last: Option<i64> =
            transaction.query_row("SELECT max(rowid) FROM part", [], |row| row.get(0))?;
        let mut select = transaction.prepare(
            "SELECT part.rowid, part.id, part.session_id, part.time_created, part.data,
                 coalesce(message.data, '')
             FROM part LEFT JOIN message ON message.id = part.message_id
             WHERE part.rowid > ?1 AND instr(part.data, ?2) > 0
                 AND length(part.data) <= ?3 AND coalesce(length(message.data), 0) <= ?3
             ORDER BY part.rowid",
        )?;
        let mut rows = select.query(params![after, mark, CLIENT_ROW_BYTES_MAX])?;
        while let Some(row) = rows.next()? {
            each(part_of(row)?);
        }
        self.still_alone()?;
        Ok(last.unwrap_or(0))
    }

    /// The last parts of a session, oldest first; those that are too long are left out. Any error
    /// makes void what was given out.
    pub fn parts_of(
        &self,
        session: &str,
        count_max: usize,
        mut each: impl FnMut(ClientPart<'_>),
    ) -> Result<()> {
        let mut select = self.connection.prepare(
            "SELECT part.rowid, part.id, part.session_id, part.time_created, part.data,
                 coalesce(message.data, '')
             FROM part LEFT JOIN message ON message.id = part.message_id
             WHERE part.rowid IN (SELECT rowid FROM part WHERE session_id = ?1
                     AND length(data) <= ?2 ORDER BY rowid DESC LIMIT ?3)
                 AND coalesce(length(message.data), 0) <= ?2
             ORDER BY part.rowid",
        )?;
        let mut rows = select.query(params![session, CLIENT_ROW_BYTES_MAX, count_max])?;
        while let Some(row) = rows.next()? {
            each(part_of(row)?);
        }
        self.still_alone()
    }

    /// Somebody who has opened it meanwhile may have moved its pages under us.
    fn still_alone(&self) -> Result<()> {
        match &self.log {
            Some(log) if log.exists() => Err(Error::Locked),
            _ => Ok(()),
        }
    }

    /// Which part a row is; none if it is no more.
    pub fn part_id(&self, row: i64) -> Result<Option<String>> {
        let mut select = self.connection.prepare("SELECT id FROM part WHERE rowid = ?1")?;
        Ok(select.query_row(params![row], |row| row.get(0)).optional()?)
    }
}

/// SQLite would wait for a FIFO in the place of any of its files, and never come back.
fn parts_are_regular(path: &Path) -> Result<()> {
    for part in ["", "-wal", "-shm"] {
        let part = beside(path, part);
        if part.metadata().is_ok_and(|found| !found.is_file()) {
            return Err(odd(&part));
        }
    }
    Ok(())
}

fn odd(path: &Path) -> Error {
    let error = io::Error::new(io::ErrorKind::InvalidInput, "it is no file of a database");
    Error::io("cannot read", path)(error)
}

fn part_of<'a>(row: &'a rusqlite::Row<'_>) -> Result<ClientPart<'a>> {
    let text = |column| row.get_ref(column).map(|value| value.as_bytes().unwrap_or(b""));
    let name = |column| text(column).map(|text| std::str::from_utf8(text).unwrap_or(""));
    Ok(ClientPart {
        row: row.get(0)?,
        id: name(1)?,
        session: name(2)?,
        created_ms: row.get_ref(3)?.as_i64().unwrap_or(0),
        part: text(4)?,
        message: text(5)?,
    })
}

/// SQLite takes options only with an address, in which some signs have a meaning.
fn address(path: &Path, has_log: bool) -> PathBuf {
    let mut address = b"file:".to_vec();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                address.push(*byte);
            }
            _ => address.extend(format!("%{byte:02X}").into_bytes()),
        }
    }
    address.extend_from_slice(if has_log { b"?mode=ro" } else { b"?mode=ro&immutable=1" });
    PathBuf::from(OsString::from_vec(address))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A database as the client makes it, in a folder of its own with an odd name.
    struct Client {
        folder: PathBuf,
        connection: Connection,
    }

    impl Client {
        fn new(name: &str) -> Self {
            let name = format!("qd-opencode {name}?%{}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            fs::create_dir_all(&folder).unwrap();
            let connection = Connection::open(folder.join("opencode.db")).unwrap();
            connection.pragma_update(None, "journal_mode", "WAL").unwrap();
            let schema =
                "CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text);
                CREATE TABLE message (id text PRIMARY KEY, data text);
                CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text,
                    time_created integer, data text);
                INSERT INTO message VALUES ('m', '{}');";
            connection.execute_batch(schema).unwrap();
            Self { folder, connection }
        }

        fn path(&self) -> PathBuf {
            self.folder.join("opencode.db")
        }

        fn insert(&self, id: &str, data: &str) {
            let insert = "INSERT INTO part VALUES (?1, 'm', 's', 7, ?2)";
            self.connection.execute(insert, params![id, data]).unwrap();
        }
    }

    impl Drop for Client {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }

    fn ids(path: &Path, after: i64) -> Result<(Vec<String>, i64)> {
        let mut ids = Vec::new();
        let last = OpencodeDatabase::open(path)?
            .parts(after, "step", |part| ids.push(part.id.to_owned()))?;
        Ok((ids, last))
    }

    #[test]
    fn rows_behind_a_row_are_read_and_long_ones_left_out() {
        let client = Client::new("rows");
        client.insert("p1", "a step");
        client.insert("p2", "another thing");
        client.insert("p3", &format!("step{}", " ".repeat(CLIENT_ROW_BYTES_MAX as usize)));
        client.insert("p4", "step");
        let read = ids(&client.path(), 0).unwrap();
        assert_eq!(read, (vec!["p1".to_owned(), "p4".to_owned()], 4));
        assert_eq!(ids(&client.path(), 1).unwrap(), (vec!["p4".to_owned()], 4));
        assert_eq!(ids(&client.path(), 4).unwrap(), (vec![], 4));
        let database = OpencodeDatabase::open(&client.path()).unwrap();
        assert_eq!(database.part_id(2).unwrap().as_deref(), Some("p2"));
        assert_eq!(database.part_id(9).unwrap(), None);
    }

    #[test]
    fn nothing_is_written_beside_a_database_that_nobody_has_open() {
        let mut client = Client::new("quiet");
        client.insert("p1", "step");
        let path = client.path();
        let other = Connection::open_in_memory().unwrap();
        std::mem::replace(&mut client.connection, other).close().unwrap();
        let names = || fs::read_dir(&client.folder).unwrap().count();
        assert_eq!(names(), 1);
        assert_eq!(ids(&path, 0).unwrap(), (vec!["p1".to_owned()], 1));
        assert_eq!(names(), 1);
    }

    #[test]
    fn a_database_that_is_locked_or_odd_is_an_error() {
        let client = Client::new("locked");
        client.insert("p1", "step");
        client.connection.pragma_update(None, "locking_mode", "EXCLUSIVE").unwrap();
        client.insert("p2", "step");
        let locked = ids(&client.path(), 0).unwrap_err();
        assert!(locked.is_temporary(), "{locked}");
        client.connection.pragma_update(None, "locking_mode", "NORMAL").unwrap();
        client.connection.execute_batch("ALTER TABLE part RENAME TO parts").unwrap();
        assert!(!ids(&client.path(), 0).unwrap_err().is_temporary());
        assert!(OpencodeDatabase::open(&client.folder.join("none.db")).is_err());
    }
}
