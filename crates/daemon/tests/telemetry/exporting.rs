//! Spans to a collector on a real port: one that takes them, one that is away, one that hangs.

use std::collections::BTreeMap;

use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use qd_session::moment::Timestamp;
use qd_telemetry::{Collector, Exporter, SPANS_WAITING_MAX, SpanTally, trace_id};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::log::Log;
use super::world::{Daemon, PATIENCE, PRIVATE, SECRET};

/// Somebody who listens where a collector would.
struct Post(TcpListener);

/// A request that it was sent.
struct Letter {
    stream: TcpStream,
    head: String,
    body: Vec<u8>,
}

impl Post {
    async fn open() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").await.expect("a port"))
    }

    fn collector(&self) -> Collector {
        let address = self.0.local_addr().expect("an address");
        let mut collector = Collector::at(&format!("http://{address}")).expect("an address");
        collector.header("x-key", "letmein").expect("a header");
        collector
    }

    async fn letter(&self) -> Letter {
        let (mut stream, _) = timeout(PATIENCE, self.0.accept()).await.expect("soon").expect("one");
        let mut bytes = Vec::new();
        let end = loop {
            assert_ne!(stream.read_buf(&mut bytes).await.expect("more"), 0);
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
        };
        let head = String::from_utf8(bytes[..end].to_vec()).expect("text").to_lowercase();
        let len = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let len: usize = len.and_then(|len| len.parse().ok()).expect("a length");
        let mut body = bytes.split_off(end);
        while body.len() < len {
            assert_ne!(stream.read_buf(&mut body).await.expect("more"), 0);
        }
        Letter { stream, head, body }
    }
}

impl Letter {
    fn spans(&self) -> Vec<Span> {
        let request = ExportTraceServiceRequest::decode(self.body.as_slice()).expect("OTLP");
        let scopes = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
        scopes.flat_map(|scope| scope.spans).collect()
    }

    async fn answer(mut self, status: &str, body: &[u8]) {
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        self.stream.write_all(head.as_bytes()).await.expect("sent");
        self.stream.write_all(body).await.expect("sent");
    }
}

fn attributes(span: &Span) -> BTreeMap<String, String> {
    let text = |value: &Value| {
        if let Value::IntValue(number) = value {
            return number.to_string();
        }
        let Value::StringValue(text) = value else { panic!("{value:?}") };
        text.clone()
    };
    let value = |pair: &opentelemetry_proto::tonic::common::v1::KeyValue| {
        let value = pair.value.as_ref().and_then(|value| value.value.as_ref()).expect("a value");
        (pair.key.clone(), text(value))
    };
    span.attributes.iter().map(value).collect()
}

fn some_span() -> qd_telemetry::Span {
    qd_telemetry::Span {
        trace: trace_id("turn_1"),
        id: [1; 8],
        parent: None,
        name: "turn",
        started_at: Timestamp(1),
        ended_at: Timestamp(2),
        attributes: Vec::new(),
        failure: None,
    }
}

#[tokio::test]
async fn a_turn_reaches_the_collector_as_one_trace_at_the_latest_when_the_daemon_ends() {
    let post = Post::open().await;
    let exporter = Exporter::start(post.collector()).expect("a client");
    let daemon = Daemon::start("export", Some(exporter));
    let session = daemon.drive().await;
    let taken = async {
        let mut spans = Vec::new();
        // However they were put together: the root is the last.
        while !spans.iter().any(|span: &Span| span.name == "turn") {
            let letter = post.letter().await;
            assert!(letter.head.starts_with("post /v1/traces http/1.1"), "{}", letter.head);
            assert!(
                letter.head.contains("content-type: application/x-protobuf"),
                "{}",
                letter.head
            );
            assert!(letter.head.contains("x-key: letmein"), "{}", letter.head);
            let body = String::from_utf8_lossy(&letter.body).into_owned();
            assert!(!body.contains(SECRET) && !body.contains(PRIVATE) && !body.contains("hunter2"));
            spans.extend(letter.spans());
            letter.answer("200 OK", b"").await;
        }
        spans
    };
    let ((), spans) = tokio::join!(daemon.stop(), taken);
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["llm", "tool", "hook", "llm", "turn"]);
    let root = &spans[4];
    let about = attributes(root);
    assert_eq!(about["session_id"], session.as_str());
    assert_eq!((&*about["outcome"], &*about["attempts"]), ("completed", "2"));
    assert_eq!(root.trace_id, trace_id(&about["stream_id"]));
    assert!(root.parent_span_id.is_empty());
    for child in &spans[..4] {
        assert_eq!((&child.trace_id, &child.parent_span_id), (&root.trace_id, &root.span_id));
    }
    assert_eq!(attributes(&spans[1])["tool_name"], "bash");
    assert_eq!(attributes(&spans[2])["hook_name"], "format");
    let said = |span: &Span| span.status.as_ref().map(|status| status.message.clone());
    assert_eq!(
        said(&spans[2]).as_deref(),
        Some("hook_execution_failed"),
        "its code, not its words"
    );
}

#[tokio::test]
async fn what_the_collector_rejects_is_counted() {
    let post = Post::open().await;
    let exporter = Exporter::start(post.collector()).expect("a client");
    exporter.offer(some_span());
    exporter.offer(some_span());
    let letter = post.letter().await;
    assert_eq!(letter.spans().len(), 2, "they go together");
    let partial = ExportTracePartialSuccess { rejected_spans: 1, error_message: "old".to_owned() };
    let answer = ExportTraceServiceResponse { partial_success: Some(partial) };
    letter.answer("200 OK", &answer.encode_to_vec()).await;
    // The next batch begins when this one is settled.
    exporter.offer(some_span());
    let letter = post.letter().await;
    assert_eq!(exporter.tally(), SpanTally { sent: 1, dropped: 1 });
    letter.answer("400 Bad Request", b"").await;
    exporter.offer(some_span());
    let letter = post.letter().await;
    assert_eq!(exporter.tally(), SpanTally { sent: 1, dropped: 2 }, "it is not sent twice");
    letter.answer("503 Service Unavailable", b"").await;
    let letter = post.letter().await;
    assert_eq!(letter.spans().len(), 1, "this one is");
    letter.answer("200 OK", b"").await;
    exporter.finish().await;
}

#[tokio::test]
async fn that_a_collector_is_away_is_said_once_and_that_it_is_back() {
    let log = Log::listen("info");
    let post = Post::open().await;
    let exporter = Exporter::start(post.collector()).expect("a client");
    for status in ["400 Bad Request", "400 Bad Request", "200 OK", "200 OK"] {
        exporter.offer(some_span());
        post.letter().await.answer(status, b"").await;
    }
    exporter.finish().await;
    let log = log.text();
    assert_eq!(log.matches("the collector takes no spans").count(), 1, "{log}");
    assert_eq!(log.matches("the collector takes spans again").count(), 1, "{log}");
    assert!(log.contains("400 Bad Request") && !log.contains("letmein"), "{log}");
}

#[tokio::test]
async fn nobody_waits_for_a_collector_that_hangs() {
    let post = Post::open().await;
    let exporter = Exporter::start(post.collector()).expect("a client");
    exporter.offer(some_span());
    let letter = post.letter().await;
    for _ in 0..SPANS_WAITING_MAX + 10 {
        exporter.offer(some_span());
    }
    assert_eq!(exporter.tally(), SpanTally { sent: 0, dropped: 10 });
    // It ends although the answer never comes.
    timeout(PATIENCE, exporter.finish()).await.expect("it ends");
    drop(letter);
}

#[tokio::test]
async fn a_session_works_as_ever_without_its_collector() {
    let gone = Post::open().await.collector();
    let exporter = Exporter::start(gone).expect("a client");
    let daemon = Daemon::start("away", Some(exporter));
    daemon.drive().await;
    let meter = daemon.handle.meter().await.expect("it lives");
    assert_eq!(meter.tool_runs["bash"].count(), 1);
    daemon.stop().await;
}
