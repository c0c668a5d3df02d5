//! Killed at any moment: the session comes back, and nothing is run again behind one's back.

use qd_broker::driving::{Report, Work};
use qd_session::decision::{Command, Decision, RetryTarget, Scope};
use qd_session::machine::{AgentError, ErrorCode, ErrorSource, Kind, ToolCall};
use qd_session::policy::Preset;
use serde_json::json;

use super::deck::{Deck, bash, id, ok, read};
use super::turns::formatter;

fn names(deck: &Deck) -> Vec<&'static str> {
    let jobs = deck.jobs.iter().map(|job| job.work.name());
    jobs.filter(|name| *name != "survey").collect()
}

#[test]
fn a_run_that_a_crash_cut_off_is_told_to_the_model_as_such() {
    let mut deck = Deck::native(Preset::Yolo, Vec::new());
    let turn = deck.prompt("Build it");
    deck.answers(&turn, &[bash("a"), bash("b")]);
    let orders = deck.orders();
    deck.runs(&orders[0], ok("built"));
    deck.reports(Report::ToolStarted { run: orders[1].run.clone() });
    deck.restart();
    assert_eq!(names(&deck), [""; 0], "nothing is run again");
    assert_eq!(deck.card().agent_state.label, "Cut off by a restart");
    let late = Report::ToolFinished { run: orders[1].run.clone(), outcome: ok("late") };
    deck.reports(late);
    deck.command(Command::Prompt { text: "Go on".into() }).expect("taken");
    let sending = deck.sending();
    let last = serde_json::to_value(&**sending.conversation.last().expect("said")).expect("JSON");
    assert_eq!(last["outputs"][0]["content"], "built");
    assert_eq!(last["outputs"][1]["content"], "interrupted, outcome unknown");
    assert_eq!(last["text"], "Go on");
}

#[test]
fn a_request_to_the_model_is_not_repeated_by_itself() {
    let mut deck = Deck::native(Preset::Careful, Vec::new());
    deck.prompt("Build it");
    deck.restart();
    assert_eq!(names(&deck), [""; 0]);
    assert_eq!(deck.kind(), Kind::Ready);
    assert!(deck.card().capabilities.can_retry);
}

#[test]
fn an_answer_that_nobody_had_looked_at_is_looked_at() {
    let mut deck = Deck::native(Preset::Careful, Vec::new());
    let turn = deck.prompt("Read it");
    deck.completes(&turn, &[read("a")]);
    deck.restart();
    let awaited = deck.job(|work| {
        let Work::Survey { turn: Some(turn), tools, .. } = work else { return None };
        Some((turn.clone(), tools.clone()))
    });
    assert_eq!(awaited, (turn, vec!["read_file".into()]));
}

#[test]
fn a_question_stands_and_its_answer_arrives_once() {
    let mut deck = Deck::native(Preset::Careful, Vec::new());
    let turn = deck.prompt("Build it");
    deck.answers(&turn, &[bash("a")]);
    let key = deck.card().requests[0].key.clone();
    deck.restart();
    assert_eq!(deck.card().requests[0].key, key, "the same request");
    deck.answer(Decision::Allow { input: None, scope: Scope::Once }).expect("taken");
    assert_eq!(deck.orders().len(), 1);
}

#[test]
fn an_answer_on_record_that_the_machine_never_heard_is_given_after_the_restart() {
    let mut deck = Deck::native(Preset::Careful, Vec::new());
    let turn = deck.prompt("Build it");
    deck.answers(&turn, &[bash("a")]);
    let (entries, records) = (deck.entries.len(), deck.records.len());
    deck.answer(Decision::Allow { input: None, scope: Scope::Once }).expect("taken");
    // Only its record got to the disk.
    deck.entries.truncate(entries);
    deck.records.truncate(records + 1);
    deck.restart();
    assert_eq!(deck.orders().len(), 1);
    assert_eq!(deck.written()[records..], ["given", "delivered", "confirmed"]);
    // And never again.
    deck.restart();
    assert_eq!(names(&deck), [""; 0]);
}

#[test]
fn an_agent_that_asked_is_gone_after_a_restart_and_can_be_started_again() {
    let mut deck = Deck::of_claude_code();
    deck.reports(Report::VendorSession { id: "v-1".into() });
    let turn = deck.prompt("Build it");
    let call = ToolCall {
        call_id: "a".into(),
        name: "Bash".into(),
        arguments: json!({"command": "make"}),
        mutating: true,
    };
    deck.reports(Report::ApprovalAsked { turn, call });
    assert_eq!(deck.kind(), Kind::AwaitingApproval);
    deck.restart();
    assert_eq!(deck.kind(), Kind::Error);
    assert!(deck.card().requests.is_empty(), "nobody is there to be answered");
    let target = deck.card().drive.and_then(|drive| drive.retry).expect("the agent");
    deck.command(Command::Retry { target }).expect("taken");
    deck.surveys();
    let vendor_id = deck.job(|work| {
        let Work::Start(start) = work else { return None };
        Some(start.vendor_id.clone())
    });
    assert_eq!(vendor_id.as_deref(), Some("v-1"), "it goes on where it was");
}

#[test]
fn what_it_was_started_for_is_said_once() {
    let mut deck = Deck::native(Preset::Careful, Vec::new());
    // Its own brief names a prompt: spawned anew with one.
    let session = deck.broker.session(&super::deck::id()).expect("it is known");
    let setup = session.machine().expect("driven").setup().clone();
    drop(session);
    let mut brief = super::deck::brief(Preset::Careful);
    brief.prompt = Some("Begin".into());
    deck = Deck::with(qd_harness::Harness::Native, setup, brief);
    assert_eq!(deck.kind(), Kind::CallingLlm);
    let turn = deck.sending().turn;
    deck.answers(&turn, &[]);
    deck.command(Command::Stop).expect("taken");
    deck.reports(Report::Exited { code: Some(0), why: None });
    deck.command(Command::Resume).expect("taken");
    deck.reports(Report::Ready);
    assert_eq!(deck.kind(), Kind::Ready);
}

#[test]
fn a_hook_that_was_cut_off_is_run_again_when_somebody_wants_it() {
    let mut deck = Deck::native(Preset::Yolo, vec![formatter()]);
    let turn = deck.prompt("Build it");
    deck.answers(&turn, &[bash("a")]);
    let order = deck.orders().remove(0);
    deck.runs(&order, ok("built"));
    assert_eq!(deck.kind(), Kind::PostToolsHook);
    deck.restart();
    assert_eq!(names(&deck), [""; 0], "nothing is run again by itself");
    let target = deck.card().drive.and_then(|drive| drive.retry).expect("something to retry");
    assert!(matches!(target, RetryTarget::Hook { .. }), "{target:?}");
    deck.command(Command::Retry { target }).expect("taken");
    assert_eq!(names(&deck), ["run hook"]);
}

#[test]
fn what_the_operator_should_read_is_there_for_who_looks_later() {
    let mut deck = Deck::native(Preset::Careful, Vec::new());
    let error = AgentError {
        code: ErrorCode::HookConfigInvalid,
        message: "hooks.json: line 3".into(),
        retryable: false,
        source: ErrorSource::Orchestrator,
        resets_at: None,
    };
    deck.reports(Report::Trouble { error });
    let told = deck.changes.last().cloned().expect("it is shown at once");
    deck.restart();
    let session = deck.broker.session(&id()).expect("it is known");
    let noted = session.logbook().expect("it is driven").notes().all().last().expect("a note");
    assert_eq!(noted.shown, told);
    assert_eq!(deck.kind(), Kind::Ready, "it changes no state");
}
