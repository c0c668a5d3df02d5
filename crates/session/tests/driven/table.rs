//! `spec/driven-session.md`, read both ways: every row happens, nothing happens without a row.

use std::collections::{BTreeMap, BTreeSet};

use qd_session::id::SessionId;
use qd_session::machine::{
    Action, Change, Effect, ErrorCode, ErrorSource, Event, Machine, Output, Reason, Stimulus,
};
use qd_session::seed::Seed;
use serde::Serialize;

use super::walk::{Taken, seen};
use super::world::{NOW, setups};

const SPEC: &str = include_str!("../../../../spec/driven-session.md");
const NAMES: &str = include_str!("../../../../spec/driven-names.md");

/// A row of the table. What lets go of running things is not in it: the invariants see to that.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    from: String,
    event: String,
    to: String,
    reason: String,
    does: String,
}

impl Row {
    pub fn of(taken: &Taken<'_>) -> Option<Self> {
        let step = taken.result.as_ref().ok()?;
        let mut does: Vec<&str> = Vec::new();
        let mut reason = "-".to_owned();
        for effect in &step.effects {
            match effect {
                Effect::Show(Change::StateChanged(change)) => reason = spelled(&change.reason),
                Effect::Show(_) => {}
                Effect::Do(action) => {
                    if !lets_go(action) && !does.contains(&action.name()) {
                        does.push(action.name());
                    }
                }
            }
        }
        Some(Self {
            from: format!("{:?}", taken.from.kind()),
            event: taken.event.name().to_owned(),
            to: format!("{:?}", step.state.kind()),
            reason,
            does: if does.is_empty() { "-".to_owned() } else { does.join(", ") },
        })
    }
}

fn lets_go(action: &Action) -> bool {
    matches!(
        action,
        Action::StartTimer { .. }
            | Action::CancelTimer { .. }
            | Action::CancelTool { .. }
            | Action::CancelHook { .. }
    )
}

fn spelled(value: &impl Serialize) -> String {
    let json = serde_json::to_value(value).expect("it is JSON");
    json.as_str().expect("it is a string").to_owned()
}

/// The cells of each row of the table under a heading.
fn table(heading: &str) -> Vec<Vec<String>> {
    table_of(SPEC, heading)
}

fn table_of(page: &str, heading: &str) -> Vec<Vec<String>> {
    let section = page.split("\n## ").find(|section| section.starts_with(heading));
    let section = section.unwrap_or_else(|| panic!("no section {heading:?}"));
    let rows = section.lines().filter(|line| line.starts_with('|')).skip(2);
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect())
        .collect()
}

#[test]
fn every_row_happens_and_nothing_happens_without_a_row() {
    let written: BTreeSet<Row> = table("Transitions")
        .into_iter()
        .map(|row| {
            let [from, event, _, to, reason, does] = <[String; 6]>::try_from(row).expect("six");
            Row { from, event, to, reason, does }
        })
        .collect();
    let never: Vec<&Row> = written.difference(&seen().rows).collect();
    let unwritten: Vec<&Row> = seen().rows.difference(&written).collect();
    assert!(never.is_empty(), "rows that never happen: {never:#?}");
    assert!(unwritten.is_empty(), "happens without a row: {unwritten:#?}");
}

/// Two rows for one event in one state say when which.
#[test]
fn rows_that_compete_say_when() {
    let mut whens: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for row in table("Transitions") {
        whens.entry((row[0].clone(), row[1].clone())).or_default().push(row[2].clone());
    }
    for (place, whens) in whens {
        assert!(whens.len() == 1 || whens.iter().all(|when| when != "-"), "{place:?}: {whens:?}");
    }
}

#[test]
fn every_row_of_the_seed_is_a_row_here() {
    let rows = table("The rows of seed 000");
    assert_eq!(rows.len(), 17);
    for row in rows {
        let [from, event, to, reason] =
            <[&str; 4]>::try_from(row[1].split(' ').collect::<Vec<_>>()).expect("four words");
        let held = seen().rows.iter().any(|row| {
            (row.from.as_str(), row.event.as_str(), row.to.as_str(), row.reason.as_str())
                == (from, event, to, reason)
        });
        assert!(held, "{row:?}");
    }
}

#[test]
fn reasons_and_codes_are_those_of_the_page() {
    let reasons = Reason::ALL.map(|reason| format!("`{}`", spelled(&reason))).join(" ");
    assert!(SPEC.contains(&reasons), "the page lists other reasons than {reasons}");
    let codes = [
        (ErrorCode::SessionNotFound, ErrorSource::Orchestrator),
        (ErrorCode::StateTransitionInvalid, ErrorSource::Orchestrator),
        (ErrorCode::HarnessFailed, ErrorSource::Harness),
        (ErrorCode::ToolExecutionFailed, ErrorSource::Tool),
        (ErrorCode::HookExecutionFailed, ErrorSource::Hook),
        (ErrorCode::StreamingFailed, ErrorSource::Harness),
        (ErrorCode::HookConfigInvalid, ErrorSource::Orchestrator),
        (ErrorCode::UsageLimit, ErrorSource::Harness),
        (ErrorCode::AuthFailed, ErrorSource::Harness),
        (ErrorCode::ModelNotFound, ErrorSource::Harness),
        (ErrorCode::ContextFull, ErrorSource::Harness),
        (ErrorCode::Interrupted, ErrorSource::Orchestrator),
    ];
    let written: Vec<(String, String)> =
        table("Error codes").into_iter().map(|row| (row[0].clone(), row[1].clone())).collect();
    let coded = codes.map(|(code, source)| (format!("`{}`", spelled(&code)), spelled(&source)));
    assert_eq!(written, coded);
}

/// What a session tells of events that it does not take.
fn refusals() -> Vec<(ErrorCode, bool, ErrorSource)> {
    let id = SessionId::from("sess_1");
    let setup = setups().into_iter().next().expect("a setup");
    let told = |session: &str| {
        let session = SessionId::from(session);
        let stimulus = Stimulus { session, at: NOW, seed: Seed(1), event: Event::StopRequested };
        let outputs = Machine::new(id.clone(), setup.clone()).handle(&stimulus);
        outputs.into_iter().find_map(|output| match output {
            Output::Show(shown) => match shown.change {
                Change::SessionError(it) => Some((it.code, it.retryable, it.source)),
                _ => None,
            },
            Output::Do(_) => None,
        })
    };
    [told("sess_1"), told("sess_2")].into_iter().flatten().collect()
}

#[test]
fn errors_are_told_as_the_page_of_names_classifies_them() {
    let mut told: BTreeMap<String, (BTreeSet<&str>, BTreeSet<String>)> = BTreeMap::new();
    for (code, retryable, source) in seen().errors.iter().copied().chain(refusals()) {
        let (retry, sources) = told.entry(format!("`{}`", spelled(&code))).or_default();
        retry.insert(if retryable { "yes" } else { "no" });
        sources.insert(spelled(&source));
    }
    let told: BTreeMap<String, [String; 2]> = told
        .into_iter()
        .map(|(code, (retry, sources))| {
            let words = |words: Vec<String>| words.join(", ");
            let retry = words(retry.into_iter().map(str::to_owned).collect());
            (code, [retry, words(sources.into_iter().collect())])
        })
        .collect();
    let written = table_of(NAMES, "Error codes").into_iter();
    let mut written: BTreeMap<String, [String; 2]> =
        written.map(|row| (row[1].clone(), [row[2].clone(), row[3].clone()])).collect();
    // Told by whoever reads the file, before there is a machine.
    assert!(written.remove("`hook_config_invalid`").is_some());
    assert_eq!(told, written);
}
