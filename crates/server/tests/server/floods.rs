//! Whoever sends too much, too slowly, or reads nothing: others are served all the same.

use std::io::{Read, Write};
use std::net::TcpStream;

use qd_server::Scope;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};

use crate::{Daemon, PATIENCE, answer};

/// More connections than any table of the port holds, both ends in this process.
const MANY: usize = 1_100;

fn allow_many_files() {
    let allowed = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: allowed.maximum, ..allowed };
    setrlimit(Resource::Nofile, raised).expect("as many as we may");
}

impl Daemon {
    /// As a command asks.
    fn asked_by_socket(&self) -> (u16, String) {
        let mut command = self.socket();
        let get = "GET /api/live/sessions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        command.write_all(get.as_bytes()).expect("sent");
        answer(command)
    }

    #[track_caller]
    fn serves_everybody(&self) {
        assert_eq!(self.request("GET", "/api/health").token(Scope::Observe).send().0, 200);
        assert_eq!(self.request("GET", "/").send().0, 200);
        self.browser("operate");
        self.hook("s-1", "UserPromptSubmit");
        assert_eq!(self.asked_by_socket().0, 200);
    }

    /// One connection that sends this.
    fn knock(&self, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("patience");
        stream.write_all(text.as_bytes()).expect("sent");
        stream
    }

    /// Sends this head so often on one connection. The answers, in one text.
    fn flood(&self, head: &str, count: usize) -> String {
        let last = format!("{head}connection: close\r\n\r\n");
        self.exchange(format!("{head}\r\n").repeat(count - 1) + &last)
    }

    /// Sends all of it on one connection, and reads meanwhile.
    fn exchange(&self, text: String) -> String {
        let mut stream = self.knock("");
        let mut writes = stream.try_clone().expect("a second end");
        std::thread::scope(|scope| {
            scope.spawn(move || writes.write_all(text.as_bytes()).expect("sent"));
            let mut answers = String::new();
            stream.read_to_string(&mut answers).expect("answers");
            answers
        })
    }
}

/// Each holds a connection, and none ever ends: so did 1,024 once, and the port was closed.
#[test]
fn unfinished_bodies_do_not_close_the_port() {
    allow_many_files();
    let daemon = Daemon::start("bodies");
    let head = format!(
        "POST /api/sign-in HTTP/1.1\r\nhost: 127.0.0.1:{}\r\ncontent-type: application/json\r\n\
         x-quarterdeck: 1\r\ncontent-length: 100\r\n\r\n{{",
        daemon.port
    );
    let bodies: Vec<TcpStream> = (0..MANY).map(|_| daemon.knock(&head)).collect();
    daemon.serves_everybody();
    drop(bodies);
}

#[test]
fn connections_that_say_nothing_or_half_a_head_do_not_close_the_port() {
    allow_many_files();
    let daemon = Daemon::start("silent");
    let silent: Vec<TcpStream> =
        (0..MANY).map(|nth| daemon.knock(["", "GET / HTTP/1.1\r\nhost:"][nth % 2])).collect();
    daemon.serves_everybody();
    drop(silent);
}

#[test]
fn a_body_that_never_ends_is_cut_off_and_the_answer_says_so() {
    let daemon = Daemon::start("endless");
    let token = daemon.tokens.token(Scope::Ingest);
    let head = format!(
        "POST /api/live/hook HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nauthorization: Bearer {token}\r\n\
         content-length: 100\r\n\r\n{{",
        daemon.port
    );
    let (status, body) = answer(daemon.knock(&head));
    assert_eq!(status, 408, "{body}");
    assert!(body.contains("too_slow") && body.contains("did not arrive in time"), "{body}");
}

/// A code is short, and anybody may send one.
#[test]
fn a_stranger_cannot_make_us_keep_a_megabyte() {
    let daemon = Daemon::start("sign-in-size");
    let code = "0".repeat(8 << 10);
    let sign_in = daemon.request("POST", "/api/sign-in").page(&json!({ "code": code }));
    assert_eq!(sign_in.send().0, 413);
}

#[test]
fn wrong_tokens_are_told_to_wait_and_a_right_one_never_is() {
    let daemon = Daemon::start("guesses");
    let guess = || daemon.request("GET", "/api/health").with("authorization", "Bearer 0").refused();
    let first = (0..100).map(|_| guess().0).position(|status| status == 429);
    assert!(first.is_some_and(|first| first >= 50), "{first:?}");
    for scope in [Scope::Observe, Scope::Operate, Scope::Admin] {
        assert_eq!(daemon.request("GET", "/api/health").token(scope).send().0, 200);
    }
    daemon.hook("s-1", "UserPromptSubmit");
    let code = daemon.code("operate");
    let sign_in = |code: &str| daemon.request("POST", "/api/sign-in").page(&json!({"code": code}));
    let wrong: Vec<u16> = (0..40).map(|_| sign_in("0").send().0).collect();
    assert_eq!((wrong[0], wrong[39]), (401, 429));
    assert_eq!(sign_in(&code).send().0, 200);
}

/// Any web page can send these: they cost nobody's budget.
#[test]
fn requests_of_other_sites_cost_nobody_anything() {
    let daemon = Daemon::start("foreign");
    let (port, count) = (daemon.port, 6_000);
    let token = daemon.tokens.token(Scope::Observe);
    let rebound = "GET /api/health HTTP/1.1\r\nhost: evil.example\r\n".to_owned();
    let foreign = format!(
        "GET /api/health HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\norigin: http://evil.example\r\n\
         authorization: Bearer {token}\r\n"
    );
    for (head, code) in [(rebound, "foreign_host"), (foreign, "foreign_origin")] {
        assert_eq!(daemon.flood(&head, count).matches(code).count(), count, "{code}");
    }
    daemon.serves_everybody();
}

#[test]
fn a_caller_that_asks_too_often_spends_only_its_own_budget() {
    let daemon = Daemon::start("own-budget");
    let ask = |scope: Scope, end: &str| {
        let (port, token) = (daemon.port, daemon.tokens.token(scope));
        format!(
            "GET /api/live/summary HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n\
             authorization: Bearer {token}\r\n{end}\r\n"
        )
    };
    let (greedy, other) = (ask(Scope::Observe, ""), ask(Scope::Operate, ""));
    let last = ask(Scope::Admin, "connection: close\r\n");
    let told = daemon.exchange(greedy.repeat(3_000) + &other.repeat(500) + &last);
    let statuses: Vec<&str> = told.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
    assert_eq!(statuses.len(), 3_501);
    assert!(statuses[..3_000].contains(&"429"), "it has a budget");
    assert!(statuses[3_000..].iter().all(|status| *status == "200"));
    let browser = daemon.browser("observe");
    assert_eq!(daemon.request("GET", "/api/health").browser(&browser).send().0, 200);
    assert_eq!(daemon.asked_by_socket().0, 200);
}

/// The status of an answer of which nothing else is read.
fn status(stream: &mut TcpStream) -> String {
    let mut head = [0; 12];
    stream.read_exact(&mut head).expect("a head");
    String::from_utf8_lossy(&head[9..]).into_owned()
}

#[test]
fn one_caller_has_so_many_streams_and_others_have_theirs() {
    allow_many_files();
    let daemon = Daemon::start("streams");
    daemon.hook("s-1", "UserPromptSubmit");
    let (port, token) = (daemon.port, daemon.tokens.token(Scope::Observe));
    let head = format!(
        "GET /api/live/stream HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {token}\r\n\r\n"
    );
    // Fewer than the port has connections: those that are refused stay open for a while.
    let count = 400;
    let mut streams: Vec<TcpStream> = (0..count).map(|_| daemon.knock(&head)).collect();
    let told: Vec<String> = streams.iter_mut().map(status).collect();
    assert_eq!(told.iter().filter(|status| *status == "200").count(), 32);
    assert_eq!(told.iter().filter(|status| *status == "429").count(), count - 32);
    daemon.request("GET", "/api/live/stream").token(Scope::Operate).listen().until("snapshot");
    let refused = daemon.request("GET", "/api/live/stream").token(Scope::Observe).refused();
    assert_eq!(refused, (429, "too_many_streams".into()));
    // The command line has no bound.
    let get = "GET /api/live/stream HTTP/1.1\r\nhost: x\r\n\r\n";
    for _ in 0..64 {
        let mut command = daemon.socket();
        command.write_all(get.as_bytes()).expect("sent");
        let mut head = [0; 12];
        command.read_exact(&mut head).expect("a head");
        assert!(head.ends_with(b"200"));
        streams.push(TcpStream::connect(("127.0.0.1", port)).expect("it listens"));
    }
    let (status, body) = daemon.asked_by_socket();
    let list: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!((status, list["sessions"].as_array().map(Vec::len)), (200, Some(1)));
}
