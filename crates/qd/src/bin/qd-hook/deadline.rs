//! A moment by which something must be over.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Instant);

impl Deadline {
    pub fn after(wait: Duration) -> Self {
        Self(Instant::now() + wait)
    }

    /// What is left, or `None` once it has passed.
    pub fn left(self) -> Option<Duration> {
        let left = self.0.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    /// Waits until the file is ready for `what` or broken; false when the time is over.
    pub fn wait(self, file: BorrowedFd<'_>, what: PollFlags) -> bool {
        while let Some(left) = self.left() {
            let Ok(timeout) = Timespec::try_from(left) else { return false };
            match poll(&mut [PollFd::from_borrowed_fd(file, what)], Some(&timeout)) {
                Ok(0) | Err(Errno::INTR) => {}
                Ok(_) => return true,
                Err(_) => return false,
            }
        }
        false
    }
}
