//! `spec/operator-groups.md`: the driven states as the operator sees them, sub-states, urgency.

use std::collections::BTreeSet;

use qd_session::id::SessionId;
use qd_session::machine::{Kind, Machine, Process, Setup, State, Tools};
use qd_session::moment::{Source, Timestamp};
use qd_session::operator::{AgentState, Group, SubState, Urgency, resolve_driven};
use qd_session::view::monitor::{MonitorView, view_driven};
use serde_json::json;

use super::walk::seen;

const MONITOR_VIEW: &str = include_str!("../../../../spec/monitor-view.md");
const SPEC: &str = include_str!("../../../../spec/operator-groups.md");

/// How the operator sees a state: group and sub-state, and the label.
pub fn view(setup: &Setup, state: &State) -> Option<(Kind, String, String)> {
    let shown = resolve_driven(&machine(setup, state))?;
    assert_eq!((shown.since, shown.source), (Timestamp(7), Source::Driver));
    Some((state.kind(), seen_as(&shown), shown.label))
}

fn machine(setup: &Setup, state: &State) -> Machine {
    serde_json::from_value(json!({
        "id": SessionId::from("sess_1"), "setup": setup, "state": state,
        "since": 7, "stale": 0, "refused": 0,
    }))
    .expect("a machine is made of these")
}

fn seen_as(state: &AgentState) -> String {
    format!("{}/{}", group_name(state.group), state.state.as_str())
}

fn group_name(group: Group) -> String {
    let json = serde_json::to_value(group).expect("a group is JSON");
    json.as_str().expect("a string").to_owned()
}

fn table(heading: &str) -> Vec<Vec<String>> {
    let section = SPEC.split("\n## ").find(|section| section.starts_with(heading));
    let section = section.unwrap_or_else(|| panic!("no section {heading:?}"));
    let rows = section.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect())
        .collect()
}

/// An agent of its own tools that waits for the operator to allow these.
fn asked(tools: &[&str]) -> Option<(Kind, String, String)> {
    let setup = Setup { tools: Tools::Theirs, process: Process::WholeSession, hooks: vec![] };
    let runs: Vec<_> = tools
        .iter()
        .enumerate()
        .map(|(nth, tool)| {
            json!({"attempt": 1,
        "call": {"callId": nth.to_string(), "name": tool, "arguments": {}, "mutating": false},
        "fate": "undecided"})
        })
        .collect();
    let state = json!({"kind": "AwaitingApproval", "turn": {"id": "turn_1", "attempt": 1},
        "batch": runs});
    view(&setup, &serde_json::from_value(state).expect("a state"))
}

#[test]
fn a_permission_is_more_urgent_than_a_plan() {
    let label = |tools: &[&str]| asked(tools).expect("it is seen").2;
    assert_eq!(label(&["ExitPlanMode", "Bash"]), "Needs permission: Bash");
    assert_eq!(label(&["ExitPlanMode"]), "Plan ready for review");
}

/// Each driven state in the words of the agent monitor, both ways.
#[test]
fn driven_states_are_seen_by_the_monitor_as_its_page_says() {
    let section = MONITOR_VIEW.split("\n## ").find(|section| section.starts_with("Driven states"));
    let rows = section.expect("the section").lines().filter(|line| line.starts_with('|')).skip(2);
    let written: BTreeSet<(String, String)> = rows
        .map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect())
        .map(|cells: Vec<String>| (cells[0].clone(), cells[2].clone()))
        .collect();
    let seen: BTreeSet<(String, String)> =
        seen().monitored.iter().map(|(kind, view)| (format!("{kind:?}"), view.clone())).collect();
    assert_eq!(seen, written);
}

/// How the agent monitor would call a state.
pub fn monitored(setup: &Setup, state: &State) -> (Kind, String) {
    let view = match view_driven(&machine(setup, state)) {
        MonitorView::Active(active) => {
            let sub = serde_json::to_value(active).expect("a view is JSON");
            format!("active/{}", sub.as_str().expect("a string"))
        }
        MonitorView::Initialized => "initialized".to_owned(),
        MonitorView::Idle => "idle".to_owned(),
        MonitorView::Exited => "exited".to_owned(),
    };
    (state.kind(), view)
}

#[test]
fn driven_states_are_seen_as_the_page_says() {
    let written: BTreeSet<(String, String, String)> = table("Driven states")
        .into_iter()
        .map(|row| (row[0].clone(), row[2].clone(), row[3].clone()))
        .collect();
    let seen: BTreeSet<(String, String, String)> = seen()
        .views
        .iter()
        .chain(&asked(&["ExitPlanMode"]))
        .map(|(kind, state, label)| (format!("{kind:?}"), state.clone(), label.clone()))
        .collect();
    let unwritten: Vec<_> = seen.difference(&written).collect();
    let never: Vec<_> = written.difference(&seen).collect();
    assert!(unwritten.is_empty(), "seen without a row: {unwritten:#?}");
    assert!(never.is_empty(), "rows that are never seen: {never:#?}");
}

/// The board's order is the page's order: group by group, the most urgent first.
#[test]
fn sub_states_are_ordered_as_the_page_says() {
    let rows = table("Sub-states");
    let state = |row: &[String], since| AgentState {
        group: serde_json::from_value(json!(row[0])).expect("a group"),
        state: serde_json::from_value(json!(row[1])).expect("a sub-state"),
        label: String::new(),
        core_label: None,
        urgency: Urgency::Usual,
        confidence: 1.0,
        source: Source::Hook,
        rule: "".into(),
        context: None,
        since: Timestamp(since),
        evidence: Vec::new(),
    };
    for pair in rows.windows(2) {
        let (before, after) = (state(&pair[0], 5), state(&pair[1], 5));
        let as_urgent = pair[1][2] == "as urgent";
        let same_group = before.group == after.group && before.group != Group::NeedsYou;
        let (before, after) = (before.place(), after.place());
        match as_urgent || same_group {
            true => assert_eq!(before, after, "{pair:?}"),
            false => assert!(before < after, "{pair:?}"),
        }
    }
    let known: Vec<&str> = rows.iter().map(|row| row[1].as_str()).collect();
    assert_eq!(known, KNOWN.map(|state| state.as_str().to_owned()));
}

const KNOWN: [SubState; 25] = [
    SubState::NEEDS_PERMISSION,
    SubState::AWAITING_INPUT,
    SubState::ERROR,
    SubState::USAGE_LIMIT,
    SubState::AUTH_ERROR,
    SubState::SERVER_ERROR,
    SubState::AWAITING_APPROVAL,
    SubState::BUDGET_EXCEEDED,
    SubState::PAUSED,
    SubState::STOPPED,
    SubState::INTERRUPTED,
    SubState::IDLE,
    SubState::STARTING,
    SubState::THINKING,
    SubState::ACTING,
    SubState::DELEGATING,
    SubState::COMPACTING,
    SubState::RETRYING,
    SubState::HOOKS,
    SubState::STOPPING,
    SubState::STALLED,
    SubState::LOOPING,
    SubState::UNKNOWN,
    SubState::TASK_COMPLETE,
    SubState::SESSION_ENDED,
];

#[test]
fn in_needs_you_who_waits_longest_comes_first_and_elsewhere_the_newest() {
    let state = |group, state: SubState, since| AgentState {
        group,
        state,
        label: String::new(),
        core_label: None,
        urgency: Urgency::Usual,
        confidence: 1.0,
        source: Source::Hook,
        rule: "".into(),
        context: None,
        since: Timestamp(since),
        evidence: Vec::new(),
    };
    let needs = |since| state(Group::NeedsYou, SubState::IDLE, since).place();
    assert!(needs(1) < needs(2));
    for group in [Group::Autonomous, Group::Delivered] {
        let of = |since| state(group, SubState::THINKING, since).place();
        assert!(of(2) < of(1));
    }
    let unknown: SubState = serde_json::from_value(json!("conflict")).expect("an open set");
    let unknown = state(Group::NeedsYou, unknown, 9).place();
    assert!(unknown > state(Group::NeedsYou, SubState::INTERRUPTED, 9).place());
}
