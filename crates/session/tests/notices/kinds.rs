//! What a state is worth, as the page says.

use qd_session::moment::{Source, Timestamp};
use qd_session::operator::notice::{Kind, Rules};
use qd_session::operator::{AgentState, Group, Urgency};
use serde_json::json;

const SPEC: &str = include_str!("../../../../spec/notices.md");

fn state(group: &str, state: &str) -> AgentState {
    AgentState {
        group: serde_json::from_value(json!(group)).expect("a group"),
        state: serde_json::from_value(json!(state)).expect("a sub-state"),
        label: String::new(),
        core_label: None,
        urgency: Urgency::Usual,
        confidence: 1.0,
        source: Source::Hook,
        rule: "".into(),
        context: None,
        since: Timestamp(1),
        evidence: Vec::new(),
    }
}

#[test]
fn each_state_is_worth_what_the_page_says() {
    let rows = SPEC.lines().skip_while(|line| *line != "## Kinds");
    let rows: Vec<Vec<&str>> = rows
        .filter(|line| line.starts_with('|'))
        .skip(2)
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    let told = Rules::default().kinds;
    for row in &rows {
        let kind = Kind::of_state(&state(row[0], row[1]));
        let by_default = match kind {
            None => "-",
            Some(kind) if told.contains(&kind) => "told",
            Some(_) => "silent",
        };
        assert_eq!((kind.map_or("-", Kind::name), by_default), (row[2], row[3]), "{row:?}");
    }
    // Every kind, and every group, is on the page.
    for kind in Kind::ALL {
        assert!(rows.iter().any(|row| row[2] == kind.name()), "{kind:?}");
        assert_eq!(Kind::named(kind.name()), Some(kind));
    }
    for group in [Group::NeedsYou, Group::Autonomous, Group::Delivered] {
        let name = serde_json::to_value(group).expect("a name");
        assert!(rows.iter().any(|row| row[0] == name), "{group:?}");
    }
}
