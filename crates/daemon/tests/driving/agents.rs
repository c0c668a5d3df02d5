//! Agents with their own tools: what they are told again, and what they cannot be told.

use std::path::Path;

use qd_broker::Input;
use qd_broker::desk::Declined;
use qd_broker::driving::{Report, Work};
use qd_harness::Harness;
use qd_host::policy_file::PolicyFile;
use qd_session::decision::{Answer, Command, Decision, RetryTarget, Scope};
use qd_session::logbook::Used;
use qd_session::machine::{
    HarnessAnswer, HarnessTrouble, Process, Setup, ToolCall, Tools, TroubleKind,
};
use qd_session::policy::Preset;
use serde_json::{Value, json};

use super::deck::{Deck, brief};

const ALLOW: Decision = Decision::Allow { input: None, scope: Scope::Once };

fn of(harness: Harness) -> Deck {
    let setup = Setup { tools: Tools::Theirs, process: Process::WholeSession, hooks: Vec::new() };
    Deck::with(harness, setup, brief(Preset::Manual))
}

fn call(tool: &str, arguments: Value) -> ToolCall {
    ToolCall { call_id: "call_1".into(), name: tool.into(), arguments, mutating: true }
}

fn refused(deck: &mut Deck, answer: Decision) -> String {
    match deck.answer(answer) {
        Err(Declined::Impossible { why }) => why,
        other => panic!("{other:?}"),
    }
}

/// What an agent was answered.
fn answered(deck: &mut Deck) -> HarnessAnswer {
    deck.job(|work| {
        let Work::Answer { answer, .. } = work else { return None };
        Some(answer.clone())
    })
}

#[test]
fn an_agent_that_has_begun_is_not_told_the_same_again() {
    let fails = |deck: &mut Deck, turn| {
        let trouble = TroubleKind::Passing;
        let trouble = HarnessTrouble { trouble, message: "busy".into(), retry_after_ms: None };
        deck.reports(Report::Failed { turn, trouble, failure: None, used: Used::default() });
        deck.command(Command::Retry { target: RetryTarget::Llm }).expect("it failed");
        deck.surveys();
        deck.sending()
    };
    let mut deck = Deck::of_claude_code();
    let turn = deck.prompt("Build it");
    let sending = fails(&mut deck, turn);
    assert_eq!((sending.text, sending.again.as_deref()), (None, Some("Build it")));
    let turn = sending.turn;
    deck.reports(Report::ToolReported { turn: turn.clone(), call: call("Bash", json!({})) });
    let sending = fails(&mut deck, turn);
    assert_eq!((sending.text, sending.again), (None, None));
}

#[test]
fn answers_to_several_questions_stay_apart() {
    let mut deck = Deck::of_claude_code();
    let turn = deck.prompt("Build it");
    let questions = json!({"questions": [{"question": "Which?"}, {"question": "Where?"}]});
    deck.reports(Report::QuestionAsked { turn, call: call("AskUserQuestion", questions) });
    let answer = |question: &str, value: &str| Answer {
        question: question.to_owned(),
        values: vec![value.to_owned()],
    };
    let answers = vec![answer("Which?", "this"), answer("Where?", "here")];
    deck.answer(Decision::Answer { answers: answers.clone() }).expect("taken");
    let text = "Which?: this\nWhere?: here".into();
    assert_eq!(answered(&mut deck), HarnessAnswer::Input { text, answers });
}

#[test]
fn the_mode_after_a_plan_is_carried_where_it_can_be() {
    let plan = || call("ExitPlanMode", json!({"plan": "1. Build"}));
    let mode = Some("acceptEdits".to_owned());
    let mut deck = Deck::of_claude_code();
    let turn = deck.prompt("Plan it");
    deck.reports(Report::ApprovalAsked { turn, call: plan() });
    deck.answer(Decision::ApprovePlan { mode: mode.clone() }).expect("taken");
    let expected = HarnessAnswer::Approved { mode: Some("acceptEdits".into()) };
    assert_eq!(answered(&mut deck), expected);
    let mut deck = of(Harness::Codex);
    let turn = deck.prompt("Plan it");
    deck.reports(Report::ApprovalAsked { turn, call: plan() });
    let why = refused(&mut deck, Decision::ApprovePlan { mode });
    assert_eq!(why, "Codex goes on in the mode that it was begun in");
}

#[test]
fn an_answer_that_would_lose_its_words_is_refused() {
    for harness in [Harness::GeminiCli, Harness::Opencode, Harness::KiloCode, Harness::Acp] {
        let mut deck = of(harness);
        let turn = deck.prompt("Build it");
        deck.reports(Report::ApprovalAsked { turn, call: call("bash", json!({})) });
        let message = Some("not yet".to_owned());
        let why = refused(&mut deck, Decision::Deny { message, interrupt: false });
        assert!(why.starts_with("it is only told no"), "{why}");
        deck.answer(Decision::Deny { message: None, interrupt: false }).expect("taken");
    }
}

/// Its reason is for those who can hear it; the denial is for all.
#[test]
fn a_rule_denies_without_words_where_an_agent_takes_none() {
    let text = "[[rule]]\nname = \"no make\"\neffect = \"deny\"\ncommand = \"make *\"\n";
    let policy = || PolicyFile::parsed(text, Path::new("/home/u")).policy;
    let why = "Denied by the rule `no make`.";
    for (harness, message) in [
        (Harness::ClaudeCode, Some(why)),
        (Harness::Codex, Some(why)),
        (Harness::GeminiCli, None),
        (Harness::Opencode, None),
        (Harness::KiloCode, None),
        (Harness::Acp, None),
    ] {
        let mut deck = of(harness);
        deck.hands_in(Input::Policy(policy()));
        let turn = deck.prompt("Build it");
        let call = call("bash", json!({"command": "make all"}));
        deck.reports(Report::ApprovalAsked { turn, call });
        let message = message.map(Into::into);
        assert_eq!(answered(&mut deck), HarnessAnswer::Rejected { message }, "{harness:?}");
        assert!(deck.card().requests.is_empty(), "{harness:?} asks nobody");
    }
}

/// It reads no answers: nothing is offered that could only fail.
#[test]
fn nothing_can_be_answered_to_cline() {
    let mut deck = of(Harness::Cline);
    let turn = deck.prompt("Build it");
    deck.reports(Report::ApprovalAsked { turn, call: call("write_to_file", json!({})) });
    let can = deck.card().capabilities;
    assert!(!can.can_approve && can.can_interrupt);
    let why = "Cline takes no answers; interrupt it, or let it work with yolo";
    assert_eq!(can.why["canApprove"], why);
    assert_eq!(refused(&mut deck, ALLOW), why);
}
