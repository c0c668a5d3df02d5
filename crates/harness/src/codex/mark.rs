//! When a signal's facts happened, and who said so.

use qd_session::moment::{Source, Timestamp};

use crate::signal::Signal;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    pub at: Timestamp,
    pub seq: u32,
    pub source: Source,
    /// When we heard of it. Silence is counted from here: history is read long after it happened,
    /// and what follows it comes in the same breath.
    pub arrived: Timestamp,
}

impl Mark {
    /// A fact of the moment the signal came.
    pub fn arrival(signal: &Signal<'_>) -> Self {
        Self { at: signal.at, seq: signal.seq, source: signal.channel.source(), arrived: signal.at }
    }

    /// The same with the sender's own time, unless that lies in the future.
    pub fn told(signal: &Signal<'_>, at: Option<Timestamp>) -> Self {
        let arrival = Self::arrival(signal);
        Self { at: at.filter(|at| *at <= signal.at).unwrap_or(signal.at), ..arrival }
    }

    /// When so much silence will have passed.
    pub fn due(self, silence_ms: u64) -> Timestamp {
        self.arrived.plus_ms(silence_ms)
    }

    /// What follows from it in the same moment.
    pub fn then(self) -> Self {
        Self { seq: self.seq.saturating_add(1), ..self }
    }

    pub fn is_before(self, other: Self) -> bool {
        (self.at, self.seq) < (other.at, other.seq)
    }

    /// The same, but not before what it followed.
    pub fn not_before(self, earlier: Option<Self>) -> Self {
        match earlier {
            Some(earlier) if !earlier.is_before(self) => {
                Self { at: earlier.at, seq: earlier.seq.saturating_add(1), ..self }
            }
            Some(_) | None => self,
        }
    }

    /// What must have happened before it, and was not heard: a moment earlier, so that it does
    /// not settle the very fact that proves it.
    pub fn before(self) -> Self {
        Self { at: Timestamp(self.at.0.saturating_sub(1)), ..self }
    }
}
