//! The real agents that the tests run: installed once for each state of the lock file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Does nothing when what the lock file asks for is there. An install that was broken off has
/// no stamp and is done again from the start.
pub fn install() -> Result<()> {
    let folder = folder();
    let wanted = wanted(&folder)?;
    let stamp = folder.join("node_modules").join(STAMP);
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    eprintln!("$ npm ci   (in {})", folder.display());
    let status = Command::new("npm")
        .args(ARGUMENTS)
        .current_dir(&folder)
        .status()
        .context("cannot run npm: install Node.js 20 or newer with npm")?;
    if !status.success() {
        bail!("npm ci in {} failed: {status}", folder.display());
    }
    fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/clients")
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
