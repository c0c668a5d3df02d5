//! What the sources that are connected to a client's own server have in common.
//!
//! Each runs as tasks that end with it, and tells by a bounded channel; asking for the next news
//! may be dropped and asked again. Knows nothing of what a message means.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use qd_harness::{Channel, Direction, Harness, Signal};
use qd_session::moment::Timestamp;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Batches of news from servers of clients that are told and not yet taken. Beyond it we stop
/// reading, and the server keeps its words, or drops us and is asked again.
const SERVER_BATCHES_MAX: usize = 8;

/// Longest message of a client's server. A handler parses no longer one; what comes unasked has
/// a few kilobytes, a diff in it some hundred.
pub const SERVER_MESSAGE_BYTES_MAX: usize = 4 << 20;

/// How long a server may take to accept, to answer one request, or to take what we send. It is
/// on this machine, but it may be loading a project, and the machine may be busy.
pub const SERVER_REPLY_WAIT: Duration = Duration::from_secs(20);

/// Before a server that failed us is asked again for the first time; doubled with each failure.
const RECONNECT_FIRST: Duration = Duration::from_millis(250);

/// The longest wait before it is asked again: an operator who restarts it sees it in that time,
/// and one that is gone for good costs two connects a minute.
const RECONNECT_MAX: Duration = Duration::from_secs(30);

/// A connection that lasted this long was a good one: the next failure is its first.
const CONNECTION_STEADY: Duration = Duration::from_secs(10);

/// What a connected source tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceNews {
    Signal(SourceSignal),
    /// Something for the log.
    Notice(SourceNotice),
}

/// One message, in either direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceSignal {
    pub harness: Harness,
    pub channel: Channel,
    pub direction: Direction,
    /// When it was read or sent; of an answer that may be older than news which came before it,
    /// when it was asked for.
    pub at: Timestamp,
    /// Which of several servers it is from or to.
    pub server: Option<Arc<str>>,
    pub payload: Vec<u8>,
}

impl SourceSignal {
    /// As a handler takes it.
    pub fn signal(&self) -> Signal<'_> {
        Signal {
            at: self.at,
            seq: 0,
            channel: self.channel,
            direction: self.direction,
            file: self.server.as_deref(),
            payload: &self.payload,
        }
    }
}

/// How it stands with a server. Told when it changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceNotice {
    /// A socket's path or a URL, without a password.
    pub server: Arc<str>,
    pub kind: NoticeKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoticeKind {
    /// All that it had to say about what was before has been told.
    Attached,
    /// There is no connection, and why. It is tried again.
    Failed(Trouble),
    /// The end of its process will not be seen.
    NotObserved,
    /// There are more servers than we connect to.
    TooMany,
}

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    #[error("it cannot be reached ({0})")]
    Unreachable(io::ErrorKind),
    #[error("it closed the connection")]
    Closed,
    #[error("it does not answer")]
    Silent,
    #[error("it sent a message of more than {SERVER_MESSAGE_BYTES_MAX} bytes")]
    TooLong,
    #[error("it does not speak its protocol")]
    Foreign,
    #[error("it wants a password that we do not have")]
    Locked,
    #[error("it refuses us: {why}")]
    Refused { why: String },
}

/// A channel for news, bounded.
pub(super) fn channel() -> (mpsc::Sender<Vec<SourceNews>>, mpsc::Receiver<Vec<SourceNews>>) {
    mpsc::channel(SERVER_BATCHES_MAX)
}

/// Nobody listens any more.
#[derive(Debug)]
pub(super) struct Unheard;

/// How a connection came to its end.
pub(super) enum End {
    Trouble(Trouble),
    Unheard,
}

impl From<Unheard> for End {
    fn from(_: Unheard) -> Self {
        Self::Unheard
    }
}

impl From<Trouble> for End {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

/// The way out for what one server says.
#[derive(Debug, Clone)]
pub(super) struct Outlet {
    pub harness: Harness,
    pub channel: Channel,
    /// What notices call it.
    pub name: Arc<str>,
    /// What signals call it, where there are several.
    pub server: Option<Arc<str>>,
    pub now: fn() -> Timestamp,
    tell: mpsc::Sender<Vec<SourceNews>>,
    last: Option<NoticeKind>,
}

impl Outlet {
    pub fn new(
        (harness, channel): (Harness, Channel),
        name: Arc<str>,
        server: Option<Arc<str>>,
        now: fn() -> Timestamp,
        tell: mpsc::Sender<Vec<SourceNews>>,
    ) -> Self {
        Self { harness, channel, name, server, now, tell, last: None }
    }

    pub fn message(&self, direction: Direction, at: Timestamp, payload: Vec<u8>) -> SourceNews {
        SourceNews::Signal(SourceSignal {
            harness: self.harness,
            channel: self.channel,
            direction,
            at,
            server: self.server.clone(),
            payload,
        })
    }

    /// What a process watcher saw.
    pub fn process(&self, payload: Vec<u8>) -> SourceNews {
        SourceNews::Signal(SourceSignal {
            harness: self.harness,
            channel: Channel::Process,
            direction: Direction::FromAgent,
            at: (self.now)(),
            server: self.server.clone(),
            payload,
        })
    }

    pub async fn tell(&self, news: Vec<SourceNews>) -> Result<(), Unheard> {
        if news.is_empty() {
            return Ok(());
        }
        self.tell.send(news).await.map_err(|_| Unheard)
    }

    /// Says it unless it was the last thing said.
    pub async fn notice(&mut self, kind: NoticeKind) -> Result<(), Unheard> {
        if self.last.as_ref() == Some(&kind) {
            return Ok(());
        }
        self.last = Some(kind.clone());
        self.tell(vec![SourceNews::Notice(SourceNotice { server: self.name.clone(), kind })]).await
    }
}

/// News as the source's owner takes them, and the task that makes them.
#[derive(Debug)]
pub(super) struct Inbox {
    heard: mpsc::Receiver<Vec<SourceNews>>,
    ready: VecDeque<SourceNews>,
    task: JoinHandle<()>,
}

impl Inbox {
    pub fn new(heard: mpsc::Receiver<Vec<SourceNews>>, task: JoinHandle<()>) -> Self {
        Self { heard, ready: VecDeque::new(), task }
    }

    pub async fn next(&mut self) -> Option<SourceNews> {
        loop {
            if let Some(news) = self.ready.pop_front() {
                return Some(news);
            }
            self.ready.extend(self.heard.recv().await?);
        }
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// How long to wait before the next attempt.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// After a failure; of a connection that stood, since when it did.
    pub fn after(&mut self, attached: Option<Instant>) -> Duration {
        if attached.is_some_and(|since| since.elapsed() >= CONNECTION_STEADY) {
            self.failures = 0;
        }
        let wait = RECONNECT_FIRST.saturating_mul(1 << self.failures.min(16)).min(RECONNECT_MAX);
        self.failures = self.failures.saturating_add(1);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_their_bound_and_begin_anew_after_a_good_connection() {
        let mut backoff = Backoff::default();
        let now = Instant::now();
        let waits: Vec<u128> = (0..9).map(|_| backoff.after(Some(now)).as_millis()).collect();
        assert_eq!(waits, [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
        if let Some(long_ago) = now.checked_sub(CONNECTION_STEADY) {
            assert_eq!(backoff.after(Some(long_ago)), RECONNECT_FIRST);
        }
    }
}
