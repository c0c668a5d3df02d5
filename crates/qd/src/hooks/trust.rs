//! Codex runs a hook only once its hash is trusted. The hash is Codex's own business, so Codex
//! computes and writes it: `codex app-server` over stdio, `hooks/list`, then `config/batchWrite`.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Map, Value, json};

use super::wanted::is_ours;

/// All of it. It takes under a second; a first start on a loaded machine some more.
const TRUST_MAX: Duration = Duration::from_secs(20);

/// Longest message we read. A list of hooks is some hundred bytes a hook.
const LINE_BYTES_MAX: u64 = 4 << 20;

/// Messages read ahead. Between our answers come only a few notices.
const QUEUE_LEN_MAX: usize = 16;

/// What the operator has to do where we cannot.
pub const BY_HAND: &str = "Codex does not run these hooks until they are trusted: start `codex`, \
     and at \"Hooks need review\" choose to review and trust them";

/// The `codex` that a shell would run.
pub fn find_codex(path: Option<&OsStr>) -> Option<PathBuf> {
    let candidates = std::env::split_paths(path?).map(|folder| folder.join("codex"));
    candidates.into_iter().find(|candidate| {
        std::fs::metadata(candidate)
            .is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    })
}

/// Has Codex trust our hooks in `hooks_file`, and nobody else's. Says how many it trusts now.
pub fn trust(codex: &Path, home: &Path, hooks_file: &Path) -> Result<usize> {
    trust_within(TRUST_MAX, codex, home, hooks_file)
}

fn trust_within(limit: Duration, codex: &Path, home: &Path, hooks_file: &Path) -> Result<usize> {
    let mut server = AppServer::start(codex, home, limit)?;
    let answer = server.trust(home, hooks_file);
    server.stop();
    answer
}

#[derive(Debug)]
struct AppServer {
    child: Child,
    /// Dropped to say that we are done.
    stdin: Option<ChildStdin>,
    messages: Receiver<Value>,
    until: Instant,
    last_id: u64,
}

impl AppServer {
    fn start(codex: &Path, home: &Path, limit: Duration) -> Result<Self> {
        let mut child = Command::new(codex)
            .arg("app-server")
            .env("CODEX_HOME", home)
            .current_dir(home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {}", codex.display()))?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().context("codex has no output")?;
        let (sender, messages) = sync_channel(QUEUE_LEN_MAX);
        // Ends with the child's output, or when nobody listens any more.
        thread::spawn(move || {
            let mut stdout = BufReader::new(stdout);
            while let Some(line) = next_line(&mut stdout) {
                // Codex's notices may be anything; what is no JSON is none of our answers.
                let Ok(message) = serde_json::from_slice(&line) else { continue };
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        Ok(Self { child, stdin, messages, until: Instant::now() + limit, last_id: 0 })
    }

    fn trust(&mut self, home: &Path, hooks_file: &Path) -> Result<usize> {
        let client = json!({"name": "quarterdeck", "title": "Quarterdeck",
            "version": env!("CARGO_PKG_VERSION")});
        self.ask("initialize", json!({"clientInfo": client}))?;
        self.send(&json!({"method": "initialized"}))?;
        let ours = self.our_hooks(home, hooks_file)?;
        let state: Map<String, Value> = ours
            .iter()
            .map(|hook| (hook.key.clone(), json!({"trusted_hash": hook.hash})))
            .collect();
        let edit = json!({"keyPath": "hooks.state", "value": state, "mergeStrategy": "upsert"});
        self.ask("config/batchWrite", json!({"edits": [edit], "reloadUserConfig": true}))?;
        let after = self.our_hooks(home, hooks_file)?;
        let trusted = after.iter().filter(|hook| hook.status == "trusted").count();
        if trusted < after.len() {
            bail!("codex trusts {trusted} of our {} hooks", after.len());
        }
        Ok(trusted)
    }

    fn our_hooks(&mut self, home: &Path, hooks_file: &Path) -> Result<Vec<Listed>> {
        let listed = self.ask("hooks/list", json!({"cwds": [home]}))?;
        let folders = listed["data"].as_array().map(Vec::as_slice).unwrap_or_default();
        let hooks = folders.iter().filter_map(|folder| folder["hooks"].as_array()).flatten();
        let same_file = |path: &str| {
            Path::new(path) == hooks_file
                || matches!((Path::new(path).canonicalize(), hooks_file.canonicalize()),
                    (Ok(one), Ok(other)) if one == other)
        };
        let ours = hooks.filter(|hook| {
            hook["command"].as_str().is_some_and(is_ours)
                && hook["sourcePath"].as_str().is_some_and(same_file)
        });
        let ours: Vec<&Value> = ours.collect();
        if ours.is_empty() {
            let warnings = folders.iter().filter_map(|folder| folder["warnings"].as_array());
            let said = warnings.flatten().filter_map(Value::as_str).collect::<Vec<_>>().join("; ");
            bail!("codex does not list our hooks in {} {said}", hooks_file.display());
        }
        let ours = ours.into_iter().map(|hook| {
            let text = |key: &str| {
                let value = hook[key].as_str().map(str::to_owned);
                value.ok_or_else(|| anyhow!("codex lists a hook without {key}"))
            };
            let (key, hash, status) = (text("key")?, text("currentHash")?, text("trustStatus")?);
            Ok(Listed { key, hash, status })
        });
        ours.collect()
    }

    fn ask(&mut self, method: &str, params: Value) -> Result<Value> {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"id": id, "method": method, "params": params}))?;
        loop {
            let left = self.until.saturating_duration_since(Instant::now());
            let mut message = match self.messages.recv_timeout(left) {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) => bail!("codex did not answer {method} in time"),
                Err(RecvTimeoutError::Disconnected) => {
                    bail!("codex ended before it answered {method}")
                }
            };
            if message["id"] != id || message.get("method").is_some() {
                continue;
            }
            if let Some(error) = message.get("error") {
                let said = error["message"].as_str().unwrap_or("no reason given");
                bail!("codex refused {method}: {said}");
            }
            return Ok(message["result"].take());
        }
    }

    fn send(&mut self, message: &Value) -> Result<()> {
        let stdin = self.stdin.as_mut().context("codex is stopped")?;
        stdin
            .write_all(format!("{message}\n").as_bytes())
            .and_then(|()| stdin.flush())
            .context("codex ended before it was asked")
    }

    fn stop(mut self) {
        // Its input ends: it goes by itself. The output ends with it, and with that our reader.
        drop(self.stdin.take());
        loop {
            let left = self.until.saturating_duration_since(Instant::now()).min(STOP_MAX);
            match self.messages.recv_timeout(left) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected | RecvTimeoutError::Timeout) => break,
            }
        }
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            // Gone already, or about to be: both are what we want.
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

struct Listed {
    key: String,
    hash: String,
    status: String,
}

fn next_line(from: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    match from.take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) if !line.ends_with(b"\n") => None,
        Ok(_) => Some(line),
    }
}

/// How long a server that was told to go may take for it.
const STOP_MAX: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use super::*;

    /// A `codex` of a few lines of shell, in a folder of its own.
    fn with_codex(name: &str, script: &str) -> (PathBuf, PathBuf) {
        let folder = std::env::temp_dir().join(format!("qd-trust-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let codex = folder.join("codex");
        std::fs::write(&codex, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&codex, std::fs::Permissions::from_mode(0o755)).unwrap();
        (folder, codex)
    }

    fn check_fails(name: &str, script: &str, limit: Duration, expected: &str) {
        let (folder, codex) = with_codex(name, script);
        let failed = trust_within(limit, &codex, &folder, &folder.join("hooks.json")).unwrap_err();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(format!("{failed:#}").contains(expected), "{failed:#}");
    }

    const GENEROUS: Duration = Duration::from_secs(60);

    #[test]
    fn a_codex_that_ends_at_once_is_an_error() {
        check_fails("ends", "read line; exit 3", GENEROUS, "ended before it answered");
    }

    #[test]
    fn a_codex_that_never_answers_is_given_up() {
        let limit = Duration::from_millis(200);
        check_fails("hangs", "exec sleep 600", limit, "did not answer initialize in time");
    }

    #[test]
    fn a_codex_that_does_not_know_the_question_is_an_error() {
        let script = r#"read line; echo '{"id":1,"error":{"code":-32601,"message":"unknown"}}'; cat >/dev/null"#;
        check_fails("unknown", script, GENEROUS, "codex refused initialize: unknown");
    }

    #[test]
    fn a_codex_that_talks_nonsense_is_an_error() {
        let script = "echo nonsense; echo '{\"id\":1,\"result\":7}'; read a; read b; read c; \
             echo '{\"id\":2,\"result\":{\"data\":[{\"hooks\":[1,{\"command\":\"x\"}]}]}}'; cat >/dev/null";
        check_fails("nonsense", script, GENEROUS, "does not list our hooks");
    }
}
