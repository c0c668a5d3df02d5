//! A machine of our own: folders, a daemon that behaves as told, and hooks run as agents run them.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use qd_hook_wire::{ACK, FrameId, REFUSAL};
use qd_sources::hook_intake::{Admission, Frame, FrameParser, KnownIds, Spool, bind};
use rustix::net::{Shutdown, shutdown};

/// Long enough for any machine that still makes progress.
pub const GENEROUS: Duration = Duration::from_secs(30);

/// A home for one test, removed with it.
pub struct World {
    root: PathBuf,
}

impl World {
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        // Short: a socket's path has at most 107 bytes.
        let root = std::env::temp_dir().join(format!("qd-hook-{}-{count}", std::process::id()));
        fs::create_dir_all(&root).expect("a temporary folder");
        Self { root }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub fn socket(&self) -> PathBuf {
        self.path("run/quarterdeck/qd.sock")
    }

    pub fn spool_folder(&self) -> PathBuf {
        self.path("state/quarterdeck/spool")
    }

    pub fn spool(&self) -> Spool {
        Spool::open(&self.spool_folder()).expect("the spool opens")
    }

    /// Takes everything from the spool, as a daemon does that was never up before.
    pub fn drained(&self) -> Vec<Frame> {
        let (spool, mut known) = (self.spool(), KnownIds::default());
        let mut drained = Vec::new();
        loop {
            let batch = spool.next_batch(now_ms(), &mut known).expect("the spool is read");
            assert!(batch.set_aside.is_empty(), "{:?}", batch.set_aside);
            if batch.frames.is_empty() {
                return drained;
            }
            drained.extend(batch.frames.iter().cloned());
            spool.settle(batch, &mut known).expect("the files go");
        }
    }

    /// `qd-hook send` through a shell, as agents run hooks. The hook's output is a second time on
    /// file 3, which the child that stays for the disk keeps: the output ends when all ends.
    pub fn hook(&self, arguments: &str) -> Hook {
        let mut command = Command::new("/bin/sh");
        let line = format!("exec \"$0\" {arguments} 3>&1");
        command.arg("-c").arg(line).arg(env!("CARGO_BIN_EXE_qd-hook"));
        command
            .env_clear()
            .env("XDG_RUNTIME_DIR", self.path("run"))
            .env("XDG_STATE_HOME", self.path("state"))
            // As Claude Code proves that it is the caller: the session of the tests' payloads.
            .env("CLAUDE_CODE_SESSION_ID", "s")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Hook { command }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // What a test leaves behind is the system's to clear; a failed one is looked at.
        if !std::thread::panicking() {
            let _ = fs::remove_dir_all(&self.root);
        }
    }
}

pub struct Hook {
    command: Command,
}

impl Hook {
    pub fn environment(mut self, change: impl FnOnce(&mut Command)) -> Self {
        change(&mut self.command);
        self
    }

    pub fn spawn(mut self) -> Child {
        self.command.spawn().expect("the forwarder starts")
    }

    /// Runs it to its end and checks what always holds: it exits with 0 and says nothing. Gives
    /// the time the agent waited.
    pub fn run(self, input: &[u8]) -> Duration {
        let begun = Instant::now();
        let mut child = self.spawn();
        let mut stdin = child.stdin.take().expect("its input");
        stdin.write_all(input).expect("the agent can write all it has to say");
        drop(stdin);
        finish(child, begun)
    }
}

/// Waits for the hook, then for whatever it left running.
pub fn finish(mut child: Child, begun: Instant) -> Duration {
    let status = child.wait().expect("it ends");
    let took = begun.elapsed();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    child.stdout.take().expect("its output").read_to_end(&mut out).expect("read");
    child.stderr.take().expect("its errors").read_to_end(&mut err).expect("read");
    assert_eq!((status.code(), out, err), (Some(0), vec![], vec![]), "exit 0 and silence");
    took
}

/// How a daemon treats its forwarders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    Acknowledges,
    /// Takes the frame into its journal and closes without a word.
    TakesInSilence,
    /// Closes at once.
    Closes,
    Refuses,
    /// Reads and never answers.
    Hangs,
}

/// What survives a daemon.
#[derive(Debug, Default)]
pub struct Journal {
    pub frames: Vec<Frame>,
}

/// A daemon of one thread. It ends when dropped.
pub struct Daemon {
    socket: PathBuf,
    ending: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Daemon {
    pub fn start(world: &World, manner: Manner, journal: &Arc<Mutex<Journal>>) -> Self {
        let socket = world.socket();
        let listener = bind(&socket).expect("the socket is free");
        let ending = Arc::new(AtomicBool::new(false));
        let (ended, journal) = (Arc::clone(&ending), Arc::clone(journal));
        let thread = std::thread::spawn(move || serve(&listener, manner, &ended, &journal));
        Self { socket, ending, thread: Some(thread) }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::SeqCst);
        // A forwarder that came just now may have told it already.
        let _ = UnixStream::connect(&self.socket);
        let thread = self.thread.take().expect("it runs once");
        thread.join().expect("the daemon did not panic");
    }
}

fn serve(listener: &UnixListener, manner: Manner, ended: &AtomicBool, journal: &Mutex<Journal>) {
    let ids = |journal: &Journal| journal.frames.iter().map(|frame| frame.id).collect();
    let taken: Vec<FrameId> = ids(&journal.lock().expect("whole"));
    let mut known = KnownIds::restored(taken);
    let mut held = Vec::new();
    for stream in listener.incoming() {
        let mut stream = stream.expect("a connection");
        if ended.load(Ordering::SeqCst) {
            // A hook that another test thread starts right now has a copy of the socket until it
            // runs its own program; closing ours would leave that one listening.
            return shutdown(listener, Shutdown::Both).expect("nobody listens any more");
        }
        let Some(frame) = (manner != Manner::Closes).then(|| first_frame(&mut stream)).flatten()
        else {
            continue;
        };
        let takes = matches!(manner, Manner::Acknowledges | Manner::TakesInSilence);
        if takes && known.admit(frame.id) == Admission::New {
            known.settle(frame.id);
            journal.lock().expect("whole").frames.push(frame);
        }
        let answer = match manner {
            Manner::Acknowledges => &[ACK][..],
            Manner::Refuses => &[REFUSAL],
            Manner::TakesInSilence | Manner::Closes | Manner::Hangs => &[],
        };
        // A forwarder that was killed does not listen any more.
        let _ = stream.write_all(answer);
        if manner == Manner::Hangs {
            held.push(stream);
        }
    }
}

/// The first frame of a connection, or `None` if it breaks off.
pub fn first_frame(stream: &mut UnixStream) -> Option<Frame> {
    let (mut parser, mut chunk) = (FrameParser::default(), [0; 4096]);
    stream.set_read_timeout(Some(GENEROUS)).expect("a timeout");
    loop {
        let count = stream.read(&mut chunk).expect("bytes");
        if count == 0 {
            return None;
        }
        if let Some(frame) = parser.next_frame(&mut &chunk[..count]) {
            return Some(frame.expect("a frame of ours"));
        }
    }
}

pub fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.expect("after 1970").as_millis() as u64
}

pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let mut names: Vec<String> = entries.map(|entry| name(entry.expect("an entry"))).collect();
    names.sort();
    names
}
