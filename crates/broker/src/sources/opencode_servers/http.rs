//! Plain HTTP to one server: short answers, and its stream of events. Every wait has a bound.

use std::io;

use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, HOST};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::address::Address;
use crate::limits::{EVENT_SILENCE_MAX, SERVER_MESSAGE_BYTES_MAX, SERVER_REPLY_WAIT};
use crate::sources::live::Trouble;

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
    let whole = async {
        let Answer { response, connection: _connection } = ask(address, path, "*/*").await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), SERVER_MESSAGE_BYTES_MAX).collect();
        let body = body.await.map_err(|error| match error.is::<LengthLimitError>() {
            true => Trouble::TooLong,
            false => Trouble::Closed,
        })?;
        Ok((status.as_u16(), body.to_bytes()))
    };
    let (status, body) = timeout(SERVER_REPLY_WAIT, whole).await.unwrap_or(Err(Trouble::Silent))?;
    if locked(status) {
        return Err(Trouble::Locked);
    }
    Ok((status, body))
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
    let unreachable = |error: io::Error| Trouble::Unreachable(error.kind());
    let stream = TcpStream::connect(&address.host).await.map_err(unreachable)?;
    let shaken = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.map_err(|error| trouble(&error))?;
    let connection = Connection(tokio::spawn(async move {
        // Its failure is told by the response or its body.
        let _ = connection.await;
    }));
    let mut request = Request::get(path).header(HOST, &address.host).header(ACCEPT, accept);
    if let Some(authorization) = &address.authorization {
        request = request.header(AUTHORIZATION, authorization);
    }
    let request = request.body(Empty::<Bytes>::new());
    // Only a name that is none could be in the way.
    let request = request.map_err(|_| Trouble::Unreachable(io::ErrorKind::InvalidInput))?;
    let response = sender.send_request(request).await.map_err(|error| trouble(&error))?;
    Ok(Answer { response, connection })
}

fn locked(status: u16) -> bool {
    matches!(status, 401 | 403)
}

fn trouble(error: &hyper::Error) -> Trouble {
    if error.is_parse() { Trouble::Foreign } else { Trouble::Closed }
}
