//! Echoes: the same bytes on the same channel within a second are the same signal, sent twice.

use qd_session::moment::Timestamp;

use crate::signal::{Channel, Signal};

/// How far apart the two may come.
const ECHO_MS: u64 = 1_000;

/// How many of the last signals are compared. Doubles come close together.
const SIGNALS_MAX: usize = 64;

#[derive(Debug, Default)]
pub struct Echoes {
    last: Vec<Heard>,
    next: usize,
}

#[derive(Debug)]
struct Heard {
    channel: Channel,
    len: usize,
    hash: u64,
    at: Timestamp,
}

impl Echoes {
    /// True if it was heard a moment ago. Nothing a client says twice in earnest is the same to
    /// the byte: calls, prompts and lines have ids.
    pub fn is_echo(&mut self, signal: &Signal<'_>) -> bool {
        let (channel, len, at) = (signal.channel, signal.payload.len(), signal.at);
        // Two processes may say the same.
        let hash = hash(signal.payload) ^ hash(signal.file.unwrap_or_default().as_bytes());
        let known = self.last.iter().any(|heard| {
            (heard.channel, heard.len, heard.hash) == (channel, len, hash)
                && at.ms_since(heard.at).max(heard.at.ms_since(at)) <= ECHO_MS
        });
        if !known {
            self.note(Heard { channel, len, hash, at });
        }
        known
    }

    fn note(&mut self, heard: Heard) {
        if self.last.len() < SIGNALS_MAX {
            self.last.push(heard);
        } else {
            self.last[self.next] = heard;
            self.next = (self.next + 1) % SIGNALS_MAX;
        }
    }
}

/// FNV-1a: short, and needs no key.
pub fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
