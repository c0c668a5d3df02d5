//! What sessions cost in memory, counted: a daemon that was started again on thousands of them,
//! beside one that has half as many, so that what it takes for itself is not theirs.
//!
//! The only test of its program, so that everything allocated is the daemon's.

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use qd_broker::{Broker, Input, Output, WOKEN_MAX};
use qd_daemon::runtime::{Runtime, Settings};
use qd_harness::{Channel, Direction, Harness, Signal};
use qd_server::{Doors, Records, Server, Tokens};
use qd_session::moment::Timestamp;
use qd_sources::hook_intake;
use qd_store::{Alias, Batch, Journal};
use serde_json::{Value, json};
use tokio::net::UnixListener;
use tokio::runtime::Runtime as Tokio;
use tokio::sync::watch;

const SESSIONS: usize = 2_000;

/// Calls of each one's last turn: an agent remembers them all.
const CALLS: usize = 8;

/// What a session at rest takes, all that is kept of it together: about half of it the session with
/// the maps that find it, the rest its card as readers get it. A test counts the bytes.
const RESTING_BYTES_MAX: usize = 2 << 10;

/// Two rounds of sessions that are awake before they rest, and what it takes to pack them.
const AWAKE_BYTES_MAX: usize = 2 * WOKEN_MAX * (4 << 10);

struct Counting;

static LIVE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[allow(unsafe_code, reason = "an allocator cannot be written without")]
// SAFETY: every call is handed to the system's allocator as it came; only counters are added.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller's layout, unchanged.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: it was allocated above with the same layout.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_session_at_rest_takes_two_kilobytes_and_a_restart_no_more_than_what_runs() {
    let empty = Folder::new("empty");
    let half = Folder::new("half");
    write_journal(&half.0, SESSIONS / 2);
    let full = Folder::new("full");
    write_journal(&full.0, SESSIONS);
    // What is made once for the whole program.
    Daemon::start(&empty.0).stop();

    let daemon = Daemon::start(&empty.0);
    let nothing = daemon.used();
    daemon.stop();
    let daemon = Daemon::start(&half.0);
    let some = daemon.used();
    daemon.stop();
    let daemon = Daemon::start(&full.0);
    let all = daemon.used();
    let each = all.live.saturating_sub(some.live) / (SESSIONS / 2);
    println!("{each} bytes a session; {nothing:?} without any, {all:?} with {SESSIONS}");
    // Some room is for those with longer names and paths than these.
    assert!(each <= RESTING_BYTES_MAX * 3 / 4, "{each} bytes a session");
    let above = all.peak.saturating_sub(all.live.max(nothing.peak));
    assert!(above <= AWAKE_BYTES_MAX, "the start took {above} bytes more than what runs");

    let board: Value = serde_json::from_str(&daemon.get("/api/live/sessions")).expect("JSON");
    let cards = board["sessions"].as_array().expect("cards");
    assert_eq!(cards.len(), SESSIONS);
    let title = |card: &Value| card["title"].as_str().unwrap_or_default().to_owned();
    let mut titles: Vec<String> = cards.iter().map(title).collect();
    titles.sort();
    titles.dedup();
    assert_eq!(titles.len(), SESSIONS, "each card is its own");
    daemon.stop();
}

/// The least of two seconds: threads of a daemon that was stopped end a moment later, and one that
/// runs looks at its processes now and then.
fn at_rest() -> usize {
    let readings = (0..100).map(|_| {
        std::thread::sleep(Duration::from_millis(20));
        LIVE.load(Ordering::Relaxed)
    });
    readings.min().unwrap_or_default()
}

#[derive(Debug)]
struct Used {
    live: usize,
    /// The most since it was started.
    peak: usize,
}

struct Daemon {
    folder: PathBuf,
    /// What there was before it.
    before: usize,
    stop: watch::Sender<bool>,
    tokio: Tokio,
}

impl Daemon {
    /// One that has its whole board.
    fn start(folder: &Path) -> Self {
        let before = at_rest();
        PEAK.store(before, Ordering::Relaxed);
        let mut tokio = tokio::runtime::Builder::new_multi_thread();
        let tokio = tokio.worker_threads(2).enable_all().build().expect("a runtime");
        let tokens = Tokens::open(&folder.join("tokens")).expect("tokens");
        let (stop, stopped) = watch::channel(false);
        tokio.block_on(async {
            let settings = Settings {
                home: folder.to_owned(),
                environment: BTreeMap::new(),
                state: folder.join("state"),
                opencode_servers: Vec::new(),
                client_folders: Vec::new(),
                layers: folder.join("config/layers.toml"),
                policy: folder.join("config/policy.toml"),
            };
            let opened = Runtime::open(&settings, stopped.clone());
            let (runtime, handle) = opened.expect("it opens");
            let socket = hook_intake::bind(&folder.join("qd.sock")).expect("a socket");
            socket.set_nonblocking(true).expect("a socket that can wait");
            let socket = UnixListener::from_std(socket).expect("a socket of the runtime");
            let port = Server::listen(0).await.expect("a port");
            tokio::spawn(runtime.run());
            let doors = Doors { socket, port, tokens, hosts: Vec::new() };
            tokio::spawn(Server::serve(handle, Records::default(), doors, stopped));
        });
        let daemon = Self { folder: folder.to_owned(), before, stop, tokio };
        while !daemon.get("/api/health").contains("\"caughtUp\":true") {
            std::thread::yield_now();
        }
        // It is answered from the board.
        daemon.get("/api/live/summary");
        daemon
    }

    fn used(&self) -> Used {
        let above = |bytes: usize| bytes.saturating_sub(self.before);
        Used { live: above(at_rest()), peak: above(PEAK.load(Ordering::Relaxed)) }
    }

    fn get(&self, path: &str) -> String {
        let mut stream = UnixStream::connect(self.folder.join("qd.sock")).expect("it listens");
        let head = format!("GET {path} HTTP/1.1\r\nhost: quarterdeck\r\nconnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer.split_once("\r\n\r\n").expect("a body").1.to_owned()
    }

    fn stop(self) {
        self.stop.send_replace(true);
        self.tokio.shutdown_timeout(Duration::from_secs(5));
    }
}

/// Sessions of Claude Code that have just ended, as their hooks told.
fn write_journal(folder: &Path, sessions: usize) {
    let (journal, _) =
        Journal::open(folder.join("state/journal.db"), qd_store::Settings::default())
            .expect("a journal");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let now = Timestamp(u64::try_from(now.as_millis()).expect("a time"));
    let mut broker = Broker::default();
    for session in 0..sessions {
        let mut batch = Batch::default();
        for payload in hooks(session) {
            let payload = payload.to_string();
            let signal = Signal {
                at: now,
                seq: 0,
                channel: Channel::Hook,
                direction: Direction::FromAgent,
                file: None,
                payload: payload.as_bytes(),
            };
            let harness = Harness::ClaudeCode;
            for output in broker.handle(now, Input::Signal { harness, signal }) {
                match output {
                    Output::Found { session, harness, vendor_id } => {
                        let (harness, vendor_id) = (harness.name().into(), vendor_id.to_string());
                        batch.aliases.push(Alias { harness, vendor_id, session });
                    }
                    Output::Append(entry) => batch.entries.push(entry),
                    Output::Show(_)
                    | Output::Locate(_)
                    | Output::Survey(_)
                    | Output::LookInto { .. }
                    | Output::Record(_)
                    | Output::Carry(_)
                    | Output::Release(_)
                    | Output::Settled(_)
                    | Output::Run(_)
                    | Output::Changed(_)
                    | Output::Streamed(_)
                    | Output::Remove(_) => {}
                }
            }
        }
        let receipt = journal.write(&batch);
        if session + 1 == sessions {
            receipt.wait().expect("written");
        }
    }
}

fn hooks(session: usize) -> Vec<Value> {
    let id = format!("{session:08x}-0000-4000-8000-000000000000");
    let hook = |event: &str, more: Value| {
        let mut hook = json!({
            "session_id": id,
            "transcript_path": format!("/home/ann/.claude/projects/-home-ann-acme/{id}.jsonl"),
            "cwd": "/home/ann/acme",
            "permission_mode": "default",
            "hook_event_name": event,
        });
        let fields = hook.as_object_mut().expect("an object");
        fields.extend(more.as_object().expect("an object").clone());
        hook
    };
    let prompt = format!("Mend the build of package {session}, then run all its tests");
    let mut hooks = vec![
        hook("SessionStart", json!({"source": "startup", "model": "claude-opus-4-5"})),
        hook("UserPromptSubmit", json!({"prompt": prompt})),
    ];
    for nth in 0..CALLS {
        let call = json!({
            "tool_name": "Bash",
            "tool_use_id": format!("toolu_{session:08}_{nth:08}"),
            "tool_input": {"command": format!("cargo test -p acme --test part_{nth}")},
            "tool_response": {"stdout": "", "stderr": ""},
        });
        hooks.extend([hook("PreToolUse", call.clone()), hook("PostToolUse", call)]);
    }
    hooks.push(hook("Stop", json!({"last_assistant_message": "The build works again."})));
    hooks.push(hook("SessionEnd", json!({"reason": "other"})));
    hooks
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("qd-memory-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
