//! What the operator is told about a session: a fixed group, an open sub-state, and why.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::moment::{Source, Timestamp};
use crate::monitor::Evidence;

/// The three groups of the board. Fixed for ever: the protocol hangs on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    NeedsYou,
    Autonomous,
    Delivered,
}

/// A sub-state within its group: an open set. A reader that does not know one shows its text with
/// the group's icon.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SubState(Cow<'static, str>);

impl SubState {
    pub const NEEDS_PERMISSION: Self = Self(Cow::Borrowed("needs_permission"));
    pub const AWAITING_INPUT: Self = Self(Cow::Borrowed("awaiting_input"));
    pub const ERROR: Self = Self(Cow::Borrowed("error"));
    pub const USAGE_LIMIT: Self = Self(Cow::Borrowed("usage_limit"));
    pub const AUTH_ERROR: Self = Self(Cow::Borrowed("auth_error"));
    pub const SERVER_ERROR: Self = Self(Cow::Borrowed("server_error"));
    pub const AWAITING_APPROVAL: Self = Self(Cow::Borrowed("awaiting_approval"));
    pub const BUDGET_EXCEEDED: Self = Self(Cow::Borrowed("budget_exceeded"));
    pub const PAUSED: Self = Self(Cow::Borrowed("paused"));
    pub const INTERRUPTED: Self = Self(Cow::Borrowed("interrupted"));
    pub const IDLE: Self = Self(Cow::Borrowed("idle"));

    pub const STARTING: Self = Self(Cow::Borrowed("starting"));
    pub const THINKING: Self = Self(Cow::Borrowed("thinking"));
    pub const ACTING: Self = Self(Cow::Borrowed("acting"));
    pub const DELEGATING: Self = Self(Cow::Borrowed("delegating"));
    pub const COMPACTING: Self = Self(Cow::Borrowed("compacting"));
    pub const RETRYING: Self = Self(Cow::Borrowed("retrying"));
    pub const HOOKS: Self = Self(Cow::Borrowed("hooks"));
    pub const STOPPING: Self = Self(Cow::Borrowed("stopping"));
    pub const UNKNOWN: Self = Self(Cow::Borrowed("unknown"));

    pub const TASK_COMPLETE: Self = Self(Cow::Borrowed("task_complete"));
    pub const SESSION_ENDED: Self = Self(Cow::Borrowed("session_ended"));

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The operator's view of one session, as it goes over the wire.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentState {
    pub group: Group,
    pub state: SubState,
    pub label: String,
    /// 0 to 1: how sure we are.
    pub confidence: f32,
    /// Who told the fact that decided.
    pub source: Source,
    /// The rule that decided, in a sentence.
    #[serde(default)]
    pub rule: Cow<'static, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<serde_json::Value>,
    /// When the deciding fact happened. The card counts its time in state from here.
    pub since: Timestamp,
    /// The last signal of each source.
    #[serde(default)]
    pub evidence: Vec<Evidence>,
}

impl AgentState {
    /// Same group and sub-state: nothing an operator would look up for.
    pub fn looks_like(&self, other: &Self) -> bool {
        self.group == other.group && self.state == other.state && self.label == other.label
    }

    /// All but the evidence is the same.
    pub fn reads_like(&self, other: &Self) -> bool {
        self.looks_like(other)
            && (self.confidence, self.source, self.since)
                == (other.confidence, other.source, other.since)
            && (&self.rule, &self.context) == (&other.rule, &other.context)
    }

    /// The place on the board, most urgent first: group, urgency in it, then time (who waits
    /// longest needs you first; elsewhere the newest comes first).
    pub fn urgency(&self) -> (Group, usize, u64) {
        match self.group {
            Group::NeedsYou => (self.group, urgency_rank(&self.state), self.since.0),
            Group::Autonomous | Group::Delivered => (self.group, 0, u64::MAX - self.since.0),
        }
    }
}

/// Sub-states of Needs You, the most urgent first. Errors of every kind share a place.
const BY_URGENCY: [&[SubState]; 8] = [
    &[SubState::NEEDS_PERMISSION],
    &[SubState::AWAITING_INPUT],
    &[SubState::ERROR, SubState::USAGE_LIMIT, SubState::AUTH_ERROR, SubState::SERVER_ERROR],
    &[SubState::AWAITING_APPROVAL],
    &[SubState::BUDGET_EXCEEDED],
    &[SubState::PAUSED],
    &[SubState::INTERRUPTED],
    &[SubState::IDLE],
];

/// Unknown sub-states come before `idle`: somebody added them because they matter.
fn urgency_rank(state: &SubState) -> usize {
    BY_URGENCY.iter().position(|alike| alike.contains(state)).unwrap_or(BY_URGENCY.len() - 1)
}
