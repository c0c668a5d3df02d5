//! How far beyond this once a request can be allowed: what is offered is taken, the rest refused.

use qd_broker::desk::Declined;
use qd_broker::{Input, RequestView};
use qd_harness::{Channel, Direction, Harness, Signal};
use qd_session::decision::{Decision, Scope, Standing};
use serde_json::{Value, json};

use crate::deck::Deck;

fn allow(scope: Scope) -> Decision {
    Decision::Allow { input: None, scope }
}

fn request(deck: &Deck) -> RequestView {
    deck.card.as_ref().expect("a card").requests[0].clone()
}

fn check_refused(deck: &mut Deck, scope: Scope, expected: &str) {
    let taken = deck.answers("page", allow(scope));
    let Err(Declined::Impossible { why }) = taken else { panic!("{taken:?}") };
    assert_eq!(why, expected);
    assert!(deck.errands.is_empty() && deck.records.is_empty());
}

/// Claude Code asks, and its hook waits with these suggestions.
fn suggesting(suggestions: &Value) -> Deck {
    let mut deck = Deck::new();
    let payload = deck.hook(json!({"hook_event_name": "PermissionRequest", "tool_name": "Bash",
        "tool_input": {"command": "make"}, "permission_suggestions": suggestions}));
    deck.stays(1, &payload, Some("cli"));
    deck
}

#[test]
fn a_hook_allows_as_far_as_its_client_suggests() {
    let rule = json!({"type": "addRules", "behavior": "allow", "destination": "localSettings",
        "rules": [{"toolName": "Bash", "ruleContent": "make:*"}]});
    let mut deck = suggesting(&json!([rule]));
    assert_eq!(request(&deck).scopes, [Scope::Session, Scope::Always]);
    assert_eq!(request(&deck).suggestions, ["Bash(make:*) in this project, for you"]);
    assert_eq!(deck.answers("page", allow(Scope::Session)), Ok(Standing::InFlight));
    // Of what is for the session anyway there is one kind only.
    let mode = json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"});
    let mut deck = suggesting(&json!([mode]));
    assert_eq!(request(&deck).scopes, [Scope::Always]);
    check_refused(&mut deck, Scope::Session, "it can only be allowed once or always from here");
}

#[test]
fn without_a_suggestion_there_is_nothing_to_keep() {
    let mut deck = suggesting(&json!([]));
    assert_eq!(request(&deck).scopes, []);
    check_refused(&mut deck, Scope::Always, "it can only be allowed once from here");
    check_refused(&mut deck, Scope::Session, "it can only be allowed once from here");
    assert_eq!(deck.answers("page", allow(Scope::Once)), Ok(Standing::InFlight));
}

#[test]
fn a_server_keeps_what_it_names_for_as_long_as_it_runs() {
    let mut deck = Deck::new();
    let asked = json!({"id": "evt_1", "type": "permission.asked", "properties": {
        "id": "per_1", "sessionID": "ses_1", "permission": "bash", "patterns": ["node x.js"],
        "metadata": {"command": "node x.js"}, "always": ["node *"],
        "tool": {"messageID": "msg_1", "callID": "call_1"}}});
    let (now, payload) = (deck.now(), asked.to_string());
    let signal = Signal {
        at: now,
        seq: 0,
        channel: Channel::Events,
        direction: Direction::FromAgent,
        file: None,
        payload: payload.as_bytes(),
    };
    let outputs = deck.broker.handle(now, Input::Signal { harness: Harness::Opencode, signal });
    deck.take(outputs);
    deck.waits(1_000);
    assert_eq!(request(&deck).way, Some("opencode"));
    assert_eq!(request(&deck).scopes, [Scope::Always]);
    assert_eq!(request(&deck).suggestions, ["bash(node *) as long as its server runs"]);
    check_refused(&mut deck, Scope::Session, "it can only be allowed once or always from here");
    assert_eq!(deck.answers("page", allow(Scope::Always)), Ok(Standing::InFlight));
}

#[test]
fn a_recording_keeps_nothing() {
    let mut deck = Deck { is_recording: true, ..Deck::new() };
    deck.hook(json!({"hook_event_name": "PermissionRequest", "tool_name": "Bash",
        "tool_input": {"command": "make"}}));
    deck.waits(1_000);
    assert_eq!(request(&deck).scopes, []);
    check_refused(&mut deck, Scope::Always, "it can only be allowed once from here");
}
