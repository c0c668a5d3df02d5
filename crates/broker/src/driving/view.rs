//! A driven session as a card shows it, and what can be done with it.

use std::sync::Arc;

use qd_harness::Harness;
use qd_session::Session;
use qd_session::decision::RetryTarget;
use qd_session::id::TurnId;
use qd_session::machine::{
    After, Again, AgentError, Batch, Event, Fate, HookLifecycle, Kind, Machine, PauseCause, Ready,
    RetryTimer, RunStatus, State, ToolLifecycle, WayOn, transition,
};
use qd_session::moment::Timestamp;
use qd_session::monitor::RequestKind;
use qd_session::policy::Preset;
use qd_session::seed::Seed;
use serde::Serialize;

use crate::desk::Capabilities;
use crate::driven_answer::CLINE_CANNOT;
use crate::rules::Ruling;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DriveView {
    /// The machine's state, by its name.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub state: Kind,
    pub since: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub model: Option<Arc<str>>,
    /// What happens where no rule says anything, as it is effective: a repository may lower it.
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub preset: Option<Preset>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<serde_json::Value>))]
    pub last_error: Option<AgentError>,
    /// What a retry would repeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<serde_json::Value>))]
    pub retry: Option<RetryTarget>,
    /// Of the batch that is worked on, or was last.
    #[cfg_attr(feature = "schema", schema(value_type = Vec<serde_json::Value>))]
    pub tool_runs: Vec<ToolLifecycle>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<serde_json::Value>))]
    pub hook_run: Option<HookLifecycle>,
}

impl DriveView {
    pub fn of(session: &Session, ruling: &Ruling) -> Option<Self> {
        let machine = session.machine()?;
        let logbook = session.logbook();
        let (last_error, retry) = error_of(machine.state());
        let runs = machine.state().batch().map(Batch::runs).unwrap_or_default();
        Some(Self {
            state: machine.state().kind(),
            since: machine.since(),
            turn_id: machine.state().turn().map(|turn| turn.id.clone()),
            model: logbook.and_then(|logbook| logbook.brief().model.clone()),
            preset: logbook.map(|logbook| ruling.driven_preset(logbook)),
            last_error: last_error.cloned(),
            retry,
            tool_runs: runs.iter().filter_map(|run| run.lifecycle()).collect(),
            hook_run: hook_of(machine),
        })
    }
}

fn hook_of(machine: &Machine) -> Option<HookLifecycle> {
    let (hooks, status) = match machine.state() {
        State::PostToolsHook { hooks, .. } => {
            let began = hooks.started_at.is_some();
            (hooks, if began { RunStatus::Running } else { RunStatus::Queued })
        }
        State::Error { way_on: WayOn::Hook { hooks, .. }, .. } => (hooks, RunStatus::Failed),
        State::Idle
        | State::Starting { .. }
        | State::Ready(_)
        | State::CallingLlm { .. }
        | State::ProcessingResponse { .. }
        | State::AwaitingApproval { .. }
        | State::AwaitingInput { .. }
        | State::ExecutingTools { .. }
        | State::Paused { .. }
        | State::Error { .. }
        | State::Stopping { .. }
        | State::Stopped { .. } => return None,
    };
    Some(hooks.lifecycle(&machine.setup().hooks, status, machine.since(), None))
}

/// The error that stands, and what could be tried again.
fn error_of(state: &State) -> (Option<&AgentError>, Option<RetryTarget>) {
    match state {
        State::Error { error, way_on } => (Some(error), again(way_on)),
        State::Ready(Ready { after: After::Failed { error, again }, owed }) => {
            let target = match again {
                Again::Llm => Some(RetryTarget::Llm),
                Again::Tools { .. } => owed.as_ref().and_then(failed_run),
                Again::Nothing => None,
            };
            (Some(error), target)
        }
        State::Idle
        | State::Starting { .. }
        | State::Ready(_)
        | State::CallingLlm { .. }
        | State::ProcessingResponse { .. }
        | State::AwaitingApproval { .. }
        | State::AwaitingInput { .. }
        | State::ExecutingTools { .. }
        | State::PostToolsHook { .. }
        | State::Paused { .. }
        | State::Stopping { .. }
        | State::Stopped { .. } => (None, None),
    }
}

/// Whether what failed comes again by itself. Who pressed Retry then would race with it.
fn is_retry_due(state: &State) -> bool {
    let State::Error { way_on, .. } = state else { return false };
    match way_on {
        WayOn::Llm { timer, .. } | WayOn::Tools { timer, .. } | WayOn::Hook { timer, .. } => {
            *timer != RetryTimer::None
        }
        WayOn::Harness { .. } => false,
    }
}

const RETRY_DUE: &str = "It is retried automatically in a moment.";
const NOTHING_FAILED: &str = "nothing of it failed that could be tried again";

fn again(way_on: &WayOn) -> Option<RetryTarget> {
    match way_on {
        WayOn::Llm { .. } => Some(RetryTarget::Llm),
        WayOn::Tools { batch, .. } => failed_run(batch),
        WayOn::Hook { hooks, .. } => Some(RetryTarget::Hook { run: hooks.run.clone() }),
        WayOn::Harness { .. } => Some(RetryTarget::Harness),
    }
}

fn failed_run(batch: &Batch) -> Option<RetryTarget> {
    let mut failed = batch.runs().iter().filter(|run| matches!(run.fate, Fate::Failed(_)));
    Some(RetryTarget::Tool { run: failed.next()?.id.clone()? })
}

/// What the machine would take now; each that it would not has a sentence.
pub fn capabilities(harness: Harness, session: &Session, machine: &Machine) -> Capabilities {
    let takes = |event: &Event| {
        transition(machine.setup(), machine.state(), machine.since(), Seed(0), event).is_ok()
    };
    let open = session.open_requests();
    let asks =
        |question: bool| open.iter().any(|open| (open.kind == RequestKind::Question) == question);
    let paused = matches!(machine.state(), State::Paused { .. });
    let (_, retry) = error_of(machine.state());
    let is_due = is_retry_due(machine.state());
    let can_retry = !is_due && retry.is_some_and(|target| takes(&Event::RetryRequested { target }));
    let takes_answers = harness != Harness::Cline;
    let unasked = |why| if takes_answers { why } else { CLINE_CANNOT };
    let mut can = Capabilities {
        can_approve: takes_answers && asks(false),
        can_answer: takes_answers && asks(true),
        can_prompt: takes(&Event::UserInput { text: "".into() }),
        can_interrupt: takes(&Event::InterruptRequested),
        can_stop: takes(&Event::StopRequested),
        can_resume: takes(&Event::ResumeRequested),
        can_yolo: true,
        can_focus: false,
        can_pause: !paused && takes(&Event::PauseRequested { cause: PauseCause::Operator }),
        can_retry,
        ..Capabilities::default()
    };
    let state = format!("it is {:?}", machine.state().kind());
    let lacking = [
        (can.can_approve, "canApprove", unasked("it asks for no approval")),
        (can.can_answer, "canAnswer", unasked("it asks no question")),
        (can.can_prompt, "canPrompt", &state),
        (can.can_interrupt, "canInterrupt", &state),
        (can.can_stop, "canStop", &state),
        (can.can_resume, "canResume", "it is neither paused nor stopped"),
        (can.can_focus, "canFocus", "it is driven from here and in no terminal"),
        (can.can_pause, "canPause", &state),
        (can.can_retry, "canRetry", if is_due { RETRY_DUE } else { NOTHING_FAILED }),
    ];
    for (_, name, why) in lacking.into_iter().filter(|(has, _, _)| !has) {
        can.lacks(name, why);
    }
    can
}
