//! The one function that changes a driven session's state. Total over state × event.
//!
//! It borrows the old state, so a refused event leaves it as it was. What is stale is sorted out
//! first: behind that, a state only sees events of its own turn, its own runs, its own timers.

use super::event::Event;
use super::state::{State, WayOn};
use super::step::{Answer, Declined, Draft, Setup};
use super::timer::Timer;
use super::{trouble, turn, waiting, work};
use crate::moment::Timestamp;
use crate::seed::Seed;

pub fn transition(
    setup: &Setup,
    state: &State,
    at: Timestamp,
    seed: Seed,
    event: &Event,
) -> Answer {
    if is_stale(state, event) {
        return Err(Declined::Stale);
    }
    let draft = Draft::new(setup, state.kind(), at, seed);
    match state {
        State::Idle => waiting::idle(draft, event),
        State::Starting { owed } => waiting::starting(draft, state, owed.as_ref(), event),
        State::Ready(ready) => waiting::ready(draft, state, ready, event),
        State::CallingLlm { turn } => turn::calling_llm(draft, state, turn, event),
        State::ProcessingResponse { turn, said } => {
            turn::processing_response(draft, state, turn, said, event)
        }
        State::AwaitingApproval { turn, batch } => {
            turn::awaiting_approval(draft, state, turn, batch, event)
        }
        State::AwaitingInput { turn, batch } => {
            turn::awaiting_input(draft, state, turn, batch, event)
        }
        State::ExecutingTools { turn, batch } => {
            work::executing_tools(draft, state, turn, batch, event)
        }
        State::PostToolsHook { turn, batch, hooks } => {
            work::post_tools_hook(draft, state, turn, batch, hooks, event)
        }
        State::Paused { then, .. } => waiting::paused(draft, state, then, event),
        State::Error { error, way_on } => trouble::error(draft, state, error, way_on, event),
        State::Stopping { phase, owed } => trouble::stopping(draft, *phase, owed.as_ref(), event),
        State::Stopped { exit_code, owed } => {
            trouble::stopped(draft, *exit_code, owed.as_ref(), event)
        }
    }
}

/// An event of another turn, an ended run or a timer that no longer matters.
fn is_stale(state: &State, event: &Event) -> bool {
    if let Some(turn) = event.turn()
        && state.turn().is_none_or(|current| current.id != *turn)
    {
        return true;
    }
    // Nothing is awaited of a turn that failed but its retry, which has another id.
    let has_failed = matches!(state, State::Error { way_on: WayOn::Llm { .. }, .. });
    if has_failed && event.turn().is_some() && !matches!(event, Event::TimerFired { .. }) {
        return true;
    }
    match event {
        Event::ToolStarted { run } | Event::ToolFinished { run, .. } => match state {
            State::ExecutingTools { batch, .. } => !batch.is_unfinished(run),
            State::Idle
            | State::Starting { .. }
            | State::Ready(_)
            | State::CallingLlm { .. }
            | State::ProcessingResponse { .. }
            | State::AwaitingApproval { .. }
            | State::AwaitingInput { .. }
            | State::PostToolsHook { .. }
            | State::Paused { .. }
            | State::Error { .. }
            | State::Stopping { .. }
            | State::Stopped { .. } => true,
        },
        Event::HookStarted { run } | Event::HookFinished { run, .. } => {
            !matches!(state, State::PostToolsHook { hooks, .. } if hooks.run == *run)
        }
        Event::TimerFired { timer } => !is_awaited(state, timer),
        // Deltas of a stream that was closed by its own turn.
        Event::StreamDelta { .. } => !matches!(state, State::CallingLlm { .. }) && !theirs(state),
        Event::Spawned
        | Event::UserInput { .. }
        | Event::ApprovalDecided { .. }
        | Event::YoloSwitched { .. }
        | Event::InputGiven { .. }
        | Event::RetryRequested { .. }
        | Event::PauseRequested { .. }
        | Event::ResumeRequested
        | Event::InterruptRequested
        | Event::StopRequested
        | Event::Restarted
        | Event::HarnessReady
        | Event::HarnessExited { .. }
        | Event::StreamCompleted { .. }
        | Event::StreamFailed { .. }
        | Event::ResponseParsed { .. }
        | Event::ToolReported { .. }
        | Event::ToolEnded { .. }
        | Event::ApprovalAsked { .. }
        | Event::QuestionAsked { .. }
        | Event::RequestWithdrawn { .. }
        | Event::BatchHeld { .. } => false,
    }
}

/// States in which an agent with its own tools may still be streaming.
fn theirs(state: &State) -> bool {
    matches!(
        state,
        State::ExecutingTools { .. } | State::AwaitingApproval { .. } | State::AwaitingInput { .. }
    )
}

fn is_awaited(state: &State, timer: &Timer) -> bool {
    match (timer, state) {
        // Once an interrupt is asked for, its own timer decides.
        (Timer::LlmSilence { .. }, State::CallingLlm { turn }) => !turn.interrupting,
        (Timer::Retry { attempt, .. }, State::Error { way_on, .. }) => {
            super::flow::retry_timer(way_on).is_some()
                && super::flow::retry_of(way_on).is_some_and(|(_, tried)| tried == *attempt)
        }
        (Timer::Interrupt { .. }, state) => state.turn().is_some_and(|turn| turn.interrupting),
        (Timer::Stop { phase }, State::Stopping { phase: current, .. }) => phase == current,
        (Timer::LlmSilence { .. } | Timer::Retry { .. } | Timer::Stop { .. }, _) => false,
    }
}
