//! What captured sessions did over time, from what would be journaled of them.

use std::collections::BTreeMap;

use qd_harness::replay::Scene;
use qd_session::event::{Entry, Event};
use qd_session::id::SessionId;
use qd_session::moment::Timestamp;
use qd_session::timeline::Timeline;

use super::capture::{Capture, top};

/// A line for each run and each span of the capture's sessions, with times from its beginning.
fn told(name: &str) -> Vec<String> {
    let capture = Capture::read(&top().join(name));
    let began = Timestamp(capture.signals.first().expect("signals").at_ms);
    let mut entries: BTreeMap<SessionId, Vec<Entry>> = BTreeMap::new();
    let mut now = began;
    for scene in capture.play(&capture.all()) {
        if let Scene::Event { at, session, event } = scene {
            let id = SessionId::new(session);
            let entry = Entry::new(id.clone(), at, Event::Observed { event });
            entries.entry(id).or_default().push(entry);
            now = now.max(at);
        }
    }
    let mut lines = Vec::new();
    for (session, entries) in entries {
        let Timeline { runs, spans } = Timeline::of(&session, &entries, now);
        let ms = |at: Timestamp| at.ms_since(began);
        lines.extend(runs.iter().map(|run| {
            let agent = if run.agent.is_main() { "" } else { "sub " };
            let detail = run.detail.as_deref().unwrap_or_default();
            let from = ms(run.started_at);
            let to = run.ended_at.map(|at| ms(at).to_string()).unwrap_or_default();
            format!("{agent}{} {detail:?} {from}..{to} {:?}", run.name, run.outcome)
        }));
        lines.extend(spans.iter().map(|span| {
            let to = span.to.map(|at| ms(at).to_string()).unwrap_or_default();
            format!("{:?}/{} {}..{to}", span.group, span.state.as_str(), ms(span.from))
        }));
    }
    lines
}

#[test]
fn a_refused_call_is_told_from_one_that_was_cut_short() {
    assert_eq!(
        told("claude-code/tui-permission-deny"),
        [
            r#"Write "/home/user/acme/x.txt" 4129..6164 Some(Denied)"#,
            "NeedsYou/idle 0..2935",
            "Autonomous/thinking 2935..4129",
            "Autonomous/acting 4129..4887",
            "NeedsYou/needs_permission 4887..6164",
            "Autonomous/thinking 6164..6180",
            "NeedsYou/interrupted 6180..8093",
            "Delivered/session_ended 8093..",
        ]
    );
    let run = |name| told(name).remove(0);
    let cases = [
        ("claude-code/tui-permission-allow", "x.txt\" 2877..9784 Some(Ok)"),
        ("claude-code/tui-esc-while-tool", "done\" 3353..6552 Some(Interrupted)"),
        ("codex/app-approve-decline", "outside.txt\" 1658..4709 Some(Denied)"),
        ("codex/app-interrupt-tool", "sleep 30\" 621..1500 Some(Interrupted)"),
        ("gemini/tool-error", "nope.js\" 457..577 Some(Failed)"),
    ];
    for (name, end) in cases {
        assert!(run(name).ends_with(end), "{name}: {}", run(name));
    }
}

#[test]
fn a_subagents_runs_are_its_own() {
    assert_eq!(
        told("claude-code/tui-background-agent"),
        [
            r#"Agent "Count files" 2582..2727 Some(Ok)"#,
            r#"sub Bash "for i in 1 2 3 4; do sleep 1; done; ls | wc -l" 3118..7399 Some(Ok)"#,
            "NeedsYou/idle 0..2252",
            "Autonomous/thinking 2252..2582",
            "Autonomous/acting 2582..2679",
            "Autonomous/delegating 2679..7647",
            "Autonomous/thinking 7647..7872",
            "Delivered/task_complete 7872..",
        ]
    );
}
