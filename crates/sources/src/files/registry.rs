//! A registry file: which process holds which session.

use std::io::{self, Read};
use std::path::Path;

use qd_harness::Harness;
use qd_host::processes::Process;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::tail::{Seen, open};

/// Longest registry file. Real ones have less than a thousand bytes.
pub const REGISTRY_BYTES_MAX: u64 = 64 << 10;

/// What is needed of it to know when the session ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registered {
    pub harness: Harness,
    pub session: String,
    /// None where it cannot be observed: the file names none, or one of another machine or
    /// container that shares this home.
    pub process: Option<Process>,
    /// As the client spelled them.
    pid: Option<u32>,
    start: Option<Value>,
    domain: Domain,
}

/// Where the pid of a registry file is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Domain {
    Ours,
    /// Another machine or container that shares this home.
    Foreign,
    /// The client does not say.
    Unknown,
}

/// How a process left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Departure {
    /// It took its file away first.
    Tidy,
    /// Its file is still there: it was killed.
    Sudden,
}

impl Registered {
    /// Only the client's own goodbye, the removal of its file, tells the end of this one.
    pub fn is_foreign(&self) -> bool {
        self.domain == Domain::Foreign
    }

    /// Its process would be seen here if it lived.
    pub fn is_gone(&self) -> bool {
        let is_alive = self.process.is_some_and(|process| process.is_alive());
        self.domain == Domain::Ours && !is_alive
    }

    /// What a process watcher says of it.
    pub fn exited(&self, departure: Departure) -> Vec<u8> {
        let mut signal = json!({ "sessionId": self.session, "exited": true });
        if departure == Departure::Tidy {
            signal["removed"] = true.into();
        }
        if let Some(pid) = self.pid {
            signal["pid"] = pid.into();
        }
        if let Some(start) = &self.start {
            signal["procStart"] = start.clone();
        }
        signal.to_string().into_bytes()
    }
}

/// What a registry file has in it.
#[derive(Debug)]
pub enum Contents {
    Whole {
        bytes: Vec<u8>,
        seen: Seen,
        registered: Registered,
    },
    /// It is being written.
    Half,
    Illegible,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    session_id: String,
    pid: Option<u32>,
    proc_start: Option<Value>,
    pid_domain: Option<String>,
}

pub fn read(harness: Harness, path: &Path) -> io::Result<Contents> {
    let (file, seen) = open(path)?;
    let mut bytes = Vec::new();
    file.take(REGISTRY_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > REGISTRY_BYTES_MAX {
        return Ok(Contents::Illegible);
    }
    Ok(match serde_json::from_slice::<Wire>(&bytes) {
        Ok(wire) => {
            let domain = match &wire.pid_domain {
                Some(domain) if *domain == pid_domain() => Domain::Ours,
                Some(_) => Domain::Foreign,
                None => Domain::Unknown,
            };
            let process = process(&wire).filter(|_| domain != Domain::Foreign);
            let Wire { session_id: session, pid, proc_start: start, .. } = wire;
            let registered = Registered { harness, session, process, pid, start, domain };
            Contents::Whole { bytes, seen, registered }
        }
        Err(error) if error.is_eof() => Contents::Half,
        Err(_) => Contents::Illegible,
    })
}

/// Without a start time we can read, it is whoever has the pid now.
fn process(wire: &Wire) -> Option<Process> {
    let pid = wire.pid?;
    let start = match &wire.proc_start {
        Some(Value::String(start)) => start.parse().ok(),
        Some(Value::Number(start)) => start.as_u64(),
        _ => None,
    };
    match start {
        Some(start) => Some(Process { pid, start }),
        None => Process::with_pid(pid),
    }
}

/// Where our pids are valid, as Claude Code 2.1 spells it: a machine and a pid namespace.
#[cfg(target_os = "linux")]
fn pid_domain() -> String {
    let machine = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let space = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("linux:{}:{}", machine.trim(), space.display())
}

#[cfg(not(target_os = "linux"))]
fn pid_domain() -> String {
    "linux".to_owned()
}

/// What the supervisor of a background session says of it: whose session, and in which state. The
/// file has more, prompts and settings among it, which goes nowhere. None while it is being written.
pub fn read_job(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    open(path)?.0.take(REGISTRY_BYTES_MAX).read_to_end(&mut bytes)?;
    let job = serde_json::from_slice::<Job>(&bytes).ok();
    Ok(job.map(|Job { session_id, state }| {
        json!({ "sessionId": session_id, "state": state }).to_string().into_bytes()
    }))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Job {
    session_id: String,
    state: String,
}
