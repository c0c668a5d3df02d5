//! Traces of driven sessions: folded from what a real broker shows.

use qd_broker::driving::{Report, Work};
use qd_harness::Harness;
use qd_session::decision::Command;
use qd_session::logbook::Used;
use qd_session::machine::{HarnessTrouble, Kind, ToolOutcome, TroubleKind};
use qd_session::policy::Preset;
use qd_telemetry::{Attribute, Span, Tracer, trace_id};

use super::deck::{Deck, bash, ok, read};
use super::turns::formatter;

fn traced(deck: &Deck) -> Vec<Span> {
    let mut tracer = Tracer::default();
    deck.changes.iter().flat_map(|shown| tracer.fold(Harness::Native, shown)).collect()
}

fn value(span: &Span, name: &str) -> String {
    let found = span.attributes.iter().find(|(known, _)| *known == name);
    match found.map(|(_, value)| value) {
        Some(Attribute::Text(text)) => text.to_string(),
        Some(Attribute::Number(number)) => number.to_string(),
        None => panic!("no {name} in {span:?}"),
    }
}

/// Each span in a line: its name, what tells it from others, and its failure.
fn told(spans: &[Span]) -> Vec<String> {
    let line = |span: &Span| {
        let values: Vec<String> = match span.name {
            "turn" => vec![value(span, "attempts"), value(span, "outcome")],
            "llm" => vec![value(span, "attempt"), value(span, "status")],
            "tool" => vec![value(span, "tool_name"), value(span, "status")],
            _ => vec![value(span, "hook_name"), value(span, "status")],
        };
        let failure = span.failure.as_deref().map(|code| format!(": {code}")).unwrap_or_default();
        format!("{} {}{failure}", span.name, values.join(" "))
    };
    spans.iter().map(line).collect()
}

fn fails(deck: &mut Deck, turn: qd_session::id::TurnId, trouble: TroubleKind) {
    let trouble = HarnessTrouble { trouble, message: "sk-secret".into(), retry_after_ms: None };
    deck.reports(Report::Failed { turn, trouble, failure: None, used: Used::default() });
}

#[test]
fn a_turn_is_one_trace_with_its_requests_runs_and_hooks() {
    let mut deck = Deck::native(Preset::Yolo, vec![formatter()]);
    let turn = deck.prompt("Build it");
    deck.answers(&turn, &[read("a"), bash("b")]);
    let orders = deck.orders();
    for order in &orders {
        deck.runs(order, ok("done"));
    }
    let run = deck.job(|work| {
        let Work::RunHook { run, .. } = work else { return None };
        Some(run.clone())
    });
    deck.reports(Report::HookStarted { run: run.clone() });
    deck.reports(Report::HookFinished { run, error: None, output: None });
    let second = deck.sending().turn;
    deck.answers(&second, &[]);

    let spans = traced(&deck);
    let expected = [
        "llm 1 succeeded",
        "tool read_file succeeded",
        "tool bash succeeded",
        "hook format succeeded",
        "llm 1 succeeded",
        "turn 2 completed",
    ];
    assert_eq!(told(&spans), expected);
    let root = spans.last().expect("a root");
    assert_eq!(root.trace, trace_id(turn.as_str()));
    assert_eq!(
        (value(root, "stream_id"), value(root, "harness")),
        (turn.to_string(), "native".into())
    );
    assert_eq!(value(&spans[4], "stream_id"), second.as_str());
    assert_eq!(value(&spans[2], "run_id"), orders[1].run.as_str());
    for child in &spans[..5] {
        assert_eq!((child.trace, child.parent), (root.trace, Some(root.id)));
        assert!(child.started_at <= child.ended_at);
        assert!(root.started_at <= child.started_at && child.ended_at <= root.ended_at);
    }
    let ids: std::collections::BTreeSet<_> = spans.iter().map(|span| span.id).collect();
    assert_eq!(ids.len(), spans.len(), "each has an id of its own");
}

#[test]
fn the_trace_of_a_turn_is_found_by_its_id() {
    // printf %s turn_1 | sha256sum
    let hex: String = trace_id("turn_1").iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, "98129b81e680c6127cd83eb39e847621");
}

#[test]
fn each_try_of_a_request_is_a_span() {
    let mut deck = Deck::native(Preset::Careful, Vec::new());
    let turn = deck.prompt("Say something");
    fails(&mut deck, turn, TroubleKind::Passing);
    deck.waits(300);
    let turn = deck.sending().turn;
    deck.answers(&turn, &[]);
    let expected = ["llm 1 failed: streaming_failed", "llm 2 succeeded", "turn 2 completed"];
    let spans = traced(&deck);
    assert_eq!(told(&spans), expected);
    assert!(!format!("{spans:?}").contains("sk-secret"), "no message is in a span");
}

#[test]
fn a_turn_that_fails_for_good_says_why() {
    let mut deck = Deck::native(Preset::Careful, Vec::new());
    let turn = deck.prompt("Say something");
    fails(&mut deck, turn, TroubleKind::Auth);
    assert_eq!(deck.kind(), Kind::Ready);
    let expected = ["llm 1 failed: auth_failed", "turn 1 failed: auth_failed"];
    assert_eq!(told(&traced(&deck)), expected);
}

#[test]
fn a_failed_turn_ended_when_it_failed_though_the_operator_comes_later() {
    let mut deck = Deck::native(Preset::Yolo, Vec::new());
    let turn = deck.prompt("Build it");
    deck.answers(&turn, &[bash("a")]);
    let order = deck.orders().remove(0);
    deck.runs(&order, ToolOutcome::Failed { error: "it cannot start".into() });
    assert_eq!(deck.kind(), Kind::Error);
    let failed_at = deck.now_ms;
    assert_eq!(
        told(&traced(&deck)).last().map(String::as_str),
        Some("tool bash failed: tool_execution_failed")
    );
    deck.now_ms += 3_600_000;
    let next = deck.prompt("Then do something else");
    deck.answers(&next, &[]);
    let spans = traced(&deck);
    let expected = [
        "llm 1 succeeded",
        "tool bash failed: tool_execution_failed",
        "turn 1 failed: tool_execution_failed",
        "llm 1 succeeded",
        "turn 1 completed",
    ];
    assert_eq!(told(&spans), expected);
    assert_eq!(spans[2].ended_at.0, failed_at);
    assert_ne!(spans[2].trace, spans[4].trace);
}

#[test]
fn what_is_cut_off_is_no_failure() {
    let mut deck = Deck::native(Preset::Yolo, Vec::new());
    deck.prompt("Say something");
    deck.command(Command::Interrupt).expect("taken");
    assert_eq!(told(&traced(&deck)), ["llm 1 canceled", "turn 1 interrupted"]);
    let turn = deck.prompt("Build it");
    deck.answers(&turn, &[bash("a")]);
    let order = deck.orders().remove(0);
    deck.reports(Report::ToolStarted { run: order.run });
    deck.command(Command::Stop).expect("taken");
    let spans = traced(&deck);
    assert_eq!(told(&spans)[2..], ["llm 1 succeeded", "tool bash canceled", "turn 1 stopped"]);
}

#[test]
fn a_pause_is_part_of_its_turn_unless_nothing_follows_it() {
    let mut deck = Deck::native(Preset::Yolo, Vec::new());
    let turn = deck.prompt("Build it");
    deck.command(Command::Pause).expect("taken");
    deck.answers(&turn, &[]);
    assert_eq!(deck.kind(), Kind::Paused);
    let paused_at = deck.now_ms;
    deck.now_ms += 3_600_000;
    deck.command(Command::Resume).expect("taken");
    let spans = traced(&deck);
    assert_eq!(told(&spans), ["llm 1 succeeded", "turn 1 completed"]);
    assert_eq!(spans[1].ended_at.0, paused_at);
}
