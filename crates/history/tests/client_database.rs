//! What real OpenCode and Kilo servers cost, read from the databases they keep.

use std::collections::BTreeMap;
use std::fs;

use qd_harness::Harness;
use qd_harness::conversation::Entry;
use qd_harness::usage::{PriceTable, Sum};
use qd_history::{By, History, Progress, Query, report};
use qd_sources::places::{Place, places};
use qd_sources::transcript::{self, Page, Part, Unread, Whose};
use qd_testbed::{Client, Home, Model, Result, Script, Service};
use serde_json::{Value, json};

type Make = fn(&Home, &Model) -> Result<Client>;

fn read(home: &Home) -> History {
    let index = home.path().join("state/usage.db");
    let mut history = History::open(places(&home.path(), &BTreeMap::new()), Some(&index));
    history.refresh(&Progress::default());
    history
}

fn sums(history: &History, by: By) -> (Vec<(Option<String>, u64)>, Sum) {
    let query = Query { since: None, until: None, by };
    let report = report(history.ledger(), query, &PriceTable::bundled(), |_| 0);
    let rows = report.rows.into_iter().map(|row| (row.name, row.sum.responses)).collect();
    (rows, report.totals)
}

/// Prompts it and waits for the end of the turn.
fn prompt(server: &Service, session: &str, text: &str) {
    let feed = server.events("/event").unwrap();
    let body = json!({"parts": [{"type": "text", "text": text}]});
    server.post(&format!("/session/{session}/prompt_async"), &body).unwrap();
    let is_idle = |event: &Value| {
        event["type"] == "session.idle" && event["properties"]["sessionID"] == session
    };
    feed.wait_for("the end of the turn", is_idle).unwrap();
}

/// Steps, input and output by the server's own list of messages.
fn told(server: &Service, session: &str) -> (u64, u64, u64) {
    let messages = server.get(&format!("/session/{session}/message")).unwrap();
    let parts =
        messages.as_array().unwrap().iter().flat_map(|one| one["parts"].as_array().unwrap());
    let steps = parts.filter(|part| part["type"] == "step-finish");
    steps.fold((0, 0, 0), |(count, input, output), step| {
        let number = |name: &str| step["tokens"][name].as_u64().unwrap();
        (count + 1, input + number("input"), output + number("output") + number("reasoning"))
    })
}

fn a_server_is_counted_as_it_reports(make: Make) {
    let home = Home::new().unwrap();
    let script = Script::new().says("Hello.").says("Hello again.").says("And again.");
    let model = Model::start(script).unwrap();
    let server = make(&home, &model).unwrap().served().service().unwrap();
    let session = server.post("/session", &json!({})).unwrap();
    let session = session["id"].as_str().expect("an id").to_owned();
    let check = || {
        let history = read(&home);
        let (rows, totals) = sums(&history, By::Session);
        let told = told(&server, &session);
        assert_eq!(rows, [(Some(session.clone()), told.0)]);
        assert_eq!((totals.responses, totals.tokens.input, totals.tokens.output), told);
        assert_eq!(history.troubles(), []);
        told
    };
    prompt(&server, &session, "say hello");
    let first = check();
    assert!(first.0 >= 1 && first.1 > 0, "{first:?}");
    prompt(&server, &session, "and once more");
    let second = check();
    assert!(second.0 > first.0, "{second:?}");
    let (rows, _) = sums(&read(&home), By::Project);
    let workspace = home.workspace().canonicalize().unwrap();
    assert_eq!(rows, [(Some(workspace.display().to_string()), second.0)]);
    // Nobody has it open any more, or nobody closed it.
    server.process().kill().unwrap();
    assert_eq!(sums(&read(&home), By::Day).1.responses, second.0);
    fs::remove_file(home.path().join("state/usage.db")).unwrap();
    assert_eq!(sums(&read(&home), By::Day).1.responses, second.0);
}

#[test]
fn opencode_is_counted_as_it_reports() {
    a_server_is_counted_as_it_reports(Client::opencode);
}

#[test]
fn kilo_is_counted_as_it_reports() {
    a_server_is_counted_as_it_reports(Client::kilo);
}

fn page(
    home: &Home,
    session: &str,
    part: &Part,
    limit: usize,
) -> std::result::Result<Page, Unread> {
    let places = places(&home.path(), &BTreeMap::new());
    let databases: Vec<_> = places.iter().filter_map(Place::database).collect();
    let (harness, path) = (Harness::Opencode, None);
    transcript::read(
        &Whose { harness, session, path, databases: &databases, folders: &[] },
        part,
        limit,
    )
}

/// The conversation in pages, forth and back, as its client wrote it.
fn what_was_said_is_read_in_pages(make: Make) {
    let home = Home::new().unwrap();
    let list = json!({"command": "echo ahoy", "description": "Call"});
    let script = Script::new().calls("bash", list).says("I called.").says("Silence.");
    let model = Model::start(script).unwrap();
    let server = make(&home, &model).unwrap().served().service().unwrap();
    let rules = json!([{"permission": "bash", "pattern": "*", "action": "allow"}]);
    let session = server.post("/session", &json!({"permission": rules})).unwrap();
    let session = session["id"].as_str().expect("an id").to_owned();
    prompt(&server, &session, "call the crew");
    let newest = page(&home, &session, &Part::Newest, 50).unwrap();
    let told = |page: &Page| -> Vec<String> {
        let line = |entry: &Entry| match (&entry.text, &entry.tool) {
            (Some(text), _) => format!("{:?}: {text}", entry.role),
            (None, Some(tool)) => {
                format!("{}: {}", tool.name, tool.output.as_deref().unwrap_or_default().trim())
            }
            (None, None) => panic!("{entry:?}"),
        };
        page.entries.iter().map(line).collect()
    };
    assert_eq!(told(&newest), ["User: call the crew", "bash: ahoy", "Assistant: I called."]);
    let after = Part::After(newest.after.clone().expect("a place"));
    assert_eq!(told(&page(&home, &session, &after, 50).unwrap()), [""; 0]);
    prompt(&server, &session, "and now?");
    let more = page(&home, &session, &after, 50).unwrap();
    assert_eq!(told(&more), ["User: and now?", "Assistant: Silence."]);
    let last = page(&home, &session, &Part::Newest, 1).unwrap();
    assert_eq!(told(&last), ["Assistant: Silence."]);
    let before = Part::Before(last.before.clone().expect("more"));
    assert_eq!(told(&page(&home, &session, &before, 1).unwrap()), ["User: and now?"]);
    assert_eq!(page(&home, "ses_nobody", &Part::Newest, 1), Err(Unread::NoTranscript));
}

#[test]
fn what_was_said_to_opencode_is_read_in_pages() {
    what_was_said_is_read_in_pages(Client::opencode);
}

#[test]
fn what_was_said_to_kilo_is_read_in_pages() {
    what_was_said_is_read_in_pages(Client::kilo);
}

#[test]
fn what_is_no_database_is_told() {
    let home = Home::new().unwrap();
    home.write(".local/share/opencode/opencode.db", &"no database ".repeat(100)).unwrap();
    home.write(".local/share/kilo/kilo.db/is-a-folder", "").unwrap();
    let history = read(&home);
    assert!(history.ledger().is_empty());
    let [trouble] = history.troubles() else { panic!("{:?}", history.troubles()) };
    assert!(trouble.what.contains("no database we can read"), "{trouble:?}");
}
