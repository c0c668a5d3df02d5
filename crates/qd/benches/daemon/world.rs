//! A home of its own, the daemon in it as a process, and what the kernel says it used.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

pub struct World {
    root: PathBuf,
}

impl World {
    pub fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("qd-bench-{name}-{}", std::process::id()));
        fs::create_dir_all(root.join("home")).expect("a temporary folder");
        Self { root }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub fn home(&self, name: &str) -> PathBuf {
        self.root.join("home").join(name)
    }

    pub fn socket(&self) -> PathBuf {
        self.path("run/quarterdeck/qd.sock")
    }

    /// A daemon that has said where it listens.
    pub fn serve(&self) -> Process {
        // Another build of it can be measured beside this one.
        let program = std::env::var_os("QD_PROGRAM");
        let mut command = Command::new(program.unwrap_or_else(|| env!("CARGO_BIN_EXE_qd").into()));
        command
            .args(["serve", "--port", "0"])
            .env_clear()
            .env("HOME", self.path("home"))
            .env("XDG_RUNTIME_DIR", self.path("run"))
            .env("XDG_STATE_HOME", self.path("state"))
            .env("QD_LOG", "warn");
        Process::start(command)
    }

    /// The body of `GET path`.
    pub fn get(&self, path: &str) -> String {
        let mut stream = UnixStream::connect(self.socket()).expect("it listens");
        let head = format!("GET {path} HTTP/1.1\r\nhost: quarterdeck\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer.split_once("\r\n\r\n").expect("a body").1.to_owned()
    }

    /// Waits until all that was there at the start has been read.
    pub fn wait_until_caught_up(&self) {
        while !self.get("/api/health").contains("\"caughtUp\":true") {
            std::thread::yield_now();
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// A child that has said its first line. Killed when dropped.
pub struct Process {
    child: Child,
}

/// What a process has used so far.
#[derive(Debug, Clone, Copy)]
pub struct Used {
    pub cpu_ms: f64,
    /// How often it slept and was woken.
    pub wakes: u64,
    pub rss_kib: u64,
}

impl Process {
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let output = child.stdout.as_mut().expect("its output");
        BufReader::new(output).read_line(&mut line).expect("text");
        assert!(!line.is_empty(), "it ended at once");
        Self { child }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The most memory it has had at once.
    pub fn peak_kib(&self) -> u64 {
        self.proc_field("status", "VmHWM:")
    }

    /// What is its own and no file's: heap and stacks.
    pub fn anonymous_kib(&self) -> u64 {
        self.proc_field("smaps_rollup", "Anonymous:")
    }

    fn proc_field(&self, file: &str, name: &str) -> u64 {
        let path = format!("/proc/{}/{file}", self.child.id());
        field(&fs::read_to_string(path).expect("it lives"), name)
    }

    /// Over all threads that live.
    pub fn used(&self) -> Used {
        let proc = PathBuf::from(format!("/proc/{}", self.child.id()));
        let mut used = Used { cpu_ms: 0.0, wakes: 0, rss_kib: 0 };
        for task in fs::read_dir(proc.join("task")).expect("it lives") {
            let task = task.expect("a thread").path();
            let run = fs::read_to_string(task.join("schedstat")).unwrap_or_default();
            let ns: f64 = run.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0.0);
            used.cpu_ms += ns / 1e6;
            let status = fs::read_to_string(task.join("status")).unwrap_or_default();
            used.wakes += field(&status, "voluntary_ctxt_switches:");
            used.rss_kib = field(&status, "VmRSS:").max(used.rss_kib);
        }
        used
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn field(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// A hook's payload as Claude Code writes it; the tool's id makes each another one.
pub fn hook(session: usize, turn: usize) -> String {
    let event = if turn.is_multiple_of(2) { "PreToolUse" } else { "PostToolUse" };
    let (call, id) = (turn / 2, format!("{session:08x}-0000-4000-8000-000000000000"));
    format!(
        r#"{{"session_id":"{id}","transcript_path":"/home/ann/.claude/projects/-home-ann-acme/{id}.jsonl","cwd":"/home/ann/acme","permission_mode":"default","hook_event_name":"{event}","tool_name":"Bash","tool_input":{{"command":"cargo test -p acme","description":"Run the tests of the package"}},"tool_use_id":"toolu_{session:04}_{call:08}"}}"#
    )
}

/// The value below which that many percent lie. Sorts.
pub fn percentile(values: &mut [f64], percent: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    values.get((last as f64 * percent / 100.0).round() as usize).copied().unwrap_or(f64::NAN)
}

/// Session files in a home, one line in each.
pub fn session_files(world: &World, count: usize) -> Vec<PathBuf> {
    let folder = world.home(".claude/projects/-home-ann-acme");
    fs::create_dir_all(&folder).expect("a folder");
    let make = |nth: usize| {
        let path = folder.join(format!("{nth:08x}-0000-4000-8000-000000000000.jsonl"));
        fs::write(&path, title(nth, usize::MAX)).expect("a file");
        path
    };
    (0..count).map(make).collect()
}

/// A line that changes what the card of the session says.
pub fn title(session: usize, line: usize) -> String {
    format!(
        "{{\"type\":\"custom-title\",\"customTitle\":\"line-{line}.\",\"sessionId\":\"{session:08x}-0000-4000-8000-000000000000\"}}\n"
    )
}
