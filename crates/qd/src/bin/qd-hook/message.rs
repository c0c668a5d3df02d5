//! The frame as it goes over the wire and onto disk: a header line, then the payload.
//!
//! The format's owner is the daemon's `hook_intake`; this is the writing half.

use std::hash::{BuildHasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::ancestry;
use crate::caller::{Caller, Evidence};
use crate::command_line::Hook;
use crate::limits::NAME_BYTES_MAX;
use crate::whose::{self, BASIS};

/// What the agent said, and whether that is all of it.
pub struct Input {
    /// Abridged, where it was too long to be kept.
    pub payload: Vec<u8>,
    /// All of it, where the payload is not and whoever judges it can have it.
    pub whole: Option<Vec<u8>>,
    pub cut: Option<Cut>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    Size,
    Time,
}

#[derive(Clone, Copy)]
pub struct Agent {
    pub pid: u32,
    pub started: Option<u64>,
}

/// Who ran the hook.
pub struct RunBy {
    pub agent: Option<Agent>,
    /// Its name, where it is not the client that the hook was installed for.
    pub other: Option<String>,
}

impl RunBy {
    pub fn of(hook: &Hook, payload: &[u8]) -> Self {
        let nearest = ancestry::nearest();
        let variable = |name: &str| std::env::var(name).ok();
        let evidence = Evidence { payload, variable: &variable, nearest: nearest.as_ref() };
        let (named, other) = match evidence.caller(&hook.harness) {
            Caller::Client { pid } => (pid, None),
            Caller::Other(name) => (None, Some(name)),
        };
        Self { agent: ancestry::agent(named, nearest.as_ref()), other }
    }
}

/// Whether we go on at once or stay for a reply.
#[derive(Clone, Copy)]
pub enum Mode<'a> {
    Send,
    Wait {
        /// How the session was started, in its own word.
        entry: Option<&'a str>,
    },
}

/// When the hook started, by the wall clock. One reading gives the time in milliseconds and, as
/// the counter for hooks of the same millisecond, the nanoseconds in it: processes of one family
/// that start one after the other are in order unless the clock is set back between them.
#[derive(Clone, Copy)]
pub struct Stamp {
    nanoseconds: u64,
}

impl Stamp {
    pub fn now() -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { nanoseconds: u64::try_from(since.as_nanos()).unwrap_or(u64::MAX) }
    }
}

/// One frame, ready to be written.
pub struct Message {
    /// Sorts by time: the stamp's nanoseconds, then a random number, as 32 hexadecimal digits.
    pub id: String,
    /// The same for all hooks of one session.
    pub session_key: u64,
    /// For the daemon.
    pub bytes: Vec<u8>,
    /// For the spool, where that is less: nobody is answered from there.
    abridged: Option<Vec<u8>>,
}

impl Message {
    pub fn new(mode: Mode<'_>, stamp: Stamp, hook: &Hook, run_by: &RunBy, input: Input) -> Self {
        let RunBy { agent, other } = run_by;
        // The hasher's keys come from the system's random numbers.
        let random = RandomState::new().hash_one(std::process::id());
        let id = format!("{:016x}{random:016x}", stamp.nanoseconds);
        let (word, entry) = match mode {
            Mode::Send => ("send", None),
            Mode::Wait { entry } => ("wait", entry),
        };
        let mut header = format!(
            "qd1 {word} id={id} at={} seq={} harness={}",
            stamp.nanoseconds / 1_000_000,
            stamp.nanoseconds % 1_000_000,
            name(&hook.harness),
        );
        if let Some(event) = &hook.event {
            header += &format!(" event={}", name(event));
        }
        if let Some(entry) = entry {
            header += &format!(" entry={}", name(entry));
        }
        if let Some(other) = other {
            header += &format!(" by={}", name(other));
        }
        match agent {
            Some(Agent { pid, started: Some(started) }) => {
                header += &format!(" agent={pid}:{started}")
            }
            Some(Agent { pid, started: None }) => header += &format!(" agent={pid}"),
            None => {}
        }
        let Input { payload, whole, cut } = input;
        let session_key = whose::session_key(&hook.harness, *agent, &payload);
        let abridged = frame(&header, cut, &payload);
        let (bytes, abridged) = match whole {
            Some(whole) => (frame(&header, None, &whole), Some(abridged)),
            None => (abridged, None),
        };
        Self { id, session_key, bytes, abridged }
    }

    /// What is written to the spool.
    pub fn spooled(&self) -> &[u8] {
        self.abridged.as_deref().unwrap_or(&self.bytes)
    }
}

fn frame(header: &str, cut: Option<Cut>, payload: &[u8]) -> Vec<u8> {
    let cut = match cut {
        Some(Cut::Size) => " cut=size",
        Some(Cut::Time) => " cut=time",
        None => "",
    };
    let (sum, len) = (fnv(BASIS, payload), payload.len());
    let mut bytes = format!("{header}{cut} sum={sum:016x} len={len}\n").into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}

/// What may stand in a header: everything else becomes `_`.
fn name(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let name: String =
        text.chars().take(NAME_BYTES_MAX).map(|c| if plain(c) { c } else { '_' }).collect();
    if name.is_empty() { "_".to_owned() } else { name }
}

/// FNV-1a, 64 bits: a checksum, begun or gone on with.
pub fn fnv(sum: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(sum, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}
