//! A session that somebody wants.

use std::sync::Arc;

use qd_harness::Harness;
use qd_session::id::SessionId;
use qd_session::logbook::Brief;
use qd_session::machine::{AgentError, Setup};

/// Sessions that we drive and that have not ended. Each may hold a process tree, an open stream and
/// some megabytes of conversation.
pub const DRIVEN_MAX: usize = 64;

#[derive(Debug, Clone, PartialEq)]
pub struct Spawning {
    /// Ours, fresh.
    pub session: SessionId,
    pub harness: Harness,
    pub setup: Setup,
    pub brief: Brief,
    /// The agent's own id, where it is known before it starts.
    pub vendor_id: Option<Arc<str>>,
    /// Hooks that cannot be used: shown on the session, which goes on without them.
    pub trouble: Option<AgentError>,
}

/// Why there is no new session.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unspawned {
    #[error("{} sessions are driven already", DRIVEN_MAX)]
    TooMany,
    #[error("there is a session of that id")]
    Exists,
    #[error("nobody drives sessions here")]
    NotHere,
    #[error("{why}")]
    Impossible { why: String },
    #[error("the workspace is no folder")]
    NoWorkspace,
}
