//! An answer fits what was asked and arrives whole, or it is refused with a sentence.

use qd_broker::desk::Declined;
use qd_session::decision::{Answer, Decision, Scope, Standing};
use serde_json::{Value, json};

use crate::deck::{Deck, allow, deny};
use crate::served::Served;

fn asking(tool: &str, input: Value, suggestions: Value) -> Deck {
    let mut deck = Deck::new();
    let payload = deck.hook(json!({"hook_event_name": "PermissionRequest", "tool_name": tool,
        "tool_input": input, "permission_suggestions": suggestions}));
    deck.stays(1, &payload, Some("cli"));
    deck
}

fn permission() -> Deck {
    asking("Bash", json!({"command": "make"}), json!([]))
}

fn question() -> Deck {
    let questions = json!([{"question": "Which database?", "header": "Storage",
        "options": [{"label": "SQLite"}, {"label": "Postgres"}]}]);
    asking("AskUserQuestion", json!({"questions": questions}), json!([]))
}

fn plan() -> Deck {
    asking("ExitPlanMode", json!({"plan": "Do it."}), json!([]))
}

fn answer(question: &str) -> Decision {
    let answers = vec![Answer { question: question.into(), values: vec!["SQLite".into()] }];
    Decision::Answer { answers }
}

const APPROVE: Decision = Decision::ApprovePlan { mode: None };
const REJECT: Decision = Decision::RejectPlan { feedback: None };

fn refusal(taken: Result<Standing, Declined>) -> String {
    match taken {
        Err(Declined::Impossible { why }) => why,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn each_kind_of_request_takes_its_own_answers_and_no_others() {
    type Asking = fn() -> Deck;
    let table: [(Asking, Vec<Decision>, Vec<Decision>); 3] = [
        (permission, vec![allow(), deny()], vec![answer("Which database?"), APPROVE, REJECT]),
        (question, vec![answer("Which database?"), deny()], vec![allow(), APPROVE, REJECT]),
        (plan, vec![APPROVE, REJECT, deny()], vec![allow(), answer("Which database?")]),
    ];
    for (asking, fits, misfits) in table {
        let mut deck = asking();
        for answer in misfits {
            let why = refusal(deck.answers("a", answer.clone()));
            assert!(!why.is_empty(), "{answer:?}");
        }
        assert!(deck.records.is_empty(), "{:?}", deck.records);
        for answer in fits {
            let mut deck = asking();
            assert_eq!(deck.answers("a", answer.clone()), Ok(Standing::InFlight), "{answer:?}");
        }
    }
}

/// Its buttons are what the daemon says, so that none of them is refused.
#[test]
fn a_card_says_whether_another_command_is_taken() {
    let changed =
        || Decision::Allow { input: Some(json!({"command": "make all"})), scope: Scope::Once };
    let says = |deck: &Deck| deck.card.as_ref().expect("a card").requests[0].takes_changes;
    let mut hooked = permission();
    assert!(says(&hooked));
    assert_eq!(hooked.answers("a", changed()), Ok(Standing::InFlight));
    let mut played = Deck { is_recording: true, ..Deck::new() };
    played.asks(1);
    assert!(!says(&played));
    refusal(played.answers("a", changed()));
    let mut served = Served::new();
    served.asks("per_1");
    served.waits(1_000);
    assert!(!says(&served));
    refusal(served.answers("per_1", "a", changed()));
}

#[test]
fn an_answer_to_what_was_not_asked_is_refused() {
    let mut deck = question();
    assert!(refusal(deck.answers("a", answer("Which colour?"))).contains("Which colour?"));
    refusal(deck.answers("a", Decision::Answer { answers: Vec::new() }));
    assert!(deck.errands.is_empty());
}

#[test]
fn whoever_was_first_is_told_of_before_anything_else() {
    let mut deck = permission();
    deck.answers("a", allow()).expect("taken");
    assert!(matches!(deck.answers("b", APPROVE), Err(Declined::Book(_))));
}

#[test]
fn always_is_refused_where_the_client_suggests_no_rule() {
    let kept = |scope| Decision::Allow { input: None, scope };
    for scope in [Scope::Session, Scope::Always] {
        refusal(permission().answers("a", kept(scope)));
        let rule = json!([{"type": "addRules", "behavior": "allow",
            "destination": "localSettings", "rules": [{"toolName": "Bash"}]}]);
        let mut suggests = asking("Bash", json!({"command": "make"}), rule);
        assert_eq!(suggests.answers("a", kept(scope)), Ok(Standing::InFlight));
    }
}

#[test]
fn what_a_server_would_drop_is_refused() {
    let mut served = Served::new();
    served.asks_a_question("que_1");
    served.asks("per_1");
    served.waits(1_000);
    let explained = Decision::Deny { message: Some("not that".into()), interrupt: false };
    refusal(served.answers("que_1", "a", explained.clone()));
    refusal(served.answers("que_1", "a", answer("Which colour?")));
    let changed = Decision::Allow { input: Some(json!({})), scope: Scope::Once };
    refusal(served.answers("per_1", "a", changed));
    assert_eq!(served.answers("per_1", "a", explained), Ok(Standing::InFlight));
    assert_eq!(served.answers("que_1", "b", deny()), Ok(Standing::InFlight));
}
