//! What was seen of a process that carries a session: whether it is stopped, and whether it moves.

use std::time::Duration;

use qd_session::id::ProcessKey;
use qd_session::moment::Timestamp;

/// How often it is measured what moves.
pub const MOVES_EVERY: Duration = Duration::from_secs(10);

/// A process to look at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Watched {
    pub process: ProcessKey,
    pub works: bool,
}

/// What was seen of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vital {
    pub process: ProcessKey,
    pub is_stopped: bool,
    /// Something of it has moved since it was measured before, so long ago at least. `None` where
    /// that was not or could not be measured.
    pub moved: Option<bool>,
    pub at: Timestamp,
}
