//! The real agents that the tests run, and the peers that benches measure beside ours.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{debian, npm};

pub fn install() -> Result<()> {
    debian::install("tmux", "/usr/bin/tmux")?;
    debian::install("openssh-client", "/usr/bin/ssh")?;
    debian::install("openssh-server", "/usr/sbin/sshd")?;
    let clients = folder("clients");
    npm::install(&clients)?;
    unpack_grok(&clients.join("node_modules/@xai-official/grok-linux-x64/bin"))
}

/// Grok Build's package holds its program compressed; its own installer, which is a package of its
/// own and names platforms that are not published, would unpack it into each home.
pub fn unpack_grok(folder: &Path) -> Result<()> {
    if folder.join("grok").exists() {
        return Ok(());
    }
    let status = Command::new("node")
        .args(["--eval", UNPACK])
        .current_dir(folder)
        .status()
        .context("cannot run node: install Node.js 20 or newer")?;
    if !status.success() {
        bail!("cannot unpack {}: {status}", folder.join("grok.br").display());
    }
    Ok(())
}

/// Renamed when whole, so that an unpacking that was broken off is done again.
const UNPACK: &str = "
const { readFileSync, renameSync, writeFileSync } = require('node:fs');
const { brotliDecompressSync } = require('node:zlib');
writeFileSync('grok.part', brotliDecompressSync(readFileSync('grok.br')), { mode: 0o755 });
renameSync('grok.part', 'grok');
";

/// The program that `bench usage` measures beside ours.
pub fn ccusage() -> Result<PathBuf> {
    let folder = folder("peers");
    npm::install(&folder)?;
    let program = folder.join("node_modules/@ccusage/ccusage-linux-x64/bin/ccusage");
    // Its JavaScript would do that at the first start; we measure without it.
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("cannot use {}", program.display()))?;
    Ok(program.canonicalize()?)
}

pub fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests").join(name)
}
