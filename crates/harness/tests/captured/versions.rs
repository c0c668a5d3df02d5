//! The versions that a product claims to be tested with are those that were recorded and those that
//! the live tests run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use qd_harness::Harness;
use serde_json::Value;

use super::capture::top;

/// Those of the tests' clients that a handler of ours reads.
const PINS: [(&str, Harness); 6] = [
    ("@anthropic-ai/claude-code", Harness::ClaudeCode),
    ("@google/gemini-cli", Harness::GeminiCli),
    ("@kilocode/cli-linux-x64", Harness::KiloCode),
    ("@openai/codex", Harness::Codex),
    ("cline", Harness::Cline),
    ("opencode-linux-x64", Harness::Opencode),
];

fn read(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn what_is_called_tested_was_recorded_or_runs_in_the_tests() {
    let mut tried: BTreeMap<Harness, BTreeSet<String>> = BTreeMap::new();
    let folders = |path: &Path| {
        let entries = fs::read_dir(path).expect("a folder").map(|entry| entry.expect("one").path());
        entries.filter(|path| path.is_dir()).collect::<Vec<_>>()
    };
    for scenario in folders(&top()).iter().flat_map(|client| folders(client)) {
        let scenario = read(&scenario.join("scenario.json"));
        let harness = scenario["harness"].as_str().and_then(Harness::named).expect("a harness");
        // Some are written with a name before the number, or a remark behind it.
        let words = scenario["version"].as_str().expect("a version").split_whitespace();
        let version = words.into_iter().find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        tried.entry(harness).or_default().insert(version.expect("a number").to_owned());
    }
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients/package.json");
    let clients = read(&clients);
    for (package, harness) in PINS {
        let pins = [&clients["dependencies"][package], &clients["optionalDependencies"][package]];
        let pin = pins.into_iter().find_map(Value::as_str).expect("a pin");
        tried.entry(harness).or_default().insert(pin.to_owned());
    }
    for harness in Harness::ALL {
        let tested = harness.tested();
        let ends: BTreeSet<String> = tested
            .0
            .iter()
            .flat_map(|(oldest, newest)| [*oldest, *newest])
            .map(Into::into)
            .collect();
        let tried = match tested.0 {
            [] => continue,
            _ => tried.remove(&harness).unwrap_or_default(),
        };
        assert!(ends.is_subset(&tried), "{harness:?}: {ends:?} of {tried:?}");
        for version in tried {
            assert_eq!(tested.note(&version).as_deref(), Some("tested"), "{harness:?} {version}");
        }
    }
}
