//! A home and a workspace of a client's own, and the environment that knows nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;

use crate::error::{Doing, Result};
use crate::model::Model;
use crate::process_tree;

/// Removed at drop, with every process that has it as `HOME`. Start clients after it, so that
/// they are dropped before it.
#[derive(Debug)]
pub struct Home {
    folder: TempDir,
    clients: AtomicUsize,
}

impl Home {
    pub fn new() -> Result<Self> {
        sweep();
        let pid = std::process::id();
        let started = process_tree::started_at(pid).unwrap_or_default();
        let folder = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{pid}-{started}-"))
            .tempdir()
            .doing("make a home for a client")?;
        let home = Self { folder, clients: AtomicUsize::new(0) };
        for folder in [home.path(), home.workspace(), home.temporary()] {
            fs::create_dir(&folder).doing(format!("make {}", folder.display()))?;
        }
        Ok(home)
    }

    /// What the client sees as `HOME`.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// The project the client is started in.
    pub fn workspace(&self) -> PathBuf {
        self.folder.path().join("acme")
    }

    /// Writes a file below the home, with its folders.
    pub fn write(&self, path: impl AsRef<Path>, text: &str) -> Result<PathBuf> {
        let path = self.path().join(path);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).doing(format!("make {}", folder.display()))?;
        }
        fs::write(&path, text).doing(format!("write {}", path.display()))?;
        Ok(path)
    }

    fn temporary(&self) -> PathBuf {
        self.folder.path().join("tmp")
    }

    /// All the environment a client gets. Proxies lead to the model, which refuses and records
    /// whatever is not on loopback.
    pub(crate) fn environment(&self, model: &Model) -> BTreeMap<String, String> {
        let shown = |path: PathBuf| path.display().to_string();
        let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/local/bin:/usr/bin:/bin".into());
        let mut environment = BTreeMap::from([
            ("HOME".into(), shown(self.path())),
            ("TMPDIR".into(), shown(self.temporary())),
            ("PATH".into(), path),
            ("SHELL".into(), "/bin/bash".into()),
            ("LANG".into(), "C.UTF-8".into()),
            ("TERM".into(), "xterm-256color".into()),
            ("NO_PROXY".into(), "127.0.0.1,localhost".into()),
            ("no_proxy".into(), "127.0.0.1,localhost".into()),
        ]);
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"] {
            environment.insert(name.into(), model.url());
        }
        environment
    }

    /// A variable that only the next client and what it starts will carry.
    pub(crate) fn next_marker(&self) -> (String, String) {
        let nth = self.clients.fetch_add(1, Ordering::Relaxed);
        ("QD_TESTBED_CLIENT".into(), format!("{}#{nth}", self.folder.path().display()))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        process_tree::kill(&home_marker(self.folder.path()), None);
    }
}

fn home_marker(folder: &Path) -> String {
    format!("HOME={}", folder.join("home").display())
}

/// Clears up after test processes that were killed before they could.
fn sweep() {
    let entries = fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
    for folder in entries.map(|entry| entry.path()).filter(|path| is_abandoned(path)) {
        process_tree::kill(&home_marker(&folder), None);
        // Another test may sweep at the same time, or the folder is another user's.
        let _ = fs::remove_dir_all(&folder);
    }
}

fn is_abandoned(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let mut parts = name.strip_prefix(PREFIX).unwrap_or_default().split('-');
    let pid = parts.next().and_then(|pid| pid.parse().ok());
    let started: Option<u64> = parts.next().and_then(|started| started.parse().ok());
    match (pid, started) {
        // Where the system does not say when a process started, nothing can be known.
        (Some(_), Some(0)) | (None, _) | (_, None) => false,
        (Some(pid), started) => process_tree::started_at(pid) != started,
    }
}

/// No dot in it or after it: Cline cuts the path of its log at the first one and writes elsewhere.
const PREFIX: &str = "qd-testbed-";
