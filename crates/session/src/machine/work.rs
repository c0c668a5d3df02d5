//! States of a turn in which something runs: ExecutingTools, PostToolsHook.

use super::batch::{Batch, Fate};
use super::change::{AgentError, Change, ErrorCode, ErrorSource, HookLifecycle, Reason, RunStatus};
use super::event::Event;
use super::hooks::HookPass;
use super::letting_go::stop;
use super::state::{After, Again, Next, Ready, RetryTimer, State, Turn, WayOn};
use super::step::{Answer, Declined, Draft, Tools};
use super::turn::{exited_in_turn, interrupt, with_pause};
use super::{flow, theirs};

pub(super) fn executing_tools(
    draft: Draft<'_>,
    state: &State,
    turn: &Turn,
    batch: &Batch,
    event: &Event,
) -> Answer {
    let mut batch = batch.clone();
    let ours = draft.setup.tools == Tools::Ours;
    match event {
        // Our runners have no part in an agent's own tools.
        Event::ToolStarted { .. } | Event::ToolFinished { .. } if !ours => Err(Declined::Refused),
        Event::ToolStarted { run } => {
            let run = batch.unfinished_mut(run).expect("an ended run was sorted out as stale");
            run.start(draft.at);
            let shown = run.lifecycle().map(Change::ToolLifecycle);
            let state = State::ExecutingTools { turn: turn.clone(), batch };
            shown.into_iter().fold(draft, Draft::show).stay(state)
        }
        Event::ToolFinished { run, outcome } => {
            let run = batch.unfinished_mut(run).expect("an ended run was sorted out as stale");
            run.finish(draft.at, outcome);
            let shown = run.lifecycle().map(Change::ToolLifecycle);
            let draft = shown.into_iter().fold(draft, Draft::show);
            match batch.is_running() {
                true => draft.stay(State::ExecutingTools { turn: turn.clone(), batch }),
                false => flow::after_tools(draft, Reason::ToolsCompleted, turn.clone(), batch),
            }
        }
        Event::RequestWithdrawn { call, .. } => {
            let draft = theirs::end_call(draft, &mut batch, call, Fate::Canceled)?;
            theirs::follow(draft, Reason::ToolsCompleted, turn, batch)
        }
        Event::ToolEnded { call, is_error, output, .. } => {
            let result = theirs::result(*is_error, output.as_ref());
            let draft = theirs::end_call(draft, &mut batch, call, result)?;
            theirs::follow(draft, Reason::ToolsCompleted, turn, batch)
        }
        Event::ToolReported { call, .. } => theirs::tool_begun(draft, turn, batch, call),
        Event::ApprovalAsked { call, .. } => theirs::permission_asked(draft, turn, batch, call),
        Event::QuestionAsked { call, .. } => theirs::question_asked(draft, turn, batch, call),
        Event::BatchHeld { .. } => theirs::batch_held(draft, turn.clone(), batch),
        Event::StreamDelta { .. } => draft.stay(state.clone()),
        Event::StreamCompleted { text, cut_off, .. } => {
            theirs::cut_short(draft, state, turn, text.as_ref(), *cut_off)
        }
        Event::StreamFailed { trouble, .. } => theirs::turn_failed(draft, state, turn, trouble),
        Event::PauseRequested { cause } => {
            draft.stay(State::ExecutingTools { turn: with_pause(turn, *cause), batch })
        }
        Event::InterruptRequested => interrupt(draft, state, turn),
        Event::StopRequested => stop(draft, Reason::StopRequested, state),
        Event::HarnessExited { code, why } => {
            exited_in_turn(draft, state, turn, *code, why.as_ref())
        }
        Event::TimerFired { .. } => stop(draft, Reason::TimedOut, state),
        Event::Restarted => lost_work(draft, turn, batch),
        Event::YoloSwitched { .. } => draft.stay(state.clone()),
        Event::Spawned
        | Event::UserInput { .. }
        | Event::ApprovalDecided { .. }
        | Event::InputGiven { .. }
        | Event::RetryRequested { .. }
        | Event::ResumeRequested
        | Event::HarnessReady
        | Event::ResponseParsed { .. }
        | Event::HookStarted { .. }
        | Event::HookFinished { .. } => Err(Declined::Refused),
    }
}

pub(super) fn post_tools_hook(
    draft: Draft<'_>,
    state: &State,
    turn: &Turn,
    batch: &Batch,
    hooks: &HookPass,
    event: &Event,
) -> Answer {
    match event {
        Event::HookStarted { .. } => {
            let mut hooks = hooks.clone();
            hooks.started_at = Some(draft.at);
            let shown = hooks.lifecycle(&draft.setup.hooks, RunStatus::Running, draft.at, None);
            let state = State::PostToolsHook { turn: turn.clone(), batch: batch.clone(), hooks };
            draft.show(Change::HookLifecycle(shown)).stay(state)
        }
        Event::HookFinished { error, output, .. } => {
            let status = if error.is_some() { RunStatus::Failed } else { RunStatus::Succeeded };
            let ended = hooks.lifecycle(&draft.setup.hooks, status, draft.at, error.clone());
            let shown = HookLifecycle { output: output.clone(), ..ended };
            let draft = draft.show(Change::HookLifecycle(shown));
            if turn.interrupting {
                // Whatever came of it: the agent is let go, so that it can end its turn.
                return flow::release(draft, Reason::HooksCompleted, turn.clone());
            }
            match error {
                Some(why) => {
                    flow::hook_failed(draft, turn.clone(), batch.clone(), hooks.clone(), why)
                }
                None => flow::next_hook(draft, turn.clone(), batch.clone(), hooks),
            }
        }
        Event::PauseRequested { cause } => draft.stay(State::PostToolsHook {
            turn: with_pause(turn, *cause),
            batch: batch.clone(),
            hooks: hooks.clone(),
        }),
        Event::InterruptRequested => interrupt(draft, state, turn),
        Event::StopRequested => stop(draft, Reason::StopRequested, state),
        Event::HarnessExited { code, why } => {
            exited_in_turn(draft, state, turn, *code, why.as_ref())
        }
        Event::TimerFired { .. } => stop(draft, Reason::TimedOut, state),
        Event::StreamCompleted { text, cut_off, .. } => {
            theirs::cut_short(draft, state, turn, text.as_ref(), *cut_off)
        }
        Event::StreamFailed { trouble, .. } => theirs::turn_failed(draft, state, turn, trouble),
        Event::Restarted => {
            let why = Some("interrupted by a restart".into());
            let shown = hooks.lifecycle(&draft.setup.hooks, RunStatus::Failed, draft.at, why);
            let draft = draft.show(Change::HookLifecycle(shown));
            match draft.setup.tools {
                Tools::Ours => lost_hook(draft, turn, batch, hooks),
                // The agent that was held ended with us: nobody is there to go on.
                Tools::Theirs | Tools::TheirsHeld => lost_work(draft, turn, batch.clone()),
            }
        }
        Event::YoloSwitched { .. } => draft.stay(state.clone()),
        Event::Spawned
        | Event::UserInput { .. }
        | Event::ApprovalDecided { .. }
        | Event::InputGiven { .. }
        | Event::RetryRequested { .. }
        | Event::ResumeRequested
        | Event::HarnessReady
        | Event::StreamDelta { .. }
        | Event::ResponseParsed { .. }
        | Event::ToolReported { .. }
        | Event::ToolEnded { .. }
        | Event::ApprovalAsked { .. }
        | Event::QuestionAsked { .. }
        | Event::RequestWithdrawn { .. }
        | Event::BatchHeld { .. }
        | Event::ToolStarted { .. }
        | Event::ToolFinished { .. } => Err(Declined::Refused),
    }
}

/// A crash of ours cut a hook off. It may have taken effect, so only a person runs it again, and
/// those behind it.
fn lost_hook(draft: Draft<'_>, turn: &Turn, batch: &Batch, hooks: &HookPass) -> Answer {
    let error = AgentError {
        code: ErrorCode::Interrupted,
        message: "interrupted by a restart; the hook may or may not have taken effect".into(),
        retryable: true,
        source: ErrorSource::Orchestrator,
        resets_at: None,
    };
    let draft = draft.fail(&error);
    let (mut turn, batch, hooks) = (turn.clone(), batch.clone(), hooks.clone());
    let pause = turn.pause.take();
    let way_on = WayOn::Hook { turn, batch, hooks, timer: RetryTimer::None };
    match pause {
        Some(cause) => flow::pause(draft, cause, Next::Retry { error, way_on }),
        None => draft.enter(State::Error { error, way_on }, Reason::Failed).done(),
    }
}

/// A crash of ours cut runs off: what they did is not known, so nothing is run again.
fn lost_work(draft: Draft<'_>, turn: &Turn, mut batch: Batch) -> Answer {
    let lost = batch.lose(draft.at);
    let draft = lost.into_iter().map(Change::ToolLifecycle).fold(draft, Draft::show);
    let error = AgentError {
        code: ErrorCode::Interrupted,
        message: "interrupted by a restart; what was running may or may not have taken effect"
            .into(),
        retryable: false,
        source: ErrorSource::Orchestrator,
        resets_at: None,
    };
    let owed = (draft.setup.tools == Tools::Ours).then_some(batch);
    let draft = draft.fail(&error);
    let ready = Ready { after: After::Failed { error, again: Again::Nothing }, owed };
    flow::end_turn(draft, Reason::Failed, turn, ready)
}
