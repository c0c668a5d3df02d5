//! The monitor view: a session in the words of the seed's agent monitor.
//!
//! `initialized`, `idle`, `active` with what it is active at, `exited`; and permission split into
//! being reviewed and waiting for a person.

use serde::{Deserialize, Serialize};

use crate::machine::{Fate, Machine, RetryTimer, Run, State};
use crate::monitor::{Activity, Life, Monitor, RequestKind, Stage};
use crate::policy::is_plan;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "state", content = "subState", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum MonitorView {
    /// Nothing but its existence is known.
    Initialized,
    Idle,
    Active(Active),
    Exited,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum Active {
    Thinking,
    ToolUse,
    /// A rule or another hook may still decide.
    PermissionUnderReview,
    WaitingForPermission,
    Compacting,
}

/// The view of a session that we drive: its machine knows, whatever its client's signals say.
pub fn view_driven(machine: &Machine) -> MonitorView {
    match machine.state() {
        State::Idle | State::Starting { .. } => MonitorView::Initialized,
        State::CallingLlm { .. } | State::ProcessingResponse { .. } => {
            MonitorView::Active(Active::Thinking)
        }
        State::AwaitingApproval { batch, .. } => {
            let asks = |run: &Run| run.fate == Fate::Undecided && !is_plan(run.call.name.as_str());
            MonitorView::Active(match batch.runs().iter().any(asks) {
                true => Active::WaitingForPermission,
                false => Active::ToolUse,
            })
        }
        State::AwaitingInput { .. }
        | State::ExecutingTools { .. }
        | State::PostToolsHook { .. } => MonitorView::Active(Active::ToolUse),
        State::Error { way_on, .. } => match way_on.timer() {
            RetryTimer::Running { .. } => MonitorView::Active(Active::Thinking),
            RetryTimer::None => MonitorView::Idle,
        },
        State::Ready(_) | State::Paused { .. } | State::Stopping { .. } => MonitorView::Idle,
        State::Stopped { .. } => MonitorView::Exited,
    }
}

/// The view of a session that somebody else started. A question or a plan that is open is a tool in
/// use: the seed's monitor has no word for it.
pub fn view(monitor: &Monitor) -> MonitorView {
    if matches!(monitor.life(), Life::Ended { .. }) {
        return MonitorView::Exited;
    }
    let permission = monitor
        .open_requests()
        .filter(|request| request.kind == RequestKind::Permission)
        .map(|request| request.stage)
        .max();
    match permission {
        Some(Stage::Waiting) => return MonitorView::Active(Active::WaitingForPermission),
        Some(Stage::UnderReview) => return MonitorView::Active(Active::PermissionUnderReview),
        None => {}
    }
    if monitor.open_requests().next().is_some() {
        return MonitorView::Active(Active::ToolUse);
    }
    match monitor.activity() {
        Activity::Starting if monitor.last_start().happened() => MonitorView::Idle,
        Activity::Starting | Activity::Ended => MonitorView::Initialized,
        Activity::Thinking | Activity::Retrying(_) => MonitorView::Active(Active::Thinking),
        Activity::Acting(_) => MonitorView::Active(Active::ToolUse),
        Activity::Compacting => MonitorView::Active(Active::Compacting),
        Activity::Idle(_) => MonitorView::Idle,
    }
}
