//! What the operator really has before their eyes: pages that were touched a moment ago and say so.
//!
//! A page that is merely open says nothing of the kind: it may lie behind the terminal in which the
//! operator waits for a dialog.

use std::collections::BTreeSet;

use qd_session::id::SessionId;

/// What is looked at now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Viewing {
    /// The board, with every card on it.
    pub board: bool,
    /// Pages of single sessions.
    pub sessions: BTreeSet<SessionId>,
}

impl Viewing {
    /// Whether the card of a session is among it.
    pub fn has(&self, session: &SessionId) -> bool {
        self.board || self.sessions.contains(session)
    }
}
