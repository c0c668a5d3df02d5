//! `qd usage` and `qd search` as an operator runs them: alone, at once, killed, on a full disk.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::world::{Outcome, World};

/// Much longer than anything takes; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A session file with this many responses, and one prompt.
pub fn session(world: &World, name: &str, responses: u32) {
    let line = |nth: u32| {
        json!({
            "type": "assistant", "sessionId": name, "requestId": format!("req_{name}_{nth}"),
            "timestamp": "2026-03-01T10:00:00.000Z", "cwd": "/home/ann/acme",
            "message": {
                "id": format!("msg_{name}_{nth}"), "model": "claude-opus-4-6", "role": "assistant",
                "content": [{"type": "text", "text": "Mended."}],
                "usage": {"input_tokens": 100, "output_tokens": 10},
            },
        })
    };
    let prompt = json!({
        "type": "user", "sessionId": name, "timestamp": "2026-03-01T09:59:00.000Z",
        "cwd": "/home/ann/acme",
        "message": {"role": "user", "content": format!("fix the \u{1b}[31m parser of {name}")},
    });
    let lines: String = (0..responses).map(|nth| line(nth).to_string() + "\n").collect();
    world.write(&format!("home/.claude/projects/-p/{name}.jsonl"), &format!("{prompt}\n{lines}"));
}

fn json_of(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.out).expect("JSON")
}

fn responses(outcome: &Outcome) -> u64 {
    json_of(outcome)["totals"]["responses"].as_u64().expect("a number")
}

#[test]
fn sums_have_the_names_that_ccusage_uses() {
    let world = World::new();
    session(&world, "s1", 3);
    let told = json_of(&world.run(&["usage", "--json", "--timezone", "UTC"]).expect(0));
    let totals = &told["totals"];
    assert_eq!((&totals["inputTokens"], &totals["outputTokens"]), (&json!(300), &json!(30)));
    assert_eq!(
        (&totals["cacheCreationTokens"], &totals["cacheReadTokens"]),
        (&json!(0), &json!(0))
    );
    assert_eq!(totals["totalTokens"], 330);
    assert!(totals["totalCost"].as_f64().is_some_and(|cost| cost > 0.0));
    assert_eq!(told["daily"][0]["date"], "2026-03-01");
    let by = |by: &str| json_of(&world.run(&["usage", "--json", "--by", by]).expect(0));
    let session = &by("session")["sessions"][0];
    assert_eq!((&session["sessionId"], &session["harness"]), (&json!("s1"), &json!("claude_code")));
    assert_eq!((&session["contextTokens"], &session["responses"]), (&json!(100), &json!(3)));
    assert_eq!(by("project")["projects"][0]["project"], "/home/ann/acme");
    let none = world.run(&["usage", "--json", "--since", "7d"]).expect(0);
    assert_eq!(responses(&none), 0);
    let table = world.run(&["usage", "--since", "20260301", "--until", "2026-03-01"]).expect(0);
    assert!(table.out.contains("2026-03-01") && !table.out.contains('\u{1b}'), "{table:?}");
    let odd = world.run(&["usage", "--since", "soon"]).expect(1);
    assert!(odd.err.contains("`soon` is no day"), "{odd:?}");
}

#[test]
fn two_at_once_say_the_same() {
    let world = World::new();
    for nth in 0..40 {
        session(&world, &format!("s{nth}"), 20);
    }
    let start = || {
        let mut command = world.qd(&["usage", "--json"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("qd starts")
    };
    let both =
        [start(), start()].map(|child| Outcome::of(child.wait_with_output().expect("it ends")));
    for told in both {
        let told = told.expect(0);
        assert_eq!(responses(&told), 800);
        // One may find the index in use for longer than it waits: it says so, and counts all the same.
        for trouble in json_of(&told)["troubles"].as_array().expect("a list") {
            assert_eq!(trouble["what"], "another program has it locked", "{trouble}");
        }
    }
    assert_eq!(responses(&world.run(&["usage", "--json"]).expect(0)), 800);
}

#[test]
fn one_that_is_killed_leaves_nothing_wrong() {
    let world = World::new();
    for nth in 0..40 {
        session(&world, &format!("s{nth}"), 50);
    }
    let signs = ["usage.db", "usage.db-wal", "usage.db-shm"];
    for sign in signs.iter().cycle().take(9) {
        let mut command = world.qd(&["usage", "--json"]);
        let mut child = command.stdout(Stdio::null()).spawn().expect("qd starts");
        let path = world.state().join(sign);
        // In the middle, or it has ended: both are worth a try.
        while !path.exists() && child.try_wait().expect("our child").is_none() {
            std::thread::yield_now();
        }
        let _ = child.kill();
        child.wait().expect("it ends");
        let told = world.run(&["usage", "--json"]).expect(0);
        assert_eq!((responses(&told), &json_of(&told)["troubles"]), (2_000, &json!([])), "{sign}");
        std::fs::remove_dir_all(world.state()).expect("ours");
    }
}

/// A file size limit fails in the middle of a write, as a full disk does.
fn without_space(world: &World, arguments: &str) -> Command {
    let mut command = world.command("/bin/sh");
    let qd = env!("CARGO_BIN_EXE_qd");
    command.args(["-c", &format!("trap '' XFSZ; ulimit -f 16; exec {qd} {arguments}")]);
    command
}

#[test]
fn a_full_disk_is_told_and_the_numbers_are_right() {
    let world = World::new();
    session(&world, "s1", 3);
    let told = Outcome::of(without_space(&world, "usage --json").output().expect("qd runs"));
    let told = told.expect(0);
    assert_eq!(responses(&told), 3);
    let troubles = json_of(&told)["troubles"].to_string();
    assert!(troubles.contains("usage.db"), "{troubles}");
    assert!(!troubles.contains("journal"), "{troubles}");
    // With space again, all is as if nothing had been.
    let told = world.run(&["usage", "--json"]).expect(0);
    assert_eq!((responses(&told), &json_of(&told)["troubles"]), (3, &json!([])));
}

#[test]
fn words_are_found_until_it_is_turned_off() {
    let world = World::new();
    session(&world, "s1", 1);
    session(&world, "s2", 1);
    let told = json_of(&world.run(&["search", "parser", "s2", "--json"]).expect(0));
    let hits = told["hits"].as_array().expect("a list");
    assert_eq!(hits.len(), 1, "{told}");
    assert_eq!((&hits[0]["sessionId"], &hits[0]["who"]), (&json!("s2"), &json!("operator")));
    let snippet = hits[0]["snippet"].as_str().expect("a text");
    assert!(snippet.contains("of [s2]") && !snippet.contains('\u{1b}'), "{snippet}");
    for words in ["\"", "NEAR(", "a AND", "*", "(;--", "text:x"] {
        let _ = world.run(&["search", words]).expect(0);
    }
    let nothing = world.run(&["search", "parser", "--project", "elsewhere"]).expect(0);
    assert!(nothing.out.contains("Nothing was said"), "{nothing:?}");
    let recent = world.run(&["search", "parser", "--since", "today"]).expect(0);
    assert!(recent.out.contains("Nothing was said"), "{recent:?}");
    world.write("home/.config/quarterdeck/config.toml", "[search]\nenabled = false\n");
    std::fs::remove_file(world.state().join("search.db")).expect("it was there");
    let off = world.run(&["search", "parser"]).expect(1);
    assert!(off.err.contains("search is off"), "{off:?}");
    assert!(!world.state().join("search.db").exists());
}

/// Asks the daemon over its socket until it answers as wanted.
fn daemon_says(world: &World, path: &str, is: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let answer = get(world, path);
        if is(&answer) {
            return answer;
        }
        assert!(Instant::now() < deadline, "{path}: {answer:#}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn get(world: &World, path: &str) -> Value {
    let mut stream = UnixStream::connect(world.socket()).expect("it listens");
    write!(stream, "GET {path} HTTP/1.1\r\nhost: qd\r\nconnection: close\r\n\r\n").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
    serde_json::from_str(body).unwrap_or_else(|_| panic!("no JSON: {answer}"))
}

#[test]
fn the_daemon_says_what_the_command_says_and_finds_what_it_finds() {
    let world = World::new();
    session(&world, "s1", 3);
    session(&world, "s2", 2);
    let _daemon = world.daemon();
    let told = daemon_says(&world, "/api/usage?by=session", |told| {
        told["rows"].as_array().is_some_and(|rows| rows.len() == 2)
    });
    let printed = json_of(&world.run(&["usage", "--json", "--by", "session"]).expect(0));
    for name in ["inputTokens", "outputTokens", "totalTokens", "totalCost"] {
        assert_eq!(told["totals"][name], printed["totals"][name], "{name}");
    }
    assert_eq!(told["rows"][0]["key"], "s1");
    let refused = get(&world, "/api/usage?since=soon");
    assert_eq!(refused["code"], "unreadable");

    let found = daemon_says(&world, "/api/history?q=parser+s2", |found| {
        found["sessions"].as_array().is_some_and(|sessions| !sessions.is_empty())
    });
    let session = &found["sessions"][0];
    assert_eq!(
        (&session["harness"], &session["totalTokens"]),
        (&json!("claude_code"), &json!(220))
    );
    assert!(session["snippet"].as_str().is_some_and(|text| text.contains("\u{2}s2\u{3}")));
    let all = get(&world, "/api/history?limit=1");
    assert_eq!(all["sessions"].as_array().map(Vec::len), Some(1));
    let before = all["before"].as_str().expect("there is more");
    let _ = get(&world, &format!("/api/history?limit=1&before={before}"));
    assert_eq!(get(&world, "/api/history?harness=nobody")["code"], "unknown_harness");
    assert_eq!(get(&world, "/api/history?project=elsewhere")["sessions"], json!([]));
}
