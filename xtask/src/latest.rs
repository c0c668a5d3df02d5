//! The newest versions of the agents, installed beside the pinned ones: what they say that we do
//! not know, and whether the live tests hold with them.
//!
//! Nothing of ours is changed. Whoever raises the pins reads what this prints first.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value};

use crate::clients::{folder, unpack_grok};
use crate::{npm, run_with};

/// Says what is newer and what changed; where anything is newer, the live tests run with it.
pub fn latest() -> Result<()> {
    let (pinned, newest) = (folder("clients"), folder("clients-latest"));
    crate::clients::install()?;
    install(&pinned, &newest)?;
    let is_newer = tell_versions(&pinned, &newest)?;
    tell_codex(&pinned, &newest)?;
    tell_claude_code(&newest)?;
    if !is_newer {
        println!("\nEvery client is pinned at its newest version: the tests run with it anyway.");
        return Ok(());
    }
    let packages = newest.canonicalize()?.join("node_modules");
    let tests = ["test", "--workspace", "--no-fail-fast", "--test", "live", "--test", "agents"];
    let more = ["--test", "servers", "--", "--test-threads", "2"];
    run_with("cargo", &[&tests[..], &more].concat(), &[(CLIENTS_VARIABLE, packages.as_os_str())])
}

/// Where the testbed looks for the agents instead of among the pinned ones.
const CLIENTS_VARIABLE: &str = "QD_TEST_CLIENTS";

/// The same packages as the pinned ones, each in its newest version. What was installed before is
/// asked about again: `latest` moves.
fn install(pinned: &Path, newest: &Path) -> Result<()> {
    let mut package = json(&pinned.join("package.json"))?;
    for kind in KINDS {
        for (name, version) in package[kind].as_object_mut().into_iter().flatten() {
            let held = HELD.iter().find(|(held, _)| name == held);
            *version = Value::from(held.map_or("latest", |(_, range)| range));
        }
    }
    fs::create_dir_all(newest)?;
    fs::write(newest.join("package.json"), format!("{package:#}\n"))?;
    match fs::remove_file(newest.join("package-lock.json")) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        Ok(()) | Err(_) => {}
    }
    npm::update(newest)?;
    unpack_grok(&newest.join("node_modules/@xai-official/grok-linux-x64/bin"))
}

/// Those of which a newer major version is another program to us, with a handler of its own to be.
const HELD: [(&str, &str); 1] = [("cline", "^2")];

const KINDS: [&str; 2] = ["dependencies", "optionalDependencies"];

/// True if any client is newer than its pin.
fn tell_versions(pinned: &Path, newest: &Path) -> Result<bool> {
    let package = json(&pinned.join("package.json"))?;
    let nothing = Map::new();
    let of_kind = |kind| package[kind].as_object().unwrap_or(&nothing);
    let mut is_newer = false;
    println!("\nClients:");
    for (name, pin) in KINDS.into_iter().flat_map(of_kind) {
        let installed = json(&newest.join("node_modules").join(name).join("package.json"))?;
        let (pin, version) = (text(pin), text(&installed["version"]));
        is_newer |= pin != version;
        match pin == version {
            true => println!("  {name} {pin}"),
            false => println!("  {name} {pin} -> {version}"),
        }
    }
    Ok(is_newer)
}

/// Compares what Codex says about its own messages: with those that we know by name, and with what
/// the pinned one says.
fn tell_codex(pinned: &Path, newest: &Path) -> Result<()> {
    let (before, now) = (schema(pinned)?, schema(newest)?);
    let mut methods = BTreeSet::new();
    for list in ["ServerNotification.json", "ServerRequest.json"] {
        let list: Value = serde_json::from_str(now.get(list).context("no list of messages")?)?;
        let kinds = list["oneOf"].as_array().into_iter().flatten();
        let names = kinds.flat_map(|kind| kind["properties"]["method"]["enum"].as_array());
        methods.extend(names.flatten().map(text));
    }
    if methods.is_empty() {
        bail!("Codex's schema names no messages: it has another shape now");
    }
    let known = quoted_in(&sources("codex/methods.rs"))?;
    let is_method = |name: &&String| name.contains('/');
    println!("\nCodex's messages:");
    tell("  unknown to us", methods.difference(&known));
    tell("  not in its schema any more", known.difference(&methods).filter(is_method));
    let changed = now.iter().filter(|(name, schema)| before.get(*name) != Some(schema));
    tell("  other than in the pinned version", changed.map(|(name, _)| name));
    tell("  gone", before.keys().filter(|name| !now.contains_key(*name)));
    Ok(())
}

/// Every file of the schema that Codex writes, by its name.
fn schema(clients: &Path) -> Result<BTreeMap<String, String>> {
    let out = std::env::temp_dir().join(format!("qd-codex-schema-{}", std::process::id()));
    let status = Command::new(clients.join("node_modules/.bin/codex"))
        .args(["app-server", "generate-json-schema", "--experimental", "--out"])
        .arg(&out)
        .status()
        .context("cannot run Codex")?;
    if !status.success() {
        bail!("`codex app-server generate-json-schema` failed: {status}");
    }
    let mut files = BTreeMap::new();
    for part in ["", "v1", "v2"] {
        let folder = out.join(part);
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let path = entry?.path();
            if path.extension().is_some_and(|end| end == "json") {
                let name = path.strip_prefix(&out)?.to_string_lossy().into_owned();
                files.insert(name, fs::read_to_string(&path)?);
            }
        }
    }
    fs::remove_dir_all(&out)?;
    Ok(files)
}

/// Compares the hooks that Claude Code's program lists with those that we know by name.
fn tell_claude_code(newest: &Path) -> Result<()> {
    let program = newest.join("node_modules/@anthropic-ai/claude-code-linux-x64/claude");
    let bytes = fs::read(&program).with_context(|| format!("cannot read {}", program.display()))?;
    let hooks = hook_names(&bytes).context("Claude Code's program has no list of hooks")?;
    let known = quoted_in(&sources("claude_code"))?;
    println!("\nClaude Code's {} hooks:", hooks.len());
    tell("  unknown to us", hooks.difference(&known));
    Ok(())
}

/// The longest list of names in it that begins with `PreToolUse`.
fn hook_names(program: &[u8]) -> Option<BTreeSet<String>> {
    const LIST_BYTES_MAX: usize = 8 << 10;
    let lists = memchr::memmem::find_iter(program, b"[\"PreToolUse\",");
    let named = lists.filter_map(|at| {
        let rest = &program[at..program.len().min(at + LIST_BYTES_MAX)];
        let end = memchr::memchr(b']', rest)?;
        serde_json::from_slice::<BTreeSet<String>>(&rest[..=end]).ok()
    });
    named.max_by_key(BTreeSet::len)
}

/// What stands in quotation marks in a file of ours, or in those of a folder.
fn quoted_in(path: &Path) -> Result<BTreeSet<String>> {
    let mut quoted = BTreeSet::new();
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            quoted.extend(quoted_in(&entry?.path())?);
        }
        return Ok(quoted);
    }
    let text = fs::read_to_string(path).with_context(|| format!("no {}", path.display()))?;
    quoted.extend(text.lines().flat_map(|line| line.split('"').skip(1).step_by(2)).map(Into::into));
    Ok(quoted)
}

fn sources(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/harness/src").join(name)
}

fn tell<'a>(what: &str, names: impl Iterator<Item = &'a String>) {
    let names: Vec<&str> = names.map(String::as_str).collect();
    match names.is_empty() {
        true => println!("{what}: none"),
        false => println!("{what}: {}", names.join(", ")),
    }
}

fn json(path: &Path) -> Result<Value> {
    let text = fs::read_to_string(path).with_context(|| format!("no {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is no JSON", path.display()))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_list_of_hooks_is_it() {
        let program = br#"x["PreToolUse","Stop"]y["PreToolUse","Stop","Setup"]["PreToolUse",z"#;
        let names: Vec<String> = hook_names(program).expect("a list").into_iter().collect();
        assert_eq!(names, ["PreToolUse", "Setup", "Stop"]);
        assert_eq!(hook_names(b"nothing"), None);
    }

    #[test]
    fn the_messages_that_we_know_are_found_in_our_sources() {
        let known = quoted_in(&sources("codex/methods.rs")).expect("a file");
        assert!(known.contains("thread/queue/changed") && known.contains("currentTime/read"));
        let hooks = quoted_in(&sources("claude_code")).expect("a folder");
        assert!(hooks.contains("PostToolBatch"));
    }
}
