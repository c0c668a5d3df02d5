//! Peers that answer with garbage, hang, send too much, or go away.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::{SinkExt, StreamExt};
use qd_broker::desk::Answerer;
use qd_harness::Direction;
use qd_session::decision::{Decision, Scope};
use qd_session::id::CallId;
use qd_sources::codex_daemon::CodexDaemon;
use qd_sources::codex_daemon::errand::{Errand, Task};
use qd_sources::errand::ErrandOutcome;
use qd_sources::live::{NoticeKind, SERVER_MESSAGE_BYTES_MAX, Trouble};
use qd_sources::opencode_servers::OpencodeServers;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, accept_async};

use crate::board::{Board, Source, now};

/// A socket of our own, removed at the end.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("qd-daemon-{}-{count}.sock", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    /// With another client, as a daemon of Codex has one when we come.
    async fn bind(&self) -> Peer {
        let _ = std::fs::remove_file(&self.0);
        let listener = UnixListener::bind(&self.0).unwrap();
        let client = UnixStream::connect(&self.0).await.unwrap();
        let (served, _) = listener.accept().await.unwrap();
        Peer { listener, _other: (client, served) }
    }

    fn board(&self) -> Board {
        Board::of(Source::Codex(CodexDaemon::start(&self.0, now).unwrap()))
    }
}

struct Peer {
    listener: UnixListener,
    _other: (UnixStream, UnixStream),
}

impl Peer {
    async fn accept(&self) -> UnixStream {
        self.listener.accept().await.unwrap().0
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn failed(trouble: Trouble) -> NoticeKind {
    NoticeKind::Failed(trouble)
}

async fn accepted(peer: &Peer) -> WebSocketStream<UnixStream> {
    accept_async(peer.accept().await).await.unwrap()
}

async fn heard(socket: &mut WebSocketStream<UnixStream>) -> Value {
    loop {
        if let Message::Text(text) = socket.next().await.unwrap().unwrap() {
            return serde_json::from_str(&text).unwrap();
        }
    }
}

async fn say(socket: &mut WebSocketStream<UnixStream>, value: Value) {
    socket.send(Message::text(value.to_string())).await.unwrap();
}

/// Greets, and lists one thread.
async fn greet(socket: &mut WebSocketStream<UnixStream>) {
    assert_eq!(heard(socket).await["method"], "initialize");
    say(socket, json!({ "id": 1, "result": {} })).await;
    assert_eq!(heard(socket).await["method"], "initialized");
    assert_eq!(heard(socket).await["method"], "thread/loaded/list");
    say(socket, json!({ "id": 2, "result": { "data": ["T"], "nextCursor": null } })).await;
    assert_eq!(heard(socket).await["params"]["threadId"], "T");
    let thread =
        json!({ "id": "T", "cwd": "/acme", "status": { "type": "active", "activeFlags": [] } });
    say(socket, json!({ "id": 3, "result": { "thread": thread } })).await;
}

#[tokio::test]
async fn a_daemon_that_talks_nonsense_is_left_and_tried_again() {
    let place = Place::new();
    let listener = place.bind().await;
    let mut board = place.board();
    let peer = tokio::spawn(async move {
        // Not HTTP.
        let mut stream = listener.accept().await;
        stream.write_all(b"\x00\xffnonsense\r\n\r\n").await.unwrap();
        drop(stream);
        // HTTP, and no.
        let mut stream = listener.accept().await;
        let mut request = [0; 512];
        let _ = stream.read(&mut request).await.unwrap();
        stream
            .write_all(b"HTTP/1.1 426 Upgrade Required\r\ncontent-length: 0\r\n\r\n")
            .await
            .unwrap();
        drop(stream);
        // A version that does not want us.
        let mut socket = accepted(&listener).await;
        heard(&mut socket).await;
        say(&mut socket, json!({ "id": 1, "error": { "code": 1, "message": "too old" } })).await;
        // Too much at once.
        let mut socket = accepted(&listener).await;
        let huge = Message::text("x".repeat(SERVER_MESSAGE_BYTES_MAX + 1));
        let _ = socket.send(huge).await;
        // Garbage between good words, a request that is not ours to answer, and a sudden end.
        let mut socket = accepted(&listener).await;
        for garbage in ["", "{", "[]", "{\"id\":1,\"method\":\"initialize\"}"] {
            socket.send(Message::text(garbage)).await.unwrap();
        }
        socket.send(Message::binary(vec![0xff; 64])).await.unwrap();
        greet(&mut socket).await;
        let params = json!({ "threadId": "T", "turnId": "U", "itemId": "c", "command": "ls" });
        let method = "item/commandExecution/requestApproval";
        say(&mut socket, json!({ "id": 0, "method": method, "params": params })).await;
        (listener, socket)
    });
    board.until_notice(&failed(Trouble::Refused { why: "too old".into() })).await;
    board.until_notice(&failed(Trouble::TooLong)).await;
    board.until_state("needs_permission").await;
    let (_listener, mut socket) = peer.await.unwrap();
    // Nothing was said to the request: the next thing heard is our leaving.
    drop(board);
    assert!(!matches!(socket.next().await, Some(Ok(Message::Text(_) | Message::Binary(_)))));
}

#[tokio::test]
async fn threads_that_are_gone_after_a_reconnect_have_ended() {
    let place = Place::new();
    let listener = place.bind().await;
    let mut board = place.board();
    let peer = tokio::spawn(async move {
        let mut socket = accepted(&listener).await;
        greet(&mut socket).await;
        drop(socket);
        let mut socket = accepted(&listener).await;
        heard(&mut socket).await;
        say(&mut socket, json!({ "id": 1, "result": {} })).await;
        heard(&mut socket).await;
        heard(&mut socket).await;
        say(&mut socket, json!({ "id": 2, "result": { "data": [] } })).await;
        (listener, socket)
    });
    board.until_state("thinking").await;
    board.until_state("session_ended").await;
    drop(peer.await.unwrap());
}

#[tokio::test]
async fn a_new_socket_in_an_old_ones_place_is_found() {
    let place = Place::new();
    drop(place.bind().await);
    let mut board = place.board();
    let refused = failed(Trouble::Unreachable(std::io::ErrorKind::ConnectionRefused));
    board.until_notice(&refused).await;
    let listener = place.bind().await;
    let peer = tokio::spawn(async move {
        let mut socket = accepted(&listener).await;
        greet(&mut socket).await;
        socket
    });
    board.until_state("thinking").await;
    drop(peer.await.unwrap());
}

/// Virtual time: what hangs is waited for no longer than it should.
#[tokio::test(start_paused = true)]
async fn a_daemon_that_hangs_is_left() {
    let place = Place::new();
    let listener = place.bind().await;
    let mut board = place.board();
    let peer = tokio::spawn(async move {
        // It takes no word at all, then the greeting without an answer.
        let silent = listener.accept().await;
        let mute = accepted(&listener).await;
        let mut settled = accepted(&listener).await;
        greet(&mut settled).await;
        // It is asked whether it lives, and does not say.
        (listener, silent, mute, settled)
    });
    let silent = failed(Trouble::Silent);
    board.until_notice(&silent).await;
    board.until_notice(&NoticeKind::Attached).await;
    board.until_notice(&silent).await;
    drop(peer.await.unwrap());
}

/// Reads a request's head and gives its path.
async fn request(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap().split(' ').nth(1).unwrap().to_owned()
}

async fn answer(stream: &mut TcpStream, body: &str) {
    let length = body.len();
    let text = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}");
    stream.write_all(text.as_bytes()).await.unwrap();
}

const STREAM: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
const GREETING: &[u8] =
    b"data: {\"payload\":{\"type\":\"server.connected\",\"properties\":{}}}\n\n";

/// Opens the stream and answers the questions after it.
async fn serve(listener: &TcpListener) -> TcpStream {
    let (mut events, _) = listener.accept().await.unwrap();
    assert_eq!(request(&mut events).await, "/global/event");
    events.write_all(&[STREAM, GREETING].concat()).await.unwrap();
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let path = request(&mut stream).await;
        let what = path.split('?').next().unwrap();
        let body = match what {
            "/experimental/session" => r#"[{"id":"ses_1","directory":"/acme"}]"#,
            "/permission" => {
                r#"[{"id":"per_1","sessionID":"ses_2","permission":"bash","patterns":["ls"]}]"#
            }
            "/question" => "[]",
            "/session/status" => r#"{"ses_1":{"type":"busy"},"ses_2":{"type":"busy"}}"#,
            "/session/ses_1" => r#"{"id":"ses_1","directory":"/acme","title":"a job"}"#,
            "/session/ses_2" => r#"{"id":"ses_2","directory":"/acme","parentID":"ses_1"}"#,
            other => panic!("{other} is not asked for"),
        };
        answer(&mut stream, body).await;
        if what == "/session/ses_2" {
            return events;
        }
    }
}

async fn server() -> (TcpListener, Board) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let source = OpencodeServers::start_without_discovery(&[url], now).unwrap();
    (listener, Board::of(Source::Opencode(source)))
}

#[tokio::test]
async fn a_server_that_talks_nonsense_is_left_and_tried_again() {
    let (listener, mut board) = server().await;
    let peer = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        request(&mut stream).await;
        stream.write_all(b"\x00\xffnonsense\r\n\r\n").await.unwrap();
        let (mut stream, _) = listener.accept().await.unwrap();
        request(&mut stream).await;
        stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        // An event without an end.
        let (mut stream, _) = listener.accept().await.unwrap();
        request(&mut stream).await;
        let _ = stream.write_all(&[STREAM, b"data: "].concat()).await;
        while stream.write_all(&[b'x'; 1 << 16]).await.is_ok() {}
        // Good, with garbage, then gone.
        let mut events = serve(&listener).await;
        events.write_all(b"data: {\ndata: }\n\ndata: \xff\n\nnonsense\n\n").await.unwrap();
        drop(events);
        // And back.
        let events = serve(&listener).await;
        (listener, events)
    });
    board.until_notice(&failed(Trouble::Refused { why: "404 Not Found".into() })).await;
    board.until_notice(&failed(Trouble::TooLong)).await;
    let card = board.until_state("needs_permission").await;
    // The request of a subagent is its parent's.
    assert_eq!((&*card.vendor_id, card.title.as_deref()), ("ses_1", Some("a job")));
    board.until("it is back", |board| board.count(&NoticeKind::Attached) == 2).await;
    assert_eq!(board.states(), ["needs_permission"]);
    assert!(board.signals.iter().any(|signal| signal.direction == Direction::ToAgent));
    drop(peer.await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_is_left() {
    let (listener, mut board) = server().await;
    let peer = tokio::spawn(async move {
        // It accepts and says nothing; it opens the stream and says nothing; it goes silent.
        let mute = listener.accept().await.unwrap();
        let (mut opened, _) = listener.accept().await.unwrap();
        request(&mut opened).await;
        opened.write_all(STREAM).await.unwrap();
        let events = serve(&listener).await;
        (listener, mute, opened, events)
    });
    let silent = failed(Trouble::Silent);
    board.until_notice(&silent).await;
    board.until_notice(&NoticeKind::Attached).await;
    board.until_notice(&silent).await;
    drop(peer.await.unwrap());
}

#[tokio::test]
async fn an_address_that_is_none_is_refused() {
    for url in ["https://127.0.0.1:4096", "127.0.0.1:4096", ""] {
        assert!(
            OpencodeServers::start(&[url.to_owned()], Path::new("/"), &[], now).is_err(),
            "{url}"
        );
    }
}

/// Where a daemon leaves an errand alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaves {
    BeforeTheAnswer,
    AfterTheAnswer,
}

/// Answers an errand up to where it waits for the request of a thread. What it said first.
async fn greet_errand(socket: &mut WebSocketStream<UnixStream>) -> Value {
    let status = json!({ "type": "active", "activeFlags": ["waitingOnApproval"] });
    let result = json!({ "thread": { "id": "T", "status": status } });
    let mut greeting = None;
    for method in ["initialize", "initialized", "thread/read", "thread/resume", "thread/read"] {
        let asked = heard(socket).await;
        assert_eq!(asked["method"], method);
        if asked.get("id").is_some() {
            say(socket, json!({ "id": asked["id"], "result": result })).await;
        }
        greeting.get_or_insert(asked);
    }
    greeting.expect("it greets")
}

/// A daemon that is observed, and ends the errand's connection.
async fn an_errand_that_is_left(leaves: Leaves) -> ErrandOutcome {
    let place = Place::new();
    let listener = place.bind().await;
    let mut board = place.board();
    let peer = tokio::spawn(async move {
        let mut observer = accepted(&listener).await;
        greet(&mut observer).await;
        let mut socket = accepted(&listener).await;
        greet_errand(&mut socket).await;
        if leaves == Leaves::AfterTheAnswer {
            let method = "item/commandExecution/requestApproval";
            for (number, item) in [(7, "other"), (8, "c")] {
                let params = json!({ "threadId": "T", "turnId": "U", "itemId": item });
                say(&mut socket, json!({ "id": number, "method": method, "params": params })).await;
            }
            let answer = heard(&mut socket).await;
            assert_eq!(answer, json!({ "id": 8, "result": { "decision": "accept" } }));
        }
        drop(socket);
        observer
    });
    board.until_state("thinking").await;
    let Source::Codex(daemon) = &board.source else { unreachable!() };
    let decision = Decision::Allow { input: None, scope: Scope::Once };
    let what = Task::Answer { call: CallId::new("c"), decision, by: Answerer::Person };
    let outcome = daemon.carry(Errand { thread: "T".to_owned(), what }).await;
    drop(peer.await.unwrap());
    outcome
}

#[tokio::test]
async fn an_answer_that_nobody_confirms_is_in_doubt() {
    assert_eq!(an_errand_that_is_left(Leaves::AfterTheAnswer).await, ErrandOutcome::Lost);
}

#[tokio::test]
async fn an_answer_that_was_not_sent_may_be_given_again() {
    let outcome = an_errand_that_is_left(Leaves::BeforeTheAnswer).await;
    assert!(matches!(outcome, ErrandOutcome::Unreachable { .. }), "{outcome:?}");
}

/// A daemon that asks for a command which only a person may approve, and what it was answered.
async fn a_command_for_a_person(by: Answerer) -> (ErrandOutcome, Option<Value>) {
    let place = Place::new();
    let listener = place.bind().await;
    let mut board = place.board();
    let peer = tokio::spawn(async move {
        let mut observer = accepted(&listener).await;
        greet(&mut observer).await;
        let mut socket = accepted(&listener).await;
        let greeting = greet_errand(&mut socket).await;
        // Who does not say so is never told of such a command.
        assert_eq!(greeting["params"]["capabilities"]["requiredHumanApproval"], true);
        let method = "item/commandExecution/requestApproval";
        let params = json!({ "kind": "humanCommand", "threadId": "T", "itemId": "c" });
        say(&mut socket, json!({ "id": 8, "method": method, "params": params })).await;
        let answer = match by {
            Answerer::Person => Some(heard(&mut socket).await),
            Answerer::Rule => None,
        };
        if answer.is_some() {
            let params = json!({ "threadId": "T", "requestId": 8 });
            say(&mut socket, json!({ "method": "serverRequest/resolved", "params": params })).await;
        }
        // Until the errand's connection has ended.
        while let Some(Ok(message)) = socket.next().await {
            assert!(message.is_close(), "{message:?}");
        }
        (observer, answer)
    });
    board.until_state("thinking").await;
    let Source::Codex(daemon) = &board.source else { unreachable!() };
    let decision = Decision::Allow { input: None, scope: Scope::Once };
    let what = Task::Answer { call: CallId::new("c"), decision, by };
    let outcome = daemon.carry(Errand { thread: "T".to_owned(), what }).await;
    let (_, answer) = peer.await.unwrap();
    (outcome, answer)
}

#[tokio::test]
async fn a_command_that_a_person_must_approve_is_answered_by_a_person_only() {
    let (outcome, answer) = a_command_for_a_person(Answerer::Person).await;
    assert_eq!(outcome, ErrandOutcome::Done { detail: None });
    assert_eq!(answer, Some(json!({ "id": 8, "result": { "decision": "accept" } })));
    let (outcome, _) = a_command_for_a_person(Answerer::Rule).await;
    let why = "Codex wants a person to approve this command";
    assert_eq!(outcome, ErrandOutcome::Refused { why: why.to_owned() });
}
