//! The frame as it goes over the wire and onto disk: a header line, then the payload.

use std::hash::{BuildHasher, RandomState};
use std::time::{SystemTime, UNIX_EPOCH};

use qd_hook_wire::{Agent, Checksum, Cut, FrameId, Header, plain_name};

use crate::ancestry;
use crate::caller::{Caller, Evidence};
use crate::command_line::Hook;
use crate::whose;

/// What the agent said, and whether that is all of it.
pub struct Input {
    /// Abridged, where it was too long to be kept.
    pub payload: Vec<u8>,
    /// All of it, where the payload is not and whoever judges it can have it.
    pub whole: Option<Vec<u8>>,
    pub cut: Option<Cut>,
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
        let id = FrameId(u128::from(stamp.nanoseconds) << 64 | u128::from(random));
        let (mode, entry) = match mode {
            Mode::Send => (qd_hook_wire::Mode::Send, None),
            Mode::Wait { entry } => (qd_hook_wire::Mode::Wait, entry),
        };
        let Input { payload, whole, cut } = input;
        let header = Header {
            mode,
            id,
            at_ms: stamp.nanoseconds / 1_000_000,
            seq: (stamp.nanoseconds % 1_000_000) as u32,
            harness: plain_name(&hook.harness),
            event: hook.event.as_deref().map(plain_name),
            entry: entry.map(plain_name),
            agent: *agent,
            by: other.as_deref().map(plain_name),
            cut,
            sum: Checksum::default(),
            len: 0,
        };
        let session_key = whose::session_key(&hook.harness, *agent, &payload);
        let abridged = frame(&header, &payload);
        let (bytes, abridged) = match whole {
            Some(whole) => (frame(&Header { cut: None, ..header }, &whole), Some(abridged)),
            None => (abridged, None),
        };
        Self { id: id.to_string(), session_key, bytes, abridged }
    }

    /// What is written to the spool.
    pub fn spooled(&self) -> &[u8] {
        self.abridged.as_deref().unwrap_or(&self.bytes)
    }
}

fn frame(header: &Header, payload: &[u8]) -> Vec<u8> {
    let (sum, len) = (Checksum::of(payload), payload.len() as u64);
    let mut bytes = Header { sum, len, ..header.clone() }.line().into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}
