//! The id of a frame.

use std::fmt;
use std::hash::BuildHasher;
use std::time::Duration;

/// Unique, and ordered by time: nanoseconds since the Unix epoch, then a random number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub u128);

impl FrameId {
    pub fn parse(text: &str) -> Option<Self> {
        let plain =
            text.len() == 32 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        plain.then(|| u128::from_str_radix(text, 16).ok()).flatten().map(Self)
    }

    /// For a frame that is made here, at this time since the Unix epoch.
    pub fn fresh(now: Duration) -> Self {
        // A hasher is seeded at random once, and differently each time after that.
        let random = std::hash::RandomState::new().hash_one(now);
        Self(u128::from(now.as_nanos() as u64) << 64 | u128::from(random))
    }

    /// When the frame was made, in milliseconds since the Unix epoch.
    pub fn at_ms(self) -> u64 {
        let nanoseconds = (self.0 >> 64) as u64;
        nanoseconds / 1_000_000
    }
}

impl fmt::Display for FrameId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for FrameId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
