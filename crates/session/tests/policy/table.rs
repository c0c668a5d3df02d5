//! `spec/policy.md` and the code say the same.

use std::collections::BTreeSet;

use qd_session::policy::{Effect, Preset, TOOLS, ToolKind};

use super::world::{World, input};

const PAGE: &str = include_str!("../../../../spec/policy.md");

fn rows(heading: &str) -> Vec<Vec<String>> {
    let part = PAGE.split("\n## ").find(|part| part.starts_with(heading)).expect("a part");
    let cells = |line: &str| {
        let line = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |"));
        line.expect("a row").split(" | ").map(|cell| cell.trim().to_owned()).collect()
    };
    part.lines().filter(|line| line.starts_with("| ")).skip(2).map(cells).collect()
}

fn meant(cell: &str) -> String {
    cell.replace('⏎', "\n").replace('¦', "|")
}

#[test]
fn each_row_gives_its_verdict() {
    let mut wrong = Vec::new();
    for row in rows("Verdicts") {
        let [rules, tool, asks, verdict, by] = row.as_slice() else { panic!("{row:?}") };
        let found = World::of(rules).judge(tool, &input(tool, &meant(asks)));
        let is_by = match &found.rule {
            Some(rule) => rule.strip_prefix("repository ").unwrap_or(rule) == by,
            None => found.why.contains(by.as_str()),
        };
        if found.effect.name() != verdict || !is_by {
            wrong.push(format!("{rules} | {tool} | {asks} → {found:?}, not {verdict} by {by}"));
        }
        assert!(found.rule.is_some() || found.effect == Effect::Ask, "{row:?}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_known_tool_stands_in_the_table() {
    let mut written = BTreeSet::new();
    for row in rows("Tools") {
        for name in row[1].split(' ') {
            written.insert((name.trim_matches('`').to_owned(), row[0].clone()));
        }
    }
    let held = TOOLS.iter().map(|(name, kind)| ((*name).to_owned(), kind.name().to_owned()));
    assert_eq!(written, held.collect());
    assert_eq!(written.len(), TOOLS.len(), "a name is known once");
}

#[test]
fn every_preset_meets_every_kind_of_tool() {
    let rows = rows("Verdicts");
    let kinds: BTreeSet<ToolKind> =
        TOOLS.iter().map(|(_, kind)| *kind).chain([ToolKind::Other]).collect();
    for preset in Preset::ALL {
        for kind in &kinds {
            let rules = format!("preset {}", preset.name());
            let meets = |row: &Vec<String>| row[0] == rules && ToolKind::of(&row[1]) == *kind;
            assert!(rows.iter().any(meets), "{rules} and {}", kind.name());
        }
    }
}
