//! Session files and registries of all clients, as one stream of what is new in them.
//!
//! A thread of its own ([`reading`]) waits for the disk, so that a slow one holds up nobody else;
//! when nobody takes what it reads, it stops reading, and nothing is lost. Registered processes
//! are observed here, because a registry file says nothing when its process is killed.
//! Invariant: lines of one file come in order; a position kept with each line makes it come once.

mod lively;
pub(crate) mod reading;
pub(crate) mod registry;

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::io::{ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use qd_harness::{Channel, Direction, Harness, Signal};
use qd_host::processes::{Process, Processes};
use qd_session::moment::Timestamp;
use tokio::sync::mpsc;

use self::reading::Reading;
use self::registry::{Departure, Registered};
use super::places::Place;
use super::tail::{Position, Restart};
use super::watch;
use crate::Error;

/// Batches of lines read and not yet taken. One has about a window of bytes, at worst a turn and
/// a line, so that all of them have 20 MiB at worst.
const FILE_BATCHES_MAX: usize = 4;

/// Ended processes remembered until the registry files they left are removed: the end of each is
/// told once.
const ENDED_PROCESSES_MAX: usize = 512;

/// What the files of this machine's agents tell.
#[derive(Debug)]
pub enum News {
    Signal(FileSignal),
    /// All that was there at the start has been told.
    CaughtUp,
    /// Something for the log.
    Notice(FileNotice),
    /// Reading has stopped for good, and why.
    Stopped(Error),
}

/// A signal found on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSignal {
    pub harness: Harness,
    pub channel: Channel,
    /// When it was read.
    pub at: Timestamp,
    pub path: Arc<Path>,
    pub payload: Vec<u8>,
    /// Where to go on after it, to be kept with what was made of it. Lines of session files have
    /// one.
    pub position: Option<Position>,
}

impl FileSignal {
    /// The file's name, as text for [`Self::signal`]: where it says what the signal is.
    pub fn file(&self) -> Option<Cow<'_, str>> {
        let is_job = self.channel == Channel::Registry && self.path.ends_with("state.json");
        (self.channel == Channel::Transcript || is_job).then(|| self.path.to_string_lossy())
    }

    /// As a handler takes it.
    pub fn signal<'a>(&'a self, file: Option<&'a str>) -> Signal<'a> {
        Signal {
            at: self.at,
            seq: 0,
            channel: self.channel,
            direction: Direction::FromAgent,
            file,
            payload: &self.payload,
        }
    }
}

/// Something that the log should have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileNotice {
    Watch(watch::Notice),
    LineTooLong {
        path: Arc<Path>,
        offset: u64,
        bytes: u64,
    },
    Restarted {
        path: Arc<Path>,
        why: Restart,
    },
    Unreadable {
        path: Arc<Path>,
        kind: ErrorKind,
    },
    /// A registry file that is none. Said once for each.
    Illegible {
        path: Arc<Path>,
    },
    /// The end of a registered process will not be seen.
    NotObserved {
        process: Process,
    },
}

/// What the thread says.
#[derive(Debug)]
pub(crate) enum Heard {
    News(News),
    /// A registry file has other contents.
    Registered(FileSignal, Registered),
    /// A registry file is gone, or its process is: the session has ended if that is so.
    Unregistered(Arc<Path>, Registered),
}

/// The source. Dropping it ends its threads.
#[derive(Debug)]
pub struct Files {
    heard: mpsc::Receiver<Vec<Heard>>,
    ready: VecDeque<Heard>,
    processes: Processes,
    registered: BTreeMap<Process, Holder>,
    /// Processes whose end was told, newest last: the file of one that was killed is removed later.
    ended: VecDeque<Process>,
    now: fn() -> Timestamp,
    /// Places that are to be read as well. Bounded by who gives them.
    more: Arc<Mutex<Vec<Place>>>,
    /// A byte wakes the thread; closing it ends the thread.
    waker: UnixStream,
}

/// The session that a process holds.
#[derive(Debug)]
struct Holder {
    path: Arc<Path>,
    registered: Registered,
    departure: Departure,
}

impl Files {
    /// Reads on at `positions`, and elsewhere the end of what changed within the last day. The
    /// clock stamps what is read.
    pub fn start(
        places: &[Place],
        positions: BTreeMap<PathBuf, Position>,
        now: fn() -> Timestamp,
    ) -> Result<Self, Error> {
        let failed = |source| Error::Watch { doing: "start", source };
        let (waker, woken) = UnixStream::pair().map_err(failed)?;
        waker.set_nonblocking(true).map_err(failed)?;
        woken.set_nonblocking(true).map_err(failed)?;
        let (tell, heard) = mpsc::channel(FILE_BATCHES_MAX);
        let more = Arc::<Mutex<Vec<Place>>>::default();
        let reading = Reading::new(places, positions, more.clone(), now, tell);
        thread::Builder::new()
            .name("qd-files".to_owned())
            .spawn(move || reading.run(&woken))
            .map_err(failed)?;
        Ok(Self {
            heard,
            ready: VecDeque::new(),
            processes: Processes::new()?,
            registered: BTreeMap::new(),
            ended: VecDeque::new(),
            now,
            more,
            waker,
        })
    }

    /// Reads in these places, too: the end of what changed there within the last day, and all that
    /// follows.
    pub fn follow(&self, places: &[Place]) {
        let mut more = self.more.lock().unwrap_or_else(PoisonError::into_inner);
        more.extend(places.iter().cloned());
        drop(more);
        match (&self.waker).write(&[0]) {
            // Full of bytes that have not woken it yet: it will wake.
            Ok(_) | Err(_) => {}
        }
    }

    /// The next thing; none after [`News::Stopped`]. May be dropped and asked again.
    pub async fn next(&mut self) -> Option<News> {
        loop {
            while let Some(heard) = self.ready.pop_front() {
                if let Some(news) = self.take(heard) {
                    return Some(news);
                }
            }
            if self.processes.is_empty() {
                self.ready.extend(self.heard.recv().await?);
                continue;
            }
            tokio::select! {
                heard = self.heard.recv() => self.ready.extend(heard?),
                ended = self.processes.next_end() => {
                    let holder = ended.and_then(|process| self.registered.remove(&process));
                    if let Some(Holder { path, registered, departure }) = holder {
                        return Some(self.exited(path, &registered, departure));
                    }
                }
            }
        }
    }

    /// The next thing if it is there already.
    pub fn next_ready(&mut self) -> Option<News> {
        loop {
            match self.ready.pop_front() {
                Some(heard) => match self.take(heard) {
                    Some(news) => return Some(news),
                    None => continue,
                },
                None => self.ready.extend(self.heard.try_recv().ok()?),
            }
        }
    }

    fn take(&mut self, heard: Heard) -> Option<News> {
        match heard {
            Heard::News(news) => Some(news),
            Heard::Registered(signal, registered) => {
                // One that is not found here may live where we cannot look.
                if let Some(process) = registered.process.filter(|process| process.is_alive()) {
                    if self.processes.observe(process).is_err() {
                        let notice = FileNotice::NotObserved { process };
                        self.ready.push_front(Heard::News(News::Notice(notice)));
                    }
                    let (path, departure) = (signal.path.clone(), Departure::Sudden);
                    let holder = Holder { path, registered, departure };
                    self.registered.insert(process, holder);
                }
                Some(News::Signal(signal))
            }
            Heard::Unregistered(path, registered) => {
                if registered.is_foreign() {
                    return Some(self.exited(path, &registered, Departure::Tidy));
                }
                let process = registered.process?;
                if process.is_alive() {
                    // The client tidies up before it leaves.
                    let observed = self.processes.observe(process).is_ok();
                    let departure = Departure::Tidy;
                    self.registered.insert(process, Holder { path, registered, departure });
                    return (!observed)
                        .then_some(News::Notice(FileNotice::NotObserved { process }));
                }
                self.processes.forget(process);
                self.registered.remove(&process);
                let departure = match path.exists() {
                    true => Departure::Sudden,
                    false => Departure::Tidy,
                };
                (!self.ended.contains(&process)).then(|| self.exited(path, &registered, departure))
            }
        }
    }

    fn exited(&mut self, path: Arc<Path>, registered: &Registered, departure: Departure) -> News {
        if self.ended.len() >= ENDED_PROCESSES_MAX {
            self.ended.pop_front();
        }
        self.ended.extend(registered.process);
        News::Signal(FileSignal {
            harness: registered.harness,
            channel: Channel::Process,
            at: (self.now)(),
            path,
            payload: registered.exited(departure),
            position: None,
        })
    }
}
