//! `spec/driven-names.md`, both ways: what it names is in the code, where it lists all of a kind
//! nothing is missing, and the tests that it names are there.

use std::collections::BTreeSet;

use qd_session::decision::RetryTarget;
use qd_session::machine::{
    AgentError, Change, ErrorCode, ErrorSource, Event, FailurePolicy, HookConfig, HookLifecycle,
    Kind, Reason, RunStatus, Shown, State, StateChanged, ToolCall, ToolFilter, ToolLifecycle, Turn,
};
use qd_session::moment::Timestamp;
use qd_session::seed::Seed;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const PAGE: &str = include_str!("../../../../spec/driven-names.md");

type Names = BTreeSet<String>;

/// What stands behind a section.
enum Coded {
    /// Nothing else is of this kind.
    All(Names),
    /// The code has more than the section tells.
    Among(Names),
    /// Words for what tests do; another crate's test reads it, or none could.
    Elsewhere,
}

struct Row {
    name: String,
    here: String,
    held_by: String,
}

fn section_of(page: &str, heading: &str) -> Vec<Vec<String>> {
    let section = page.split("\n## ").find(|section| section.starts_with(heading));
    let section = section.unwrap_or_else(|| panic!("no section {heading}"));
    let rows = section.lines().filter(|line| line.starts_with('|')).skip(2);
    let cells = |row: &str| row.trim_matches('|').split('|').map(|it| it.trim().into()).collect();
    rows.map(cells).collect()
}

fn sections() -> Vec<(&'static str, Vec<Row>)> {
    let headings = PAGE.split("\n## ").skip(1).filter_map(|section| section.lines().next());
    let row = |cells: Vec<String>| {
        let [name, here, .., held_by] = &cells[..] else { panic!("three cells: {cells:?}") };
        Row { name: name.clone(), here: here.clone(), held_by: held_by.clone() }
    };
    let rows = |heading| section_of(PAGE, heading).into_iter().map(row).collect();
    headings.map(|heading| (heading, rows(heading))).collect()
}

/// Our name in the second column; none for what is not there.
fn ours(here: &str) -> Option<&str> {
    here.strip_prefix('`')?.split('`').next()
}

/// A file of the tree.
#[allow(clippy::disallowed_methods, reason = "the page names tests of every crate")]
fn file(path: &str) -> Option<String> {
    std::fs::read_to_string(format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"))).ok()
}

fn text(path: &str) -> String {
    file(path).unwrap_or_else(|| panic!("no file {path}"))
}

/// Every variant of an enum, as it is spelled: serde names them to whoever asks for another.
fn variants<T: DeserializeOwned>(tag: Option<&str>) -> Names {
    let unknown = tag.map_or_else(|| json!("?"), |tag| json!({ tag: "?" }));
    let Err(error) = serde_json::from_value::<T>(unknown) else { panic!("one is called so") };
    let error = error.to_string();
    error.split('`').skip(1).step_by(2).skip(1).map(str::to_owned).collect()
}

fn camel(names: Names) -> Names {
    let upper = |word: &str| word[..1].to_uppercase() + &word[1..];
    names.iter().map(|name| name.split('_').map(upper).collect()).collect()
}

/// The fields of a sample that has all of them.
fn fields(sample: &impl Serialize) -> Names {
    let written = serde_json::to_value(sample).expect("it is JSON");
    written.as_object().expect("it has fields").keys().cloned().collect()
}

fn sample<T: DeserializeOwned>(written: Value) -> T {
    serde_json::from_value(written).expect("a sample")
}

fn tool_lifecycle() -> ToolLifecycle {
    sample(json!({"runId": "r", "callId": "c", "toolName": "t", "mutating": true,
        "status": "failed", "isError": true, "attempt": 1, "startedAtMs": 1, "finishedAtMs": 2,
        "error": "e"}))
}

fn hook_lifecycle() -> HookLifecycle {
    sample(json!({"runId": "r", "hookName": "h", "toolRunIds": [], "status": "failed",
        "attempt": 1, "startedAtMs": 1, "finishedAtMs": 2, "error": "e", "output": "o"}))
}

fn state_changed() -> StateChanged {
    sample(json!({"from": "Idle", "to": "Starting", "reason": "spawned", "streamId": "turn_1"}))
}

fn envelope() -> Names {
    let (event_id, session_id) = (Seed(1).change(0), Seed(1).session());
    let change = Change::StateChanged(state_changed());
    let shown = Shown { event_id, timestamp_ms: Timestamp(1), session_id, change };
    fields(&shown).difference(&fields(&state_changed())).cloned().collect()
}

fn hook(more: Value) -> HookConfig {
    let mut hook = json!({"name": "x", "command": ["true"]});
    hook.as_object_mut().expect("fields").extend(more.as_object().expect("fields").clone());
    sample(hook)
}

/// What a hook has that says only what it must.
fn hook_defaults() -> Names {
    let written = serde_json::to_value(hook(json!({}))).expect("JSON");
    let kind = |field: &str| written[field]["type"].as_str().expect("a type").to_owned();
    [kind("failure_policy"), kind("tool_filter"), written["timeout_ms"].to_string()].into()
}

fn carried() -> Names {
    let turn = Turn { id: Seed(1).turn(), attempt: 1, pause: None, interrupting: false };
    let stopped = State::Stopped { exit_code: Some(1), owed: None };
    let shapes = ["DriveView", "SessionWanted"].map(shape).into_iter().flatten();
    shapes.chain(fields(&turn)).chain(fields(&stopped)).collect()
}

/// The fields of a shape that the server describes to the page.
fn shape(name: &str) -> Names {
    let wire = text("web/src/wire.gen.ts");
    let from = wire.split(&format!("export interface {name} {{\n")).nth(1);
    let body = from.and_then(|rest| rest.split("\n}").next());
    let lines = body.unwrap_or_else(|| panic!("no shape {name}")).lines();
    let field = |line: &str| Some(line.trim().split_once(':')?.0.trim_end_matches('?').to_owned());
    lines.filter(|line| !line.trim_start().starts_with(['/', '*'])).filter_map(field).collect()
}

fn chat_fields() -> Names {
    let shapes = ["ChatPrompt", "ChatTools", "ToolDecision", "ChatConfigWanted"];
    let asked = shapes.map(shape).into_iter().flatten();
    let line = ["type", "tool_name", "parameters", "tool_id"].map(str::to_owned);
    asked.chain(shape("ChatConfig")).chain(shape("ToolApprovalRequired")).chain(line).collect()
}

fn routes() -> Names {
    let table = text("crates/server/src/routes.rs");
    let calls = table.split("\n    route(\"").skip(1);
    let route = |call: &str| {
        let words: Vec<&str> = call.split('"').collect();
        format!("{} {}", words[0], words[2])
    };
    calls.map(route).collect()
}

/// The first column of a table of another page.
fn listed(page: &str, heading: &str) -> Names {
    let page = text(&format!("spec/{page}"));
    let name = |row: Vec<String>| row[0].trim_matches('`').to_owned();
    section_of(&page, heading).into_iter().map(name).collect()
}

fn stream_fields() -> Names {
    let rows = section_of(&text("spec/stream-events.md"), "Types");
    let fields = rows.iter().flat_map(|row| row[1].split(", "));
    fields.map(|field| field.trim_end_matches('?').to_owned()).collect()
}

fn prefixes() -> Names {
    let seed = Seed(7);
    let ids = [
        seed.session().to_string(),
        seed.turn().to_string(),
        seed.run(0).to_string(),
        seed.hook_run(0).to_string(),
        seed.change(0).to_string(),
        seed.decision().to_string(),
    ];
    ids.iter().map(|id| id[..=id.find('_').expect("a prefix")].to_owned()).collect()
}

/// Where the types are, or are named for others.
const TYPES: [&str; 5] = [
    "crates/session/src/decision/mod.rs",
    "crates/session/src/machine/mod.rs",
    "crates/session/src/id.rs",
    "crates/session/src/snapshot.rs",
    "crates/broker/src/card.rs",
];

fn coded(section: &str) -> Coded {
    use Coded::{All, Among, Elsewhere};
    let with = |names: Names, more: Names| All(names.into_iter().chain(more).collect());
    let words = |path: &str| {
        let is_other = |letter: char| !letter.is_alphanumeric() && !"_:".contains(letter);
        text(path).split(is_other).map(str::to_owned).collect::<Names>()
    };
    match section {
        "Types" => Among(TYPES.into_iter().flat_map(words).collect()),
        "States" => All(variants::<Kind>(None)),
        "What a state carries" => Among(carried()),
        "Events" => All(camel(variants::<Event>(Some("type")))),
        "Actions" => All(camel(variants::<qd_session::machine::Action>(Some("type")))),
        "Retry targets" => All(variants::<RetryTarget>(Some("kind"))),
        "Tool call" => All(fields(&sample::<ToolCall>(json!({"callId": "c", "name": "bash",
            "arguments": {}, "mutating": true})))),
        "Tools" => All(listed("tools.md", "").into_iter().filter(|it| !it.contains(' ')).collect()),
        "Tool runs" => All(fields(&tool_lifecycle())),
        "Hook runs" => All(fields(&hook_lifecycle())),
        "Run statuses" => All(variants::<RunStatus>(None)),
        "Hook configuration" => {
            with(fields(&hook(json!({"env_allow": ["A"]}))), ["hooks".to_owned()].into())
        }
        "Hook failure policies" => with(
            variants::<FailurePolicy>(Some("type")),
            fields(&FailurePolicy::Retry { max_attempts: 2, delay_ms: 1 }),
        ),
        "Hook filters" => with(
            variants::<ToolFilter>(Some("type")),
            fields(&ToolFilter::ToolNames { names: Vec::new() }),
        ),
        "Hook defaults" => All(hook_defaults()),
        "Channels" => Among(words("crates/server/src/feed.rs")),
        "State events" => All(variants::<Change>(Some("type"))),
        "State event envelope" => All(envelope()),
        "Fields of state_changed" => All(fields(&state_changed())),
        "Fields of session_error" => {
            All(fields(&sample::<AgentError>(json!({"code": "usage_limit",
            "message": "m", "retryable": false, "source": "harness", "resetsAt": 1}))))
        }
        "Reasons" => All(variants::<Reason>(None)),
        "Error codes" => All(variants::<ErrorCode>(None)),
        "Error sources" => All(variants::<ErrorSource>(None)),
        "Ids" => All(prefixes()),
        "Commands" => Among(routes()),
        "Timeouts, retries and delays" => Among(listed("limits.md", "")),
        "Log fields" => Among(words("crates/telemetry/src/log.rs")),
        "Metrics" => {
            All(listed("metrics.md", "").into_iter().filter(|it| !it.starts_with("qd_")).collect())
        }
        "Stream event types" => All(listed("stream-events.md", "Types")),
        "Stream event fields" => All(stream_fields()),
        "Chat routes" => {
            All(routes().into_iter().filter(|route| route.contains("/api/chat/")).collect())
        }
        "Chat fields" => All(chat_fields()),
        // `crates/harness/tests/native/names.rs` reads these.
        "Stream event envelope" | "Stream event words" | "Stream error codes" => Elsewhere,
        "Decisions" | "Parts" | "Tool outputs" | "Promises" | "Traces" | "Records"
        | "Approvals" | "Chat words" => Elsewhere,
        other => panic!("the test knows no section {other:?}"),
    }
}

#[test]
fn what_the_page_calls_things_is_what_the_code_calls_them() {
    for (section, rows) in sections() {
        let named: Names =
            rows.iter().filter_map(|row| ours(&row.here)).map(str::to_owned).collect();
        let (known, is_whole) = match coded(section) {
            Coded::All(known) => (known, true),
            Coded::Among(known) => (known, false),
            Coded::Elsewhere => continue,
        };
        let gone: Vec<&String> = named.difference(&known).collect();
        assert!(gone.is_empty(), "{section}: not in the code: {gone:?}");
        let unnamed: Vec<&String> = known.difference(&named).collect();
        assert!(!is_whole || unnamed.is_empty(), "{section}: not on the page: {unnamed:?}");
    }
}

#[test]
fn every_row_has_a_test_that_exists() {
    for (section, rows) in sections() {
        assert!(!rows.is_empty(), "{section} is empty");
        for Row { name, here, held_by } in rows {
            let place = format!("{section}: {name} → {here}: {held_by}");
            assert!(here.starts_with('—') || !here.is_empty(), "{place}");
            let (path, function) = held_by.split_once("::").unwrap_or_else(|| panic!("{place}"));
            let (path, is_page) = match path.strip_prefix("web: ") {
                Some(path) => (format!("web/{path}"), true),
                None => (format!("crates/{}", path.replacen(": ", "/", 1)), false),
            };
            let text = file(&path).unwrap_or_else(|| panic!("no such file: {place}"));
            let is_there = match is_page {
                true => text.contains(&format!("test(\"{function}\",")),
                false => is_test(&text, function),
            };
            assert!(is_there, "no such test: {place}");
        }
    }
}

/// A function of that name, with a test's attribute among what stands directly above it.
fn is_test(text: &str, function: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let begins = |line: &str| {
        let line = line.strip_prefix("async ").unwrap_or(line);
        line.strip_prefix("fn ")
            .and_then(|rest| rest.strip_prefix(function))
            .is_some_and(|rest| rest.starts_with('('))
    };
    let found = lines.iter().position(|line| begins(line));
    let above = found.into_iter().flat_map(|at| lines[..at].iter().rev());
    let mut above = above.take_while(|line| line.starts_with("#[") || line.starts_with("//"));
    above.any(|line| line.starts_with("#[test]") || line.starts_with("#[tokio::test"))
}

/// Paths of the parts, and numbers behind the limits.
#[test]
fn parts_are_there_and_limits_have_their_values() {
    for (section, rows) in sections() {
        for Row { here, .. } in rows {
            let Some(name) = ours(&here) else { continue };
            match section {
                "Parts" => {
                    let at = format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"));
                    assert!(std::path::Path::new(&at).exists(), "no {name}");
                }
                "Timeouts, retries and delays" => {
                    let limits = section_of(&text("spec/limits.md"), "");
                    let value = limits.iter().find(|row| row[0] == name).map(|row| &row[1]);
                    let value = value.unwrap_or_else(|| panic!("no limit {name}"));
                    let rest = here[name.len() + 2..].trim_start();
                    assert!(rest.starts_with(&**value), "{here}: it is {value}");
                }
                _ => {}
            }
        }
    }
}
