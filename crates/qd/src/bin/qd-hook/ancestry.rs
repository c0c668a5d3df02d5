//! Which process is the agent: best effort, from what the kernel shows.

use std::path::Path;

use crate::limits::SHELLS_MAX;
use crate::message::Agent;

/// The process that ran the hook. Claude Code names itself in the hook's environment; that is
/// believed only for its own hooks, because an agent that it starts inherits the name. Else it is
/// the nearest ancestor that is no shell.
pub fn agent(harness: &str) -> Option<Agent> {
    let named = if harness == "claude-code" { std::env::var("CLAUDE_PID").ok() } else { None };
    let named = named.and_then(|pid| pid.parse().ok()).filter(|pid: &u32| *pid > 1);
    let pid = named.or_else(nearest_that_is_no_shell)?;
    Some(Agent { pid, started: Stat::of(pid).map(|stat| stat.started) })
}

fn nearest_that_is_no_shell() -> Option<u32> {
    let mut pid = std::os::unix::process::parent_id();
    for _ in 0..SHELLS_MAX {
        if !is_shell(pid) {
            break;
        }
        pid = Stat::of(pid)?.parent;
    }
    // The first process adopts what has lost its parent: that agent is gone.
    (pid > 1).then_some(pid)
}

/// By its program and not by its name: a script's process is called after the script.
fn is_shell(pid: u32) -> bool {
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let name = Path::file_name(&program).and_then(|name| name.to_str()).unwrap_or_default();
    SHELLS.contains(&name)
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

const SHELLS: [&str; 9] = ["sh", "dash", "bash", "zsh", "fish", "ash", "ksh", "mksh", "busybox"];

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
