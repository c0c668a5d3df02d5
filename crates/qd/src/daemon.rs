//! The daemon, as a command speaks to it: HTTP over its socket.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use qd_server::{About, Problem};
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::exit::Exit;
use crate::paths::Paths;

/// A daemon that lives answers within milliseconds, but for what it has to carry to an agent first.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(30);

/// Longest event: a snapshot of a full board, some thousand bytes a session.
const EVENT_BYTES_MAX: usize = 64 << 20;

#[derive(Debug, Clone)]
pub struct Daemon {
    socket: PathBuf,
}

impl Daemon {
    pub fn at(paths: &Paths) -> Self {
        Self { socket: paths.socket.clone() }
    }

    /// Who is there; none if nobody is.
    pub async fn about(&self) -> Result<Option<About>> {
        match self.connect().await {
            Ok(sender) => {
                let answer = request(sender, Method::GET, "/api/health", None).await?;
                Ok(Some(serde_json::from_value(answer).context("another program answers there")?))
            }
            Err(error) if error.downcast_ref::<Exit>() == Some(&Exit::NoDaemon) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub async fn get(&self, path: &str) -> Result<Value> {
        request(self.connect().await?, Method::GET, path, None).await
    }

    pub async fn post(&self, path: &str) -> Result<Value> {
        self.post_json(path, &json!({})).await
    }

    pub async fn post_json(&self, path: &str, body: &Value) -> Result<Value> {
        request(self.connect().await?, Method::POST, path, Some(body)).await
    }

    /// The board as it changes.
    pub async fn stream(&self) -> Result<Events> {
        self.events("/api/live/stream").await
    }

    /// Raw signals as the daemon takes them in.
    pub async fn signals(&self) -> Result<Events> {
        self.events("/api/live/signals").await
    }

    async fn events(&self, path: &str) -> Result<Events> {
        let response = send(self.connect().await?, Method::GET, path, None).await?;
        match response.status() {
            StatusCode::OK => Ok(Events { body: response.into_body(), bytes: Vec::new() }),
            status => Err(anyhow!("the daemon answered {status}; is it of another version?")),
        }
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>> {
        let stream = match UnixStream::connect(&self.socket).await {
            Ok(stream) => stream,
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) =>
            {
                return Err(Exit::NoDaemon.into());
            }
            Err(error) => {
                let place = self.socket.display().to_string();
                return Err(anyhow!(error).context(format!("cannot reach the daemon at {place}")));
            }
        };
        let (sender, connection) = handshake(TokioIo::new(stream)).await?;
        tokio::spawn(async move {
            // Its end is seen by whoever reads the answer.
            let _ = connection.await;
        });
        Ok(sender)
    }
}

/// The events of a stream, one at a time.
#[derive(Debug)]
pub struct Events {
    body: Incoming,
    /// What has come of the next event.
    bytes: Vec<u8>,
}

/// One event: its name and what it carries.
#[derive(Debug)]
pub struct BoardEvent {
    pub name: String,
    pub data: Value,
}

/// One event as it came.
#[derive(Debug)]
pub struct RawEvent {
    pub name: String,
    pub id: Option<String>,
    pub data: String,
}

impl Events {
    /// None when the daemon has gone.
    pub async fn next(&mut self) -> Result<Option<BoardEvent>> {
        loop {
            let Some(RawEvent { name, data, .. }) = self.next_raw().await? else { return Ok(None) };
            if let Ok(data) = serde_json::from_str(&data) {
                return Ok(Some(BoardEvent { name, data }));
            }
        }
    }

    /// The same, not read as JSON. May be dropped and asked again: nothing is lost.
    pub async fn next_raw(&mut self) -> Result<Option<RawEvent>> {
        // All but the last byte was looked at when it came.
        let mut seen = 0;
        loop {
            while let Some(end) = self.bytes[seen..].windows(2).position(|two| two == b"\n\n") {
                let block: Vec<u8> = self.bytes.drain(..seen + end + 2).collect();
                seen = 0;
                if let Some(event) = parse(&String::from_utf8_lossy(&block)) {
                    return Ok(Some(event));
                }
            }
            seen = self.bytes.len().saturating_sub(1);
            let Some(Ok(frame)) = self.body.frame().await else { return Ok(None) };
            if let Some(data) = frame.data_ref() {
                anyhow::ensure!(
                    self.bytes.len() + data.len() <= EVENT_BYTES_MAX,
                    "the daemon sends an event without an end"
                );
                self.bytes.extend_from_slice(data);
            }
        }
    }
}

/// None for a comment, which is a sign of life.
fn parse(block: &str) -> Option<RawEvent> {
    let field = |name: &str| {
        let mut lines = block.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim_start)
    };
    let (name, data) = (field("event")?.to_owned(), field("data")?.to_owned());
    Some(RawEvent { name, id: field("id").map(str::to_owned), data })
}

async fn request(
    sender: SendRequest<Full<Bytes>>,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Result<Value> {
    let response = send(sender, method, path, body).await?;
    let status = response.status();
    let body = timeout(ANSWER_WAIT_MAX, response.into_body().collect());
    let body = body.await.context("the daemon does not answer")??.to_bytes();
    if status.is_success() {
        return serde_json::from_slice(&body).context("the daemon's answer is no JSON");
    }
    Err(match (status, serde_json::from_slice::<Problem>(&body)) {
        (StatusCode::NOT_FOUND, Ok(problem)) if problem.code == "no_such_session" => {
            Exit::NoSession(problem.message).into()
        }
        (_, Ok(problem)) => anyhow!("{}", problem.message),
        (status, Err(_)) => anyhow!("the daemon answered {status}"),
    })
}

async fn send(
    mut sender: SendRequest<Full<Bytes>>,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Result<Response<Incoming>> {
    let body = body.map(|body| Full::from(body.to_string())).unwrap_or_default();
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "quarterdeck")
        .header("content-type", "application/json")
        .body(body)
        .context("a word that cannot be part of an address")?;
    let answer = timeout(ANSWER_WAIT_MAX, sender.send_request(request)).await;
    Ok(answer.context("the daemon does not answer")??)
}

/// A word as part of a path.
pub fn escaped(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let spell = |byte: u8| match plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    word.bytes().map(spell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_and_signs_of_life_passed_over() {
        let event = parse("event: summary\ndata: {\"a\":1}\nid: 7\n\n").expect("an event");
        assert_eq!((event.name.as_str(), event.data.as_str()), ("summary", "{\"a\":1}"));
        assert_eq!(event.id.as_deref(), Some("7"));
        assert!(parse(":\n\n").is_none());
    }

    #[test]
    fn a_word_cannot_leave_its_place_in_the_path() {
        assert_eq!(escaped("sess_1-a.b~"), "sess_1-a.b~");
        assert_eq!(escaped("../a b?ü"), "..%2Fa%20b%3F%C3%BC");
    }
}
