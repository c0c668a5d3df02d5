//! What waits for one receiver, and the task that carries it there.
//!
//! Whoever puts something in never waits. A notice that is taken back before it went out is not
//! sent at all.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use tracing::{debug, warn};

use super::ReceiverView;
use super::desktop::Desktop;
use super::message::Message;
use super::ntfy::Ntfy;
use super::web_push::WebPush;
use super::webhook::Webhook;

/// Notices that wait for one receiver. Nobody reads more at once; the oldest goes, and is counted.
const NOTICES_WAITING_MAX: usize = 64;

/// Pauses before a notice that was not taken is tried again. After the last it is given up: an
/// operator who hears of it later than that has looked at the page.
const NOTICE_RETRIES: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(30)];

/// Longest pause that a receiver may ask for.
const NOTICE_PAUSE_MAX: Duration = Duration::from_secs(60);

/// How a notice reaches a receiver.
#[derive(Debug)]
pub enum Carrier {
    WebPush(Box<WebPush>),
    Webhook(Webhook),
    Ntfy(Ntfy),
    Desktop(Desktop),
}

/// Why it did not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// Another attempt may succeed.
    Later {
        why: String,
        after: Option<Duration>,
    },
    Refused(String),
    /// The receiver is there no more.
    Gone(String),
}

impl Failure {
    pub fn later(why: impl Into<String>) -> Self {
        Self::Later { why: why.into(), after: None }
    }
}

impl Carrier {
    fn name(&self) -> String {
        match self {
            Self::WebPush(push) => format!("push {}", push.device.label),
            Self::Webhook(hook) => format!("webhook {}", hook.settings.url.host().unwrap_or("?")),
            Self::Ntfy(ntfy) => format!("ntfy {}", ntfy.settings.url.host().unwrap_or("?")),
            Self::Desktop(_) => "desktop".to_owned(),
        }
    }

    async fn carry(&mut self, message: &Message) -> Result<(), Failure> {
        match self {
            Self::WebPush(push) => push.carry(message).await,
            Self::Webhook(hook) => hook.carry(message).await,
            Self::Ntfy(ntfy) => ntfy.carry(message).await,
            Self::Desktop(desktop) => desktop.carry(message).await,
        }
    }

    /// Only a browser's subscription ends for good; a webhook that is not found comes back.
    fn can_be_gone(&self) -> bool {
        matches!(self, Self::WebPush(_))
    }
}

#[derive(Debug)]
pub struct Outbox {
    name: String,
    desk: Mutex<Desk>,
    bell: Notify,
    end: watch::Sender<End>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Open,
    Closed,
    /// The receiver itself has gone.
    Gone,
}

/// What became of a message that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Delivery {
    Sent,
    /// A newer one of its tag came while it was tried.
    Needless,
}

#[derive(Debug, Default)]
struct Desk {
    waiting: VecDeque<Arc<Message>>,
    sent: u64,
    failed: u64,
    dropped: u64,
    trouble: Option<String>,
}

impl Outbox {
    pub fn start(carrier: Carrier) -> Arc<Self> {
        let (end, _) = watch::channel(End::Open);
        let desk = Mutex::default();
        let outbox = Arc::new(Self { name: carrier.name(), desk, bell: Notify::new(), end });
        tokio::spawn(outbox.clone().run(carrier));
        outbox
    }

    pub fn put(&self, message: Arc<Message>) {
        let mut desk = self.desk();
        let before = desk.waiting.len();
        desk.waiting.retain(|waiting| waiting.tag != message.tag);
        // What has not gone out need not be taken back.
        let is_needless = message.closed && desk.waiting.len() < before;
        if !is_needless {
            if desk.waiting.len() == NOTICES_WAITING_MAX {
                desk.waiting.pop_front();
                desk.dropped += 1;
            }
            desk.waiting.push_back(message);
        }
        drop(desk);
        self.bell.notify_one();
    }

    pub fn view(&self) -> ReceiverView {
        let desk = self.desk();
        ReceiverView {
            name: self.name.clone(),
            sent: desk.sent,
            failed: desk.failed,
            dropped: desk.dropped,
            waiting: desk.waiting.len(),
            trouble: desk.trouble.clone(),
        }
    }

    pub fn close(&self) {
        self.end.send_if_modified(|end| {
            let is_open = *end == End::Open;
            if is_open {
                *end = End::Closed;
            }
            is_open
        });
    }

    /// Waits until the receiver has gone for good. Never ends for one that is closed.
    pub async fn gone(&self) {
        let mut end = self.end.subscribe();
        match end.wait_for(|end| *end != End::Open).await.map(|end| *end) {
            Ok(End::Gone) => {}
            Ok(End::Open | End::Closed) | Err(_) => std::future::pending().await,
        }
    }

    async fn run(self: Arc<Self>, mut carrier: Carrier) {
        let mut end = self.end.subscribe();
        loop {
            let message = tokio::select! {
                _ = end.wait_for(|end| *end != End::Open) => return,
                message = self.next() => message,
            };
            let carried = tokio::select! {
                _ = end.wait_for(|end| *end != End::Open) => return,
                carried = self.deliver(&mut carrier, &message) => carried,
            };
            if let Err(why) = self.note(&message, carried) {
                warn!(receiver = self.name, why, "it is gone, and is told no more");
                self.end.send_replace(End::Gone);
                return;
            }
        }
    }

    async fn next(&self) -> Arc<Message> {
        loop {
            if let Some(message) = self.desk().waiting.pop_front() {
                return message;
            }
            self.bell.notified().await;
        }
    }

    async fn deliver(&self, carrier: &mut Carrier, message: &Message) -> Result<Delivery, Failure> {
        let mut pauses = NOTICE_RETRIES.into_iter();
        loop {
            let failure = match carrier.carry(message).await {
                Err(Failure::Gone(why)) if !carrier.can_be_gone() => Failure::Refused(why),
                Err(failure) => failure,
                Ok(()) => return Ok(Delivery::Sent),
            };
            let Failure::Later { why, after } = &failure else { return Err(failure) };
            let Some(pause) = pauses.next() else { return Err(failure) };
            debug!(receiver = self.name, why, "it is tried again");
            let pause = after.map_or(pause, |after| after.max(pause).min(NOTICE_PAUSE_MAX));
            if self.overtaken(message, pause).await {
                return Ok(Delivery::Needless);
            }
        }
    }

    /// Waits, and says whether a newer message of the same tag has come meanwhile.
    async fn overtaken(&self, message: &Message, pause: Duration) -> bool {
        let newer = async {
            loop {
                if self.desk().waiting.iter().any(|waiting| waiting.tag == message.tag) {
                    return;
                }
                self.bell.notified().await;
            }
        };
        timeout(pause, newer).await.is_ok()
    }

    /// An error where the receiver has gone.
    fn note(&self, message: &Message, carried: Result<Delivery, Failure>) -> Result<(), String> {
        let mut desk = self.desk();
        match carried {
            Ok(Delivery::Needless) => Ok(()),
            Ok(Delivery::Sent) => {
                desk.sent += 1;
                desk.trouble = None;
                Ok(())
            }
            Err(Failure::Later { why, .. } | Failure::Refused(why)) => {
                warn!(receiver = self.name, tag = message.tag, why, "a notice did not arrive");
                desk.failed += 1;
                desk.trouble = Some(why);
                Ok(())
            }
            Err(Failure::Gone(why)) => Err(why),
        }
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
