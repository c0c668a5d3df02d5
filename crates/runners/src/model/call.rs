//! One request, and its answer as it comes in.

use std::error::Error as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use qd_harness::native::{Cause, Failure, HttpRequest, Piece, ResponseHead, StreamReader};
use qd_harness::secret;
use qd_session::id::TurnId;
use qd_session::moment::Timestamp;
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Client, Response, redirect};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::Endpoint;

/// How long a connection to a model endpoint may take to be made, TLS included.
const MODEL_CONNECT_MAX: Duration = Duration::from_secs(10);

/// How long a model may be silent. Thinking models send a ping every few seconds; the machine's
/// own timer has the same length.
const MODEL_SILENCE_MAX: Duration = Duration::from_millis(qd_session::limits::LLM_SILENCE_MAX_MS);

/// Largest request to a model. Anthropic takes no more; what is larger fits into no context.
const MODEL_REQUEST_BYTES_MAX: usize = 32 << 20;

/// Bytes of one answer as it comes over the wire: each token may be wrapped into some three
/// hundred bytes of an event, and there are at most 128 k of them.
const MODEL_RESPONSE_BYTES_MAX: usize = 64 << 20;

/// What is read of a response that is no answer: a message, or the beginning of a page.
const MODEL_ERROR_BYTES_MAX: usize = 64 << 10;

/// What is heard of an answer while it comes in.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    Piece(Piece),
    /// Bytes that tell nothing: the provider is alive and thinks.
    Life,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallEnd {
    /// The last piece has been handed over: [`Piece::End`] or [`Piece::Failed`].
    Told,
    /// Canceled, or nobody listens any more. The connection is closed, and nothing more was told.
    Canceled,
}

/// How long is waited for a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    pub connect: Duration,
    /// Without a byte, before the answer begins and within it.
    pub silence: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { connect: MODEL_CONNECT_MAX, silence: MODEL_SILENCE_MAX }
    }
}

/// Connections to providers: kept open between requests, through the proxy that the environment
/// names, without cookies, and never on to another address.
#[derive(Debug, Clone)]
pub struct Line {
    client: Client,
    patience: Patience,
}

impl Line {
    pub fn new(patience: Patience) -> Result<Self, reqwest::Error> {
        // It is for the whole program; somebody who was first chose the same, or had a reason.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .connect_timeout(patience.connect)
            .redirect(redirect::Policy::none())
            .user_agent(concat!("quarterdeck/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self { client, patience })
    }

    /// Sends the request and hands over what is heard, in order, until the last piece. A listener
    /// that is slow slows the provider down.
    pub async fn call(
        &self,
        endpoint: &Endpoint,
        request: HttpRequest,
        turn: TurnId,
        cancel: &CancellationToken,
        heard: &mpsc::Sender<Heard>,
    ) -> CallEnd {
        let told = async {
            match self.answer(endpoint, request, turn, heard).await {
                Ok(()) => Ok(()),
                Err(Stopped::Deaf) => Err(Deaf),
                Err(Stopped::Failed(failure)) => {
                    tell(heard, Piece::Failed(without_key(failure, endpoint))).await
                }
            }
        };
        match cancel.run_until_cancelled(told).await {
            Some(Ok(())) => CallEnd::Told,
            Some(Err(Deaf)) | None => CallEnd::Canceled,
        }
    }

    async fn answer(
        &self,
        endpoint: &Endpoint,
        request: HttpRequest,
        turn: TurnId,
        heard: &mpsc::Sender<Heard>,
    ) -> Result<(), Stopped> {
        let mut response = self.send(endpoint, request).await?;
        let head = head(&response);
        if !response.status().is_success() {
            let body = self.error_body(&mut response).await;
            let failure = Failure::of_response(now(), &head, &body);
            return Err(failure.into());
        }
        let mut reader = StreamReader::new(endpoint.provider, turn, head.request_id());
        let mut bytes = 0;
        loop {
            let pieces = match self.chunk(&mut response).await {
                Ok(Some(chunk)) if bytes + chunk.len() > MODEL_RESPONSE_BYTES_MAX => {
                    reader.fail(Failure::of(Cause::TooLong)).into_iter().collect()
                }
                Ok(Some(chunk)) => {
                    bytes += chunk.len();
                    reader.take(&chunk)
                }
                Ok(None) => reader.end(),
                Err(failure) => reader.fail(failure).into_iter().collect(),
            };
            if pieces.is_empty() {
                live(heard)?;
            }
            for piece in pieces {
                match piece {
                    Piece::Failed(failure) => return Err(failure.into()),
                    end @ Piece::End { .. } => return Ok(tell(heard, end).await?),
                    piece @ (Piece::Metadata { .. }
                    | Piece::Text { .. }
                    | Piece::Thinking { .. }
                    | Piece::CallArguments { .. }
                    | Piece::Usage(_)) => tell(heard, piece).await?,
                }
            }
        }
    }

    async fn send(&self, endpoint: &Endpoint, request: HttpRequest) -> Result<Response, Failure> {
        if request.body.len() > MODEL_REQUEST_BYTES_MAX {
            return Err(Failure::of(Cause::ContextFull).saying("it is larger than 32 MiB"));
        }
        let mut sending = self.client.post(endpoint.url().clone()).body(request.body);
        for (name, value) in request.headers {
            sending = sending.header(name, value);
        }
        if let Some((name, value)) = key_header(endpoint) {
            sending = sending.header(name, value);
        }
        match timeout(self.patience.silence, sending.send()).await {
            Ok(sent) => sent.map_err(|error| failure_of(&error)),
            Err(_) => Err(self.silent()),
        }
    }

    async fn chunk(&self, response: &mut Response) -> Result<Option<Vec<u8>>, Failure> {
        match timeout(self.patience.silence, response.chunk()).await {
            Ok(Ok(chunk)) => Ok(chunk.map(Into::into)),
            Ok(Err(error)) => Err(failure_of(&error)),
            Err(_) => Err(self.silent()),
        }
    }

    /// As much of it as tells something; where it breaks off or comes too slowly, the status has
    /// told enough.
    async fn error_body(&self, response: &mut Response) -> Vec<u8> {
        let mut body = Vec::new();
        let reading = async {
            while body.len() < MODEL_ERROR_BYTES_MAX {
                match response.chunk().await {
                    Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                    Ok(None) | Err(_) => break,
                }
            }
        };
        let _ = timeout(self.patience.silence, reading).await;
        body.truncate(MODEL_ERROR_BYTES_MAX);
        body
    }

    fn silent(&self) -> Failure {
        let seconds = self.patience.silence.as_secs_f32();
        Failure::of(Cause::TimedOut).saying(&format!("not a byte for {seconds} s"))
    }
}

/// Why an answer was not read to its end.
enum Stopped {
    Failed(Failure),
    Deaf,
}

/// Nobody listens any more.
struct Deaf;

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Deaf> for Stopped {
    fn from(_: Deaf) -> Self {
        Self::Deaf
    }
}

/// Whoever has enough to read already needs no sign of life.
fn live(heard: &mpsc::Sender<Heard>) -> Result<(), Deaf> {
    match heard.try_send(Heard::Life) {
        Ok(()) | Err(mpsc::error::TrySendError::Full(_)) => Ok(()),
        Err(mpsc::error::TrySendError::Closed(_)) => Err(Deaf),
    }
}

async fn tell(heard: &mpsc::Sender<Heard>, piece: Piece) -> Result<(), Deaf> {
    heard.send(Heard::Piece(piece)).await.map_err(|_| Deaf)
}

fn key_header(endpoint: &Endpoint) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = endpoint.provider.key_header(endpoint.key()?.reveal());
    // A key has been found to be one line of plain letters.
    let mut value = HeaderValue::from_str(&value).expect("a key fits into a header");
    value.set_sensitive(true);
    Some((HeaderName::from_static(name), value))
}

/// Providers repeat keys that they refuse, and not every key looks like one.
fn without_key(failure: Failure, endpoint: &Endpoint) -> Failure {
    match (&failure.detail, endpoint.key()) {
        (Some(detail), Some(key)) if detail.contains(key.reveal()) => {
            let words = detail.replace(key.reveal(), secret::REDACTED);
            failure.saying(&words)
        }
        (_, _) => failure,
    }
}

fn head(response: &Response) -> ResponseHead {
    let headers = response.headers().iter().map(|(name, value)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    });
    ResponseHead { status: response.status().as_u16(), headers: headers.collect() }
}

/// What went wrong on the way. The address is left out: it is the endpoint's, and known.
fn failure_of(error: &reqwest::Error) -> Failure {
    let mut words: Vec<String> = Vec::new();
    let mut source = error.source();
    let mut is_tls = false;
    while let Some(inner) = source {
        is_tls |= is_tls_trouble(inner);
        words.push(inner.to_string());
        source = inner.source();
    }
    let cause = if is_tls {
        Cause::Untrusted
    } else if error.is_timeout() {
        Cause::TimedOut
    } else if error.is_connect() {
        Cause::Unreachable
    } else {
        Cause::Dropped
    };
    words.dedup();
    Failure::of(cause).saying(&words.join(": "))
}

/// TLS reports through the socket's own errors, which may be wrapped into each other.
fn is_tls_trouble(error: &(dyn std::error::Error + 'static)) -> bool {
    let within = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    error.is::<rustls::Error>() || within.is_some_and(|within| is_tls_trouble(within))
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
