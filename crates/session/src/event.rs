//! The journal's format: one entry for each thing that happened to a session.
//!
//! This file owns it. An entry says its version; older ones are read for ever, and a field that is
//! new has a default, so an old journal still folds.

use serde::{Deserialize, Deserializer, Serialize};

use crate::id::SessionId;
use crate::machine::{self, Setup, Stimulus};
use crate::moment::Timestamp;
use crate::monitor::AgentEvent;
use crate::seed::Seed;
use crate::session::Session;

/// The version that is written.
pub const VERSION: u32 = 1;

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    #[serde(rename = "v", deserialize_with = "known_version")]
    pub version: u32,
    pub session: SessionId,
    /// When it was journaled; an observed event has its own time inside.
    pub at: Timestamp,
    #[serde(flatten)]
    pub event: Event,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Event {
    /// The session is driven by us, this way.
    SetUp {
        setup: Setup,
    },
    Driven {
        seed: Seed,
        event: machine::Event,
    },
    Observed {
        event: AgentEvent,
    },
    /// The operator has seen it and wants it out of Needs You.
    Dismissed,
}

fn known_version<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    match u32::deserialize(from)? {
        version @ 1..=VERSION => Ok(version),
        version => Err(serde::de::Error::custom(format!(
            "journal version {version}; this program reads up to {VERSION}"
        ))),
    }
}

impl Entry {
    pub fn new(session: SessionId, at: Timestamp, event: Event) -> Self {
        Self { version: VERSION, session, at, event }
    }

    pub(crate) fn stimulus(&self, seed: Seed, event: &machine::Event) -> Stimulus {
        Stimulus { session: self.session.clone(), at: self.at, seed, event: event.clone() }
    }
}

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
