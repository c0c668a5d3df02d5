//! Whether an answer fits what was asked, and reaches its agent whole by the way there is.
//!
//! What a client would drop, or take for something else, is refused with a sentence: nobody is to
//! believe that it was said.

use qd_harness::Harness;
use qd_session::decision::{Answer, Decision};
use qd_session::monitor::RequestKind;
use serde_json::Value;

use super::{CODEX, DRIVER, HOOK, OPENCODE, RECORDING, Waits};
use crate::driven_answer::unanswerable;

/// Why an answer to a request cannot be given by that way; none where it can. How far an allowance
/// reaches is judged in `scope.rs`.
pub fn misfit(waits: &Waits, way: &str, answer: &Decision) -> Option<String> {
    // The machine of a session that we drive says itself what else it takes.
    if way == DRIVER {
        return unanswerable(waits.harness, answer).map(str::to_owned);
    }
    if let Some(why) = other_kind(waits.shown.kind, answer) {
        return Some(why.to_owned());
    }
    if let Decision::Answer { answers } = answer
        && let Some(why) = not_asked(&questions(waits), answers)
    {
        return Some(why);
    }
    if way == HOOK && is_changed(answer) && waits.is_cut() {
        return Some("a part of it is too long to be shown: it cannot be changed here".to_owned());
    }
    let why = match (way, waits.harness) {
        (HOOK, Harness::Codex) => codex_hook(answer),
        (CODEX, _) => codex(waits.shown.kind, answer),
        (OPENCODE, _) => opencode(waits.shown.kind, answer),
        (RECORDING, _) if is_changed(answer) => Some("a recording goes on as it did"),
        _ => None,
    };
    why.map(str::to_owned)
}

fn is_changed(answer: &Decision) -> bool {
    matches!(answer, Decision::Allow { input: Some(_), .. })
}

/// A denial turns anything down.
fn other_kind(kind: RequestKind, answer: &Decision) -> Option<&'static str> {
    match (kind, answer) {
        (_, Decision::Deny { .. })
        | (RequestKind::Permission, Decision::Allow { .. })
        | (RequestKind::Question, Decision::Answer { .. })
        | (RequestKind::Plan, Decision::ApprovePlan { .. } | Decision::RejectPlan { .. }) => None,
        (RequestKind::Permission, _) => Some("it asks for a permission: allow it or deny it"),
        (RequestKind::Question, _) => Some("it asks a question: answer it"),
        (RequestKind::Plan, _) => Some("it proposes a plan: approve it or reject it"),
    }
}

/// Each question by its id and its text; none where they are not known whole.
fn questions(waits: &Waits) -> Option<Vec<[Option<String>; 2]>> {
    let whole = waits.hook.as_ref().map(|(_, asked)| asked.whole_input());
    let input: Value = serde_json::from_str(whole.as_ref().or(waits.ask.input.as_ref())?).ok()?;
    let text = |one: &Value, name: &str| one[name].as_str().map(str::to_owned);
    let names = |one: &Value| [text(one, "id"), text(one, "question")];
    match input["questions"].as_array().or(input.as_array()) {
        Some(several) => Some(several.iter().map(names).collect()),
        None => input["question"].is_string().then(|| vec![names(&input)]),
    }
}

fn not_asked(questions: &Option<Vec<[Option<String>; 2]>>, answers: &[Answer]) -> Option<String> {
    if answers.is_empty() {
        return Some("there is no answer in it".to_owned());
    }
    let questions = questions.as_ref()?;
    let is_asked = |answer: &&Answer| {
        questions.iter().flatten().flatten().any(|name| *name == answer.question)
    };
    let unasked = answers.iter().find(|answer| !is_asked(answer))?;
    Some(format!("it did not ask \u{201c}{}\u{201d}", unasked.question))
}

fn codex_hook(answer: &Decision) -> Option<&'static str> {
    match answer {
        changed if is_changed(changed) => Some(NO_CHANGED_COMMAND),
        Decision::Deny { interrupt: true, .. } => Some("Codex's hook cannot end the turn"),
        Decision::Allow { .. }
        | Decision::Deny { .. }
        | Decision::Answer { .. }
        | Decision::ApprovePlan { .. }
        | Decision::RejectPlan { .. } => None,
    }
}

fn codex(kind: RequestKind, answer: &Decision) -> Option<&'static str> {
    match (kind, answer) {
        (_, changed) if is_changed(changed) => Some(NO_CHANGED_COMMAND),
        (RequestKind::Question, Decision::Deny { .. }) => {
            Some("Codex takes no refusal of a question: answer it, or interrupt the turn")
        }
        (RequestKind::Plan, Decision::Deny { .. }) => {
            Some("a plan of Codex is rejected, not denied")
        }
        (_, Decision::Deny { message: Some(_), interrupt: true }) => {
            Some("Codex ends the turn without a word: deny it with the message or end the turn")
        }
        (_, Decision::ApprovePlan { mode: Some(_) }) => {
            Some("Codex leaves plan mode by itself: no mode can be chosen")
        }
        (_, Decision::RejectPlan { feedback: None }) => {
            Some("Codex waits for what to plan instead: reject it with a sentence")
        }
        _ => None,
    }
}

fn opencode(kind: RequestKind, answer: &Decision) -> Option<&'static str> {
    match (kind, answer) {
        (_, changed) if is_changed(changed) => Some("its server takes no changed input"),
        (RequestKind::Question | RequestKind::Plan, Decision::Deny { message: Some(_), .. }) => {
            Some("its server takes no message with a refusal: say it as the answer")
        }
        (_, Decision::ApprovePlan { mode: Some(_) }) => Some("its server takes no mode with that"),
        _ => None,
    }
}

const NO_CHANGED_COMMAND: &str = "Codex takes no changed command";
