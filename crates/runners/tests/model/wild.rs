//! Providers that never stop: what they send is bounded, and so is the wait.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::thread::JoinHandle;

use qd_harness::native::{Cause, Provider};

use crate::{endpoint, failure, line};

/// Answers one connection with a head and then the same bytes until the other side has enough.
fn endless(head: &'static str, more: Vec<u8>) -> (String, JoinHandle<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut request = [0; 1 << 10];
        let _ = stream.read(&mut request).expect("a request");
        stream.write_all(head.as_bytes()).expect("a reader");
        while stream.write_all(&more).is_ok() {}
    });
    (format!("http://{address}"), thread)
}

async fn check(head: &'static str, more: &str, cause: Cause) {
    let (url, thread) = endless(head, more.as_bytes().to_vec());
    let failure = failure(&line(), &endpoint(Provider::OpenAi, &url)).await;
    assert_eq!(failure.cause, cause);
    // Whoever closes it is a task of this runtime.
    let joined = tokio::task::spawn_blocking(move || thread.join()).await.expect("it waits");
    joined.expect("the connection is closed");
}

const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

#[tokio::test]
async fn an_answer_without_an_end_is_left() {
    check(STREAM, &format!(": {}\n", "x".repeat(64 << 10)), Cause::TooLong).await;
}

#[tokio::test]
async fn a_line_without_an_end_is_left() {
    check(STREAM, &"x".repeat(64 << 10), Cause::TooLong).await;
}

#[tokio::test]
async fn an_error_without_an_end_is_left() {
    check("HTTP/1.1 500 Oh\r\n\r\n", &"x".repeat(64 << 10), Cause::ServerError).await;
}

#[tokio::test]
async fn what_is_not_http_is_no_answer() {
    check("SSH-2.0-OpenSSH_9.9\r\n", "x", Cause::Dropped).await;
}
