//! What the daemon answers is what its document says.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::world::{GENEROUS, Running, World};

/// A daemon's own words about itself, and a way to hold its answers against them.
struct Contract {
    socket: PathBuf,
    document: Value,
}

impl Contract {
    fn of(socket: &Path) -> Self {
        let document = body(ask(socket, "/api/openapi.json"));
        Self { socket: socket.to_owned(), document }
    }

    /// The answer to a path that the document spells `route`.
    fn holds(&self, route: &str, path: &str) -> Value {
        let operation = &self.document["paths"][route]["get"];
        let schema = &operation["responses"]["200"]["content"]["application/json"]["schema"];
        assert!(schema.is_object(), "the document does not know {route}");
        let answer = body(ask(&self.socket, path));
        self.fits(path, schema, &answer);
        answer
    }

    fn fits(&self, what: &str, schema: &Value, answer: &Value) {
        let mut whole = schema.clone();
        whole["components"] = self.document["components"].clone();
        let validator = jsonschema::validator_for(&whole).expect("a schema");
        let wrong: Vec<String> = validator
            .iter_errors(answer)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert_eq!(wrong, [""; 0], "{what} answers {answer}");
    }

    fn fits_shape(&self, shape: &str, answer: &Value) {
        let schema = json!({ "$ref": format!("#/components/schemas/{shape}") });
        self.fits(shape, &schema, answer);
    }
}

fn ask(socket: &Path, path: &str) -> UnixStream {
    let mut stream = UnixStream::connect(socket).expect("it listens");
    stream.set_read_timeout(Some(GENEROUS)).expect("patience");
    write!(stream, "GET {path} HTTP/1.0\r\nhost: localhost\r\n\r\n").expect("sent");
    stream
}

fn body(mut stream: UnixStream) -> Value {
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    assert!(head.contains(" 200 "), "{head}");
    serde_json::from_str(body).expect("JSON")
}

/// The next event of a stream, by its name.
fn next_event(stream: &mut impl BufRead) -> (String, Value) {
    let mut name = String::new();
    loop {
        let mut line = String::new();
        assert!(stream.read_line(&mut line).expect("it speaks") > 0, "the stream ended");
        if let Some(event) = line.strip_prefix("event:") {
            name = event.trim().to_owned();
        } else if let Some(data) = line.strip_prefix("data:") {
            return (name, serde_json::from_str(data).expect("JSON"));
        }
    }
}

#[test]
fn a_board_of_every_agent_is_as_the_document_says() {
    let world = World::new();
    let mut demo =
        Running::start(world.qd(&["demo", "--no-watch", "--speed", "20"]), "The demo listens");
    demo.next_line();
    let line = demo.next_line();
    let runtime = line.split_whitespace().find_map(|word| word.strip_prefix("XDG_RUNTIME_DIR="));
    let socket = Path::new(runtime.expect("its folder")).join("quarterdeck/qd.sock");
    let contract = Contract::of(&socket);
    contract.holds("/api/health", "/api/health");
    contract.holds("/api/live/summary", "/api/live/summary");

    let mut stream = BufReader::new(ask(&socket, "/api/live/stream"));
    let mut changed = 0;
    while changed < 200 {
        let (name, data) = next_event(&mut stream);
        let shape = match name.as_str() {
            "snapshot" => "SessionList",
            "session_changed" => "Card",
            "session_removed" => "Removed",
            "summary" => "Summary",
            other => panic!("the document names no {other}"),
        };
        contract.fits_shape(shape, &data);
        changed += u32::from(name == "session_changed");
    }

    let list = contract.holds("/api/live/sessions", "/api/live/sessions");
    let sessions = list["sessions"].as_array().expect("sessions");
    assert!(sessions.len() >= 3, "{list}");
    for card in sessions {
        let id = card["sessionId"].as_str().expect("an id");
        let path = format!("/api/live/sessions/{id}");
        contract.holds("/api/live/sessions/{id}", &path);
    }
    assert_eq!(demo.stop(Signal::INT), Some(0));
}

#[test]
fn what_was_said_and_spent_is_as_the_document_says() {
    let world = World::new();
    super::usage::session(&world, "s1", 3);
    let daemon = world.daemon();
    let contract = Contract::of(&world.socket());
    let found = || contract.holds("/api/history", "/api/history");
    while found()["sessions"].as_array().is_none_or(Vec::is_empty) {}
    let usage = |by: &str| contract.holds("/api/usage", &format!("/api/usage?by={by}"));
    while usage("session")["rows"].as_array().is_none_or(Vec::is_empty) {}
    for by in ["day", "week", "month", "model", "project", "harness"] {
        assert_eq!(usage(by)["rows"].as_array().map(Vec::len), Some(1), "{by}");
    }
    let id = found()["sessions"][0]["sessionId"].as_str().expect("an id").to_owned();
    let path = format!("/api/live/sessions/{id}/transcript");
    let page = contract.holds("/api/live/sessions/{id}/transcript", &path);
    assert_eq!(page["entries"].as_array().map(Vec::len), Some(4), "{page}");
    contract.holds("/api/browsers", "/api/browsers");
    contract.holds("/api/push/key", "/api/push/key");
    contract.holds("/api/push/subscriptions", "/api/push/subscriptions");
    assert_eq!(daemon.stop(Signal::INT), Some(0));
}
