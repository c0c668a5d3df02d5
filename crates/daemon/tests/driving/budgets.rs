//! What a driven session may cost, and how much it does while nobody watches.

use std::path::Path;

use qd_broker::Input;
use qd_broker::driving::{Report, Work};
use qd_broker::session_key::SessionKey;
use qd_harness::Harness;
use qd_harness::native::StopReason;
use qd_harness::usage::Sum;
use qd_host::policy_file::PolicyFile;
use qd_session::decision::Command;
use qd_session::id::{CallId, TurnId};
use qd_session::logbook::Used;
use qd_session::machine::{HarnessTrouble, Kind, Process, Setup, ToolCall, Tools, TroubleKind};
use qd_session::policy::Preset;
use serde_json::json;

use super::deck::{Deck, bash, brief, id};

/// A session under these rules.
fn limited(mut deck: Deck, policy: &str) -> Deck {
    let policy = PolicyFile::parsed(policy, Path::new("/home/u")).policy;
    deck.hands_in(Input::Policy(policy));
    deck
}

fn native(policy: &str) -> Deck {
    limited(Deck::native(Preset::Yolo, Vec::new()), policy)
}

/// An agent with its own tools.
fn gemini(preset: Preset, policy: &str) -> Deck {
    let setup = Setup { tools: Tools::Theirs, process: Process::WholeSession, hooks: Vec::new() };
    limited(Deck::with(Harness::GeminiCli, setup, brief(preset)), policy)
}

fn state(deck: &Deck) -> String {
    deck.card().agent_state.state.as_str().to_owned()
}

fn has_cost(deck: &mut Deck, harness: Harness, dollars: f64) {
    let key = SessionKey { harness, session: id().as_str().into() };
    deck.hands_in(Input::Spent(vec![(key, Sum { dollars, ..Sum::default() })]));
}

/// The turn that the agent is asked to end.
fn interrupted(deck: &mut Deck) -> TurnId {
    deck.job(|work| {
        let Work::Interrupt { turn } = work else { return None };
        Some(turn.clone())
    })
}

fn ends(deck: &mut Deck, turn: &TurnId) {
    let (turn, text) = (turn.clone(), Some("I stop.".into()));
    deck.reports(Report::Completed { turn, text, stop: StopReason::Done, frozen: None });
}

#[test]
fn a_spent_budget_holds_a_session_of_ours_at_the_next_boundary() {
    let mut deck = native("[budget.session]\ntokens = 100\n");
    let turn = deck.prompt("Build it");
    deck.answers(&turn, &[bash("a")]);
    assert_eq!((deck.kind(), state(&deck)), (Kind::Paused, "budget_exceeded".to_owned()));
    deck.command(Command::Resume).expect("taken");
    assert_eq!(deck.orders().len(), 1, "it goes on where it was");
}

#[test]
fn minutes_that_run_out_in_the_middle_of_a_turn_hold_it() {
    let mut deck = native("[budget.session]\nminutes = 1\n");
    let turn = deck.prompt("Build it");
    deck.waits(30_000);
    assert_eq!(state(&deck), "thinking");
    let wake = deck.broker.next_wake().expect("it looks again by itself");
    assert!(wake.0 <= deck.now_ms + 31_000, "{wake:?} after {}", deck.now_ms);
    deck.waits(31_000);
    deck.answers(&turn, &[bash("a")]);
    assert_eq!((deck.kind(), state(&deck)), (Kind::Paused, "budget_exceeded".to_owned()));
}

#[test]
fn a_day_that_is_spent_holds_a_turn_that_would_be_tried_again() {
    let mut deck = native("[budget.day]\nusd = 40.0\n");
    let turn = deck.prompt("Build it");
    let (trouble, message) = (TroubleKind::Passing, "overloaded".into());
    let trouble = HarnessTrouble { trouble, message, retry_after_ms: None };
    deck.reports(Report::Failed { turn, trouble, failure: None, used: Used::default() });
    assert_eq!(state(&deck), "retrying");
    deck.hands_in(Input::Today(Sum { dollars: 41.0, ..Sum::default() }));
    assert_eq!((deck.kind(), state(&deck)), (Kind::Paused, "budget_exceeded".to_owned()));
}

/// A stream that broke off was paid for, too.
#[test]
fn what_a_failed_answer_took_counts() {
    let mut deck = native("[budget.session]\ntokens = 100\n");
    let turn = deck.prompt("Build it");
    let (trouble, message) = (TroubleKind::Passing, "the stream broke off".into());
    let trouble = HarnessTrouble { trouble, message, retry_after_ms: None };
    let used = Used { input_tokens: 90, output_tokens: 20, ..Used::default() };
    deck.reports(Report::Failed { turn, trouble, failure: None, used });
    assert_eq!((deck.kind(), state(&deck)), (Kind::Paused, "budget_exceeded".to_owned()));
}

#[test]
fn a_long_turn_of_an_agent_with_its_own_tools_is_ended_when_its_budget_is_spent() {
    let mut deck = gemini(Preset::Careful, "[budget.session]\nusd = 5.0\n");
    let turn = deck.prompt("Build it");
    has_cost(&mut deck, Harness::GeminiCli, 4.9);
    assert_eq!(state(&deck), "thinking");
    has_cost(&mut deck, Harness::GeminiCli, 5.1);
    assert_eq!(interrupted(&mut deck), turn);
    has_cost(&mut deck, Harness::GeminiCli, 5.2);
    let again = deck.jobs.iter().any(|job| matches!(job.work, Work::Interrupt { .. }));
    assert!(!again, "it was asked already");
    ends(&mut deck, &turn);
    assert_eq!((deck.kind(), state(&deck)), (Kind::Paused, "budget_exceeded".to_owned()));
    assert_eq!(deck.errors(), [""; 0]);
    deck.command(Command::Resume).expect("taken");
    has_cost(&mut deck, Harness::GeminiCli, 5.3);
    assert_eq!(deck.kind(), Kind::Ready, "until as much again is spent");
}

#[test]
fn a_session_that_has_finished_is_not_held_by_what_is_counted_later() {
    let mut deck = native("[budget.day]\nusd = 40.0\n");
    let turn = deck.prompt("Build it");
    deck.answers(&turn, &[]);
    deck.hands_in(Input::Today(Sum { dollars: 41.0, ..Sum::default() }));
    assert_eq!((deck.kind(), state(&deck)), (Kind::Ready, "task_complete".to_owned()));
}

#[test]
fn a_call_that_is_first_told_of_when_it_is_asked_about_counts_as_one_that_nobody_watched() {
    let mut deck = gemini(Preset::Yolo, "");
    let turn = deck.prompt("Work");
    let asks = |deck: &mut Deck, nth: u32| {
        let call = ToolCall {
            call_id: CallId::from(&*format!("c{nth}")),
            name: "bash".into(),
            arguments: json!({"command": "make"}),
            mutating: true,
        };
        deck.reports(Report::ApprovalAsked { turn: turn.clone(), call });
    };
    (0..49).for_each(|nth| asks(&mut deck, nth));
    // Told again, and of a call that is known: no other one.
    asks(&mut deck, 48);
    assert!(!deck.jobs.iter().any(|job| matches!(job.work, Work::Interrupt { .. })));
    asks(&mut deck, 49);
    assert_eq!(interrupted(&mut deck), turn);
    ends(&mut deck, &turn);
    assert_eq!((deck.kind(), state(&deck)), (Kind::Paused, "paused".to_owned()));
    let why = deck.card().agent_state.context.expect("a context");
    assert_eq!(why["why"], "it asks nobody, and nobody watched what it did");
}
