//! Turns of a driven session: what is judged, asked, run, held and refused.

use std::path::Path;

use qd_broker::Input;
use qd_broker::desk::Declined;
use qd_broker::driving::{Ground, Report, Spawning, Work};
use qd_harness::Harness;
use qd_harness::native::Piece;
use qd_host::policy_file::PolicyFile;
use qd_session::decision::{Answer, Body, Command, Decision, RetryTarget, Scope, Standing};
use qd_session::limits::{LLM_RETRY_DELAYS_MS, LLM_SILENCE_MAX_MS};
use qd_session::logbook::Used;
use qd_session::machine::{
    FailurePolicy, HarnessTrouble, HookConfig, Kind, Process, Setup, ToolFilter, ToolOutcome,
    Tools, TroubleKind,
};
use qd_session::operator::Group;
use qd_session::policy::{Preset, Tightening};
use serde_json::json;

use super::deck::{Deck, bash, brief, id, ok, read};

fn allow() -> Decision {
    Decision::Allow { input: None, scope: Scope::Once }
}

pub fn formatter() -> HookConfig {
    HookConfig {
        name: "format".into(),
        command: vec!["true".into()],
        timeout_ms: 1_000,
        failure_policy: FailurePolicy::FailSession,
        tool_filter: ToolFilter::AnyMutating,
        env_allow: Vec::new(),
    }
}

#[test]
fn a_turn_asks_runs_hooks_and_gives_the_model_every_output() {
    let mut deck = Deck::native(Preset::Careful, vec![formatter()]);
    let turn = deck.prompt("Build it");
    deck.answers(&turn, &[read("a"), bash("b")]);
    assert_eq!(deck.kind(), Kind::AwaitingApproval);
    let card = deck.card();
    assert_eq!(card.requests.len(), 1, "reading inside the workspace is not asked about");
    assert_eq!(card.requests[0].way, Some("driver"));
    assert!(card.capabilities.can_approve && card.driven);
    assert!(matches!(deck.answer(allow()), Ok(Standing::InFlight)));
    let written = ["commanded", "delivered", "ruled", "given", "delivered", "confirmed"];
    assert_eq!(deck.written(), written);
    let orders = deck.orders();
    assert_eq!(orders.len(), 2, "side by side");
    deck.runs(&orders[1], ok("built"));
    assert_eq!(deck.kind(), Kind::ExecutingTools, "the other still runs");
    deck.runs(&orders[0], ok("# Readme"));
    assert_eq!(deck.kind(), Kind::PostToolsHook);
    let run = deck.job(|work| {
        let Work::RunHook { run, tool_runs, .. } = work else { return None };
        assert_eq!(tool_runs.len(), 1, "the one that changed something");
        Some(run.clone())
    });
    deck.reports(Report::HookStarted { run: run.clone() });
    deck.reports(Report::HookFinished { run, error: None, output: None });
    let sending = deck.sending();
    assert_eq!(sending.conversation.len(), 3);
    deck.answers(&sending.turn, &[]);
    assert_eq!(deck.kind(), Kind::Ready);
    assert_eq!(deck.card().agent_state.state.as_str(), "task_complete");
}

#[test]
fn what_it_asks_is_allowed_once_and_no_further() {
    let mut deck = Deck::native(Preset::Careful, Vec::new());
    let turn = deck.prompt("Build it");
    deck.answers(&turn, &[bash("a")]);
    assert_eq!(deck.card().requests[0].scopes, []);
    for scope in [Scope::Session, Scope::Always] {
        let taken = deck.answer(Decision::Allow { input: None, scope });
        let Err(Declined::Impossible { why }) = taken else { panic!("{taken:?}") };
        assert_eq!(why, "it can only be allowed once from here");
        assert_eq!(deck.kind(), Kind::AwaitingApproval);
    }
    assert!(matches!(deck.answer(allow()), Ok(Standing::InFlight)));
}

#[test]
fn the_journal_has_each_event_before_its_job_goes_out() {
    let mut deck = Deck::native(Preset::Yolo, Vec::new());
    deck.order.clear();
    let turn = deck.prompt("Build it");
    deck.answers(&turn, &[bash("a")]);
    let orders = deck.orders();
    deck.runs(&orders[0], ok("built"));
    let mut is_written = false;
    for what in &deck.order {
        match *what {
            "entry" => is_written = true,
            "job" => assert!(is_written, "{:?}", deck.order),
            _ => {}
        }
    }
    assert!(deck.order.contains(&"job"));
}

#[test]
fn pieces_are_shown_in_order_and_not_journaled() {
    let mut deck = Deck::native(Preset::Careful, Vec::new());
    let turn = deck.prompt("Say something");
    let before = deck.entries.len();
    for text in ["Hel", "lo"] {
        deck.reports(Report::Piece {
            turn: turn.clone(),
            piece: Piece::Text { text: text.into() },
        });
    }
    deck.reports(Report::Piece {
        turn: "turn_old".into(),
        piece: Piece::Text { text: "late".into() },
    });
    assert_eq!(deck.entries.len(), before);
    let told: Vec<u64> = deck.pieces.iter().map(|event| event.seq).collect();
    assert_eq!(told, [1, 2]);
    let wire = serde_json::to_value(&deck.pieces[0]).expect("JSON");
    assert_eq!(wire["type"], "text_delta");
    assert_eq!(wire["payload"], json!({"text": "Hel", "role": "assistant"}));
    assert_eq!(wire["streamId"], turn.as_str());
}

#[test]
fn a_piece_shows_that_the_stream_lives() {
    let mut deck = Deck::native(Preset::Careful, Vec::new());
    let turn = deck.prompt("Say something");
    deck.waits(LLM_SILENCE_MAX_MS - 1_000);
    deck.reports(Report::Piece { turn, piece: Piece::Text { text: "a".into() } });
    deck.waits(LLM_SILENCE_MAX_MS - 1_000);
    assert_eq!(deck.kind(), Kind::CallingLlm);
    deck.waits(2_000);
    assert_eq!(deck.kind(), Kind::Error, "now it has been silent for too long");
    deck.waits(1_000);
    assert_eq!(deck.kind(), Kind::CallingLlm, "and is asked again");
}

#[test]
fn a_clock_that_is_set_back_delays_no_timer_by_more_than_its_own_time() {
    let mut deck = Deck::native(Preset::Careful, Vec::new());
    let turn = deck.prompt("Say something");
    let trouble = HarnessTrouble {
        trouble: TroubleKind::Passing,
        message: "overloaded".into(),
        retry_after_ms: None,
    };
    deck.reports(Report::Failed { turn, trouble, failure: None, used: Used::default() });
    assert_eq!(deck.kind(), Kind::Error);
    deck.now_ms -= 3_600_000;
    deck.waits(0);
    deck.waits(300);
    assert_eq!(deck.kind(), Kind::CallingLlm);
}

#[test]
fn a_question_is_answered_by_the_operator_alone() {
    let mut deck = Deck::native(Preset::Yolo, Vec::new());
    let turn = deck.prompt("Paint it");
    deck.answers(&turn, &[("q", "ask_user", json!({"question": "Which colour?"}))]);
    assert_eq!(deck.kind(), Kind::AwaitingInput);
    assert_eq!(deck.card().requests[0].text.as_deref(), Some("Which colour?"));
    let declined = deck.answer(allow());
    assert!(matches!(declined, Err(Declined::Impossible { .. })), "{declined:?}");
    let answers = vec![Answer { question: "Which colour?".into(), values: vec!["Blue".into()] }];
    deck.answer(Decision::Answer { answers }).expect("taken");
    let sending = deck.sending();
    let last = serde_json::to_value(&**sending.conversation.last().expect("said")).expect("JSON");
    assert_eq!(last["outputs"][0]["content"], "Blue");
}

#[test]
fn a_denied_call_tells_the_model_and_the_turn_goes_on() {
    let mut deck = Deck::native(Preset::Careful, Vec::new());
    let turn = deck.prompt("Build it");
    deck.answers(&turn, &[bash("a")]);
    deck.answer(Decision::Deny { message: Some("not now".into()), interrupt: false })
        .expect("taken");
    let sending = deck.sending();
    let last = serde_json::to_value(&**sending.conversation.last().expect("said")).expect("JSON");
    assert_eq!(last["outputs"][0]["content"], "rejected by the operator: not now");
}

#[test]
fn yolo_that_a_file_of_the_project_forbids_is_refused_as_forbidden() {
    let mut deck = Deck::native(Preset::Careful, Vec::new());
    let tightening = Tightening::yolo_forbidden();
    let ground = Box::new(Ground { tightening, ..Ground::default() });
    deck.reports(Report::Surveyed { turn: None, ground });
    let refused = deck.command(Command::Yolo { on: true });
    assert!(matches!(refused, Err(Declined::Forbidden { .. })), "{refused:?}");
    assert_eq!(deck.card().drive.and_then(|drive| drive.preset), Some(Preset::Careful));
}

/// An agent that takes its orders not to ask from its command line, and cannot be answered.
fn cline(preset: Preset) -> Deck {
    let setup = Setup { tools: Tools::Theirs, process: Process::OneTurn, hooks: Vec::new() };
    let (session, vendor_id, trouble) = (id(), None, None);
    let (harness, brief) = (Harness::Cline, brief(preset));
    let spawning = Spawning { session, harness, setup, brief, vendor_id, trouble };
    let mut deck = Deck::default();
    deck.hands_in(Input::Spawned(Box::new(spawning)));
    deck
}

fn preset_of_start(deck: &mut Deck) -> Preset {
    deck.job(|work| {
        let Work::Start(start) = work else { return None };
        Some(start.preset)
    })
}

#[test]
fn an_agent_is_started_only_as_free_as_its_repository_lets_it() {
    let mut deck = cline(Preset::Yolo);
    let names: Vec<&str> = deck.jobs.iter().map(|job| job.work.name()).collect();
    assert_eq!(names, ["survey"], "before anything of it runs");
    deck.repository = Tightening::yolo_forbidden();
    deck.surveys();
    assert_eq!(preset_of_start(&mut deck), Preset::Careful);
    assert_eq!(deck.card().drive.and_then(|drive| drive.preset), Some(Preset::Careful));

    let mut free = cline(Preset::Yolo);
    free.surveys();
    assert_eq!(preset_of_start(&mut free), Preset::Yolo);
}

#[test]
fn a_repository_that_forbids_it_later_holds_from_the_next_prompt_on() {
    let mut deck = cline(Preset::Yolo);
    deck.surveys();
    deck.reports(Report::Ready);
    deck.command(Command::Prompt { text: "Work".to_owned() }).expect("taken");
    // What is wanted meanwhile comes behind it.
    deck.command(Command::Interrupt).expect("taken");
    deck.repository = Tightening::yolo_forbidden();
    deck.jobs.retain(|job| job.work.name() != "start");
    deck.surveys();
    let names: Vec<&str> = deck.jobs.iter().map(|job| job.work.name()).collect();
    assert_eq!(names, ["send", "interrupt"]);
    assert_eq!(deck.sending().start.preset, Preset::Careful);
}

#[test]
fn yolo_releases_what_waits() {
    let mut deck = Deck::native(Preset::Careful, Vec::new());
    let turn = deck.prompt("Build it");
    deck.answers(&turn, &[bash("a")]);
    deck.command(Command::Yolo { on: true }).expect("taken");
    assert_eq!(deck.orders().len(), 1);
    assert!(deck.card().requests.is_empty());
    assert_eq!(deck.card().drive.and_then(|drive| drive.preset), Some(Preset::Yolo));
}

#[test]
fn what_a_rule_answers_is_on_record_with_its_name_before_it_takes_effect() {
    let mut deck = Deck::native(Preset::Careful, Vec::new());
    let text = "[[rule]]\nname = \"no make\"\neffect = \"deny\"\ncommand = \"make *\"\n\
                message = \"Ask me first.\"\n";
    let policy = PolicyFile::parsed(text, Path::new("/home/u")).policy;
    deck.hands_in(Input::Policy(policy));
    let turn = deck.prompt("Build it");
    let written = deck.records.len();
    deck.completes(&turn, &[read("a"), bash("b"), ("c", "write_file", json!({"path": "x"}))]);
    deck.order.clear();
    deck.surveys();
    assert_eq!(deck.order[..3], ["record", "record", "entry"], "one for each, and first");
    let ruled = deck.records[written..].iter().map(|record| {
        let Body::Ruled(offer) = &record.body else { panic!("{record:?}") };
        let rule = offer.rule.as_ref().map(ToString::to_string).expect("a rule");
        let tool = offer.shown.tool.as_ref().map(ToString::to_string).expect("a tool");
        (rule, tool, offer.answer.clone())
    });
    let denied = Decision::Deny { message: Some("Ask me first.".into()), interrupt: false };
    let expected = [("preset careful", "read_file", allow()), ("no make", "bash", denied)];
    let expected = expected.map(|(rule, tool, answer)| (rule.to_owned(), tool.to_owned(), answer));
    assert_eq!(ruled.collect::<Vec<_>>(), expected, "the third is asked");
    deck.restart();
    assert_eq!(deck.card().requests.len(), 1, "and nothing of it is open or unsettled");
}

#[test]
fn a_session_that_asks_nobody_is_held_after_fifty_calls_that_nobody_watched() {
    let mut deck = Deck::native(Preset::Yolo, Vec::new());
    let names: Vec<&'static str> = (0..60).map(|nth| &*format!("c{nth}").leak()).collect();
    let mut turn = deck.prompt("Work");
    for nth in 0..5 {
        let calls: Vec<_> = names[nth * 10..nth * 10 + 10].iter().map(|name| bash(name)).collect();
        deck.answers(&turn, &calls);
        if nth == 4 {
            break;
        }
        for order in deck.orders() {
            deck.runs(&order, ok("ok"));
        }
        turn = deck.sending().turn;
    }
    assert_eq!(deck.kind(), Kind::Paused);
    let shown = deck.card().agent_state;
    assert_eq!(shown.state.as_str(), "paused", "no budget is spent");
    let why = shown.context.as_ref().and_then(|context| context["why"].as_str());
    assert_eq!(why, Some("it asks nobody, and nobody watched what it did"));
    deck.command(Command::Resume).expect("taken");
    assert_eq!(deck.orders().len(), 10, "it goes on where it was");
}

#[test]
fn somebody_who_watches_lets_it_work() {
    let mut deck = Deck::native(Preset::Yolo, Vec::new());
    deck.broker.set_presence(true);
    let names: Vec<&'static str> = (0..60).map(|nth| &*format!("c{nth}").leak()).collect();
    let turn = deck.prompt("Work");
    let calls: Vec<_> = names.iter().map(|name| bash(name)).collect();
    deck.answers(&turn, &calls);
    assert_eq!(deck.kind(), Kind::ExecutingTools);
}

#[test]
fn what_is_not_possible_is_refused_and_told_and_not_on_record() {
    let mut deck = Deck::native(Preset::Careful, Vec::new());
    let declined = deck.command(Command::Resume);
    assert!(matches!(declined, Err(Declined::Impossible { .. })), "{declined:?}");
    assert_eq!(
        deck.errors(),
        ["state_transition_invalid: ResumeRequested is not possible in Ready"]
    );
    assert!(deck.records.is_empty());
    assert!(!deck.card().capabilities.can_resume);
}

#[test]
fn a_retry_is_offered_when_none_is_due() {
    let mut deck = Deck::native(Preset::Careful, Vec::new());
    let mut turn = deck.prompt("Build it");
    for delay_ms in LLM_RETRY_DELAYS_MS {
        let (trouble, message) = (TroubleKind::Passing, "busy".into());
        let trouble = HarnessTrouble { trouble, message, retry_after_ms: None };
        deck.reports(Report::Failed { turn, trouble, failure: None, used: Used::default() });
        let card = deck.card();
        assert_eq!(card.agent_state.group, Group::Autonomous, "it goes on by itself");
        assert!(!card.capabilities.can_retry, "who presses it now races with the timer");
        deck.waits(delay_ms * 2);
        turn = deck.sending().turn;
    }
    let (trouble, message) = (TroubleKind::Passing, "busy".into());
    let trouble = HarnessTrouble { trouble, message, retry_after_ms: None };
    deck.reports(Report::Failed { turn, trouble, failure: None, used: Used::default() });
    let card = deck.card();
    assert_eq!(card.agent_state.group, Group::NeedsYou);
    assert!(card.capabilities.can_retry);
}

#[test]
fn a_failed_command_is_repeated_by_a_person_only() {
    let mut deck = Deck::native(Preset::Yolo, Vec::new());
    let turn = deck.prompt("Build it");
    deck.answers(&turn, &[bash("a")]);
    let order = deck.orders().remove(0);
    deck.runs(&order, ToolOutcome::Failed { error: "it cannot start".into() });
    assert_eq!(deck.kind(), Kind::Error);
    deck.waits(60_000);
    assert_eq!(deck.kind(), Kind::Error, "it may have done something");
    assert!(deck.card().capabilities.can_retry);
    let target = deck.card().drive.and_then(|drive| drive.retry).expect("something to retry");
    assert_eq!(target, RetryTarget::Tool { run: order.run });
    deck.command(Command::Retry { target }).expect("taken");
    assert_eq!(deck.orders().len(), 1);
}

#[test]
fn an_answer_that_cannot_be_kept_is_a_failed_one() {
    let mut deck = Deck::native(Preset::Yolo, Vec::new());
    let turn = deck.prompt("Build it");
    deck.completes(&turn, &[bash("a"), bash("a")]);
    assert_eq!(deck.kind(), Kind::Error);
    assert!(deck.errors()[0].contains("the same id"), "{:?}", deck.errors());
}
