//! Where a decision stands, and what whoever gives one is told.

use serde::{Deserialize, Serialize};

use super::record::{Record, Subject};
use crate::id::Way;
use crate::moment::Timestamp;

/// A decision that the book remembers.
#[derive(Debug, Clone, PartialEq)]
pub struct Decided {
    /// The number of its first record.
    pub seq: u64,
    pub at: Timestamp,
    pub subject: Subject,
    pub standing: Standing,
    /// Bytes of its first record.
    pub(super) bytes: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "standing", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Standing {
    /// On record; somebody is about to deliver it.
    InFlight,
    /// As `InFlight`, and the agent has closed the request meanwhile.
    Ending,
    /// On record, and perhaps sent; nobody is delivering it now. The way may come back for it.
    Unsettled,
    /// A command ends here; an answer waits for the agent's own signals.
    Delivered {
        way: Way,
    },
    Confirmed {
        way: Way,
    },
    Failed {
        why: String,
    },
    Overtaken,
    Unclear,
}

/// A decision was taken.
#[derive(Debug, Clone, PartialEq)]
pub enum Given {
    /// It is to be delivered once the record is on disk.
    Fresh { record: Box<Record> },
    /// The same caller has given it before: this is what became of it.
    Repeated { first: Box<Decided> },
}

/// A decision was not taken, and changed nothing.
#[derive(Debug, Clone, PartialEq)]
pub enum Refused {
    /// Somebody's answer stands.
    AlreadyAnswered { first: Box<Decided> },
    /// The agent closed the request without an answer of ours.
    Closed,
    /// No such request is known.
    Unknown,
    /// The same caller has used the key for something else.
    KeyReused { first: Box<Decided> },
    /// It cannot be put on record.
    Unrecordable { why: String },
    /// As many decisions as are remembered wait to be settled.
    Full,
}

impl Standing {
    /// As it is spelled.
    pub fn name(&self) -> &'static str {
        match self {
            Self::InFlight => "in_flight",
            Self::Ending => "ending",
            Self::Unsettled => "unsettled",
            Self::Delivered { .. } => "delivered",
            Self::Confirmed { .. } => "confirmed",
            Self::Failed { .. } => "failed",
            Self::Overtaken => "overtaken",
            Self::Unclear => "unclear",
        }
    }
}

impl Decided {
    /// Nothing will be heard of it any more.
    pub fn is_settled(&self) -> bool {
        match &self.standing {
            Standing::InFlight | Standing::Ending | Standing::Unsettled => false,
            Standing::Delivered { .. } => self.subject.request().is_none(),
            Standing::Confirmed { .. }
            | Standing::Failed { .. }
            | Standing::Overtaken
            | Standing::Unclear => true,
        }
    }
}
