//! What was heard of each client: its versions, and how much of what it says nobody understood.

use std::collections::BTreeSet;
use std::sync::Arc;

use qd_harness::Harness;
use qd_session::monitor::{Fact, Monitor};
use serde::{Deserialize, Serialize};

use super::Broker;

/// Most versions of one client that are remembered: one is in use, an old one rarely stays.
const VERSIONS_MAX: usize = 8;

#[derive(Debug, Default)]
pub(super) struct ClientHeard {
    versions: BTreeSet<Arc<str>>,
    /// Of sessions that are known.
    unrecognised: u64,
}

/// A client, as sessions on the board and its own words show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ClientView {
    pub harness: Harness,
    pub versions: Vec<ClientVersion>,
    /// Messages and lines that could not be read.
    pub unrecognised: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ClientVersion {
    pub version: String,
    /// How it stands to the versions that were tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl ClientHeard {
    pub(super) fn hear(&mut self, fact: &Fact) {
        if let Fact::PlaceKnown { place } = fact {
            self.versions.extend(place.version.clone());
        }
        self.unrecognised += u64::from(matches!(fact, Fact::Unrecognised { .. }));
        while self.versions.len() > VERSIONS_MAX {
            self.versions.pop_first();
        }
    }

    /// A session that was known before a restart.
    pub(super) fn recall(&mut self, monitor: &Monitor) {
        let version = monitor.about().and_then(|about| about.version.as_ref());
        self.versions.extend(version.map(|version| version.value.clone()));
        self.unrecognised += u64::from(monitor.unrecognised());
    }
}

impl Broker {
    /// The clients of which anything was heard.
    pub fn clients(&self) -> Vec<ClientView> {
        let view = |(harness, heard): (&Harness, &ClientHeard)| {
            let unplaced = self.handlers.get(harness).map_or(0, |handler| handler.unrecognised());
            let versions = heard.versions.iter().map(|version| ClientVersion {
                version: version.to_string(),
                note: harness.tested().note(version),
            });
            ClientView {
                harness: *harness,
                versions: versions.collect(),
                unrecognised: heard.unrecognised + unplaced,
            }
        };
        self.clients.iter().map(view).collect()
    }
}
