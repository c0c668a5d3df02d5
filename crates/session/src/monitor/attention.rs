//! Attention: what a session's agents wait for, keyed by request.
//!
//! Invariant: nothing another agent does closes a request. It closes by its own answer, by the
//! end of the call it held up, by the end of its agent's turn, by that agent's next turn, or by
//! the death of the process (which the operator's view knows).

use serde::{Deserialize, Serialize};

use super::agent::Agent;
use super::event::{Ask, Stage};
use super::latest::Latest;
use crate::id::{AgentId, RequestId};
use crate::moment::Stamp;

/// A request as far as it is known. Its answer may be heard of before the request itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    pub id: RequestId,
    pub agent: AgentId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Latest<Asked>>,
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
    pub asked: Stamp,
    /// Since when it waits: for a person if it does, else since it was asked.
    pub since: Stamp,
}

impl Request {
    pub fn new(id: RequestId, agent: AgentId) -> Self {
        Self { id, agent, asked: None, waiting: None, resolved: None }
    }

    pub(super) fn ask(&mut self, stamp: Stamp, kind: RequestKind, stage: Stage, ask: &Ask) {
        Latest::join(&mut self.asked, stamp, Asked { kind, ask: ask.clone() });
        if stage == Stage::Waiting {
            self.waiting = self.waiting.max(Some(stamp));
        }
    }

    pub(super) fn resolve(&mut self, stamp: Stamp) {
        self.resolved = self.resolved.max(Some(stamp));
    }

    /// Drops what the agent's last boundary has settled. True if anything is left.
    pub(super) fn keep_unsettled(&mut self, boundary: Stamp) -> bool {
        self.asked.take_if(|asked| asked.stamp <= boundary);
        self.waiting.take_if(|waiting| *waiting <= boundary);
        self.resolved.take_if(|resolved| *resolved <= boundary);
        self.asked.is_some() || self.resolved.is_some()
    }

    /// What is open of it, given the agent that asked.
    pub(super) fn open(&self, agent: Option<&Agent>) -> Option<Open<'_>> {
        let asked = self.asked.as_ref()?;
        if self.resolved.is_some_and(|resolved| resolved >= asked.stamp) {
            return None;
        }
        let Asked { kind, ask } = &asked.value;
        let call_is_over = ask.call.as_ref().zip(agent).is_some_and(|(call, agent)| {
            // Parallel hook processes overtake each other: the end of a call is the end of what
            // it waited for, even if the question is stamped a moment later.
            agent.tool_ended(call)
        });
        (!call_is_over).then(|| Open {
            id: &self.id,
            agent: &self.agent,
            kind: *kind,
            stage: if self.waiting.is_some() { Stage::Waiting } else { Stage::UnderReview },
            ask,
            asked: asked.stamp,
            since: self.waiting.unwrap_or(asked.stamp),
        })
    }
}
