//! The peer: the same shape of server that keeps everything in memory only. Takes a hook, parses
//! it, remembers the session's last one, tells whoever listens, answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::UnixListener;
use tokio::sync::broadcast;

#[derive(Clone)]
struct Board {
    sessions: Arc<Mutex<HashMap<String, Value>>>,
    changes: broadcast::Sender<Arc<Value>>,
}

pub fn serve(socket: &str) {
    // As many threads as the daemon has for its runtime.
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let listener = UnixListener::bind(socket).expect("a socket");
        let (changes, mut listens) = broadcast::channel(4_096);
        tokio::spawn(async move { while listens.recv().await.is_ok() {} });
        let board = Board { sessions: Default::default(), changes };
        let app = Router::new().route("/api/live/hook", post(hook)).with_state(board);
        println!("listens");
        axum::serve(listener, app).await.expect("it serves");
    });
}

async fn hook(State(board): State<Board>, payload: Bytes) -> Json<Value> {
    let hook: Value = serde_json::from_slice(&payload).expect("our own hooks");
    let session = hook["session_id"].as_str().expect("an id").to_owned();
    board.sessions.lock().expect("whole").insert(session, hook.clone());
    // The listener may be behind.
    let _ = board.changes.send(Arc::new(hook));
    Json(json!({}))
}
