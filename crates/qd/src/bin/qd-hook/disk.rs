//! Spooling without making the agent wait for the disk.
//!
//! A write is cheap and an fsync is not: 4 ms for a file and as much for its folder on a plain
//! disk, at each step of the agent. So a child does both. We wait until it says that the frame is
//! in the spool, which outlives any process, and leave it to make the frame outlive a power cut.
//! A disk that hangs therefore hangs the child alone.

use std::io::{PipeReader, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;

use rustix::event::PollFlags;

use crate::deadline::Deadline;
use crate::limits::DISK_SECONDS_MAX;
use crate::message::Message;
use crate::spool;

/// Returns when the frame is in the spool, when that turned out impossible, or at the deadline.
pub fn keep(folder: &Path, message: &Message, deadline: Deadline) {
    let Ok((told, mut teller)) = std::io::pipe() else {
        return spool::keep(folder, message, || {});
    };
    match fork() {
        Fork::Child => {
            leave_the_agent();
            // The parent may have given up: then nobody needs to be told.
            spool::keep(folder, message, move || drop(teller.write(b".")));
            std::process::exit(0);
        }
        Fork::Parent => {
            drop(teller);
            wait(told, deadline);
        }
        Fork::Failed => spool::keep(folder, message, || {}),
    }
}

/// The pipe gets a byte when the frame is kept and closes when the child ends without.
fn wait(mut told: PipeReader, deadline: Deadline) {
    if deadline.wait(told.as_fd(), PollFlags::IN) {
        let _ = told.read(&mut [0]);
    }
}

/// Agents read a hook's output until everyone has closed it, and may kill its group once it is
/// over: neither may have to do with the child.
fn leave_the_agent() {
    let _ = rustix::process::setsid();
    let nowhere = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null");
    if let Ok(nowhere) = nowhere {
        let _ = rustix::stdio::dup2_stdin(&nowhere);
        let _ = rustix::stdio::dup2_stdout(&nowhere);
        let _ = rustix::stdio::dup2_stderr(&nowhere);
    }
    #[allow(unsafe_code, reason = "std has no alarm")]
    // SAFETY: alarm takes a number and touches no memory. Its signal's default is to end us.
    unsafe {
        libc::alarm(DISK_SECONDS_MAX);
    }
}

enum Fork {
    Parent,
    Child,
    Failed,
}

#[allow(unsafe_code, reason = "std has no fork")]
fn fork() -> Fork {
    // SAFETY: this process has one thread, so the child's copy of every lock is free.
    match unsafe { libc::fork() } {
        0 => Fork::Child,
        -1 => Fork::Failed,
        _ => Fork::Parent,
    }
}
