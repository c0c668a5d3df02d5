//! What session files cost: the cases of `spec/usage.md`, what is read again and what is not, and
//! files that nobody wants to meet.

mod bad_input;
mod journal;
mod live;
mod search;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use qd_harness::usage::{PriceTable, Sum};
use qd_history::{By, History, Progress, Query, report};
use qd_sources::places::places;
use serde_json::{Value, json};

/// A home of a test's own, gone when the test ends.
struct Home(PathBuf);

impl Home {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("qd-history-{}-{count}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, file: &str) -> PathBuf {
        let path = self.0.join(".claude/projects").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    fn write(&self, file: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path(file), text).unwrap();
    }

    fn append(&self, file: &str, text: &str) {
        let mut file = OpenOptions::new().append(true).open(self.path(file)).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    fn open(&self) -> History {
        let places = places(&self.0, &BTreeMap::new());
        History::open(places, Some(&self.0.join("state/usage.db")))
    }

    /// Opened, and read: how many bytes were.
    fn read(&self) -> (History, u64) {
        let mut history = self.open();
        let progress = Progress::default();
        history.refresh(&progress);
        let bytes = progress.bytes.load(Ordering::Relaxed);
        (history, bytes)
    }

    fn counted(&self) -> (u64, u64) {
        counted(&self.read().0)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn totals(history: &History) -> Sum {
    let query = Query { since: None, until: None, by: By::Day };
    report(history.ledger(), query, &PriceTable::bundled(), |_| 0).totals
}

/// Responses and their output tokens.
fn counted(history: &History) -> (u64, u64) {
    let totals = totals(history);
    (totals.responses, totals.tokens.output)
}

/// A response as Claude Code writes it, with `change` made to it.
fn line(change: impl FnOnce(&mut Value)) -> String {
    let mut line = json!({
        "parentUuid": null, "isSidechain": false,
        "message": {
            "model": "claude-opus-4-6", "id": "msg_1", "type": "message", "role": "assistant",
            "content": [{"type": "text", "text": "Done.\n"}], "stop_reason": "end_turn",
            "usage": {"input_tokens": 100, "output_tokens": 10, "cache_creation_input_tokens": 0,
                      "cache_read_input_tokens": 0, "speed": "standard"},
        },
        "requestId": "req_1", "type": "assistant", "uuid": "u",
        "timestamp": "2026-03-01T10:00:00.000Z", "cwd": "/home/ann/acme", "sessionId": "s1",
        "version": "2.1.325",
    });
    change(&mut line);
    line.to_string()
}

fn response() -> String {
    line(|_| {})
}

fn numbered(nth: u32) -> String {
    line(|line| {
        line["message"]["id"] = json!(format!("msg_{nth}"));
        line["requestId"] = json!(format!("req_{nth}"));
    })
}

fn without(key: &str) -> String {
    line(|line| drop(line.as_object_mut().unwrap().remove(key)))
}

fn output(tokens: u64) -> impl Fn(&mut Value) {
    move |line| line["message"]["usage"]["output_tokens"] = json!(tokens)
}

fn aside(request: &str, tokens: u64) -> String {
    line(|line| {
        output(tokens)(line);
        line["isSidechain"] = json!(true);
        line["requestId"] = json!(request);
    })
}

/// The files of each case: their lines, and bytes where lines do not do.
fn cases() -> Vec<(&'static str, Vec<Vec<u8>>)> {
    let file = |lines: &[String]| (lines.join("\n") + "\n").into_bytes();
    let one = |lines: &[String]| vec![file(lines)];
    let of_session = |mut text: String, session: &str| {
        text = text.replace("\"s1\"", &format!("\"{session}\""));
        text
    };
    let no_request = without("requestId");
    let later = no_request.replace("10:00:00", "10:00:01");
    let half = response()[..200].to_owned();
    vec![
        ("one response", one(&[response()])),
        (
            "told once for each of its blocks, the last one complete",
            one(&[line(output(1)), line(output(1)), line(output(99))]),
        ),
        (
            "a fork repeats it in another file",
            vec![file(&[response()]), file(&[of_session(response(), "s2")])],
        ),
        (
            "a fork has more of it",
            vec![file(&[response()]), file(&[of_session(line(output(99)), "s2")])],
        ),
        ("no request id, the same time", one(&[no_request.clone(), no_request.clone()])),
        ("no request id, another time", one(&[no_request.clone(), later])),
        (
            "no request id, another session",
            vec![file(std::slice::from_ref(&no_request)), file(&[of_session(no_request, "s2")])],
        ),
        (
            "the same message with another request id",
            one(&[response(), line(|line| line["requestId"] = json!("req_2"))]),
        ),
        (
            "a sidechain repeats the message with a request id of its own",
            one(&[response(), aside("req_2", 500)]),
        ),
        ("the sidechain comes first", one(&[aside("req_2", 500), response()])),
        ("two sidechains repeat each other", one(&[aside("req_2", 500), aside("req_3", 600)])),
        (
            "a sidechain of another session",
            one(&[response(), of_session(aside("req_2", 500), "s9")]),
        ),
        ("a sidechain tells more of the same response", one(&[response(), aside("req_1", 500)])),
        ("no message id", {
            let nameless = line(|line| drop(line["message"].as_object_mut().unwrap().remove("id")));
            one(&[nameless.clone(), nameless])
        }),
        (
            "the client's own words instead of a model's",
            one(&[line(|line| line["message"]["model"] = json!("<synthetic>"))]),
        ),
        ("an API error with tokens", one(&[line(|line| line["isApiErrorMessage"] = json!(true))])),
        (
            "cut in the middle of a stream",
            one(&[line(|line| {
                line["isAbortedMidStream"] = json!(true);
                line["message"]["stop_reason"] = json!(null);
            })]),
        ),
        ("a subagent told within a line of its session", {
            let whole: Value = serde_json::from_str(&response()).unwrap();
            let within = json!({
                "type": "progress", "sessionId": "s1", "timestamp": whole["timestamp"],
                "data": {"type": "agent_progress", "message": {
                    "timestamp": whole["timestamp"], "requestId": "req_9", "isSidechain": true,
                    "message": whole["message"],
                }},
            });
            one(&[within.to_string()])
        }),
        (
            "an adviser was asked within the response",
            one(&[line(|line| {
                line["message"]["usage"]["iterations"] = json!([
                    {"type": "message", "input_tokens": 1, "output_tokens": 2},
                    {"type": "advisor_message", "model": "claude-opus-4-6", "input_tokens": 1000,
                     "output_tokens": 2000},
                ]);
            })]),
        ),
        ("no time", one(&[without("timestamp")])),
        ("no UTF-8", {
            let mut bytes = file(&[response()]);
            let at = bytes.windows(5).position(|part| part == b"Done.").unwrap();
            bytes[at] = 0xff;
            vec![bytes]
        }),
        ("half a line, then a whole one", one(&[half.clone(), numbered(2)])),
        ("half a line with a whole one behind it", one(&[half + &numbered(2)])),
        ("a key that comes twice", {
            one(&[response().replacen('{', "{\"requestId\":\"req_5\",", 1)])
        }),
        (
            "a number that is none",
            one(&[line(|line| line["message"]["usage"]["input_tokens"] = json!("1"))]),
        ),
        ("the last line has no end", vec![response().into_bytes()]),
        (
            "lines end as on Windows",
            vec![format!("{}\r\n{}\r\n", response(), numbered(2)).into_bytes()],
        ),
        (
            "a null among a tool's arguments",
            one(&[line(|line| line["message"]["content"] = json!([{"input": {"id": null}}]))]),
        ),
        ("a null for a request id", one(&[line(|line| line["requestId"] = json!(null))])),
        ("spaces in the JSON", { vec![response().replace("\":", "\": ").into_bytes()] }),
        ("a version that is no number", one(&[line(|line| line["version"] = json!("dev"))])),
        (
            "no count of input",
            one(&[line(|line| {
                drop(line["message"]["usage"].as_object_mut().unwrap().remove("input_tokens"));
            })]),
        ),
        (
            "a speed nobody knows",
            one(&[line(|line| line["message"]["usage"]["speed"] = json!("odd"))]),
        ),
    ]
}

#[test]
fn the_page_shows_what_is_counted() {
    let page = include_str!("../../../../spec/usage.md");
    let (_, table) = page.split_once("| Case |").expect("a table of cases");
    let written: Vec<(&str, String)> = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            // Where the two agree there is nothing to explain.
            assert_eq!(cells[1] == cells[2], cells[3].is_empty(), "{line}");
            (cells[0], cells[2].to_owned())
        })
        .collect();
    let held: Vec<(&str, String)> = cases()
        .into_iter()
        .map(|(case, files)| {
            let home = Home::new();
            for (nth, file) in files.iter().enumerate() {
                home.write(&format!("-home-ann-acme/{nth}.jsonl"), file);
            }
            let first = home.counted();
            assert_eq!(home.counted(), first, "{case}, from the index");
            (case, format!("{}, {}", first.0, first.1))
        })
        .collect();
    assert_eq!(written, held);
}

const FILE: &str = "-home-ann-acme/s1.jsonl";

fn lines(numbers: impl IntoIterator<Item = u32>) -> String {
    numbers.into_iter().map(|nth| numbered(nth) + "\n").collect()
}

#[test]
fn only_what_is_new_is_read() {
    let home = Home::new();
    home.write(FILE, lines(0..10));
    let size = fs::metadata(home.path(FILE)).unwrap().len();
    let (history, bytes) = home.read();
    assert_eq!((counted(&history), bytes), ((10, 100), size));
    let (history, bytes) = home.read();
    assert_eq!((counted(&history), bytes), ((10, 100), 0));
    let more = lines(10..12);
    home.append(FILE, &more);
    let (mut history, bytes) = home.read();
    assert_eq!((counted(&history), bytes), ((12, 120), more.len() as u64));
    // The same while it stays open.
    home.append(FILE, &more);
    home.append(FILE, &lines(12..13));
    history.refresh(&Progress::default());
    assert_eq!(counted(&history), (13, 130));
    assert_eq!(home.counted(), (13, 130));
}

#[test]
fn a_half_line_is_read_when_it_is_whole() {
    let home = Home::new();
    let (begin, end) = (numbered(2), numbered(2).split_off(300));
    home.write(FILE, lines(0..2) + &begin[..300]);
    assert_eq!(home.counted(), (2, 20));
    home.append(FILE, &end);
    assert_eq!(home.counted(), (3, 30));
    home.append(FILE, &format!("\n{}", lines(3..4)));
    let (history, _) = home.read();
    assert_eq!((counted(&history), history.troubles()), ((4, 40), &[][..]));
}

#[test]
fn a_file_that_was_changed_is_read_again_and_one_that_went_keeps_its_sum() {
    let home = Home::new();
    home.write(FILE, lines(0..10));
    home.write("-home-ann-acme/fork.jsonl", lines(0..3));
    assert_eq!(home.counted(), (10, 100));
    // Shorter: the fork's own telling counts again.
    home.write(FILE, lines(5..7));
    assert_eq!(home.counted(), (5, 50));
    // As long, and other words.
    home.write(FILE, lines(7..9));
    assert_eq!(home.counted(), (5, 50));
    // Longer, and another beginning; while it stays open.
    let (mut history, _) = home.read();
    home.write(FILE, lines(3..9));
    history.refresh(&Progress::default());
    assert_eq!(counted(&history), (9, 90));
    fs::remove_file(home.path(FILE)).unwrap();
    assert_eq!(home.counted(), (9, 90));
}

#[test]
fn a_file_read_on_many_times_is_kept_in_one_piece_again() {
    let home = Home::new();
    home.write(FILE, "");
    for nth in 0..100 {
        home.append(FILE, &lines(nth..nth + 1));
        assert_eq!(home.counted(), (u64::from(nth) + 1, 10 * (u64::from(nth) + 1)));
    }
}

#[test]
fn a_lost_or_damaged_index_costs_only_time() {
    let home = Home::new();
    home.write(FILE, lines(0..10));
    assert_eq!(home.counted(), (10, 100));
    let index = home.0.join("state/usage.db");
    fs::write(&index, "this is no database").unwrap();
    let (history, _) = home.read();
    assert_eq!(counted(&history), (10, 100));
    assert!(history.troubles().iter().any(|trouble| trouble.what.contains("set aside")));
    // It is used again from then on.
    assert_eq!(home.read().1, 0);
    // And where none can be made.
    let nowhere = File::create(home.0.join("file")).map(|_| home.0.join("file/usage.db")).unwrap();
    let mut history = History::open(places(&home.0, &BTreeMap::new()), Some(&nowhere));
    history.refresh(&Progress::default());
    assert_eq!(counted(&history), (10, 100));
    assert_eq!(history.troubles().len(), 1, "{:?}", history.troubles());
}

#[test]
fn two_at_once_do_not_count_twice() {
    let home = Home::new();
    home.write(FILE, lines(0..10));
    let (mut one, mut other) = (home.open(), home.open());
    one.refresh(&Progress::default());
    other.refresh(&Progress::default());
    home.append(FILE, &lines(10..11));
    one.refresh(&Progress::default());
    other.refresh(&Progress::default());
    assert_eq!((counted(&one), counted(&other)), ((11, 110), (11, 110)));
    assert_eq!(home.counted(), (11, 110));
}

#[test]
fn rows_are_sums_by_what_was_asked_for() {
    let home = Home::new();
    let of = |nth: u32, model: &str, day: &str, session: &str| {
        numbered(nth)
            .replace("claude-opus-4-6", model)
            .replace("2026-03-01", day)
            .replace("\"s1\"", &format!("\"{session}\""))
            + "\n"
    };
    home.write(
        "-home-ann-acme/s1.jsonl",
        of(1, "claude-opus-4-6", "2026-03-01", "s1")
            + &of(2, "claude-haiku-4-5", "2026-03-02", "s1"),
    );
    home.write(
        "-home-ann-acme/s1/subagents/agent-a.jsonl",
        of(3, "claude-haiku-4-5", "2026-03-02", "s1")
            .replace("\"isSidechain\":false", "\"isSidechain\":true"),
    );
    home.write("-home-ann-acme/s2.jsonl", of(4, "claude-opus-4-6", "2026-04-01", "s2"));
    let (history, _) = home.read();
    let rows = |by: By| -> Vec<(String, u64)> {
        let query = Query { since: None, until: None, by };
        let report = report(history.ledger(), query, &PriceTable::bundled(), |_| 0);
        report
            .rows
            .into_iter()
            .map(|row| (row.name.unwrap_or_default(), row.sum.responses))
            .collect()
    };
    let row = |name: &str, responses| (name.to_owned(), responses);
    assert_eq!(rows(By::Day), [row("2026-03-01", 1), row("2026-03-02", 2), row("2026-04-01", 1)]);
    assert_eq!(rows(By::Week), [row("2026-02-23", 1), row("2026-03-02", 2), row("2026-03-30", 1)]);
    assert_eq!(rows(By::Month), [row("2026-03", 3), row("2026-04", 1)]);
    assert_eq!(rows(By::Model), [row("claude-opus-4-6", 2), row("claude-haiku-4-5", 2)]);
    assert_eq!(rows(By::Session), [row("s1", 3), row("s2", 1)]);
    assert_eq!(rows(By::Project), [row("/home/ann/acme", 4)]);
    assert_eq!(rows(By::Harness), [row("claude_code", 4)]);
}
