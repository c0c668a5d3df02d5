//! What the writer knows by heart: each session's number of entries and how far its snapshot goes.
//!
//! Counted when the journal is opened, so nothing stored can disagree with the entries themselves.

use std::collections::{BTreeMap, BTreeSet};

use qd_session::id::SessionId;
use rusqlite::Connection;

use crate::{Result, Settings};

/// A session's number inside the database.
pub(crate) type Row = i64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Tally {
    pub name: SessionId,
    pub entries: usize,
    /// The newest entry or snapshot: what was written to last is forgotten last.
    pub last: u64,
    /// The snapshot holds everything up to here; 0 without one.
    pub upto: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tallies {
    rows: BTreeMap<SessionId, Row>,
    sessions: BTreeMap<Row, Tally>,
    entries: usize,
    row_last: Row,
    /// Sessions with more entries than are kept.
    crowded: BTreeSet<Row>,
    per_session_max: usize,
}

impl Tallies {
    pub fn count(connection: &Connection, settings: &Settings) -> Result<Self> {
        let per_session_max = settings.entries_per_session_max;
        let mut tallies = Self { per_session_max, ..Self::default() };
        let mut sessions = connection.prepare("SELECT id, name FROM session")?;
        let mut rows = sessions.query([])?;
        while let Some(row) = rows.next()? {
            tallies.add(row.get(0)?, SessionId::new(row.get::<_, String>(1)?));
        }
        let mut snapshots = connection.prepare("SELECT session, upto FROM snapshot")?;
        let mut rows = snapshots.query([])?;
        while let Some(row) = rows.next()? {
            tallies.snapshot_taken(row.get(0)?, row.get(1)?);
        }
        let mut entries =
            connection.prepare("SELECT session, count(*), max(seq) FROM entry GROUP BY session")?;
        let mut rows = entries.query([])?;
        while let Some(row) = rows.next()? {
            tallies.appended(row.get(0)?, row.get(1)?, row.get(2)?);
        }
        Ok(tallies)
    }

    pub fn row(&self, name: &SessionId) -> Option<Row> {
        self.rows.get(name).copied()
    }

    /// A number for a session that is new.
    pub fn next_row(&self) -> Row {
        self.row_last + 1
    }

    pub fn of(&self, row: Row) -> Option<&Tally> {
        self.sessions.get(&row)
    }

    pub fn add(&mut self, row: Row, name: SessionId) {
        self.row_last = self.row_last.max(row);
        self.rows.insert(name.clone(), row);
        self.sessions.insert(row, Tally { name, entries: 0, last: 0, upto: 0 });
    }

    pub fn appended(&mut self, row: Row, count: usize, last: u64) {
        let Some(tally) = self.sessions.get_mut(&row) else { return };
        tally.entries += count;
        tally.last = tally.last.max(last);
        self.entries += count;
        if tally.entries > Settings::with_slack(self.per_session_max) {
            self.crowded.insert(row);
        }
    }

    pub fn removed(&mut self, row: Row, count: usize) {
        let Some(tally) = self.sessions.get_mut(&row) else { return };
        tally.entries = tally.entries.saturating_sub(count);
        self.entries = self.entries.saturating_sub(count);
        if tally.entries <= self.per_session_max {
            self.crowded.remove(&row);
        }
    }

    pub fn snapshot_taken(&mut self, row: Row, upto: u64) {
        let Some(tally) = self.sessions.get_mut(&row) else { return };
        tally.upto = upto;
        tally.last = tally.last.max(upto);
    }

    pub fn snapshot_lost(&mut self, row: Row) {
        if let Some(tally) = self.sessions.get_mut(&row) {
            tally.upto = 0;
        }
    }

    pub fn forget(&mut self, row: Row) {
        if let Some(tally) = self.sessions.remove(&row) {
            self.rows.remove(&tally.name);
            self.crowded.remove(&row);
            self.entries = self.entries.saturating_sub(tally.entries);
        }
    }

    pub fn crowded(&self) -> impl Iterator<Item = Row> {
        self.crowded.iter().copied()
    }

    pub fn entries(&self) -> usize {
        self.entries
    }

    pub fn sessions(&self) -> impl ExactSizeIterator<Item = (Row, &Tally)> {
        self.sessions.iter().map(|(row, tally)| (*row, tally))
    }
}
