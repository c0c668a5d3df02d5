//! What real clients wrote about tokens, and what is made of it.

#![allow(clippy::disallowed_methods, reason = "captures are files")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use qd_harness::capture::{Recorded, Scenario};
use qd_harness::claude_code::usage::{parsed, read, walked};
use qd_harness::usage::{PriceTable, Reading, Tokens};
use qd_harness::{Channel, Harness};
use serde_json::Value;

/// A session file of a capture: whose it is, and its lines.
type Captured = (PathBuf, Vec<Vec<u8>>);

fn captured(harness: Harness) -> Vec<Captured> {
    let folders = |path: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(path).expect("a folder of captures");
        let paths = entries.map(|entry| entry.unwrap().path());
        let mut folders: Vec<PathBuf> = paths.filter(|path| path.is_dir()).collect();
        folders.sort();
        folders
    };
    let mut all = Vec::new();
    for folder in folders(&Path::new(env!("CARGO_MANIFEST_DIR")).join("captured"))
        .iter()
        .flat_map(|client| folders(client))
    {
        let text = |file: &str| fs::read_to_string(folder.join(file)).expect(file);
        let scenario: Scenario = serde_json::from_str(&text("scenario.json")).expect("a scenario");
        if scenario.harness != harness {
            continue;
        }
        let mut files: BTreeMap<String, Vec<Vec<u8>>> = BTreeMap::new();
        for line in text("signals.jsonl").lines().filter(|line| !line.trim().is_empty()) {
            let recorded: Recorded = serde_json::from_str(line).expect("a line of a capture");
            let signal = recorded.signal().expect("a known source");
            if signal.channel == Channel::Transcript {
                let file = signal.file.map(|file| file.to_string()).unwrap_or_default();
                files.entry(file).or_default().push(signal.payload.to_vec());
            }
        }
        all.extend(files.into_iter().map(|(file, lines)| (folder.join(file), lines)));
    }
    all
}

static TRANSCRIPT_LINES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let mut lines: Vec<Vec<u8>> =
        captured(Harness::ClaudeCode).into_iter().flat_map(|(_, lines)| lines).collect();
    lines.retain(|line| memchr::memmem::find(line, b"\"usage\"").is_some());
    lines
});

/// Shapes that no capture has, and that the two ways must agree on all the same.
const ODD_LINES: &[&str] = &[
    r#"{"timestamp":"2026-03-01T10:00:00.000Z","message":{"usage":{}}}"#,
    r#"{"timestamp":"2026-03-01T10:00:00.000Z","message":{"usage":{"input_tokens":1}},"requestId":null}"#,
    r#"{"timestamp":"2026-03-01T10:00:00.000Z","message":{"usage":{"input_tokens":-1}}}"#,
    r#"{"timestamp":"2026-03-01T10:00:00.000Z","message":{"usage":{"input_tokens":1.0}}}"#,
    r#"{"timestamp":"2026-03-01T10:00:00.000Z","message":{"usage":{"input_tokens":99999999999}}}"#,
    r#"{"timestamp":"yesterday","message":{"usage":{"input_tokens":1}}}"#,
    r#"{"message":{"usage":{"input_tokens":1}}}"#,
    r#"{"timestamp":"2026-03-01T10:00:00.000Z","message":{"usage":{"input_tokens":1}},"message":{}}"#,
    r#"{"timestamp":"2026-03-01T10:00:00.000Z","message":{"id":"a","id":"b","usage":{}}}"#,
    r#"{"timestamp":"2026-03-01T10:00:00.000Z","message":{"usage":{},"usage":{}}}"#,
    r#"{"timestamp":"2026-03-01T10:00:00.000Z","message":{"id":"\u0061","usage":{"output_tokens":7}}}"#,
    r#"{"timestamp":"2026-03-01T10:00:00.000Z","message":{"usage":{"cache_creation_input_tokens":9,"cache_creation":{"ephemeral_1h_input_tokens":4}}}}"#,
    r#"{ "timestamp" : "2026-03-01T10:00:00.000Z", "message" : { "usage" : { "input_tokens" : 3 } } }"#,
    r#"{"message":"a \"usage\" of words","x":{"usage":{"input_tokens":5}}}"#,
    r#"{"message":{"content":[{"type":"tool_use","input":{"usage":{"input_tokens":5}}}]}}"#,
    r#"{"costUSD":7.5,"timestamp":"2026-03-01T10:00:00.000Z","message":{"model":"m","usage":{"input_tokens":1,"speed":"fast"}}}"#,
    r#"{"timestamp":"2026-03-01T10:00:00.000Z","message":{"model":"<synthetic>","usage":{"input_tokens":0,"speed":"odd"}}}"#,
    r#"{"sessionId":"s","data":{"message":{"timestamp":"2026-03-01T10:00:00.000Z","requestId":"r","isSidechain":true,"message":{"id":"m","usage":{"output_tokens":2}}}}}"#,
    r#"{"timestamp":"2026-03-01T10:00:00.000Z","message":{"id":"m","usage":{"iterations":[{"type":"advisor_message","model":"adviser","output_tokens":5},{"type":"message"}]}}}"#,
    r#"{"timestamp":"2026-03-01T10:00:00.000Z","message":{"id":"m","usage":{"output_tokens":5,"iterations":[0]}}}"#,
    r#"{"timestamp":"2026-03-01T10:00:00.000Z","message":{"id":"m","usage":{"output_tokens":5,"iterations":[],"iterations":1}}}"#,
];

#[test]
fn both_ways_agree_on_what_clients_wrote() {
    let agrees = |line: &[u8]| {
        let line = std::str::from_utf8(line).expect("captures are text");
        let walk = walked(line);
        if let Some(reading) = &walk {
            assert_eq!(*reading, parsed(line), "{line}");
        }
        walk.is_some()
    };
    let walks = TRANSCRIPT_LINES.iter().filter(|line| agrees(line)).count();
    // The walk is there for what is usual; the client's own words have nulls in odd places.
    assert!(walks * 10 >= TRANSCRIPT_LINES.len() * 8, "{walks} of {}", TRANSCRIPT_LINES.len());
    assert!(ODD_LINES.iter().filter(|line| agrees(line.as_bytes())).count() > 3);
}

/// A line, damaged or not: cut, changed, doubled, or the half of one with another behind it, as a
/// client leaves it that was killed while it wrote.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let line = || {
        prop_oneof![
            (0..TRANSCRIPT_LINES.len()).prop_map(|nth| TRANSCRIPT_LINES[nth].clone()),
            select(ODD_LINES).prop_map(|line| line.as_bytes().to_vec()),
        ]
    };
    (line(), line(), any::<Index>(), any::<Index>(), any::<u8>(), 0..6).prop_map(
        |(mut line, other, at, until, byte, how)| {
            let at = at.index(line.len());
            match how {
                0 => line.truncate(at),
                1 => line[at] = byte,
                2 => drop(line.remove(at)),
                3 => line.splice(at.., other).for_each(drop),
                4 => line.splice(at..at, [byte]).for_each(drop),
                _ => {
                    let until = at + until.index(line.len() - at);
                    line.copy_within(at..until, 0);
                }
            }
            line
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_096, ..ProptestConfig::default() })]

    #[test]
    fn both_ways_agree_on_damaged_lines(line in damaged()) {
        let _ = read(&line);
        if let Ok(line) = std::str::from_utf8(&line)
            && let Some(reading) = walked(line)
        {
            prop_assert_eq!(reading, parsed(line), "{}", line);
        }
    }

    #[test]
    fn no_line_of_any_client_panics(line in damaged()) {
        for harness in Harness::ALL {
            if let Some(mut reader) = harness.usage_reader(None) {
                let _ = reader.read(&line);
                let memory = reader.memory();
                prop_assert!(harness.usage_reader(memory.as_deref()).is_some());
            }
        }
    }
}

/// The tokens of each response of a file, the last telling of each.
fn responses(harness: Harness, lines: &[Vec<u8>]) -> Vec<(String, Option<String>, Tokens)> {
    let mut reader = harness.usage_reader(None).expect("it tells");
    let mut told: Vec<(String, Option<String>, Tokens)> = Vec::new();
    for line in lines {
        if let Reading::Told(response, _) = reader.read(line) {
            let part = |part: &Option<_>| part.clone().expect("an id");
            let id = format!("{} {}", part(&response.message), part(&response.request));
            let model = response.model.as_deref().map(str::to_owned);
            told.retain(|(known, ..)| *known != id);
            told.push((id, model, response.tokens));
        }
        // What a reader remembers is all that a later one needs.
        let memory = reader.memory();
        reader = harness.usage_reader(memory.as_deref()).expect("it tells");
    }
    told
}

fn message(id: &str) -> String {
    id.split(' ').next().unwrap_or_default().to_owned()
}

#[test]
fn codex_records_add_up_to_the_threads_own_total() {
    let mut files = 0;
    for (path, lines) in captured(Harness::Codex) {
        let told = responses(Harness::Codex, &lines);
        let sum: Tokens = told.iter().map(|(_, _, tokens)| *tokens).sum();
        let mut totals = lines.iter().filter_map(|line| {
            let line: Value = serde_json::from_slice(line).ok()?;
            let record = (line["type"] == "token_usage_record").then(|| &line["payload"])?;
            Some(record["thread_token_usage"].clone())
        });
        let Some(total) = totals.next_back() else { continue };
        // A fork's total begins with its parent's.
        if lines.iter().any(|line| memchr::memmem::find(line, b"\"forked_from_id\"").is_some()) {
            continue;
        }
        files += 1;
        assert_eq!(total["total_tokens"], sum.total(), "{}", path.display());
        assert_eq!(total["cached_input_tokens"], sum.cache_read, "{}", path.display());
        assert!(told.iter().all(|(_, model, _)| model.is_some()), "{}", path.display());
    }
    assert!(files > 20, "only {files} rollouts with records");
}

#[test]
fn an_older_codex_is_counted_by_what_its_totals_grew() {
    let lines = |totals: &[(u64, u64)]| -> Vec<Vec<u8>> {
        let meta = r#"{"timestamp":"2026-01-01T00:00:00.000Z","type":"session_meta","payload":{"id":"t"}}"#;
        let counts = totals.iter().map(|(input, output)| {
            format!(
                r#"{{"timestamp":"2026-01-01T00:00:00.000Z","type":"event_msg","payload":{{"type":"token_count","info":{{"total_token_usage":{{"input_tokens":{input},"output_tokens":{output}}}}}}}}}"#
            )
        });
        std::iter::once(meta.to_owned()).chain(counts).map(String::into_bytes).collect()
    };
    // The second one is repeated; the last one began anew.
    let told = responses(Harness::Codex, &lines(&[(10, 1), (30, 3), (30, 3), (5, 1)]));
    let counts: Vec<(u64, u64)> =
        told.iter().map(|(_, _, tokens)| (tokens.input, tokens.output)).collect();
    assert_eq!(counts, [(10, 1), (20, 2), (5, 1)]);
}

#[test]
fn a_gemini_reply_counts_once_however_often_it_is_written() {
    let mut replies = 0;
    for (path, lines) in captured(Harness::GeminiCli) {
        let told = responses(Harness::GeminiCli, &lines);
        let mut last: BTreeMap<String, u64> = BTreeMap::new();
        for line in &lines {
            let Ok(line) = serde_json::from_slice::<Value>(line) else { continue };
            if let (Some(id), Some(total)) = (line["id"].as_str(), line["tokens"]["total"].as_u64())
            {
                last.insert(id.to_owned(), total);
            }
        }
        replies += last.len();
        let told: BTreeMap<String, u64> =
            told.iter().map(|(id, _, tokens)| (message(id), tokens.total())).collect();
        assert_eq!(told, last, "{}", path.display());
    }
    assert!(replies > 20, "only {replies} replies");
}

#[test]
fn every_model_that_clients_named_has_a_price_or_is_marked() {
    let table = PriceTable::bundled();
    let tokens = Tokens { input: 1_000, output: 10, ..Tokens::default() };
    for harness in [Harness::Codex, Harness::GeminiCli] {
        for (_, lines) in captured(harness) {
            for (_, model, _) in responses(harness, &lines) {
                let charge = table.charge_of(model.as_deref(), &tokens, None);
                assert!(charge.dollars > 0.0 || charge.is_estimate, "{model:?}");
            }
        }
    }
}
