//! Notices when nobody wants an answer any more: the agent has ended, or has closed our output.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use qd_hook_wire::Agent;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, getppid};
use rustix::stdio::stdout;

use crate::deadline::Deadline;
use crate::limits::AGENT_LOOK_EVERY;

/// The agent that ran the hook or, where it cannot be seen from here, the process that started us.
pub struct AgentWatch {
    process: Option<OwnedFd>,
    parent: Option<Pid>,
}

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Woken {
    /// The file has something to say.
    Ready,
    /// The time is over.
    Late,
    /// Nobody is there to answer to.
    Gone,
}

impl AgentWatch {
    pub fn new(agent: Option<Agent>) -> Self {
        let parent = getppid();
        let agent = agent.and_then(|agent| Pid::from_raw(agent.pid.cast_signed()));
        let process = agent.and_then(end_of).or_else(|| parent.and_then(end_of));
        Self { process, parent }
    }

    /// Waits until the file can be read or is broken; without a file, until the time is over.
    pub fn wait(&self, file: Option<BorrowedFd<'_>>, until: Deadline) -> Woken {
        while let Some(left) = until.left() {
            // A file that is asked for nothing still tells that its other end was closed.
            let mut files = vec![PollFd::from_borrowed_fd(stdout(), PollFlags::empty())];
            files.extend(self.process.iter().map(|end| PollFd::new(end, PollFlags::IN)));
            let watched = files.len();
            files.extend(file.map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN)));
            match poll(&mut files, Some(&self.nap(left))) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return Woken::Gone,
            }
            let (watched, file) = files.split_at(watched);
            if watched.iter().any(|file| !file.revents().is_empty()) || self.lost_its_parent() {
                return Woken::Gone;
            }
            if file.iter().any(|file| !file.revents().is_empty()) {
                return Woken::Ready;
            }
        }
        Woken::Late
    }

    fn nap(&self, left: Duration) -> Timespec {
        let nap = if self.process.is_some() { left } else { left.min(AGENT_LOOK_EVERY) };
        Timespec::try_from(nap).expect("a wait is bounded")
    }

    /// The kernel tells of the end itself, or a new parent tells of the old one's.
    fn lost_its_parent(&self) -> bool {
        self.process.is_none() && getppid() != self.parent
    }
}

/// A file that can be read once the process has ended.
#[cfg(target_os = "linux")]
fn end_of(pid: Pid) -> Option<OwnedFd> {
    use rustix::process::{PidfdFlags, pidfd_open};
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn end_of(_: Pid) -> Option<OwnedFd> {
    None
}
