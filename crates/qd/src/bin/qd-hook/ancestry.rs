//! Which process is the agent: best effort, from what the kernel shows.

use std::path::Path;

use qd_hook_wire::Agent;

use crate::limits::SHELLS_MAX;

/// The nearest process above us that is no shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nearest {
    pub pid: u32,
    /// The name of its program's file; `None` where the system does not show it, and then it may be
    /// a shell as well.
    pub program: Option<String>,
}

/// The process that ran the hook: the one that a proven client names, else the nearest ancestor
/// that is no shell.
pub fn agent(named: Option<u32>, nearest: Option<&Nearest>) -> Option<Agent> {
    let pid = named.or(nearest.map(|nearest| nearest.pid))?;
    Some(Agent { pid, started: Stat::of(pid).map(|stat| stat.started) })
}

pub fn nearest() -> Option<Nearest> {
    let mut pid = std::os::unix::process::parent_id();
    let mut program = program(pid);
    for _ in 0..SHELLS_MAX {
        if !program.as_deref().is_some_and(|name| SHELLS.contains(&name)) {
            break;
        }
        pid = Stat::of(pid)?.parent;
        program = self::program(pid);
    }
    // The first process adopts what has lost its parent: that agent is gone.
    (pid > 1).then_some(Nearest { pid, program })
}

/// By its file and not by its name: a script's process is called after the script.
fn program(pid: u32) -> Option<String> {
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    Path::file_name(&program)?.to_str().map(str::to_owned)
}

struct Stat {
    parent: u32,
    /// Clock ticks since boot.
    started: u64,
}

impl Stat {
    fn of(pid: u32) -> Option<Self> {
        Self::parse(&std::fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The program's name is the second field, in brackets, and may hold brackets and spaces.
    fn parse(line: &[u8]) -> Option<Self> {
        let name_end = line.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(&line[name_end + 1..]).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        Some(Self { parent: fields.nth(1)?.parse().ok()?, started: fields.nth(17)?.parse().ok()? })
    }
}

/// Shells, and what only runs another program in its place or below it.
const SHELLS: [&str; 11] =
    ["sh", "dash", "bash", "zsh", "fish", "ash", "ksh", "mksh", "busybox", "env", "timeout"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_shift_the_fields() {
        let line = b"42 (a) b (c) S 7 42 42 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 93021 1000 5\n";
        let stat = Stat::parse(line).expect("fields");
        assert_eq!((stat.parent, stat.started), (7, 93021));
        assert!(Stat::parse(b"42 (cut").is_none());
    }
}
