//! The shapes that go over the wire beside the card.

use qd_broker::runtime::Health;
use qd_broker::{Card, Detail, EvidenceLine};
use qd_session::operator::Group;
use qd_session::timeline::{Run, Span};
use qd_session::view::manager::{self, Flags, ManagerState};
use qd_session::view::monitor::MonitorView;
use serde::{Deserialize, Serialize};

/// `GET /api/live/sessions`, and the stream's `snapshot`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionList {
    pub sessions: Vec<Card>,
    pub summary: Summary,
}

/// `GET /api/live/sessions/{id}`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionDetail {
    pub card: Card,
    pub manager_view: ManagerShown,
    pub monitor_view: MonitorView,
    /// The newest first.
    pub evidence: Vec<EvidenceLine>,
    pub runs: Vec<Run>,
    pub groups: Vec<Span>,
}

/// The session in the manager's words, and what its page shows then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagerShown {
    pub state: ManagerState,
    #[serde(flatten)]
    pub flags: Flags,
}

/// `GET /api/live/summary`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    pub needs_you_count: usize,
    pub autonomous_count: usize,
    pub delivered_count: usize,
}

/// `GET /api/health`: who we are and how we are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct About {
    pub version: String,
    pub pid: u32,
    pub port: u16,
    #[serde(flatten)]
    pub health: Health,
}

/// Why something was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    pub code: String,
    pub message: String,
    /// The same request may succeed later.
    pub retryable: bool,
}

impl From<Detail> for SessionDetail {
    fn from(detail: Detail) -> Self {
        let Detail { card, evidence, timeline } = detail;
        let state = manager::of(&card.agent_state);
        let manager_view = ManagerShown { state, flags: state.flags(approves_alone(&card)) };
        Self {
            manager_view,
            monitor_view: card.monitor_view,
            evidence,
            runs: timeline.runs,
            groups: timeline.spans,
            card,
        }
    }
}

/// The client asks nobody, in the words of those that say so.
fn approves_alone(card: &Card) -> bool {
    matches!(card.mode.as_deref(), Some("bypassPermissions" | "yolo" | "never" | "dontAsk"))
}

impl SessionList {
    pub fn of(sessions: Vec<Card>) -> Self {
        let summary = Summary::of(sessions.iter().map(|card| card.agent_state.group));
        Self { sessions, summary }
    }
}

impl Summary {
    pub fn of(groups: impl Iterator<Item = Group>) -> Self {
        let mut summary = Self::default();
        for group in groups {
            match group {
                Group::NeedsYou => summary.needs_you_count += 1,
                Group::Autonomous => summary.autonomous_count += 1,
                Group::Delivered => summary.delivered_count += 1,
            }
        }
        summary
    }
}
