//! A home in which sessions are driven: the operator's files, and what is asked of the daemon.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use qd_runners::agents::limits::START_MAX;
use qd_testbed::Script;
use serde_json::Value;
use tokio::net::UnixStream;

use crate::world::{PATIENCE, World, state};

/// Gemini CLI names a session's file after the minute: it goes on with one in the next.
const MINUTE: Duration = Duration::from_secs(60);

/// A driven session in its world.
pub struct Driven {
    pub world: World,
    pub session: String,
}

/// A home with the scripted model as its only endpoint, and a daemon.
pub fn world(script: Script) -> World {
    let world = World::new(script);
    let url = world.model.url();
    let model = format!(
        "[model.scripted]\nprovider = \"anthropic\"\nmodel = \"claude-opus-4-6\"\n\
         base_url = \"{url}\"\n"
    );
    config(&world, "config.toml", &model);
    world
}

/// Writes a file of the operator's.
pub fn config(world: &World, name: &str, text: &str) {
    let folder = world.home.path().join(".config/quarterdeck");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join(name), text).expect("written");
}

/// `git` in the workspace, and what it said.
pub fn git(world: &World, words: &[&str]) -> String {
    let git = Command::new("git").args(words).current_dir(world.home.workspace()).output();
    let git = git.expect("git runs");
    assert!(git.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&git.stderr));
    String::from_utf8_lossy(&git.stdout).into_owned()
}

impl Driven {
    /// `qd run` in that world, whose daemon is started first.
    pub fn begin(world: World, arguments: &[&str]) -> Self {
        Self::begin_among(world, &BTreeMap::new(), arguments)
    }

    /// The same with variables that an agent needs.
    pub fn begin_among(
        mut world: World,
        variables: &BTreeMap<String, String>,
        arguments: &[&str],
    ) -> Self {
        world.serve_among(variables);
        let folder = world.home.workspace().display().to_string();
        let all = [&["run", "--detach", "--folder", &folder], arguments].concat();
        let session = world.must(&all).trim().to_owned();
        assert!(session.starts_with("sess_"), "{session}");
        Self { world, session }
    }

    pub fn card(&self) -> Value {
        let cards = self.world.status();
        let card = cards.into_iter().find(|card| card["sessionId"] == *self.session);
        card.unwrap_or_else(|| panic!("no card\n{}", self.world.picture()))
    }

    /// Waits until its sub-state is one of these.
    pub fn is(&self, states: &str) -> Value {
        self.world.wait(&self.session, states)
    }

    fn eventually<T>(&self, what: &str, look: impl Fn(&Value) -> Option<T>) -> T {
        self.within(PATIENCE, what, look)
    }

    fn within<T>(&self, patience: Duration, what: &str, look: impl Fn(&Value) -> Option<T>) -> T {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(seen) = look(&self.card()) {
                return seen;
            }
            assert!(Instant::now() < deadline, "waited for {what}\n{}", self.world.picture());
        }
    }

    /// Waits for something that it asks for, and gives its key.
    pub fn asks(&self, tool: &str) -> String {
        self.eventually(&format!("{tool} to be asked for"), |card| {
            let requests = card["requests"].as_array()?;
            let asked = requests.iter().find(|request| request["tool"] == tool)?;
            asked["key"].as_str().map(str::to_owned)
        })
    }

    /// The same, whatever it is for.
    pub fn asks_anything(&self) -> String {
        self.eventually("something to be asked for", |card| {
            card["requests"][0]["key"].as_str().map(str::to_owned)
        })
    }

    /// Waits until it takes a prompt. Gemini CLI is let wait for the end of a minute before it goes
    /// on with a session; only then does it come up, as slowly as any other on a busy machine.
    pub fn is_up(&self) {
        self.within(MINUTE + START_MAX, "it to be up", |card| {
            (card["capabilities"]["canPrompt"] == true).then_some(())
        });
    }

    pub fn must(&self, words: &[&str]) -> String {
        self.world.must(words)
    }

    pub fn send(&self, text: &str) {
        self.must(&["send", &self.session, text]);
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.world.home.workspace().join(name)
    }

    pub fn state(&self) -> String {
        state(&self.card())
    }

    /// What went to the model, as one text.
    pub fn told_model(&self) -> String {
        let bodies = self.world.model.requests();
        bodies.iter().map(|request| request.body.to_string()).collect::<Vec<_>>().join("\n")
    }
}

/// A request over the daemon's socket: its status, and what came until the end.
pub fn call(world: &World, method: &str, path: &str, body: &Value) -> (u16, String) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let stream = UnixStream::connect(world.socket()).await.expect("a daemon");
        let (mut sender, connection) = handshake(TokioIo::new(stream)).await.expect("HTTP");
        tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "quarterdeck")
            .header("content-type", "application/json")
            .body(Full::<Bytes>::from(body.to_string()))
            .expect("a request");
        let response = sender.send_request(request).await.expect("an answer");
        let status = response.status().as_u16();
        let body = tokio::time::timeout(PATIENCE, response.into_body().collect()).await;
        let body = body.expect("an end").expect("a body").to_bytes();
        (status, String::from_utf8_lossy(&body).into_owned())
    })
}

/// The same, where JSON is answered.
pub fn ask(world: &World, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let (status, text) = call(world, method, path, body);
    (status, serde_json::from_str(&text).unwrap_or(Value::Null))
}
