//! Ending everything a client started, also what left its session or its parent.
//!
//! Agents detach: Codex starts a daemon in a session of its own, hooks run in theirs. What all
//! of them keep is the environment, so each client gets a variable no other process has.

/// Kills every process that carries `NAME=value` in its environment, and every descendant of
/// `root`, which must still be alive; returns when they are gone or the bound has passed.
#[cfg(target_os = "linux")]
pub(crate) fn kill(marker: &str, root: Option<u32>) {
    use crate::limits::KILL_ROUNDS_MAX;

    // Only in the first round: a killed root is reaped, and its pid may come to mean another.
    let mut doomed = root.map(linux::descendants).unwrap_or_default();
    for _ in 0..KILL_ROUNDS_MAX {
        doomed.extend(linux::marked(marker));
        if doomed.is_empty() {
            return;
        }
        for (pid, process) in &doomed {
            linux::kill(*pid, process);
        }
        for (pid, process) in &doomed {
            linux::wait_until_gone(*pid, process);
        }
        doomed.clear();
    }
    eprintln!("testbed: processes with {marker} are still there");
}

/// Elsewhere a pseudo-terminal's hang-up and the direct child's end must do.
#[cfg(not(target_os = "linux"))]
pub(crate) fn kill(_marker: &str, _root: Option<u32>) {}

/// kill -9 of one process that has not been waited for yet.
pub(crate) fn kill_one(pid: u32) -> std::io::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    let pid = pid.ok_or(std::io::ErrorKind::InvalidInput)?;
    Ok(rustix::process::kill_process(pid, rustix::process::Signal::KILL)?)
}

/// When the process started, in the system's own unit; with its pid that is one process.
#[cfg(target_os = "linux")]
pub(crate) fn started_at(pid: u32) -> Option<u64> {
    linux::stat_field(pid, 19)?.parse().ok()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn started_at(_pid: u32) -> Option<u64> {
    None
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::BTreeMap;
    use std::os::fd::OwnedFd;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::io::Errno;
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

    use crate::limits::KILL_WAIT_MAX;

    pub(super) fn marked(marker: &str) -> BTreeMap<u32, OwnedFd> {
        // The handle first, then the look: what we saw is then true of what we hold.
        let opened = processes().filter_map(|pid| Some((pid, open(pid)?)));
        opened.filter(|(pid, _)| carries(*pid, marker)).collect()
    }

    pub(super) fn descendants(root: u32) -> BTreeMap<u32, OwnedFd> {
        let parents: BTreeMap<u32, u32> = processes()
            .filter(|pid| stat_field(*pid, 0).is_some_and(|state| state != "Z"))
            .filter_map(|pid| Some((pid, stat_field(pid, 1)?.parse().ok()?)))
            .collect();
        let is_below = |mut pid: u32| {
            // Bounded by the table: a chain cannot be longer than all processes.
            for _ in 0..parents.len() {
                match parents.get(&pid) {
                    Some(parent) if *parent == root => return true,
                    Some(parent) => pid = *parent,
                    None => return false,
                }
            }
            false
        };
        let below = parents.keys().filter(|pid| is_below(**pid));
        below.filter_map(|pid| Some((*pid, open(*pid)?))).collect()
    }

    pub(super) fn kill(pid: u32, process: &OwnedFd) {
        match pidfd_send_signal(process, Signal::KILL) {
            Ok(()) | Err(Errno::SRCH) => {}
            Err(error) => eprintln!("testbed: cannot kill {pid}: {error}"),
        }
    }

    /// A handle becomes readable when its process has ended.
    pub(super) fn wait_until_gone(pid: u32, process: &OwnedFd) {
        let bound = Timespec { tv_sec: KILL_WAIT_MAX.as_secs() as i64, tv_nsec: 0 };
        match poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&bound)) {
            Ok(0) => eprintln!("testbed: {pid} was killed and is still there"),
            Ok(_) => {}
            Err(error) => eprintln!("testbed: cannot wait for {pid}: {error}"),
        }
    }

    fn processes() -> impl Iterator<Item = u32> {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let own = std::process::id();
        entries
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(move |pid| *pid != own)
    }

    fn open(pid: u32) -> Option<OwnedFd> {
        pidfd_open(Pid::from_raw(i32::try_from(pid).ok()?)?, PidfdFlags::empty()).ok()
    }

    /// Of another user's process, and of one that has ended, the environment cannot be read.
    fn carries(pid: u32, marker: &str) -> bool {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == marker.as_bytes())
    }

    /// A field of `/proc/PID/stat`, counted after the command, which may hold anything.
    pub(super) fn stat_field(pid: u32, index: usize) -> Option<String> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(index).map(str::to_owned)
    }
}
