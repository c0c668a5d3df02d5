//! A session read back: from a snapshot, and from what its journal holds after it.
//!
//! A snapshot says the journal's version and is read as long as the journal is.

use serde::{Deserialize, Serialize};

use crate::Session;
use crate::event::{Entry, VERSION, known_version};

/// A session as far as some entry of its journal: where folding may begin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    #[serde(rename = "v", deserialize_with = "known_version")]
    pub version: u32,
    pub session: Session,
}

impl Snapshot {
    pub fn of(session: &Session) -> Self {
        Self { version: VERSION, session: session.clone() }
    }
}

/// State = snapshot + fold of the tail. Folding twice gives the same bytes.
pub fn fold<'a>(mut session: Session, tail: impl IntoIterator<Item = &'a Entry>) -> Session {
    for entry in tail {
        session.apply(entry);
    }
    session
}
