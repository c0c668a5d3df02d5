//! Plain HTTP to one server: short answers, and its stream of events. Every wait has a bound.

use std::io;
use std::time::Duration;

use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::http::request::Builder;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use qd_harness::opencode::Call;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::address::Address;
use crate::errand::ERRAND_REPLY_WAIT;
use crate::live::Trouble;
use crate::live::{SERVER_MESSAGE_BYTES_MAX, SERVER_REPLY_WAIT};

/// Silence after which an event stream is dead: the servers send a heartbeat every ten seconds.
const EVENT_SILENCE_MAX: Duration = Duration::from_secs(45);

/// A response whose body may not be read yet.
#[derive(Debug)]
struct Answer {
    response: Response<Incoming>,
    /// What moves its bytes; ended with it.
    connection: Connection,
}

#[derive(Debug)]
struct Connection(JoinHandle<()>);

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The status and the whole body.
pub async fn get(address: &Address, path: &str) -> Result<(u16, Bytes), Trouble> {
    let answered = async { whole(ask(address, path, "*/*").await?).await };
    let answered = timeout(SERVER_REPLY_WAIT, answered).await;
    let (status, body) = answered.unwrap_or(Err(Trouble::Silent))?;
    if locked(status) {
        return Err(Trouble::Locked);
    }
    Ok((status, body))
}

/// Why a call has no response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unanswered {
    /// Nothing was sent.
    NotSent(Trouble),
    /// It may have been heard.
    Sent,
}

/// A call that changes something: the status and the whole body.
pub async fn call(address: &Address, call: &Call) -> Result<(u16, Bytes), Unanswered> {
    let stream = timeout(ERRAND_REPLY_WAIT, reached(address)).await;
    let stream = stream.unwrap_or(Err(Trouble::Silent)).map_err(Unanswered::NotSent)?;
    let request = Request::builder().method(call.method).uri(&call.path);
    let request = match call.body {
        Some(_) => request.header(CONTENT_TYPE, "application/json"),
        None => request,
    };
    let body = call.body.as_ref().map(|body| Bytes::from(body.to_string())).unwrap_or_default();
    let answered = async { whole(exchange(address, stream, request, body).await?).await };
    match timeout(ERRAND_REPLY_WAIT, answered).await {
        Ok(Ok((status, _))) if locked(status) => Err(Unanswered::NotSent(Trouble::Locked)),
        Ok(Ok(answered)) => Ok(answered),
        Ok(Err(_)) | Err(_) => Err(Unanswered::Sent),
    }
}

/// A stream of events, as bytes.
#[derive(Debug)]
pub struct Events {
    body: Incoming,
    _connection: Connection,
}

impl Events {
    pub async fn open(address: &Address, path: &str) -> Result<Self, Trouble> {
        let answer = ask(address, path, "text/event-stream");
        let answer = timeout(SERVER_REPLY_WAIT, answer).await.unwrap_or(Err(Trouble::Silent))?;
        let status = answer.response.status();
        if locked(status.as_u16()) {
            return Err(Trouble::Locked);
        }
        if status != StatusCode::OK {
            return Err(Trouble::Refused { why: status.to_string() });
        }
        Ok(Self { body: answer.response.into_body(), _connection: answer.connection })
    }

    /// The next bytes. May be dropped and asked again.
    pub async fn next(&mut self) -> Result<Bytes, Trouble> {
        loop {
            let frame = timeout(EVENT_SILENCE_MAX, self.body.frame()).await;
            let frame = frame.map_err(|_| Trouble::Silent)?.ok_or(Trouble::Closed)?;
            if let Ok(bytes) = frame.map_err(|error| trouble(&error))?.into_data() {
                return Ok(bytes);
            }
        }
    }
}

async fn ask(address: &Address, path: &str, accept: &str) -> Result<Answer, Trouble> {
    let stream = reached(address).await?;
    let request = Request::get(path).header(ACCEPT, accept);
    exchange(address, stream, request, Bytes::new()).await
}

async fn reached(address: &Address) -> Result<TcpStream, Trouble> {
    let unreachable = |error: io::Error| Trouble::Unreachable(error.kind());
    TcpStream::connect(&address.host).await.map_err(unreachable)
}

async fn exchange(
    address: &Address,
    stream: TcpStream,
    mut request: Builder,
    body: Bytes,
) -> Result<Answer, Trouble> {
    let shaken = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.map_err(|error| trouble(&error))?;
    let connection = Connection(tokio::spawn(async move {
        // Its failure is told by the response or its body.
        let _ = connection.await;
    }));
    request = request.header(HOST, &address.host);
    if let Some(authorization) = &address.authorization {
        request = request.header(AUTHORIZATION, authorization);
    }
    let request = request.body(Full::new(body));
    // Only a name that is none could be in the way.
    let request = request.map_err(|_| Trouble::Unreachable(io::ErrorKind::InvalidInput))?;
    let response = sender.send_request(request).await.map_err(|error| trouble(&error))?;
    Ok(Answer { response, connection })
}

async fn whole(answer: Answer) -> Result<(u16, Bytes), Trouble> {
    let Answer { response, connection: _connection } = answer;
    let status = response.status().as_u16();
    let body = Limited::new(response.into_body(), SERVER_MESSAGE_BYTES_MAX).collect();
    let body = body.await.map_err(|error| match error.is::<LengthLimitError>() {
        true => Trouble::TooLong,
        false => Trouble::Closed,
    })?;
    Ok((status, body.to_bytes()))
}

fn locked(status: u16) -> bool {
    matches!(status, 401 | 403)
}

fn trouble(error: &hyper::Error) -> Trouble {
    if error.is_parse() { Trouble::Foreign } else { Trouble::Closed }
}
