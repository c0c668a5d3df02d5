//! What can be asked of the journal. Reading has a connection of its own and sees what is on disk.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use qd_session::Session;
use qd_session::event::Entry;
use qd_session::id::SessionId;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Rows, params};

use crate::batch::{Alias, Delivery};
use crate::decision_log::{self, Ends, RecordLine};
use crate::fold::{DamagedRecord, Folded, entry_in};
use crate::limits::PAGE_ROWS_MAX;
use crate::tally::Row;
use crate::{Error, Result};

/// Everything that is remembered.
#[derive(Debug, Default)]
pub struct Loaded {
    /// In the order they were first written.
    pub sessions: Vec<Replayed>,
    /// What could not be read. It was moved to `set_aside`, unless `not_set_aside` says why not.
    pub damaged: Vec<DamagedRecord>,
    pub not_set_aside: Option<Error>,
}

/// A session as it was live after the entry `upto`.
#[derive(Debug, Clone, PartialEq)]
pub struct Replayed {
    pub session: Session,
    pub upto: u64,
}

/// A session as it was live, and every harness and vendor's id that finds it.
#[derive(Debug, Clone, PartialEq)]
pub struct Remembered {
    pub session: Session,
    pub aliases: Vec<(String, String)>,
}

/// An entry with its number.
#[derive(Debug, Clone, PartialEq)]
pub struct Numbered {
    pub seq: u64,
    pub entry: Entry,
}

/// A damaged record as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAsideRecord {
    pub seq: u64,
    pub session: String,
    /// `entry` or `snapshot`.
    pub kind: String,
    /// As far as it is text.
    pub body: String,
    pub reason: String,
}

pub(crate) struct Reader {
    connection: Mutex<Connection>,
}

impl Reader {
    pub fn new(connection: Connection) -> Self {
        Self { connection: Mutex::new(connection) }
    }

    /// Reads from another one from now on; the old one is closed.
    pub fn replace(&self, connection: Connection) {
        *self.connection.lock().unwrap_or_else(PoisonError::into_inner) = connection;
    }

    /// All sessions as of one moment, whatever is written meanwhile. Entries are read in the
    /// order they lie on disk: one session after the other would read each page many times.
    pub fn load(&self) -> Result<Loaded> {
        self.with(|connection| {
            let mut folds = BTreeMap::new();
            let mut tails_begin = None;
            let mut sessions = connection.prepare_cached("SELECT id, name FROM session")?;
            let mut rows = sessions.query([])?;
            while let Some(found) = rows.next()? {
                let row: Row = found.get(0)?;
                let name = SessionId::new(found.get::<_, String>(1)?);
                let folded = Folded::begin(connection, row, &name)?;
                if folded.has_tail(connection, row)? {
                    let upto = folded.upto;
                    tails_begin = Some(tails_begin.map_or(upto, |begin: u64| begin.min(upto)));
                }
                folds.insert(row, folded);
            }
            if let Some(begin) = tails_begin {
                let sql = "SELECT session, seq, body FROM entry WHERE seq > ?1 ORDER BY seq";
                let mut entries = connection.prepare_cached(sql)?;
                let mut rows = entries.query(params![begin])?;
                while let Some(found) = rows.next()? {
                    if let Some(folded) = folds.get_mut(&found.get(0)?) {
                        folded.take(found.get(1)?, found.get_ref(2)?);
                    }
                }
            }
            Ok(folds.into_values().collect())
        })
    }

    /// The same, one session at a time: whoever takes them decides how much of them is in memory.
    /// The entries of one lie near each other, because they were written at the same time.
    pub fn load_each(&self, mut take: impl FnMut(Remembered)) -> Result<Vec<DamagedRecord>> {
        self.with(|connection| {
            let mut damaged = Vec::new();
            let mut sessions =
                connection.prepare_cached("SELECT id, name FROM session ORDER BY id")?;
            let mut of_session = connection.prepare_cached(
                "SELECT harness, vendor_id FROM alias WHERE session = ?1
                 ORDER BY harness, vendor_id",
            )?;
            let mut rows = sessions.query([])?;
            while let Some(found) = rows.next()? {
                let row: Row = found.get(0)?;
                let name = SessionId::new(found.get::<_, String>(1)?);
                let mut folded = Folded::begin(connection, row, &name)?;
                folded.take_tail(connection, row, usize::MAX)?;
                let is_empty = folded.is_empty();
                damaged.append(&mut folded.damaged);
                if !is_empty {
                    let aliases = of_session
                        .query_map(params![row], |row| Ok((row.get(0)?, row.get(1)?)))?
                        .collect::<rusqlite::Result<_>>()?;
                    take(Remembered { session: folded.session, aliases });
                }
            }
            Ok(damaged)
        })
    }

    pub fn load_session(&self, name: &SessionId) -> Result<Loaded> {
        self.with(|connection| {
            let Some(row) = row_of(connection, name)? else { return Ok(Loaded::default()) };
            let mut folded = Folded::begin(connection, row, name)?;
            folded.take_tail(connection, row, usize::MAX)?;
            Ok([folded].into_iter().collect())
        })
    }

    /// Entries after this number, all sessions; damaged ones are left out.
    pub fn entries(&self, after: u64, count_max: usize) -> Result<Vec<Numbered>> {
        self.with(|connection| {
            let sql = "SELECT entry.seq, session.name, entry.body FROM entry
                 JOIN session ON session.id = entry.session
                 WHERE entry.seq > ?1 ORDER BY entry.seq LIMIT ?2";
            let mut entries = connection.prepare_cached(sql)?;
            numbered(entries.query(params![number(after), count_max.min(PAGE_ROWS_MAX)])?)
        })
    }

    /// Entries of one harness's sessions after this number; damaged ones are left out.
    pub fn entries_of(&self, harness: &str, after: u64, count_max: usize) -> Result<Vec<Numbered>> {
        self.with(|connection| {
            let sql = "SELECT entry.seq, session.name, entry.body FROM entry
                 JOIN session ON session.id = entry.session
                 WHERE entry.seq > ?1
                     AND entry.session IN (SELECT session FROM alias WHERE harness = ?3)
                 ORDER BY entry.seq LIMIT ?2";
            let mut entries = connection.prepare_cached(sql)?;
            let count = count_max.min(PAGE_ROWS_MAX);
            numbered(entries.query(params![number(after), count, harness])?)
        })
    }

    /// The number of the entry that was written last.
    pub fn last(&self) -> Result<u64> {
        self.with(|connection| {
            Ok(connection.query_row("SELECT last FROM sequence", [], |row| row.get(0))?)
        })
    }

    /// One session's entries after this number.
    pub fn history(&self, name: &SessionId, after: u64, count_max: usize) -> Result<Vec<Numbered>> {
        self.with(|connection| {
            let Some(row) = row_of(connection, name)? else { return Ok(Vec::new()) };
            let sql = "SELECT seq, body FROM entry
                 WHERE session = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3";
            let mut entries = connection.prepare_cached(sql)?;
            let mut rows =
                entries.query(params![row, number(after), count_max.min(PAGE_ROWS_MAX)])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let seq = row.get(0)?;
                let entry = entry_in(row.get_ref(1)?, name).ok();
                found.extend(entry.map(|entry| Numbered { seq, entry }));
            }
            Ok(found)
        })
    }

    pub fn record_lines(&self, after: u64, count_max: usize) -> Result<Vec<RecordLine>> {
        self.with(|connection| decision_log::page(connection, number(after), count_max))
    }

    pub fn record_ends(&self) -> Result<Ends> {
        self.with(Ends::for_writer)
    }

    pub fn alias(&self, harness: &str, vendor_id: &str) -> Result<Option<SessionId>> {
        self.with(|connection| {
            let sql = "SELECT session.name FROM alias JOIN session ON session.id = alias.session
                 WHERE harness = ?1 AND vendor_id = ?2";
            let mut alias = connection.prepare_cached(sql)?;
            let found = alias.query_row(params![harness, vendor_id], |row| row.get::<_, String>(0));
            Ok(found.optional()?.map(SessionId::new))
        })
    }

    pub fn aliases(&self) -> Result<Vec<Alias>> {
        self.with(|connection| {
            let sql = "SELECT harness, vendor_id, session.name FROM alias
                 JOIN session ON session.id = alias.session ORDER BY harness, vendor_id";
            let mut aliases = connection.prepare_cached(sql)?;
            let rows = aliases.query_map([], |row| {
                let session = SessionId::new(row.get::<_, String>(2)?);
                Ok(Alias { harness: row.get(0)?, vendor_id: row.get(1)?, session })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    pub fn each_delivery(&self, mut take: impl FnMut(Delivery)) -> Result<()> {
        self.with(|connection| {
            let sql = "SELECT id, coalesce(body, x'') FROM delivered ORDER BY n";
            let mut deliveries = connection.prepare_cached(sql)?;
            let mut rows = deliveries.query([])?;
            while let Some(row) = rows.next()? {
                take(Delivery { id: row.get(0)?, body: row.get(1)? });
            }
            Ok(())
        })
    }

    pub fn meta(&self, key: &str) -> Result<Option<String>> {
        self.with(|connection| {
            let mut meta = connection.prepare_cached("SELECT value FROM meta WHERE key = ?1")?;
            Ok(meta.query_row(params![key], |row| row.get(0)).optional()?)
        })
    }

    pub fn meta_with_prefix(&self, prefix: &str) -> Result<Vec<(String, String)>> {
        self.with(|connection| {
            let sql = "SELECT key, value FROM meta WHERE key >= ?1 ORDER BY key";
            let mut meta = connection.prepare_cached(sql)?;
            let mut rows = meta.query(params![prefix])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let key: String = row.get(0)?;
                if !key.starts_with(prefix) {
                    break;
                }
                found.push((key, row.get(1)?));
            }
            Ok(found)
        })
    }

    /// The newest damaged records first.
    pub fn set_aside(&self, count_max: usize) -> Result<Vec<SetAsideRecord>> {
        self.with(|connection| {
            let sql = "SELECT seq, session, kind, body, reason FROM set_aside
                 ORDER BY id DESC LIMIT ?1";
            let mut records = connection.prepare_cached(sql)?;
            let rows = records.query_map(params![count_max.min(PAGE_ROWS_MAX)], |row| {
                Ok(SetAsideRecord {
                    seq: row.get(0)?,
                    session: row.get(1)?,
                    kind: row.get(2)?,
                    body: as_text(row.get_ref(3)?),
                    reason: row.get(4)?,
                })
            })?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    /// Everything inside sees the same moment.
    fn with<T>(&self, read: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let moment = connection.unchecked_transaction()?;
        let answer = read(&connection)?;
        moment.commit()?;
        Ok(answer)
    }
}

/// Rows of a number, a session's name and an entry.
fn numbered(mut rows: Rows<'_>) -> Result<Vec<Numbered>> {
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let name = SessionId::new(row.get::<_, String>(1)?);
        let entry = entry_in(row.get_ref(2)?, &name).ok();
        let seq = row.get(0)?;
        found.extend(entry.map(|entry| Numbered { seq, entry }));
    }
    Ok(found)
}

fn row_of(connection: &Connection, name: &SessionId) -> Result<Option<Row>> {
    let mut session = connection.prepare_cached("SELECT id FROM session WHERE name = ?1")?;
    Ok(session.query_row(params![name.as_str()], |row| row.get(0)).optional()?)
}

/// As SQLite spells it; no entry has a greater one.
fn number(seq: u64) -> i64 {
    i64::try_from(seq).unwrap_or(i64::MAX)
}

impl FromIterator<Folded> for Loaded {
    fn from_iter<T: IntoIterator<Item = Folded>>(folds: T) -> Self {
        let mut loaded = Self::default();
        for folded in folds {
            if !folded.is_empty() {
                let Folded { session, upto, damaged } = folded;
                loaded.damaged.extend(damaged);
                loaded.sessions.push(Replayed { session, upto });
            }
        }
        loaded
    }
}

pub(crate) fn as_text(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes).into(),
        ValueRef::Null => String::new(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Real(number) => number.to_string(),
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reader")
    }
}
