//! What the writer knows without asking: read when the journal is opened, and again whenever a
//! transaction failed, so that it never says more than the disk.

use rusqlite::Connection;

use crate::decision_log::Ends;
use crate::head::Head;
use crate::tally::Tallies;
use crate::{Result, Settings};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Memory {
    pub tallies: Tallies,
    /// The last number that was given.
    pub last: u64,
    pub aliases: u64,
    pub meta_rows: u64,
    pub deliveries: u64,
    pub delivery_bodies: u64,
    pub delivery_bytes: u64,
    pub set_aside: u64,
    pub records: u64,
    pub ends: Ends,
}

impl Memory {
    /// How far the journal has come.
    pub fn head(&self) -> Head {
        Head { entries: self.last, last: self.ends.last }
    }

    pub fn read(connection: &Connection, settings: &Settings) -> Result<Self> {
        let one = |sql: &str| -> Result<u64> {
            Ok(connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
        };
        Ok(Self {
            tallies: Tallies::count(connection, settings)?,
            last: one("SELECT last FROM sequence")?,
            aliases: one("SELECT count(*) FROM alias")?,
            meta_rows: one("SELECT count(*) FROM meta")?,
            // Only the oldest are ever removed, so the numbers have no gaps.
            deliveries: one("SELECT coalesce(max(n) - min(n) + 1, 0) FROM delivered")?,
            delivery_bodies: one("SELECT count(*) FROM delivered WHERE body IS NOT NULL")?,
            delivery_bytes: one("SELECT coalesce(sum(octet_length(body)), 0) FROM delivered")?,
            set_aside: one("SELECT count(*) FROM set_aside")?,
            // The same holds of records.
            records: one("SELECT coalesce(max(seq) - min(seq) + 1, 0) FROM decisions")?,
            ends: Ends::for_writer(connection)?,
        })
    }
}
