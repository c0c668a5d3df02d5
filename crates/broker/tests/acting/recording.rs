//! Sessions that are played from a recording: what they ask can be answered, and no agent is told.

use qd_broker::desk::{Carried, Declined, Task};
use qd_session::decision::{Command, Decision, Scope, Standing};
use qd_session::policy::Preset;
use serde_json::json;

use crate::deck::Deck;

/// A recording that has come to a permission.
fn asking() -> Deck {
    let mut deck = Deck { is_recording: true, ..Deck::new() };
    ask(&mut deck, "c1");
    deck
}

fn ask(deck: &mut Deck, call: &str) {
    let input = json!({"command": "make"});
    deck.hook(json!({"hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_use_id": call, "tool_input": input}));
    deck.hook(json!({"hook_event_name": "PermissionRequest", "tool_name": "Bash",
        "tool_input": input}));
    deck.waits(1_000);
}

const ALLOW: Decision = Decision::Allow { input: None, scope: Scope::Once };

#[test]
fn an_answer_lets_the_recording_go_on_and_closes_when_it_does() {
    let mut deck = asking();
    let card = deck.card.clone().expect("a card");
    assert_eq!(card.requests[0].way, Some("recording"));
    assert!(card.capabilities.can_approve);
    assert_eq!(deck.answers("page", ALLOW), Ok(Standing::InFlight));
    let session = card.session_id;
    assert_eq!(deck.errands[0].task, Task::GoOn { session });
    deck.brings_back(&Carried::Delivered);
    assert_eq!(deck.card.as_ref().map(|card| card.requests.len()), Some(1));
    deck.ends(1);
    assert_eq!(deck.card.as_ref().map(|card| card.requests.len()), Some(0));
    assert_eq!(deck.written(), ["given", "delivered", "confirmed"]);
}

#[test]
fn nothing_else_is_done_to_a_recording_and_it_says_so() {
    let mut deck = asking();
    let can = deck.card.clone().expect("a card").capabilities;
    assert!(!(can.can_prompt || can.can_interrupt || can.can_stop || can.can_resume));
    assert_eq!(deck.card.clone().and_then(|card| card.resume_command), None);
    for command in [
        Command::Prompt { text: "go on".to_owned() },
        Command::Interrupt,
        Command::Stop,
        Command::Focus,
    ] {
        let taken = deck.commands(command);
        let Err(Declined::Impossible { why }) = taken else { panic!("{taken:?}") };
        assert!(why.starts_with("this is a recording"), "{why}");
    }
    assert!(deck.errands.is_empty(), "{:?}", deck.errands);
}

#[test]
fn rules_answer_a_recording_as_they_answer_an_agent() {
    let mut deck = asking();
    deck.commands(Command::Yolo { on: true }).expect("taken");
    let policy = deck.card.clone().and_then(|card| card.policy).expect("a policy");
    assert_eq!(policy.preset, Preset::Yolo);
    let tasks: Vec<Task> = deck.errands.iter().map(|errand| errand.task.clone()).collect();
    let session = deck.card.clone().expect("a card").session_id;
    assert_eq!(tasks, [Task::Keep, Task::GoOn { session }]);
}
