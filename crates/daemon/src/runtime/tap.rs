//! Raw signals as they are taken in, for those who record them.
//!
//! What comes out here was not understood yet and may not be in the journal: it is evidence, and
//! nothing is shown because of it.

use std::sync::Arc;

use qd_harness::{Channel, Direction, Harness, Signal};
use qd_session::moment::Timestamp;
use tokio::sync::broadcast;

/// Raw signals kept for those who record them and read slowly; what they miss is counted.
const TAPPED_SIGNALS_KEPT: usize = 64;

/// Longest payload that a recorder is given. With the number kept it bounds what a slow one can
/// hold: 64 MiB. Transcript lines may be longer; such a one is counted as missed.
const TAPPED_BYTES_MAX: usize = 1 << 20;

/// A signal with all that belongs to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawSignal {
    pub harness: Harness,
    pub at: Timestamp,
    pub seq: u32,
    pub channel: Channel,
    pub direction: Direction,
    pub file: Option<String>,
    pub payload: Vec<u8>,
}

impl RawSignal {
    fn of(harness: Harness, signal: &Signal<'_>) -> Self {
        let Signal { at, seq, channel, direction, file, payload } = *signal;
        let (file, payload) = (file.map(str::to_owned), payload.to_vec());
        Self { harness, at, seq, channel, direction, file, payload }
    }

    /// As a handler takes it.
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

/// What a recorder gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tapped {
    Signal(RawSignal),
    /// One that was too long to be kept.
    TooLong,
}

/// Where recorders listen. Costs nothing while nobody does.
#[derive(Debug)]
pub struct Tap {
    listeners: broadcast::Sender<Arc<Tapped>>,
}

impl Default for Tap {
    fn default() -> Self {
        Self { listeners: broadcast::channel(TAPPED_SIGNALS_KEPT).0 }
    }
}

impl Tap {
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<Tapped>> {
        self.listeners.subscribe()
    }

    pub fn tell(&self, harness: Harness, signal: &Signal<'_>) {
        if self.listeners.receiver_count() == 0 {
            return;
        }
        let tapped = match signal.payload.len() <= TAPPED_BYTES_MAX {
            true => Tapped::Signal(RawSignal::of(harness, signal)),
            false => Tapped::TooLong,
        };
        // The last listener may have gone just now.
        let _ = self.listeners.send(Arc::new(tapped));
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::broadcast::error::TryRecvError;

    use super::*;

    fn signal(payload: &[u8]) -> Signal<'_> {
        Signal {
            at: Timestamp(7),
            seq: 3,
            channel: Channel::Transcript,
            direction: Direction::ToAgent,
            file: Some("f"),
            payload,
        }
    }

    #[test]
    fn a_listener_gets_signals_whole_and_hears_of_those_too_long() {
        let tap = Tap::default();
        tap.tell(Harness::Codex, &signal(b"before"));
        let mut listener = tap.subscribe();
        tap.tell(Harness::Codex, &signal(b"{}"));
        tap.tell(Harness::Codex, &signal(&vec![b' '; TAPPED_BYTES_MAX + 1]));
        let Tapped::Signal(heard) = &*listener.try_recv().expect("the first after") else {
            panic!("it is short");
        };
        assert_eq!(format!("{:?}", heard.signal()), format!("{:?}", signal(b"{}")));
        assert_eq!(*listener.try_recv().expect("the second"), Tapped::TooLong);
        assert_eq!(listener.try_recv(), Err(TryRecvError::Empty));
    }

    #[test]
    fn a_slow_listener_learns_how_many_it_missed() {
        let tap = Tap::default();
        let mut listener = tap.subscribe();
        for _ in 0..TAPPED_SIGNALS_KEPT + 5 {
            tap.tell(Harness::Codex, &signal(b"{}"));
        }
        assert_eq!(listener.try_recv(), Err(TryRecvError::Lagged(5)));
    }
}
