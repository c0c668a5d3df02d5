//! Attention: what a session's agents wait for, keyed by request.
//!
//! Invariant: nothing another agent does closes a request. It closes by its own answer, by the
//! end of the call it held up, by the end of its agent's turn, by that agent's next turn, or by
//! the death of the process (which the operator's view knows).

use serde::{Deserialize, Serialize};

use super::agent::Agent;
use super::event::{Ask, Stage};
use super::latest::Latest;
use crate::id::{AgentId, CallId, RequestId};
use crate::limits::REQUEST_ASKS_MAX;
use crate::moment::{Stamp, Timestamp};

/// A request as far as it is known. Its answer may be heard of before the request itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    pub id: RequestId,
    pub agent: AgentId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Latest<Asked>>,
    /// The other times it was asked, in their order. All of them and not the first alone: which
    /// of them a settlement leaves is only known once it is heard of, and that may be late.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked_before: Vec<AskedBefore>,
    /// When a person became necessary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<Stamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved: Option<Stamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Asked {
    pub kind: RequestKind,
    #[serde(flatten)]
    pub ask: Ask,
}

/// One time that a request was asked, and the call it was said to hold up.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskedBefore {
    #[serde(flatten)]
    pub stamp: Stamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum RequestKind {
    Plan,
    Question,
    Permission,
}

/// A request that is open now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Open<'a> {
    pub id: &'a RequestId,
    pub agent: &'a AgentId,
    pub kind: RequestKind,
    pub stage: Stage,
    pub ask: &'a Ask,
    /// When it was asked last.
    pub asked: Stamp,
    /// The times before that since it was last settled, in their order.
    pub asked_before: &'a [AskedBefore],
    /// Since when it waits: for a person if it does, else since it was asked.
    pub since: Stamp,
}

impl Open<'_> {
    /// Every time it was asked since it was last settled, the first one first.
    pub fn asks(&self) -> impl Iterator<Item = Stamp> {
        self.asked_before.iter().map(|before| before.stamp).chain([self.asked])
    }

    /// The first of them that is known by now.
    pub fn first_asked(&self) -> Timestamp {
        self.asks().next().unwrap_or(self.asked).at
    }
}

impl Request {
    pub fn new(id: RequestId, agent: AgentId) -> Self {
        Self { id, agent, asked: None, asked_before: Vec::new(), waiting: None, resolved: None }
    }

    pub(super) fn ask(&mut self, stamp: Stamp, kind: RequestKind, stage: Stage, ask: &Ask) {
        self.remember(AskedBefore { stamp, call: ask.call.clone() });
        if let Some(asked) = &self.asked {
            self.remember(AskedBefore::of(asked));
        }
        Latest::join(&mut self.asked, stamp, Asked { kind, ask: ask.clone() });
        if let Some(last) = self.asked.as_ref().map(AskedBefore::of) {
            self.asked_before.retain(|before| *before != last);
        }
        // The newest stay, whatever the order in which they were heard of.
        let too_many = self.asked_before.len().saturating_sub(REQUEST_ASKS_MAX);
        self.asked_before.drain(..too_many);
        if stage == Stage::Waiting {
            self.waiting = self.waiting.max(Some(stamp));
        }
    }

    fn remember(&mut self, asked: AskedBefore) {
        if let Err(at) = self.asked_before.binary_search(&asked) {
            self.asked_before.insert(at, asked);
        }
    }

    pub(super) fn resolve(&mut self, stamp: Stamp) {
        self.resolved = self.resolved.max(Some(stamp));
    }

    pub(super) fn set_back(&mut self, by_ms: u64) {
        let Self { id: _, agent: _, asked, asked_before, waiting, resolved } = self;
        let asked = asked.iter_mut().map(|asked| &mut asked.stamp);
        let before = asked_before.iter_mut().map(|before| &mut before.stamp);
        let stamps = asked.chain(before).chain(waiting).chain(resolved);
        stamps.for_each(|stamp| stamp.set_back(by_ms));
    }

    /// Drops what the agent's last boundary has settled. True if anything is left.
    pub(super) fn keep_unsettled(&mut self, boundary: Stamp) -> bool {
        let settled = boundary.max(self.resolved.unwrap_or_default());
        self.asked_before.retain(|before| before.stamp > settled);
        self.asked.take_if(|asked| asked.stamp <= boundary);
        self.waiting.take_if(|waiting| *waiting <= boundary);
        self.resolved.take_if(|resolved| *resolved <= boundary);
        self.asked.is_some() || self.resolved.is_some()
    }

    /// What is open of it, given the agent that asked and when the session last ended.
    pub(super) fn open(&self, agent: Option<&Agent>, session_end: Stamp) -> Option<Open<'_>> {
        let asked = self.asked.as_ref()?;
        let settled = session_end.max(self.resolved.unwrap_or_default());
        // Parallel hook processes overtake each other: the end of a call is the end of what it
        // waited for, even if the question is stamped a moment later.
        let is_over = |call: &Option<CallId>| {
            call.as_ref().zip(agent).is_some_and(|(call, agent)| agent.tool_ended(call))
        };
        let Asked { kind, ask } = &asked.value;
        if asked.stamp <= settled || is_over(&ask.call) {
            return None;
        }
        let settled_before =
            |before: &AskedBefore| before.stamp <= settled || is_over(&before.call);
        let first = self.asked_before.iter().rposition(settled_before).map_or(0, |last| last + 1);
        Some(Open {
            id: &self.id,
            agent: &self.agent,
            kind: *kind,
            stage: if self.waiting.is_some() { Stage::Waiting } else { Stage::UnderReview },
            ask,
            asked: asked.stamp,
            asked_before: &self.asked_before[first..],
            since: self.waiting.unwrap_or(asked.stamp),
        })
    }
}

impl AskedBefore {
    fn of(asked: &Latest<Asked>) -> Self {
        Self { stamp: asked.stamp, call: asked.value.ask.call.clone() }
    }
}
