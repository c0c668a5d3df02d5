//! How much is kept.

use crate::limits::{
    ENTRIES_MAX, ENTRIES_PER_SESSION_MAX, FILE_BYTES_MAX, RECORDS_BYTES_MAX, RECORDS_MAX,
    SESSIONS_MAX, SLACK_DIVISOR, UPKEEP_STEP,
};

/// How much the journal keeps. The defaults are those of [`crate::limits`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Entries of one session; only those that a snapshot covers are pruned.
    pub entries_per_session_max: usize,
    /// Entries in all; the oldest go first.
    pub entries_max: usize,
    /// Sessions; those that nothing was written to for longest go first.
    pub sessions_max: usize,
    /// Records of decisions, and their bytes; the oldest go first, and the chain begins after them.
    pub records_max: usize,
    pub records_bytes_max: u64,
    /// The database file. What does not fit is refused as [`crate::Error::NoSpace`].
    pub file_bytes_max: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            entries_per_session_max: ENTRIES_PER_SESSION_MAX,
            entries_max: ENTRIES_MAX,
            sessions_max: SESSIONS_MAX,
            records_max: RECORDS_MAX,
            records_bytes_max: RECORDS_BYTES_MAX,
            file_bytes_max: FILE_BYTES_MAX,
        }
    }
}

impl Settings {
    /// Where pruning begins; it ends at the limit itself.
    pub(crate) fn with_slack(limit: usize) -> usize {
        limit.saturating_add((limit / SLACK_DIVISOR).min(UPKEEP_STEP))
    }
}
