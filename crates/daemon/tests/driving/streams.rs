//! How what is shown of an answer ends, and what came out of its calls: the last tables of
//! `spec/stream-events.md`, both ways, through a whole broker.

use std::collections::BTreeSet;

use qd_broker::driving::{Report, Work};
use qd_harness::Harness;
use qd_harness::native::{Cause, Failure, Piece, StopReason, Usage};
use qd_session::decision::{Answer, Command, Decision, Scope};
use qd_session::id::TurnId;
use qd_session::limits::{LLM_SILENCE_MAX_MS, NOTE_ARGUMENTS_BYTES_MAX};
use qd_session::logbook::Used;
use qd_session::machine::{HarnessTrouble, Kind, Process, Setup, ToolCall, Tools, TroubleKind};
use qd_session::policy::Preset;
use serde_json::{Value, json};

use super::deck::{Deck, bash, brief};
use super::turns::formatter;

const SPEC: &str = include_str!("../../../../spec/stream-events.md");

fn table(heading: &str) -> Vec<Vec<String>> {
    let section = SPEC.split("\n## ").find(|section| section.starts_with(heading));
    let rows = section.expect("a section").lines().filter(|line| line.starts_with('|')).skip(2);
    let cells =
        |row: &str| row.trim_matches('|').split('|').map(|it| it.trim().to_owned()).collect();
    rows.map(cells).collect()
}

/// A session that has begun to answer.
fn begun(mut deck: Deck) -> (Deck, TurnId) {
    let turn = deck.prompt("Say something");
    let piece = Piece::Text { text: "Well".into() };
    deck.reports(Report::Piece { turn: turn.clone(), piece });
    (deck, turn)
}

fn native() -> (Deck, TurnId) {
    begun(Deck::native(Preset::Yolo, Vec::new()))
}

fn agent() -> (Deck, TurnId) {
    begun(Deck::of_claude_code())
}

fn with(tools: Tools, process: Process) -> (Deck, TurnId) {
    let setup = Setup { tools, process, hooks: vec![formatter()] };
    begun(Deck::with(Harness::ClaudeCode, setup, brief(Preset::Yolo)))
}

fn completed(turn: TurnId, stop: StopReason) -> Report {
    Report::Completed { turn, text: Some("Well".into()), stop, frozen: None }
}

fn failed(turn: TurnId, failure: Failure) -> Report {
    Report::Failed {
        turn,
        trouble: failure.trouble(),
        failure: Some(Box::new(failure)),
        used: Used::default(),
    }
}

fn unexplained(turn: TurnId) -> Report {
    let trouble = TroubleKind::Passing;
    let trouble = HarnessTrouble { trouble, message: "overloaded".into(), retry_after_ms: None };
    Report::Failed { turn, trouble, failure: None, used: Used::default() }
}

fn make(call: &str) -> ToolCall {
    let (name, arguments) = ("Bash".into(), json!({"command": "make"}));
    ToolCall { call_id: call.into(), name, arguments, mutating: true }
}

fn exits(deck: &mut Deck, code: Option<i32>) {
    deck.reports(Report::Exited { code, why: None });
}

/// An agent that is held behind the hook that failed.
fn held() -> (Deck, TurnId) {
    let (mut deck, turn) = with(Tools::TheirsHeld, Process::WholeSession);
    deck.reports(Report::ToolReported { turn: turn.clone(), call: make("a") });
    let (call, output) = ("a".into(), None);
    deck.reports(Report::ToolEnded { turn: turn.clone(), call, is_error: false, output });
    deck.reports(Report::BatchHeld { turn: turn.clone() });
    let run = deck.job(|work| {
        let Work::RunHook { run, .. } = work else { return None };
        Some(run.clone())
    });
    deck.reports(Report::HookFinished { run, error: Some("no".into()), output: None });
    assert_eq!(deck.kind(), Kind::Error);
    (deck, turn)
}

/// The broker in which the row happened, and the turn whose answer ended.
fn ended(what: &str) -> (Deck, TurnId) {
    let (mut deck, turn) = match what {
        "the operator prompts an agent that a failed hook holds" => held(),
        "the process of one turn ends well" => with(Tools::Theirs, Process::OneTurn),
        _ if what.contains("an agent") => agent(),
        _ => native(),
    };
    let of = turn.clone();
    match what {
        "it is done" => deck.reports(completed(of, StopReason::Done)),
        "it became too long" => deck.reports(completed(of, StopReason::Length)),
        "the model refuses" => deck.reports(completed(of, StopReason::Refused)),
        "the provider fails" => deck.reports(failed(of, Failure::of(Cause::Overloaded))),
        "an agent says that its provider failed" => deck.reports(unexplained(of)),
        "it cannot be understood" => deck.reports(failed(of, Failure::of(Cause::Garbled))),
        "it cannot be kept" => deck.completes(&turn, &[bash("a"), bash("a")]),
        "it falls silent" => deck.waits(LLM_SILENCE_MAX_MS + 1_000),
        "the operator interrupts" => {
            deck.command(Command::Interrupt).expect("taken");
        }
        "an agent that was interrupted is done" => {
            deck.command(Command::Interrupt).expect("taken");
            deck.reports(completed(of, StopReason::Done));
        }
        "an agent that was interrupted fails" => {
            deck.command(Command::Interrupt).expect("taken");
            deck.reports(unexplained(of));
        }
        "the operator stops the session" => {
            deck.command(Command::Stop).expect("taken");
        }
        "the operator prompts an agent that a failed hook holds" => {
            deck.command(Command::Prompt { text: "Rather not".into() }).expect("taken");
        }
        "the harness breaks off" => exits(&mut deck, Some(1)),
        "the harness leaves" | "the process of one turn ends well" => exits(&mut deck, Some(0)),
        other => panic!("the test knows no {other:?}"),
    }
    (deck, turn)
}

/// What was shown of that turn's answer.
fn shown(deck: &Deck, turn: &TurnId) -> Vec<Value> {
    let of_turn = deck.pieces.iter().filter(|event| event.stream_id == *turn);
    of_turn.map(|event| serde_json::to_value(event).expect("JSON")).collect()
}

fn is_last(event: &Value) -> bool {
    event["type"] == "completed" || event["type"] == "error"
}

#[test]
fn every_answer_ends_once_as_its_row_says() {
    for row in table("How an answer ends") {
        let (mut deck, turn) = ended(&row[0]);
        // Whatever comes of it: the next answer, and what is late of this one.
        let piece = Piece::Text { text: "late".into() };
        deck.reports(Report::Piece { turn: turn.clone(), piece });
        deck.reports(completed(turn.clone(), StopReason::Done));
        deck.waits(2_000);
        let told = shown(&deck, &turn);
        let last = told.last().expect("something was shown");
        let detail = ["reason", "code"].iter().find_map(|name| last["payload"][name].as_str());
        let name = format!("{} {}", last["type"].as_str().expect("a type"), detail.unwrap_or(""));
        assert_eq!(name, row[1], "{row:?}");
        assert_eq!(told.iter().filter(|event| is_last(event)).count(), 1, "{row:?}: {told:?}");
        let numbers: Vec<u64> = told.iter().filter_map(|event| event["seq"].as_u64()).collect();
        assert_eq!(numbers, (1..=told.len() as u64).collect::<Vec<u64>>());
    }
}

#[test]
fn an_answer_that_is_asked_for_again_comes_under_another_id() {
    let (mut deck, turn) = ended("it falls silent");
    let told = deck.pieces.len();
    deck.waits(1_000);
    let again = deck.sending().turn;
    assert_ne!(again, turn);
    let piece = Piece::Text { text: "Again".into() };
    deck.reports(Report::Piece { turn: again.clone(), piece });
    assert_eq!(shown(&deck, &turn).len(), told, "the old one is over");
    assert_eq!(shown(&deck, &again)[0]["seq"], 1);
}

#[test]
fn an_error_says_what_is_known_of_it() {
    let (mut deck, turn) = native();
    let failure = Failure {
        status: Some(429),
        retry_after_ms: Some(7_000),
        request_id: Some("req_1".into()),
        ..Failure::of(Cause::RateLimited)
    };
    deck.reports(failed(turn.clone(), failure));
    let told = shown(&deck, &turn);
    let payload = &told.last().expect("an error")["payload"];
    let details = json!({"cause": "rate_limited", "status": 429, "retryAfterMs": 7_000,
        "providerRequestId": "req_1"});
    assert_eq!((&payload["details"], &payload["recoverable"]), (&details, &json!(true)));
    let (deck, turn) = ended("the harness breaks off");
    let told = shown(&deck, &turn);
    let payload = &told.last().expect("an error")["payload"];
    let message = json!("the harness exited with code 1");
    assert_eq!((&payload["message"], &payload["recoverable"]), (&message, &json!(true)));
}

#[test]
fn what_was_thought_is_counted_where_the_stream_told_it() {
    let (mut deck, turn) = native();
    let piece = Piece::Usage(Usage { reasoning: 7, ..Usage::default() });
    deck.reports(Report::Piece { turn: turn.clone(), piece });
    deck.completes(&turn, &[]);
    let told = shown(&deck, &turn);
    let usage = &told.last().expect("the end")["payload"]["usage"];
    assert_eq!(*usage, json!({"inputTokens": 100, "outputTokens": 10, "reasoningTokens": 7}));
}

/// What the stream tells of the call to which that happened.
fn result_of(what: &str) -> Value {
    let (mut deck, turn) = agent();
    let of = turn.clone();
    let ended = |is_error, output: Option<&str>| {
        let (turn, call) = (turn.clone(), "a".into());
        Report::ToolEnded { turn, call, is_error, output: output.map(Into::into) }
    };
    match what {
        "the operator denies it" | "the agent gives it up" => {
            deck.reports(Report::ApprovalAsked { turn: of, call: make("a") });
        }
        "the operator answers its question" => {
            let arguments = json!({"questions": [{"question": "Which colour?"}]});
            let call = ToolCall { name: "AskUserQuestion".into(), arguments, ..make("a") };
            deck.reports(Report::QuestionAsked { turn: of, call });
        }
        _ => deck.reports(Report::ToolReported { turn: of, call: make("a") }),
    }
    match what {
        "it came out" => deck.reports(ended(false, Some("what came out"))),
        "it came out as an error" => deck.reports(ended(true, Some("what came out"))),
        "it came out, and nobody tells what" => deck.reports(ended(false, None)),
        "the operator denies it" => {
            deck.waits(1_000);
            let message = Some("no".into());
            deck.answer(Decision::Deny { message, interrupt: false }).expect("taken");
            // The agent's own word of it comes late.
            deck.reports(ended(true, Some("rejected")));
        }
        "the agent gives it up" => {
            deck.reports(Report::Withdrawn { turn: turn.clone(), call: "a".into() });
        }
        "the operator answers its question" => {
            deck.waits(1_000);
            let values = vec!["the answer".to_owned()];
            let answers = vec![Answer { question: "Which colour?".into(), values }];
            deck.answer(Decision::Answer { answers }).expect("taken");
            deck.reports(ended(false, Some("told the model")));
        }
        "the operator stops the session" => {
            deck.command(Command::Stop).expect("taken");
        }
        other => panic!("the test knows no {other:?}"),
    }
    let told = shown(&deck, &turn);
    let results: Vec<&Value> =
        told.iter().filter(|event| event["type"] == "tool_call_completed").collect();
    assert_eq!(results.len(), 1, "{what}: {told:?}");
    results[0]["payload"].clone()
}

#[test]
fn what_came_out_of_a_call_is_told_once_as_its_row_says() {
    for row in table("What came out of calls") {
        let told = result_of(&row[0]);
        let text = |name: &str| told[name].as_str().unwrap_or_default().to_owned();
        assert_eq!([text("status"), text("output")], [row[1].clone(), row[2].clone()], "{row:?}");
        assert_eq!(told["callId"], "a");
    }
}

#[test]
fn no_secret_gets_out_with_what_came_out() {
    let (mut deck, turn) = agent();
    let call = ToolCall { arguments: json!({"password": "hunter2"}), ..make("a") };
    deck.reports(Report::ToolReported { turn: turn.clone(), call });
    let output = Some("API_KEY=abc".into());
    deck.reports(Report::ToolEnded { turn, call: "a".into(), is_error: false, output });
    let told = serde_json::to_string(&deck.pieces).expect("JSON");
    assert!(!told.contains("hunter2") && !told.contains("abc"), "{told}");
}

#[test]
fn long_arguments_are_shown_as_far_as_anybody_reads() {
    let (mut deck, turn) = agent();
    let arguments = json!({"path": "a", "content": "x".repeat(NOTE_ARGUMENTS_BYTES_MAX)});
    deck.reports(Report::ToolReported {
        turn: turn.clone(),
        call: ToolCall { arguments, ..make("a") },
    });
    let (call, output) = ("a".into(), None);
    deck.reports(Report::ToolEnded { turn: turn.clone(), call, is_error: false, output });
    let told = shown(&deck, &turn);
    let arguments = &told.last().expect("a result")["payload"]["arguments"];
    assert_eq!(arguments["path"], "a");
    assert!(arguments.to_string().len() < NOTE_ARGUMENTS_BYTES_MAX, "{arguments}");
}

#[test]
fn what_came_out_is_there_for_who_looks_later() {
    let (mut deck, turn) = agent();
    deck.reports(Report::ApprovalAsked { turn: turn.clone(), call: make("a") });
    deck.waits(1_000);
    deck.answer(Decision::Allow { input: None, scope: Scope::Once }).expect("taken");
    let output = Some("built".into());
    deck.reports(Report::ToolEnded { turn, call: "a".into(), is_error: false, output });
    deck.restart();
    let session = deck.broker.session(&super::deck::id()).expect("it is known");
    let notes = session.logbook().expect("it is driven").notes().all();
    let notes: Vec<Value> =
        notes.iter().map(|note| serde_json::to_value(note).expect("JSON")).collect();
    let run = notes.iter().find(|note| note["callId"] == "a").expect("a run");
    assert_eq!((&run["status"], &run["output"]), (&json!("succeeded"), &json!("built")));
}

/// Rows of the last table name what the code can spell and no answer of the tests has.
#[test]
fn what_is_not_produced_is_not() {
    let mut told: BTreeSet<String> = BTreeSet::new();
    for row in table("How an answer ends") {
        let (deck, turn) = ended(&row[0]);
        for event in shown(&deck, &turn) {
            let words = [&event["type"], &event["payload"]["reason"], &event["payload"]["code"]];
            told.extend(words.iter().filter_map(|word| word.as_str()).map(str::to_owned));
        }
    }
    for row in table("What is not produced") {
        assert!(!told.contains(&row[0]), "{row:?}");
    }
}
