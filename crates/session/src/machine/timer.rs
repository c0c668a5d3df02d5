//! Timers: actions that come back as events and say what they are for.

use serde::{Deserialize, Serialize};

use crate::id::TurnId;

/// What a timer is for. Starting one that is equal to a running one restarts it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "for", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Timer {
    /// The model's stream has said nothing.
    LlmSilence { turn: TurnId },
    /// What failed is due again.
    Retry { turn: TurnId, attempt: u8 },
    /// An agent that runs its own tools was interrupted and has not said so.
    Interrupt { turn: TurnId },
    /// The harness was asked to stop, or was killed, and has not exited.
    Stop { phase: StopPhase },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopPhase {
    Asked,
    Killed,
}

impl Timer {
    pub fn turn(&self) -> Option<&TurnId> {
        match self {
            Self::LlmSilence { turn } | Self::Retry { turn, .. } | Self::Interrupt { turn } => {
                Some(turn)
            }
            Self::Stop { .. } => None,
        }
    }
}
