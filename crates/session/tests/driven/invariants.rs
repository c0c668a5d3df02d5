//! What holds at every step. A new invariant is one function here.

use std::collections::BTreeMap;

use qd_session::id::{CallId, RunId};
use qd_session::limits::{LLM_RETRY_DELAYS_MS, TOOL_RETRIES_MAX};
use qd_session::machine::{
    Action, After, Again, Change, Effect, Event, Fate, Kind, RetryTimer, RunStatus, State, Step,
    Timer, Tools, WayOn,
};

use super::walk::Taken;
use super::world::batch_of;

pub fn check(taken: &Taken<'_>) {
    let Ok(step) = taken.result else { return };
    changes_are_told(taken, step);
    one_request_in_flight(taken, step);
    every_call_has_one_output(taken, step);
    no_batch_is_lost(taken, step);
    runs_end_once(taken, step);
    runs_are_shown_to_run(taken, step);
    runs_begin_in_the_state_they_are_run_in(taken, step);
    hooks_come_after_the_batch(step);
    ready_has_nothing_pending(step);
    nothing_mutating_is_repeated_by_itself(taken, step);
    retries_are_bounded(step);
    timers_are_kept(taken, step);
    the_stream_changes_only_with_a_request(taken, step);
    an_interrupt_is_for_one_turn(taken, step);
}

fn changes(step: &Step) -> impl Iterator<Item = &Change> {
    step.effects.iter().filter_map(|effect| match effect {
        Effect::Show(change) => Some(change),
        Effect::Do(_) => None,
    })
}

fn actions(step: &Step) -> impl Iterator<Item = &Action> {
    step.effects.iter().filter_map(|effect| match effect {
        Effect::Do(action) => Some(action),
        Effect::Show(_) => None,
    })
}

/// One `state_changed` for each transition, after the lifecycles and the error that led to it,
/// before the runs that begin with it and what is to be done next.
fn changes_are_told(taken: &Taken<'_>, step: &Step) {
    let moved: Vec<usize> = (0..step.effects.len())
        .filter(|at| matches!(step.effects[*at], Effect::Show(Change::StateChanged(_))))
        .collect();
    let (from, to) = (taken.from.kind(), step.state.kind());
    assert!(moved.len() <= 1, "told twice: {taken:?}");
    let Some(at) = moved.first() else {
        assert_eq!(from, to, "moved silently: {taken:?}");
        return;
    };
    let Effect::Show(Change::StateChanged(change)) = &step.effects[*at] else { unreachable!() };
    assert_eq!((change.from, change.to), (from, to), "{taken:?}");
    assert_eq!(change.stream_id.as_ref(), step.state.turn().map(|turn| &turn.id), "{taken:?}");
    for effect in &step.effects[at + 1..] {
        let is_after = match effect {
            Effect::Show(change) => is_beginning(change),
            Effect::Do(_) => true,
        };
        assert!(is_after, "shown after the change: {taken:?}");
    }
    let begins = |action: &Action| {
        matches!(
            action,
            Action::SendToHarness { .. }
                | Action::ExecuteTools { .. }
                | Action::RunPostToolHook { .. }
                | Action::StartHarness
        )
    };
    for effect in &step.effects[..*at] {
        assert!(!matches!(effect, Effect::Do(action) if begins(action)), "begun early: {taken:?}");
    }
    if to == Kind::Error {
        let told = step.effects[..*at]
            .iter()
            .any(|effect| matches!(effect, Effect::Show(Change::SessionError(_))));
        let resumed = from == Kind::Paused;
        assert!(told || resumed, "an error without session_error: {taken:?}");
    }
}

fn one_request_in_flight(taken: &Taken<'_>, step: &Step) {
    let sent: Vec<_> = actions(step)
        .filter_map(|action| match action {
            Action::SendToHarness { turn, .. } => Some(turn),
            _ => None,
        })
        .collect();
    assert!(sent.len() <= 1, "{taken:?}");
    if let Some(turn) = sent.first() {
        assert_ne!(taken.from.kind(), Kind::CallingLlm, "a second request: {taken:?}");
        assert_eq!(step.state.kind(), Kind::CallingLlm);
        assert_eq!(step.state.turn().map(|turn| &turn.id), Some(*turn));
    }
}

/// D15: before any model request every call of the conversation has exactly one output.
fn every_call_has_one_output(taken: &Taken<'_>, step: &Step) {
    if taken.setup.tools != Tools::Ours {
        return;
    }
    for action in actions(step) {
        let Action::SendToHarness { outputs, .. } = action else { continue };
        let given: Vec<&CallId> = outputs.iter().map(|output| &output.call_id).collect();
        assert_eq!(given, owed(taken), "{taken:?}");
    }
}

/// The calls that have no output yet: those of the batch in hand, or those just parsed.
fn owed<'a>(taken: &Taken<'a>) -> Vec<&'a CallId> {
    match taken.event {
        Event::ResponseParsed { calls, .. } => {
            calls.iter().map(|judged| &judged.call.call_id).collect()
        }
        _ => calls(taken.from),
    }
}

/// The calls a state still owes outputs for.
fn calls(state: &State) -> Vec<&CallId> {
    batch_of(state)
        .into_iter()
        .flat_map(|batch| batch.runs())
        .map(|run| &run.call.call_id)
        .collect()
}

/// A batch of ours stays somewhere until the model has its outputs.
fn no_batch_is_lost(taken: &Taken<'_>, step: &Step) {
    if taken.setup.tools != Tools::Ours {
        return;
    }
    let sent = actions(step).any(|action| matches!(action, Action::SendToHarness { .. }));
    if !sent && batch_of(taken.from).is_some() {
        assert_eq!(calls(&step.state), calls(taken.from), "{taken:?}");
    }
}

fn is_beginning(change: &Change) -> bool {
    matches!(change, Change::ToolLifecycle(run) if run.status == RunStatus::Running)
}

/// A run is told to begin after the change to the state in which it runs, never before it.
fn runs_begin_in_the_state_they_are_run_in(taken: &Taken<'_>, step: &Step) {
    let moved = changes(step).position(|change| matches!(change, Change::StateChanged(_)));
    let begun = changes(step).position(is_beginning);
    if let (Some(moved), Some(begun)) = (moved, begun) {
        assert!(moved < begun, "{taken:?}");
    }
}

/// Every run has exactly one terminal status, told once.
fn runs_end_once(taken: &Taken<'_>, step: &Step) {
    let mut ended: BTreeMap<&RunId, usize> = BTreeMap::new();
    for change in changes(step) {
        if let Change::ToolLifecycle(run) = change
            && matches!(run.status, RunStatus::Succeeded | RunStatus::Failed | RunStatus::Canceled)
        {
            *ended.entry(&run.run_id).or_default() += 1;
        }
    }
    let runs = batch_of(taken.from).into_iter().flat_map(|batch| batch.runs());
    for run in runs.filter(|run| run.id.is_some()) {
        let id = run.id.as_ref().expect("filtered");
        let still = batch_of(&step.state)
            .and_then(|batch| batch.run(id))
            .is_some_and(|run| run.fate.is_open());
        let due = run.fate.is_open() && !still;
        assert_eq!(ended.get(id).copied().unwrap_or(0), usize::from(due), "{id}: {taken:?}");
    }
    if let State::PostToolsHook { hooks, .. } = taken.from {
        let over = changes(step)
            .filter(|change| match change {
                Change::HookLifecycle(hook) => {
                    hook.run_id == hooks.run && hook.status != RunStatus::Running
                }
                _ => false,
            })
            .count();
        let still =
            matches!(&step.state, State::PostToolsHook { hooks: now, .. } if now.run == hooks.run);
        assert_eq!(over, usize::from(!still), "{taken:?}");
    }
}

/// What runs is shown to, whoever runs it.
fn runs_are_shown_to_run(taken: &Taken<'_>, step: &Step) {
    let has_begun = |state: &State, id: &RunId| {
        batch_of(state).and_then(|batch| batch.run(id)).is_some_and(|run| run.started_at.is_some())
    };
    let runs = batch_of(&step.state).into_iter().flat_map(|batch| batch.runs());
    for run in runs.filter(|run| run.fate == Fate::Running) {
        let id = run.id.as_ref().expect("what runs has an id");
        assert!(run.started_at.is_some(), "{taken:?}");
        let shown = changes(step).any(|change| {
            matches!(change, Change::ToolLifecycle(told)
                if told.run_id == *id && told.status == RunStatus::Running)
        });
        assert!(shown || has_begun(taken.from, id), "{id}: {taken:?}");
    }
}

fn hooks_come_after_the_batch(step: &Step) {
    let orders = actions(step).filter(|action| matches!(action, Action::RunPostToolHook { .. }));
    assert!(orders.count() <= 1, "hooks overlap: {step:?}");
    if let State::PostToolsHook { batch, .. } = &step.state {
        assert!(!batch.is_running(), "a hook beside a tool: {step:?}");
        assert!(batch.has_mutated(), "a hook for a batch that changed nothing: {step:?}");
    }
}

/// Ready implies no pending calls. A question behind failed tools is kept with them, for the
/// retry that is offered; it is not pending.
fn ready_has_nothing_pending(step: &Step) {
    let State::Ready(ready) = &step.state else { return };
    let retryable = matches!(&ready.after, After::Failed { again: Again::Tools { .. }, .. });
    let pending = |fate: &Fate| match fate {
        Fate::Allowed | Fate::Undecided | Fate::Queued | Fate::Running => true,
        Fate::Unanswered => !retryable,
        Fate::Rejected(_)
        | Fate::Answered(_)
        | Fate::Succeeded { .. }
        | Fate::Failed(_)
        | Fate::Canceled
        | Fate::Lost => false,
    };
    let waits = batch_of(&step.state).is_some_and(|batch| batch.any(pending));
    assert!(!waits, "Ready with pending calls: {step:?}");
}

/// D7: never a silent double effect.
fn nothing_mutating_is_repeated_by_itself(taken: &Taken<'_>, step: &Step) {
    if !matches!(taken.event, Event::TimerFired { .. } | Event::ResumeRequested) {
        return;
    }
    for action in actions(step) {
        let Action::ExecuteTools { tools } = action else { continue };
        let repeats = tools.iter().any(|order| order.attempt > 1 && order.call.mutating);
        assert!(!repeats, "{taken:?}");
    }
}

fn retries_are_bounded(step: &Step) {
    if let Some(turn) = step.state.turn() {
        assert!(usize::from(turn.attempt) <= LLM_RETRY_DELAYS_MS.len() + 1, "{step:?}");
    }
    if let State::ExecutingTools { batch, .. } = &step.state {
        for run in batch.runs() {
            assert!(run.attempt <= TOOL_RETRIES_MAX + 1, "{step:?}");
        }
    }
}

/// A state that waits for a timer has started it; one that no longer does has cancelled it.
fn timers_are_kept(taken: &Taken<'_>, step: &Step) {
    let starts = |wanted: &dyn Fn(&Timer) -> bool| {
        actions(step)
            .any(|action| matches!(action, Action::StartTimer { timer, .. } if wanted(timer)))
    };
    let entered = taken.from.kind() != step.state.kind();
    match &step.state {
        State::Error { way_on, .. } if entered => {
            let due = matches!(way_on.timer(), RetryTimer::Running { .. });
            assert_eq!(starts(&|timer| matches!(timer, Timer::Retry { .. })), due, "{taken:?}");
            if let WayOn::Tools { batch, .. } = way_on {
                assert!(!(due && batch.has_failed_mutating()), "D7: {taken:?}");
            }
        }
        State::CallingLlm { .. } if entered => {
            assert!(starts(&|timer| matches!(timer, Timer::LlmSilence { .. })), "{taken:?}");
        }
        State::Stopping { .. } if entered => {
            assert!(starts(&|timer| matches!(timer, Timer::Stop { .. })), "{taken:?}");
        }
        _ => {}
    }
    let waited =
        matches!(taken.from, State::Error { way_on, .. } if way_on.timer() != RetryTimer::None);
    let fired = matches!(taken.event, Event::TimerFired { .. });
    if waited && entered && !fired {
        let cancelled = actions(step)
            .any(|action| matches!(action, Action::CancelTimer { timer: Timer::Retry { .. } }));
        assert!(cancelled, "a retry timer left running: {taken:?}");
    }
}

fn the_stream_changes_only_with_a_request(taken: &Taken<'_>, step: &Step) {
    let (Some(old), Some(new)) = (taken.from.turn(), step.state.turn()) else { return };
    if old.id != new.id {
        let sent = actions(step).any(|action| matches!(action, Action::SendToHarness { .. }));
        assert!(sent, "{taken:?}");
    }
}

/// No repeated request inherits it, nothing that failed waits with it, and its timer goes with it.
fn an_interrupt_is_for_one_turn(taken: &Taken<'_>, step: &Step) {
    let asked = |state: &State| state.turn().is_some_and(|turn| turn.interrupting);
    let (was, is) = (asked(taken.from), asked(&step.state));
    let sent = actions(step).any(|action| matches!(action, Action::SendToHarness { .. }));
    assert!(!is || (!sent && step.state.kind() != Kind::Error), "{taken:?}");
    // Timers do not survive a crash.
    let is_gone = matches!(taken.event, Event::TimerFired { .. } | Event::Restarted);
    if was && !is && !is_gone {
        let cancelled = actions(step)
            .any(|action| matches!(action, Action::CancelTimer { timer: Timer::Interrupt { .. } }));
        assert!(cancelled, "an interrupt's timer left running: {taken:?}");
    }
}
