//! The server on a real port and a real socket, over a real loop: who is let in, what is taken,
//! and what the stream says.

mod acting;
mod attacks;
mod floods;
mod metrics;
mod page;
mod push;
mod sign_in;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use qd_daemon::runtime::{Handle, Runtime, Settings};
use qd_notices::{Notices, Settings as NoticeSettings};
use qd_server::{Doors, HEADER, Need, PAGE_ROUTES, ROUTES, Records, Route, Scope, Server, Tokens};
use qd_session::operator::notice::Rules;
use qd_sources::hook_intake;
use serde_json::{Value, json};
use tokio::net::UnixListener;
use tokio::runtime::Runtime as Tokio;
use tokio::sync::watch;

const PATIENCE: Duration = Duration::from_secs(60);

/// A daemon of its own. Requests are made from this thread, so they may block.
struct Daemon {
    folder: PathBuf,
    port: u16,
    tokens: Tokens,
    stop: watch::Sender<bool>,
    tokio: Option<Tokio>,
}

impl Daemon {
    fn start(name: &str) -> Self {
        Self::with(name, |_| {})
    }

    /// A loop that is prepared before it runs.
    fn with(name: &str, prepare: impl FnOnce(&mut Runtime)) -> Self {
        let folder = std::env::temp_dir().join(format!("qd-server-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        let tokio = Tokio::new().expect("a runtime");
        let tokens = Tokens::open(&folder.join("tokens")).expect("tokens");
        let (stop, stopped) = watch::channel(false);
        let port = tokio.block_on(async {
            let settings = Settings {
                home: folder.clone(),
                environment: BTreeMap::new(),
                state: folder.join("state"),
                opencode_servers: Vec::new(),
                client_folders: Vec::new(),
                layers: folder.join("config/layers.toml"),
                policy: folder.join("config/policy.toml"),
            };
            let opened = Runtime::open(&settings, stopped.clone());
            let (mut runtime, handle) = opened.expect("it opens");
            prepare(&mut runtime);
            let socket = hook_intake::bind(&folder.join("qd.sock")).expect("a socket");
            socket.set_nonblocking(true).expect("a socket that can wait");
            let socket = UnixListener::from_std(socket).expect("a socket of the runtime");
            let listener = Server::listen(0).await.expect("a port");
            let port = listener.local_addr().expect("an address").port();
            tokio::spawn(runtime.run());
            let hosts = vec!["box.example.ts.net".to_owned()];
            let doors = Doors { socket, port: listener, tokens: tokens.clone(), hosts };
            let notices = Some(notices(handle.clone(), &folder));
            let records = Records { notices, ..Records::default() };
            tokio::spawn(Server::serve(handle, records, doors, stopped));
            port
        });
        Self { folder, port, tokens, stop, tokio: Some(tokio) }
    }

    fn request(&self, method: &str, path: &str) -> Request<'_> {
        let host = format!("127.0.0.1:{}", self.port);
        let headers = vec![("host".to_owned(), host), ("connection".to_owned(), "close".into())];
        let (method, path) = (method.to_owned(), path.to_owned());
        Request { daemon: self, method, path, headers, body: Vec::new() }
    }

    /// A hook of Claude Code, until it is taken.
    fn hook(&self, session: &str, event: &str) {
        let payload = json!({"session_id": session, "hook_event_name": event, "prompt": "go"});
        let request = self.request("POST", "/api/live/hook").token(Scope::Ingest);
        request.body(payload.to_string()).json();
    }

    fn socket(&self) -> UnixStream {
        let stream = UnixStream::connect(self.folder.join("qd.sock")).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("patience");
        stream
    }
}

/// Those who tell, with nobody to tell.
fn notices(handle: Handle, folder: &Path) -> Notices {
    let settings = NoticeSettings {
        state: folder.join("state/notices"),
        rules: Rules::default(),
        contact: "mailto:ann@example.org".to_owned(),
        link: "http://127.0.0.1".to_owned(),
        webhooks: Vec::new(),
        ntfy: Vec::new(),
        desktop: false,
        allow_private: Vec::new(),
        offset: Box::new(|_| 0),
    };
    Notices::start(handle, settings).expect("they start")
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(tokio) = self.tokio.take() {
            tokio.shutdown_timeout(Duration::from_secs(5));
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

struct Request<'a> {
    daemon: &'a Daemon,
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request<'_> {
    fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(known, _)| known != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    fn token(self, scope: Scope) -> Self {
        let bearer = format!("Bearer {}", self.daemon.tokens.token(scope));
        self.with("authorization", &bearer)
    }

    fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        let len = self.body.len().to_string();
        self.with("content-length", &len)
    }

    fn open(self) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.daemon.port)).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("patience");
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += "\r\n";
        stream.write_all(head.as_bytes()).expect("sent");
        stream.write_all(&self.body).expect("sent");
        stream
    }

    fn listen(self) -> Reader {
        Reader { stream: self.open(), text: String::new() }
    }

    fn send(self) -> (u16, String) {
        answer(self.open())
    }

    fn json(self) -> Value {
        let (status, body) = self.send();
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).expect("JSON")
    }

    fn refused(self) -> (u16, String) {
        let (status, body) = self.send();
        let problem: Value = serde_json::from_str(&body).unwrap_or_default();
        (status, problem["code"].as_str().unwrap_or_default().to_owned())
    }
}

/// Somebody who reads a stream.
struct Reader {
    stream: TcpStream,
    text: String,
}

impl Reader {
    /// All that was read until these words came.
    fn until(&mut self, wanted: &str) -> String {
        let mut buffer = [0; 4_096];
        while !self.text.contains(wanted) {
            let count = self.stream.read(&mut buffer).expect("more");
            assert!(count > 0, "ended before {wanted:?}: {}", self.text);
            self.text += &String::from_utf8_lossy(&buffer[..count]);
        }
        self.text.clone()
    }
}

fn answer(mut stream: impl Read) -> (u16, String) {
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, body.to_owned())
}

fn path(route: &Route) -> String {
    route.path.replace("{id}", "nobody")
}

#[test]
fn every_route_refuses_whoever_should_not_be_there() {
    let daemon = Daemon::start("guard");
    for route in ROUTES.iter().chain(&PAGE_ROUTES) {
        let plain = || daemon.request(route.method, &path(route)).body("{}");
        let admin = || plain().token(Scope::Admin);
        let host = format!("evil.example:{}", daemon.port);
        assert_eq!(
            admin().with("host", &host).refused(),
            (403, "foreign_host".into()),
            "{route:?}"
        );
        let origin = admin().with("origin", "http://evil.example");
        assert_eq!(origin.refused(), (403, "foreign_origin".into()), "{route:?}");
        let site = admin().with("sec-fetch-site", "cross-site");
        assert_eq!(site.refused(), (403, "foreign_origin".into()), "{route:?}");
        if route.need == Need::Code {
            assert_eq!(plain().refused(), (415, "not_json".into()), "{route:?}");
            let json = plain().with("content-type", "application/json");
            assert_eq!(json.refused(), (403, "no_header".into()), "{route:?}");
        }
        let Need::Scope(needed) = route.need else { continue };
        assert_eq!(plain().refused(), (401, "no_token".into()), "{route:?}");
        let cookie =
            plain().with("cookie", &format!("token={}", daemon.tokens.token(Scope::Admin)));
        assert_eq!(cookie.refused(), (401, "no_token".into()), "{route:?}");
        let wrong = plain().with("authorization", "Bearer 0123");
        assert_eq!(wrong.refused(), (401, "wrong_token".into()), "{route:?}");
        for weak in Scope::ALL.into_iter().filter(|scope| *scope < needed) {
            assert_eq!(plain().token(weak).refused(), (403, "weak_scope".into()), "{route:?}");
        }
        if route.method != "GET" && needed > Scope::Ingest {
            assert_eq!(admin().refused(), (415, "not_json".into()), "{route:?}");
            let json = admin().with("content-type", "application/json");
            assert_eq!(json.refused(), (403, "no_header".into()), "{route:?}");
        }
    }
    let (status, code) = daemon.request("GET", "/api/else").token(Scope::Admin).refused();
    assert_eq!((status, code.as_str()), (404, "no_such_route"));
    let put = daemon.request("PUT", "/api/live/sessions").token(Scope::Admin);
    assert!((400..500).contains(&put.send().0));
}

#[test]
fn a_hook_that_is_answered_is_on_the_board() {
    let daemon = Daemon::start("hook");
    let payload = r#"{"session_id":"s-1","hook_event_name":"UserPromptSubmit","prompt":"go"}"#;
    let hook = daemon.request("POST", "/api/live/hook").token(Scope::Ingest).body(payload);
    assert_eq!(hook.json(), json!({}));
    let codex = daemon.request("POST", "/api/live/hook?harness=codex").token(Scope::Ingest);
    let payload = r#"{"session_id":"c-1","turn_id":"t","hook_event_name":"UserPromptSubmit","prompt":"go","model":"m","permission_mode":"default","cwd":"/w"}"#;
    assert_eq!(codex.body(payload).json(), json!({}));
    let nobody = daemon.request("POST", "/api/live/hook?harness=nobody").token(Scope::Ingest);
    assert_eq!(nobody.body("{}").refused(), (400, "unknown_harness".into()));
    let huge = daemon.request("POST", "/api/live/hook").token(Scope::Ingest);
    assert_eq!(huge.body(vec![b' '; (64 << 20) + 1]).send().0, 413);

    let list = daemon.request("GET", "/api/live/sessions").token(Scope::Observe).json();
    let ids: Vec<&str> = list["sessions"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|s| s["vendorId"].as_str())
        .collect();
    assert_eq!((ids.len(), ids.contains(&"s-1"), ids.contains(&"c-1")), (2, true, true));
    let summary = daemon.request("GET", "/api/live/summary").token(Scope::Observe).json();
    assert_eq!(summary, list["summary"]);
    let one = daemon.request("GET", "/api/live/sessions/s-1").token(Scope::Observe).json();
    assert_eq!(one["card"]["agentState"]["state"], "thinking");
    assert_eq!(
        one["card"]["agentState"]["rule"],
        "a turn began and has not ended, and no tool runs"
    );
    let none = daemon.request("GET", "/api/live/sessions/zzz").token(Scope::Observe);
    assert_eq!(none.refused(), (404, "no_such_session".into()));
    let health = daemon.request("GET", "/api/health").token(Scope::Observe).json();
    assert_eq!((&health["hooks"], &health["port"]), (&json!(2), &json!(daemon.port)));
    assert_eq!(daemon.request("GET", "/healthz").json(), json!({"status": "ok"}));
}

/// A body of Claude Code's telemetry from a recording, as JSON.
fn telemetry() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../harness/captured/claude-code");
    let mut captures: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("captures").map(|one| one.expect("one").path()).collect();
    captures.sort();
    let signals = captures.iter().flat_map(|capture| {
        let text = std::fs::read_to_string(capture.join("signals.jsonl")).expect("signals");
        text.lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("JSON"))
            .collect::<Vec<_>>()
    });
    let mut bodies = signals
        .filter(|signal| signal["source"] == "otel")
        .map(|signal| signal["payload"].clone())
        .filter(|body| body.to_string().contains("user_prompt"));
    let body = bodies.next().expect("a recording with telemetry");
    body.as_str().map_or_else(|| body.to_string(), str::to_owned)
}

#[test]
fn telemetry_is_taken_as_json_whole_and_in_chunks() {
    let daemon = Daemon::start("otlp");
    let body = telemetry();
    let whole = daemon.request("POST", "/v1/logs").token(Scope::Ingest);
    let whole = whole.with("content-type", "application/json").body(body.clone());
    assert_eq!(whole.json(), json!({}));
    let list = |daemon: &Daemon| {
        let list = daemon.request("GET", "/api/live/sessions").token(Scope::Observe).json();
        list["sessions"].as_array().expect("a list").len()
    };
    assert_eq!(list(&daemon), 1);

    let again = Daemon::start("otlp-chunks");
    let chunked = again.request("POST", "/v1/logs").token(Scope::Ingest);
    let chunked = chunked.with("content-type", "application/json");
    let mut stream = chunked.with("transfer-encoding", "chunked").open();
    for chunk in body.as_bytes().chunks(100) {
        write!(stream, "{:x}\r\n", chunk.len()).expect("sent");
        stream.write_all(chunk).expect("sent");
        stream.write_all(b"\r\n").expect("sent");
    }
    stream.write_all(b"0\r\n\r\n").expect("sent");
    assert_eq!(answer(stream), (200, "{}".to_owned()));
    assert_eq!(list(&again), 1);

    let broken =
        again.request("POST", "/v1/traces").token(Scope::Ingest).body(b"\xff\xff".to_vec());
    assert_eq!(broken.refused(), (400, "unreadable".into()));
}

#[test]
fn the_socket_takes_frames_and_answers_commands() {
    let daemon = Daemon::start("socket");
    let payload = r#"{"session_id":"s-1","hook_event_name":"UserPromptSubmit","prompt":"go"}"#;
    let sum = payload.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    let frame = format!(
        "qd1 send id={:032x} at=1794768000000 seq=1 harness=claude-code sum={sum:016x} len={}\n{payload}",
        7,
        payload.len()
    );
    let mut stream = daemon.socket();
    let mut ack = [0];
    // In two pieces, and the same frame twice.
    stream.write_all(&frame.as_bytes()[..3]).expect("sent");
    stream.write_all(&frame.as_bytes()[3..]).expect("sent");
    stream.read_exact(&mut ack).expect("answered");
    assert_eq!(ack, [qd_hook_wire::ACK]);
    stream.write_all(frame.as_bytes()).expect("sent");
    stream.read_exact(&mut ack).expect("answered");
    assert_eq!(ack, [qd_hook_wire::ACK]);
    stream.write_all(b"qd1 nonsense\n").expect("sent");
    stream.read_exact(&mut ack).expect("answered");
    assert_eq!(ack, [qd_hook_wire::REFUSAL]);
    assert_eq!(stream.read(&mut ack).expect("closed"), 0);

    let mut command = daemon.socket();
    let get = "GET /api/live/sessions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    command.write_all(get.as_bytes()).expect("sent");
    let (status, body) = answer(command);
    let list: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!((status, list["sessions"].as_array().map(Vec::len)), (200, Some(1)));

    // One that says nothing at all keeps nobody else from being served.
    let _silent = daemon.socket();
    let mut garbage = daemon.socket();
    garbage.write_all(&[0xff; 4_096]).expect("sent");
    let (status, _) = answer(garbage);
    assert!(status == 400 || status == 0, "{status}");
    assert_eq!(daemon.request("GET", "/healthz").send().0, 200);
}

#[test]
fn the_stream_begins_with_a_snapshot_and_tells_each_change() {
    let daemon = Daemon::start("stream");
    let mut reader = daemon.request("GET", "/api/live/stream").token(Scope::Observe).listen();
    reader.until("event: snapshot");
    daemon.hook("s-1", "UserPromptSubmit");
    reader.until("event: session_changed");
    let told = reader.until("event: summary");
    assert!(told.contains(r#""autonomousCount":1"#), "{told}");

    let dismissed = daemon
        .request("POST", "/api/sessions/s-1/dismiss")
        .token(Scope::Operate)
        .with("content-type", "application/json")
        .with(HEADER, "1")
        .body("{}");
    assert_eq!(dismissed.json(), json!({"dismissed": true}));
}

#[test]
fn who_comes_back_to_the_stream_gets_what_he_missed_and_nothing_twice() {
    let daemon = Daemon::start("resume");
    let mut reader = daemon.request("GET", "/api/live/stream").token(Scope::Observe).listen();
    reader.until("event: snapshot");
    daemon.hook("s-1", "UserPromptSubmit");
    let last = last_id(&reader.until("autonomousCount\":1"));
    drop(reader);
    daemon.hook("s-2", "UserPromptSubmit");
    let again = daemon.request("GET", "/api/live/stream").token(Scope::Observe);
    let told = again.with("last-event-id", &last).listen().until("autonomousCount\":2");
    assert!(told.contains("s-2") && !told.contains("s-1"), "{told}");
    assert!(!told.contains("event: snapshot"), "{told}");

    for stranger in ["1", "0-1", "ffff-1", &format!("{}9", last), "?", ""] {
        let again = daemon.request("GET", "/api/live/stream").token(Scope::Observe);
        let told = again.with("last-event-id", stranger).listen().until("\n\n");
        assert!(told.contains("event: snapshot"), "{stranger:?}: {told}");
    }
}

#[test]
fn readers_are_told_that_the_daemon_stops() {
    let daemon = Daemon::start("goodbye");
    let mut reader = daemon.request("GET", "/api/live/stream").token(Scope::Observe).listen();
    reader.until("event: snapshot");
    daemon.stop.send_replace(true);
    let told = reader.until("goodbye");
    assert!(reader.until("stopping").contains("reason"), "{told}");
}

fn last_id(told: &str) -> String {
    let mut ids = told.lines().rev().filter_map(|line| line.strip_prefix("id: "));
    ids.next().expect("an id").to_owned()
}

/// A hook of a Claude Code session whose transcript lies in the daemon's folder.
fn hook(daemon: &Daemon, transcript: &Path, event: &str, more: Value) {
    let mut payload = json!({
        "session_id": "s-1",
        "hook_event_name": event,
        "transcript_path": transcript,
        "cwd": "/w",
    });
    for (key, value) in more.as_object().expect("fields") {
        payload[key] = value.clone();
    }
    let hook = daemon.request("POST", "/api/live/hook").token(Scope::Ingest);
    assert_eq!(hook.body(payload.to_string()).json(), json!({}));
}

#[test]
fn one_session_is_told_with_its_runs_its_spans_and_its_evidence() {
    let daemon = Daemon::start("detail");
    let transcript = daemon.folder.join("s-1.jsonl");
    let call = json!({"tool_name": "Bash", "tool_use_id": "c1", "tool_input": {"command": "ls"}});
    hook(&daemon, &transcript, "UserPromptSubmit", json!({"prompt": "go"}));
    hook(&daemon, &transcript, "PreToolUse", call);
    let detail = || daemon.request("GET", "/api/live/sessions/s-1").token(Scope::Observe).json();
    let running = detail();
    assert_eq!(running["card"]["vendorId"], "s-1");
    assert_eq!(running["card"]["agentState"]["state"], "acting");
    assert_eq!(running["monitorView"], json!({"state": "active", "subState": "tool_use"}));
    assert_eq!(running["managerView"]["state"], "streaming");
    assert_eq!(running["managerView"]["showSpinner"], true);
    let run = &running["runs"][0];
    assert_eq!(
        (&run["id"], &run["name"], &run["detail"]),
        (&json!("c1"), &json!("Bash"), &json!("ls"))
    );
    assert!(run["startedAt"].is_u64() && run["endedAt"].is_null() && run["outcome"].is_null());
    let last = |detail: &Value| detail["groups"].as_array().and_then(|all| all.last().cloned());
    let span = last(&running).expect("a span");
    assert_eq!((&span["group"], &span["state"]), (&json!("autonomous"), &json!("acting")));
    assert!(span["from"].is_u64() && span["to"].is_null());
    let evidence = running["evidence"].as_array().expect("lines");
    assert!(evidence.iter().any(|line| line["text"] == "tool started: Bash ls"), "{evidence:?}");
    assert!(evidence.iter().all(|line| line["source"] == "hook" && line["at"].is_u64()));

    let done = json!({"tool_name": "Bash", "tool_use_id": "c1", "tool_input": {"command": "ls"},
        "tool_response": {"stdout": "x"}});
    hook(&daemon, &transcript, "PostToolUse", done);
    let over = detail();
    assert_eq!(over["runs"][0]["outcome"], "ok");
    assert!(over["runs"][0]["endedAt"].is_u64());
}

#[test]
fn a_transcript_is_paged_and_nothing_else_is_read() {
    let daemon = Daemon::start("transcript");
    // Where its client keeps transcripts.
    let project = daemon.folder.join(".claude/projects/p");
    std::fs::create_dir_all(&project).expect("a folder");
    let transcript = project.join("s-1.jsonl");
    let page = |query: &str| {
        let path = format!("/api/live/sessions/s-1/transcript{query}");
        daemon.request("GET", &path).token(Scope::Observe)
    };
    assert_eq!(page("").refused(), (404, "no_such_session".into()));
    hook(&daemon, &transcript, "UserPromptSubmit", json!({"prompt": "go"}));
    assert_eq!(page("").refused(), (404, "no_transcript".into()));

    let line = |n: usize, text: &str| {
        json!({"type": "user", "uuid": format!("u{n}"), "timestamp": "2026-11-15T19:00:00.000Z",
            "message": {"content": text}})
    };
    let script = "<b>hi</b><script>alert(1)</script>";
    let lines: Vec<String> = (0..5).map(|n| format!("{}\n", line(n, script))).collect();
    std::fs::write(&transcript, lines.concat()).expect("written");
    let newest = page("?limit=2").json();
    let ids = |page: &Value| -> Vec<String> {
        let entries = page["entries"].as_array().expect("entries");
        entries.iter().filter_map(|entry| entry["id"].as_str()).map(str::to_owned).collect()
    };
    assert_eq!(ids(&newest), ["u3", "u4"]);
    assert_eq!(newest["more"], true);
    let expected = json!({"id": "u3", "at": 1_794_769_200_000_u64, "role": "user", "text": script});
    assert_eq!(newest["entries"][0], expected);
    let before = newest["before"].as_str().expect("a cursor");
    let older = page(&format!("?limit=9&before={before}")).json();
    assert_eq!(
        (ids(&older).len(), &older["more"], &older["before"]),
        (3, &json!(false), &Value::Null)
    );
    let after = newest["after"].as_str().expect("a cursor").to_owned();
    assert_eq!(ids(&page(&format!("?after={after}")).json()).len(), 0);
    std::fs::write(&transcript, lines.concat() + &format!("{}\n", line(5, "new")))
        .expect("written");
    assert_eq!(ids(&page(&format!("?after={after}")).json()), ["u5"]);

    // A cursor names no file, and neither does a session's name.
    for cursor in ["..%2f..%2fetc%2fpasswd", "%2fetc%2fpasswd", "0", "1.2.3.4", ""] {
        let refused = page(&format!("?before={cursor}")).refused();
        assert_eq!(refused, (400, "bad_cursor".into()), "{cursor}");
    }
    assert_eq!(
        page(&format!("?before={before}&after={after}")).refused(),
        (400, "bad_query".into())
    );
    assert_eq!(page("?limit=many").refused(), (400, "bad_query".into()));
    for name in ["..%2f..%2f..%2fetc%2fpasswd", "%2e%2e", "%2fetc%2fpasswd", "..%00"] {
        let path = format!("/api/live/sessions/{name}/transcript");
        let refused = daemon.request("GET", &path).token(Scope::Observe).refused();
        assert_eq!(refused, (404, "no_such_session".into()), "{name}");
    }
    std::fs::write(&transcript, line(0, "other").to_string() + "\n").expect("written");
    assert_eq!(page(&format!("?after={after}")).refused(), (409, "transcript_changed".into()));
    // A hook may name any file; it must at least be called like a transcript.
    let secret = daemon.folder.join("tokens");
    hook(&daemon, &secret, "UserPromptSubmit", json!({"prompt": "go on"}));
    assert_eq!(page("").refused(), (404, "no_transcript".into()));
}
