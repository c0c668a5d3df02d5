//! The page: its types, its tests, and the same in a real browser against the real daemon.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::{Counts, counted, debian, npm, run, target};

/// Checks and tries the page; `qd` is built for it.
pub fn test() -> Result<Counts> {
    build()?;
    test_with_built()
}

/// The same with the `qd` that cargo's tests were run with: to build it once more without them would
/// compile most of what it is made of a second time, with other features.
pub fn test_with_built() -> Result<Counts> {
    prepare()?;
    // Its types and its form are no tests, and count where they are wrong.
    let all = [script(&["run", "check"])?, script(&["test"])?, script(&["run", "browser"])?];
    let sum = |count: fn(&Counts) -> u64| all.iter().map(count).sum();
    Ok(Counts { passed: sum(|one| one.passed), failed: sum(|one| one.failed) })
}

/// Frames a second with a thousand live cards, and the delay from signal to screen.
pub fn bench() -> Result<()> {
    build()?;
    prepare()?;
    let counts = script(&["run", "bench"])?;
    if counts.failed > 0 {
        bail!("the page is too slow");
    }
    Ok(())
}

fn prepare() -> Result<()> {
    npm::install(&folder())?;
    debian::install("chromium", "/usr/bin/chromium")
}

fn build() -> Result<()> {
    run("cargo", &["build", "--package", "qd"])
}

/// Runs one of the page's scripts, passes its output on, and reads off how many tests passed. One
/// that fails without any test's failing counts as one.
fn script(words: &[&str]) -> Result<Counts> {
    eprintln!("$ npm {}   (in web)", words.join(" "));
    let mut child = Command::new("npm")
        .args(words)
        .current_dir(folder())
        .env("NO_COLOR", "1")
        .env("QD_PROGRAM", target()?.join("debug/qd"))
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run npm")?;
    let output = child.stdout.take().context("npm's output")?;
    let mut counts = Counts::default();
    for line in BufReader::new(output).lines() {
        let line = line.context("npm's output")?;
        println!("{line}");
        if line.trim_start().starts_with("Tests ") {
            counts.passed += counted(&line, " passed");
            counts.failed += counted(&line, " failed");
        }
    }
    if !child.wait().context("npm's end")?.success() && counts.failed == 0 {
        counts.failed = 1;
    }
    Ok(counts)
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../web")
}
