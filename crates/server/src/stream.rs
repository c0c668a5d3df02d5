//! The board as it changes: a snapshot, then every change, with ids that rise by one.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use qd_broker::runtime::{BoardNews, Change, Handle};
use qd_session::id::SessionId;
use qd_session::operator::Group;
use serde::Serialize;
use serde_json::json;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_stream::Stream;

use crate::error::Refusal;
use crate::limits::STREAM_PING_EVERY;
use crate::server::Server;
use crate::wire::{SessionList, Summary};

pub async fn stream(
    State(server): State<Server>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Refusal> {
    let listener = Listener::new(server.handle().clone()).await?;
    let events = told(listener);
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(STREAM_PING_EVERY)))
}

/// One reader of the stream.
struct Listener {
    handle: Handle,
    changes: Receiver<Arc<Change>>,
    groups: BTreeMap<SessionId, Group>,
    summary: Summary,
    ready: VecDeque<Event>,
}

impl Listener {
    async fn new(handle: Handle) -> Result<Self, Refusal> {
        let (cards, changes) = handle.board().await?;
        let mut listener = Self {
            handle,
            changes,
            groups: BTreeMap::new(),
            summary: Summary::default(),
            ready: VecDeque::new(),
        };
        listener.begin(SessionList::of(cards));
        Ok(listener)
    }

    fn begin(&mut self, list: SessionList) {
        let known = list.sessions.iter();
        self.groups = known.map(|card| (card.session_id.clone(), card.agent_state.group)).collect();
        self.summary = list.summary;
        self.ready.push_back(event("snapshot", None, &list));
    }

    /// None when the daemon stops.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            match self.changes.recv().await {
                Ok(change) => self.tell(&change),
                // Too slow: what was missed is in the next snapshot.
                Err(RecvError::Lagged(_)) => {
                    let (cards, changes) = self.handle.board().await.ok()?;
                    self.changes = changes;
                    self.begin(SessionList::of(cards));
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }

    fn tell(&mut self, change: &Change) {
        let id = Some(change.id);
        match &change.news {
            BoardNews::Shown(card) => {
                self.groups.insert(card.session_id.clone(), card.agent_state.group);
                self.ready.push_back(event("session_changed", id, card));
            }
            BoardNews::Removed(session) => {
                self.groups.remove(session);
                let removed = json!({ "sessionId": session });
                self.ready.push_back(event("session_removed", id, &removed));
            }
        }
        let summary = Summary::of(self.groups.values().copied());
        if summary != self.summary {
            self.summary = summary;
            self.ready.push_back(event("summary", id, &summary));
        }
    }
}

/// A task of its own waits for changes, and ends when nobody reads any more.
fn told(listener: Listener) -> impl Stream<Item = Result<Event, Infallible>> {
    let (tell, events) = tokio::sync::mpsc::channel(1);
    tokio::spawn(async move {
        let mut listener = listener;
        while let Some(event) = listener.next().await {
            if tell.send(Ok(event)).await.is_err() {
                break;
            }
        }
    });
    tokio_stream::wrappers::ReceiverStream::new(events)
}

fn event(name: &str, id: Option<u64>, data: &impl Serialize) -> Event {
    let data = serde_json::to_string(data).expect("our own types are JSON");
    let event = Event::default().event(name).data(data);
    match id {
        Some(id) => event.id(id.to_string()),
        None => event,
    }
}
