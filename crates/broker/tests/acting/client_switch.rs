//! Codex on its own daemon has a switch of its own: what it was like before comes back, and our
//! rules end with it.

use qd_broker::Input;
use qd_broker::desk::{Carried, Expecting, Task};
use qd_harness::{Channel, Direction, Harness, Signal};
use qd_session::Session;
use qd_session::decision::{Command, Standing};
use qd_session::policy::Preset;
use qd_session::snapshot::fold;
use serde_json::json;

use crate::deck::Deck;
use crate::ruling;

/// A thread that its daemon tells of, under these rules.
fn deck(policy: &str) -> Deck {
    let mut deck = ruling::deck(policy);
    let thread = json!({"id": "T", "ephemeral": false, "source": "vscode", "cwd": "/work/shop",
        "status": {"type": "idle"}});
    let told = json!({"method": "thread/started", "params": {"thread": thread}}).to_string();
    let at = deck.now();
    let signal = Signal {
        at,
        seq: 0,
        channel: Channel::AppServer,
        direction: Direction::FromAgent,
        file: None,
        payload: told.as_bytes(),
    };
    let outputs = deck.broker.handle(at, Input::Signal { harness: Harness::Codex, signal });
    deck.take(outputs);
    deck
}

fn yolo(deck: &mut Deck, on: bool) {
    assert_eq!(deck.commands(Command::Yolo { on }), Ok(Standing::InFlight));
}

/// What is to be said to Codex so that it asks again.
fn ending(deck: &Deck) -> (Option<&str>, Expecting) {
    let task = &deck.errands[0].task;
    let Task::EndYolo { before, expecting, .. } = task else { panic!("{task:?}") };
    (before.as_deref(), *expecting)
}

/// What a daemon that is started again knows.
fn remembered(deck: &Deck) -> Option<String> {
    let id = deck.card.as_ref().expect("a card").session_id.clone();
    fold(Session::new(id), &deck.journal).asked_before().map(str::to_owned)
}

fn preset(deck: &Deck) -> Option<Preset> {
    Some(deck.card.as_ref()?.policy.as_ref()?.preset)
}

#[test]
fn what_held_before_is_journaled_and_given_back() {
    let mut deck = deck("");
    yolo(&mut deck, true);
    assert!(matches!(deck.errands[0].task, Task::Yolo { .. }), "{:?}", deck.errands);
    deck.brings_back(&Carried::Switched { before: Some("so".into()) });
    assert_eq!(remembered(&deck).as_deref(), Some("so"));
    // Once more: Codex says that it was so already, and what held before it stays known.
    yolo(&mut deck, true);
    deck.brings_back(&Carried::Delivered);
    yolo(&mut deck, false);
    assert_eq!(ending(&deck), (Some("so"), Expecting::Either));
    deck.brings_back(&Carried::Failed { why: "it is gone".into() });
    assert_eq!(remembered(&deck).as_deref(), Some("so"), "it may be tried again");
    yolo(&mut deck, false);
    deck.brings_back(&Carried::Switched { before: None });
    assert_eq!(remembered(&deck), None);
}

#[test]
fn where_nothing_was_switched_nothing_is_expected_to_change() {
    let mut deck = deck("preset = \"careful\"\n");
    yolo(&mut deck, false);
    assert_eq!(ending(&deck), (None, Expecting::Yolo));
    assert_eq!(preset(&deck), Some(Preset::Careful));
}

#[test]
fn off_ends_what_our_rules_let_happen_too() {
    let mut everywhere = deck("preset = \"yolo\"\n");
    yolo(&mut everywhere, false);
    assert_eq!(ending(&everywhere), (None, Expecting::Either));
    assert_eq!(preset(&everywhere), Some(Preset::Manual));

    let mut chosen = deck("");
    chosen.commands(Command::Policy { preset: Some(Preset::Yolo) }).expect("taken");
    chosen.errands.clear();
    yolo(&mut chosen, false);
    assert_eq!(ending(&chosen), (None, Expecting::Either));
    assert_eq!(preset(&chosen), None);
}

#[test]
fn a_preset_that_is_not_yolo_stays_when_the_client_asks_again() {
    let mut deck = deck("preset = \"yolo\"\n");
    deck.commands(Command::Policy { preset: Some(Preset::Careful) }).expect("taken");
    deck.errands.clear();
    yolo(&mut deck, false);
    assert_eq!(preset(&deck), Some(Preset::Careful));
}
