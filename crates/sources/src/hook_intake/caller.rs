//! Who handed a frame in: the process that connected and those above it, as the kernel shows them.
//!
//! Evidence only; what it is worth is decided in [`super::speaking`].

use std::fs;
use std::path::{Path, PathBuf};

use qd_host::processes::Process;
use qd_host::supervised::is_warden;

use qd_hook_wire::Agent;

/// Processes above a forwarder that are looked at: an agent, its shell and its wrappers, a
/// terminal, a session of the system.
const ANCESTORS_MAX: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// Nobody saw it: its frame lay in the spool, or is the journal's. The frame itself names its
    /// agent.
    Spooled,
    /// Somebody who has a token, on any machine.
    Remote,
    /// A process that cannot be seen from here: in another container, or on a system that does not
    /// tell.
    Hidden,
    /// Somebody on another machine, or whoever they let in: SSH carries the connection. No pid that
    /// it names is one of ours.
    Forwarded,
    /// A process of this machine and those above it, the nearest first.
    Local(Vec<Ancestor>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ancestor {
    pub process: Process,
    pub program: Option<Program>,
    /// It stands between us and something that we have started.
    pub is_our_supervisor: bool,
}

/// What a process runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    pub executable: PathBuf,
    /// Of an interpreter: what it interprets.
    pub script: Option<String>,
}

impl Caller {
    /// The process behind a connection. None if it has ended already: what it says could be
    /// anybody's, and a forwarder that gave up on us has left its frame in the spool.
    pub fn connected(pid: Option<u32>) -> Option<Self> {
        let Some(pid) = pid.filter(|pid| *pid > 0 && cfg!(target_os = "linux")) else {
            return Some(Self::Hidden);
        };
        let peer = Process::with_pid(pid)?;
        if Program::of(peer).as_ref().is_some_and(Program::carries_connections) {
            return Some(Self::Forwarded);
        }
        let ours = std::process::id();
        let mut above = Vec::new();
        let mut next = Some(peer);
        while let Some(process) = next.filter(|_| above.len() < ANCESTORS_MAX) {
            let parent = process.parent().filter(|pid| *pid > 0);
            above.push(Ancestor {
                process,
                program: Program::of(process),
                is_our_supervisor: parent == Some(ours) && is_warden(process),
            });
            next = parent.and_then(Process::with_pid);
        }
        Some(Self::Local(above))
    }

    /// The process that connected.
    pub fn peer(&self) -> Option<Process> {
        match self {
            Self::Local(above) => above.first().map(|one| one.process),
            Self::Spooled | Self::Remote | Self::Hidden | Self::Forwarded => None,
        }
    }

    /// The agent that ran the hook. What the frame says is believed if that process is above the
    /// caller; else it is the nearest that is no shell. Where nobody saw, the frame's word is all.
    pub fn agent(&self, named: Option<Agent>) -> Option<Process> {
        let named = named.and_then(|agent| Some(Process { pid: agent.pid, start: agent.started? }));
        let Self::Local(above) = self else {
            return named.filter(|_| *self == Self::Spooled);
        };
        let is_above = |named: &Process| above.iter().any(|one| one.process == *named);
        let is_shell = |one: &&Ancestor| {
            let program = one.program.as_ref().and_then(|program| program.name());
            program.is_some_and(|name| SHELLS.contains(&name))
        };
        let nearest = || above.iter().skip(1).find(|one| !is_shell(one)).map(|one| one.process);
        named.filter(is_above).or_else(nearest).filter(|process| process.pid > 1)
    }
}

impl Program {
    pub fn of(process: Process) -> Option<Self> {
        let executable = fs::read_link(format!("/proc/{}/exe", process.pid)).ok()?;
        let mut program = Self { executable, script: None };
        if program.name().is_some_and(|name| INTERPRETERS.iter().any(|it| name.starts_with(it))) {
            let line = process.command_line().unwrap_or_default();
            let mut words = line.split(|byte| *byte == 0).skip(1).filter(|word| !word.is_empty());
            let script = words.find(|word| !word.starts_with(b"-"));
            program.script = script.map(|word| String::from_utf8_lossy(word).into_owned());
        }
        Some(program)
    }

    fn name(&self) -> Option<&str> {
        self.executable.file_name()?.to_str()
    }

    /// It speaks for programs of another machine. `ssh -R` connects from its client, `ssh -L` from
    /// its server, which is `sshd-session` since OpenSSH 9.8.
    fn carries_connections(&self) -> bool {
        matches!(self.name(), Some("ssh" | "sshd" | "sshd-session"))
    }

    /// The same, or another version that its maker put beside it.
    pub fn is_kin(&self, other: &Self) -> bool {
        let versions = |program: &Self| {
            let folder = program.executable.parent().map(Path::to_owned);
            folder.filter(|folder| folder.ends_with("versions"))
        };
        let is_beside = versions(self).is_some() && versions(self) == versions(other);
        self.script == other.script && (self.executable == other.executable || is_beside)
    }
}

const SHELLS: [&str; 11] =
    ["sh", "dash", "bash", "zsh", "fish", "ash", "ksh", "mksh", "busybox", "env", "timeout"];

/// How the names of programs begin that run any program.
const INTERPRETERS: [&str; 8] =
    ["node", "bun", "deno", "python", "ruby", "perl", "electron", "java"];

#[cfg(test)]
mod tests {
    use super::*;

    fn program(executable: &str, script: Option<&str>) -> Program {
        Program { executable: executable.into(), script: script.map(str::to_owned) }
    }

    #[test]
    fn programs_are_kin_by_their_file_their_script_or_their_makers_folder() {
        let claude = program("/h/.local/share/claude/versions/2.1.326", None);
        assert!(claude.is_kin(&program("/h/.local/share/claude/versions/2.1.330", None)));
        assert!(!claude.is_kin(&program("/tmp/versions/2.1.330", None)));
        let gemini = program("/usr/bin/node", Some("/usr/bin/gemini"));
        assert!(gemini.is_kin(&gemini.clone()));
        assert!(!gemini.is_kin(&program("/usr/bin/node", Some("/tmp/forge.js"))));
        assert!(!gemini.is_kin(&program("/usr/bin/nodes", Some("/usr/bin/gemini"))));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_is_seen_with_those_above_it_and_a_dead_one_is_nobody() {
        let own = std::process::id();
        let Some(Caller::Local(above)) = Caller::connected(Some(own)) else { panic!("seen") };
        assert_eq!(above[0].process.pid, own);
        assert!(above.len() > 1, "somebody started us");
        let mut child = std::process::Command::new("true").spawn().expect("started");
        let pid = child.id();
        child.wait().expect("ended");
        assert_eq!(Caller::connected(Some(pid)), None);
        assert_eq!(Caller::connected(Some(0)), Some(Caller::Hidden));
    }
}
