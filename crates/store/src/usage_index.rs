//! What was read of session files: how far, and what they told. It saves reading them again.
//!
//! A file of its own beside the journal, because a command may write it while the daemon holds the
//! journal. Several processes may have it open: each change says from where it was read on, and
//! one that somebody else has gone past is left out. Nothing in it is the only copy of anything
//! but for session files that were deleted since; so a damaged one is set aside, not deleted.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rusqlite::{
    Connection, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params,
};

use crate::file::{self, DamagedFile};
use crate::limits::{BUSY_WAIT_MAX, CACHE_KIB, INDEX_BYTES_MAX, WAL_BYTES_KEPT};
use crate::schema::{Shape, check_header};
use crate::{Error, Result};

#[derive(Debug)]
pub struct UsageIndex {
    connection: Connection,
}

/// A session file as it was left. What stands in the texts and bodies is for others to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedFile {
    pub path: PathBuf,
    pub harness: String,
    pub position: String,
    pub memory: Option<String>,
    pub project: Option<String>,
    /// What it told, in the order it was read.
    pub told: Vec<Vec<u8>>,
}

/// A session file that was read on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange<'a> {
    /// The folder it was found below.
    pub place: &'a Path,
    pub path: &'a Path,
    pub harness: &'a str,
    /// The position it was read on from; none if it was not known.
    pub before: Option<&'a str>,
    pub position: &'a str,
    pub memory: Option<&'a str>,
    pub project: Option<&'a str>,
    /// What it told before is void.
    pub anew: bool,
    /// What is new; may be empty.
    pub told: &'a [u8],
}

impl UsageIndex {
    /// Opens it, makes it if there is none. The damaged one is where it says.
    pub fn open(path: &Path) -> Result<(Self, Option<DamagedFile>)> {
        file::make_folder(path)?;
        match Self::connect(path) {
            Err(Error::Damaged(reason)) => {
                let aside = file::set_aside(path)?;
                Ok((Self::connect(path)?, Some(DamagedFile { path: aside, reason })))
            }
            opened => Ok((opened?, None)),
        }
    }

    fn connect(path: &Path) -> Result<Self> {
        file::make_file(path)?;
        check_header(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY_WAIT_MAX)?;
        connection.pragma_update(None, "cache_size", -i64::from(CACHE_KIB))?;
        // Before anything of a foreign one is changed.
        SHAPE.version(&connection, path)?;
        // After a power cut the last readings may be gone. They can be done again.
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.pragma_update(None, "journal_size_limit", WAL_BYTES_KEPT)?;
        let page_size: u64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
        connection.pragma_update(None, "max_page_count", INDEX_BYTES_MAX / page_size)?;
        SHAPE.migrate(&mut connection, path)?;
        Ok(Self { connection })
    }

    /// The files found below a place, by path.
    pub fn files(&self, place: &Path) -> Result<Vec<IndexedFile>> {
        let mut select = self.connection.prepare_cached(
            "SELECT id, path, harness, position, memory, project, told FROM file WHERE place = ?1
             ORDER BY path",
        )?;
        let mut more = self.more()?;
        let mut rows = select.query(params![place.as_os_str().as_bytes()])?;
        let mut files = Vec::new();
        while let Some(row) = rows.next()? {
            let path = row.get_ref(1)?.as_blob().map_err(rusqlite::Error::from)?;
            let first: Vec<u8> = row.get(6)?;
            let told = std::iter::once(first).chain(more.remove(&row.get(0)?).unwrap_or_default());
            files.push(IndexedFile {
                path: OsStr::from_bytes(path).into(),
                harness: row.get(2)?,
                position: row.get(3)?,
                memory: row.get(4)?,
                project: row.get(5)?,
                told: told.filter(|told| !told.is_empty()).collect(),
            });
        }
        Ok(files)
    }

    /// What files told when they were read on. Most never are.
    fn more(&self) -> Result<HashMap<i64, Vec<Vec<u8>>>> {
        let mut select =
            self.connection.prepare_cached("SELECT file, told FROM more ORDER BY id")?;
        let mut rows = select.query([])?;
        let mut all: HashMap<i64, Vec<Vec<u8>>> = HashMap::new();
        while let Some(row) = rows.next()? {
            all.entry(row.get(0)?).or_default().push(row.get(1)?);
        }
        Ok(all)
    }

    /// Writes what was read: all of it, or on an error nothing.
    pub fn write(&mut self, changes: &[FileChange<'_>]) -> Result<()> {
        if changes.is_empty() {
            return Ok(());
        }
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for change in changes {
            match change.before {
                Some(before) => update(&transaction, change, before)?,
                None => insert(&transaction, change)?,
            }
        }
        transaction.commit()?;
        Ok(())
    }
}

/// A file that is new; unless somebody else has read it meanwhile.
fn insert(transaction: &Transaction<'_>, change: &FileChange<'_>) -> Result<()> {
    let FileChange { harness, position, memory, project, told, .. } = change;
    let (place, path) = (change.place.as_os_str().as_bytes(), change.path.as_os_str().as_bytes());
    let mut insert = transaction.prepare_cached(
        "INSERT INTO file (place, path, harness, position, memory, project, told)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (path) DO NOTHING",
    )?;
    insert.execute(params![place, path, harness, position, memory, project, told])?;
    Ok(())
}

/// A file that was read on; unless somebody else has read it further meanwhile.
fn update(transaction: &Transaction<'_>, change: &FileChange<'_>, before: &str) -> Result<()> {
    let FileChange { harness, position, memory, project, told, .. } = change;
    let (place, path) = (change.place.as_os_str().as_bytes(), change.path.as_os_str().as_bytes());
    let mut update = transaction.prepare_cached(
        "UPDATE file SET place = ?3, harness = ?4, position = ?5, memory = ?6, project = ?7
         WHERE path = ?1 AND position = ?2 RETURNING id",
    )?;
    let values = params![path, before, place, harness, position, memory, project];
    let id: Option<i64> = update.query_row(values, |row| row.get(0)).optional()?;
    let Some(id) = id else { return Ok(()) };
    if change.anew {
        transaction.prepare_cached("DELETE FROM more WHERE file = ?1")?.execute(params![id])?;
        transaction
            .prepare_cached("UPDATE file SET told = ?2 WHERE id = ?1")?
            .execute(params![id, told])?;
    } else if !told.is_empty() {
        transaction
            .prepare_cached("INSERT INTO more (file, told) VALUES (?1, ?2)")?
            .execute(params![id, told])?;
    }
    Ok(())
}

static SHAPE: Shape = Shape {
    // `qdus`
    application_id: 0x7164_7573,
    steps: &[
        // 1: files, and what they told: at the first reading, and when they were read on. Paths
        // are bytes.
        "CREATE TABLE file (id INTEGER PRIMARY KEY, place BLOB NOT NULL, path BLOB NOT NULL UNIQUE,
             harness TEXT NOT NULL, position TEXT NOT NULL, memory TEXT, project TEXT,
             told BLOB NOT NULL);
         CREATE TABLE more (id INTEGER PRIMARY KEY, file INTEGER NOT NULL, told BLOB NOT NULL);
         CREATE INDEX more_of_file ON more (file);",
    ],
};
