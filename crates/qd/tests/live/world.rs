//! A home with the real daemon in it: `qd` as an operator runs it, and what its board shows.
//!
//! Nothing here knows a client. Every wait is for an event and has a bound.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use qd_testbed::{Client, Headless, Home, Model, Script};
use serde_json::{Value, json};

use crate::board::Board;

/// Much longer than anything takes; only a failing test waits for it.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// How often a file or a server is looked at while its change is awaited.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(5);

pub struct World {
    daemon: Option<Headless>,
    board: Option<Board>,
    pub model: Model,
    pub home: Home,
}

impl World {
    /// A home without a daemon.
    pub fn new(script: Script) -> Self {
        let home = Home::new().expect("a home");
        let model = Model::start(script).expect("a model");
        Self { daemon: None, board: None, model, home }
    }

    /// A home in which the daemon was there first.
    pub fn served(script: Script) -> Self {
        let mut world = Self::new(script);
        world.serve();
        world
    }

    /// Starts the daemon and listens to its board.
    pub fn serve(&mut self) {
        self.serve_among(&BTreeMap::new());
    }

    /// The same, with more variables in its environment: those that an agent needs.
    pub fn serve_among(&mut self, variables: &BTreeMap<String, String>) {
        // Each look at the board would be a line.
        let log = "info,qd_server::guard=warn";
        let daemon = self.client(&["serve", "--port", "0"]).variable("QD_LOG", log);
        let daemon = variables.iter().fold(daemon, |it, (name, value)| it.variable(name, value));
        let daemon = daemon.headless().expect("qd serve");
        daemon.wait_for_line("the daemon to listen", |line| line.contains("listens at")).unwrap();
        self.board = Some(Board::at(&self.socket()));
        self.daemon = Some(daemon);
    }

    /// kill -9 of the daemon.
    pub fn kill_daemon(&mut self) {
        self.daemon.take().expect("a daemon").kill().unwrap();
        self.board = None;
    }

    /// `qd hooks install`, and the client's own programs where it looks for them.
    pub fn install_hooks(&self, product: &str, client: &Client) {
        let folder = client.program_path().parent().map(PathBuf::from).unwrap_or_default();
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", folder.display());
        let install = self.client(&["hooks", "install", product, "--yes"]).variable("PATH", path);
        let install = install.headless().expect("qd hooks");
        let status = install.wait_for_exit().unwrap();
        assert!(status.success(), "{:?} {:?}", install.lines(), install.errors());
    }

    /// What the operator lays down.
    pub fn policy(&self, text: &str) {
        self.lay_down("policy.toml", text);
    }

    /// What the operator has set.
    #[allow(dead_code, reason = "the bench sets nothing")]
    pub fn settings(&self, text: &str) {
        self.lay_down("config.toml", text);
    }

    /// A hook of the operator's that runs for observed agents, too: a line for a shell.
    pub fn post_tool_hook(&self, line: &str, failure_policy: &str) {
        self.lay_down("config.toml", "[hooks]\nobserved = true\n");
        let policy = json!({"type": failure_policy});
        let hook =
            json!({"name": "check", "command": ["sh", "-c", line], "failure_policy": policy});
        self.lay_down("hooks.json", &json!({"hooks": [hook]}).to_string());
    }

    fn lay_down(&self, file: &str, text: &str) {
        let folder = self.home.path().join(".config/quarterdeck");
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join(file), text).expect("a file");
    }

    /// The rules that answered, as `qd audit` has them.
    pub fn rules_that_answered(&self) -> Vec<String> {
        let audit = self.must(&["audit", "--json"]);
        let records = audit.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let rules = records.filter_map(|record| record["rule"].as_str().map(str::to_owned));
        rules.collect()
    }

    /// `qd wait`: the session's card when it is in one of the states.
    pub fn wait(&self, session: &str, until: &str) -> Value {
        let seconds = PATIENCE.as_secs().to_string();
        let arguments = ["wait", session, "--until", until, "--timeout", &seconds, "--json"];
        let wait = self.client(&arguments).headless().expect("qd wait");
        let ended = self.finished(&wait, PATIENCE * 2);
        let card = wait.lines().first().and_then(|line| serde_json::from_str(line).ok());
        match card {
            Some(card) if ended => card,
            _ => panic!("{session} is not {until}: {:?}\n{}", wait.errors(), self.picture()),
        }
    }

    /// `qd` with these words: whether it did what was asked, and what it said.
    pub fn qd(&self, arguments: &[&str]) -> (bool, String) {
        let program = self.client(arguments).headless().expect("qd");
        let done = self.finished(&program, PATIENCE);
        let said = [program.lines(), program.errors()].concat().join("\n");
        (done, said)
    }

    /// The same, where it must do it.
    pub fn must(&self, arguments: &[&str]) -> String {
        let (done, said) = self.qd(arguments);
        assert!(done, "qd {arguments:?}: {said}\n{}", self.picture());
        said
    }

    /// Answers a request as the page does: the status, and what was said.
    #[allow(dead_code, reason = "the bench answers nothing")]
    pub fn decide(&self, key: &str, decision: &Value) -> (u16, Value) {
        self.post(&format!("/api/requests/{key}/decision"), &json!({"decision": decision}))
    }

    /// What the page would send.
    #[allow(dead_code, reason = "the bench sends nothing")]
    pub fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let body = body.to_string();
        self.ask(&format!(
            "POST {path} HTTP/1.1\r\nhost: quarterdeck\r\ncontent-type: application/json\r\n\
             x-quarterdeck: 1\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ))
    }

    /// What the page would read.
    #[allow(dead_code, reason = "the bench reads nothing")]
    pub fn get(&self, path: &str) -> Value {
        self.ask(&format!("GET {path} HTTP/1.1\r\nhost: quarterdeck\r\nconnection: close\r\n\r\n"))
            .1
    }

    fn ask(&self, request: &str) -> (u16, Value) {
        let mut stream = UnixStream::connect(self.socket()).expect("the daemon's socket");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.expect("a status"), serde_json::from_str(body).unwrap_or_default())
    }

    /// `qd status --json`: the sessions on the board.
    pub fn status(&self) -> Vec<Value> {
        let status = self.client(&["status", "--json"]).headless().expect("qd status");
        assert!(status.wait_for_exit().unwrap().success(), "{:?}", status.errors());
        let board: Value = serde_json::from_str(&status.lines()[0]).expect("JSON");
        board["sessions"].as_array().cloned().unwrap_or_default()
    }

    /// The sub-state of a session now.
    pub fn state(&self, session: &str) -> String {
        let status = self.status();
        let card = status.iter().find(|card| card["vendorId"] == session);
        let card = card.unwrap_or_else(|| panic!("no {session} in {status:#?}"));
        state(card)
    }

    pub fn board(&self) -> &Board {
        self.board.as_ref().expect("the daemon runs")
    }

    /// The sub-states that were shown of a session, each once in a row.
    pub fn shown(&self, session: &str) -> Vec<String> {
        let mut shown = self.board().states_of(session);
        shown.dedup();
        shown
    }

    /// What the operator would look at, for a failure's message.
    pub fn picture(&self) -> String {
        let mut picture = String::new();
        for card in self.status() {
            let session = card["vendorId"].as_str().unwrap_or_default().to_owned();
            let explain = self.client(&["explain", &session]).headless().expect("qd explain");
            let _ = explain.wait_for_exit();
            let why = explain.lines().join("\n");
            picture.push_str(&format!("{card:#}\nshown: {:?}\n{why}\n", self.shown(&session)));
        }
        let said = self.daemon.as_ref().map(|daemon| daemon.errors().join("\n"));
        picture + &said.unwrap_or_default()
    }

    fn client(&self, arguments: &[&str]) -> Client {
        let qd = Client::program("qd", env!("CARGO_BIN_EXE_qd"), &self.home, &self.model);
        qd.arguments(arguments.iter().copied())
    }

    /// A wait of our own, longer than the testbed's.
    fn finished(&self, program: &Headless, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline {
            if let Ok(status) = program.wait_for_exit() {
                return status.success();
            }
        }
        false
    }

    pub fn socket(&self) -> PathBuf {
        self.home.path().join(".local/state/quarterdeck/qd.sock")
    }
}

/// A page's stream, open for as long as this lives.
#[allow(dead_code, reason = "the bench looks at nothing")]
pub struct Tab {
    stream: UnixStream,
}

#[allow(dead_code, reason = "the bench looks at nothing")]
impl Tab {
    pub fn open(world: &World) -> Self {
        let mut stream = UnixStream::connect(world.socket()).expect("the daemon's socket");
        let request =
            format!("GET /api/live/stream?tab={TAB} HTTP/1.1\r\nhost: quarterdeck\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("asked");
        // Its first byte comes when the tab is known.
        stream.read_exact(&mut [0]).expect("an answer");
        Self { stream }
    }

    /// Somebody has the board before them in this tab, or looks away from it.
    pub fn looks(&self, world: &World, focused: bool) {
        let _open = &self.stream;
        let told = json!({"tab": TAB, "focused": focused, "board": true});
        let (status, said) = world.post("/api/presence", &told);
        assert_eq!(status, 200, "{said}");
    }
}

const TAB: &str = "desk";

/// The sub-state on a card.
pub fn state(card: &Value) -> String {
    card["agentState"]["state"].as_str().unwrap_or_default().to_owned()
}

/// Group and sub-state on a card.
pub fn group_and_state(card: &Value) -> String {
    let group = card["agentState"]["group"].as_str().unwrap_or_default();
    format!("{group}/{}", state(card))
}

/// Looks until there is something to see.
pub fn eventually<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < deadline, "waited for {what}");
        std::thread::sleep(LOOK_AGAIN_AFTER);
    }
}
