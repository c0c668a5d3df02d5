//! The real agents that the tests run, and the peers that benches measure beside ours.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::{debian, npm};

pub fn install() -> Result<()> {
    debian::install("tmux")?;
    npm::install(&folder("clients"))
}

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

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests").join(name)
}
