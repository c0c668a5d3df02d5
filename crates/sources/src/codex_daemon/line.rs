//! A connection to the daemon that may ask for things and is asked for answers.
//!
//! Keeps the requests that the daemon sends until somebody else has answered them. Every wait has
//! a bound, except the one for the next message: that is its caller's.

use std::path::Path;

use futures_util::{SinkExt, StreamExt};
use qd_harness::codex::client;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use super::{Socket, connect, trouble};
use crate::errand::ERRAND_REPLY_WAIT;
use crate::live::Trouble;

/// Open requests that an errand remembers. A thread has one, with subagents a few.
const ERRAND_REQUESTS_MAX: usize = 64;

pub struct Line {
    socket: Socket,
    last_id: u64,
    /// Requests that were sent to us and are open, oldest first.
    requests: Vec<Asked>,
}

/// A request as the daemon sent it.
#[derive(Debug)]
pub struct Asked {
    pub rpc: Value,
    pub method: String,
    pub params: String,
    thread: Option<String>,
    item: Option<String>,
}

impl Asked {
    fn is_of(&self, thread: &str) -> bool {
        self.thread.as_deref() == Some(thread)
    }

    fn is_about(&self, thread: &str, item: &str) -> bool {
        self.is_of(thread) && self.item.as_deref() == Some(item)
    }

    fn message(&self) -> String {
        let (rpc, method, params) = (&self.rpc, Value::from(self.method.as_str()), &self.params);
        format!(r#"{{"id":{rpc},"method":{method},"params":{params}}}"#)
    }
}

/// What a message was.
#[derive(Debug)]
pub enum Heard {
    Response {
        id: Value,
        result: Result<Value, String>,
    },
    /// Somebody answered this request.
    Resolved {
        rpc: Value,
    },
    Other,
}

/// The fields we use.
#[derive(Debug, Deserialize)]
struct Told<'a> {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(default)]
    result: Option<Value>,
    #[serde(default)]
    error: Option<Refusal>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Refusal {
    message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Params {
    thread_id: Option<String>,
    item_id: Option<String>,
    request_id: Option<Value>,
}

impl Line {
    /// Connects and greets.
    pub async fn open(path: &Path) -> Result<Self, Trouble> {
        let connected = timeout(ERRAND_REPLY_WAIT, connect(path)).await;
        let (socket, _) = connected.unwrap_or(Err(Trouble::Silent))?;
        let mut line = Self { socket, last_id: 0, requests: Vec::new() };
        let version = env!("CARGO_PKG_VERSION");
        line.ask(|id| client::initialize(id, "quarterdeck", "Quarterdeck", version)).await?;
        line.send(client::initialized()).await?;
        Ok(line)
    }

    /// With the connection ends what we subscribed to.
    pub async fn close(mut self) {
        // A daemon that does not say goodbye has lost us all the same.
        let _ = timeout(ERRAND_REPLY_WAIT, self.socket.close(None)).await;
    }

    /// Sends what is made of a new number, and waits for the response to it.
    pub async fn ask(&mut self, request: impl FnOnce(u64) -> String) -> Result<Value, Trouble> {
        self.last_id += 1;
        let (awaited, request) = (self.last_id, request(self.last_id));
        let answered = timeout(ERRAND_REPLY_WAIT, async {
            self.send(request).await?;
            loop {
                if let Heard::Response { id, result } = self.hear().await?
                    && id == awaited
                {
                    return result.map_err(|why| Trouble::Refused { why });
                }
            }
        });
        answered.await.unwrap_or(Err(Trouble::Silent))
    }

    pub async fn send(&mut self, text: String) -> Result<(), Trouble> {
        let sent = timeout(ERRAND_REPLY_WAIT, self.socket.send(Message::text(text))).await;
        sent.map_err(|_| Trouble::Silent)?.map_err(trouble)
    }

    /// Takes the open request about this item of this thread.
    pub fn take_request(&mut self, thread: &str, item: &str) -> Option<Asked> {
        let at = self.requests.iter().position(|asked| asked.is_about(thread, item))?;
        Some(self.requests.remove(at))
    }

    pub fn has_request_about(&self, thread: &str, item: &str) -> bool {
        self.requests.iter().any(|asked| asked.is_about(thread, item))
    }

    /// Whether anything of this thread is open.
    pub fn has_request(&self, thread: &str) -> bool {
        self.requests.iter().any(|asked| asked.is_of(thread))
    }

    /// The open requests of this thread, as the daemon sent them.
    pub fn requests_of(&self, thread: &str) -> Vec<String> {
        let its = self.requests.iter().filter(|asked| asked.is_of(thread));
        its.map(Asked::message).collect()
    }

    /// The next message. What is not understood is `Other`.
    pub async fn hear(&mut self) -> Result<Heard, Trouble> {
        let message = self.socket.next().await.ok_or(Trouble::Closed)?.map_err(trouble)?;
        match message {
            Message::Text(text) => Ok(self.take(text.as_bytes())),
            Message::Binary(bytes) => Ok(self.take(&bytes)),
            Message::Close(_) => Err(Trouble::Closed),
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => Ok(Heard::Other),
        }
    }

    fn take(&mut self, payload: &[u8]) -> Heard {
        let Ok(told) = serde_json::from_slice::<Told<'_>>(payload) else { return Heard::Other };
        let raw = told.params.map(RawValue::get).unwrap_or_default();
        let params = || serde_json::from_str::<Params>(raw).unwrap_or_default();
        match (told.id, told.method) {
            (Some(rpc), Some(method)) => {
                let Params { thread_id: thread, item_id: item, .. } = params();
                if self.requests.len() == ERRAND_REQUESTS_MAX {
                    self.requests.remove(0);
                }
                self.requests.push(Asked { rpc, method, params: raw.to_owned(), thread, item });
                Heard::Other
            }
            (Some(id), None) => {
                let result = match told.error {
                    Some(refusal) => Err(refusal.message),
                    None => Ok(told.result.unwrap_or_default()),
                };
                Heard::Response { id, result }
            }
            (None, Some(method)) if method == "serverRequest/resolved" => {
                let rpc = params().request_id.unwrap_or_default();
                self.requests.retain(|asked| asked.rpc != rpc);
                Heard::Resolved { rpc }
            }
            (None, _) => Heard::Other,
        }
    }
}
