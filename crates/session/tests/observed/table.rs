//! `spec/observed-session.md`, `spec/operator-groups.md` and `spec/monitor-view.md`, read both ways.

use std::collections::{BTreeMap, BTreeSet};

use qd_session::moment::Timestamp;
use qd_session::monitor::Monitor;
use qd_session::operator::{AgentState, resolve};
use qd_session::view::monitor::{MonitorView, view};

use super::grammar::{NAMES, event, heard};

const OBSERVED: &str = include_str!("../../../../spec/observed-session.md");
const MONITOR_VIEW: &str = include_str!("../../../../spec/monitor-view.md");

/// The cells of each row of the table under a heading.
fn table(page: &str, heading: &str) -> Vec<Vec<String>> {
    let section = page.split("\n## ").find(|section| section.starts_with(heading));
    let section = section.unwrap_or_else(|| panic!("no section {heading:?}"));
    let rows = section.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect())
        .collect()
}

fn spelled(state: &AgentState) -> String {
    let group = serde_json::to_value(state.group).expect("a group is JSON");
    format!("{}/{}", group.as_str().expect("a string"), state.state.as_str())
}

fn view_spelled(monitor: &Monitor) -> String {
    match view(monitor) {
        MonitorView::Active(active) => {
            let sub = serde_json::to_value(active).expect("a view is JSON");
            format!("active/{}", sub.as_str().expect("a string"))
        }
        MonitorView::Initialized => "initialized".to_owned(),
        MonitorView::Idle => "idle".to_owned(),
        MonitorView::Exited => "exited".to_owned(),
    }
}

/// The named situations, and the events that lead to each.
fn situations() -> Vec<(String, Monitor, Timestamp, String)> {
    table(OBSERVED, "Situations")
        .into_iter()
        .map(|row| {
            let (monitor, now) = heard(&row[1]);
            (row[0].clone(), monitor, now, row[2].clone())
        })
        .collect()
}

#[test]
fn every_situation_is_seen_as_the_page_says() {
    for (name, monitor, now, state) in situations() {
        assert_eq!(spelled(&resolve(now, &monitor)), state, "{name}");
    }
}

/// Every event in every situation: what changes has a row, and every row changes something.
#[test]
fn every_change_has_a_row_and_every_row_happens() {
    let mut happens = BTreeSet::new();
    for (name, monitor, now, before) in situations() {
        for event_name in NAMES {
            let mut monitor = monitor.clone();
            let now = now.plus_ms(1_000);
            monitor.apply(&event(event_name, now));
            let after = spelled(&resolve(now, &monitor));
            if after != before {
                happens.insert((name.clone(), event_name.to_owned(), after));
            }
        }
    }
    let mut written = BTreeSet::new();
    for row in table(OBSERVED, "Changes") {
        for situation in row[0].split("; ") {
            for event in row[1].split_whitespace() {
                written.insert((situation.to_owned(), event.to_owned(), row[2].clone()));
            }
        }
    }
    let unwritten: Vec<_> = happens.difference(&written).collect();
    let never: Vec<_> = written.difference(&happens).collect();
    assert!(unwritten.is_empty(), "happens without a row: {}", as_rows(&unwritten));
    assert!(never.is_empty(), "rows that never happen: {}", as_rows(&never));
}

/// Rows as they would stand on the page, to be judged and copied.
fn as_rows(changes: &[&(String, String, String)]) -> String {
    let mut events: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for (from, event, to) in changes {
        events.entry((from, to)).or_default().push(event);
    }
    let mut rows: BTreeMap<(&str, Vec<&str>), Vec<&str>> = BTreeMap::new();
    for ((from, to), events) in events {
        rows.entry((to, events)).or_default().push(from);
    }
    rows.iter()
        .map(|((to, events), from)| {
            format!("\n| {} | {} | {to} |", from.join("; "), events.join(" "))
        })
        .collect()
}

#[test]
fn the_monitor_view_is_as_its_page_says() {
    let rows = table(MONITOR_VIEW, "The view of each situation");
    let written: BTreeMap<String, String> =
        rows.into_iter().map(|row| (row[0].clone(), row[1].clone())).collect();
    let seen: BTreeMap<String, String> = situations()
        .into_iter()
        .map(|(name, monitor, _, _)| (name, view_spelled(&monitor)))
        .collect();
    assert_eq!(seen, written);
    let shapes: BTreeSet<&str> = written.values().map(String::as_str).collect();
    assert_eq!(shapes.len(), 8, "every shape of the view occurs: {shapes:?}");
}
