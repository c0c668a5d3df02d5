//! `cargo xtask rules`: every rule that was learnt from the clients is switched off once, and the
//! captures it names must fail then.
//!
//! The patches of `crates/harness/mutations` are applied to a copy of the workspace under
//! `target/rules`, one at a time. The copy and its build are kept, so a patch costs what it changes.

#[path = "../../crates/harness/tests/captured/patch.rs"]
mod patch;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use self::patch::{Fails, How, Patch};

/// Longest a build may take: the first one builds every dependency.
const BUILD_MAX: Duration = Duration::from_secs(900);

/// Longest one test may take; the slowest takes a second. A rule that is off may loop for ever.
const TEST_MAX: Duration = Duration::from_secs(60);

/// How often a child is asked whether it is done.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// What is no part of the workspace, wherever it lies.
const NOT_COPIED: [&str; 4] = ["target", ".git", "node_modules", "artifacts"];

/// Tries every patch, or those whose names begin with one of `only`.
pub fn rules(only: &[&str]) -> Result<()> {
    let began = Instant::now();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the workspace")?;
    let patches = patches(root, only)?;
    let scratch = Scratch::of(root)?;
    scratch.all_hold(&patches)?;
    let (mut rows, mut broken) = (Vec::new(), Vec::new());
    for patch in &patches {
        eprintln!("without {}: {}", patch.name, patch.says);
        match scratch.without(patch) {
            Ok(tried) => rows.extend(tried),
            Err(why) => broken.push(format!("{}: {why:#}", patch.name)),
        }
    }
    println!("{:<24} {:<16} capture or test", "rule", "fails without it");
    for (patch, fails, failed) in &rows {
        let answer = if *failed { "yes" } else { "NO" };
        println!("{:<24} {answer:<16} {}", patch.name, spelled(fails));
    }
    let kept = rows.iter().filter(|(_, _, failed)| !failed).count();
    let (off, seconds) = (patches.len(), began.elapsed().as_secs());
    println!("{off} rules off, {} failures, in {seconds} s", rows.len() - kept);
    if kept > 0 || !broken.is_empty() {
        bail!("{kept} do not fail without their rule; not tried: {broken:#?}");
    }
    Ok(())
}

/// By rule, then by name.
fn patches(root: &Path, only: &[&str]) -> Result<Vec<Patch>> {
    let mut patches = Vec::new();
    for entry in fs::read_dir(root.join("crates/harness/mutations"))? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let wanted = only.is_empty() || only.iter().any(|only| name.starts_with(only));
        if wanted && path.extension().is_some_and(|end| end == "patch") {
            let text = fs::read_to_string(&path)?;
            let patch = Patch::read(&name, &text);
            patches.push(patch.map_err(|why| anyhow::anyhow!("{}: {why}", path.display()))?);
        }
    }
    patches.sort_by(|a, b| (a.rule(), &a.name).cmp(&(b.rule(), &b.name)));
    if patches.is_empty() {
        bail!("no patch of crates/harness/mutations begins with {}", only.join(", "));
    }
    Ok(patches)
}

fn spelled(fails: &Fails) -> String {
    let how = if fails.how == How::Test { "" } else { fails.how.name() };
    format!("{}{how}", fails.what)
}

type Row<'a> = (&'a Patch, &'a Fails, bool);

/// The copy of the workspace that rules are switched off in.
struct Scratch {
    root: PathBuf,
    tree: PathBuf,
    /// Held while we live: two runs in one copy would try each other's patches.
    _lock: File,
}

impl Scratch {
    fn of(root: &Path) -> Result<Self> {
        let tree = root.join("target/rules/tree");
        fs::create_dir_all(&tree).with_context(|| format!("cannot make {}", tree.display()))?;
        let lock = File::create(tree.with_extension("lock"))?;
        lock.try_lock().context("another run is at it")?;
        let scratch = Self { root: root.to_owned(), tree, _lock: lock };
        let copied = copy_changed(root, &scratch.tree)?;
        remove_others(&scratch.tree, &copied)?;
        Ok(scratch)
    }

    /// With every rule on, all that is named passes: else a failure would mean nothing.
    fn all_hold(&self, patches: &[Patch]) -> Result<()> {
        let fails: BTreeSet<&Fails> = patches.iter().flat_map(|patch| &patch.fails).collect();
        self.build(&mut fails.iter().copied())?;
        for fails in fails {
            if !self.passes(fails)? {
                bail!("{} fails with every rule on", spelled(fails));
            }
        }
        Ok(())
    }

    fn without<'a>(&self, patch: &'a Patch) -> Result<Vec<Row<'a>>> {
        let mut changed: BTreeMap<&str, String> = BTreeMap::new();
        for hunk in &patch.hunks {
            let text = match changed.remove(hunk.path.as_str()) {
                Some(text) => text,
                None => fs::read_to_string(self.root.join(&hunk.path))?,
            };
            let text =
                hunk.apply(&text).with_context(|| format!("no such lines:\n{}", hunk.old))?;
            changed.insert(&hunk.path, text);
        }
        for (path, text) in &changed {
            fs::write(self.tree.join(path), text)?;
        }
        let rows = self.rows(patch);
        for path in changed.keys() {
            fs::write(self.tree.join(path), fs::read(self.root.join(path))?)?;
        }
        rows
    }

    fn rows<'a>(&self, patch: &'a Patch) -> Result<Vec<Row<'a>>> {
        self.build(&mut patch.fails.iter())?;
        patch.fails.iter().map(|fails| Ok((patch, fails, !self.passes(fails)?))).collect()
    }

    /// Builds what is about to be run, so that a failure to build is none of the test.
    fn build(&self, fails: &mut dyn Iterator<Item = &Fails>) -> Result<()> {
        let targets: BTreeSet<Vec<&str>> = fails.map(|fails| test_of(fails).0).collect();
        for target in targets {
            let arguments = [&["test", "--quiet", "--no-run"], &target[..]].concat();
            match self.cargo(&arguments, None, BUILD_MAX)? {
                Some(true) => {}
                Some(false) => bail!("{} does not build:\n{}", target.join(" "), self.said()?),
                None => bail!("{} takes too long to build", target.join(" ")),
            }
        }
        Ok(())
    }

    /// Runs one test. One that never ends has not passed.
    fn passes(&self, fails: &Fails) -> Result<bool> {
        let (target, test) = test_of(fails);
        let arguments = [&["test"], &target[..], &["--", "--exact", test]].concat();
        let captures = (fails.how != How::Test).then_some(fails.what.as_str());
        let passed = self.cargo(&arguments, captures, TEST_MAX)? == Some(true);
        if passed && !self.said()?.contains(" 1 passed;") {
            bail!("no test is called {test}");
        }
        Ok(passed)
    }

    /// Whether cargo succeeded; `None` if it had to be stopped. What it says is kept.
    fn cargo(
        &self,
        arguments: &[&str],
        captures: Option<&str>,
        max: Duration,
    ) -> Result<Option<bool>> {
        let log = File::create(self.log())?;
        let mut command = Command::new("cargo");
        command
            .args(arguments)
            .current_dir(&self.tree)
            .env("CARGO_TARGET_DIR", self.root.join("target/rules/build"))
            // A replay takes milliseconds either way; building is what costs.
            .env("CARGO_PROFILE_TEST_OPT_LEVEL", "0")
            .env("CARGO_PROFILE_TEST_DEBUG", "0")
            .env_remove("QD_CAPTURES")
            .envs(captures.map(|captures| ("QD_CAPTURES", captures)))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        let mut child = command.spawn().context("cannot run cargo")?;
        let began = Instant::now();
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(Some(status.success()));
            }
            if began.elapsed() > max {
                child.kill()?;
                child.wait()?;
                return Ok(None);
            }
            sleep(LOOK_EVERY);
        }
    }

    fn log(&self) -> PathBuf {
        self.tree.with_extension("log")
    }

    fn said(&self) -> Result<String> {
        Ok(String::from_utf8_lossy(&fs::read(self.log())?).into_owned())
    }
}

/// The test target, as cargo is told, and the test's name in it.
fn test_of(fails: &Fails) -> (Vec<&str>, &str) {
    let harness = fails.what.split('/').next().unwrap_or_default();
    let test = match (fails.how, harness) {
        (How::Test, _) => {
            let mut words: Vec<&str> = fails.what.split_whitespace().collect();
            let test = words.pop().unwrap_or_default();
            return (words, test);
        }
        (How::Whole, _) => "truth::every_known_state_is_shown_and_nothing_else",
        (How::Doubled, _) => "disturbed::doubled_signals_are_as_true_and_end_in_the_same_states",
        (How::Swapped, _) => "disturbed::swapped_neighbours_end_in_the_same_states",
        (How::HooksAndFiles, "codex") => "only::codex_by_hooks_and_rollouts",
        (How::HooksAndFiles, "gemini") => "only::gemini_by_hooks_and_chat_files",
        (How::HooksAndFiles, _) => "only::claude_code_by_hooks_and_transcripts",
        (How::RegistryAndFiles, _) => "only::claude_code_by_registry_and_transcripts",
        (How::Files, _) => "only::codex_by_rollouts_and_processes",
    };
    (vec!["--package", "qd-harness", "--test", "captured"], test)
}

/// Writes what differs, so that cargo builds no more than that. Every path that was looked at.
fn copy_changed(from: &Path, to: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut copied = BTreeSet::new();
    fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        if NOT_COPIED.iter().any(|other| name == *other) {
            continue;
        }
        let (source, copy) = (entry.path(), to.join(&name));
        copied.insert(copy.clone());
        if entry.file_type()?.is_dir() {
            copied.extend(copy_changed(&source, &copy)?);
        } else if source.is_file() {
            let bytes = fs::read(&source)?;
            if fs::read(&copy).ok().as_ref() != Some(&bytes) {
                fs::write(&copy, bytes)?;
            }
        }
    }
    Ok(copied)
}

/// Removes what the workspace has no longer.
fn remove_others(top: &Path, copied: &BTreeSet<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(top)? {
        let entry = entry?;
        let path = entry.path();
        match (copied.contains(&path), entry.file_type()?.is_dir()) {
            (true, true) => remove_others(&path, copied)?,
            (true, false) => {}
            (false, true) => fs::remove_dir_all(&path)?,
            (false, false) => fs::remove_file(&path)?,
        }
    }
    Ok(())
}
