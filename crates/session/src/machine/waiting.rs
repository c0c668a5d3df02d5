//! States in which the session waits for the operator or for its harness to come up:
//! Idle, Starting, Ready, Paused.

use std::sync::Arc;

use super::action::Action;
use super::batch::Batch;
use super::change::{AgentError, ErrorCode, ErrorSource, Reason};
use super::event::Event;
use super::flow;
use super::hooks::HookPass;
use super::letting_go::{let_go, stop};
use super::state::{After, Again, Next, Ready, State, Turn, WayOn};
use super::step::{Answer, Declined, Draft, Process};
use crate::decision::RetryTarget;

pub(super) fn idle(draft: Draft<'_>, event: &Event) -> Answer {
    match event {
        Event::Spawned => draft
            .enter(State::Starting { owed: None }, Reason::Spawned)
            .then(Action::StartHarness)
            .done(),
        // Policy is judged outside, and nothing is in flight.
        Event::YoloSwitched { .. } | Event::Restarted => draft.stay(State::Idle),
        Event::UserInput { .. }
        | Event::ApprovalDecided { .. }
        | Event::InputGiven { .. }
        | Event::RetryRequested { .. }
        | Event::PauseRequested { .. }
        | Event::ResumeRequested
        | Event::InterruptRequested
        | Event::StopRequested
        | Event::HarnessReady
        | Event::HarnessExited { .. }
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

pub(super) fn starting(
    draft: Draft<'_>,
    state: &State,
    owed: Option<&Batch>,
    event: &Event,
) -> Answer {
    let ready = || State::Ready(Ready { after: After::Start, owed: owed.cloned() });
    match event {
        Event::HarnessReady => draft.enter(ready(), Reason::HarnessReady).done(),
        // A harness that is one process a turn was only probed: it can be started.
        Event::HarnessExited { code: Some(0), .. } if draft.setup.process == Process::OneTurn => {
            draft.enter(ready(), Reason::HarnessExited).done()
        }
        Event::HarnessExited { code, why } => harness_exited(draft, state, *code, why.as_ref()),
        Event::StopRequested => stop(draft, Reason::StopRequested, state),
        // Nobody knows whether it came up: start it again.
        Event::Restarted => draft.act(Action::StartHarness).stay(state.clone()),
        Event::YoloSwitched { .. } => draft.stay(state.clone()),
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
        | Event::HookFinished { .. }
        | Event::TimerFired { .. } => Err(Declined::Refused),
    }
}

pub(super) fn ready(draft: Draft<'_>, state: &State, ready: &Ready, event: &Event) -> Answer {
    match event {
        Event::UserInput { text } => {
            let text = Some(text.clone());
            flow::call_llm(draft, Reason::UserInput, None, ready.owed.as_ref(), text)
        }
        Event::RetryRequested { target } => retry(draft, ready, target),
        Event::PauseRequested { cause } => flow::pause(draft, *cause, Next::Ready(ready.clone())),
        Event::StopRequested => stop(draft, Reason::StopRequested, state),
        Event::HarnessExited { .. } if draft.setup.process == Process::OneTurn => {
            Err(Declined::Stale)
        }
        Event::HarnessExited { code, why } => harness_exited(draft, state, *code, why.as_ref()),
        Event::YoloSwitched { .. } | Event::Restarted | Event::HarnessReady => {
            draft.stay(state.clone())
        }
        Event::Spawned
        | Event::ApprovalDecided { .. }
        | Event::InputGiven { .. }
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
        | Event::HookFinished { .. }
        | Event::TimerFired { .. } => Err(Declined::Refused),
    }
}

/// The explicit retry that Ready offers after exhausted retries.
fn retry(draft: Draft<'_>, ready: &Ready, target: &RetryTarget) -> Answer {
    let After::Failed { again, .. } = &ready.after else { return Err(Declined::Refused) };
    match (again, target, &ready.owed) {
        (Again::Llm, RetryTarget::Llm, owed) => {
            flow::call_llm(draft, Reason::RetryRequested, None, owed.as_ref(), None)
        }
        (Again::Tools { turn }, RetryTarget::Tool { run }, Some(batch))
            if batch.run(run).is_some() =>
        {
            let turn = Turn { id: turn.clone(), attempt: 1, pause: None, interrupting: false };
            let mut batch = batch.clone();
            let tools = batch.order_failed_anew(draft.seed);
            draft
                .enter(State::ExecutingTools { turn, batch }, Reason::RetryRequested)
                .then(Action::ExecuteTools { tools })
                .done()
        }
        (Again::Llm | Again::Tools { .. } | Again::Nothing, _, _) => Err(Declined::Refused),
    }
}

pub(super) fn paused(draft: Draft<'_>, state: &State, then: &Next, event: &Event) -> Answer {
    match event {
        Event::ResumeRequested => resume(draft, then.clone()),
        Event::InterruptRequested => {
            let (draft, owed) = let_go(draft, state);
            let ready = Ready { after: After::Interrupted, owed };
            draft.enter(State::Ready(ready), Reason::Interrupted).done()
        }
        Event::StopRequested => stop(draft, Reason::StopRequested, state),
        Event::HarnessExited { .. } if draft.setup.process == Process::OneTurn => {
            Err(Declined::Stale)
        }
        Event::HarnessExited { code, why } => harness_exited(draft, state, *code, why.as_ref()),
        // Already paused, nothing in flight, policy is judged outside.
        Event::PauseRequested { .. }
        | Event::YoloSwitched { .. }
        | Event::Restarted
        | Event::HarnessReady => draft.stay(state.clone()),
        Event::Spawned
        | Event::UserInput { .. }
        | Event::ApprovalDecided { .. }
        | Event::InputGiven { .. }
        | Event::RetryRequested { .. }
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

/// Goes on where it was.
fn resume(draft: Draft<'_>, then: Next) -> Answer {
    let reason = Reason::Resumed;
    match then {
        Next::Ready(ready) => draft.enter(State::Ready(ready), reason).done(),
        Next::Llm { batch, .. } => flow::call_llm(draft, reason, None, Some(&batch), None),
        Next::Tools { turn, batch } => flow::run_batch(draft, reason, turn, batch),
        Next::Hooks { turn, batch } => {
            match HookPass::for_batch(&draft.setup.hooks, &batch, draft.seed) {
                Some(hooks) => flow::run_hook(draft, reason, turn, batch, hooks),
                None => flow::call_llm(draft, reason, None, Some(&batch), None),
            }
        }
        Next::Retry { error, way_on } => flow::fail_with_timer(draft, reason, error, way_on),
    }
}

/// The harness's process ended although nobody asked it to.
pub(super) fn harness_exited(
    draft: Draft<'_>,
    state: &State,
    code: Option<i32>,
    why: Option<&Arc<str>>,
) -> Answer {
    let (draft, owed) = let_go(draft, state);
    if code == Some(0) {
        let stopped = State::Stopped { exit_code: code, owed };
        return draft.enter(stopped, Reason::HarnessExited).done();
    }
    let how = code.map_or("was killed".to_owned(), |code| format!("exited with code {code}"));
    let error = AgentError {
        code: ErrorCode::HarnessFailed,
        message: match why {
            Some(why) => format!("the harness {how}: {why}").into(),
            None => format!("the harness {how}").into(),
        },
        retryable: true,
        source: ErrorSource::Harness,
        resets_at: None,
    };
    let draft = draft.fail(&error);
    let way_on = WayOn::Harness { owed };
    draft.enter(State::Error { error, way_on }, Reason::HarnessExited).done()
}
