//! Whether the machine's clock jumped: its time of day beside a clock that only goes forward.
//!
//! The forward clock stands still while the machine sleeps, so a sleep and a clock that was set
//! forward look alike, and mean the same: nobody could be heard for so long.

use std::time::{Duration, Instant};

use qd_session::moment::Timestamp;
use serde::{Deserialize, Serialize};

/// Both clocks as they were last looked at.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    wall: Timestamp,
    steady: Instant,
}

/// How the time of day has jumped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Jump {
    Back { by_ms: u64 },
    Forward { by_ms: u64 },
}

/// The last time that the clock was set back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SetBack {
    /// By the clock as it is now.
    pub at: Timestamp,
    pub by_ms: u64,
}

impl Clock {
    pub fn new(wall: Timestamp, steady: Instant) -> Self {
        Self { wall, steady }
    }

    /// How far the two are apart that were together when they were last looked at.
    pub fn look(&mut self, wall: Timestamp, steady: Instant) -> Option<Jump> {
        let passed = steady.saturating_duration_since(self.steady);
        let passed_ms = u64::try_from(passed.as_millis()).unwrap_or(u64::MAX);
        let expected = self.wall.plus_ms(passed_ms);
        *self = Self { wall, steady };
        let (back_ms, forward_ms) = (expected.ms_since(wall), wall.ms_since(expected));
        if back_ms >= SET_BACK_MIN_MS {
            return Some(Jump::Back { by_ms: back_ms });
        }
        (forward_ms >= SLEPT_MIN_MS).then_some(Jump::Forward { by_ms: forward_ms })
    }
}

/// Less is what a time server corrects now and then; facts are late by no more than that.
pub const SET_BACK_MIN_MS: u64 = 1_000;

/// The shortest silence that tells something is twice as long.
const SLEPT_MIN_MS: u64 = 5_000;

/// How long the doctor tells of a clock that was set back.
pub const SET_BACK_TOLD: Duration = Duration::from_secs(24 * 60 * 60);

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN: Timestamp = Timestamp(1_794_800_000_000);

    /// What is seen when both clocks have gone on like that.
    #[track_caller]
    fn check(wall_ms: i64, steady_ms: u64, expected: Option<Jump>) {
        let steady = Instant::now();
        let mut clock = Clock::new(BEGIN, steady);
        let wall = Timestamp(BEGIN.0.saturating_add_signed(wall_ms));
        let after = steady + Duration::from_millis(steady_ms);
        assert_eq!(clock.look(wall, after), expected);
        assert_eq!(clock.look(wall, after), None, "a jump is told once");
    }

    #[test]
    fn a_jump_is_what_the_steady_clock_does_not_explain() {
        check(600_000, 600_000, None);
        check(0, 0, None);
        check(-900, 0, None);
        check(4_000, 0, None);
        check(-3_600_000, 0, Some(Jump::Back { by_ms: 3_600_000 }));
        check(-3_540_000, 60_000, Some(Jump::Back { by_ms: 3_600_000 }));
        check(28_800_000, 1_000, Some(Jump::Forward { by_ms: 28_799_000 }));
    }
}
