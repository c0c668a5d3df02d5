//! How long a tool that reads files may go on.

use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::answer::Trouble;

#[derive(Debug, Clone)]
pub(super) struct Pace {
    pub cancel: CancellationToken,
    pub deadline: Instant,
}

/// Why a walk stopped before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Halt {
    Canceled,
    TimedOut,
}

impl Pace {
    pub fn look(&self) -> Result<(), Halt> {
        match (self.cancel.is_cancelled(), Instant::now() >= self.deadline) {
            (true, _) => Err(Halt::Canceled),
            (false, true) => Err(Halt::TimedOut),
            (false, false) => Ok(()),
        }
    }
}

impl From<Halt> for Trouble {
    fn from(halt: Halt) -> Self {
        match halt {
            Halt::Canceled => Self::lost("canceled"),
            Halt::TimedOut => Self::mistake("it took longer than its time limit; narrow it down"),
        }
    }
}
