//! Where the daemon listens and where the spool is.

use std::path::PathBuf;

pub struct Place {
    /// In the order to try them. The daemon's environment may lack what ours has, so it may
    /// listen in the state folder although we have a runtime folder.
    pub sockets: Vec<PathBuf>,
    /// Nowhere, if not even a home is known.
    pub spool: Option<PathBuf>,
}

impl Place {
    pub fn from_environment() -> Self {
        let state = folder("XDG_STATE_HOME")
            .or_else(|| folder("HOME").map(|home| home.join(".local/state")))
            .map(|state| state.join("quarterdeck"));
        let runtime = folder("XDG_RUNTIME_DIR").map(|runtime| runtime.join("quarterdeck"));
        let sockets = [&runtime, &state].into_iter().flatten().map(|at| at.join("qd.sock"));
        Self { sockets: sockets.collect(), spool: state.map(|state| state.join("spool")) }
    }
}

/// A variable that names a folder. A relative one is as good as none, says the XDG specification,
/// and would scatter spools over the agent's project.
fn folder(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}
