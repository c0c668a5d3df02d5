//! Packages of a folder with a lock file: installed once for each state of it.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Does nothing when what the lock file asks for is there. An install that was broken off has
/// no stamp and is done again from the start.
pub fn install(folder: &Path) -> Result<()> {
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

/// Installs what `package.json` asks for, whatever a lock file would say.
pub fn update(folder: &Path) -> Result<()> {
    eprintln!("$ npm install   (in {})", folder.display());
    let status = Command::new("npm")
        .arg("install")
        .args(&ARGUMENTS[1..])
        .current_dir(folder)
        .status()
        .context("cannot run npm: install Node.js 20 or newer with npm")?;
    if !status.success() {
        bail!("npm install in {} failed: {status}", folder.display());
    }
    Ok(())
}

/// What decides what is installed, word by word: no hash to get wrong.
fn wanted(folder: &Path) -> Result<String> {
    let read = |name: &str| {
        let path = folder.join(name);
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    Ok(read("package.json")? + &read("package-lock.json")?)
}

/// The page's build script (crates/server/build.rs) keeps the same one.
const STAMP: &str = ".installed";

/// Claude Code declares Node 22 and runs without node. No install script is needed: each package
/// is a program in itself, or JavaScript.
const ARGUMENTS: [&str; 6] =
    ["ci", "--engine-strict=false", "--include=dev", "--ignore-scripts", "--no-audit", "--no-fund"];
