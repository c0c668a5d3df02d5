//! The thread that looks: who has the lock files, and who writes the chats.
//!
//! It sleeps until a file was touched. The kernel tells that a lock file was opened and not that
//! it was locked, so one is looked at a few more times, a little later.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use qd_harness::Harness;
use qd_host::processes::Process;
use qd_session::moment::Timestamp;
use tokio::sync::mpsc::Sender;

use crate::Error;
use crate::codex_locks::{Holding, KernelLocks, thread};
use crate::gemini_chats::{Chats, Finding};
use crate::holders::TOUCHED_CHATS_MAX;
use crate::places::{Place, PlaceKind};
use crate::watch::{Change, ChangeKind, Notice, Root, Tells, Watch};

/// When a lock file that was opened is looked at again. Whoever opens one locks it within a
/// millisecond, and the kernel tells of the opening only; the later looks are for a machine that
/// is short of everything.
const LOCK_LOOKS: [Duration; 4] = [
    Duration::from_millis(10),
    Duration::from_millis(100),
    Duration::from_secs(1),
    Duration::from_secs(5),
];

/// Lock files followed at once. A client that loads a thousand threads needs a lot of memory first.
const LOCKS_MAX: usize = 4_096;

/// Between two looks through all processes: each takes half a millisecond for a hundred of them,
/// and chats change many times a second.
const CHAT_LOOK_EVERY: Duration = Duration::from_secs(1);

/// What was found out.
#[derive(Debug)]
pub enum Found {
    Held(Harness, Arc<str>, Process),
    /// The process holds the session no more, alive or not.
    Left(Harness, Arc<str>, Process),
    /// Nobody holds the session, and nobody was known to.
    Free(Harness, Arc<str>),
    /// Nobody was found to hold the session.
    Missing(Harness, Arc<str>),
    Notice(Notice),
    /// Looking has ended.
    Stopped(Error),
}

/// What is to be looked at. Bounded by who gives them.
#[derive(Debug, Default)]
pub struct Orders {
    pub touched: BTreeSet<Arc<Path>>,
    /// A client of Gemini CLI ended: whose the others' chats are may be clearer now.
    pub client_ended: bool,
    /// Places whose lock files are to be looked at as well.
    pub places: Vec<Place>,
}

pub struct Looking {
    watch: Watch,
    locks: BTreeMap<Arc<Path>, Lock>,
    chats: Chats,
    /// Chats to be looked at when it is time.
    changed: BTreeSet<Arc<Path>>,
    chats_looked_at: Option<Instant>,
    orders: Arc<Mutex<Orders>>,
    tell: Sender<Found>,
    now: fn() -> Timestamp,
}

/// A lock file.
#[derive(Debug)]
struct Lock {
    harness: Harness,
    session: Arc<str>,
    holder: Option<Process>,
    free_told: bool,
    /// How many of [`LOCK_LOOKS`] are spent.
    looks: usize,
    look_at: Option<Instant>,
}

/// Why the thread ends.
enum Failed {
    /// Nobody listens any more.
    Unheard,
    Watch(Error),
}

fn root(place: &Place) -> Root {
    Root {
        path: place.path.clone(),
        enters: place.enters(),
        wants: place.wants(),
        tells: Tells::Uses,
    }
}

impl Looking {
    pub fn new(
        places: &[Place],
        orders: Arc<Mutex<Orders>>,
        now: fn() -> Timestamp,
        tell: Sender<Found>,
    ) -> Self {
        let folders = places.iter().filter(|place| place.kind == PlaceKind::Locks);
        Self {
            watch: Watch::new(folders.map(root).collect()),
            locks: BTreeMap::new(),
            chats: Chats::default(),
            changed: BTreeSet::new(),
            chats_looked_at: None,
            orders,
            tell,
            now,
        }
    }

    /// Until nobody listens, or the watch fails for good.
    pub fn run(mut self, woken: &UnixStream) {
        if let Err(Failed::Watch(error)) = self.look_on(woken) {
            // Nobody may be left to hear it.
            let (Ok(()) | Err(_)) = self.tell(Found::Stopped(error));
        }
    }

    fn look_on(&mut self, mut woken: &UnixStream) -> Result<(), Failed> {
        // What is free at the start was left behind.
        self.take_changes(LOCK_LOOKS.len())?;
        loop {
            self.look_at_locks()?;
            self.look_at_chats()?;
            let due = self.next_look().map(|at| at.saturating_duration_since(Instant::now()));
            self.watch.wait(Some(woken.as_fd()), due).map_err(Failed::Watch)?;
            match woken.read(&mut [0; 64]) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return Ok(()),
            }
            self.take_changes(0)?;
            self.take_orders();
        }
    }

    /// Those that changed are looked at now, and again until so many looks are spent.
    fn take_changes(&mut self, looks: usize) -> Result<(), Failed> {
        for notice in self.watch.take_notices() {
            self.tell(Found::Notice(notice))?;
        }
        for Change { path, kind } in self.watch.take_changes() {
            if kind == ChangeKind::Gone {
                if let Some(lock) = self.locks.remove(&path) {
                    lock.released().map_or(Ok(()), |found| self.tell(found))?;
                }
                continue;
            }
            let room = self.locks.len() < LOCKS_MAX || self.locks.contains_key(&path);
            let Some(session) = thread(&path).filter(|_| room) else { continue };
            let session = session.into();
            let lock = self.locks.entry(path).or_insert_with(|| Lock::new(session));
            (lock.looks, lock.look_at) = (looks, Some(Instant::now()));
        }
        Ok(())
    }

    fn look_at_locks(&mut self) -> Result<(), Failed> {
        let now = Instant::now();
        let is_due = |lock: &Lock| lock.look_at.is_some_and(|at| at <= now);
        if !self.locks.values().any(is_due) {
            return Ok(());
        }
        let kernel = KernelLocks::read();
        let mut found = Vec::new();
        for (path, lock) in self.locks.iter_mut().filter(|(_, lock)| is_due(lock)) {
            match kernel.as_ref().ok().map(|kernel| kernel.holding(path)) {
                Some(Ok(holding)) => lock.take(now, holding, &mut found),
                // It is gone, which is a change of its own.
                Some(Err(_)) => lock.look_at = None,
                None => _ = lock.look_later(now),
            }
        }
        found.into_iter().try_for_each(|found| self.tell(found))
    }

    fn take_orders(&mut self) {
        let mut orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        let Orders { touched, client_ended, places } = std::mem::take(&mut *orders);
        drop(orders);
        places.iter().for_each(|place| self.watch.follow(root(place)));
        let touched = touched.into_iter().filter(|path| self.chats.is_open(path));
        let unsettled = if client_ended { self.chats.unsettled() } else { Vec::new() };
        let room = TOUCHED_CHATS_MAX.saturating_sub(self.changed.len());
        self.changed.extend(touched.chain(unsettled).take(room));
    }

    fn look_at_chats(&mut self) -> Result<(), Failed> {
        if self.chats_due().is_none_or(|at| at > Instant::now()) {
            return Ok(());
        }
        let changed: Vec<Arc<Path>> = std::mem::take(&mut self.changed).into_iter().collect();
        let findings = self.chats.look((self.now)(), &changed);
        self.chats_looked_at = Some(Instant::now());
        let gemini = Harness::GeminiCli;
        findings.into_iter().try_for_each(|finding| {
            self.tell(match finding {
                Finding::Held(session, process) => Found::Held(gemini, session, process),
                Finding::Left(session, process) => Found::Left(gemini, session, process),
                Finding::Missing(session) => Found::Missing(gemini, session),
            })
        })
    }

    fn chats_due(&self) -> Option<Instant> {
        let rested = self.chats_looked_at.map_or_else(Instant::now, |at| at + CHAT_LOOK_EVERY);
        (!self.changed.is_empty()).then_some(rested)
    }

    fn next_look(&self) -> Option<Instant> {
        let locks = self.locks.values().filter_map(|lock| lock.look_at);
        locks.chain(self.chats_due()).min()
    }

    /// Waits until there is room.
    fn tell(&self, found: Found) -> Result<(), Failed> {
        self.tell.blocking_send(found).map_err(|_| Failed::Unheard)
    }
}

impl Lock {
    fn new(session: Arc<str>) -> Self {
        // Nobody else has locks.
        let harness = Harness::Codex;
        Self { harness, session, holder: None, free_told: false, looks: 0, look_at: None }
    }

    fn take(&mut self, now: Instant, holding: Holding, found: &mut Vec<Found>) {
        match holding {
            Holding::By(process) => {
                // The kernel tells of a closing before the lock is gone.
                self.look_later(now);
                if self.holder != Some(process) {
                    found.extend(self.left());
                    self.holder = Some(process);
                    self.free_told = false;
                    found.push(Found::Held(self.harness, self.session.clone(), process));
                }
            }
            Holding::Nobody => {
                found.extend(self.left());
                if !self.look_later(now) && !self.free_told {
                    self.free_told = true;
                    found.push(Found::Free(self.harness, self.session.clone()));
                }
            }
            // The one we knew would be seen.
            Holding::Hidden => {
                found.extend(self.left());
                self.look_later(now);
            }
        }
    }

    /// Its holder has let go.
    fn left(&mut self) -> Option<Found> {
        let process = self.holder.take()?;
        self.free_told = true;
        Some(Found::Left(self.harness, self.session.clone(), process))
    }

    /// The file was removed, which only happens when nobody holds it.
    fn released(mut self) -> Option<Found> {
        let free = (!self.free_told).then(|| Found::Free(self.harness, self.session.clone()));
        self.left().or(free)
    }

    /// True if there is another look to come.
    fn look_later(&mut self, now: Instant) -> bool {
        let wait: Option<&Duration> = LOCK_LOOKS.get(self.looks);
        self.looks += 1;
        self.look_at = wait.map(|wait| now + *wait);
        self.look_at.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Process = Process { pid: 7, start: 42 };
    const OTHER: Process = Process { pid: 8, start: 42 };

    /// What each look found, and how many are to come.
    #[track_caller]
    fn check(looks: &[(Holding, &str)]) {
        let mut lock = Lock::new("t".into());
        for (holding, expected) in looks {
            let mut found = Vec::new();
            lock.take(Instant::now(), *holding, &mut found);
            let words: Vec<String> = found
                .iter()
                .map(|found| match found {
                    Found::Held(_, _, process) => format!("held {}", process.pid),
                    Found::Left(_, _, process) => format!("left {}", process.pid),
                    Found::Free(_, _) => "free".to_owned(),
                    Found::Missing(_, _) | Found::Notice(_) | Found::Stopped(_) => {
                        panic!("{found:?}")
                    }
                })
                .collect();
            assert_eq!(words.join(", "), *expected, "{holding:?}");
        }
    }

    #[test]
    fn a_lock_is_told_when_it_changes_hands() {
        use Holding::{By, Hidden, Nobody};
        check(&[(By(ONE), "held 7"), (By(ONE), ""), (By(OTHER), "left 7, held 8")]);
        check(&[(By(ONE), "held 7"), (Nobody, "left 7"), (Nobody, ""), (By(ONE), "held 7")]);
        check(&[(Hidden, ""), (By(ONE), "held 7"), (Hidden, "left 7"), (Hidden, "")]);
    }

    #[test]
    fn a_lock_that_is_being_let_go_is_looked_at_again() {
        let mut lock = Lock::new("t".into());
        for _ in LOCK_LOOKS {
            lock.take(Instant::now(), Holding::By(ONE), &mut Vec::new());
            assert!(lock.look_at.is_some());
        }
        lock.take(Instant::now(), Holding::By(ONE), &mut Vec::new());
        assert!(lock.look_at.is_none());
    }

    #[test]
    fn a_lock_that_nobody_takes_is_free_after_the_last_look() {
        let mut looks = vec![(Holding::Nobody, ""); LOCK_LOOKS.len()];
        looks.extend([(Holding::Nobody, "free"), (Holding::Nobody, "")]);
        check(&looks);
    }

    #[test]
    fn a_removed_file_is_an_end_told_once() {
        let lock = || Lock::new("t".into());
        assert!(matches!(lock().released(), Some(Found::Free(..))));
        let held = Lock { holder: Some(ONE), ..lock() };
        assert!(matches!(held.released(), Some(Found::Left(_, _, ONE))));
        assert!(Lock { free_told: true, ..lock() }.released().is_none());
    }
}
