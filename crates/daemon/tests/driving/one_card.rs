//! A session that we drive and whose client's own hooks report it, too, is one card.

use qd_broker::driving::Report;
use qd_harness::{Channel, Harness};
use qd_session::decision::{Decision, Scope};
use qd_session::machine::{Kind, Process, Setup, ToolCall, Tools};
use qd_session::policy::Preset;
use serde_json::json;

use super::deck::{Deck, brief, id};

fn asked(session: &str) -> serde_json::Value {
    json!({"hook_event_name": "PermissionRequest", "session_id": session, "tool_name": "Bash",
        "tool_input": {"command": "make"}, "cwd": "/home/u/project",
        "transcript_path": "/home/u/.claude/projects/p/v-1.jsonl"})
}

fn cards(deck: &Deck) -> Vec<String> {
    let cards = deck.broker.cards(qd_session::moment::Timestamp(deck.now_ms));
    cards.iter().map(|card| card.session_id.to_string()).collect()
}

#[test]
fn what_its_hooks_say_lands_on_the_driven_card_and_does_not_move_its_state() {
    let mut deck = Deck::of_claude_code();
    deck.reports(Report::VendorSession { id: "v-1".into() });
    deck.prompt("Build it");
    deck.hook(&asked("v-1"));
    deck.waits(1_000);
    assert_eq!(cards(&deck), [id().to_string()]);
    assert_eq!(deck.kind(), Kind::CallingLlm);
    let card = deck.card();
    assert_eq!(card.agent_state.state.as_str(), "thinking");
    assert!(card.requests.is_empty(), "the driver asks, not the hook");
    assert_eq!(card.vendor_id.as_ref(), "v-1");
    assert!(card.transcript.is_some(), "what was observed is kept");
}

#[test]
fn what_was_heard_before_its_id_was_known_is_taken_over() {
    let mut deck = Deck::of_claude_code();
    deck.hook(&json!({"hook_event_name": "SessionStart", "session_id": "v-1",
        "source": "startup", "cwd": "/home/u/project",
        "transcript_path": "/home/u/.claude/projects/p/v-1.jsonl"}));
    deck.hook(&asked("v-1"));
    deck.waits(1_000);
    assert_eq!(cards(&deck).len(), 2, "nobody knows yet that it is the same");
    deck.reports(Report::VendorSession { id: "v-1".into() });
    assert_eq!(cards(&deck), [id().to_string()]);
    assert_eq!(deck.removed.len(), 1);
    let card = deck.card();
    assert!(card.transcript.is_some());
    assert_eq!(card.cwd.as_deref(), Some("/home/u/project"));
    let before = deck.card();
    deck.restart();
    assert_eq!(deck.card().transcript, before.transcript, "also after a restart");
    assert_eq!(cards(&deck), [id().to_string()]);
}

/// A client that is driven may write down other sessions than the one it was asked for.
#[test]
fn whatever_one_process_carries_is_one_card() {
    let registry = |session: &str| {
        json!({"pid": 7, "procStart": "42", "sessionId": session, "status": "idle",
            "cwd": "/home/u/project", "kind": "interactive"})
    };
    let mut deck = Deck::of_claude_code();
    deck.signal(Harness::ClaudeCode, Channel::Registry, &registry("v-0"));
    assert_eq!(cards(&deck).len(), 2);
    deck.reports(Report::Process { process: "6:40".into() });
    assert_eq!(cards(&deck).len(), 2, "that is another process");
    deck.reports(Report::Kin { processes: vec!["7:42".into()] });
    assert_eq!(cards(&deck), [id().to_string()]);
    deck.reports(Report::VendorSession { id: "v-1".into() });
    deck.signal(Harness::ClaudeCode, Channel::Registry, &registry("v-2"));
    assert_eq!(cards(&deck), [id().to_string()], "also what comes later");
    assert_eq!(deck.card().vendor_id.as_ref(), "v-1", "it is resumed by its own");
}

#[test]
fn a_process_that_has_ended_carries_nothing() {
    let mut deck = Deck::of_claude_code();
    deck.reports(Report::Process { process: "6:40".into() });
    assert_eq!(deck.card().place.map(|place| place.pid), Some(6));
    deck.reports(Report::ProcessEnded { process: "6:40".into() });
    assert_eq!(deck.card().place, None);
    assert_eq!(deck.kind(), Kind::Ready, "its machine is told of the end by itself");
    deck.restart();
    assert_eq!(deck.card().place, None, "also after a restart");
}

/// Gemini CLI over ACP begins a chat of its own and leaves it at once for the one that it is asked
/// for. On a busy machine that is over before anybody knows which process the client became.
#[test]
fn what_its_process_left_before_it_was_known_is_no_card_of_its_own() {
    let setup = Setup { tools: Tools::Theirs, process: Process::WholeSession, hooks: Vec::new() };
    let mut deck = Deck::with(Harness::GeminiCli, setup, brief(Preset::Manual));
    let mut process = json!({"sessionId": "g-0", "pid": 7, "procStart": 42});
    deck.signal(Harness::GeminiCli, Channel::Process, &process);
    process["exited"] = true.into();
    deck.signal(Harness::GeminiCli, Channel::Process, &process);
    assert_eq!(cards(&deck).len(), 2, "nobody knows yet that it is the same");
    deck.reports(Report::Kin { processes: vec!["7:42".into()] });
    assert_eq!(cards(&deck), [id().to_string()]);
}

/// An agent that is driven may have a server besides, which knows its requests by other names.
#[test]
fn what_we_drive_is_answered_by_its_driver() {
    let setup = Setup { tools: Tools::Theirs, process: Process::WholeSession, hooks: Vec::new() };
    let mut deck = Deck::with(Harness::Opencode, setup, brief(Preset::Manual));
    deck.reports(Report::VendorSession { id: "ses_1".into() });
    let turn = deck.prompt("Build it");
    deck.signal(
        Harness::Opencode,
        Channel::Events,
        &json!({"type": "session.status",
            "properties": {"sessionID": "ses_1", "status": {"type": "busy"}}}),
    );
    let call = ToolCall {
        call_id: "call_1".into(),
        name: "bash".into(),
        arguments: json!({"command": "make"}),
        mutating: true,
    };
    deck.reports(Report::ApprovalAsked { turn, call });
    deck.waits(1_000);
    assert_eq!(deck.card().requests[0].way, Some("driver"));
    let allow = Decision::Allow { input: None, scope: Scope::Once };
    let given = deck.answer(allow);
    assert!(given.is_ok(), "{given:?}");
    assert_eq!(deck.kind(), Kind::ExecutingTools);
}

/// Its hooks name the call that its driver was asked about, and tell of another time.
#[test]
fn what_its_hooks_say_of_a_request_does_not_rename_it() {
    let mut deck = Deck::of_claude_code();
    deck.reports(Report::VendorSession { id: "v-1".into() });
    let turn = deck.prompt("Build it");
    let call = ToolCall {
        call_id: "toolu_1".into(),
        name: "Bash".into(),
        arguments: json!({"command": "make"}),
        mutating: true,
    };
    deck.reports(Report::ApprovalAsked { turn, call });
    let key = deck.card().requests[0].key.clone();
    deck.waits(1_000);
    deck.hook(&json!({"hook_event_name": "PreToolUse", "session_id": "v-1", "tool_name": "Bash",
        "tool_use_id": "toolu_1", "tool_input": {"command": "make"}}));
    deck.hook(&asked("v-1"));
    deck.waits(1_000);
    assert_eq!(deck.card().requests[0].key, key);
}
