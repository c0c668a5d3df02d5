//! A home with the real daemon in it: `qd` as an operator runs it, and what its board shows.
//!
//! Nothing here knows a client. Every wait is for an event and has a bound.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use qd_testbed::{Client, Headless, Home, Model, Script};
use serde_json::Value;

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
        let daemon = self.client(&["serve", "--port", "0"]).headless().expect("qd serve");
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

    fn socket(&self) -> PathBuf {
        self.home.path().join(".local/state/quarterdeck/qd.sock")
    }
}

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
