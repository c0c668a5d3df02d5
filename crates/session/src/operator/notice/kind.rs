//! What a notice is about. The operator chooses which kinds are told.

use serde::{Deserialize, Serialize};

use crate::monitor::RequestKind;
use crate::operator::{AgentState, Group, SubState};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum Kind {
    Permission,
    /// It asked, with a dialog or with the last words of its turn.
    Question,
    Plan,
    Error,
    /// A limit of the provider or of the operator.
    Limit,
    /// It stopped in the middle of work, or for a reason that has no kind of its own.
    Idle,
    Delivered,
}

impl Kind {
    pub const ALL: [Self; 7] = [
        Self::Permission,
        Self::Question,
        Self::Plan,
        Self::Error,
        Self::Limit,
        Self::Idle,
        Self::Delivered,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Permission => "permission",
            Self::Question => "question",
            Self::Plan => "plan",
            Self::Error => "error",
            Self::Limit => "limit",
            Self::Idle => "idle",
            Self::Delivered => "delivered",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    pub fn of_request(kind: RequestKind) -> Self {
        match kind {
            RequestKind::Permission => Self::Permission,
            RequestKind::Question => Self::Question,
            RequestKind::Plan => Self::Plan,
        }
    }

    /// What a session's state alone is worth; none while it works, where it ended, where the
    /// operator themself interrupted or stopped it, and where they dismissed it.
    pub fn of_state(state: &AgentState) -> Option<Self> {
        match state.group {
            Group::NeedsYou => Self::of_need(&state.state),
            Group::Autonomous => None,
            Group::Delivered => (state.state == SubState::TASK_COMPLETE).then_some(Self::Delivered),
        }
    }

    fn of_need(state: &SubState) -> Option<Self> {
        const ERRORS: [SubState; 3] =
            [SubState::ERROR, SubState::AUTH_ERROR, SubState::SERVER_ERROR];
        const LIMITS: [SubState; 2] = [SubState::USAGE_LIMIT, SubState::BUDGET_EXCEEDED];
        if [SubState::INTERRUPTED, SubState::STOPPED].contains(state) {
            None
        } else if *state == SubState::NEEDS_PERMISSION {
            Some(Self::Permission)
        } else if *state == SubState::AWAITING_INPUT {
            Some(Self::Question)
        } else if *state == SubState::AWAITING_APPROVAL {
            Some(Self::Plan)
        } else if ERRORS.contains(state) {
            Some(Self::Error)
        } else if LIMITS.contains(state) {
            Some(Self::Limit)
        } else {
            // `idle`, `paused`, and what others will add because it matters.
            Some(Self::Idle)
        }
    }
}
