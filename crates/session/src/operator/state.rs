//! What the operator is told about a session: a fixed group, an open sub-state, and why.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::moment::{Source, Timestamp};
use crate::monitor::Evidence;
use crate::policy::Exceeded;

/// The three groups of the board. Fixed for ever: the protocol hangs on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum Group {
    NeedsYou,
    Autonomous,
    Delivered,
}

/// A sub-state within its group: an open set. A reader that does not know one shows its text with
/// the group's icon.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(value_type = String))]
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
    pub const STOPPED: Self = Self(Cow::Borrowed("stopped"));
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
    pub const STALLED: Self = Self(Cow::Borrowed("stalled"));
    pub const LOOPING: Self = Self(Cow::Borrowed("looping"));
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
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AgentState {
    pub group: Group,
    pub state: SubState,
    /// What is shown: the core's words, or a domain layer's.
    pub label: String,
    /// The core's words, where a domain layer has put others in their place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_label: Option<String>,
    /// A domain layer's wish for the place within the group.
    #[serde(default, skip_serializing_if = "Urgency::is_usual")]
    #[cfg_attr(feature = "schema", schema(value_type = i8))]
    pub urgency: Urgency,
    /// 0 to 1: how sure we are.
    pub confidence: f32,
    /// Who told the fact that decided.
    pub source: Source,
    /// The rule that decided, in a sentence.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(value_type = String, required = true))]
    pub rule: Cow<'static, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub context: Option<serde_json::Value>,
    /// When the deciding fact happened. The card counts its time in state from here.
    pub since: Timestamp,
    /// The last signal of each source.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub evidence: Vec<Evidence>,
}

/// Before the others of its group, among them, or after them. On the wire 1, 0, -1.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(into = "i8", try_from = "i64")]
pub enum Urgency {
    High,
    #[default]
    Usual,
    Low,
}

impl Urgency {
    fn is_usual(&self) -> bool {
        *self == Self::Usual
    }
}

impl From<Urgency> for i8 {
    fn from(urgency: Urgency) -> Self {
        match urgency {
            Urgency::High => 1,
            Urgency::Usual => 0,
            Urgency::Low => -1,
        }
    }
}

impl TryFrom<i64> for Urgency {
    type Error = String;

    fn try_from(number: i64) -> Result<Self, String> {
        match number {
            1 => Ok(Self::High),
            0 => Ok(Self::Usual),
            -1 => Ok(Self::Low),
            other => Err(format!("an urgency is -1, 0 or 1, not {other}")),
        }
    }
}

impl AgentState {
    /// Same group and sub-state: nothing an operator would look up for.
    pub fn looks_like(&self, other: &Self) -> bool {
        self.group == other.group && self.state == other.state && self.label == other.label
    }

    /// A budget is spent: that needs the operator while it works, and before it waits for less.
    pub fn spend_budget(
        &mut self,
        exceeded: Exceeded,
        beyond: f64,
        words: String,
        since: Timestamp,
    ) {
        let is_less = match self.group {
            Group::NeedsYou => urgency_rank(&self.state) > urgency_rank(&SubState::BUDGET_EXCEEDED),
            Group::Autonomous => self.state != SubState::UNKNOWN,
            Group::Delivered => false,
        };
        if is_less {
            self.context =
                Some(json!({ "exceeded": exceeded, "beyond": beyond, "while": self.state }));
            (self.group, self.state) = (Group::NeedsYou, SubState::BUDGET_EXCEEDED);
            (self.label, self.since) = (words, since);
            self.rule = Cow::Borrowed("a budget of the policy is spent, and it was not dismissed");
        }
    }

    /// The place on the board, most urgent first: group, a layer's wish, the sub-state's rank, then
    /// time (who waits longest needs you first; elsewhere the newest comes first).
    pub fn place(&self) -> (Group, Urgency, usize, u64) {
        let (rank, time) = match self.group {
            Group::NeedsYou => (urgency_rank(&self.state), self.since.0),
            Group::Autonomous | Group::Delivered => (0, u64::MAX - self.since.0),
        };
        (self.group, self.urgency, rank, time)
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
    &[SubState::STOPPED],
    &[SubState::INTERRUPTED],
];

/// `idle` comes last, after unknown sub-states: somebody added those because they matter.
pub(super) fn urgency_rank(state: &SubState) -> usize {
    let unknown = BY_URGENCY.len();
    match *state == SubState::IDLE {
        true => unknown + 1,
        false => BY_URGENCY.iter().position(|alike| alike.contains(state)).unwrap_or(unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(group: Group, state: SubState, since: u64) -> AgentState {
        AgentState {
            group,
            state,
            label: "label".to_owned(),
            core_label: None,
            urgency: Urgency::Usual,
            confidence: 0.9,
            source: Source::Hook,
            rule: "rule".into(),
            context: None,
            // As large as times are.
            since: Timestamp(1_800_000_000_000 + since),
            evidence: Vec::new(),
        }
    }

    #[test]
    fn the_most_urgent_comes_first() {
        let needs = |state, since| shown(Group::NeedsYou, state, since);
        let expected = [
            needs(SubState::NEEDS_PERMISSION, 5),
            needs(SubState::AWAITING_INPUT, 1),
            needs(SubState::USAGE_LIMIT, 1),
            // Of equals, who waits longest.
            needs(SubState::ERROR, 2),
            needs(SubState::AWAITING_APPROVAL, 1),
            needs(SubState::BUDGET_EXCEEDED, 1),
            needs(SubState::PAUSED, 1),
            needs(SubState::STOPPED, 1),
            needs(SubState::INTERRUPTED, 1),
            needs(SubState("somebodys_own".into()), 9),
            needs(SubState::IDLE, 1),
            // Elsewhere the newest.
            shown(Group::Autonomous, SubState::THINKING, 2),
            shown(Group::Autonomous, SubState::ACTING, 1),
            shown(Group::Delivered, SubState::TASK_COMPLETE, 2),
            shown(Group::Delivered, SubState::SESSION_ENDED, 1),
        ];
        let mut sorted: Vec<AgentState> = expected.iter().rev().cloned().collect();
        sorted.sort_by_key(AgentState::place);
        assert_eq!(sorted, expected);
    }

    #[test]
    fn states_are_alike_in_what_is_read_of_them() {
        let one = || shown(Group::NeedsYou, SubState::IDLE, 1);
        let evidence = Evidence { source: Source::Hook, at: Timestamp(1), event: "stop".into() };
        let others = [
            (true, AgentState { evidence: vec![evidence], ..one() }),
            (false, AgentState { group: Group::Delivered, ..one() }),
            (false, AgentState { state: SubState::PAUSED, ..one() }),
            (false, AgentState { label: "other".to_owned(), ..one() }),
            (true, AgentState { confidence: 0.5, ..one() }),
            (true, AgentState { since: Timestamp(2), ..one() }),
        ];
        for (looks, other) in others {
            assert_eq!(one().looks_like(&other), looks, "{other:?}");
        }
    }
}
