//! The board as it changes: a snapshot, then what is new, in frames with rising numbers.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Query, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName};
use axum::response::{IntoResponse, Response};
use futures_util::stream::unfold;
use qd_daemon::runtime::Presence;
use serde::Deserialize;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use crate::acting::Caller;
use crate::budget::{OpenStream, Streams};
use crate::error::Refusal;
use crate::feed::{Feed, Next, Progress};
use crate::limits::{STREAM_GAP_PER_READER, STREAM_PING_EVERY};
use crate::presence::OpenTab;
use crate::server::Server;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// What a reader may say of itself.
#[derive(Debug, Deserialize)]
pub struct Whose {
    /// The name under which a tab says whether somebody looks at it.
    tab: Option<String>,
}

pub async fn stream(
    State(server): State<Server>,
    Query(Whose { tab }): Query<Whose>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    let open = opened(server.streams(), &caller)?;
    let feed = server.feed().clone();
    feed.reach(0).await?;
    let last = headers.get(LAST_EVENT_ID).and_then(|id| id.to_str().ok());
    let tab = tab.and_then(|name| server.tabs().open(name));
    let reader = Reader::new(feed, last, server.readers(), tab);
    let events = unfold((reader, open), async |(mut reader, open)| {
        let text = reader.next().await?;
        Some((Ok::<_, Infallible>(text), (reader, open)))
    });
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-store"),
        // A proxy that collects would keep the news to itself.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((headers, Body::from_stream(events)).into_response())
}

/// A caller of the port opens so many and no more; the command line has no bound.
pub fn opened(streams: &Streams, caller: &Caller) -> Result<Option<OpenStream>, Refusal> {
    let Some(identity) = &caller.identity else { return Ok(None) };
    streams.open(identity).map(Some).ok_or(Refusal::TooManyStreams)
}

/// How many read the stream.
#[derive(Debug, Clone, Default)]
pub struct Readers(Arc<AtomicU32>);

impl Readers {
    /// Those whom the loop counts, too: while somebody looks, hooks may wait.
    pub fn of(presence: &Presence) -> Self {
        Self(presence.counter())
    }

    /// Somebody reads for as long as this is held.
    pub fn begin(&self) -> Reading {
        self.0.fetch_add(1, Ordering::Relaxed);
        Reading(self.clone())
    }

    pub fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Somebody who reads what happens.
#[derive(Debug)]
pub struct Reading(Readers);

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One of them. It keeps a number, not the news.
#[derive(Debug)]
struct Reader {
    feed: Feed,
    progress: watch::Receiver<Progress>,
    readers: Readers,
    place: Place,
    sent_at: Instant,
    _reading: Reading,
    /// Known while this lives.
    _tab: Option<OpenTab>,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    Beginning,
    /// It has all up to this number.
    After(u64),
    Left,
}

impl Reader {
    fn new(
        feed: Feed,
        last_event_id: Option<&str>,
        readers: Readers,
        tab: Option<OpenTab>,
    ) -> Self {
        let number = last_event_id.and_then(|id| feed.number_of(id));
        let place = match number {
            Some(number) if feed.after(number) != Next::Lost => Place::After(number),
            Some(_) | None => Place::Beginning,
        };
        let progress = feed.progress();
        let reading = readers.begin();
        Self {
            feed,
            progress,
            readers,
            place,
            sent_at: Instant::now(),
            _reading: reading,
            _tab: tab,
        }
    }

    /// What to send next; none after the last.
    async fn next(&mut self) -> Option<Bytes> {
        let number = match self.place {
            Place::Beginning => {
                let (text, number) = self.feed.snapshot();
                self.place = Place::After(number);
                return Some(text);
            }
            Place::After(number) => number,
            Place::Left => return None,
        };
        // Many readers get their news in fewer, larger pieces.
        let gap = STREAM_GAP_PER_READER * self.readers.count().saturating_sub(1);
        sleep_until(self.sent_at + gap).await;
        let text = match self.feed.after(number) {
            Next::Nothing => self.news().await,
            known @ (Next::Frames(..) | Next::Lost) => known,
        };
        self.sent_at = Instant::now();
        Some(match text {
            Next::Frames(text, number) => {
                self.place = Place::After(number);
                text
            }
            // Who is too slow for the ring comes back for a snapshot, when it can.
            Next::Lost => self.leave("slow"),
            Next::Nothing if self.is_over() => self.leave("stopping"),
            Next::Nothing => Bytes::from_static(b": still here\n\n"),
        })
    }

    /// Waits for something new, but not longer than a connection may be silent.
    async fn news(&mut self) -> Next {
        let Place::After(number) = self.place else { return Next::Nothing };
        let feed = &self.feed;
        let mut news = Next::Nothing;
        let new = |progress: &Progress| {
            news = feed.after(number);
            *progress == Progress::Stopped || news != Next::Nothing
        };
        // Silence, or the end of the daemon: either way there is nothing.
        let _ = timeout(STREAM_PING_EVERY, self.progress.wait_for(new)).await;
        news
    }

    fn is_over(&self) -> bool {
        *self.progress.borrow() == Progress::Stopped
    }

    fn leave(&mut self, reason: &str) -> Bytes {
        self.place = Place::Left;
        format!("event: goodbye\ndata: {{\"reason\":\"{reason}\"}}\n\n").into()
    }
}
