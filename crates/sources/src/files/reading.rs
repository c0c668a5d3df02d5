//! The thread that waits for the disk: which file next, how much of it, and to whom.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use qd_harness::{Channel, Harness};
use qd_session::limits::MISSING_PROCESS_GRACE_MS;
use qd_session::moment::Timestamp;
use serde_json::json;
use tokio::sync::mpsc::Sender;

use super::lively::Lively;
use super::registry::{self, Contents, Registered};
use super::{FileNotice, FileSignal, Heard, News};
use crate::Error;
use crate::files::lively::LOOK_AGAIN_FOR_MS;
use crate::places::{Place, PlaceKind};
use crate::tail::{Piece, Position, Progress, Seen, Tail, TailReader, open};
use crate::tail::{TRANSCRIPT_LINE_BYTES_MAX, WINDOW_BYTES};
use crate::watch::{Change, ChangeKind, Root, Tells, Watch};

/// Bytes of the first lines of such a file that are read as well: whose session it is, and its
/// first prompt.
const HEAD_BYTES: usize = 32 << 10;

/// Longest of these lines. Codex writes its whole instructions into the first one.
const HEAD_LINE_BYTES_MAX: u64 = 512 << 10;

/// Bytes of one file read before the others have their turn.
const FILE_TURN_BYTES: u64 = 1 << 20;

/// Half lines kept in memory, of all files together. Beyond it a half line is read again from
/// its beginning.
const HALF_LINES_BYTES_MAX: usize = 16 << 20;

/// Age after which a session file is history: not read at the start, only when it changes. What
/// ended within a day is on the board.
pub const HISTORY_AGE_MS: u64 = 24 * 60 * 60 * 1_000;

pub struct Reading {
    watch: Watch,
    places: Vec<Place>,
    positions: BTreeMap<PathBuf, Position>,
    tails: BTreeMap<Arc<Path>, TailReader>,
    /// Files of which only the end will be read; their beginning says what they are.
    headless: BTreeSet<Arc<Path>>,
    half_lines_bytes: usize,
    lively: Lively,
    registries: BTreeMap<Arc<Path>, Entry>,
    /// What was told of each background session.
    jobs: BTreeMap<Arc<Path>, Vec<u8>>,
    /// Files with something to read, each once, in turn.
    queue: VecDeque<Arc<Path>>,
    queued: BTreeSet<Arc<Path>>,
    window: Vec<u8>,
    outbox: Outbox,
    /// Places that somebody wants read as well.
    more: Arc<Mutex<Vec<Place>>>,
    now: fn() -> Timestamp,
}

/// A registry file that was read.
struct Entry {
    bytes: Vec<u8>,
    registered: Option<Registered>,
    /// When a process that cannot be found is believed to be gone.
    missing_at: Option<Timestamp>,
    illegible: bool,
}

/// What has been read and not been sent.
struct Outbox {
    batch: Vec<Heard>,
    bytes: usize,
    tell: Sender<Vec<Heard>>,
}

/// Nobody listens any more.
#[derive(Debug)]
struct Unheard;

/// A UUID, as Codex names its threads.
const THREAD_ID_LEN: usize = 36;

impl Reading {
    pub fn new(
        places: &[Place],
        positions: BTreeMap<PathBuf, Position>,
        more: Arc<Mutex<Vec<Place>>>,
        now: fn() -> Timestamp,
        tell: Sender<Vec<Heard>>,
    ) -> Self {
        let read = places.iter().filter(|place| place.channel().is_some());
        let places: Vec<Place> = read.cloned().collect();
        Self {
            watch: Watch::new(places.iter().map(root).collect()),
            places,
            positions,
            tails: BTreeMap::new(),
            headless: BTreeSet::new(),
            half_lines_bytes: 0,
            lively: Lively::new(),
            registries: BTreeMap::new(),
            jobs: BTreeMap::new(),
            queue: VecDeque::new(),
            queued: BTreeSet::new(),
            window: vec![0; WINDOW_BYTES],
            outbox: Outbox { batch: Vec::new(), bytes: 0, tell },
            more,
            now,
        }
    }

    /// Until nobody listens, or the watch fails for good.
    pub fn run(mut self, stop: &UnixStream) {
        if let Err(Failed::Watch(error)) = self.read_all(stop) {
            self.outbox.put(0, Heard::News(News::Stopped(error)));
            // Nobody may be left to hear it.
            let (Ok(()) | Err(Unheard)) = self.outbox.send();
        }
    }

    fn read_all(&mut self, stop: &UnixStream) -> Result<(), Failed> {
        self.begin()?;
        while !self.queue.is_empty() {
            self.turn()?;
        }
        self.outbox.put(0, Heard::News(News::CaughtUp));
        self.outbox.send()?;
        loop {
            let timeout = match self.queue.is_empty() {
                true => self.next_missing().into_iter().chain(self.lively.next_look()).min(),
                false => Some(Duration::ZERO),
            };
            self.watch.wait(Some(stop.as_fd()), timeout)?;
            let mut stop = stop;
            match stop.read(&mut [0; 64]) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Ok(0) | Err(_) => return Ok(()),
                Ok(_) => {}
            }
            self.take_changes();
            self.follow_more()?;
            self.believe_missing();
            self.look_again();
            self.turn()?;
            self.outbox.send()?;
        }
    }

    /// Takes up the places that somebody wants read as well, with what is there now.
    fn follow_more(&mut self) -> Result<(), Failed> {
        let more = std::mem::take(&mut *self.more.lock().unwrap_or_else(PoisonError::into_inner));
        let read: Vec<Place> = more.into_iter().filter(|place| place.channel().is_some()).collect();
        if read.is_empty() {
            return Ok(());
        }
        for place in read {
            self.watch.follow(root(&place));
            self.places.push(place);
        }
        self.begin()
    }

    /// What is there at the start: registries, then the newest session files first.
    fn begin(&mut self) -> Result<(), Failed> {
        let mut recent = Vec::new();
        self.take_notices();
        for Change { path, .. } in self.watch.take_changes() {
            match self.place(&path) {
                Some((_, PlaceKind::Registry)) => self.read_registry(&path),
                Some((_, PlaceKind::Jobs)) => self.read_job(&path),
                Some(_) if self.tails.contains_key(&path) => self.enqueue(path),
                Some(_) => {
                    let Ok(metadata) = fs::metadata(&path) else { continue };
                    let seen = Seen::of(&metadata);
                    let kept = self.positions.remove(&*path);
                    let tail = match kept {
                        Some(kept) => Tail::resume(kept),
                        None => self.last_of(&path, seen),
                    };
                    self.tails.insert(path.clone(), TailReader::new(path.clone(), tail));
                    if (self.now)().ms_since(modified(seen)) <= LOOK_AGAIN_FOR_MS {
                        self.lively.met(&path, modified(seen));
                    }
                    let news =
                        kept.is_some_and(|kept| kept.seen != seen || kept.offset < seen.size);
                    if news || (kept.is_none() && !self.is_history(seen)) {
                        recent.push((seen.modified_ns, path));
                    }
                }
                None => {}
            }
        }
        self.believe_missing();
        self.outbox.send()?;
        recent.sort_by(|one, other| other.cmp(one));
        for (_, path) in recent {
            self.enqueue(path);
        }
        Ok(())
    }

    fn take_changes(&mut self) {
        self.take_notices();
        for Change { path, kind } in self.watch.take_changes() {
            match (self.place(&path), kind) {
                (Some((_, PlaceKind::Jobs)), ChangeKind::Gone) => {
                    self.jobs.remove(&path);
                }
                (Some((_, PlaceKind::Jobs)), _) => self.read_job(&path),
                (Some((_, PlaceKind::Registry)), ChangeKind::Gone) => {
                    let entry = self.registries.remove(&path);
                    if let Some(registered) = entry.and_then(|entry| entry.registered) {
                        self.outbox.put(0, Heard::Unregistered(path, registered));
                    }
                }
                (Some((_, PlaceKind::Registry)), _) => self.read_registry(&path),
                (Some(_), ChangeKind::Gone) => {
                    self.headless.remove(&path);
                    self.lively.forget(&path);
                    if let Some(reader) = self.tails.remove(&path) {
                        self.half_lines_bytes -= reader.tail().partial_len();
                    }
                }
                (Some(_), _) if self.tails.contains_key(&path) => self.enqueue(path),
                (Some(_), _) => self.meet(path),
                (None, _) => {}
            }
        }
    }

    /// A session file that was not there before: all of it is news, unless it was brought here
    /// from somewhere else.
    fn meet(&mut self, path: Arc<Path>) {
        let seen = fs::metadata(&path).map(|metadata| Seen::of(&metadata));
        // Its folder may not have been there at the start.
        let kept = self.positions.remove(&*path);
        let (tail, reads) = match seen {
            Ok(_) if let Some(kept) = kept => (Tail::resume(kept), true),
            Ok(seen) if self.is_history(seen) => (self.last_of(&path, seen), false),
            Ok(_) | Err(_) => (Tail::from_start(), true),
        };
        self.tails.insert(path.clone(), TailReader::new(path.clone(), tail));
        if reads {
            self.enqueue(path);
        }
    }

    fn last_of(&mut self, path: &Arc<Path>, seen: Seen) -> Tail {
        if seen.size > WINDOW_BYTES as u64 {
            self.headless.insert(path.clone());
        }
        Tail::from_last(seen)
    }

    /// Reads what is new in lively files though nobody told of it, and the registries with them.
    fn look_again(&mut self) {
        let Some(lively) = self.lively.take_due((self.now)()) else { return };
        let is_behind = |path: &&Arc<Path>| {
            let seen = fs::metadata(path).map(|metadata| Seen::of(&metadata));
            let tail = self.tails.get(*path).map(TailReader::tail);
            tail.zip(seen.ok()).is_some_and(|(tail, seen)| tail.is_behind(seen))
        };
        let behind: Vec<Arc<Path>> = lively.filter(is_behind).cloned().collect();
        for path in behind {
            self.enqueue(path);
        }
        let lives = |entry: &Entry| {
            let process = entry.registered.as_ref().and_then(|registered| registered.process);
            process.is_some_and(|process| process.is_alive())
        };
        let registries = self.registries.iter().filter(|(_, entry)| lives(entry));
        let registries: Vec<Arc<Path>> = registries.map(|(path, _)| path.clone()).collect();
        for path in registries {
            self.read_registry(&path);
        }
    }

    fn take_notices(&mut self) {
        for notice in self.watch.take_notices() {
            self.outbox.put(0, Heard::News(News::Notice(FileNotice::Watch(notice))));
        }
    }

    fn enqueue(&mut self, path: Arc<Path>) {
        if self.queued.insert(path.clone()) {
            self.queue.push_back(path);
        }
    }

    /// Reads each file that waits now once, some of it: a big one does not hold up the others.
    fn turn(&mut self) -> Result<(), Unheard> {
        for _ in 0..self.queue.len() {
            let Some(path) = self.queue.pop_front() else { break };
            self.queued.remove(&path);
            if self.read_lines(&path) == Progress::More {
                self.enqueue(path);
            }
            if self.outbox.bytes >= WINDOW_BYTES {
                self.outbox.send()?;
            }
        }
        Ok(())
    }

    fn read_lines(&mut self, path: &Arc<Path>) -> Progress {
        let Some((harness, _)) = self.place(path) else { return Progress::Waiting };
        let channel = Channel::Transcript;
        if self.headless.remove(path) {
            self.read_head(harness, channel, path);
        }
        let Some(reader) = self.tails.get_mut(path) else { return Progress::Waiting };
        let at = (self.now)();
        let outbox = &mut self.outbox;
        let before = outbox.batch.len();
        let notice = |notice| Heard::News(News::Notice(notice));
        self.half_lines_bytes -= reader.tail().partial_len();
        let progress = reader.read_on(&mut self.window, FILE_TURN_BYTES, &mut |piece| {
            let path = path.clone();
            match piece {
                Piece::Line { bytes, .. } if bytes.trim_ascii().is_empty() => {}
                Piece::Line { bytes, position } => {
                    // A line without a time of its own is not younger than its file.
                    let at = at.min(modified(position.seen));
                    let (payload, position) = (bytes.to_vec(), Some(position));
                    let signal = FileSignal { harness, channel, at, path, payload, position };
                    outbox.put(bytes.len(), Heard::News(News::Signal(signal)));
                }
                Piece::TooLong { offset, bytes } => {
                    outbox.put(0, notice(FileNotice::LineTooLong { path, offset, bytes }));
                }
                Piece::Restarted(why) => {
                    outbox.put(0, notice(FileNotice::Restarted { path, why }));
                }
                Piece::Unreadable(kind) => {
                    outbox.put(0, notice(FileNotice::Unreadable { path, kind }));
                }
            }
        });
        if self.half_lines_bytes + reader.tail().partial_len() > HALF_LINES_BYTES_MAX {
            reader.let_go();
        }
        self.half_lines_bytes += reader.tail().partial_len();
        match self.outbox.batch.len() > before {
            true => self.lively.had_news(path, at),
            false => self.lively.met(path, at),
        }
        if self.outbox.batch.len() > before
            && progress != Progress::More
            && let Some(session) = self.unheld(path)
        {
            let payload = json!({ "sessionId": session, "missing": true }).to_string().into_bytes();
            let (channel, path) = (Channel::Process, path.clone());
            let signal = FileSignal { harness, channel, at, path, payload, position: None };
            self.outbox.put(signal.payload.len(), Heard::News(News::Signal(signal)));
        }
        progress
    }

    /// The session of this file, if nobody has it open: a client that says which session it holds
    /// would have said so of this one.
    fn unheld(&self, path: &Arc<Path>) -> Option<String> {
        let place = self.places.iter().find(|place| path.starts_with(&place.path))?;
        let beside = |name: &str| place.path.parent().map(|folder| folder.join(name));
        match place.harness {
            Harness::ClaudeCode => {
                let below = path.strip_prefix(&place.path).ok()?;
                let is_session = below.iter().count() == 2 && beside("sessions")?.is_dir();
                let session = path.file_stem()?.to_str().filter(|_| is_session)?;
                let registered = self.registries.values().filter_map(|it| it.registered.as_ref());
                let mut holders = registered.filter(|it| it.session == session && !it.is_gone());
                holders.next().is_none().then(|| session.to_owned())
            }
            Harness::Codex => {
                let name = path.file_stem()?.to_str()?;
                // `rollout-2026-11-15T10-00-00-<thread>`
                let thread = name.get(name.len().checked_sub(THREAD_ID_LEN)?..)?;
                let locks = beside("thread-writer-locks").filter(|locks| locks.is_dir())?;
                let lock = locks.join(thread).with_extension("lock");
                (!lock.exists()).then(|| thread.to_owned())
            }
            Harness::GeminiCli
            | Harness::KiloCode
            | Harness::Cline
            | Harness::Opencode
            | Harness::Acp
            | Harness::Native => None,
        }
    }

    /// The first lines of a file whose end is read: whose session it is, and what was asked first.
    fn read_head(&mut self, harness: Harness, channel: Channel, path: &Arc<Path>) {
        let Ok((file, seen)) = open(path) else { return };
        let at = (self.now)().min(modified(seen));
        let mut lines = BufReader::new(file.take(HEAD_LINE_BYTES_MAX));
        let (mut read, mut line) = (0, Vec::new());
        while read < HEAD_BYTES
            && lines.read_until(b'\n', &mut line).is_ok()
            && line.ends_with(b"\n")
        {
            read += line.len();
            let payload = line.trim_ascii_end().to_vec();
            line.clear();
            let path = path.clone();
            let signal = FileSignal { harness, channel, at, path, payload, position: None };
            self.outbox.put(signal.payload.len(), Heard::News(News::Signal(signal)));
        }
    }

    fn read_registry(&mut self, path: &Arc<Path>) {
        let Some((harness, _)) = self.place(path) else { return };
        let (at, channel) = ((self.now)(), Channel::Registry);
        let fresh =
            || Entry { bytes: Vec::new(), registered: None, missing_at: None, illegible: false };
        let notice = match registry::read(harness, path) {
            Ok(Contents::Whole { bytes, seen, registered }) => {
                let entry = self.registries.entry(path.clone()).or_insert_with(fresh);
                entry.illegible = false;
                let lost = registered.process.filter(|process| !process.is_alive());
                // A client that may live where we cannot look has a while to say so.
                entry.missing_at = match registered.is_gone() {
                    true => Some(at),
                    false => lost.map(|_| modified(seen).plus_ms(MISSING_PROCESS_GRACE_MS).max(at)),
                };
                if entry.bytes == bytes {
                    return;
                }
                let at = at.min(modified(seen));
                entry.bytes.clone_from(&bytes);
                entry.registered = Some(registered.clone());
                let (path, payload) = (path.clone(), bytes);
                let signal = FileSignal { harness, channel, at, path, payload, position: None };
                self.outbox.put(signal.payload.len(), Heard::Registered(signal, registered));
                return;
            }
            // Its end makes another change.
            Ok(Contents::Half) => return,
            Ok(Contents::Illegible) => FileNotice::Illegible { path: path.clone() },
            // Gone again; that is a change of its own.
            Err(error) if error.kind() == ErrorKind::NotFound => return,
            Err(error) => FileNotice::Unreadable { path: path.clone(), kind: error.kind() },
        };
        let entry = self.registries.entry(path.clone()).or_insert_with(fresh);
        if !std::mem::replace(&mut entry.illegible, true) {
            self.outbox.put(0, Heard::News(News::Notice(notice)));
        }
    }

    /// What cannot be read says nothing: its workers are observed anyway.
    fn read_job(&mut self, path: &Arc<Path>) {
        let Some((harness, _)) = self.place(path) else { return };
        let Ok(Some(payload)) = registry::read_job(path) else { return };
        if self.jobs.get(path) == Some(&payload) {
            return;
        }
        self.jobs.insert(path.clone(), payload.clone());
        let (at, channel, path) = ((self.now)(), Channel::Registry, path.clone());
        let signal = FileSignal { harness, channel, at, path, payload, position: None };
        self.outbox.put(signal.payload.len(), Heard::News(News::Signal(signal)));
    }

    fn next_missing(&self) -> Option<Duration> {
        let due = self.registries.values().filter_map(|entry| entry.missing_at).min()?;
        Some(Duration::from_millis(due.ms_since((self.now)()).max(1)))
    }

    /// A file was left behind by a process that was killed before we came.
    fn believe_missing(&mut self) {
        let now = (self.now)();
        for (path, entry) in &mut self.registries {
            if entry.missing_at.is_some_and(|due| due <= now) {
                entry.missing_at = None;
                if let Some(registered) = entry.registered.clone() {
                    self.outbox.put(0, Heard::Unregistered(path.clone(), registered));
                }
            }
        }
    }

    fn place(&self, path: &Path) -> Option<(Harness, PlaceKind)> {
        let place = self.places.iter().find(|place| path.starts_with(&place.path))?;
        Some((place.harness, place.kind))
    }

    fn is_history(&self, seen: Seen) -> bool {
        (self.now)().ms_since(modified(seen)) > HISTORY_AGE_MS
    }
}

fn root(place: &Place) -> Root {
    Root {
        path: place.path.clone(),
        enters: place.enters(),
        wants: place.wants(),
        tells: Tells::Changes,
    }
}

fn modified(seen: Seen) -> Timestamp {
    Timestamp(u64::try_from(seen.modified_ns / 1_000_000).unwrap_or(0))
}

impl Outbox {
    fn put(&mut self, bytes: usize, heard: Heard) {
        // A short line costs more than its bytes.
        self.bytes += bytes + size_of::<Heard>();
        self.batch.push(heard);
    }

    /// Waits until there is room.
    fn send(&mut self) -> Result<(), Unheard> {
        self.bytes = 0;
        if self.batch.is_empty() {
            return Ok(());
        }
        self.tell.blocking_send(std::mem::take(&mut self.batch)).map_err(|_| Unheard)
    }
}

/// Why the thread ends.
enum Failed {
    Unheard,
    Watch(Error),
}

impl From<Unheard> for Failed {
    fn from(_: Unheard) -> Self {
        Self::Unheard
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Watch(error)
    }
}

// A batch holds at most what one turn of a file reads and one line that was nearly whole before.
const _: () = assert!(FILE_TURN_BYTES as usize <= TRANSCRIPT_LINE_BYTES_MAX);
