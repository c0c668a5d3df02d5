//! States in which something went wrong or comes to its end: Error, Stopping, Stopped.

use super::action::Action;
use super::batch::Batch;
use super::change::{AgentError, Reason};
use super::event::Event;
use super::flow;
use super::letting_go::{let_go, stop, stop_timer};
use super::state::{After, Next, Ready, State, Turn, WayOn};
use super::step::{Answer, Declined, Draft, Process, Tools};
use super::timer::{StopPhase, Timer};
use super::waiting::harness_exited;
use crate::decision::RetryTarget;

pub(super) fn error(
    draft: Draft<'_>,
    state: &State,
    error: &AgentError,
    way_on: &WayOn,
    event: &Event,
) -> Answer {
    match event {
        Event::TimerFired { .. } => retry_due(draft, error, way_on),
        Event::RetryRequested { target } => retry(draft, way_on, target),
        Event::UserInput { text } => {
            if matches!(way_on, WayOn::Harness { .. }) {
                return Err(Declined::Refused);
            }
            // The failed batch is dropped: the model hears how each call ended.
            let (draft, owed) = let_go(free_held(draft, way_on), state);
            flow::call_llm(draft, Reason::UserInput, None, owed.as_ref(), Some(text.clone()))
        }
        Event::PauseRequested { cause } => {
            let draft = flow::hold_retry(draft, way_on);
            let then = Next::Retry { error: error.clone(), way_on: way_on.clone() };
            flow::pause(draft, *cause, then)
        }
        Event::InterruptRequested => {
            if matches!(way_on, WayOn::Harness { .. }) {
                return Err(Declined::Refused);
            }
            let (draft, owed) = let_go(free_held(draft, way_on), state);
            let ready = Ready { after: After::Interrupted, owed };
            draft.enter(State::Ready(ready), Reason::Interrupted).done()
        }
        Event::StopRequested => stop(draft, Reason::StopRequested, state),
        Event::HarnessExited { .. }
            if draft.setup.process == Process::OneTurn
                || matches!(way_on, WayOn::Harness { .. }) =>
        {
            Err(Declined::Stale)
        }
        Event::HarnessExited { code, why } => harness_exited(draft, state, *code, why.as_ref()),
        // Timers did not survive the crash.
        Event::Restarted => {
            let timer = flow::retry_timer(way_on);
            timer.into_iter().fold(draft, Draft::act).stay(state.clone())
        }
        Event::YoloSwitched { .. } | Event::HarnessReady => draft.stay(state.clone()),
        Event::Spawned
        | Event::ApprovalDecided { .. }
        | Event::InputGiven { .. }
        | Event::ResumeRequested
        | Event::StreamDelta { .. }
        | Event::StreamCompleted { .. }
        | Event::StreamFailed { .. }
        | Event::ResponseParsed { .. }
        | Event::ToolReported { .. }
        | Event::ToolEnded { .. }
        | Event::ApprovalAsked { .. }
        | Event::QuestionAsked { .. }
        | Event::RequestWithdrawn { .. }
        | Event::BatchHeld { .. }
        | Event::ToolStarted { .. }
        | Event::ToolFinished { .. }
        | Event::HookStarted { .. }
        | Event::HookFinished { .. } => Err(Declined::Refused),
    }
}

/// An agent that is still held behind its failed hook gives up its turn before it is let go.
fn free_held<'a>(draft: Draft<'a>, way_on: &WayOn) -> Draft<'a> {
    match way_on {
        WayOn::Hook { turn, .. } if draft.setup.tools == Tools::TheirsHeld => draft
            .act(Action::InterruptHarness { turn: turn.id.clone() })
            .act(Action::ReleaseHarness),
        WayOn::Hook { .. } | WayOn::Llm { .. } | WayOn::Tools { .. } | WayOn::Harness { .. } => {
            draft
        }
    }
}

/// What failed is due again. A boundary: a pause that was asked for is taken here.
fn retry_due(draft: Draft<'_>, error: &AgentError, way_on: &WayOn) -> Answer {
    if let Some(cause) = way_on.turn().and_then(|turn| turn.pause) {
        let then = Next::Retry { error: error.clone(), way_on: without_pause(way_on) };
        return flow::pause(draft, cause, then);
    }
    let reason = Reason::RetryDue;
    match way_on {
        WayOn::Llm { turn, .. } => flow::call_llm_again(draft, reason, turn),
        WayOn::Tools { turn, batch, .. } => {
            let mut batch = batch.clone();
            let tools = batch.order_failed(draft.seed);
            draft
                .enter(State::ExecutingTools { turn: turn.clone(), batch }, reason)
                .then(Action::ExecuteTools { tools })
                .done()
        }
        WayOn::Hook { turn, batch, hooks, .. } => {
            let hooks = hooks.again(draft.seed);
            flow::run_hook(draft, reason, turn.clone(), batch.clone(), hooks)
        }
        WayOn::Harness { .. } => Err(Declined::Stale),
    }
}

fn without_pause(way_on: &WayOn) -> WayOn {
    let mut way_on = way_on.clone();
    match &mut way_on {
        WayOn::Llm { turn, .. } | WayOn::Tools { turn, .. } | WayOn::Hook { turn, .. } => {
            turn.pause = None;
        }
        WayOn::Harness { .. } => {}
    }
    way_on
}

/// The operator repeats it by hand: a new series of tries.
fn retry(draft: Draft<'_>, way_on: &WayOn, target: &RetryTarget) -> Answer {
    let reason = Reason::RetryRequested;
    match (way_on, target) {
        (WayOn::Llm { turn, .. }, RetryTarget::Llm) => {
            let draft = flow::hold_retry(draft, way_on);
            flow::call_llm_again(draft, reason, &Turn { attempt: 0, ..turn.clone() })
        }
        (WayOn::Tools { turn, batch, .. }, RetryTarget::Tool { run })
            if batch.run(run).is_some() =>
        {
            let draft = flow::hold_retry(draft, way_on);
            let mut batch = batch.clone();
            let tools = batch.order_failed_anew(draft.seed);
            draft
                .enter(State::ExecutingTools { turn: turn.clone(), batch }, reason)
                .then(Action::ExecuteTools { tools })
                .done()
        }
        (WayOn::Hook { turn, batch, hooks, .. }, RetryTarget::Hook { run })
            if hooks.run == *run =>
        {
            let draft = flow::hold_retry(draft, way_on);
            let hooks = hooks.anew(draft.seed);
            flow::run_hook(draft, reason, turn.clone(), batch.clone(), hooks)
        }
        (WayOn::Harness { owed }, RetryTarget::Harness) => draft
            .enter(State::Starting { owed: owed.clone() }, reason)
            .then(Action::StartHarness)
            .done(),
        (
            WayOn::Llm { .. } | WayOn::Tools { .. } | WayOn::Hook { .. } | WayOn::Harness { .. },
            _,
        ) => Err(Declined::Refused),
    }
}

pub(super) fn stopping(
    draft: Draft<'_>,
    phase: StopPhase,
    owed: Option<&Batch>,
    event: &Event,
) -> Answer {
    let owed = owed.cloned();
    match event {
        Event::HarnessExited { code, .. } => {
            let timer = Timer::Stop { phase };
            let stopped = State::Stopped { exit_code: *code, owed };
            draft.act(Action::CancelTimer { timer }).enter(stopped, Reason::HarnessExited).done()
        }
        Event::TimerFired { .. } => match phase {
            StopPhase::Asked => {
                let phase = StopPhase::Killed;
                draft
                    .act(Action::KillHarness)
                    .act(stop_timer(phase))
                    .stay(State::Stopping { phase, owed })
            }
            // Killed, and nobody reported its end: it is over for us.
            StopPhase::Killed => {
                draft.enter(State::Stopped { exit_code: None, owed }, Reason::TimedOut).done()
            }
        },
        Event::Restarted => draft
            .act(Action::StopHarness)
            .act(stop_timer(phase))
            .stay(State::Stopping { phase, owed }),
        // A second stop is a no-op.
        Event::StopRequested | Event::YoloSwitched { .. } | Event::HarnessReady => {
            draft.stay(State::Stopping { phase, owed })
        }
        Event::Spawned
        | Event::UserInput { .. }
        | Event::ApprovalDecided { .. }
        | Event::InputGiven { .. }
        | Event::RetryRequested { .. }
        | Event::PauseRequested { .. }
        | Event::ResumeRequested
        | Event::InterruptRequested
        | Event::StreamDelta { .. }
        | Event::StreamCompleted { .. }
        | Event::StreamFailed { .. }
        | Event::ResponseParsed { .. }
        | Event::ToolReported { .. }
        | Event::ToolEnded { .. }
        | Event::ApprovalAsked { .. }
        | Event::QuestionAsked { .. }
        | Event::RequestWithdrawn { .. }
        | Event::BatchHeld { .. }
        | Event::ToolStarted { .. }
        | Event::ToolFinished { .. }
        | Event::HookStarted { .. }
        | Event::HookFinished { .. } => Err(Declined::Refused),
    }
}

pub(super) fn stopped(
    draft: Draft<'_>,
    exit_code: Option<i32>,
    owed: Option<&Batch>,
    event: &Event,
) -> Answer {
    let owed = owed.cloned();
    match event {
        Event::ResumeRequested => {
            draft.enter(State::Starting { owed }, Reason::Resumed).then(Action::StartHarness).done()
        }
        // The end of a process whose end was known, or given up on.
        Event::HarnessExited { .. } => Err(Declined::Stale),
        Event::Restarted | Event::YoloSwitched { .. } => {
            draft.stay(State::Stopped { exit_code, owed })
        }
        Event::Spawned
        | Event::UserInput { .. }
        | Event::ApprovalDecided { .. }
        | Event::InputGiven { .. }
        | Event::RetryRequested { .. }
        | Event::PauseRequested { .. }
        | Event::InterruptRequested
        | Event::StopRequested
        | Event::HarnessReady
        | Event::StreamDelta { .. }
        | Event::StreamCompleted { .. }
        | Event::StreamFailed { .. }
        | Event::ResponseParsed { .. }
        | Event::ToolReported { .. }
        | Event::ToolEnded { .. }
        | Event::ApprovalAsked { .. }
        | Event::QuestionAsked { .. }
        | Event::RequestWithdrawn { .. }
        | Event::BatchHeld { .. }
        | Event::ToolStarted { .. }
        | Event::ToolFinished { .. }
        | Event::HookStarted { .. }
        | Event::HookFinished { .. }
        | Event::TimerFired { .. } => Err(Declined::Refused),
    }
}
