//! The journal, read by a process that does not hold it: a command beside the daemon.

use std::path::Path;

use qd_session::id::SessionId;

use crate::Result;
use crate::read::{Loaded, Numbered, Reader};
use crate::schema;

/// Sees what is on disk, and changes nothing.
#[derive(Debug)]
pub struct JournalReader {
    reader: Reader,
}

impl JournalReader {
    /// Refused where there is none, when it is not ours, and when its schema is newer.
    pub fn open(path: &Path) -> Result<Self> {
        schema::check_header(path)?;
        let connection = schema::connect_reader(path)?;
        schema::check_readable(&connection, path)?;
        Ok(Self { reader: Reader::new(connection) })
    }

    /// Entries after this number, all sessions, at most [`crate::limits::PAGE_ROWS_MAX`]; damaged
    /// ones are left out.
    pub fn entries(&self, after: u64, count_max: usize) -> Result<Vec<Numbered>> {
        self.reader.entries(after, count_max)
    }

    /// The same of one harness's sessions.
    pub fn entries_of(&self, harness: &str, after: u64, count_max: usize) -> Result<Vec<Numbered>> {
        self.reader.entries_of(harness, after, count_max)
    }

    /// The number of the entry that was written last.
    pub fn last(&self) -> Result<u64> {
        self.reader.last()
    }

    /// One session as it is now.
    pub fn load_session(&self, session: &SessionId) -> Result<Loaded> {
        self.reader.load_session(session)
    }

    /// All sessions as of one moment.
    pub fn load(&self) -> Result<Loaded> {
        self.reader.load()
    }
}
