//! Rings when a file of the journal came, went or was replaced: somebody may have taken it away.
//!
//! The writer looks before each transaction anyway; this is for the time when nothing is written.

use std::ffi::OsStr;
use std::io::{ErrorKind, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tokio::sync::Notify;

use crate::Error;
use crate::limits::JOURNAL_LOOK_EVERY;
use crate::sources::inotify::{Inotify, Interest};

/// Dropping it ends its thread.
#[derive(Debug)]
pub struct JournalWatch {
    rung: Arc<Notify>,
    _stop: UnixStream,
}

impl JournalWatch {
    pub fn of(journal: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Watch { doing: "start", source };
        let (stop, stopped) = UnixStream::pair().map_err(failed)?;
        stopped.set_nonblocking(true).map_err(failed)?;
        let rung = Arc::new(Notify::new());
        let (ring, journal) = (rung.clone(), journal.to_owned());
        thread::Builder::new()
            .name("qd-journal-watch".to_owned())
            .spawn(move || watch(&journal, &stopped, &ring))
            .map_err(failed)?;
        Ok(Self { rung, _stop: stop })
    }

    /// A file of it is another one since this was last awaited. May be dropped and asked again.
    pub async fn rung(&self) {
        self.rung.notified().await;
    }
}

fn watch(journal: &Path, mut stop: &UnixStream, ring: &Notify) {
    let inotify = Inotify::new();
    let folder = journal.parent().unwrap_or(Path::new("/"));
    let interests = [Interest::Departures, Interest::Arrivals];
    let is_watched = interests.iter().all(|interest| inotify.add(folder, *interest).is_ok());
    loop {
        let queue = inotify.waits_on().filter(|_| is_watched);
        if !wait(queue, stop.as_fd()) {
            return;
        }
        match stop.read(&mut [0]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Ok(_) | Err(_) => return,
        }
        let noticed = inotify.read().unwrap_or_default();
        // What is not watched is looked at now and then. A folder that went took all with it.
        let is_ours = |name: &Option<std::ffi::OsString>| {
            name.as_deref().is_none_or(|name| is_of_journal(journal, name))
        };
        if !is_watched || noticed.iter().any(|noticed| is_ours(&noticed.name)) {
            ring.notify_one();
        }
    }
}

/// Without a queue, for a time. False if it cannot be waited for.
fn wait(queue: Option<BorrowedFd<'_>>, stop: BorrowedFd<'_>) -> bool {
    let fds = [queue, Some(stop)].into_iter().flatten();
    let mut fds: Vec<PollFd<'_>> =
        fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
    let timeout = Timespec::try_from(JOURNAL_LOOK_EVERY).ok().filter(|_| queue.is_none());
    matches!(poll(&mut fds, timeout.as_ref()), Ok(_) | Err(Errno::INTR))
}

/// The database, its log and its lock; not what is written beside it all the time.
fn is_of_journal(journal: &Path, name: &OsStr) -> bool {
    let rest = journal
        .file_name()
        .zip(name.to_str())
        .and_then(|(journal, name)| name.strip_prefix(journal.to_str()?));
    rest.is_some_and(|rest| ["", "-wal", "-shm", ".lock"].contains(&rest))
}
