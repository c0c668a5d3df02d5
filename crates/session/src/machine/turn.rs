//! States of a turn in which the model, or the operator, has the word:
//! CallingLlm, ProcessingResponse, AwaitingApproval, AwaitingInput.

use std::sync::Arc;

use super::action::{Action, HarnessAnswer};
use super::batch::{Batch, Fate};
use super::change::{AgentError, ErrorCode, ErrorSource, HarnessTrouble, Reason, TroubleKind};
use super::event::{Event, PauseCause};
use super::letting_go::{let_go, stop};
use super::state::{After, Again, Ready, Said, State, Turn};
use super::step::{Answer, Declined, Draft, Process, Tools};
use super::timer::Timer;
use super::waiting::harness_exited;
use super::{flow, theirs};
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
                true => theirs::turn_over(draft, turn, Said::nothing()),
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
        Event::ToolReported { call, .. } => {
            theirs::tool_begun(draft, turn, Batch::of_theirs(), call)
        }
        Event::ApprovalAsked { call, .. } => {
            theirs::permission_asked(draft, turn, Batch::of_theirs(), call)
        }
        Event::QuestionAsked { call, .. } => {
            theirs::question_asked(draft, turn, Batch::of_theirs(), call)
        }
        // The end of a call that was settled before: their reports may come late.
        Event::ToolEnded { .. } | Event::RequestWithdrawn { .. } => Err(Declined::Stale),
        Event::BatchHeld { .. } => theirs::batch_held(draft, turn.clone(), Batch::of_theirs()),
        Event::PauseRequested { cause } => {
            draft.stay(State::CallingLlm { turn: with_pause(turn, *cause) })
        }
        Event::InterruptRequested => interrupt(draft, state, turn),
        Event::StopRequested => stop(draft, Reason::StopRequested, state),
        Event::HarnessExited { code, why } => {
            exited_in_turn(draft, state, turn, *code, why.as_ref())
        }
        Event::Restarted => lost_request(draft, turn),
        Event::TimerFired { .. } => stop(draft, Reason::TimedOut, state),
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
        Tools::Theirs | Tools::TheirsHeld => theirs::turn_over(draft, turn, said),
    }
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
        Event::StopRequested => stop(draft, Reason::StopRequested, state),
        Event::HarnessExited { code, why } => {
            exited_in_turn(draft, state, turn, *code, why.as_ref())
        }
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
        Event::ApprovalDecided { call, approved, message, mode } => {
            let undecided = batch.call_mut(call).filter(|run| run.fate == Fate::Undecided);
            let Some(run) = undecided else { return Err(Declined::Refused) };
            let draft = match draft.setup.tools {
                Tools::Ours => {
                    run.fate = decided(*approved, message.as_deref());
                    draft
                }
                Tools::Theirs | Tools::TheirsHeld => {
                    let (draft, answer) = match approved {
                        true => {
                            let mode = mode.clone();
                            (theirs::let_run(draft, run), HarnessAnswer::Approved { mode })
                        }
                        false => {
                            let message = message.clone();
                            let draft = theirs::end_run(draft, run, Fate::Canceled);
                            (draft, HarnessAnswer::Rejected { message })
                        }
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
                if ours {
                    run.fate = Fate::Allowed;
                    continue;
                }
                let answer = HarnessAnswer::Approved { mode: None };
                draft = theirs::let_run(draft, run).act(Action::AnswerHarness { call, answer });
            }
            after_decision(draft, turn, batch)
        }
        // A question of theirs may be open beside it; one of ours is not asked yet.
        Event::InputGiven { call, text, answers } => {
            let draft = theirs::answer(draft, &mut batch, call, text, answers)?;
            after_decision(draft, turn, batch)
        }
        Event::RequestWithdrawn { call, .. } => {
            let draft = theirs::end_call(draft, &mut batch, call, Fate::Canceled)?;
            after_decision(draft, turn, batch)
        }
        Event::ToolEnded { call, is_error, output, .. } => {
            let result = theirs::result(*is_error, output.as_ref());
            let draft = theirs::end_call(draft, &mut batch, call, result)?;
            after_decision(draft, turn, batch)
        }
        Event::ToolReported { call, .. } => theirs::tool_begun(draft, turn, batch, call),
        Event::ApprovalAsked { call, .. } => theirs::permission_asked(draft, turn, batch, call),
        Event::QuestionAsked { call, .. } => theirs::question_asked(draft, turn, batch, call),
        Event::StreamDelta { .. } => draft.stay(state.clone()),
        Event::StreamCompleted { text, cut_off, .. } => {
            theirs::cut_short(draft, state, turn, text.as_ref(), *cut_off)
        }
        Event::StreamFailed { trouble, .. } => theirs::turn_failed(draft, state, turn, trouble),
        Event::PauseRequested { cause } => {
            draft.stay(State::AwaitingApproval { turn: with_pause(turn, *cause), batch })
        }
        Event::InterruptRequested => interrupt(draft, state, turn),
        Event::StopRequested => stop(draft, Reason::StopRequested, state),
        Event::HarnessExited { code, why } => {
            exited_in_turn(draft, state, turn, *code, why.as_ref())
        }
        Event::TimerFired { .. } => stop(draft, Reason::TimedOut, state),
        // The questions stand; what an agent ran beside them is lost.
        Event::Restarted => {
            let draft = theirs::lose_running(draft, &mut batch);
            draft.stay(State::AwaitingApproval { turn: turn.clone(), batch })
        }
        Event::Spawned
        | Event::UserInput { .. }
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
            theirs::follow(draft, Reason::ApprovalDecided, turn, batch)
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
        Event::InputGiven { call, text, answers } => {
            let draft = match draft.setup.tools {
                Tools::Ours => {
                    let open = batch.call_mut(call).filter(|run| run.fate == Fate::Unanswered);
                    open.ok_or(Declined::Refused)?.fate = Fate::Answered(text.clone());
                    draft
                }
                Tools::Theirs | Tools::TheirsHeld => {
                    theirs::answer(draft, &mut batch, call, text, answers)?
                }
            };
            after_answer(draft, turn, batch)
        }
        Event::RequestWithdrawn { call, .. } => {
            let draft = theirs::end_call(draft, &mut batch, call, Fate::Canceled)?;
            after_answer(draft, turn, batch)
        }
        Event::ToolEnded { call, is_error, output, .. } => {
            let result = theirs::result(*is_error, output.as_ref());
            let draft = theirs::end_call(draft, &mut batch, call, result)?;
            after_answer(draft, turn, batch)
        }
        Event::ToolReported { call, .. } => theirs::tool_begun(draft, turn, batch, call),
        Event::ApprovalAsked { call, .. } => theirs::permission_asked(draft, turn, batch, call),
        Event::QuestionAsked { call, .. } => theirs::question_asked(draft, turn, batch, call),
        Event::StreamDelta { .. } => draft.stay(state.clone()),
        Event::StreamCompleted { text, cut_off, .. } => {
            theirs::cut_short(draft, state, turn, text.as_ref(), *cut_off)
        }
        Event::StreamFailed { trouble, .. } => theirs::turn_failed(draft, state, turn, trouble),
        Event::PauseRequested { cause } => {
            draft.stay(State::AwaitingInput { turn: with_pause(turn, *cause), batch })
        }
        Event::InterruptRequested => interrupt(draft, state, turn),
        Event::StopRequested => stop(draft, Reason::StopRequested, state),
        Event::HarnessExited { code, why } => {
            exited_in_turn(draft, state, turn, *code, why.as_ref())
        }
        Event::TimerFired { .. } => stop(draft, Reason::TimedOut, state),
        // The question stands; what an agent ran beside it is lost.
        Event::Restarted => {
            let draft = theirs::lose_running(draft, &mut batch);
            draft.stay(State::AwaitingInput { turn: turn.clone(), batch })
        }
        Event::YoloSwitched { .. } => draft.stay(state.clone()),
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
        Tools::Theirs | Tools::TheirsHeld => theirs::follow(draft, Reason::InputGiven, turn, batch),
    }
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
    let (mut draft, owed) = let_go(draft, state);
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
    why: Option<&Arc<str>>,
) -> Answer {
    if draft.setup.process == Process::OneTurn && code == Some(0) {
        let (draft, owed) = let_go(draft, state);
        let after = match turn.interrupting {
            true => After::Interrupted,
            false => After::Turn(Said::nothing()),
        };
        return flow::end_turn(draft, Reason::HarnessExited, turn, Ready { after, owed });
    }
    harness_exited(draft, state, code, why)
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
