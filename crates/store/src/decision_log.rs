//! Records of decisions as they lie on disk: lines in a chain, and where it begins and ends.
//!
//! Nobody here looks into a line. Damage is handed out as it is found: whoever follows the chain
//! ([`qd_session::decision::Chain`]) says where it is broken.

use std::path::Path;

use qd_session::decision::{Hash, Link};
use rusqlite::{Connection, OptionalExtension, params};

use crate::head::Head;
use crate::limits::PAGE_ROWS_MAX;
use crate::read::as_text;
use crate::{Error, Result, schema};

/// A record as it was written, or what has become of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordLine {
    pub seq: u64,
    pub line: String,
}

/// Where the chain begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ends {
    /// The last record that retention dropped: the first one kept follows it.
    pub dropped: Link,
    /// The last one written.
    pub last: Link,
    /// Of the lines that are kept.
    pub(crate) bytes: u64,
}

/// The records of a journal, read beside whoever writes it; nothing is changed.
#[derive(Debug)]
pub struct DecisionLog {
    /// None where the journal is older than records.
    connection: Option<Connection>,
}

impl DecisionLog {
    /// Opens a journal for reading. None if there is none.
    pub fn open(path: &Path) -> Result<Option<Self>> {
        match path.try_exists() {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(error) => return Err(Error::io("cannot read", path)(error)),
        }
        let (connection, found) = schema::connect_beside(path)?;
        Ok(Some(Self { connection: (found >= SINCE).then_some(connection) }))
    }

    /// What the head beside the journal tells of and this journal has not: entries and records.
    /// The head is read before the journal is looked at, as one that is written is ahead of it.
    pub fn missing(&self, head: &Head) -> Result<Option<(u64, u64)>> {
        let Some(connection) = &self.connection else { return Ok(None) };
        let moment = connection.unchecked_transaction()?;
        let ends = Ends::read(&moment)?;
        let entries = moment.query_row("SELECT last FROM sequence", [], |row| row.get(0))?;
        let found = Head { entries, last: ends.last };
        Ok(head.missing(&found, |seq| hash_of(&moment, &ends, seq)))
    }

    /// Gives every line, oldest first, as of one moment; and the ends at that moment.
    pub fn follow(&self, mut take: impl FnMut(Ends, RecordLine)) -> Result<Ends> {
        let Some(connection) = &self.connection else { return Ok(Ends::default()) };
        let moment = connection.unchecked_transaction()?;
        let ends = Ends::read(&moment)?;
        let mut lines = moment.prepare("SELECT seq, line FROM decisions ORDER BY seq")?;
        let mut rows = lines.query([])?;
        while let Some(row) = rows.next()? {
            take(ends, RecordLine { seq: row.get(0)?, line: as_text(row.get_ref(1)?) });
        }
        Ok(ends)
    }
}

/// The schema that brought records.
const SINCE: u32 = 3;

impl Ends {
    pub(crate) fn read(connection: &Connection) -> Result<Self> {
        let sql = "SELECT dropped, dropped_hash, last, last_hash, bytes FROM decisions_chain";
        let ends = connection.prepare_cached(sql)?.query_row([], |row| {
            Ok(Self {
                dropped: link(row.get(0)?, &row.get::<_, String>(1)?),
                last: link(row.get(2)?, &row.get::<_, String>(3)?),
                bytes: row.get(4)?,
            })
        });
        Ok(ends.optional()?.unwrap_or_default())
    }

    /// What the next record follows. Where the ends were damaged and there are records after
    /// them, it is the last of those: a number is never given twice.
    pub(crate) fn for_writer(connection: &Connection) -> Result<Self> {
        let mut ends = Self::read(connection)?;
        let sql = "SELECT seq, hash FROM decisions WHERE seq > ?1 ORDER BY seq DESC LIMIT 1";
        let newest = connection
            .prepare_cached(sql)?
            .query_row(params![ends.last.seq], |row| {
                Ok(link(row.get(0)?, &row.get::<_, String>(1)?))
            })
            .optional()?;
        ends.last = newest.unwrap_or(ends.last);
        Ok(ends)
    }

    pub(crate) fn keep(&self, connection: &Connection) -> Result<()> {
        let Self { dropped, last, bytes } = self;
        let sql = "REPLACE INTO decisions_chain (id, dropped, dropped_hash, last, last_hash, bytes)
             VALUES (1, ?1, ?2, ?3, ?4, ?5)";
        connection.prepare_cached(sql)?.execute(params![
            dropped.seq,
            dropped.hash.to_string(),
            last.seq,
            last.hash.to_string(),
            bytes
        ])?;
        Ok(())
    }
}

/// A hash that is none fits no record, so whoever follows the chain finds it.
pub(crate) fn link(seq: u64, hash: &str) -> Link {
    Link { seq, hash: Hash::read(hash).unwrap_or_default() }
}

/// The hash of a record that is kept, or of the last that is not.
pub(crate) fn hash_of(connection: &Connection, ends: &Ends, seq: u64) -> Option<Hash> {
    if seq == ends.dropped.seq {
        return Some(ends.dropped.hash);
    }
    let sql = "SELECT hash FROM decisions WHERE seq = ?1";
    let hash = connection.query_row(sql, params![seq], |row| row.get::<_, String>(0)).ok()?;
    Hash::read(&hash)
}

/// Lines after this number.
pub(crate) fn page(
    connection: &Connection,
    after: i64,
    count_max: usize,
) -> Result<Vec<RecordLine>> {
    let sql = "SELECT seq, line FROM decisions WHERE seq > ?1 ORDER BY seq LIMIT ?2";
    let mut lines = connection.prepare_cached(sql)?;
    let mut rows = lines.query(params![after, count_max.min(PAGE_ROWS_MAX)])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(RecordLine { seq: row.get(0)?, line: as_text(row.get_ref(1)?) });
    }
    Ok(found)
}
