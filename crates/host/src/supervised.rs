//! Whether a process is one of ours: below a warden, or confined as programs of a sandbox are.
//!
//! Such a process is never taken for an agent of the operator's, whatever it calls itself and
//! wherever it listens. Doubt counts as yes.

use std::path::Path;

use super::processes::Process;
use crate::bounded_file::{Links, read_regular};

/// Ancestors of a process that are looked at for a warden. More are a trick, and count as one.
pub const ANCESTORS_SEARCHED_MAX: usize = 1_024;

/// Longest file in `/proc` about one process's rights.
const PROCESS_FILE_BYTES_MAX: u64 = 64 << 10;

/// What a warden calls itself, for whoever looks at processes.
pub const WARDEN_NAME: &str = "qd-warden";

/// Whether the supervisor of driven sessions is among its ancestors, or it is confined: a program
/// that killed its warden on an older kernel keeps its filters.
pub fn is_ours(pid: u32) -> bool {
    is_confined(pid) || is_below_warden(pid)
}

/// Whether it gave up gaining rights, and has more filters than we have ourselves.
pub fn is_confined(pid: u32) -> bool {
    match (Bounds::of(&pid.to_string()), Bounds::of("self")) {
        (Some(its), Some(ours)) => its.gains_nothing && its.filters > ours.filters,
        _ => true,
    }
}

/// Whether it stands between the daemon and something that the daemon has started.
pub fn is_warden(process: Process) -> bool {
    process.name().is_none_or(|name| name == WARDEN_NAME)
}

fn is_below_warden(pid: u32) -> bool {
    let mut next = Some(pid);
    for _ in 0..ANCESTORS_SEARCHED_MAX {
        let Some(pid) = next.filter(|pid| *pid > 1) else { return false };
        let Some(process) = Process::with_pid(pid) else { return true };
        if is_warden(process) {
            return true;
        }
        next = process.parent();
    }
    true
}

/// What the kernel says of a process's rights.
struct Bounds {
    gains_nothing: bool,
    filters: u64,
}

impl Bounds {
    fn of(process: &str) -> Option<Self> {
        let path = format!("/proc/{process}/status");
        let text = read_regular(Path::new(&path), PROCESS_FILE_BYTES_MAX, Links::Followed).ok()?;
        let text = String::from_utf8_lossy(&text);
        let field = |name: &str| -> Option<u64> {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            line.trim().parse().ok()
        };
        // Kernels before 5.9 do not count filters, and those before 4.10 say nothing of either.
        let filters = field("Seccomp_filters").or_else(|| Some(u64::from(field("Seccomp")? == 2)));
        let gains_nothing = field("NoNewPrivs").unwrap_or(0) == 1;
        Some(Self { gains_nothing, filters: filters.unwrap_or(0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_ours_but_those_below_a_warden() {
        assert!(!is_ours(std::process::id()));
        assert!(is_ours(u32::MAX), "of one that is not there nothing is known");
    }
}
