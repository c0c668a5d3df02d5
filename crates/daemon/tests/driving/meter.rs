//! What is counted of driven sessions: folded from what a real broker shows.

use qd_broker::driving::{Report, Work};
use qd_harness::native::Piece;
use qd_session::logbook::Used;
use qd_session::machine::{
    Change, ErrorCode, HarnessTrouble, Kind, RunStatus, Shown, ToolLifecycle, TroubleKind,
};
use qd_session::moment::Timestamp;
use qd_session::policy::Preset;
use qd_telemetry::{LABELS_MAX, Meter};

use super::deck::{Deck, bash, ok};
use super::turns::formatter;

fn metered(deck: &Deck) -> Meter {
    let mut meter = Meter::default();
    deck.changes.iter().for_each(|shown| meter.fold(shown));
    deck.pieces.iter().for_each(|event| meter.fold_piece(event));
    meter
}

#[test]
fn a_turn_counts_its_steps_runs_hooks_and_pieces() {
    let mut deck = Deck::native(Preset::Yolo, vec![formatter()]);
    let turn = deck.prompt("Build it");
    for text in ["I ", "build"] {
        deck.reports(Report::Piece {
            turn: turn.clone(),
            piece: Piece::Text { text: text.into() },
        });
    }
    deck.now_ms += 90;
    deck.answers(&turn, &[bash("a")]);
    let order = deck.orders().remove(0);
    deck.reports(Report::ToolStarted { run: order.run.clone() });
    deck.now_ms += 1_000;
    deck.reports(Report::ToolFinished { run: order.run, outcome: ok("built") });
    let run = deck.job(|work| {
        let Work::RunHook { run, .. } = work else { return None };
        Some(run.clone())
    });
    deck.reports(Report::HookStarted { run: run.clone() });
    deck.now_ms += 20;
    deck.reports(Report::HookFinished { run, error: None, output: None });
    let turn = deck.sending().turn;
    deck.answers(&turn, &[]);

    let meter = metered(&deck);
    let steps = deck.changes.iter().filter(|it| matches!(it.change, Change::StateChanged(_)));
    assert_eq!(meter.transitions.values().sum::<u64>(), steps.count() as u64);
    assert_eq!(meter.transitions[&(Kind::ExecutingTools, Kind::PostToolsHook)], 1);
    assert_eq!(meter.transitions[&(Kind::CallingLlm, Kind::ProcessingResponse)], 2);
    let took = |name: &str, runs: &std::collections::BTreeMap<_, qd_telemetry::Histogram>| {
        let histogram = &runs[name];
        (histogram.count(), histogram.sum_ms())
    };
    assert_eq!(took("bash", &meter.tool_runs), (1, 1_010));
    assert_eq!(took("format", &meter.hook_runs), (1, 30));
    assert_eq!(meter.stream_events, [("completed", 2), ("text_delta", 2)].into());
    // The second answer came without a delta: nobody knows how long it took.
    assert_eq!((meter.stream_latency.count(), meter.stream_latency.sum_ms()), (1, 110));
    assert!(meter.errors.is_empty());
}

#[test]
fn an_answer_that_fails_is_an_error_and_has_no_latency() {
    let mut deck = Deck::native(Preset::Careful, Vec::new());
    let turn = deck.prompt("Say something");
    deck.reports(Report::Piece { turn: turn.clone(), piece: Piece::Text { text: "a".into() } });
    let trouble = HarnessTrouble {
        trouble: TroubleKind::Passing,
        message: "overloaded".into(),
        retry_after_ms: None,
    };
    deck.reports(Report::Failed { turn, trouble, failure: None, used: Used::default() });
    deck.waits(1_000);
    let turn = deck.sending().turn;
    deck.answers(&turn, &[]);
    let meter = metered(&deck);
    assert_eq!(meter.errors, [(ErrorCode::StreamingFailed, 1)].into());
    assert_eq!(meter.stream_events, [("completed", 1), ("error", 1), ("text_delta", 1)].into());
    assert_eq!(meter.stream_latency.count(), 0);
}

fn ended(tool: &str) -> Shown {
    let run = ToolLifecycle {
        run_id: "toolrun_1".into(),
        call_id: "call_1".into(),
        tool_name: tool.into(),
        mutating: false,
        status: RunStatus::Succeeded,
        is_error: false,
        attempt: 1,
        started_at_ms: Timestamp(1_000),
        finished_at_ms: Some(Timestamp(1_007)),
        error: None,
    };
    Shown {
        event_id: "evt_1".into(),
        timestamp_ms: Timestamp(1_007),
        session_id: "sess_1".into(),
        change: Change::ToolLifecycle(run),
    }
}

#[test]
fn a_model_that_names_any_tool_makes_no_more_labels() {
    let mut meter = Meter::default();
    for nth in 0..LABELS_MAX + 1_000 {
        meter.fold(&ended(&format!("mcp__server__tool_{nth}")));
    }
    meter.fold(&ended(&"x".repeat(10_000)));
    // A tool of our own has its place, also now.
    meter.fold(&ended("bash"));
    assert_eq!(meter.tool_runs.len(), LABELS_MAX + 2);
    assert_eq!(meter.tool_runs["other"].count(), 1_001);
    assert_eq!(meter.tool_runs["bash"].count(), 1);
    meter.fold(&ended("mcp__server__tool_3"));
    assert_eq!(meter.tool_runs["mcp__server__tool_3"].count(), 2);
}

#[test]
fn one_long_name_alone_is_none() {
    let mut meter = Meter::default();
    meter.fold(&ended(&"x".repeat(10_000)));
    assert_eq!(meter.tool_runs.keys().map(|name| &**name).collect::<Vec<_>>(), ["other"]);
}
