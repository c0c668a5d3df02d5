//! A session from its snapshot and the entries after it. What cannot be read is named, and the
//! rest folds.

use std::fmt;

use qd_session::Session;
use qd_session::event::Entry;
use qd_session::id::SessionId;
use qd_session::snapshot::Snapshot;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, params};

use crate::Result;
use crate::limits::REASON_BYTES_MAX;
use crate::tally::Row;

/// A record that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedRecord {
    pub session: SessionId,
    /// The entry's number, or how far the snapshot went.
    pub seq: u64,
    pub damage: Damage,
    pub reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Damage {
    /// One thing that happened is missing from the session.
    Entry,
    /// The session was folded from the entries that are still there; older ones may be missing.
    Snapshot,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Entry => "entry",
            Self::Snapshot => "snapshot",
        })
    }
}

/// A session as far as some entry.
#[derive(Debug)]
pub(crate) struct Folded {
    pub session: Session,
    /// The last entry looked at, or the snapshot's; 0 if there was neither.
    pub upto: u64,
    pub damaged: Vec<DamagedRecord>,
}

impl Folded {
    /// As far as the snapshot goes.
    pub fn begin(connection: &Connection, row: Row, name: &SessionId) -> Result<Self> {
        let mut folded = Self { session: Session::new(name.clone()), upto: 0, damaged: Vec::new() };
        let mut snapshot =
            connection.prepare_cached("SELECT upto, body FROM snapshot WHERE session = ?1")?;
        let found = snapshot
            .query_row(params![row], |row| Ok((row.get(0)?, snapshot_in(row.get_ref(1)?, name))))
            .optional()?;
        match found {
            None => {}
            Some((upto, Ok(session))) => (folded.session, folded.upto) = (session, upto),
            Some((upto, Err(reason))) => folded.set_aside(upto, Damage::Snapshot, reason),
        }
        Ok(folded)
    }

    /// One more entry; one that the snapshot holds already changes nothing.
    pub fn take(&mut self, seq: u64, body: ValueRef<'_>) {
        if seq <= self.upto {
            return;
        }
        self.upto = seq;
        match entry_in(body, self.session.id()) {
            Ok(entry) => drop(self.session.apply(&entry)),
            Err(reason) => self.set_aside(seq, Damage::Entry, reason),
        }
    }

    /// Folds at most this many entries.
    pub fn take_tail(
        &mut self,
        connection: &Connection,
        row: Row,
        entries_max: usize,
    ) -> Result<()> {
        let mut entries = connection.prepare_cached(
            "SELECT seq, body FROM entry WHERE session = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
        )?;
        let limit = i64::try_from(entries_max).unwrap_or(i64::MAX);
        let mut rows = entries.query(params![row, self.upto, limit])?;
        while let Some(row) = rows.next()? {
            self.take(row.get(0)?, row.get_ref(1)?);
        }
        Ok(())
    }

    /// Whether there is an entry after the last one looked at.
    pub fn has_tail(&self, connection: &Connection, row: Row) -> Result<bool> {
        let sql = "SELECT 1 FROM entry WHERE session = ?1 AND seq > ?2 LIMIT 1";
        Ok(connection.prepare_cached(sql)?.exists(params![row, self.upto])?)
    }

    /// There is a name and nothing else.
    pub fn is_empty(&self) -> bool {
        self.upto == 0 && self.damaged.is_empty()
    }

    fn set_aside(&mut self, seq: u64, damage: Damage, reason: String) {
        let session = self.session.id().clone();
        self.damaged.push(DamagedRecord { session, seq, damage, reason });
    }
}

/// The entry a row holds, or why it holds none.
pub(crate) fn entry_in(body: ValueRef<'_>, name: &SessionId) -> std::result::Result<Entry, String> {
    let entry: Entry = read(body)?;
    belongs(&entry.session, name)?;
    Ok(entry)
}

fn snapshot_in(body: ValueRef<'_>, name: &SessionId) -> std::result::Result<Session, String> {
    let snapshot: Snapshot = read(body)?;
    belongs(snapshot.session.id(), name)?;
    Ok(snapshot.session)
}

fn read<'a, T: serde::Deserialize<'a>>(body: ValueRef<'a>) -> std::result::Result<T, String> {
    let text = body.as_str().map_err(|error| shortened(error.to_string()))?;
    serde_json::from_str(text).map_err(|error| shortened(error.to_string()))
}

fn belongs(said: &SessionId, name: &SessionId) -> std::result::Result<(), String> {
    if said == name { Ok(()) } else { Err(shortened(format!("it says it is of session {said}"))) }
}

/// A parser may quote the text it does not like.
fn shortened(mut reason: String) -> String {
    reason.truncate(reason.floor_char_boundary(REASON_BYTES_MAX));
    reason
}
