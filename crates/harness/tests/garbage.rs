//! Whatever comes, in whatever order, on whatever channel: nothing panics, and no session comes
//! out of nothing.

#![allow(clippy::disallowed_methods, reason = "captures are files")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::Index;
use qd_harness::capture::{Recorded, Scenario};
use qd_harness::fuzzing::{Cue, Witness};
use qd_harness::{Channel, Harness, Signal};
use qd_session::moment::Timestamp;
use serde_json::Value;

const HARNESSES: [Harness; 7] = [
    Harness::ClaudeCode,
    Harness::Codex,
    Harness::GeminiCli,
    Harness::KiloCode,
    Harness::Cline,
    Harness::Opencode,
    Harness::Acp,
];

/// Signals of one case: enough for a turn to begin and end.
const SIGNALS_MAX: usize = 24;

/// Cases for each harness; the fuzzers try millions.
const CASES: u32 = 96;

/// What a stream is called that nobody named.
const UNNAMED: &str = "stream";

/// The payloads of one harness's captures, with their channel.
type Payloads = Vec<(Channel, Vec<u8>)>;

static CAPTURED: LazyLock<Vec<(Harness, Payloads)>> = LazyLock::new(|| {
    let mut all: Vec<(Harness, Payloads)> =
        HARNESSES.iter().map(|harness| (*harness, Vec::new())).collect();
    for folder in folders(&Path::new(env!("CARGO_MANIFEST_DIR")).join("captured"))
        .iter()
        .flat_map(|client| folders(client))
    {
        let text = |file: &str| fs::read_to_string(folder.join(file)).expect(file);
        let scenario: Scenario = serde_json::from_str(&text("scenario.json")).expect("a scenario");
        let payloads = all.iter_mut().find(|(harness, _)| *harness == scenario.harness);
        let (_, payloads) = payloads.expect("every harness is listed");
        for line in text("signals.jsonl").lines().filter(|line| !line.trim().is_empty()) {
            let recorded: Recorded = serde_json::from_str(line).expect("a line of a capture");
            let signal = recorded.signal().expect("a known source");
            payloads.push((signal.channel, signal.payload.to_vec()));
        }
    }
    all
});

fn folders(top: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(top).expect("a folder of captures");
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_dir()).collect();
    paths.sort();
    paths
}

/// One way to spoil a payload.
#[derive(Debug, Clone)]
enum Spoil {
    Nothing,
    Truncate(Index),
    Splice(Index, Index, Index),
    Byte(Index, u8),
    /// Another type, a huge number, a deep nest: a value in place of one of the payload's.
    Value(Index, usize),
    Garbage(Vec<u8>),
}

/// Values that no field expects.
const ODD_VALUES: [&str; 12] = [
    "null",
    "true",
    "-1",
    "18446744073709551615",
    "1e308",
    "-9223372036854775808",
    "\"\"",
    "\"\\u0000\\ud83d\\ude00\u{202e}\"",
    "[]",
    "{}",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[7]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
    "\"9999-12-31T23:59:60.999999999Z\"",
];

fn spoil() -> impl Strategy<Value = Spoil> {
    prop_oneof![
        4 => Just(Spoil::Nothing),
        1 => any::<Index>().prop_map(Spoil::Truncate),
        1 => (any::<Index>(), any::<Index>(), any::<Index>())
            .prop_map(|(other, from, to)| Spoil::Splice(other, from, to)),
        1 => (any::<Index>(), any::<u8>()).prop_map(|(place, byte)| Spoil::Byte(place, byte)),
        4 => (any::<Index>(), 0..ODD_VALUES.len()).prop_map(|(at, odd)| Spoil::Value(at, odd)),
        1 => prop::collection::vec(any::<u8>(), 0..200).prop_map(Spoil::Garbage),
    ]
}

/// One signal to be: which payload, spoiled how, sent how; now and then on another channel.
#[derive(Debug, Clone)]
struct Step {
    payload: Index,
    spoil: Spoil,
    cue: u8,
    elsewhere: Option<usize>,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let elsewhere = prop::option::weighted(0.1, 0..Channel::ALL.len());
    let step = (any::<Index>(), spoil(), any::<u8>(), elsewhere)
        .prop_map(|(payload, spoil, cue, elsewhere)| Step { payload, spoil, cue, elsewhere });
    prop::collection::vec(step, 1..SIGNALS_MAX)
}

fn spoiled(payload: &[u8], spoil: &Spoil, payloads: &Payloads) -> Vec<u8> {
    let mut bytes = payload.to_vec();
    match spoil {
        Spoil::Nothing => {}
        Spoil::Garbage(garbage) => bytes.clone_from(garbage),
        Spoil::Truncate(at) => bytes.truncate(at.index(bytes.len().max(1))),
        Spoil::Splice(other, from, to) => {
            let (_, other) = &payloads[other.index(payloads.len())];
            bytes.truncate(from.index(bytes.len().max(1)));
            bytes.extend(&other[to.index(other.len().max(1)).min(other.len())..]);
        }
        Spoil::Byte(at, byte) => {
            let at = at.index(bytes.len().max(1));
            if let Some(place) = bytes.get_mut(at) {
                *place = *byte;
            }
        }
        Spoil::Value(at, odd) => {
            if let Ok(mut value) = serde_json::from_slice::<Value>(&bytes) {
                let odd = serde_json::from_str(ODD_VALUES[*odd]).expect("an odd value is JSON");
                let places = count(&value);
                replace(&mut value, &mut at.index(places), odd);
                bytes = value.to_string().into_bytes();
            }
        }
    }
    bytes
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// Puts `odd` in the place that many values ahead.
fn replace(value: &mut Value, ahead: &mut usize, odd: Value) -> Option<Value> {
    if *ahead == 0 {
        *value = odd;
        return None;
    }
    *ahead -= 1;
    let mut odd = Some(odd);
    match value {
        Value::Array(items) => {
            for item in items {
                odd = replace(item, ahead, odd?);
            }
        }
        Value::Object(fields) => {
            for (_, field) in fields.iter_mut() {
                odd = replace(field, ahead, odd?);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    odd
}

/// Every text that stands in a payload, also in JSON that stands in a text.
fn texts(payload: &[u8], into: &mut BTreeSet<String>) {
    fn walk(value: &Value, into: &mut BTreeSet<String>) {
        match value {
            Value::String(text) => {
                if let Some(at) = text.find(['{', '['])
                    && let Ok(inner) = serde_json::from_str::<Value>(&text[at..])
                {
                    walk(&inner, into);
                }
                into.insert(text.clone());
            }
            Value::Array(items) => items.iter().for_each(|item| walk(item, into)),
            Value::Object(fields) => {
                for (name, field) in fields {
                    into.insert(name.clone());
                    walk(field, into);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    // As it stands, too: a number nobody can hold spoils the whole for us, not for one who skips it.
    into.insert(String::from_utf8_lossy(payload).into_owned());
    if let Ok(value) = serde_json::from_slice::<Value>(payload) {
        walk(&value, into);
    }
}

fn check(harness: Harness, steps: &[Step]) {
    let (_, payloads) =
        CAPTURED.iter().find(|(known, _)| *known == harness).expect("every harness is listed");
    let mut witness = Witness::new(harness);
    let mut given = BTreeSet::from([UNNAMED.to_owned()]);
    let mut at = Timestamp(1_794_768_000_000);
    for step in steps {
        let (channel, payload) = &payloads[step.payload.index(payloads.len())];
        let payload = spoiled(payload, &step.spoil, payloads);
        let channel = step.elsewhere.map_or(*channel, |other| Channel::ALL[other]);
        let Cue { after_ms, direction, file, .. } = Cue::read(step.cue);
        at = at.plus_ms(after_ms);
        texts(&payload, &mut given);
        given.extend(file.map(str::to_owned));
        witness.play(&Signal { at, seq: 0, channel, direction, file, payload: &payload });
    }
    witness.finish();
    for session in witness.sessions() {
        let known = given.iter().any(|text| text.contains(session.as_str()));
        assert!(known, "{harness:?} made {session:?} out of nothing");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn spoiled_captures_panic_nobody_and_make_no_session(steps in steps()) {
        for harness in HARNESSES {
            check(harness, &steps);
        }
    }

    #[test]
    fn bytes_that_are_no_json_make_nothing(
        payload in prop::collection::vec(any::<u8>(), 0..300),
        cue in any::<u8>(),
    ) {
        prop_assume!(serde_json::from_slice::<Value>(&payload).is_err());
        for harness in HARNESSES {
            let mut witness = Witness::new(harness);
            for channel in Channel::ALL {
                let Cue { direction, file, .. } = Cue::read(cue);
                let at = Timestamp(1_000);
                let payload = &payload;
                witness.play(&Signal { at, seq: 0, channel, direction, file, payload });
            }
            witness.finish();
            prop_assert!(witness.sessions().is_empty(), "{harness:?}: {:?}", witness.sessions());
        }
    }
}

/// The longest payload, of the shapes that cost the most to read.
#[test]
fn the_longest_payloads_are_read_in_a_breath() {
    let bytes_max = 4 << 20;
    let shapes: [&[u8]; 8] =
        [b"[", b"{\"a\":", b"\"", b"[],", b"\\\"", b"\x1b]", b"{\"session_id\":\"s\"},", b"\xff"];
    for harness in HARNESSES {
        let mut witness = Witness::new(harness);
        for channel in Channel::ALL {
            for shape in shapes {
                let payload: Vec<u8> = shape.iter().copied().cycle().take(bytes_max).collect();
                let Cue { direction, file, .. } = Cue::read(b'B');
                let at = Timestamp(1_000);
                witness.play(&Signal { at, seq: 0, channel, direction, file, payload: &payload });
            }
        }
        assert!(witness.sessions().is_empty(), "{harness:?}: {:?}", witness.sessions());
    }
}
