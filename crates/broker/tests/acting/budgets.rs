use qd_broker::Input;
use qd_broker::session_key::SessionKey;
use qd_harness::Harness;
use qd_harness::usage::Sum;
use qd_session::operator::SubState;
use serde_json::json;

use crate::deck::Deck;
use crate::ruling::{deck, state};

fn works(deck: &mut Deck) {
    deck.hook(json!({"hook_event_name": "UserPromptSubmit", "prompt": "go"}));
}

fn has_cost(deck: &mut Deck, dollars: f64) {
    let key = SessionKey { harness: Harness::ClaudeCode, session: "s".into() };
    let sum = Sum { dollars, ..Sum::default() };
    let now = deck.now();
    let outputs = deck.broker.handle(now, Input::Spent(vec![(key, sum)]));
    deck.take(outputs);
}

fn today(deck: &mut Deck, dollars: f64) {
    let now = deck.now();
    let sum = Sum { dollars, ..Sum::default() };
    let outputs = deck.broker.handle(now, Input::Today(sum));
    deck.take(outputs);
}

fn is_seen(deck: &mut Deck) {
    let now = deck.now();
    let session = deck.card.as_ref().expect("a card").session_id.clone();
    let outputs = deck.broker.handle(now, Input::Dismissed { session });
    deck.take(outputs);
}

#[test]
fn a_spent_budget_calls_once_and_again_when_as_much_again_is_spent() {
    let mut deck = deck("[budget.session]\nusd = 5.0\n");
    works(&mut deck);
    has_cost(&mut deck, 4.9);
    assert_eq!(state(&deck), SubState::THINKING);
    has_cost(&mut deck, 5.1);
    assert_eq!(state(&deck), SubState::BUDGET_EXCEEDED);
    let shown = deck.card.clone().expect("a card").agent_state;
    assert_eq!(shown.label, "Budget spent: $5.00 this session");
    is_seen(&mut deck);
    assert_eq!(state(&deck), SubState::THINKING);
    works(&mut deck);
    has_cost(&mut deck, 10.0);
    assert_eq!(state(&deck), SubState::THINKING, "the next event does not bring it back");
    has_cost(&mut deck, 10.2);
    assert_eq!(state(&deck), SubState::BUDGET_EXCEEDED);
}

#[test]
fn a_day_that_is_spent_calls_and_the_next_day_does_not() {
    let mut deck = deck("[budget.day]\nusd = 40.0\n");
    works(&mut deck);
    today(&mut deck, 41.0);
    assert_eq!(state(&deck), SubState::BUDGET_EXCEEDED);
    is_seen(&mut deck);
    assert_eq!(state(&deck), SubState::THINKING);
    today(&mut deck, 1.0);
    assert_eq!(state(&deck), SubState::THINKING);
    today(&mut deck, 40.0);
    assert_eq!(state(&deck), SubState::BUDGET_EXCEEDED, "that is another day's");
}

#[test]
fn minutes_are_those_of_work() {
    let mut deck = deck("[budget.session]\nminutes = 2\n");
    works(&mut deck);
    deck.waits(60_000);
    deck.hook(json!({"hook_event_name": "Stop", "last_assistant_message": "Done.",
        "background_tasks": [], "session_crons": []}));
    deck.waits(1_000);
    deck.waits(3_600_000);
    works(&mut deck);
    deck.waits(30_000);
    assert_eq!(state(&deck), SubState::THINKING);
    let wake = deck.broker.next_wake().expect("it looks again by itself");
    assert!(wake.0 <= deck.now_ms + 31_000, "{wake:?} after {}", deck.now_ms);
    deck.waits(30_000);
    assert_eq!(state(&deck), SubState::BUDGET_EXCEEDED);
}

#[test]
fn what_waits_for_a_person_anyway_says_for_what() {
    let mut deck = deck("[budget.session]\nusd = 5.0\n");
    deck.asks(1);
    has_cost(&mut deck, 6.0);
    assert_eq!(state(&deck), SubState::NEEDS_PERMISSION);
    deck.ends(1);
    assert_eq!(state(&deck), SubState::BUDGET_EXCEEDED);
}
