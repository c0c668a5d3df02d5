//! An agent that runs its own tools: states follow its reports, and nothing is executed by us.

use std::sync::Arc;

use super::action::{Action, HarnessAnswer};
use super::batch::{Batch, Fate, Run, ToolCall};
use super::change::{Change, HarnessTrouble, Reason};
use super::flow;
use super::hooks::HookPass;
use super::letting_go::let_go;
use super::state::{After, Kind, Ready, Said, State, Turn};
use super::step::{Answer, Declined, Draft, Tools};
use super::timer::Timer;
use crate::decision;
use crate::id::CallId;

/// An agent with its own tools says that its turn is over.
pub(super) fn turn_over(draft: Draft<'_>, turn: &Turn, said: Said) -> Answer {
    let (draft, after, reason) = match turn.interrupting {
        true => {
            let timer = Timer::Interrupt { turn: turn.id.clone() };
            (draft.act(Action::CancelTimer { timer }), After::Interrupted, Reason::Interrupted)
        }
        false => (draft, After::Turn(said), Reason::StreamCompleted),
    };
    flow::end_turn(draft, reason, turn, Ready { after, owed: None })
}

/// What came out of an agent's own tool is shown; its model has it already.
pub(super) fn result(is_error: bool, output: Option<&Arc<str>>) -> Fate {
    Fate::Succeeded { output: output.cloned().unwrap_or_default(), is_error }
}

/// A call of theirs ended, or is no longer asked about: stale if it is not known, or over already.
pub(super) fn end_call<'a>(
    draft: Draft<'a>,
    batch: &mut Batch,
    call: &CallId,
    fate: Fate,
) -> Result<Draft<'a>, Declined> {
    let open = batch.call_mut(call).filter(|run| run.fate.is_open());
    Ok(end_run(draft, open.ok_or(Declined::Stale)?, fate))
}

/// A run of theirs has come to its end.
pub(super) fn end_run<'a>(draft: Draft<'a>, run: &mut Run, fate: Fate) -> Draft<'a> {
    run.fate = fate;
    run.started_at.get_or_insert(draft.at);
    run.finished_at = Some(draft.at);
    show(draft, run)
}

/// A call of theirs was allowed. It is shown to run from here on, unless it was before anybody was
/// asked.
pub(super) fn let_run<'a>(draft: Draft<'a>, run: &mut Run) -> Draft<'a> {
    run.fate = Fate::Running;
    if run.started_at.is_some() {
        return draft;
    }
    run.start(draft.at);
    show(draft, run)
}

/// The operator's answer to a question of theirs, which is what came of it.
pub(super) fn answer<'a>(
    draft: Draft<'a>,
    batch: &mut Batch,
    call: &CallId,
    text: &Arc<str>,
    answers: &[decision::Answer],
) -> Result<Draft<'a>, Declined> {
    if draft.setup.tools == Tools::Ours {
        return Err(Declined::Refused);
    }
    let open = batch.call_mut(call).filter(|run| run.fate == Fate::Unanswered);
    let draft = end_run(draft, open.ok_or(Declined::Refused)?, Fate::Answered(text.clone()));
    let (text, answers) = (text.clone(), answers.to_vec());
    let answer = HarnessAnswer::Input { text, answers };
    Ok(draft.act(Action::AnswerHarness { call: call.clone(), answer }))
}

/// A crash of ours ended the agent with all that it ran: nobody knows what that did.
pub(super) fn lose_running<'a>(draft: Draft<'a>, batch: &mut Batch) -> Draft<'a> {
    let lost = batch.lose_running(draft.at);
    lost.into_iter().map(Change::ToolLifecycle).fold(draft, Draft::show)
}

fn show<'a>(draft: Draft<'a>, run: &Run) -> Draft<'a> {
    run.lifecycle().map(Change::ToolLifecycle).into_iter().fold(draft, Draft::show)
}

/// An agent with its own tools has begun a call.
pub(super) fn tool_begun(
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
    let draft = let_run(draft, run);
    follow(draft, Reason::ToolsRequested, turn, batch)
}

/// An agent with its own tools asks for permission.
pub(super) fn permission_asked(
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
pub(super) fn question_asked(
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
pub(super) fn follow(draft: Draft<'_>, reason: Reason, turn: &Turn, batch: Batch) -> Answer {
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
pub(super) fn batch_held(draft: Draft<'_>, turn: Turn, mut batch: Batch) -> Answer {
    if draft.setup.tools != Tools::TheirsHeld {
        return Err(Declined::Refused);
    }
    // Calls whose end got lost are over with their batch.
    let over = batch.cancel(draft.at);
    let draft = over.into_iter().map(Change::ToolLifecycle).fold(draft, Draft::show);
    // No hook keeps an agent from ending a turn that the operator wants to end.
    let wanted = match turn.interrupting {
        true => None,
        false => HookPass::for_batch(&draft.setup.hooks, &batch, draft.seed),
    };
    match wanted {
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
pub(super) fn cut_short(
    draft: Draft<'_>,
    state: &State,
    turn: &Turn,
    text: Option<&Arc<str>>,
    cut_off: bool,
) -> Answer {
    if draft.setup.tools == Tools::Ours {
        return Err(Declined::Refused);
    }
    let (draft, _) = let_go(draft, state);
    let said = Said::frozen(text.map(|text| &**text), cut_off);
    let (after, reason) = match turn.interrupting {
        true => (After::Interrupted, Reason::Interrupted),
        false => (After::Turn(said), Reason::StreamCompleted),
    };
    flow::end_turn(draft, reason, turn, Ready { after, owed: None })
}

pub(super) fn turn_failed(
    draft: Draft<'_>,
    state: &State,
    turn: &Turn,
    trouble: &HarnessTrouble,
) -> Answer {
    if draft.setup.tools == Tools::Ours {
        return Err(Declined::Refused);
    }
    let (draft, _) = let_go(draft, state);
    if turn.interrupting {
        // However it ended: the operator wanted it to.
        let ready = Ready { after: After::Interrupted, owed: None };
        return flow::end_turn(draft, Reason::Interrupted, turn, ready);
    }
    flow::llm_failed(draft, Reason::Failed, turn, trouble)
}
