//! States of a turn in which the model, or the operator, has the word:
//! CallingLlm, ProcessingResponse, AwaitingApproval, AwaitingInput.

use std::sync::Arc;

use super::action::{Action, HarnessAnswer};
use super::batch::{Batch, Fate, Run, ToolCall};
use super::change::{
    AgentError, Change, ErrorCode, ErrorSource, HarnessTrouble, Reason, TroubleKind,
};
use super::event::{Event, PauseCause};
use super::flow;
use super::hooks::HookPass;
use super::state::{After, Again, Kind, Ready, Said, State, Turn};
use super::step::{Answer, Declined, Draft, Process, Tools};
use super::timer::Timer;
use super::waiting::harness_exited;
use crate::id::CallId;
use crate::limits::STOP_GRACE_MS;

pub(super) fn calling_llm(draft: Draft<'_>, state: &State, turn: &Turn, event: &Event) -> Answer {
    match event {
        Event::StreamDelta { .. } => draft.act(flow::silence_timer(turn)).stay(state.clone()),
        Event::StreamCompleted { text, cut_off, .. } => {
            let said = Said::frozen(text.as_deref(), *cut_off);
            stream_completed(draft, turn, said)
        }
        Event::StreamFailed { trouble, .. } => {
            let draft = flow::close_stream(draft, turn);
            match turn.interrupting {
                // However it ended: the operator wanted it to.
                true => turn_over(draft, turn, Said::nothing()),
                false => flow::llm_failed(draft, Reason::Failed, turn, trouble),
            }
        }
        Event::TimerFired { timer: Timer::LlmSilence { .. } } => {
            let trouble = HarnessTrouble {
                trouble: TroubleKind::Passing,
                message: "the model's stream fell silent".into(),
                retry_after_ms: None,
            };
            let draft = draft.act(Action::InterruptHarness { turn: turn.id.clone() });
            flow::llm_failed(draft, Reason::TimedOut, turn, &trouble)
        }
        Event::ToolReported { call, .. } => their_tool(draft, turn, Batch::of_theirs(), call),
        Event::ApprovalAsked { call, .. } => {
            their_permission(draft, turn, Batch::of_theirs(), call)
        }
        Event::QuestionAsked { call, .. } => their_question(draft, turn, Batch::of_theirs(), call),
        // The end of a call that was settled before: their reports may come late.
        Event::ToolEnded { .. } | Event::RequestWithdrawn { .. } => Err(Declined::Stale),
        Event::BatchHeld { .. } => held(draft, turn.clone(), Batch::of_theirs()),
        Event::PauseRequested { cause } => {
            draft.stay(State::CallingLlm { turn: with_pause(turn, *cause) })
        }
        Event::InterruptRequested => interrupt(draft, state, turn),
        Event::StopRequested => flow::stop(draft, Reason::StopRequested, state),
        Event::HarnessExited { code } => exited_in_turn(draft, state, turn, *code),
        Event::Restarted => lost_request(draft, turn),
        Event::TimerFired { .. } => flow::stop(draft, Reason::TimedOut, state),
        Event::YoloSwitched { .. } => draft.stay(state.clone()),
        Event::Spawned
        | Event::UserInput { .. }
        | Event::ApprovalDecided { .. }
        | Event::InputGiven { .. }
        | Event::RetryRequested { .. }
        | Event::ResumeRequested
        | Event::HarnessReady
        | Event::ResponseParsed { .. }
        | Event::ToolStarted { .. }
        | Event::ToolFinished { .. }
        | Event::HookStarted { .. }
        | Event::HookFinished { .. } => Err(Declined::Refused),
    }
}

/// The answer is complete. Ours is taken apart; an agent with its own tools has ended its turn.
fn stream_completed(draft: Draft<'_>, turn: &Turn, said: Said) -> Answer {
    let draft = flow::close_stream(draft, turn);
    match draft.setup.tools {
        Tools::Ours => {
            let state = State::ProcessingResponse { turn: turn.clone(), said };
            let parse = Action::ParseResponse { turn: turn.id.clone() };
            draft.enter(state, Reason::StreamCompleted).then(parse).done()
        }
        Tools::Theirs | Tools::TheirsHeld => turn_over(draft, turn, said),
    }
}

/// An agent with its own tools says that its turn is over.
fn turn_over(draft: Draft<'_>, turn: &Turn, said: Said) -> Answer {
    let (draft, after, reason) = match turn.interrupting {
        true => {
            let timer = Timer::Interrupt { turn: turn.id.clone() };
            (draft.act(Action::CancelTimer { timer }), After::Interrupted, Reason::Interrupted)
        }
        false => (draft, After::Turn(said), Reason::StreamCompleted),
    };
    flow::end_turn(draft, reason, turn, Ready { after, owed: None })
}

pub(super) fn processing_response(
    draft: Draft<'_>,
    state: &State,
    turn: &Turn,
    said: &Said,
    event: &Event,
) -> Answer {
    match event {
        Event::ResponseParsed { calls, .. } if calls.is_empty() => {
            let ready = Ready { after: After::Turn(*said), owed: None };
            flow::end_turn(draft, Reason::StreamCompleted, turn, ready)
        }
        Event::ResponseParsed { calls, .. } => {
            let batch = Batch::judged(calls.clone());
            if batch.any(|fate| *fate == Fate::Undecided) {
                return ask_approval(draft, turn.clone(), batch);
            }
            flow::run_batch(draft, Reason::ToolsRequested, turn.clone(), batch)
        }
        Event::PauseRequested { cause } => {
            let turn = with_pause(turn, *cause);
            draft.stay(State::ProcessingResponse { turn, said: *said })
        }
        Event::InterruptRequested => interrupted(draft, state),
        Event::StopRequested => flow::stop(draft, Reason::StopRequested, state),
        Event::HarnessExited { code } => exited_in_turn(draft, state, turn, *code),
        // The answer is frozen in the journal: take it apart again.
        Event::Restarted => {
            draft.act(Action::ParseResponse { turn: turn.id.clone() }).stay(state.clone())
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
        | Event::StreamCompleted { .. }
        | Event::StreamFailed { .. }
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

/// One request for each call that policy wants to ask about; nothing runs before all are decided.
fn ask_approval(draft: Draft<'_>, turn: Turn, batch: Batch) -> Answer {
    let asked: Vec<Action> = batch
        .runs()
        .iter()
        .filter(|run| run.fate == Fate::Undecided)
        .map(|run| Action::RequestApproval { call: run.call.clone() })
        .collect();
    draft
        .enter(State::AwaitingApproval { turn, batch }, Reason::ApprovalRequired)
        .then_all(asked)
        .done()
}

pub(super) fn awaiting_approval(
    draft: Draft<'_>,
    state: &State,
    turn: &Turn,
    batch: &Batch,
    event: &Event,
) -> Answer {
    let mut batch = batch.clone();
    match event {
        Event::ApprovalDecided { call, approved, message } => {
            let undecided = batch.call_mut(call).filter(|run| run.fate == Fate::Undecided);
            let Some(run) = undecided else { return Err(Declined::Refused) };
            let draft = match draft.setup.tools {
                Tools::Ours => {
                    run.fate = decided(*approved, message.as_deref());
                    draft
                }
                Tools::Theirs | Tools::TheirsHeld => {
                    run.fate = if *approved { Fate::Running } else { Fate::Canceled };
                    let answer = match approved {
                        true => HarnessAnswer::Approved,
                        false => HarnessAnswer::Rejected { message: message.clone() },
                    };
                    draft.act(Action::AnswerHarness { call: call.clone(), answer })
                }
            };
            after_decision(draft, turn, batch)
        }
        Event::YoloSwitched { on: false } => draft.stay(state.clone()),
        // Releases what waits. Deny rules held already: their calls never came this far.
        Event::YoloSwitched { on: true } => {
            let waiting: Vec<_> = batch
                .runs()
                .iter()
                .filter(|run| run.fate == Fate::Undecided)
                .map(|run| run.call.call_id.clone())
                .collect();
            let ours = draft.setup.tools == Tools::Ours;
            let mut draft = draft;
            for call in waiting {
                let run = batch.call_mut(&call).expect("the call was just read from this batch");
                run.fate = if ours { Fate::Allowed } else { Fate::Running };
                if !ours {
                    let answer = HarnessAnswer::Approved;
                    draft = draft.act(Action::AnswerHarness { call, answer });
                }
            }
            after_decision(draft, turn, batch)
        }
        Event::RequestWithdrawn { call, .. } => {
            let draft = end_their_call(draft, &mut batch, call, Fate::Canceled)?;
            after_decision(draft, turn, batch)
        }
        Event::ToolEnded { call, is_error, .. } => {
            let draft = end_their_call(draft, &mut batch, call, their_result(*is_error))?;
            after_decision(draft, turn, batch)
        }
        Event::ToolReported { call, .. } => their_tool(draft, turn, batch, call),
        Event::ApprovalAsked { call, .. } => their_permission(draft, turn, batch, call),
        Event::QuestionAsked { call, .. } => their_question(draft, turn, batch, call),
        Event::StreamDelta { .. } => draft.stay(state.clone()),
        Event::StreamCompleted { text, cut_off, .. } => {
            their_turn_over(draft, state, turn, text.as_ref(), *cut_off)
        }
        Event::StreamFailed { trouble, .. } => their_turn_failed(draft, state, turn, trouble),
        Event::PauseRequested { cause } => {
            draft.stay(State::AwaitingApproval { turn: with_pause(turn, *cause), batch })
        }
        Event::InterruptRequested => interrupt(draft, state, turn),
        Event::StopRequested => flow::stop(draft, Reason::StopRequested, state),
        Event::HarnessExited { code } => exited_in_turn(draft, state, turn, *code),
        Event::TimerFired { .. } => flow::stop(draft, Reason::TimedOut, state),
        // Nothing ran yet: the questions stand.
        Event::Restarted => draft.stay(state.clone()),
        Event::Spawned
        | Event::UserInput { .. }
        | Event::InputGiven { .. }
        | Event::RetryRequested { .. }
        | Event::ResumeRequested
        | Event::HarnessReady
        | Event::ResponseParsed { .. }
        | Event::BatchHeld { .. }
        | Event::ToolStarted { .. }
        | Event::ToolFinished { .. }
        | Event::HookStarted { .. }
        | Event::HookFinished { .. } => Err(Declined::Refused),
    }
}

fn decided(approved: bool, message: Option<&str>) -> Fate {
    match (approved, message) {
        (true, _) => Fate::Allowed,
        (false, Some(message)) => Fate::Rejected(format!("by the operator: {message}").into()),
        (false, None) => Fate::Rejected("by the operator".into()),
    }
}

/// A decision was taken: wait for the others, or go on.
fn after_decision(draft: Draft<'_>, turn: &Turn, batch: Batch) -> Answer {
    if batch.any(|fate| *fate == Fate::Undecided) {
        return draft.stay(State::AwaitingApproval { turn: turn.clone(), batch });
    }
    match draft.setup.tools {
        Tools::Ours => flow::run_batch(draft, Reason::ApprovalDecided, turn.clone(), batch),
        Tools::Theirs | Tools::TheirsHeld => {
            follow_theirs(draft, Reason::ApprovalDecided, turn, batch)
        }
    }
}

pub(super) fn awaiting_input(
    draft: Draft<'_>,
    state: &State,
    turn: &Turn,
    batch: &Batch,
    event: &Event,
) -> Answer {
    let mut batch = batch.clone();
    match event {
        Event::InputGiven { call, text } => {
            let open = batch.call_mut(call).filter(|run| run.fate == Fate::Unanswered);
            let Some(run) = open else { return Err(Declined::Refused) };
            run.fate = Fate::Answered(text.clone());
            let draft = match draft.setup.tools {
                Tools::Ours => draft,
                Tools::Theirs | Tools::TheirsHeld => {
                    let answer = HarnessAnswer::Input { text: text.clone() };
                    draft.act(Action::AnswerHarness { call: call.clone(), answer })
                }
            };
            after_answer(draft, turn, batch)
        }
        Event::RequestWithdrawn { call, .. } => {
            let draft = end_their_call(draft, &mut batch, call, Fate::Canceled)?;
            after_answer(draft, turn, batch)
        }
        Event::ToolEnded { call, is_error, .. } => {
            let draft = end_their_call(draft, &mut batch, call, their_result(*is_error))?;
            after_answer(draft, turn, batch)
        }
        Event::ToolReported { call, .. } => their_tool(draft, turn, batch, call),
        Event::ApprovalAsked { call, .. } => their_permission(draft, turn, batch, call),
        Event::QuestionAsked { call, .. } => their_question(draft, turn, batch, call),
        Event::StreamDelta { .. } => draft.stay(state.clone()),
        Event::StreamCompleted { text, cut_off, .. } => {
            their_turn_over(draft, state, turn, text.as_ref(), *cut_off)
        }
        Event::StreamFailed { trouble, .. } => their_turn_failed(draft, state, turn, trouble),
        Event::PauseRequested { cause } => {
            draft.stay(State::AwaitingInput { turn: with_pause(turn, *cause), batch })
        }
        Event::InterruptRequested => interrupt(draft, state, turn),
        Event::StopRequested => flow::stop(draft, Reason::StopRequested, state),
        Event::HarnessExited { code } => exited_in_turn(draft, state, turn, *code),
        Event::TimerFired { .. } => flow::stop(draft, Reason::TimedOut, state),
        // The rest of the batch has run: the question stands.
        Event::Restarted | Event::YoloSwitched { .. } => draft.stay(state.clone()),
        Event::Spawned
        | Event::UserInput { .. }
        | Event::ApprovalDecided { .. }
        | Event::RetryRequested { .. }
        | Event::ResumeRequested
        | Event::HarnessReady
        | Event::ResponseParsed { .. }
        | Event::BatchHeld { .. }
        | Event::ToolStarted { .. }
        | Event::ToolFinished { .. }
        | Event::HookStarted { .. }
        | Event::HookFinished { .. } => Err(Declined::Refused),
    }
}

fn after_answer(draft: Draft<'_>, turn: &Turn, batch: Batch) -> Answer {
    if batch.any(|fate| *fate == Fate::Unanswered) {
        return draft.stay(State::AwaitingInput { turn: turn.clone(), batch });
    }
    match draft.setup.tools {
        Tools::Ours => flow::after_batch(draft, Reason::InputGiven, turn.clone(), batch),
        Tools::Theirs | Tools::TheirsHeld => follow_theirs(draft, Reason::InputGiven, turn, batch),
    }
}

/// The outputs of an agent's own tools are its own business.
pub(super) fn their_result(is_error: bool) -> Fate {
    Fate::Succeeded { output: "".into(), is_error }
}

/// A call of theirs ended, or is no longer asked about: stale if it is not known, or over already.
pub(super) fn end_their_call<'a>(
    draft: Draft<'a>,
    batch: &mut Batch,
    call: &CallId,
    fate: Fate,
) -> Result<Draft<'a>, Declined> {
    let is_open =
        |run: &&mut Run| matches!(run.fate, Fate::Undecided | Fate::Unanswered | Fate::Running);
    let run = batch.call_mut(call).filter(is_open).ok_or(Declined::Stale)?;
    run.fate = fate;
    run.started_at.get_or_insert(draft.at);
    run.finished_at = Some(draft.at);
    let shown = run.lifecycle().map(Change::ToolLifecycle);
    Ok(shown.into_iter().fold(draft, Draft::show))
}

/// An agent with its own tools has begun a call.
pub(super) fn their_tool(
    draft: Draft<'_>,
    turn: &Turn,
    mut batch: Batch,
    call: &ToolCall,
) -> Answer {
    if draft.setup.tools == Tools::Ours {
        return Err(Declined::Refused);
    }
    // A call that was approved is reported again when it begins.
    if batch.call_mut(&call.call_id).is_some() {
        return Err(Declined::Stale);
    }
    let run = batch.report(call, Fate::Running, draft.seed.run(0));
    run.start(draft.at);
    let shown = run.lifecycle().map(Change::ToolLifecycle);
    let draft = shown.into_iter().fold(draft, Draft::show);
    follow_theirs(draft, Reason::ToolsRequested, turn, batch)
}

/// An agent with its own tools asks for permission.
pub(super) fn their_permission(
    draft: Draft<'_>,
    turn: &Turn,
    mut batch: Batch,
    call: &ToolCall,
) -> Answer {
    if draft.setup.tools == Tools::Ours {
        return Err(Declined::Refused);
    }
    batch.report(call, Fate::Undecided, draft.seed.run(0));
    let ask = Action::RequestApproval { call: call.clone() };
    let state = State::AwaitingApproval { turn: turn.clone(), batch };
    enter_or_stay(draft, state, Reason::ApprovalRequired, ask)
}

/// An agent with its own tools asks a question.
pub(super) fn their_question(
    draft: Draft<'_>,
    turn: &Turn,
    mut batch: Batch,
    call: &ToolCall,
) -> Answer {
    if draft.setup.tools == Tools::Ours {
        return Err(Declined::Refused);
    }
    batch.report(call, Fate::Unanswered, draft.seed.run(0));
    let ask = Action::RequestInput { call: call.clone() };
    let turn = turn.clone();
    // A permission is more urgent: it keeps the state, both are asked.
    let state = match batch.any(|fate| *fate == Fate::Undecided) {
        true => State::AwaitingApproval { turn, batch },
        false => State::AwaitingInput { turn, batch },
    };
    enter_or_stay(draft, state, Reason::InputRequired, ask)
}

fn enter_or_stay(draft: Draft<'_>, state: State, reason: Reason, action: Action) -> Answer {
    match draft.is_in(&state) {
        true => draft.act(action).stay(state),
        false => draft.enter(state, reason).then(action).done(),
    }
}

/// Where an agent with its own tools is, by what is known of its calls.
pub(super) fn follow_theirs(draft: Draft<'_>, reason: Reason, turn: &Turn, batch: Batch) -> Answer {
    let turn = turn.clone();
    let mutated = batch.has_mutated();
    let open = |wanted: Fate| batch.any(|fate| *fate == wanted);
    let state = if open(Fate::Undecided) {
        State::AwaitingApproval { turn, batch }
    } else if open(Fate::Unanswered) {
        State::AwaitingInput { turn, batch }
    } else if open(Fate::Running) || draft.setup.tools == Tools::TheirsHeld {
        // A held agent's batch is over when its driver says so, not before.
        State::ExecutingTools { turn, batch }
    } else {
        State::CallingLlm { turn }
    };
    if draft.is_in(&state) {
        return draft.stay(state);
    }
    let skipped = state.kind() == Kind::CallingLlm
        && reason == Reason::ToolsCompleted
        && mutated
        && !draft.setup.hooks.is_empty();
    let reason = if skipped { Reason::HooksSkipped } else { reason };
    let streaming = state.kind() == Kind::CallingLlm;
    let timer = state.turn().filter(|_| streaming).map(flow::silence_timer);
    draft.enter(state, reason).then_all(timer).done()
}

/// The batch of a held agent is over: hooks, then let it go on.
pub(super) fn held(draft: Draft<'_>, turn: Turn, mut batch: Batch) -> Answer {
    if draft.setup.tools != Tools::TheirsHeld {
        return Err(Declined::Refused);
    }
    // Calls whose end got lost are over with their batch.
    let over = batch.cancel(draft.at);
    let draft = over.into_iter().map(Change::ToolLifecycle).fold(draft, Draft::show);
    match HookPass::for_batch(&draft.setup.hooks, &batch, draft.seed) {
        Some(hooks) => flow::run_hook(draft, Reason::ToolsCompleted, turn, batch, hooks),
        None => {
            let reason = match batch.has_mutated() {
                true => Reason::HooksSkipped,
                false => Reason::ToolsCompleted,
            };
            flow::release(draft, reason, turn)
        }
    }
}

/// The turn of an agent with its own tools ended with calls open: they are over with it.
pub(super) fn their_turn_over(
    draft: Draft<'_>,
    state: &State,
    turn: &Turn,
    text: Option<&Arc<str>>,
    cut_off: bool,
) -> Answer {
    if draft.setup.tools == Tools::Ours {
        return Err(Declined::Refused);
    }
    let (draft, _) = flow::let_go(draft, state);
    let ended = Turn { interrupting: false, ..turn.clone() };
    let said = Said::frozen(text.map(|text| &**text), cut_off);
    let (after, reason) = match turn.interrupting {
        true => (After::Interrupted, Reason::Interrupted),
        false => (After::Turn(said), Reason::StreamCompleted),
    };
    flow::end_turn(draft, reason, &ended, Ready { after, owed: None })
}

pub(super) fn their_turn_failed(
    draft: Draft<'_>,
    state: &State,
    turn: &Turn,
    trouble: &HarnessTrouble,
) -> Answer {
    if draft.setup.tools == Tools::Ours {
        return Err(Declined::Refused);
    }
    let (draft, _) = flow::let_go(draft, state);
    flow::llm_failed(draft, Reason::Failed, turn, trouble)
}

/// The operator ends the turn. What we run ends at once; an agent with its own tools is asked, and
/// watched.
pub(super) fn interrupt(draft: Draft<'_>, state: &State, turn: &Turn) -> Answer {
    if draft.setup.tools == Tools::Ours {
        return interrupted(draft, state);
    }
    if turn.interrupting {
        return draft.stay(state.clone());
    }
    let ask = Action::InterruptHarness { turn: turn.id.clone() };
    let timer = Timer::Interrupt { turn: turn.id.clone() };
    let watch = Action::StartTimer { timer, after_ms: STOP_GRACE_MS };
    let mut state = state.clone();
    if let Some(turn) = state.turn_mut() {
        turn.interrupting = true;
    }
    draft.act(ask).act(watch).stay(state)
}

/// The turn ended by the operator's hand.
pub(super) fn interrupted(draft: Draft<'_>, state: &State) -> Answer {
    let turn = state.turn().map(|turn| turn.id.clone());
    let streaming = matches!(state, State::CallingLlm { .. });
    let (mut draft, owed) = flow::let_go(draft, state);
    if let Some(turn) = turn.filter(|_| streaming) {
        draft = draft.act(Action::InterruptHarness { turn });
    }
    let ready = Ready { after: After::Interrupted, owed };
    draft.enter(State::Ready(ready), Reason::Interrupted).done()
}

/// The process ended in the middle of a turn. One process a turn: a clean exit is its end.
pub(super) fn exited_in_turn(
    draft: Draft<'_>,
    state: &State,
    turn: &Turn,
    code: Option<i32>,
) -> Answer {
    if draft.setup.process == Process::OneTurn && code == Some(0) {
        let (draft, owed) = flow::let_go(draft, state);
        let after = match turn.interrupting {
            true => After::Interrupted,
            false => After::Turn(Said::nothing()),
        };
        return flow::end_turn(draft, Reason::HarnessExited, turn, Ready { after, owed });
    }
    harness_exited(draft, state, code)
}

/// A crash of ours cut the request off. It is not asked again behind the operator's back.
fn lost_request(draft: Draft<'_>, turn: &Turn) -> Answer {
    let error = AgentError {
        code: ErrorCode::Interrupted,
        message: "interrupted by a restart; the answer is lost".into(),
        retryable: true,
        source: ErrorSource::Orchestrator,
        resets_at: None,
    };
    let draft = draft.fail(&error);
    let ready = Ready { after: After::Failed { error, again: Again::Llm }, owed: None };
    flow::end_turn(draft, Reason::Failed, turn, ready)
}

pub(super) fn with_pause(turn: &Turn, cause: PauseCause) -> Turn {
    Turn { pause: Some(cause), ..turn.clone() }
}
