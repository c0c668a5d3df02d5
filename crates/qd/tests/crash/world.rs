//! A machine of our own: a home, our folders, the daemon as a process, hooks as agents run them.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

pub use qd_host::now;
use qd_sources::hook_intake::Frame;
use qd_store::Journal;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::reference::sorted;

/// Long enough for any machine that still makes progress.
pub const GENEROUS: Duration = Duration::from_secs(120);

/// One home, removed with the test. Several daemons may look at it, each with folders of its own.
pub struct World {
    root: PathBuf,
}

impl World {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        // Short: a socket's path has at most 107 bytes.
        let root = std::env::temp_dir().join(format!("qd-crash-{}-{count}", std::process::id()));
        fs::create_dir_all(root.join("home")).expect("a temporary folder");
        Self { root }
    }

    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    pub fn place(&self, name: &str) -> Place {
        let root = self.root.join(name);
        fs::create_dir_all(&root).expect("a folder for a daemon");
        Place { home: self.home(), root }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // A failed test's files are looked at.
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.root);
        }
    }
}

/// Where one daemon keeps what is its own.
pub struct Place {
    home: PathBuf,
    root: PathBuf,
}

impl Place {
    fn own(&self) -> PathBuf {
        self.root.join("state/quarterdeck")
    }

    fn environment<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command
            .env_clear()
            .env("HOME", &self.home)
            .env("XDG_RUNTIME_DIR", self.root.join("run"))
            .env("XDG_STATE_HOME", self.root.join("state"))
            .env("QD_LOG", "warn")
    }

    /// Starts a daemon and does not wait for it. Files may not grow beyond a limit that somebody
    /// sets later: that ends a write, not the program.
    pub fn start(&self) -> Daemon<'_> {
        let log = self.root.join("daemon.log");
        let log = File::options().create(true).append(true).open(log).expect("a log");
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' XFSZ; exec \"$0\" serve --port 0", env!("CARGO_BIN_EXE_qd")]);
        self.environment(&mut command).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        Daemon { place: self, child: command.spawn().expect("the daemon starts") }
    }

    /// Starts a daemon that has said where it listens.
    pub fn serve(&self) -> Daemon<'_> {
        let mut daemon = self.start();
        daemon.wait_until_it_listens();
        daemon
    }

    /// Runs a hook as an agent does and waits for it: it exits with 0 and says nothing.
    pub fn hook(&self, harness: &str, payload: &str) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_qd-hook"));
        let command = self.environment(&mut command).args(["send", "--harness", harness]);
        // What proves to the forwarder that Claude Code calls it.
        let said: serde_json::Value = serde_json::from_str(payload).unwrap_or_default();
        command.env("CLAUDE_CODE_SESSION_ID", said["session_id"].as_str().unwrap_or_default());
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("the forwarder");
        let mut stdin = child.stdin.take().expect("its input");
        stdin.write_all(payload.as_bytes()).expect("the agent can write all it has to say");
        drop(stdin);
        assert!(child.wait().expect("it ends").success(), "a hook never fails");
    }

    /// Frames, half and whole, that wait for a daemon.
    pub fn spooled(&self) -> usize {
        let Ok(entries) = fs::read_dir(self.own().join("spool")) else { return 0 };
        let waits = |path: &Path| {
            path.extension().is_some_and(|ending| ending == "frame" || ending == "part")
        };
        entries.filter(|entry| waits(&entry.as_ref().expect("an entry").path())).count()
    }

    /// Losses that forwarders counted.
    pub fn lost(&self) -> u64 {
        fs::metadata(self.own().join("spool/lost")).map_or(0, |lost| lost.len())
    }

    /// The journal of a daemon that has ended.
    pub fn journal(&self) -> Journal {
        let journal = Journal::open(self.own().join("journal.db"), Default::default());
        let (journal, opened) = journal.expect("the journal is free");
        assert_eq!(opened.set_aside, None, "it is whole");
        journal
    }

    /// The hooks that it took, in the order in which it took them.
    pub fn frames(&self) -> Vec<Frame> {
        let deliveries = self.journal().deliveries().expect("readable");
        deliveries.iter().map(|delivery| Frame::delivered(delivery).expect("a body")).collect()
    }

    /// A connection to the daemon's socket.
    pub fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(self.root.join("run/quarterdeck/qd.sock"));
        let stream = stream.expect("the daemon listens");
        stream.set_read_timeout(Some(GENEROUS)).expect("a timeout");
        stream
    }

    /// The answer to `GET path` over the socket; none while nobody answers.
    pub fn get(&self, path: &str) -> Option<Value> {
        let mut stream = UnixStream::connect(self.root.join("run/quarterdeck/qd.sock")).ok()?;
        stream.set_read_timeout(Some(GENEROUS)).expect("a timeout");
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: quarterdeck\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (_, body) = answer.split_once("\r\n\r\n")?;
        serde_json::from_str(body).ok()
    }

    /// The board, as `qd status --json` tells it.
    pub fn board(&self) -> Vec<Value> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_qd"));
        let output = self.environment(&mut command).args(["status", "--json"]).output();
        let output = output.expect("qd status");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "qd status: {said}");
        let board: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        sorted(board["sessions"].as_array().expect("a list").clone())
    }
}

/// A daemon's process. One that is dropped is killed.
pub struct Daemon<'a> {
    place: &'a Place,
    child: Child,
}

impl Daemon<'_> {
    pub fn wait_until_it_listens(&mut self) {
        let mut line = String::new();
        let output = self.child.stdout.as_mut().expect("its output");
        BufReader::new(output).read_line(&mut line).expect("text");
        assert!(line.contains("listens"), "the daemon ended: see {}", self.place.root.display());
    }

    pub fn kill(mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("gone");
    }

    /// Ends it as a service manager does; it writes what it took.
    pub fn stop(mut self) {
        self.signal(Signal::TERM);
        assert!(self.child.wait().expect("its end").success(), "it ends well");
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it lives");
    }

    pub fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).expect("a pid")).expect("not zero")
    }
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks again until it is so. What is asked takes its time, so this does not spin.
#[track_caller]
pub fn until(what: &str, mut is: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < GENEROUS, "it never came to that: {what}");
        std::thread::yield_now();
    }
}
