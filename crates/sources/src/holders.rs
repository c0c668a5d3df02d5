//! Which process holds which session, where no registry file says so.
//!
//! Codex locks a file for each thread it has loaded, Gemini CLI leaves its chats in the folder of
//! a project it runs in, and hooks tell who ran them. A thread of its own ([`looking`]) looks when
//! something has changed; here the processes that were found are observed until they end.
//! Invariant: a session that a process was seen to hold is told as exited once for that process,
//! when it ends or lets go. What cannot be observed is not told.

mod looking;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use qd_harness::{Channel, Direction, Harness, Signal};
use qd_host::processes::{Process, Processes};
use qd_session::moment::Timestamp;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use self::looking::{Found, Looking, Orders};
use super::places::{Place, PlaceKind};
use super::watch;
use crate::Error;

/// Chat files that changed and wait to be looked at; one more is looked at with its next change.
pub const TOUCHED_CHATS_MAX: usize = 1_024;

/// Findings about holders made and not yet taken; then looking waits.
const FINDINGS_MAX: usize = 256;

/// Sessions held by observed processes. A daemon may hold hundreds.
const HELD_SESSIONS_MAX: usize = 8_192;

/// What is known of the holders of sessions.
#[derive(Debug)]
pub enum HolderNews {
    Signal(HolderSignal),
    /// Something for the log.
    Notice(HolderNotice),
    /// Looking has stopped for good, and why.
    Stopped(Error),
}

/// What a process watcher says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HolderSignal {
    pub harness: Harness,
    pub at: Timestamp,
    pub payload: Vec<u8>,
}

impl HolderSignal {
    /// As a handler takes it.
    pub fn signal(&self) -> Signal<'_> {
        Signal {
            at: self.at,
            seq: 0,
            channel: Channel::Process,
            direction: Direction::FromAgent,
            file: None,
            payload: &self.payload,
        }
    }
}

/// Something that the log should have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HolderNotice {
    Watch(watch::Notice),
    /// There are too many: the end of this one will not be seen.
    NotObserved {
        process: Process,
    },
}

/// The source. Dropping it ends its threads.
#[derive(Debug)]
pub struct Holders {
    found: mpsc::Receiver<Found>,
    ready: VecDeque<HolderNews>,
    processes: Processes,
    held: BTreeMap<Process, BTreeSet<Held>>,
    held_len: usize,
    orders: Arc<Mutex<Orders>>,
    /// A byte wakes the thread; closing it ends the thread.
    waker: UnixStream,
    now: fn() -> Timestamp,
}

type Held = (Harness, Arc<str>);

impl Holders {
    /// Looks at the lock files among `places` from now on. The clock stamps what is found.
    pub fn start(places: &[Place], now: fn() -> Timestamp) -> Result<Self, Error> {
        let failed = |source| Error::Holders { source };
        let (waker, woken) = UnixStream::pair().map_err(failed)?;
        waker.set_nonblocking(true).map_err(failed)?;
        woken.set_nonblocking(true).map_err(failed)?;
        let orders = Arc::<Mutex<Orders>>::default();
        let (tell, found) = mpsc::channel(FINDINGS_MAX);
        let looking = Looking::new(places, orders.clone(), now, tell);
        thread::Builder::new()
            .name("qd-holders".to_owned())
            .spawn(move || looking.run(&woken))
            .map_err(failed)?;
        Ok(Self {
            found,
            ready: VecDeque::new(),
            processes: Processes::new()?,
            held: BTreeMap::new(),
            held_len: 0,
            orders,
            waker,
            now,
        })
    }

    /// The next thing; none after [`HolderNews::Stopped`]. May be dropped and asked again.
    pub async fn next(&mut self) -> Option<HolderNews> {
        loop {
            if let Some(news) = self.ready.pop_front() {
                return Some(news);
            }
            if self.processes.is_empty() {
                let found = self.found.recv().await?;
                self.take(found);
                continue;
            }
            tokio::select! {
                found = self.found.recv() => self.take(found?),
                ended = self.processes.next_end() => {
                    ended.into_iter().for_each(|process| self.ended(process));
                }
            }
        }
    }

    /// A hook was run by this process for this session. Nothing is said of a process that is not
    /// found: it may live where we cannot look.
    pub fn held(&mut self, harness: Harness, session: &str, process: Process) {
        if process.is_alive() {
            self.hold(harness, session.into(), process);
        }
    }

    /// This process held the session when somebody last looked: it is observed again, or has ended
    /// meanwhile.
    pub fn held_before(&mut self, harness: Harness, session: &str, process: Process) {
        match process.is_alive() {
            true => self.hold(harness, session.into(), process),
            false => self.tell(harness, exited(session, process)),
        }
    }

    /// A chat file of Gemini CLI has changed. Its holder is looked for, if it is not known.
    pub fn touched(&mut self, path: &Path) {
        self.order(|orders| {
            if orders.touched.len() < TOUCHED_CHATS_MAX {
                orders.touched.insert(path.into());
            }
        });
    }

    /// Looks at the lock files among these places, too.
    pub fn follow(&mut self, places: &[Place]) {
        let locks = places.iter().filter(|place| place.kind == PlaceKind::Locks).cloned();
        let locks: Vec<Place> = locks.collect();
        if !locks.is_empty() {
            self.order(|orders| orders.places.extend(locks));
        }
    }

    fn take(&mut self, found: Found) {
        match found {
            Found::Held(harness, session, process) => self.hold(harness, session, process),
            Found::Left(harness, session, process) => self.let_go((harness, session), process),
            Found::Free(harness, session) => {
                self.tell(harness, json!({ "sessionId": session, "exited": true }));
            }
            Found::Missing(harness, session) => {
                self.tell(harness, json!({ "sessionId": session, "missing": true }));
            }
            Found::Notice(notice) => {
                self.ready.push_back(HolderNews::Notice(HolderNotice::Watch(notice)));
            }
            Found::Stopped(error) => self.ready.push_back(HolderNews::Stopped(error)),
        }
    }

    fn hold(&mut self, harness: Harness, session: Arc<str>, process: Process) {
        let held = (harness, session.clone());
        if self.held.get(&process).is_some_and(|known| known.contains(&held)) {
            return;
        }
        if self.held_len >= HELD_SESSIONS_MAX || self.processes.observe(process).is_err() {
            let notice = HolderNotice::NotObserved { process };
            self.ready.push_back(HolderNews::Notice(notice));
            return;
        }
        self.held.entry(process).or_default().insert(held);
        self.held_len += 1;
        self.tell(harness, seen(&session, process));
    }

    fn let_go(&mut self, held: Held, process: Process) {
        // Else its end has been told already.
        let Some(known) = self.held.get_mut(&process) else { return };
        if !known.remove(&held) {
            return;
        }
        self.held_len -= 1;
        if known.is_empty() {
            self.held.remove(&process);
            self.processes.forget(process);
        }
        self.tell(held.0, exited(&held.1, process));
    }

    fn ended(&mut self, process: Process) {
        let held = self.held.remove(&process).unwrap_or_default();
        self.held_len -= held.len();
        if held.iter().any(|(harness, _)| *harness == Harness::GeminiCli) {
            self.order(|orders| orders.client_ended = true);
        }
        for (harness, session) in held {
            self.tell(harness, exited(&session, process));
        }
    }

    fn tell(&mut self, harness: Harness, payload: Value) {
        let payload = payload.to_string().into_bytes();
        let signal = HolderSignal { harness, at: (self.now)(), payload };
        self.ready.push_back(HolderNews::Signal(signal));
    }

    fn order(&mut self, change: impl FnOnce(&mut Orders)) {
        // Orders are changed in steps that cannot fail half way.
        change(&mut self.orders.lock().unwrap_or_else(PoisonError::into_inner));
        match self.waker.write(&[0]) {
            // Full of bytes that have not woken it yet: it will wake.
            Ok(_) | Err(_) => {}
        }
    }
}

fn seen(session: &str, process: Process) -> Value {
    json!({ "sessionId": session, "pid": process.pid, "procStart": process.start })
}

fn exited(session: &str, process: Process) -> Value {
    let Process { pid, start } = process;
    json!({ "sessionId": session, "pid": pid, "procStart": start, "exited": true })
}
