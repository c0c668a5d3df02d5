//! What every capture waits for a person for, written down for the page, which must understand it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{env, fs};

use qd_harness::replay::Replay;
use qd_session::monitor::Stage;
use serde_json::{Value, json};

use super::capture::{Capture, captures, some_only};

/// `ASKED_UPDATE=1 cargo test -p qd-harness --test captured asked` writes it anew.
#[test]
fn the_page_is_tried_with_what_every_capture_asks() {
    if some_only() {
        return;
    }
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for capture in captures() {
        let client = capture.name.split('/').next().expect("a client's folder");
        all.entry(client.to_owned()).or_default().extend(asked(&capture));
    }
    all.retain(|_, requests| !requests.is_empty());
    let read = |line: &String| serde_json::from_str::<Value>(line).expect("it was JSON");
    let all: BTreeMap<String, Vec<Value>> = all
        .iter()
        .map(|(client, lines)| (client.clone(), lines.iter().map(read).collect()))
        .collect();
    let mut made = serde_json::to_string_pretty(&all).expect("JSON");
    made.push('\n');
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/tests/unit/recorded_asks.json");
    if env::var_os("ASKED_UPDATE").is_some() {
        fs::write(&path, &made).expect("written");
    }
    let known = fs::read_to_string(&path).expect("what the page is tried with");
    assert!(known == made, "web/tests/unit/recorded_asks.json is old: ASKED_UPDATE=1 makes it");
}

/// Each request once, as a card shows it.
fn asked(capture: &Capture) -> BTreeSet<String> {
    let mut replay = Replay::new(capture.scenario.harness);
    let mut requests = BTreeSet::new();
    for recorded in &capture.signals {
        replay.play(&recorded.signal().expect("a known source"));
        for (_, monitor) in replay.sessions() {
            for open in monitor.open_requests().filter(|open| open.stage == Stage::Waiting) {
                let ask = open.ask;
                let input = ask
                    .input
                    .as_deref()
                    .map(|text| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)));
                let shown = json!({
                    "kind": open.kind, "tool": ask.tool, "text": ask.text, "input": input,
                });
                requests.insert(shown.to_string());
            }
        }
    }
    requests
}
