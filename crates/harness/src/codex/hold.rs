//! Signals of strangers, kept until we know who they are.

use std::sync::Arc;

use qd_session::moment::Timestamp;

use crate::signal::{Channel, Direction, Signal};

/// How long a stranger has to be introduced. Subagents and titles are, within some 30 ms; what
/// nobody introduces by then is a session that somebody else started.
pub const STRANGER_MS: u64 = 250;

/// Most signals held, and most bytes. More than this in a quarter of a second is no introduction.
const HELD_MAX: usize = 256;
const HELD_BYTES_MAX: usize = 1 << 20;

/// Whose signal it is, as far as that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stranger {
    Thread(Arc<str>),
    /// A session file that has not yet said whose it is.
    File(Arc<str>),
}

#[derive(Debug)]
pub struct Held {
    pub stranger: Stranger,
    at: Timestamp,
    seq: u32,
    channel: Channel,
    direction: Direction,
    file: Option<Arc<str>>,
    payload: Vec<u8>,
}

#[derive(Debug, Default)]
pub struct Hold {
    held: Vec<Held>,
    bytes: usize,
}

impl Held {
    pub fn signal(&self) -> Signal<'_> {
        Signal {
            at: self.at,
            seq: self.seq,
            channel: self.channel,
            direction: self.direction,
            file: self.file.as_deref(),
            payload: &self.payload,
        }
    }
}

impl Hold {
    /// False when there is no room for it.
    pub fn keep(&mut self, stranger: Stranger, signal: &Signal<'_>) -> bool {
        let full = self.held.len() == HELD_MAX
            || self.bytes.saturating_add(signal.payload.len()) > HELD_BYTES_MAX;
        if full {
            return false;
        }
        self.bytes += signal.payload.len();
        self.held.push(Held {
            stranger,
            at: signal.at,
            seq: signal.seq,
            channel: signal.channel,
            direction: signal.direction,
            file: signal.file.map(Arc::from),
            payload: signal.payload.to_vec(),
        });
        true
    }

    /// Takes what was kept of one stranger, in the order it came.
    pub fn release(&mut self, stranger: &Stranger) -> Vec<Held> {
        let held = std::mem::take(&mut self.held);
        let (released, kept) = held.into_iter().partition(|held| held.stranger == *stranger);
        self.held = kept;
        self.bytes = self.held.iter().map(|held| held.payload.len()).sum();
        released
    }

    /// Whether nothing of a stranger is heard but whether it is at work. The app-server says that of
    /// every thread it has loaded, those that Codex hides among them, which ask nobody; whoever is
    /// somebody's is told of by its hooks, its file or the server's own description, too.
    pub fn is_only_status(&self, thread: &str) -> bool {
        let its = |held: &&Held| matches!(&held.stranger, Stranger::Thread(id) if **id == *thread);
        let says = |held: &Held, words: &[u8]| memchr::memmem::find(&held.payload, words).is_some();
        self.held.iter().filter(its).all(|held| {
            held.channel == Channel::AppServer
                && says(held, b"\"thread/status/changed\"")
                && !says(held, b"\"waitingOn")
        })
    }

    /// When the patience with the first strange thread ends. Files have no such end: a line that
    /// nobody can place names no session.
    pub fn next_timeout(&self) -> Option<Timestamp> {
        let threads = self.held.iter().filter(|held| matches!(held.stranger, Stranger::Thread(_)));
        threads.map(|held| held.at.plus_ms(STRANGER_MS)).min()
    }

    pub fn overdue(&self, now: Timestamp) -> Vec<Arc<str>> {
        let mut overdue = Vec::new();
        for held in &self.held {
            if let Stranger::Thread(id) = &held.stranger
                && held.at.plus_ms(STRANGER_MS) <= now
                && !overdue.contains(id)
            {
                overdue.push(id.clone());
            }
        }
        overdue
    }
}
