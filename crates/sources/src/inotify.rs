//! The kernel's word on directories, where it gives one.
//!
//! Elsewhere than on Linux every directory is refused, and the caller looks for itself.

#[cfg(not(target_os = "linux"))]
pub use elsewhere::Inotify;
#[cfg(target_os = "linux")]
pub use linux::Inotify;

/// One thing that happened in or to a watched directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noticed {
    pub watch: i32,
    pub kind: Kind,
    /// The entry it is about; none when it is about the directory itself.
    pub name: Option<std::ffi::OsString>,
    pub is_dir: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// An entry was made or moved here.
    Came,
    /// An entry was removed or moved away.
    Went,
    /// An entry has other bytes or other rights, or was opened or closed.
    Changed,
    /// The directory itself was removed or moved.
    SelfWent,
    /// The watch is no more.
    Ended,
    /// Events were lost.
    Overflowed,
}

/// What is wanted of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Everything about its entries, opening and closing them included.
    Uses,
    /// Everything that changes its entries.
    Entries,
    /// Which entries come and go, not what is written to them.
    Presence,
    /// Entries that come, and whether it stays.
    Arrivals,
    /// Whether it stays where it is, and which entries go.
    Departures,
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::OsStr;
    use std::io;
    use std::mem::MaybeUninit;
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
    use rustix::io::Errno;

    use super::{Interest, Kind, Noticed};

    const USED: ReadFlags =
        ReadFlags::OPEN.union(ReadFlags::CLOSE_WRITE).union(ReadFlags::CLOSE_NOWRITE);

    /// Bytes of events taken at once: some two thousand, of which those of one file are one.
    const EVENT_BYTES: usize = 64 << 10;

    #[derive(Debug)]
    pub struct Inotify {
        /// None where the kernel grants this user no more of them: then as elsewhere.
        queue: Option<OwnedFd>,
    }

    impl Inotify {
        pub fn new() -> Self {
            Self { queue: inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok() }
        }

        #[cfg(test)]
        pub fn refused() -> Self {
            Self { queue: None }
        }

        /// Watches one directory. Asking again adds to what is wanted of it.
        pub fn add(&self, path: &Path, interest: Interest) -> io::Result<i32> {
            let itself = WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
            let departures = itself | WatchFlags::MOVED_FROM | WatchFlags::DELETE;
            let arrivals = itself | WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ATTRIB;
            let entries = arrivals | departures | WatchFlags::MODIFY;
            let wanted = match interest {
                Interest::Departures => departures,
                Interest::Arrivals => arrivals,
                Interest::Presence => arrivals | departures,
                Interest::Entries => entries,
                Interest::Uses => entries | WatchFlags::OPEN | WatchFlags::CLOSE,
            };
            let how = WatchFlags::ONLYDIR | WatchFlags::MASK_ADD | WatchFlags::EXCL_UNLINK;
            let queue = self.queue.as_ref().ok_or(io::ErrorKind::Unsupported)?;
            Ok(inotify::add_watch(queue, path, wanted | how)?)
        }

        pub fn remove(&self, watch: i32) {
            let Some(queue) = &self.queue else { return };
            match inotify::remove_watch(queue, watch) {
                // It may have ended by itself, with its directory.
                Ok(()) | Err(_) => {}
            }
        }

        /// What has happened, up to one buffer of it; empty when nothing has.
        pub fn read(&self) -> io::Result<Vec<Noticed>> {
            let Some(queue) = &self.queue else { return Ok(Vec::new()) };
            let mut buffer = vec![MaybeUninit::uninit(); EVENT_BYTES];
            let mut reader = Reader::new(queue, &mut buffer);
            let mut noticed = Vec::new();
            loop {
                match reader.next() {
                    Ok(event) => {
                        let flags = event.events();
                        let name = event.file_name();
                        // Whoever lists a directory opens it.
                        let listed = name.is_none() && flags.intersects(USED);
                        noticed.extend(kind(flags).filter(|_| !listed).map(|kind| Noticed {
                            watch: event.wd(),
                            kind,
                            name: name.map(|name| OsStr::from_bytes(name.to_bytes()).to_owned()),
                            is_dir: flags.contains(ReadFlags::ISDIR),
                        }));
                    }
                    Err(Errno::AGAIN) => return Ok(noticed),
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
                if reader.is_buffer_empty() {
                    return Ok(noticed);
                }
            }
        }

        pub fn waits_on(&self) -> Option<BorrowedFd<'_>> {
            self.queue.as_ref().map(AsFd::as_fd)
        }
    }

    fn kind(flags: ReadFlags) -> Option<Kind> {
        let kinds = [
            (ReadFlags::QUEUE_OVERFLOW, Kind::Overflowed),
            (ReadFlags::IGNORED, Kind::Ended),
            (ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::UNMOUNT, Kind::SelfWent),
            (ReadFlags::CREATE | ReadFlags::MOVED_TO, Kind::Came),
            (ReadFlags::DELETE | ReadFlags::MOVED_FROM, Kind::Went),
            (ReadFlags::MODIFY | ReadFlags::ATTRIB | USED, Kind::Changed),
        ];
        kinds.into_iter().find(|(any, _)| flags.intersects(*any)).map(|(_, kind)| kind)
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::io;
    use std::os::fd::BorrowedFd;
    use std::path::Path;

    use super::{Interest, Noticed};

    #[derive(Debug)]
    pub struct Inotify;

    impl Inotify {
        pub fn new() -> Self {
            Self
        }

        pub fn add(&self, _: &Path, _: Interest) -> io::Result<i32> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub fn remove(&self, _: i32) {}

        pub fn read(&self) -> io::Result<Vec<Noticed>> {
            Ok(Vec::new())
        }

        pub fn waits_on(&self) -> Option<BorrowedFd<'_>> {
            None
        }
    }
}
