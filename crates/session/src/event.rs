//! The journal's format: one entry for each thing that happened to a session.
//!
//! This file owns it. An entry says its version; older ones are read for ever, and a field that is
//! new has a default, so an old journal still folds.

use serde::{Deserialize, Deserializer, Serialize};

use crate::id::SessionId;
use crate::logbook::{Brief, Frozen};
use crate::machine::{self, AgentError, Change, Setup, Shown, Stimulus};
use crate::moment::Timestamp;
use crate::monitor::{AgentEvent, Monitor};
use crate::policy::{Preset, Spent};
use crate::seed::Seed;

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
        /// How it was asked for; none in journals that are older than it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        brief: Option<Box<Brief>>,
    },
    Driven {
        seed: Seed,
        event: machine::Event,
        /// The answer that is complete with this event. In one entry with it: neither is ever
        /// there without the other.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        frozen: Option<Box<Frozen>>,
    },
    Observed {
        event: AgentEvent,
    },
    /// Something about a driven session that the operator should read; it changes no state.
    Troubled {
        seed: Seed,
        error: AgentError,
    },
    /// What was believed about the same session while it was taken for another one.
    Adopted {
        monitor: Box<Monitor>,
    },
    /// The operator has seen it and wants it out of Needs You.
    Dismissed,
    /// The operator has put it into History, where nothing of it is known to live.
    Archived,
    /// The operator wants it back on the board.
    Unarchived,
    /// The machine's clock was set back by so much, and some of what is known lay in the future.
    ClockSetBack {
        by_ms: u64,
    },
    /// The machine slept until now, or its clock was set forward: the silence of that time tells
    /// nothing.
    Slept,
    /// The operator knows that a budget is spent, and lets it go on.
    BudgetSeen {
        spent: Spent,
    },
    /// The operator lets this session do so much without asking; none: as its project has it.
    PresetChosen {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        preset: Option<Preset>,
    },
    /// The client itself was told to ask nobody: so it asked before, in its own words. None: it
    /// asks again.
    ClientYolo {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<String>,
    },
}

/// For whatever says the journal's version: one that is newer than ours is not read.
pub(crate) fn known_version<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
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

    pub(crate) fn trouble(&self, seed: Seed, error: &AgentError) -> Shown {
        Shown {
            event_id: seed.change(0),
            timestamp_ms: self.at,
            session_id: self.session.clone(),
            change: Change::SessionError(error.clone()),
        }
    }
}
