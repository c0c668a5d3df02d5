//! Where our own files are.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use qd_host::private_places::PrivatePlaces;

#[derive(Debug, Clone)]
pub struct Paths {
    pub home: PathBuf,
    /// Journal, spool, tokens, log.
    pub state: PathBuf,
    /// What the operator has set.
    pub config: PathBuf,
    /// Where the daemon listens. The forwarder looks in the same places.
    pub socket: PathBuf,
}

impl Paths {
    pub fn from_environment() -> Result<Self> {
        let home =
            folder("HOME").context("HOME is not set; it says where agents keep their files")?;
        let state = folder("XDG_STATE_HOME")
            .unwrap_or_else(|| home.join(".local/state"))
            .join("quarterdeck");
        let socket = folder("XDG_RUNTIME_DIR")
            .map_or_else(|| state.clone(), |runtime| runtime.join("quarterdeck"))
            .join("qd.sock");
        let config = folder("XDG_CONFIG_HOME")
            .unwrap_or_else(|| home.join(".config"))
            .join("quarterdeck/config.toml");
        Ok(Self { home, state, config, socket })
    }

    /// The operator's domain layers, beside the settings.
    pub fn layers(&self) -> PathBuf {
        self.config.with_file_name("layers.toml")
    }

    pub fn journal(&self) -> PathBuf {
        self.state.join("journal.db")
    }

    /// What agents may do without asking, beside the settings.
    pub fn policy(&self) -> PathBuf {
        self.config.with_file_name("policy.toml")
    }

    /// Which post-tool hooks there are, beside the settings.
    pub fn hooks_file(&self) -> PathBuf {
        self.config.with_file_name("hooks.json")
    }

    /// Which MCP servers there are, beside the settings.
    pub fn mcp_file(&self) -> PathBuf {
        self.config.with_file_name("mcp.json")
    }

    /// Temporary files of the tools of driven sessions.
    pub fn scratch(&self) -> PathBuf {
        self.state.join("scratch")
    }

    /// How far session files were read, and what they told.
    pub fn usage_index(&self) -> PathBuf {
        self.state.join("usage.db")
    }

    /// What was said in sessions.
    pub fn search_index(&self) -> PathBuf {
        self.state.join("search.db")
    }

    /// Of a daemon that runs in the background.
    pub fn log(&self) -> PathBuf {
        self.state.join("qd.log")
    }

    /// Keys, devices, and what was told.
    pub fn notices(&self) -> PathBuf {
        self.state.join("notices")
    }

    pub fn tokens(&self) -> PathBuf {
        self.state.join("tokens")
    }

    /// What no command of a session reaches: all of ours, and the agents' settings.
    pub fn private(&self) -> PrivatePlaces {
        let folders = [Some(self.state.as_path()), self.config.parent(), self.socket.parent()];
        let ours = folders.into_iter().flatten().map(Path::to_owned);
        PrivatePlaces::new(ours, &self.home, &std::env::vars_os().collect())
    }
}

/// A relative folder is as good as none, says the XDG specification.
pub fn folder(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}
