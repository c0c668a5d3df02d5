//! What the system needs to be told about the disk.
//!
//! A write is cheap and an fsync is not: 4 ms for a file and as much for its folder on a plain
//! disk, at each step of the agent. Once the frame is in the spool it outlives any process, so the
//! agent goes on, and a child that has nothing to do with it any more stays for the fsync, and to
//! make room where the spool is full.

use crate::limits::SYNC_SECONDS_MAX;
use crate::spool::Kept;

/// A file that would be longer than the user's limit is an error to us like a full disk, and not
/// a signal that ends us with anything but 0.
pub fn outlive_the_file_limit() {
    #[allow(unsafe_code, reason = "std has no signals")]
    // SAFETY: no handler is installed, so none can be unsound.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// Makes a frame outlive a power cut, and the spool keep its bound. Returns at once; only where no child can be made does it wait for the disk.
pub fn settle(kept: &Kept) {
    match fork() {
        Fork::Child => {
            leave_the_agent();
            kept.settle();
            std::process::exit(0);
        }
        Fork::Parent => {}
        Fork::Failed => kept.settle(),
    }
}

/// Agents read a hook's output until everyone has closed it, and may kill its group once it is
/// over: neither may have to do with the child.
fn leave_the_agent() {
    // Where these fail the child is in the agent's way for some milliseconds.
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
        libc::alarm(SYNC_SECONDS_MAX);
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
