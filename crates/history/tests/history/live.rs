//! Lines that come in one by one: the same sums as a scan's, whatever was read in which way.

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;

use proptest::prelude::*;
use qd_broker::session_key::SessionKey;
use qd_harness::Harness;
use qd_harness::usage::PriceTable;
use qd_history::{By, Change, History, Progress, Query, Row};
use qd_sources::tail::{Piece, Tail, TailReader};
use serde_json::json;

use super::{FILE, Home, counted, line, lines, numbered, output};

fn rows(history: &History) -> Vec<Row> {
    let query = Query { since: None, until: None, by: By::Session };
    history.report(query, &PriceTable::bundled(), |_| 0).rows
}

/// Hands on what is new in a file, as the daemon does.
fn hand_on(history: &mut History, harness: Harness, reader: &mut TailReader) -> Vec<Change> {
    let path = reader.path().clone();
    let (mut changes, mut window) = (Vec::new(), vec![0; 64 << 10]);
    let mut emit = |piece: Piece<'_>| {
        if let Piece::Line { bytes, position } = piece {
            let change = history.take_line(harness, &path, bytes, position);
            if change == Change::Behind {
                history.refresh(&Progress::default());
            }
            changes.push(change);
        }
    };
    let _ = reader.read_on(&mut window, u64::MAX, &mut emit);
    changes
}

fn tail(path: &Path) -> TailReader {
    TailReader::new(path.into(), Tail::from_start())
}

fn session(name: &str) -> SessionKey {
    SessionKey { harness: Harness::ClaudeCode, session: name.into() }
}

#[test]
fn a_line_changes_its_session_and_nothing_is_read_again() {
    let home = Home::new();
    home.write(FILE, lines(0..2));
    let (mut history, _) = home.read();
    let mut reader = tail(&home.path(FILE));
    // The scan has counted these.
    let changes = hand_on(&mut history, Harness::ClaudeCode, &mut reader);
    assert_eq!(changes, [Change::Nothing, Change::Nothing]);
    home.append(FILE, &lines(2..3));
    let changes = hand_on(&mut history, Harness::ClaudeCode, &mut reader);
    assert_eq!(changes, [Change::Sessions(vec![session("s1")])]);
    let row = history.session(&session("s1"), &PriceTable::bundled()).unwrap();
    assert_eq!((row.sum.responses, row.sum.tokens.output), (3, 30));
    assert_eq!(history.session(&session("s9"), &PriceTable::bundled()), None);
    // The same response again is no change; more of it is.
    home.append(FILE, &lines(2..3));
    let more = numbered(2).replace("\"output_tokens\":10", "\"output_tokens\":99") + "\n";
    home.append(FILE, &more);
    let changes = hand_on(&mut history, Harness::ClaudeCode, &mut reader);
    assert_eq!(changes, [Change::Nothing, Change::Sessions(vec![session("s1")])]);
    assert_eq!(counted(&history), (3, 119));
    // Neither by this one nor by one that is opened after it was saved.
    let progress = Progress::default();
    history.refresh(&progress);
    assert_eq!(progress.bytes.load(Ordering::Relaxed), 0);
    let (again, bytes) = home.read();
    assert_eq!((rows(&again), bytes), (rows(&history), 0));
}

#[test]
fn a_fork_that_tells_more_changes_both_sessions() {
    let home = Home::new();
    home.write(FILE, line(output(5)) + "\n");
    let (mut history, _) = home.read();
    let fork = "-home-ann-acme/s2.jsonl";
    home.write(fork, line(output(50)).replace("\"s1\"", "\"s2\"") + "\n");
    let changes = hand_on(&mut history, Harness::ClaudeCode, &mut tail(&home.path(fork)));
    assert_eq!(changes, [Change::Sessions(vec![session("s2"), session("s1")])]);
    assert_eq!(history.session(&session("s1"), &PriceTable::bundled()), None);
    assert_eq!(rows(&history), rows(&home.read().0));
}

#[test]
fn what_was_missed_is_noticed() {
    let home = Home::new();
    home.write(FILE, lines(0..1));
    let (mut history, _) = home.read();
    let mut reader = tail(&home.path(FILE));
    hand_on(&mut history, Harness::ClaudeCode, &mut reader);
    home.append(FILE, &lines(1..2));
    // Read by the daemon, and lost on the way here.
    let _ = reader.read_on(&mut vec![0; 64 << 10], u64::MAX, &mut |_| {});
    home.append(FILE, &lines(2..3));
    let changes = hand_on(&mut history, Harness::ClaudeCode, &mut reader);
    assert_eq!((changes, counted(&history)), (vec![Change::Behind], (3, 30)));
    // Another file in its place.
    fs::remove_file(home.path(FILE)).unwrap();
    home.write(FILE, lines(7..9));
    let changes = hand_on(&mut history, Harness::ClaudeCode, &mut reader);
    assert_eq!(changes[0], Change::Behind);
    assert_eq!(counted(&history), counted(&home.read().0));
}

/// A rollout of an older client: totals only, so that each line depends on those before it.
fn rollout() -> String {
    let of = |kind: &str, payload: serde_json::Value| {
        let at = "2026-03-01T10:00:00.000Z";
        json!({"timestamp": at, "type": kind, "payload": payload}).to_string() + "\n"
    };
    let meta = of("session_meta", json!({"id": "c1", "cwd": "/home/ann/acme"}));
    let turn = of("turn_context", json!({"model": "gpt-5"}));
    let totals = (1..8).map(|nth: u64| {
        of("event_msg", json!({
            "type": "token_count",
            "info": {
                "total_token_usage": {"input_tokens": 100 * nth, "output_tokens": nth},
                "model_context_window": 258_400,
            },
            "rate_limits": {"primary": {
                "used_percent": nth as f64, "window_minutes": 300, "resets_at": 1_794_770_000 + nth,
            }},
        }))
    });
    [meta, turn].into_iter().chain(totals).collect()
}

#[test]
fn what_a_client_says_about_its_context_and_limits_is_in_the_sessions_row() {
    let home = Home::new();
    let path = home.0.join(".codex/sessions/2026/03/01/rollout-1.jsonl");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, rollout()).unwrap();
    let used_up = line(|line| {
        line["message"]["model"] = json!("<synthetic>");
        line["message"]["content"][0]["text"] = json!("Claude AI usage limit reached|1794770000");
    });
    home.write(FILE, used_up + "\n");
    let check = |history: &History| {
        let told: Vec<_> = rows(history)
            .into_iter()
            .map(|row| {
                let session = row.session.unwrap();
                let limits = session.limits.iter().map(|limit| {
                    (limit.used_percent, limit.window_minutes, limit.resets_at.unwrap())
                });
                (row.name.unwrap(), session.context_window, limits.collect::<Vec<_>>())
            })
            .collect();
        let codex = ("c1".into(), Some(258_400), vec![(7.0, Some(300), 1_794_770_007_000)]);
        let claude = ("s1".into(), None, vec![(100.0, None, 1_794_770_000_000)]);
        assert_eq!(told, [codex, claude]);
    };
    check(&home.read().0);
    // From the index.
    check(&home.read().0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Written in pieces; after each the rest is handed on, scanned, or left; and now and then
    /// somebody begins anew from the index.
    #[test]
    fn one_by_one_is_the_same_as_all_at_once(
        is_codex in any::<bool>(),
        steps in proptest::collection::vec((1..4_000_usize, 0..5_u8), 1..12),
    ) {
        let home = Home::new();
        let (harness, path, text) = if is_codex {
            let path = home.0.join(".codex/sessions/2026/03/01/rollout-1.jsonl");
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            (Harness::Codex, path, rollout())
        } else {
            (Harness::ClaudeCode, home.path(FILE), lines((0..12).chain(4..8)))
        };
        fs::write(&path, "").unwrap();
        let (mut history, _) = home.read();
        let mut reader = tail(&path);
        let mut written = 0;
        for (len, how) in steps {
            let end = (written + len).min(text.len());
            let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
            std::io::Write::write_all(&mut file, &text.as_bytes()[written..end]).unwrap();
            written = end;
            match how {
                0 | 1 => drop(hand_on(&mut history, harness, &mut reader)),
                2 => history.refresh(&Progress::default()),
                3 => history.save(),
                _ => history = home.read().0,
            }
        }
        hand_on(&mut history, harness, &mut reader);
        history.refresh(&Progress::default());
        let places = qd_sources::places::places(&home.0, &Default::default());
        let mut fresh = History::open(places, None);
        fresh.refresh(&Progress::default());
        prop_assert_eq!(rows(&history), rows(&fresh));
        prop_assert_eq!(rows(&home.read().0), rows(&fresh));
    }
}
