//! An agent that runs and cannot be read: shown as that, and nothing else is claimed of it.

use std::collections::BTreeSet;

use qd_harness::product::Product;
use qd_session::id::ProcessKey;
use qd_session::moment::Timestamp;
use serde::{Deserialize, Serialize};

use crate::broker::Broker;

/// A process of a known product.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentProcess {
    pub product: &'static Product,
    pub pid: u32,
    /// It and all that it has started: whichever of them carries a session makes it readable.
    pub family: BTreeSet<ProcessKey>,
    pub cwd: Option<String>,
    pub tty: Option<String>,
    pub started_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct UnreadableAgent {
    /// As its makers write it.
    pub product: String,
    pub pid: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tty: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    pub why: String,
    /// What would help.
    pub help: String,
}

impl Broker {
    /// Those of the agents that run which no session on the board explains: none of their processes
    /// carries one, and none of their product is in their folder.
    pub fn unreadable(&self, running: &[AgentProcess]) -> Vec<UnreadableAgent> {
        let carriers: BTreeSet<&ProcessKey> =
            self.carriers().map(|(_, _, process)| process).collect();
        let is_read = |agent: &&AgentProcess| {
            let carries = agent.family.iter().any(|process| carriers.contains(process));
            carries
                || agent
                    .product
                    .harness
                    .is_some_and(|harness| self.lives_in(harness, agent.cwd.as_deref()))
        };
        running.iter().filter(|agent| !is_read(agent)).map(UnreadableAgent::of).collect()
    }
}

impl UnreadableAgent {
    fn of(agent: &AgentProcess) -> Self {
        let AgentProcess { product, pid, cwd, tty, started_at, .. } = agent;
        Self {
            product: product.name.to_owned(),
            pid: *pid,
            cwd: cwd.clone(),
            tty: tty.clone(),
            started_at: *started_at,
            why: product.why.to_owned(),
            help: product.help.to_owned(),
        }
    }
}
