//! Carries spans to a collector in batches, beside the loop.
//!
//! Whoever offers a span never waits. What finds no room, and what the collector does not take in
//! the end, is dropped and counted; that it is away is said once, and that it is back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, Response, redirect};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use super::collector::Collector;
use super::otlp;
use super::span::Span;

/// Spans that wait for their collector, about 1 KiB each: minutes of a busy board. Further ones are
/// dropped and counted.
pub const SPANS_WAITING_MAX: usize = 2_048;

/// Spans of one request to a collector, about 200 KiB: they take requests of some megabytes.
const SPAN_BATCH_MAX: usize = 512;

/// How long a span waits for others, so that a turn is one request and not twenty.
const SPAN_BATCH_WAIT: Duration = Duration::from_secs(1);

/// For one request to a collector, as other exporters wait.
const SPAN_POST_MAX: Duration = Duration::from_secs(10);

/// Before a batch is sent again that may be taken later. Then it is dropped: what comes after it
/// has to wait meanwhile.
const SPAN_RETRIES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];

/// Longest pause that a collector may ask for.
const SPAN_PAUSE_MAX: Duration = Duration::from_secs(30);

/// For the last batch when the daemon ends. Whoever stops it waits for that.
const SPAN_FLUSH_MAX: Duration = Duration::from_secs(3);

/// Longest answer of a collector that is looked at: a number and a sentence.
const SPAN_ANSWER_BYTES_MAX: usize = 64 << 10;

#[derive(Debug)]
pub struct Exporter {
    waiting: mpsc::Sender<Span>,
    tally: Arc<Tally>,
    carrier: JoinHandle<()>,
}

/// What became of spans so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpanTally {
    pub sent: u64,
    pub dropped: u64,
}

#[derive(Debug, Default)]
struct Tally {
    sent: AtomicU64,
    dropped: AtomicU64,
}

impl Exporter {
    /// Must be called in a Tokio runtime.
    pub fn start(collector: Collector) -> Result<Self, reqwest::Error> {
        // It is for the whole program; somebody who was first chose the same, or had a reason.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut client = Client::builder()
            .timeout(SPAN_POST_MAX)
            .redirect(redirect::Policy::none())
            .user_agent(concat!("quarterdeck/", env!("CARGO_PKG_VERSION")));
        if collector.is_on_loopback() {
            // A proxy has another loopback.
            client = client.no_proxy();
        }
        let (waiting, spans) = mpsc::channel(SPANS_WAITING_MAX);
        let tally = Arc::new(Tally::default());
        let client = client.build()?;
        let carrier = Carrier { client, collector, tally: tally.clone(), is_away: false };
        Ok(Self { waiting, tally, carrier: tokio::spawn(carrier.run(spans)) })
    }

    pub fn offer(&self, span: Span) {
        if self.waiting.try_send(span).is_err() {
            self.tally.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn tally(&self) -> SpanTally {
        let Tally { sent, dropped } = &*self.tally;
        SpanTally { sent: sent.load(Ordering::Relaxed), dropped: dropped.load(Ordering::Relaxed) }
    }

    /// Sends what waits, for as long as that is bearable at the end of a program.
    pub async fn finish(self) {
        let Self { waiting, mut carrier, .. } = self;
        drop(waiting);
        if timeout(SPAN_FLUSH_MAX, &mut carrier).await.is_err() {
            carrier.abort();
            warn!("the last spans could not be sent in time");
        }
    }
}

/// Why a batch was not taken.
struct Failure {
    why: String,
    /// Whether it may be taken later, and when the collector wants to see it again.
    again: Option<Option<Duration>>,
}

struct Carrier {
    client: Client,
    collector: Collector,
    tally: Arc<Tally>,
    /// The last batch was not taken.
    is_away: bool,
}

impl Carrier {
    async fn run(mut self, mut spans: mpsc::Receiver<Span>) {
        let mut batch = Vec::new();
        while let Some(first) = spans.recv().await {
            batch.push(first);
            fill(&mut batch, &mut spans).await;
            self.deliver(&batch).await;
            batch.clear();
        }
    }

    async fn deliver(&mut self, batch: &[Span]) {
        let body = otlp::request(batch).encode_to_vec();
        let mut pauses = SPAN_RETRIES.into_iter();
        loop {
            let failure = match self.post(body.clone()).await {
                Ok(rejected) => {
                    if std::mem::take(&mut self.is_away) {
                        info!(collector = %self.collector, "the collector takes spans again");
                    }
                    let rejected = rejected.min(batch.len() as u64);
                    self.tally.dropped.fetch_add(rejected, Ordering::Relaxed);
                    self.tally.sent.fetch_add(batch.len() as u64 - rejected, Ordering::Relaxed);
                    return;
                }
                Err(failure) => failure,
            };
            if !std::mem::replace(&mut self.is_away, true) {
                warn!(collector = %self.collector, why = failure.why, "the collector takes no spans");
            }
            let (Some(after), Some(pause)) = (failure.again, pauses.next()) else { break };
            sleep(after.map_or(pause, |after| after.max(pause).min(SPAN_PAUSE_MAX))).await;
        }
        self.tally.dropped.fetch_add(batch.len() as u64, Ordering::Relaxed);
    }

    /// How many of them the collector did not want, of those that it took.
    async fn post(&self, body: Vec<u8>) -> Result<u64, Failure> {
        let request = self
            .client
            .post(self.collector.url.clone())
            .headers(self.collector.headers.clone())
            .header(CONTENT_TYPE, "application/x-protobuf")
            .body(body);
        let response = request.send().await.map_err(|error| Failure::of(&error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(rejected(response).await);
        }
        let after = response.headers().get(RETRY_AFTER).and_then(|after| after.to_str().ok());
        let after = after.and_then(|after| after.trim().parse().ok()).map(Duration::from_secs);
        let is_passing = matches!(status.as_u16(), 429 | 502 | 503 | 504);
        Err(Failure { why: format!("it answered {status}"), again: is_passing.then_some(after) })
    }
}

impl Failure {
    fn of(error: &reqwest::Error) -> Self {
        // The innermost error says what happened; those around it repeat the address.
        let mut cause: &dyn std::error::Error = error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        let why = match error.is_timeout() {
            true => "it did not answer in time".to_owned(),
            false => cause.to_string(),
        };
        Self { why, again: Some(None) }
    }
}

/// Others end soon: they go together.
async fn fill(batch: &mut Vec<Span>, spans: &mut mpsc::Receiver<Span>) {
    let due = sleep(SPAN_BATCH_WAIT);
    tokio::pin!(due);
    while batch.len() < SPAN_BATCH_MAX {
        tokio::select! {
            () = &mut due => return,
            more = spans.recv() => match more {
                Some(span) => batch.push(span),
                None => return,
            },
        }
    }
}

async fn rejected(mut response: Response) -> u64 {
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        if body.len() + chunk.len() > SPAN_ANSWER_BYTES_MAX {
            return 0;
        }
        body.extend_from_slice(&chunk);
    }
    let answer = ExportTraceServiceResponse::decode(body.as_slice()).unwrap_or_default();
    let partial = answer.partial_success.unwrap_or_default();
    u64::try_from(partial.rejected_spans).unwrap_or(0)
}
