//! What a session did over time, from entries in any order.

use qd_session::event::{Entry, Event};
use qd_session::id::{CallId, SessionId};
use qd_session::limits::{TIMELINE_RUNS_MAX, TIMELINE_SPANS_MAX};
use qd_session::moment::{Source, Timestamp};
use qd_session::monitor::{AgentEvent, Fact};
use qd_session::timeline::{Outcome, Timeline};

fn session() -> SessionId {
    SessionId::new("sess_1")
}

fn told(at: u64, fact: Fact) -> Entry {
    let event = AgentEvent::main(Timestamp(at), Source::Hook, fact);
    // All of it was heard of late.
    Entry::new(session(), Timestamp(900_000), Event::Observed { event })
}

fn started(at: u64, call: &str) -> Entry {
    let about = Some("ls".into());
    told(at, Fact::ToolStarted { call: CallId::new(call), tool: "Bash".into(), about })
}

fn ended(at: u64, call: &str, ok: bool) -> Entry {
    told(at, Fact::ToolCompleted { call: CallId::new(call), ok, exit_code: None })
}

fn finished(at: u64) -> Entry {
    let last_message = Some("Done.".into());
    told(at, Fact::TurnCompleted { last_message, background: None, cut_off: false })
}

fn spans(timeline: &Timeline) -> Vec<String> {
    timeline
        .spans
        .iter()
        .map(|span| {
            let to = span.to.map_or("".to_owned(), |to| to.0.to_string());
            format!("{}..{to} {}", span.from.0, span.state.as_str())
        })
        .collect()
}

fn runs(timeline: &Timeline) -> Vec<(&str, u64, Option<u64>, Option<Outcome>)> {
    let shown = timeline.runs.iter();
    shown
        .map(|run| (run.id.as_str(), run.started_at.0, run.ended_at.map(|at| at.0), run.outcome))
        .collect()
}

fn a_turn() -> Vec<Entry> {
    vec![
        told(1_000, Fact::SessionStarted { process: None }),
        told(2_000, Fact::TurnStarted),
        started(3_000, "a"),
        ended(4_000, "a", true),
        started(5_000, "b"),
        ended(6_000, "b", false),
        told(6_500, Fact::LlmStarted),
        finished(7_000),
    ]
}

#[test]
fn a_turn_is_told_as_it_happened_in_whatever_order_it_was_heard() {
    let mut entries = a_turn();
    for _ in 0..entries.len() {
        entries.rotate_left(3);
        entries.swap(0, 5);
        let timeline = Timeline::of(&session(), &entries, Timestamp(10_000));
        assert_eq!(
            spans(&timeline),
            [
                "1000..2000 idle",
                "2000..3000 thinking",
                "3000..4000 acting",
                "4000..5000 thinking",
                "5000..6000 acting",
                "6000..7000 thinking",
                "7000.. task_complete"
            ]
        );
        assert_eq!(
            runs(&timeline),
            [
                ("a", 3_000, Some(4_000), Some(Outcome::Ok)),
                ("b", 5_000, Some(6_000), Some(Outcome::Failed))
            ]
        );
    }
}

#[test]
fn silence_is_told_when_it_spoke() {
    let entries = [told(1_000, Fact::TurnStarted), started(2_000, "a")];
    let timeline = Timeline::of(&session(), &entries, Timestamp(9_000_000));
    assert_eq!(
        spans(&timeline),
        ["1000..2000 thinking", "2000..602000 acting", "602000.. unknown"]
    );
    assert_eq!(runs(&timeline), [("a", 2_000, None, None)]);
    let before = Timeline::of(&session(), &entries, Timestamp(500_000));
    assert_eq!(spans(&before), ["1000..2000 thinking", "2000.. acting"]);
}

#[test]
fn what_ran_when_the_turn_or_the_session_ended_was_cut_short() {
    let begun = || vec![told(1_000, Fact::TurnStarted), started(2_000, "a")];
    let outcome = |last: Vec<Entry>| {
        let entries = [begun(), last].concat();
        let timeline = Timeline::of(&session(), &entries, Timestamp(5_000));
        (timeline.runs[0].ended_at.map(|at| at.0), timeline.runs[0].outcome)
    };
    let cut = (Some(3_000), Some(Outcome::Interrupted));
    assert_eq!(outcome(vec![told(3_000, Fact::Interrupted)]), cut);
    let killed = Fact::SessionEnded { process: None, exit_code: None };
    assert_eq!(outcome(vec![told(3_000, killed)]), cut);
    // The client writes the failed call first, and a late word of it changes nothing.
    let failed = vec![ended(3_000, "a", false), told(3_010, Fact::Interrupted)];
    assert_eq!(outcome(failed), cut);
    let late = vec![told(3_000, Fact::Interrupted), ended(4_000, "a", false)];
    assert_eq!(outcome(late), cut);
    // Nobody told what became of it.
    assert_eq!(outcome(vec![finished(3_000)]), (Some(3_000), None));
}

#[test]
fn another_sessions_entries_are_not_told() {
    let mut other = a_turn();
    other.iter_mut().for_each(|entry| entry.session = SessionId::new("sess_2"));
    let now = Timestamp(10_000);
    assert_eq!(Timeline::of(&session(), &other, now), Timeline::default());
    assert_eq!(Timeline::of(&session(), &[], now), Timeline::default());
}

#[test]
fn the_newest_are_kept() {
    let mut entries = vec![told(0, Fact::TurnStarted)];
    for n in 0..2_000 {
        entries.push(started(1_000 + n * 10, &format!("c{n:04}")));
        entries.push(ended(1_005 + n * 10, &format!("c{n:04}"), true));
    }
    let timeline = Timeline::of(&session(), &entries, Timestamp(30_000));
    assert_eq!(
        (timeline.runs.len(), timeline.spans.len()),
        (TIMELINE_RUNS_MAX, TIMELINE_SPANS_MAX)
    );
    assert_eq!(timeline.runs.last().map(|run| run.id.as_str()), Some("c1999"));
    assert_eq!(spans(&timeline).last().map(String::as_str), Some("20995.. thinking"));
}
