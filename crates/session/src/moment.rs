//! When something happened, and who said so.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Milliseconds since the Unix epoch. Comes in with the event; nothing here asks a clock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Timestamp(pub u64);

impl Timestamp {
    pub const ZERO: Self = Self(0);

    /// Of what is past, nobody knows since when: before anything that a clock has stamped.
    pub const LONG_AGO: Self = Self(1);

    pub fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    pub fn minus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_sub(ms))
    }

    /// How long ago `earlier` was; zero if it is in the future.
    pub fn ms_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0)
    }
}

/// Where a fact came from. The order is that of trust, least first: it breaks ties of time, and
/// nothing else (a newer fact wins over a more trusted one).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum Source {
    #[default]
    Fallback,
    Process,
    Otel,
    /// A transcript or session file. Spelled as the operator's view has always spelled it.
    #[serde(rename = "jsonl")]
    Transcript,
    Hook,
    Registry,
    Driver,
}

/// The time of a fact with what breaks ties: the sender's own counter, then trust.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Stamp {
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub seq: u32,
    pub source: Source,
}

fn is_zero(seq: &u32) -> bool {
    *seq == 0
}

impl Stamp {
    /// Before everything: what has never happened.
    pub const NEVER: Self = Self { at: Timestamp::ZERO, seq: 0, source: Source::Fallback };

    pub fn happened(self) -> bool {
        self != Self::NEVER
    }

    /// The clock that gave it was set back by so much. What never happened stays so.
    pub fn set_back(&mut self, by_ms: u64) {
        if self.happened() {
            self.at = self.at.minus_ms(by_ms);
        }
    }
}
