//! What a session's file says beside its responses.

use qd_session::moment::Timestamp;
use serde::{Deserialize, Serialize};

use super::Limit;

/// As it was told last.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Standing {
    /// How many tokens fit into its context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<Limit>,
    /// When the limits were told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits_at: Option<Timestamp>,
}

impl Standing {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub fn limited(&mut self, at: Option<Timestamp>, limits: Vec<Limit>) {
        if !limits.is_empty() {
            (self.limits, self.limits_at) = (limits, at);
        }
    }

    /// Another file of the same session: what it told later counts.
    pub fn join(&mut self, other: &Self) {
        self.context_window = self.context_window.or(other.context_window);
        if other.limits_at > self.limits_at {
            self.limited(other.limits_at, other.limits.clone());
        }
    }
}
