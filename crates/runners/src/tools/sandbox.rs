//! What the commands of a session may reach, put together from the settings and the machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Once;

use qd_host::bounded_file::{Links, read_regular_text};

use super::limits::GIT_LINK_BYTES_MAX;
use crate::environment::of_names;
use crate::tools::toolbox::ToolboxSettings;
use crate::warden::{Confinement, Enforced, Warden};

#[derive(Debug)]
pub(super) struct Sandbox {
    pub warden: Warden,
    pub environment: BTreeMap<String, String>,
    pub confinement: Confinement,
}

/// Of our environment a command gets these, and what the settings name.
const ENVIRONMENT: [&str; 4] = ["PATH", "HOME", "USER", "LANG"];

/// What programs are made of. No folder of people, and none where secrets lie that the user may read.
const SYSTEM: [&str; 16] = [
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/usr",
    "/opt",
    "/etc",
    "/nix",
    "/gnu",
    "/snap",
    "/proc",
    "/sys",
    "/dev/random",
    "/dev/urandom",
    "/run/systemd/resolve",
];

/// Toolchains that live in a home, without what may hold a password there.
const TOOLCHAINS: [&str; 22] = [
    ".rustup",
    ".cargo/bin",
    ".cargo/env",
    ".cargo/config.toml",
    ".cargo/registry",
    ".cargo/git",
    ".nvm",
    ".volta",
    ".fnm",
    ".bun/bin",
    ".deno/bin",
    ".local/bin",
    ".local/lib",
    ".local/share/mise",
    ".local/share/uv",
    ".local/share/pnpm",
    ".pyenv",
    ".rbenv",
    ".sdkman",
    "go",
    ".gitconfig",
    ".config/git/config",
];

impl Sandbox {
    pub fn new(settings: &ToolboxSettings, workspace: &Path) -> Self {
        let ours = &settings.environment;
        let opened = &settings.sandbox;
        let names = ENVIRONMENT.into_iter().chain(opened.environment.iter().map(String::as_str));
        let mut environment = of_names(ours, names);
        let scratch = settings.scratch.to_string_lossy().into_owned();
        let ours_alone = [
            ("TMPDIR", scratch.as_str()),
            // Programs that draw are of no use here, and nobody is there to answer one that asks.
            ("TERM", "dumb"),
            ("NO_COLOR", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_EDITOR", "true"),
            ("GIT_PAGER", "cat"),
            ("PAGER", "cat"),
        ];
        environment.extend(ours_alone.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let home = ours.get("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
        let toolchains = home.iter().flat_map(|home| TOOLCHAINS.map(|part| home.join(part)));
        let read = SYSTEM.map(PathBuf::from).into_iter().chain(toolchains);
        let confinement = Confinement {
            read: read.chain(opened.read.iter().cloned()).collect(),
            write: [workspace.to_owned()]
                .into_iter()
                .chain(repository_of(workspace))
                .chain(opened.write.iter().cloned())
                .collect(),
            own: Some(settings.scratch.clone()),
            private: settings.private.clone(),
            network: opened.network,
            local_sockets: opened.local_sockets,
        };
        Self { warden: settings.warden.clone(), environment, confinement }
    }

    /// Says once what this machine cannot enforce.
    pub fn notice(&self, enforced: Enforced) {
        static SAID: Once = Once::new();
        if let Some(missing) = enforced.missing() {
            SAID.call_once(|| tracing::warn!(?enforced, "{missing}"));
        }
    }
}

/// The repository of a worktree, which lies elsewhere: Git has to write there. What files in the
/// workspace say is not believed, because a command wrote them perhaps: the repository is the one
/// that keeps a folder for this worktree, and that folder must name the worktree in return. A
/// folder that is merely called `worktrees` does not make the one above it a repository.
fn repository_of(workspace: &Path) -> Option<PathBuf> {
    let text = |path: &Path| read_regular_text(path, GIT_LINK_BYTES_MAX, Links::Refused).ok();
    let link = text(&workspace.join(".git"))?;
    let private = workspace.join(link.strip_prefix("gitdir: ")?.trim_end()).canonicalize().ok()?;
    if private.starts_with(workspace) {
        return None;
    }
    let back = text(&private.join("gitdir"))?;
    let is_ours = Path::new(back.trim_end()).canonicalize().ok()? == workspace.join(".git");
    let worktrees = private.parent().filter(|parent| parent.ends_with("worktrees"))?;
    let common = worktrees.parent()?;
    (is_ours && is_repository(common)).then(|| common.to_owned())
}

/// What Git itself looks for.
fn is_repository(folder: &Path) -> bool {
    let is_folder = |name| folder.join(name).symlink_metadata().is_ok_and(|found| found.is_dir());
    let has_head = folder.join("HEAD").symlink_metadata().is_ok_and(|found| found.is_file());
    has_head && is_folder("objects") && is_folder("refs")
}
