//! Letting go: what a state has in flight ends, and what the model has not heard of is owed.

use super::action::Action;
use super::batch::Batch;
use super::change::{Change, Reason, RunStatus};
use super::flow::{close_stream, hold_retry};
use super::state::{Next, State, Turn};
use super::step::{Answer, Draft, Tools};
use super::timer::{StopPhase, Timer};
use crate::limits::STOP_GRACE_MS;

/// Lets go of everything a state has in flight: its timers, its stream, its hook, its runs. Gives
/// the batch whose outputs are owed; an agent with its own tools keeps its outputs to itself.
pub(super) fn let_go<'a>(draft: Draft<'a>, state: &State) -> (Draft<'a>, Option<Batch>) {
    let (mut draft, batch) = let_go_of_the_rest(draft, state);
    let Some(mut batch) = batch else { return (draft, None) };
    let canceled = batch.cancel(draft.at);
    match draft.setup.tools {
        Tools::Ours => (draft.cancel_tools(canceled), Some(batch)),
        Tools::Theirs | Tools::TheirsHeld => {
            draft = canceled.into_iter().map(Change::ToolLifecycle).fold(draft, Draft::show);
            (draft, None)
        }
    }
}

fn let_go_of_the_rest<'a>(draft: Draft<'a>, state: &State) -> (Draft<'a>, Option<Batch>) {
    match state.clone() {
        State::Idle | State::ProcessingResponse { .. } => (draft, None),
        State::Starting { owed } | State::Stopping { owed, .. } | State::Stopped { owed, .. } => {
            (draft, owed)
        }
        State::Ready(ready) => (draft, ready.owed),
        State::CallingLlm { turn } => {
            (close_stream(interrupt_timer_off(draft, &turn), &turn), None)
        }
        State::AwaitingApproval { turn, batch }
        | State::AwaitingInput { turn, batch }
        | State::ExecutingTools { turn, batch } => (interrupt_timer_off(draft, &turn), Some(batch)),
        State::PostToolsHook { turn, batch, hooks } => {
            let status = RunStatus::Canceled;
            let ended = hooks.lifecycle(&draft.setup.hooks, status, draft.at, None);
            let draft = interrupt_timer_off(draft, &turn)
                .show(Change::HookLifecycle(ended))
                .act(Action::CancelHook { run: hooks.run.clone() });
            (draft, Some(batch))
        }
        State::Paused { then, .. } => match *then {
            Next::Ready(ready) => (draft, ready.owed),
            Next::Llm { batch, .. } | Next::Hooks { batch, .. } | Next::Tools { batch, .. } => {
                (draft, Some(batch))
            }
            Next::Retry { way_on, .. } => (draft, way_on.into_owed()),
        },
        State::Error { way_on, .. } => (hold_retry(draft, &way_on), way_on.into_owed()),
    }
}

fn interrupt_timer_off<'a>(draft: Draft<'a>, turn: &Turn) -> Draft<'a> {
    match turn.interrupting {
        true => {
            draft.act(Action::CancelTimer { timer: Timer::Interrupt { turn: turn.id.clone() } })
        }
        false => draft,
    }
}

/// Stop wins over everything: lets go, asks the harness to end, and watches that it does.
pub(super) fn stop(draft: Draft<'_>, reason: Reason, state: &State) -> Answer {
    let (draft, owed) = let_go(draft, state);
    draft
        .enter(State::Stopping { phase: StopPhase::Asked, owed }, reason)
        .then(Action::StopHarness)
        .then(stop_timer(StopPhase::Asked))
        .done()
}

pub(super) fn stop_timer(phase: StopPhase) -> Action {
    Action::StartTimer { timer: Timer::Stop { phase }, after_ms: STOP_GRACE_MS }
}
