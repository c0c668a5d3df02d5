//! The real agents that the tests run, and the peers that benches measure beside ours: installed
//! once for each state of the lock file.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

pub fn install() -> Result<()> {
    install_in(&folder("clients"))
}

/// The program that `bench usage` measures beside ours.
pub fn ccusage() -> Result<PathBuf> {
    let folder = folder("peers");
    install_in(&folder)?;
    let program = folder.join("node_modules/@ccusage/ccusage-linux-x64/bin/ccusage");
    // Its JavaScript would do that at the first start; we measure without it.
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))
        .with_context(|| format!("cannot use {}", program.display()))?;
    Ok(program.canonicalize()?)
}

/// Does nothing when what the lock file asks for is there. An install that was broken off has
/// no stamp and is done again from the start.
fn install_in(folder: &Path) -> Result<()> {
    let wanted = wanted(folder)?;
    let stamp = folder.join("node_modules").join(STAMP);
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    eprintln!("$ npm ci   (in {})", folder.display());
    let status = Command::new("npm")
        .args(ARGUMENTS)
        .current_dir(folder)
        .status()
        .context("cannot run npm: install Node.js 20 or newer with npm")?;
    if !status.success() {
        bail!("npm ci in {} failed: {status}", folder.display());
    }
    fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests").join(name)
}

/// What decides what is installed, word by word: no hash to get wrong.
fn wanted(folder: &Path) -> Result<String> {
    let read = |name: &str| {
        let path = folder.join(name);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    Ok(read("package.json")? + &read("package-lock.json")?)
}

const STAMP: &str = ".installed";

/// Claude Code declares Node 22 and runs without node. No install script is needed: each client
/// is a program in its package, or JavaScript.
const ARGUMENTS: [&str; 5] =
    ["ci", "--engine-strict=false", "--ignore-scripts", "--no-audit", "--no-fund"];
