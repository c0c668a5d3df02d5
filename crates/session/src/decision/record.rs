//! What is on record about a decision: that it was given, and what became of it.
//!
//! This file owns the format. A record says its version; older ones are read for ever.

use serde::{Deserialize, Deserializer, Serialize};

use super::Decision;
use super::chain::{Hash, Link};
use crate::id::{
    DecisionId, HookRunId, IdempotencyKey, RequestKey, RuleName, RunId, SessionId, ToolName, Way,
};
use crate::limits::{SHOWN_INPUT_BYTES_MAX, SHOWN_TEXT_BYTES_MAX};
use crate::moment::Timestamp;
use crate::monitor::RequestKind;
use crate::policy::Preset;

/// The version that is written.
const VERSION: u32 = 1;

/// One link of the chain.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    pub seq: u64,
    pub at: Timestamp,
    /// The hash of the record before it.
    pub prev: Hash,
    pub hash: Hash,
    pub body: Body,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Body {
    /// A request was answered. On record before anything is sent.
    Given(Box<Offer>),
    /// A rule answered in a session that we drive, before anybody was asked. It takes effect in the
    /// batch that puts it on record, so nothing follows it.
    Ruled(Box<Offer>),
    /// Something was asked of a session that is no answer. On record before anything is sent.
    Commanded(Box<Order>),
    /// The way took it.
    Delivered { decision: DecisionId, way: Way },
    /// It did not arrive: the request is open again.
    Failed { decision: DecisionId, why: String },
    /// It had been delivered, and the agent's own signals closed the request.
    Confirmed { decision: DecisionId },
    /// The agent's own signals closed the request, and the answer did not arrive.
    Overtaken { decision: DecisionId },
    /// The agent's own signals closed the request, and nobody can say whether the answer had
    /// arrived: it was sent, and the acknowledgement was lost. Of a command: it was cut off so.
    Unclear { decision: DecisionId },
}

/// An answer to a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Offer {
    pub decision: DecisionId,
    pub request: RequestKey,
    pub session: SessionId,
    pub by: By,
    /// The rule that gave it, if no person did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleName>,
    pub shown: Shown,
    pub answer: Decision,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<IdempotencyKey>,
}

/// A command to a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Order {
    pub decision: DecisionId,
    pub session: SessionId,
    pub by: By,
    pub command: Command,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<IdempotencyKey>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Command {
    Prompt {
        text: String,
    },
    Interrupt,
    Stop,
    Focus,
    Resume,
    Yolo {
        on: bool,
    },
    /// What the session may do without asking from now on; none: as its project has it.
    Policy {
        preset: Option<Preset>,
    },
    Dismiss,
    /// Of a session that we drive: hold at the next boundary.
    Pause,
    /// Of a session that we drive: once more.
    Retry {
        target: RetryTarget,
    },
}

/// What an explicit retry repeats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum RetryTarget {
    Llm,
    /// All failed runs of the batch that this one belongs to.
    Tool {
        run: RunId,
    },
    Hook {
        run: HookRunId,
    },
    Harness,
}

/// Whose decision it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct By {
    pub who: String,
    pub device: String,
}

/// What the operator saw when answering.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Shown {
    pub kind: RequestKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolName>,
    /// Cut at [`SHOWN_TEXT_BYTES_MAX`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The tool's input as JSON text, cut at [`SHOWN_INPUT_BYTES_MAX`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// The hash of the whole input, where it was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_hash: Option<Hash>,
}

/// What was decided: an answer, or a command.
#[derive(Debug, Clone, PartialEq)]
pub enum Subject {
    Answer(Box<Offer>),
    Command(Box<Order>),
}

impl Record {
    /// The record that follows `last`.
    pub fn after(last: Link, at: Timestamp, body: Body) -> Self {
        let mut record =
            Self { seq: last.seq + 1, at, prev: last.hash, hash: Hash::default(), body };
        record.hash = Hash::of(&record.unsealed());
        record
    }

    pub fn link(&self) -> Link {
        Link { seq: self.seq, hash: self.hash }
    }

    /// As it is kept.
    pub fn line(&self) -> String {
        let mut line = self.unsealed();
        line.truncate(line.len() - 1);
        line.push_str(SEAL);
        line.push_str(&self.hash.to_string());
        line.push_str(SEAL_END);
        line
    }

    /// Reads a line. The record has the hash of the text; beside it is the hash the text claims.
    pub fn read(line: &str) -> Result<(Self, Hash), String> {
        let (text, claimed) = parted(line).ok_or("it does not end with its hash")?;
        let Written { seq, at, prev, body, .. } =
            serde_json::from_str(&text).map_err(|error| error.to_string())?;
        Ok((Self { seq, at, prev, hash: Hash::of(&text), body }, claimed))
    }

    fn unsealed(&self) -> String {
        let Self { seq, at, prev, body, .. } = self;
        let written = Writing { version: VERSION, seq: *seq, at: *at, prev: *prev, body };
        // Only a map with keys that are no text could fail, and there is none.
        serde_json::to_string(&written).expect("a record is JSON")
    }
}

/// The line without its hash, and the hash.
fn parted(line: &str) -> Option<(String, Hash)> {
    let rest = line.strip_suffix(SEAL_END)?;
    let begin = rest.len().checked_sub(Hash::LEN)?;
    let claimed = Hash::read(rest.get(begin..)?)?;
    Some((rest.get(..begin)?.strip_suffix(SEAL)?.to_owned() + "}", claimed))
}

const SEAL: &str = ",\"hash\":\"";
const SEAL_END: &str = "\"}";

#[derive(Serialize)]
struct Writing<'a> {
    #[serde(rename = "v")]
    version: u32,
    seq: u64,
    at: Timestamp,
    prev: Hash,
    #[serde(flatten)]
    body: &'a Body,
}

#[derive(Deserialize)]
struct Written {
    #[serde(rename = "v", deserialize_with = "known_version")]
    _version: u32,
    seq: u64,
    at: Timestamp,
    prev: Hash,
    #[serde(flatten)]
    body: Body,
}

fn known_version<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    match u32::deserialize(from)? {
        version @ 1..=VERSION => Ok(version),
        version => Err(serde::de::Error::custom(format!(
            "record version {version}; this program reads up to {VERSION}"
        ))),
    }
}

impl Body {
    pub fn decision(&self) -> &DecisionId {
        match self {
            Self::Given(offer) | Self::Ruled(offer) => &offer.decision,
            Self::Commanded(order) => &order.decision,
            Self::Delivered { decision, .. }
            | Self::Failed { decision, .. }
            | Self::Confirmed { decision }
            | Self::Overtaken { decision }
            | Self::Unclear { decision } => decision,
        }
    }

    /// As it is spelled.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Given(_) => "given",
            Self::Ruled(_) => "ruled",
            Self::Commanded(_) => "commanded",
            Self::Delivered { .. } => "delivered",
            Self::Failed { .. } => "failed",
            Self::Confirmed { .. } => "confirmed",
            Self::Overtaken { .. } => "overtaken",
            Self::Unclear { .. } => "unclear",
        }
    }

    /// Only what is given names its session; what follows names the decision.
    pub fn session(&self) -> Option<&SessionId> {
        match self {
            Self::Given(offer) | Self::Ruled(offer) => Some(&offer.session),
            Self::Commanded(order) => Some(&order.session),
            Self::Delivered { .. }
            | Self::Failed { .. }
            | Self::Confirmed { .. }
            | Self::Overtaken { .. }
            | Self::Unclear { .. } => None,
        }
    }
}

impl Shown {
    /// Cut to what is kept.
    pub fn new(
        kind: RequestKind,
        tool: Option<ToolName>,
        text: Option<&str>,
        input: Option<&str>,
    ) -> Self {
        let is_cut = input.is_some_and(|input| input.len() > SHOWN_INPUT_BYTES_MAX);
        Self {
            kind,
            tool,
            text: text.map(|text| cut(text, SHOWN_TEXT_BYTES_MAX)),
            input: input.map(|input| cut(input, SHOWN_INPUT_BYTES_MAX)),
            input_hash: input.filter(|_| is_cut).map(Hash::of),
        }
    }
}

/// The beginning of a text, of whole characters.
pub(super) fn cut(text: &str, bytes_max: usize) -> String {
    text[..text.floor_char_boundary(bytes_max)].to_owned()
}

impl Subject {
    pub fn decision(&self) -> &DecisionId {
        match self {
            Self::Answer(offer) => &offer.decision,
            Self::Command(order) => &order.decision,
        }
    }

    pub fn session(&self) -> &SessionId {
        match self {
            Self::Answer(offer) => &offer.session,
            Self::Command(order) => &order.session,
        }
    }

    pub fn request(&self) -> Option<&RequestKey> {
        match self {
            Self::Answer(offer) => Some(&offer.request),
            Self::Command(_) => None,
        }
    }

    pub fn by(&self) -> &By {
        match self {
            Self::Answer(offer) => &offer.by,
            Self::Command(order) => &order.by,
        }
    }

    pub fn key(&self) -> Option<&IdempotencyKey> {
        match self {
            Self::Answer(offer) => offer.key.as_ref(),
            Self::Command(order) => order.key.as_ref(),
        }
    }

    /// Whether both say the same, whatever they are called and whatever was shown.
    pub(super) fn says_the_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Answer(one), Self::Answer(two)) => {
                (&one.request, &one.answer) == (&two.request, &two.answer)
            }
            (Self::Command(one), Self::Command(two)) => {
                (&one.session, &one.command) == (&two.session, &two.command)
            }
            (Self::Answer(_), Self::Command(_)) | (Self::Command(_), Self::Answer(_)) => false,
        }
    }

    pub(super) fn body(&self) -> Body {
        match self {
            Self::Answer(offer) => Body::Given(offer.clone()),
            Self::Command(order) => Body::Commanded(order.clone()),
        }
    }
}
