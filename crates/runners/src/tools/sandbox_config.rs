//! `[sandbox]` of the operator's settings: what commands may reach beyond the workspace.

use std::collections::BTreeMap;
use std::path::PathBuf;

use qd_host::private_places::PrivatePlaces;
use tokio_util::sync::CancellationToken;

use super::limits::PROBE_MS_MAX;
use crate::warden::{
    Captured, Confinement, Ended, Enforced, Input, Job, LocalSockets, Lost, Network, Said, Warden,
};

/// What the operator opens to commands, or closes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxConfig {
    pub network: Network,
    pub local_sockets: LocalSockets,
    /// Files and folders outside the workspace that commands may read.
    pub read: Vec<PathBuf>,
    /// Folders outside the workspace that commands may write.
    pub write: Vec<PathBuf>,
    /// Variables of our environment that they get beside the usual ones.
    pub environment: Vec<String>,
    /// How long a tool may take where the model does not say, by its name.
    pub timeouts_ms: BTreeMap<String, u64>,
}

impl Default for SandboxConfig {
    /// The network is open; our own socket and others of this machine are not.
    fn default() -> Self {
        Self {
            network: Network::Allowed,
            local_sockets: LocalSockets::Forbidden,
            read: Vec::new(),
            write: Vec::new(),
            environment: Vec::new(),
            timeouts_ms: BTreeMap::new(),
        }
    }
}

impl SandboxConfig {
    /// How much of it this machine enforces: a program is confined to find out.
    pub async fn enforced(&self, warden: &Warden) -> Result<Enforced, Lost> {
        let confinement = Confinement {
            read: Vec::new(),
            write: Vec::new(),
            own: None,
            private: PrivatePlaces::default(),
            network: self.network,
            local_sockets: self.local_sockets,
        };
        let job = Job {
            argv: vec!["true".to_owned()],
            folder: PathBuf::from("/"),
            environment: BTreeMap::new(),
            input: Input::Nothing,
            said: Said::All,
            timeout_ms: Some(PROBE_MS_MAX),
            confinement: Some(confinement),
        };
        // Whether there is such a program does not matter.
        let Ended { enforced, .. } =
            warden.run(&job, Captured::new(0, 0), &CancellationToken::new()).await?;
        Ok(enforced)
    }
}
