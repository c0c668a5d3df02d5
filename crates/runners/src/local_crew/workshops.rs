//! The toolboxes of workspaces: one for each, shared by the sessions that work there, so that two
//! edits of one file wait for each other whoever makes them. It is closed with its last user.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use qd_host::private_places::PrivatePlaces;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tracing::warn;

use super::{CrewSettings, folder};
use crate::mcp::McpFile;
use crate::tools::limits::OPEN_WAIT;
use crate::tools::scratch::discard;
use crate::tools::{SandboxConfig, Toolbox, ToolboxSettings};
use crate::warden::Warden;

#[derive(Debug)]
pub(super) struct Workshops {
    scratch: PathBuf,
    mcp_file: PathBuf,
    warden: Warden,
    sandbox: SandboxConfig,
    private: PrivatePlaces,
    /// Those that somebody holds, and some that were let go since.
    open: Mutex<BTreeMap<Arc<str>, Weak<Workshop>>>,
    /// How many were opened so far.
    ever_opened: AtomicU64,
}

/// A toolbox, once somebody needed it.
pub(super) type Workshop = OnceCell<Opened>;

#[derive(Debug)]
pub(super) struct Opened {
    pub toolbox: Toolbox,
    /// What the operator should know of the workspace, and MCP servers that have no tools to
    /// offer, and why.
    pub troubles: Vec<String>,
}

/// A workspace's toolbox, for as long as it is held.
#[derive(Debug)]
pub(super) struct Held(Arc<Workshop>);

impl std::ops::Deref for Held {
    type Target = Opened;

    fn deref(&self) -> &Opened {
        self.0.get().expect("it is held once it is open")
    }
}

impl Workshops {
    /// Nothing of a daemon before this one is needed any more.
    pub fn new(settings: &CrewSettings) -> Self {
        discard(&settings.scratch);
        Self {
            scratch: settings.scratch.clone(),
            mcp_file: settings.mcp_file.clone(),
            warden: settings.warden.clone(),
            sandbox: settings.sandbox.clone(),
            private: settings.private.clone(),
            open: Mutex::default(),
            ever_opened: AtomicU64::new(0),
        }
    }

    /// Opened now, if nobody has it open. One that cannot be is tried again the next time.
    pub async fn toolbox(&self, workspace: &Arc<str>) -> Result<Held, String> {
        let workshop = self.workshop(workspace);
        workshop.get_or_try_init(|| self.opened(workspace)).await?;
        Ok(Held(workshop))
    }

    fn workshop(&self, workspace: &Arc<str>) -> Arc<Workshop> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = open.get(workspace).and_then(Weak::upgrade) {
            return known;
        }
        open.retain(|_, workshop| workshop.strong_count() > 0);
        let fresh = Arc::new(Workshop::new());
        open.insert(workspace.clone(), Arc::downgrade(&fresh));
        fresh
    }

    async fn opened(&self, workspace: &str) -> Result<Opened, String> {
        // Another name each time: the one before may be about to be removed.
        let nth = self.ever_opened.fetch_add(1, Ordering::Relaxed);
        let scratch = self.scratch.join(format!("{nth}"));
        let settings =
            ToolboxSettings::new(folder(workspace).to_owned(), scratch, self.warden.clone());
        let settings = settings.with(self.sandbox.clone()).without(self.private.clone());
        let mcp_file = self.mcp_file.clone();
        // What lies in the workspace may be anything, and a disk may be slow: not on the loop.
        let opening = spawn_blocking(move || (Toolbox::open(settings), McpFile::read(&mcp_file)));
        let (opened, servers) = match timeout(OPEN_WAIT, opening).await {
            Ok(Ok(opened)) => opened,
            Ok(Err(_)) => return Err(format!("cannot work in {workspace}: opening it failed")),
            Err(_) => return Err(format!("cannot work in {workspace}: the disk does not answer")),
        };
        let mut toolbox = opened.map_err(|error| format!("cannot work in {workspace}: {error}"))?;
        let mut troubles: Vec<String> = toolbox.caution().into_iter().collect();
        troubles.extend(match servers {
            Ok(servers) => toolbox.connect(servers).await,
            Err(invalid) => vec![format!("no MCP server is used: {invalid}")],
        });
        for trouble in &troubles {
            warn!(workspace, "{trouble}");
        }
        Ok(Opened { toolbox, troubles })
    }
}
