//! A home of our own with a daemon in it, and agents that report to it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// Long enough for any machine that still makes progress.
pub const GENEROUS: Duration = Duration::from_secs(60);

/// One test's machine, removed with it.
pub struct World {
    root: PathBuf,
}

impl World {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        // Short: a socket's path has at most 107 bytes.
        let root = std::env::temp_dir().join(format!("qd-cli-{}-{count}", std::process::id()));
        fs::create_dir_all(root.join("home")).expect("a temporary folder");
        fs::create_dir_all(root.join("tmp")).expect("a temporary folder");
        Self { root }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub fn state(&self) -> PathBuf {
        self.path("state/quarterdeck")
    }

    pub fn socket(&self) -> PathBuf {
        self.path("run/quarterdeck/qd.sock")
    }

    /// A command that knows nothing of this machine but the system's programs.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .env_clear()
            .env("HOME", self.path("home"))
            .env("USER", "ann")
            .env("PATH", format!("{}:/usr/bin:/bin", self.path("tools").display()))
            .env("TMPDIR", self.path("tmp"))
            .env("XDG_RUNTIME_DIR", self.path("run"))
            .env("XDG_STATE_HOME", self.path("state"))
            .env("QD_PORT", "0")
            .stdin(Stdio::null());
        command
    }

    pub fn qd(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_qd"));
        command.args(arguments);
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Outcome {
        Outcome::of(self.qd(arguments).output().expect("qd runs"))
    }

    /// A daemon that answers.
    pub fn daemon(&self) -> Running {
        Running::start(self.qd(&["serve", "--port", "0"]), "Quarterdeck listens")
    }

    /// A hook, as an agent runs it: when it returns, the daemon has it.
    pub fn hook(&self, payload: Value) {
        let mut command = self.command(env!("CARGO_BIN_EXE_qd-hook"));
        command.args(["send", "--harness", "claude-code"]).stdin(Stdio::piped());
        // What proves to the forwarder that Claude Code calls it.
        command.env("CLAUDE_CODE_SESSION_ID", payload["session_id"].as_str().unwrap_or_default());
        let mut child = command.spawn().expect("the forwarder starts");
        let mut stdin = child.stdin.take().expect("its input");
        stdin.write_all(payload.to_string().as_bytes()).expect("written");
        drop(stdin);
        assert!(child.wait().expect("it ends").success());
    }

    /// A hook that a client posts itself: nobody sees its process.
    pub fn posts(&self, payload: &Value) {
        let body = payload.to_string();
        let head = "POST /api/live/hook HTTP/1.1\r\nhost: quarterdeck\r\nconnection: close\r\n";
        let length =
            format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
        let mut stream = UnixStream::connect(self.socket()).expect("it listens");
        stream.write_all(format!("{head}{length}{body}").as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("text");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    /// An agent that works, and one step later asks for permission.
    pub fn agent_starts(&self, id: &str) {
        self.hook(json!({"session_id": id, "cwd": self.path("home/acme"),
            "hook_event_name": "UserPromptSubmit", "prompt": "fix the parser"}));
    }

    pub fn agent_asks(&self, id: &str) {
        let input = json!({"command": "rm -rf build"});
        for event in ["PreToolUse", "PermissionRequest"] {
            self.hook(json!({"session_id": id, "cwd": self.path("home/acme"),
                "hook_event_name": event, "tool_name": "Bash", "tool_use_id": "toolu_1",
                "tool_input": input, "permission_mode": "default"}));
        }
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(&path, text).expect("written");
        path
    }

    pub fn program(&self, name: &str, script: &str) {
        let path = self.write(name, &format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("runnable");
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // A failed test's home is looked at.
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.root);
        }
    }
}

/// A program that runs until it is told to stop.
pub struct Running {
    child: Child,
    /// What it has said, up to the line that was waited for.
    pub said: Vec<String>,
    rest: Option<BufReader<Box<dyn std::io::Read + Send>>>,
}

impl Running {
    /// Starts it and waits until it says a line with `ready` in it.
    pub fn start(command: Command, ready: &str) -> Self {
        Self::reading(command, ready, |child| Box::new(child.stdout.take().expect("its output")))
    }

    /// The same for a program that speaks on its error output.
    pub fn start_saying_on_stderr(command: Command, ready: &str) -> Self {
        Self::reading(command, ready, |child| Box::new(child.stderr.take().expect("its output")))
    }

    fn reading(
        mut command: Command,
        ready: &str,
        take: impl FnOnce(&mut Child) -> Box<dyn std::io::Read + Send>,
    ) -> Self {
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let mut output = BufReader::new(take(&mut child));
        let mut said = Vec::new();
        loop {
            let mut line = String::new();
            let count = output.read_line(&mut line).expect("text");
            assert!(count > 0, "it ended without {ready:?}: {said:?}");
            said.push(line.clone());
            if line.contains(ready) {
                break;
            }
        }
        // Its log must not fill the pipe.
        if let Some(log) = child.stderr.take() {
            std::thread::spawn(move || std::io::copy(&mut { log }, &mut std::io::sink()));
        }
        Self { child, said, rest: Some(output) }
    }

    pub fn next_line(&mut self) -> String {
        let mut line = String::new();
        let rest = self.rest.as_mut().expect("it still speaks");
        rest.read_line(&mut line).expect("text");
        line
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Stops it as an operator does, and gives its exit code.
    pub fn stop(mut self, signal: Signal) -> Option<i32> {
        kill_process(self.pid(), signal).expect("it runs");
        self.child.wait().expect("it ends").code()
    }

    pub fn ended(mut self) -> Option<i32> {
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Debug)]
pub struct Outcome {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Outcome {
    pub fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}
