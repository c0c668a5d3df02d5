//! What can go wrong. An error is shared by everybody whose batch was in the same transaction, so
//! it can be cloned.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::ErrorCode;

use crate::limits::QUEUE_WAIT_MAX;

#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    #[error("the journal {} is in use by process {pid}", path.display())]
    HeldBy { path: PathBuf, pid: u32 },
    #[error("the journal {} is in use by another process", path.display())]
    Held { path: PathBuf },
    #[error("no space is left; nothing of this batch was written")]
    NoSpace,
    #[error("it could not be written; nothing of this batch was kept: {0}")]
    NotWritten(Arc<rusqlite::Error>),
    #[error("another program has it locked")]
    Locked,
    #[error("it is damaged; it is set aside when it is opened again: {0}")]
    Damaged(String),
    #[error("it has schema {found}; this program knows up to {known}. It was not touched")]
    NewerSchema { found: u32, known: u32 },
    #[error("{} is a database of something else; it was not touched", .0.display())]
    Foreign(PathBuf),
    #[error("{count} damaged journals lie beside {}; move them away first", path.display())]
    TooManyDamaged { path: PathBuf, count: u32 },
    #[error("{what} is {len} long; {max} is the most")]
    TooLong { what: &'static str, len: usize, max: usize },
    #[error("{what} nests {depth} levels deep; {max} is the most that can be read back")]
    TooDeep { what: &'static str, depth: usize, max: usize },
    #[error("an entry of version {0} could not be read back by this program")]
    UnknownVersion(u32),
    #[error("{what} cannot be written as JSON: {reason}")]
    NotJson { what: &'static str, reason: String },
    #[error("no more than {max} {what} are kept")]
    TooMany { what: &'static str, max: u64 },
    #[error("record {seq} does not follow record {last}, which was written last")]
    RecordApart { seq: u64, last: u64 },
    #[error("a snapshot up to {upto} was asked for; the journal has only come to {last}")]
    SnapshotAhead { upto: u64, last: u64 },
    #[error("the disk took nothing for {} seconds; the journal's queue is full", QUEUE_WAIT_MAX.as_secs())]
    Stalled,
    #[error("the journal was taken away and could not be written anew: {0}")]
    Away(String),
    #[error("the journal is closed")]
    Closed,
    #[error("{what} {}: {error}", path.display())]
    Io { what: &'static str, path: PathBuf, error: Arc<io::Error> },
    #[error("the database: {0}")]
    Sql(Arc<rusqlite::Error>),
}

impl Error {
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Io { what, path: path.to_owned(), error: Arc::new(error) }
    }

    /// The same call may succeed later, with nothing changed but the world.
    pub fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::NoSpace | Self::NotWritten(_) | Self::Locked | Self::Stalled | Self::Away(_)
        )
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::Error as Sql;
        if matches!(
            error,
            Sql::FromSqlConversionFailure(..)
                | Sql::IntegralValueOutOfRange(..)
                | Sql::InvalidColumnType(..)
        ) {
            // We never wrote that.
            return Self::Damaged(error.to_string());
        }
        let Some(code) = error.sqlite_error_code() else {
            return Self::Sql(Arc::new(error));
        };
        #[expect(clippy::wildcard_enum_match_arm, reason = "SQLite's list, and it is open")]
        match code {
            ErrorCode::DiskFull => Self::NoSpace,
            ErrorCode::SystemIoFailure | ErrorCode::ReadOnly => Self::NotWritten(Arc::new(error)),
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Self::Locked,
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
                Self::Damaged(error.to_string())
            }
            _ => Self::Sql(Arc::new(error)),
        }
    }
}
