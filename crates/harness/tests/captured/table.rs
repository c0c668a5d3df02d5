//! `spec/observed-session.md`, driven through the handlers: whatever a real client's signals make
//! an agent's session go through has a row there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use qd_harness::Sighting;
use qd_session::finished_turn::{Ending, FinishedTurn, judge};
use qd_session::moment::Timestamp;
use qd_session::monitor::{AgentEvent, Fact, FailureKind, Monitor, Stage};
use qd_session::operator::resolve;

use super::capture::{Capture, captures, spelled};

const SPEC: &str = include_str!("../../../../spec/observed-session.md");

pub fn table(heading: &str) -> Vec<Vec<String>> {
    let section = SPEC.split("\n## ").find(|section| section.starts_with(heading));
    let section = section.unwrap_or_else(|| panic!("no section {heading:?}"));
    let rows = section.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect())
        .collect()
}

/// The page's name for an event.
fn name(event: &AgentEvent) -> String {
    let name = match &event.fact {
        Fact::ToolCompleted { ok: false, .. } => "tool_failed",
        Fact::ApprovalRequested { stage: Stage::UnderReview, .. } => "approval_under_review",
        Fact::TurnFailed { failure } => match failure.kind {
            FailureKind::Other => "turn_failed",
            FailureKind::Server => "turn_failed_server",
            FailureKind::Auth => "turn_failed_auth",
            FailureKind::UsageLimit => "turn_failed_limit",
        },
        Fact::TurnCompleted { background: Some(1..), .. } => "turn_completed_with_background",
        Fact::TurnCompleted { last_message: None, background: Some(0), .. } => {
            "turn_completed_without_background"
        }
        Fact::TurnCompleted { last_message: None, .. } => "turn_completed_silently",
        Fact::TurnCompleted { last_message: Some(text), cut_off, .. } => {
            let turn = FinishedTurn { last_message: Some(text), cut_off: *cut_off };
            match judge(&turn).ending {
                Ending::Asks => "turn_completed_asking",
                Ending::MidWork => "turn_completed_silently",
                Ending::Delivered => "turn_completed",
            }
        }
        fact => fact.name(),
    };
    if event.agent.is_main() { name.to_owned() } else { format!("sub:{name}") }
}

/// What one capture's events did, one at a time: state before, event, state after.
fn changes(capture: &Capture) -> Vec<(String, String, String)> {
    let mut handler = capture.scenario.harness.handler();
    let mut sessions: BTreeMap<Arc<str>, Monitor> = BTreeMap::new();
    let mut changes = Vec::new();
    let mut take = |now: Timestamp, sightings: Vec<Sighting>| {
        for Sighting { session, event } in sightings {
            let monitor = sessions.entry(session).or_default();
            let before = spelled(&resolve(now, monitor));
            monitor.apply(&event);
            let after = spelled(&resolve(now, monitor));
            // A late fact changes what an earlier one would have; the page's events are in order.
            let in_order = event.at >= monitor.last_signal();
            if before != after && in_order {
                changes.push((before, name(&event), after));
            }
        }
    };
    for recorded in &capture.signals {
        let signal = recorded.signal().expect("a known source");
        while let Some(due) = handler.next_timeout().filter(|due| *due <= signal.at) {
            take(due, handler.handle_timeout(due));
        }
        take(signal.at, handler.handle_signal(&signal));
    }
    changes
}

#[test]
fn whatever_real_clients_make_happen_has_a_row() {
    let seen_as: BTreeMap<String, String> =
        table("Situations").into_iter().map(|row| (row[0].clone(), row[2].clone())).collect();
    let mut rows = BTreeSet::new();
    for row in table("Changes") {
        for situation in row[0].split("; ") {
            for event in row[1].split_whitespace() {
                rows.insert((seen_as[situation].clone(), event.to_owned(), row[2].clone()));
            }
        }
    }
    let mut happened = 0;
    let mut unwritten = BTreeSet::new();
    for capture in captures() {
        for change in changes(&capture) {
            happened += 1;
            // A subagent's events are as many as the main agent's; the page has those that matter.
            if !rows.contains(&change) && !change.1.starts_with("sub:") {
                unwritten.insert((change, capture.name.clone()));
            }
        }
    }
    assert!(unwritten.is_empty(), "happens without a row: {unwritten:#?}");
    assert!(happened > 800, "only {happened} changes");
}
