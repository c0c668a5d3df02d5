use std::path::Path;

use qd_broker::Input;
use qd_broker::desk::{Carried, Declined, Task};
use qd_host::policy_file::PolicyFile;
use qd_session::decision::{Body, Command, Decision, Offer, Record, Standing};
use qd_session::operator::SubState;
use qd_session::policy::{Preset, Tightening};
use serde_json::json;

use crate::deck::{Deck, allow};

/// A deck whose operator has laid this down.
pub fn deck(policy: &str) -> Deck {
    let mut deck = Deck::new();
    lay_down(&mut deck, policy);
    deck
}

fn lay_down(deck: &mut Deck, policy: &str) {
    let PolicyFile { policy, troubles } = PolicyFile::parsed(policy, Path::new("/home/me"));
    assert!(troubles.is_empty(), "{troubles:?}");
    let now = deck.now();
    let outputs = deck.broker.handle(now, Input::Policy(policy));
    deck.take(outputs);
}

const MAKE: &str = "[[rule]]\nname = \"build\"\neffect = \"allow\"\ncommand = \"make\"\n";

fn offers(deck: &Deck) -> Vec<Offer> {
    let given = |record: &'_ Record| match &record.body {
        Body::Given(offer) => Some((**offer).clone()),
        Body::Ruled(_)
        | Body::Commanded(_)
        | Body::Delivered { .. }
        | Body::Failed { .. }
        | Body::Confirmed { .. }
        | Body::Overtaken { .. }
        | Body::Unclear { .. } => None,
    };
    deck.records.iter().filter_map(given).collect()
}

pub fn state(deck: &Deck) -> SubState {
    deck.card.as_ref().expect("a card").agent_state.state.clone()
}

#[test]
fn a_rule_that_allows_answers_by_its_name_and_needs_nobody() {
    let mut deck = deck(MAKE);
    deck.asks(1);
    let [offer] = &offers(&deck)[..] else { panic!("{:?}", deck.records) };
    assert_eq!(offer.rule.as_ref().map(ToString::to_string).as_deref(), Some("build"));
    assert_eq!((offer.by.who.as_str(), &offer.answer), ("policy", &allow()));
    assert_ne!(state(&deck), SubState::NEEDS_PERMISSION);
    assert!(deck.card.as_ref().expect("a card").requests.is_empty());
    deck.brings_back(&Carried::Delivered);
    deck.ends(1);
    assert_eq!(deck.written(), ["given", "delivered", "confirmed"]);
}

#[test]
fn an_answer_of_a_rule_that_the_agent_does_not_take_is_asked_after_a_while() {
    let mut deck = deck(MAKE);
    deck.asks(1);
    deck.brings_back(&Carried::Delivered);
    assert_ne!(state(&deck), SubState::NEEDS_PERMISSION);
    deck.waits(10_000);
    assert_eq!(state(&deck), SubState::NEEDS_PERMISSION);
}

#[test]
fn where_the_answer_of_a_rule_does_not_arrive_a_person_decides() {
    let mut deck = deck(MAKE);
    deck.asks(1);
    deck.brings_back(&Carried::Failed { why: "it is gone".into() });
    assert_eq!(state(&deck), SubState::NEEDS_PERMISSION);
    assert!(deck.errands.is_empty(), "it is not tried again");
    assert_eq!(deck.answers("a", allow()), Ok(Standing::InFlight));
}

#[test]
fn a_rule_that_denies_says_why_to_the_agent() {
    let mut deck = deck(
        "[[rule]]\nname = \"no make\"\neffect = \"deny\"\ncommand = \"make *\"\n\
         message = \"Ask me first.\"\n",
    );
    deck.asks(1);
    let denied = Decision::Deny { message: Some("Ask me first.".into()), interrupt: false };
    assert_eq!(offers(&deck)[0].answer, denied);
}

#[test]
fn what_no_rule_answers_is_asked() {
    let mut deck = deck("preset = \"careful\"\n");
    deck.asks(1);
    assert_eq!(deck.written(), [""; 0]);
    assert_eq!(state(&deck), SubState::NEEDS_PERMISSION);
    assert_eq!(deck.released, []);
}

#[test]
fn rules_that_are_laid_down_while_a_request_waits_answer_it() {
    let mut deck = Deck::new();
    deck.asks(1);
    assert_eq!(deck.written(), [""; 0]);
    lay_down(&mut deck, MAKE);
    assert_eq!(deck.written(), ["given"]);
    lay_down(&mut deck, MAKE);
    assert_eq!(deck.written(), ["given"], "once");
}

#[test]
fn yolo_answers_what_waits_and_what_comes_until_it_is_switched_off() {
    let mut deck = Deck::new();
    deck.asks(1);
    assert_eq!(deck.commands(Command::Yolo { on: true }), Ok(Standing::InFlight));
    assert_eq!(deck.written(), ["commanded", "given"]);
    let policy = deck.card.clone().and_then(|card| card.policy).expect("a policy");
    assert_eq!(policy.preset, Preset::Yolo);
    deck.ends(1);
    deck.asks(2);
    assert_eq!(offers(&deck).len(), 2);
    deck.ends(2);
    deck.commands(Command::Yolo { on: false }).expect("taken");
    deck.asks(3);
    assert_eq!(offers(&deck).len(), 2);
    assert_eq!(deck.card.clone().and_then(|card| card.policy), None);
    assert_eq!(state(&deck), SubState::NEEDS_PERMISSION);
}

#[test]
fn yolo_is_off_for_one_session_also_where_all_others_have_it() {
    let mut deck = deck("preset = \"yolo\"\n");
    deck.asks(1);
    assert_eq!(offers(&deck).len(), 1);
    deck.ends(1);
    deck.commands(Command::Yolo { on: false }).expect("taken");
    deck.asks(2);
    assert_eq!(offers(&deck).len(), 1);
    assert_eq!(state(&deck), SubState::NEEDS_PERMISSION);
}

#[test]
fn a_preset_is_journaled_with_its_session() {
    let mut deck = Deck::new();
    deck.asks(1);
    let preset = Some(Preset::AutoEdit);
    deck.commands(Command::Policy { preset }).expect("taken");
    let id = deck.card.as_ref().expect("a card").session_id.clone();
    let folded = qd_session::snapshot::fold(qd_session::Session::new(id), &deck.journal);
    assert_eq!(folded.preset(), preset);
}

#[test]
fn nothing_in_a_repository_lets_yolo_hold_and_one_line_forbids_it() {
    let mut deck = deck("preset = \"yolo\"\n");
    deck.repository =
        Tightening::of_gemini_settings(&json!({"security": {"disableYoloMode": true}}));
    deck.asks(1);
    assert_eq!(deck.written(), [""; 0], "careful holds instead, and it asks");
    let card = deck.card.clone().expect("a card");
    let policy = card.policy.expect("a policy");
    assert_eq!((policy.preset, policy.yolo_forbidden), (Preset::Careful, true));
    assert!(!card.capabilities.can_yolo);
    let taken = deck.commands(Command::Yolo { on: true });
    assert!(matches!(taken, Err(Declined::Forbidden { .. })), "{taken:?}");
}

#[test]
fn a_link_out_of_the_workspace_is_asked_about_and_rules_see_where_it_leads() {
    let reads = |deck: &mut Deck, path: &str| {
        let asked = deck.hook(json!({"hook_event_name": "PermissionRequest",
            "tool_name": "Read", "tool_input": {"file_path": path}}));
        deck.stays(1, &asked, Some("cli"));
    };
    let link = || ("/work/shop/x/id_rsa".to_owned(), "/home/me/.ssh/id_rsa".to_owned());
    for preset in ["careful", "auto-edit"] {
        let mut plain = deck(&format!("preset = \"{preset}\"\n"));
        reads(&mut plain, "/work/shop/x/id_rsa");
        assert_eq!(plain.written(), ["given"]);
        let mut linked = deck(&format!("preset = \"{preset}\"\n"));
        linked.links.push(link());
        reads(&mut linked, "x/id_rsa");
        assert_eq!(linked.written(), [""; 0]);
        assert_eq!(state(&linked), SubState::NEEDS_PERMISSION);
    }
    let keys = "[[rule]]\nname = \"keys\"\neffect = \"deny\"\npath = \"~/.ssh\"\n";
    let mut denied = deck(keys);
    denied.links.push(link());
    reads(&mut denied, "x/id_rsa");
    assert!(matches!(&offers(&denied)[..], [Offer { answer: Decision::Deny { .. }, .. }]));
}

#[test]
fn a_headless_session_waits_for_a_person_only_where_its_project_has_it_so() {
    let headless = |deck: &mut Deck| {
        let asked = deck.hook(json!({"hook_event_name": "PermissionRequest",
            "tool_name": "Bash", "tool_input": {"command": "make"}}));
        deck.stays(1, &asked, Some("sdk-cli"))
    };
    let mut plain = Deck::new();
    let frame = headless(&mut plain);
    assert_eq!(plain.released, [frame]);
    let mut waits = deck("[project.\"/work/shop\"]\nwait_headless = true\n");
    headless(&mut waits);
    assert_eq!(waits.released, []);
    assert_eq!(waits.answers("a", allow()), Ok(Standing::InFlight));
    let mut ruled = deck(MAKE);
    let frame = headless(&mut ruled);
    assert_eq!(ruled.released, []);
    assert!(matches!(&ruled.errands[0].task, Task::Reply { frame: to, .. } if *to == frame));
}

#[test]
fn questions_and_plans_are_never_answered_by_a_rule() {
    let mut deck = deck("preset = \"yolo\"\n");
    for (nth, tool) in ["AskUserQuestion", "ExitPlanMode"].into_iter().enumerate() {
        let asked = deck.hook(json!({"hook_event_name": "PermissionRequest", "tool_name": tool,
            "tool_input": {"plan": "Do it.", "questions": []}}));
        deck.stays(nth as u64, &asked, Some("cli"));
    }
    assert_eq!(deck.written(), [""; 0]);
    assert_eq!(deck.released, []);
}
