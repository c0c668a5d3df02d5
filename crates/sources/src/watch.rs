//! A set of directory trees, and which of their files may have changed.
//!
//! Roots need not exist yet, and may go and come back. A directory is watched before it is listed,
//! so that what was written right after `mkdir -p` is found by one or the other. What cannot be
//! watched (too many, or no such thing here) is listed every [`RESCAN_EVERY`] instead.
//! Invariant: a file that changed is told of at least once after its change, queue overflow or not.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::{self, ErrorKind};
use std::ops::Bound;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::inotify::{Inotify, Interest, Kind, Noticed};
use super::tail::Seen;
use crate::Error;

/// Directories watched. Half of what older kernels grant one user for all programs together; the
/// rest is listed now and then.
pub const WATCHES_MAX: usize = 4_096;

/// Directories known in all trees together, watched or not. Ten years of daily use make a few
/// thousand.
const WATCHED_DIRS_MAX: usize = 32_768;

/// Files known in all trees together, about 200 bytes each. Ten sessions a day for ten years are
/// 36,500.
const WATCHED_FILES_MAX: usize = 131_072;

/// Unreadable directories remembered, so that each is spoken of once.
const TROUBLED_PATHS_MAX: usize = 256;

/// Between two listings of directories that cannot be watched: an operator waits that long
/// without wondering, and listing a thousand directories takes a few milliseconds.
const RESCAN_EVERY: Duration = Duration::from_secs(2);

/// A directory tree, and what of it is wanted. The paths asked about are relative to it.
#[derive(Debug, Clone)]
pub struct Root {
    pub path: PathBuf,
    /// Whether to look into a directory.
    pub enters: fn(&Path) -> bool,
    /// Whether a file is of interest.
    pub wants: fn(&Path) -> bool,
    /// What is told of a file.
    pub tells: Tells,
}

impl Root {
    /// A file of settings that `wants` knows: its folder is watched, which need not be there.
    pub fn of_settings(path: &Path, wants: fn(&Path) -> bool) -> Self {
        let path = path.parent().unwrap_or(Path::new("/")).to_owned();
        Self { path, enters: |_| false, wants, tells: Tells::Changes }
    }
}

/// What counts as a change of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tells {
    /// Other bytes or rights.
    Changes,
    /// Opening and closing it as well, where it can be watched.
    Uses,
    /// That it came, went or was replaced, where it can be watched: not what is written to it.
    Presence,
}

/// What may have happened to a file. Several things at once are told as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub path: Arc<Path>,
    pub kind: ChangeKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    New,
    Changed,
    Gone,
}

/// Something the operator may want to know of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// Some directories cannot be watched and are listed now and then. Said once.
    WatchesExhausted,
    /// They can be watched again. Said once after each time that they could not.
    WatchesSuffice,
    /// There are more directories or files than we follow. Said once.
    TooMany,
    /// Events were lost, and everything was looked through instead.
    Overflowed,
    /// A directory cannot be read. Said once for each.
    Unreadable { path: PathBuf, kind: ErrorKind },
}

#[derive(Debug)]
pub struct Watch {
    inotify: Inotify,
    roots: Vec<Root>,
    watches_max: usize,
    rescan_every: Duration,
    dirs: BTreeMap<PathBuf, Dir>,
    /// Directories by what they are: a second way to one, or a loop, is not entered.
    identities: HashMap<Identity, PathBuf>,
    /// Nearly always one path each; two when a link leads to an ancestor of a root.
    paths: HashMap<i32, Vec<PathBuf>>,
    files: BTreeMap<Arc<Path>, Seen>,
    listed_at: Instant,
    told: Told,
}

#[derive(Debug, Clone, Copy)]
struct Dir {
    root: usize,
    identity: Identity,
    /// None for one that is listed now and then.
    watch: Option<i32>,
}

type Identity = (u64, u64);

/// What waits to be taken.
#[derive(Debug, Default)]
struct Told {
    changes: BTreeMap<Arc<Path>, ChangeKind>,
    notices: Vec<Notice>,
    exhausted: bool,
    too_many: bool,
    troubled: BTreeSet<PathBuf>,
}

impl Watch {
    /// Watches from now on; the files found are the first changes to take.
    pub fn new(roots: Vec<Root>) -> Self {
        Self::bounded(Inotify::new(), roots, WATCHES_MAX, RESCAN_EVERY)
    }

    fn bounded(
        inotify: Inotify,
        roots: Vec<Root>,
        watches_max: usize,
        rescan_every: Duration,
    ) -> Self {
        let mut watch = Self {
            inotify,
            roots,
            watches_max,
            rescan_every,
            dirs: BTreeMap::new(),
            identities: HashMap::new(),
            paths: HashMap::new(),
            files: BTreeMap::new(),
            listed_at: Instant::now(),
            told: Told::default(),
        };
        watch.resolve_all();
        watch
    }

    /// Watches one more tree from now on; the files found in it are changes to take.
    pub fn follow(&mut self, root: Root) {
        self.roots.push(root);
        self.resolve(self.roots.len() - 1);
    }

    /// Waits until something may have happened, `waker` is readable, or the time is over.
    pub fn wait(
        &mut self,
        waker: Option<BorrowedFd<'_>>,
        timeout: Option<Duration>,
    ) -> Result<(), Error> {
        let due = self.relist_in();
        let timeout = match (timeout, due) {
            (Some(timeout), Some(due)) => Some(timeout.min(due)),
            (timeout, due) => timeout.or(due),
        };
        if self.told.changes.is_empty() && self.told.notices.is_empty() {
            let mut fds: Vec<PollFd<'_>> = [self.inotify.waits_on(), waker]
                .into_iter()
                .flatten()
                .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
                .collect();
            let timeout = timeout.map(|timeout| {
                Timespec::try_from(timeout).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 })
            });
            match poll(&mut fds, timeout.as_ref()) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => {
                    return Err(Error::Watch { doing: "wait for", source: error.into() });
                }
            }
        }
        self.look()
    }

    /// Takes in what has happened, without waiting.
    pub fn look(&mut self) -> Result<(), Error> {
        let failed = |source| Error::Watch { doing: "read", source };
        for noticed in self.inotify.read().map_err(failed)? {
            self.handle(noticed);
        }
        if self.relist_in().is_some_and(|due| due.is_zero()) {
            self.listed_at = Instant::now();
            self.watch_again();
            let listed = self.dirs.iter().filter(|(_, dir)| dir.watch.is_none());
            let listed: Vec<PathBuf> = listed.map(|(path, _)| path.clone()).collect();
            self.list_all(&listed);
        }
        Ok(())
    }

    /// Tries to watch what could not be watched; where there are watches again, says so.
    fn watch_again(&mut self) {
        let was_exhausted = std::mem::take(&mut self.told.exhausted);
        let told = self.told.notices.len();
        self.resolve_all();
        let unwatched = self.dirs.iter().filter(|(_, dir)| dir.watch.is_none());
        let unwatched: Vec<(PathBuf, usize)> =
            unwatched.map(|(path, dir)| (path.clone(), dir.root)).collect();
        for (path, root) in unwatched {
            let watch = self.watch_dir(&path, self.roots[root].tells.interest());
            if watch.is_none() {
                self.exhausted();
            }
            if let Some(dir) = self.dirs.get_mut(&path) {
                dir.watch = watch;
            }
        }
        match (was_exhausted, self.told.exhausted) {
            (true, true) => self.told.unsay_exhausted(told),
            (true, false) => self.told.notices.push(Notice::WatchesSuffice),
            (false, _) => {}
        }
    }

    /// What may have changed since this was last asked, each file once.
    pub fn take_changes(&mut self) -> Vec<Change> {
        let changes = std::mem::take(&mut self.told.changes);
        changes.into_iter().map(|(path, kind)| Change { path, kind }).collect()
    }

    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.told.notices)
    }

    /// When directories without a watch are listed again.
    fn relist_in(&self) -> Option<Duration> {
        let wanted = self.told.exhausted || self.inotify.waits_on().is_none();
        wanted.then(|| self.rescan_every.saturating_sub(self.listed_at.elapsed()))
    }

    fn handle(&mut self, noticed: Noticed) {
        if noticed.kind == Kind::Overflowed {
            return self.rescan();
        }
        let paths = match noticed.kind == Kind::Ended {
            true => self.paths.remove(&noticed.watch),
            false => self.paths.get(&noticed.watch).cloned(),
        };
        for dir in paths.unwrap_or_default() {
            match (&noticed.name, noticed.kind) {
                (Some(name), kind) => self.entry(&dir, &dir.join(name), kind, noticed.is_dir),
                (None, _) => {
                    // What stands there now is another one, even under the same number.
                    self.leave(&dir);
                    self.resolve_under(&dir);
                }
            }
        }
    }

    /// Something happened to an entry of a watched directory.
    fn entry(&mut self, dir: &Path, path: &Path, kind: Kind, is_dir: bool) {
        // A root may have come or gone, whole or a part of its way.
        self.resolve_under(path);
        let Some(Dir { root, .. }) = self.dirs.get(dir).copied() else { return };
        match kind {
            Kind::Went if is_dir || self.dirs.contains_key(path) => self.leave(path),
            Kind::Went => self.file_gone(path),
            Kind::Came if is_dir => self.enter(root, path),
            Kind::Changed if is_dir => {
                // It may have become readable.
                if !self.dirs.contains_key(path) {
                    self.enter(root, path);
                }
            }
            Kind::Came | Kind::Changed if self.wants(root, path) => self.file_seen(path, None),
            // A link to a directory is not called one.
            Kind::Came if fs::metadata(path).is_ok_and(|found| found.is_dir()) => {
                self.enter(root, path);
            }
            Kind::Came | Kind::Changed | Kind::SelfWent | Kind::Ended | Kind::Overflowed => {}
        }
    }

    /// Looks at everything, because events were lost.
    fn rescan(&mut self) {
        self.told.notices.push(Notice::Overflowed);
        self.resolve_all();
        let all: Vec<PathBuf> = self.dirs.keys().cloned().collect();
        self.list_all(&all);
    }

    fn list_all(&mut self, paths: &[PathBuf]) {
        // First what is gone: a directory that was moved is entered only where it is now.
        for path in paths {
            let known = self.dirs.get(path).map(|dir| dir.identity);
            if known.is_some() && identity(path).ok() != known {
                self.leave(path);
            }
        }
        for path in paths {
            self.list(path);
        }
    }

    fn resolve_all(&mut self) {
        for root in 0..self.roots.len() {
            self.resolve(root);
        }
    }

    /// Looks again at the roots at or below a path that came, went or changed.
    fn resolve_under(&mut self, path: &Path) {
        for root in 0..self.roots.len() {
            if self.roots[root].path.starts_with(path) {
                self.resolve(root);
            }
        }
    }

    /// Makes the tree that is held the one that stands at the root's path now.
    fn resolve(&mut self, root: usize) {
        let path = self.roots[root].path.clone();
        let held = self.dirs.get(&path).map(|dir| dir.identity);
        // Until nothing came between looking and watching; each turn goes one step down the way.
        for _ in 0..path.components().count() {
            let now = identity(&path).ok();
            if held.is_some() && held != now {
                self.leave(&path);
            }
            if now.is_some() {
                self.watch_way(&path);
                self.enter(root, &path);
                if self.dirs.contains_key(&path) {
                    return;
                }
            }
            let way = path.ancestors().skip(1);
            let Some(nearest) = way.into_iter().find(|dir| dir.is_dir()) else { return };
            self.watch_way(&path);
            self.watch_dir(nearest, Interest::Arrivals);
            let next = path.strip_prefix(nearest).ok().and_then(|rest| rest.iter().next());
            if now.is_some() || !next.is_some_and(|next| nearest.join(next).is_dir()) {
                return;
            }
        }
    }

    /// A directory on the way to a root may be moved, and takes the root along. One that is
    /// removed does not say so itself while a file in it is open: the one above does.
    fn watch_way(&mut self, root: &Path) {
        for dir in root.ancestors().skip(1) {
            self.watch_dir(dir, Interest::Departures);
        }
    }

    fn watch_dir(&mut self, path: &Path, interest: Interest) -> Option<i32> {
        if self.paths.len() >= self.watches_max {
            self.exhausted();
            return None;
        }
        match self.inotify.add(path, interest) {
            Ok(watch) => {
                let paths = self.paths.entry(watch).or_default();
                if !paths.iter().any(|known| known == path) {
                    paths.push(path.to_owned());
                }
                Some(watch)
            }
            Err(error) => {
                if matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::OutOfMemory) {
                    self.exhausted();
                }
                None
            }
        }
    }

    fn exhausted(&mut self) {
        if !std::mem::replace(&mut self.told.exhausted, true) {
            self.told.notices.push(Notice::WatchesExhausted);
        }
    }

    /// Watches and lists a directory and those in it.
    fn enter(&mut self, root: usize, path: &Path) {
        let mut ahead = vec![path.to_owned()];
        while let Some(path) = ahead.pop() {
            let identity = match identity(&path) {
                Ok(identity) => identity,
                Err(error) => {
                    self.trouble(&path, &error);
                    continue;
                }
            };
            if self.dirs.get(&path).is_some_and(|dir| dir.identity != identity) {
                self.leave(&path);
            }
            if self.is_entered(identity) || !self.enters(root, &path) {
                continue;
            }
            if self.dirs.len() >= WATCHED_DIRS_MAX {
                self.told.too_many();
                continue;
            }
            let watch = self.watch_dir(&path, self.roots[root].tells.interest());
            match fs::read_dir(&path) {
                Ok(entries) => {
                    self.identities.insert(identity, path.clone());
                    self.dirs.insert(path.clone(), Dir { root, identity, watch });
                    if watch.is_none() {
                        self.exhausted();
                    }
                    self.take_in(root, entries, &mut ahead);
                }
                Err(error) => self.trouble(&path, &error),
            }
        }
    }

    /// True if a directory is known and stands where it was. The number of one that was removed
    /// may have been given to another before its removal is heard of.
    fn is_entered(&mut self, directory: Identity) -> bool {
        let Some(known) = self.identities.get(&directory).cloned() else { return false };
        let stands = identity(&known).is_ok_and(|now| now == directory);
        if !stands {
            self.identities.remove(&directory);
            self.leave(&known);
        }
        stands
    }

    /// Looks at what is in a directory that is known.
    fn list(&mut self, path: &Path) {
        let Some(dir) = self.dirs.get(path).copied() else { return };
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) => {
                self.trouble(path, &error);
                return self.leave(path);
            }
        };
        let mut ahead = Vec::new();
        let there = self.take_in(dir.root, entries, &mut ahead);
        for below in ahead {
            self.enter(dir.root, &below);
        }
        let known = below(&self.files, path).filter(|file| file.parent() == Some(path));
        let gone: Vec<Arc<Path>> =
            known.filter(|file| !there.contains(file.as_ref())).cloned().collect();
        for file in gone {
            self.file_gone(&file);
        }
    }

    /// Tells of the wanted files among `entries`, and returns them; directories go `ahead`.
    fn take_in(
        &mut self,
        root: usize,
        entries: fs::ReadDir,
        ahead: &mut Vec<PathBuf>,
    ) -> BTreeSet<PathBuf> {
        let mut there = BTreeSet::new();
        for entry in entries.flatten() {
            let path = entry.path();
            let Ok(kind) = entry.file_type() else { continue };
            let linked_dir = || kind.is_symlink() && path.is_dir();
            if kind.is_dir() || linked_dir() {
                ahead.push(path);
            } else if self.wants(root, &path)
                && let Ok(metadata) = fs::metadata(&path)
            {
                self.file_seen(&path, Some(Seen::of(&metadata)));
                there.insert(path);
            }
        }
        there
    }

    /// Forgets a tree that is no longer there.
    fn leave(&mut self, path: &Path) {
        let gone: Vec<PathBuf> = below(&self.dirs, path).cloned().collect();
        for path in gone {
            let dir = self.dirs.remove(&path).expect("it was just found");
            self.identities.remove(&dir.identity);
            self.told.troubled.remove(&path);
            let Some(watch) = dir.watch else { continue };
            if let Some(paths) = self.paths.get_mut(&watch) {
                paths.retain(|known| *known != path);
                if paths.is_empty() {
                    self.paths.remove(&watch);
                    self.inotify.remove(watch);
                }
            }
        }
        let gone: Vec<Arc<Path>> = below(&self.files, path).cloned().collect();
        for path in gone {
            self.file_gone(&path);
        }
    }

    /// `seen` where the file was just looked at: then it is told of only if it looks different.
    fn file_seen(&mut self, path: &Path, seen: Option<Seen>) {
        if let Some((known, before)) = self.files.get_key_value(path) {
            if seen.is_none_or(|seen| seen != *before) {
                let known = known.clone();
                self.told.change(known.clone(), ChangeKind::Changed);
                self.files.entry(known).and_modify(|before| *before = seen.unwrap_or(*before));
            }
            return;
        }
        if self.files.len() >= WATCHED_FILES_MAX {
            self.told.too_many();
            return;
        }
        let path: Arc<Path> = path.into();
        self.files.insert(path.clone(), seen.unwrap_or_default());
        self.told.change(path, ChangeKind::New);
    }

    fn file_gone(&mut self, path: &Path) {
        if let Some((path, _)) = self.files.remove_entry(path) {
            self.told.change(path, ChangeKind::Gone);
        }
    }

    fn trouble(&mut self, path: &Path, error: &io::Error) {
        let room = self.told.troubled.len() < TROUBLED_PATHS_MAX;
        if error.kind() != ErrorKind::NotFound && room && self.told.troubled.insert(path.to_owned())
        {
            let unreadable = Notice::Unreadable { path: path.to_owned(), kind: error.kind() };
            self.told.notices.push(unreadable);
        }
    }

    fn enters(&self, root: usize, path: &Path) -> bool {
        let Root { path: base, enters, .. } = &self.roots[root];
        path.strip_prefix(base).is_ok_and(|rest| rest.as_os_str().is_empty() || enters(rest))
    }

    fn wants(&self, root: usize, path: &Path) -> bool {
        let Root { path: base, wants, .. } = &self.roots[root];
        path.strip_prefix(base).is_ok_and(wants)
    }
}

impl Tells {
    fn interest(self) -> Interest {
        match self {
            Self::Changes => Interest::Entries,
            Self::Uses => Interest::Uses,
            Self::Presence => Interest::Presence,
        }
    }
}

impl Told {
    /// It was said before, and is so still.
    fn unsay_exhausted(&mut self, after: usize) {
        let mut nth = 0;
        self.notices.retain(|notice| {
            nth += 1;
            nth <= after || *notice != Notice::WatchesExhausted
        });
    }

    fn change(&mut self, path: Arc<Path>, kind: ChangeKind) {
        use ChangeKind::{Changed, Gone, New};
        let before = self.changes.get(&path);
        let both = match (before, kind) {
            (None, kind) => Some(kind),
            (Some(New), New | Changed) => Some(New),
            // Never told of, so there is nothing to take back.
            (Some(New), Gone) => None,
            (Some(Changed | Gone), Gone) => Some(Gone),
            (Some(Changed | Gone), New | Changed) => Some(Changed),
        };
        match both {
            Some(kind) => self.changes.insert(path, kind),
            None => self.changes.remove(&path),
        };
    }

    fn too_many(&mut self) {
        if !std::mem::replace(&mut self.too_many, true) {
            self.notices.push(Notice::TooMany);
        }
    }
}

fn identity(dir: &Path) -> io::Result<Identity> {
    let metadata = fs::metadata(dir)?;
    match metadata.is_dir() {
        true => Ok((metadata.dev(), metadata.ino())),
        false => Err(ErrorKind::NotADirectory.into()),
    }
}

/// The path itself and all below it.
fn below<'a, K, V>(map: &'a BTreeMap<K, V>, path: &'a Path) -> impl Iterator<Item = &'a K>
where
    K: Ord + std::borrow::Borrow<Path>,
{
    map.range::<Path, _>((Bound::Included(path), Bound::Unbounded))
        .map(|(key, _)| key)
        .take_while(move |key| (*key).borrow().starts_with(path))
}

#[cfg(test)]
mod tests;
