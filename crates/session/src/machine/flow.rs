//! The moves that several states share: ask the model, run a batch, run hooks, end a turn, stop.

use std::sync::Arc;

use super::action::Action;
use super::batch::{Batch, CallOutput, Fate};
use super::change::{AgentError, ErrorCode, ErrorSource, HarnessTrouble, Reason, TroubleKind};
use super::event::PauseCause;
use super::hooks::{FailurePolicy, HookPass};
use super::state::{After, Again, Next, Ready, RetryTimer, State, Turn, WayOn};
use super::step::{Answer, Draft, Tools};
use super::timer::Timer;
use crate::limits::{
    LLM_RETRY_DELAYS_MS, LLM_SILENCE_MAX_MS, RETRY_AFTER_MAX_MS, TOOL_RETRIES_MAX,
    TOOL_RETRY_DELAY_MS,
};

/// Asks the model for a new turn, with what is new in the conversation.
pub(super) fn call_llm(
    draft: Draft<'_>,
    reason: Reason,
    pause: Option<PauseCause>,
    owed: Option<&Batch>,
    text: Option<Arc<str>>,
) -> Answer {
    let turn = Turn { id: draft.seed.turn(), attempt: 1, pause, interrupting: false };
    let outputs = owed.map(Batch::outputs).unwrap_or_default();
    send(draft, reason, turn, outputs, text)
}

/// Asks the model the same again. A failed stream's id is never used twice.
pub(super) fn call_llm_again(draft: Draft<'_>, reason: Reason, last: &Turn) -> Answer {
    let turn = Turn {
        id: draft.seed.turn(),
        attempt: last.attempt.saturating_add(1),
        pause: last.pause,
        // An interrupt was meant for the turn that failed.
        interrupting: false,
    };
    send(draft, reason, turn, Vec::new(), None)
}

fn send(
    draft: Draft<'_>,
    reason: Reason,
    turn: Turn,
    outputs: Vec<CallOutput>,
    text: Option<Arc<str>>,
) -> Answer {
    let send =
        Action::SendToHarness { turn: turn.id.clone(), attempt: turn.attempt, outputs, text };
    let timer = silence_timer(&turn);
    draft.enter(State::CallingLlm { turn }, reason).then(send).then(timer).done()
}

pub(super) fn silence_timer(turn: &Turn) -> Action {
    let timer = Timer::LlmSilence { turn: turn.id.clone() };
    Action::StartTimer { timer, after_ms: LLM_SILENCE_MAX_MS }
}

fn no_silence_timer(turn: &Turn) -> Action {
    Action::CancelTimer { timer: Timer::LlmSilence { turn: turn.id.clone() } }
}

/// The stream is closed, one way or the other.
pub(super) fn close_stream<'a>(draft: Draft<'a>, turn: &Turn) -> Draft<'a> {
    draft.act(no_silence_timer(turn))
}

/// The turn is over.
pub(super) fn end_turn(draft: Draft<'_>, reason: Reason, turn: &Turn, ready: Ready) -> Answer {
    match turn.pause {
        Some(cause) => pause(draft, cause, Next::Ready(ready)),
        None => draft.enter(State::Ready(ready), reason).done(),
    }
}

pub(super) fn pause(draft: Draft<'_>, cause: PauseCause, then: Next) -> Answer {
    draft.enter(State::Paused { cause, then: Box::new(then) }, Reason::Paused).done()
}

/// Every call is decided: run what may run. A boundary.
pub(super) fn run_batch(draft: Draft<'_>, reason: Reason, mut turn: Turn, batch: Batch) -> Answer {
    if let Some(cause) = turn.pause.take() {
        return pause(draft, cause, Next::Tools { turn, batch });
    }
    let mut batch = batch;
    let tools = batch.order_allowed(draft.seed);
    if tools.is_empty() {
        return after_tools(draft, reason, turn, batch);
    }
    draft
        .enter(State::ExecutingTools { turn, batch }, reason)
        .then(Action::ExecuteTools { tools })
        .done()
}

/// Nothing of the batch runs any more: did it fail, is a question open, or is it complete?
pub(super) fn after_tools(draft: Draft<'_>, reason: Reason, turn: Turn, batch: Batch) -> Answer {
    if batch.has_failed() {
        return tools_failed(draft, turn, batch);
    }
    if batch.any(|fate| *fate == Fate::Unanswered) {
        let questions: Vec<Action> = batch
            .runs()
            .iter()
            .filter(|run| run.fate == Fate::Unanswered)
            .map(|run| Action::RequestInput { call: run.call.clone() })
            .collect();
        return draft
            .enter(State::AwaitingInput { turn, batch }, Reason::InputRequired)
            .then_all(questions)
            .done();
    }
    after_batch(draft, reason, turn, batch)
}

/// The batch is complete: hooks, or the model again. A boundary.
pub(super) fn after_batch(
    draft: Draft<'_>,
    reason: Reason,
    mut turn: Turn,
    batch: Batch,
) -> Answer {
    let wanted = HookPass::for_batch(&draft.setup.hooks, &batch, draft.seed);
    if let Some(cause) = turn.pause.take() {
        let then = match wanted {
            Some(_) => Next::Hooks { turn, batch },
            None => Next::Llm { turn, batch },
        };
        return pause(draft, cause, then);
    }
    match wanted {
        Some(hooks) => run_hook(draft, reason, turn, batch, hooks),
        None => {
            let skipped = reason == Reason::ToolsCompleted && batch.has_mutated();
            let reason = if skipped { Reason::HooksSkipped } else { reason };
            call_llm(draft, reason, None, Some(&batch), None)
        }
    }
}

/// Starts one hook of the pass.
pub(super) fn run_hook(
    draft: Draft<'_>,
    reason: Reason,
    turn: Turn,
    batch: Batch,
    hooks: HookPass,
) -> Answer {
    let order = hook_order(&draft, &hooks);
    draft.enter(State::PostToolsHook { turn, batch, hooks }, reason).then(order).done()
}

pub(super) fn hook_order(draft: &Draft<'_>, hooks: &HookPass) -> Action {
    let hook = hooks.hook(&draft.setup.hooks).expect("a pass names a hook of this session");
    Action::RunPostToolHook {
        run: hooks.run.clone(),
        hook: hook.name.clone(),
        tool_runs: hooks.tool_runs.clone(),
    }
}

/// The pass is over: give the model the outputs, or let a held agent go on. A boundary.
pub(super) fn after_hooks(
    draft: Draft<'_>,
    reason: Reason,
    mut turn: Turn,
    batch: Batch,
) -> Answer {
    if draft.setup.tools == Tools::TheirsHeld {
        return release(draft, reason, turn);
    }
    match turn.pause.take() {
        Some(cause) => pause(draft, cause, Next::Llm { turn, batch }),
        None => call_llm(draft, reason, None, Some(&batch), None),
    }
}

/// Lets a held agent go on with its turn.
pub(super) fn release(draft: Draft<'_>, reason: Reason, turn: Turn) -> Answer {
    let timer = silence_timer(&turn);
    let state = State::CallingLlm { turn };
    match draft.is_in(&state) {
        true => draft.act(Action::ReleaseHarness).act(timer).stay(state),
        false => draft.enter(state, reason).then(Action::ReleaseHarness).then(timer).done(),
    }
}

/// Every run has ended and some have no result.
fn tools_failed(draft: Draft<'_>, turn: Turn, batch: Batch) -> Answer {
    let failed = batch.runs().iter().filter(|run| matches!(run.fate, Fate::Failed(_)));
    let names: Vec<&str> = failed.clone().map(|run| run.call.name.as_str()).collect();
    let attempt = failed.map(|run| run.attempt).max().unwrap_or_default();
    let error = AgentError {
        code: ErrorCode::ToolExecutionFailed,
        message: format!("no result from {}", names.join(", ")).into(),
        retryable: true,
        source: ErrorSource::Tool,
        resets_at: None,
    };
    let draft = draft.fail(&error);
    if batch.has_failed_mutating() {
        // Never a silent double effect: it stays until a person retries, prompts or stops.
        let way_on = WayOn::Tools { turn, batch, timer: RetryTimer::None };
        return draft.enter(State::Error { error, way_on }, Reason::Failed).done();
    }
    if attempt > TOOL_RETRIES_MAX {
        let after = After::Failed { error, again: Again::Tools { turn: turn.id.clone() } };
        let ready = Ready { after, owed: Some(batch) };
        return end_turn(draft, Reason::RetriesExhausted, &turn, ready);
    }
    let timer = RetryTimer::Running { after_ms: TOOL_RETRY_DELAY_MS };
    fail_with_timer(draft, Reason::Failed, error, WayOn::Tools { turn, batch, timer })
}

/// Enters Error, and starts the timer if the way on has one.
pub(super) fn fail_with_timer(
    draft: Draft<'_>,
    reason: Reason,
    error: AgentError,
    way_on: WayOn,
) -> Answer {
    let timer = retry_timer(&way_on);
    draft.enter(State::Error { error, way_on }, reason).then_all(timer).done()
}

pub(super) fn retry_timer(way_on: &WayOn) -> Option<Action> {
    let (turn, attempt) = retry_of(way_on)?;
    let RetryTimer::Running { after_ms } = way_on.timer() else { return None };
    Some(Action::StartTimer { timer: Timer::Retry { turn: turn.id.clone(), attempt }, after_ms })
}

fn no_retry_timer(way_on: &WayOn) -> Option<Action> {
    let (turn, attempt) = retry_of(way_on)?;
    let RetryTimer::Running { .. } = way_on.timer() else { return None };
    Some(Action::CancelTimer { timer: Timer::Retry { turn: turn.id.clone(), attempt } })
}

/// The automatic retry is off: a person, or a pause, has taken over.
pub(super) fn hold_retry<'a>(draft: Draft<'a>, way_on: &WayOn) -> Draft<'a> {
    no_retry_timer(way_on).into_iter().fold(draft, Draft::act)
}

/// The turn and the attempt that a retry would follow.
pub(super) fn retry_of(way_on: &WayOn) -> Option<(&Turn, u8)> {
    match way_on {
        WayOn::Llm { turn, .. } => Some((turn, turn.attempt)),
        WayOn::Tools { turn, batch, .. } => {
            Some((turn, batch.runs().iter().map(|run| run.attempt).max().unwrap_or_default()))
        }
        WayOn::Hook { turn, hooks, .. } => Some((turn, hooks.attempt)),
        WayOn::Harness { .. } => None,
    }
}

/// The model request failed.
pub(super) fn llm_failed(
    draft: Draft<'_>,
    reason: Reason,
    turn: &Turn,
    trouble: &HarnessTrouble,
) -> Answer {
    let waits_too_long = trouble.retry_after_ms.is_some_and(|wait| wait > RETRY_AFTER_MAX_MS);
    let (code, passing) = match trouble.trouble {
        TroubleKind::Passing if waits_too_long => (ErrorCode::UsageLimit, false),
        TroubleKind::Passing => (ErrorCode::StreamingFailed, true),
        TroubleKind::Auth => (ErrorCode::AuthFailed, false),
        TroubleKind::UsageLimit => (ErrorCode::UsageLimit, false),
        TroubleKind::UnknownModel => (ErrorCode::ModelNotFound, false),
        TroubleKind::ContextFull => (ErrorCode::ContextFull, false),
        TroubleKind::Lasting => (ErrorCode::StreamingFailed, false),
    };
    let error = AgentError {
        code,
        message: trouble.message.clone(),
        retryable: passing,
        source: ErrorSource::Harness,
        resets_at: match code {
            ErrorCode::UsageLimit => trouble.retry_after_ms.map(|wait| draft.at.plus_ms(wait)),
            ErrorCode::SessionNotFound
            | ErrorCode::StateTransitionInvalid
            | ErrorCode::HarnessFailed
            | ErrorCode::ToolExecutionFailed
            | ErrorCode::HookExecutionFailed
            | ErrorCode::StreamingFailed
            | ErrorCode::HookConfigInvalid
            | ErrorCode::AuthFailed
            | ErrorCode::ModelNotFound
            | ErrorCode::ContextFull
            | ErrorCode::Interrupted => None,
        },
    };
    let draft = draft.fail(&error);
    let tries_left = LLM_RETRY_DELAYS_MS.get(usize::from(turn.attempt).saturating_sub(1));
    // The same conversation and the same model get the same answer: no retry is offered for them.
    let again = match code {
        ErrorCode::ModelNotFound | ErrorCode::ContextFull => Again::Nothing,
        ErrorCode::SessionNotFound
        | ErrorCode::StateTransitionInvalid
        | ErrorCode::HarnessFailed
        | ErrorCode::ToolExecutionFailed
        | ErrorCode::HookExecutionFailed
        | ErrorCode::StreamingFailed
        | ErrorCode::HookConfigInvalid
        | ErrorCode::UsageLimit
        | ErrorCode::AuthFailed
        | ErrorCode::Interrupted => Again::Llm,
    };
    let after = |error| Ready { after: After::Failed { error, again }, owed: None };
    match (passing, tries_left) {
        (true, Some(delay_ms)) => {
            let after_ms = trouble.retry_after_ms.unwrap_or(*delay_ms);
            let timer = RetryTimer::Running { after_ms };
            let way_on = WayOn::Llm { turn: turn.clone(), timer };
            fail_with_timer(draft, reason, error, way_on)
        }
        (true, None) => end_turn(draft, Reason::RetriesExhausted, turn, after(error)),
        (false, _) => end_turn(draft, reason, turn, after(error)),
    }
}

/// A hook failed: its policy decides.
pub(super) fn hook_failed(
    draft: Draft<'_>,
    turn: Turn,
    batch: Batch,
    hooks: HookPass,
    why: &str,
) -> Answer {
    let hook = hooks.hook(&draft.setup.hooks).expect("a pass names a hook of this session");
    let error = AgentError {
        code: ErrorCode::HookExecutionFailed,
        message: format!("hook {} failed: {why}", hook.name).into(),
        retryable: hook.failure_policy != FailurePolicy::WarnContinue,
        source: ErrorSource::Hook,
        resets_at: None,
    };
    let timer = match hook.failure_policy {
        FailurePolicy::WarnContinue => return next_hook(draft.fail(&error), turn, batch, &hooks),
        FailurePolicy::Retry { max_attempts, delay_ms } if hooks.attempt < max_attempts => {
            RetryTimer::Running { after_ms: delay_ms }
        }
        FailurePolicy::Retry { .. } | FailurePolicy::FailSession => RetryTimer::None,
    };
    let way_on = WayOn::Hook { turn, batch, hooks, timer };
    fail_with_timer(draft.fail(&error), Reason::Failed, error, way_on)
}

/// One hook is done: the next one, or on.
pub(super) fn next_hook(draft: Draft<'_>, turn: Turn, batch: Batch, done: &HookPass) -> Answer {
    match done.next(&draft.setup.hooks, &batch, draft.seed) {
        Some(hooks) => {
            let order = hook_order(&draft, &hooks);
            draft.act(order).stay(State::PostToolsHook { turn, batch, hooks })
        }
        None => after_hooks(draft, Reason::HooksCompleted, turn, batch),
    }
}
