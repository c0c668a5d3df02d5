//! The board as its stream tells it: every state that was ever shown, and when it came.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::UnixStream;
use tokio::sync::oneshot;

/// Ends with its value.
pub struct Board {
    told: Arc<Told>,
    _stop: oneshot::Sender<()>,
}

/// One card as it was told.
#[derive(Debug, Clone)]
#[allow(dead_code, reason = "the bench looks at the time")]
pub struct Shown {
    pub at: Instant,
    pub card: Value,
}

#[derive(Default)]
struct Told {
    cards: Mutex<Vec<Shown>>,
    /// What happened in sessions that are driven.
    changes: Mutex<Vec<Value>>,
    more: Condvar,
}

impl Board {
    pub fn at(socket: &Path) -> Self {
        let told = Arc::new(Told::default());
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (socket, heard) = (socket.to_owned(), Arc::clone(&told));
        let (ready, is_ready) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = listen(&socket, &heard, ready) => {}
                    _ = stopped => {}
                }
            });
        });
        is_ready.recv().expect("the daemon's stream");
        Self { told, _stop: stop }
    }

    /// Every sub-state that was told of a session, in order.
    pub fn states_of(&self, session: &str) -> Vec<String> {
        let cards = self.told.cards.lock().unwrap();
        let its = cards.iter().filter(|shown| shown.card["vendorId"] == session);
        its.map(|shown| crate::world::state(&shown.card)).collect()
    }

    /// Every request that was ever shown of a session, as often as its card was told.
    #[allow(dead_code, reason = "the bench asks nobody")]
    pub fn requests_of(&self, session: &str) -> Vec<Value> {
        let cards = self.told.cards.lock().unwrap();
        let its = cards.iter().filter(|shown| shown.card["vendorId"] == session);
        its.flat_map(|shown| shown.card["requests"].as_array().cloned().unwrap_or_default())
            .collect()
    }

    /// Why a driven session went from state to state, in order.
    #[allow(dead_code, reason = "the bench drives none")]
    pub fn reasons_of(&self, session: &str) -> Vec<String> {
        let changes = self.told.changes.lock().unwrap();
        let its = changes.iter().filter(|change| change["sessionId"] == session);
        its.filter_map(|change| change["reason"].as_str().map(str::to_owned)).collect()
    }

    /// How many cards were told: where "from now on" begins.
    #[allow(dead_code, clippy::len_without_is_empty, reason = "for the bench")]
    pub fn len(&self) -> usize {
        self.told.cards.lock().unwrap().len()
    }

    /// The first card after the first `from` that is as wanted.
    #[allow(dead_code, reason = "for the bench")]
    pub fn wait_from(
        &self,
        from: usize,
        patience: Duration,
        wanted: impl Fn(&Value) -> bool,
    ) -> Option<Shown> {
        let deadline = Instant::now() + patience;
        let mut cards = self.told.cards.lock().unwrap();
        loop {
            if let Some(found) = cards.iter().skip(from).find(|shown| wanted(&shown.card)) {
                return Some(found.clone());
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            cards = self.told.more.wait_timeout(cards, left).unwrap().0;
        }
    }
}

async fn listen(socket: &Path, told: &Told, ready: std::sync::mpsc::Sender<()>) {
    let stream = UnixStream::connect(socket).await.expect("the daemon's socket");
    let (mut sender, connection) = handshake(TokioIo::new(stream)).await.expect("HTTP");
    tokio::spawn(connection);
    let request = Request::get("/api/live/stream").header("host", "quarterdeck");
    let request = request.body(Empty::<Bytes>::new()).unwrap();
    let mut body = sender.send_request(request).await.expect("a stream").into_body();
    let mut text = String::new();
    while let Some(Ok(frame)) = body.frame().await {
        let Some(data) = frame.data_ref() else { continue };
        let at = Instant::now();
        text.push_str(&String::from_utf8_lossy(data));
        while let Some(end) = text.find("\n\n") {
            let block: String = text.drain(..end + 2).collect();
            let (cards, changes) = (cards_in(&block), changes_in(&block));
            told.changes.lock().unwrap().extend(changes);
            let mut all = told.cards.lock().unwrap();
            all.extend(cards.into_iter().map(|card| Shown { at, card }));
            told.more.notify_all();
        }
        // The snapshot has come: whatever happens next is heard.
        let _ = ready.send(());
    }
}

/// The cards of a snapshot or of one change.
fn cards_in(block: &str) -> Vec<Value> {
    let (event, data) = event_in(block);
    match event {
        "snapshot" => data["sessions"].as_array().cloned().unwrap_or_default(),
        "session_changed" => vec![data],
        _ => Vec::new(),
    }
}

fn changes_in(block: &str) -> Option<Value> {
    let (event, data) = event_in(block);
    (event == "agent:state_event").then_some(data)
}

fn event_in(block: &str) -> (&str, Value) {
    let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
    let data = field("data:").and_then(|data| serde_json::from_str(data).ok());
    (field("event:").unwrap_or_default().trim(), data.unwrap_or_default())
}
