//! One POST to somebody outside: over TLS, with every wait bounded, no redirect followed and no
//! proxy asked, to an address that was judged and to no other.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{CONTENT_LENGTH, HOST, RETRY_AFTER, USER_AGENT};
use hyper::http::HeaderMap;
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tracing::warn;

use super::destination::{Destinations, NoAddress};
use super::outbox::Failure;

/// How long a receiver may take to answer a notice, from the connection on.
pub const NOTICE_WAIT: Duration = Duration::from_secs(10);

/// How long a browser that subscribes waits until it is known where its push service is.
const NAME_WAIT: Duration = Duration::from_secs(3);

/// How much of a receiver's answer is read: it says why it refused.
pub const NOTICE_ANSWER_BYTES_MAX: usize = 4 << 10;

#[derive(Clone)]
pub struct Client {
    tls: TlsConnector,
    destinations: Destinations,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

/// An address that can be posted to: `https`, or plain `http`, with a host and no user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub uri: Uri,
}

impl Target {
    pub fn read(text: &str) -> Result<Self, &'static str> {
        let uri: Uri = text.parse().map_err(|_| "it is no address")?;
        let authority = uri.authority().ok_or("it is no whole address: https://host/path")?;
        if !matches!(uri.scheme_str(), Some("https" | "http")) {
            return Err("it is no address of the web: https://host/path");
        }
        if authority.as_str().contains('@') {
            return Err("a user in an address is not taken");
        }
        Ok(Self { uri })
    }

    pub fn host(&self) -> &str {
        self.uri.host().unwrap_or_default().trim_matches(['[', ']'])
    }

    pub fn is_tls(&self) -> bool {
        self.uri.scheme_str() == Some("https")
    }

    /// A bare address and no name, or the name of this machine.
    pub fn is_address(&self) -> bool {
        let host = self.host().trim_end_matches('.');
        host.parse::<IpAddr>().is_ok()
            || host.eq_ignore_ascii_case("localhost")
            || !host.contains('.')
            || host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    }

    /// Scheme and authority: whom a token is for.
    pub fn origin(&self) -> String {
        let authority = self.uri.authority().map_or("", |authority| authority.as_str());
        format!("{}://{authority}", self.uri.scheme_str().unwrap_or("https"))
    }

    pub fn port(&self) -> u16 {
        self.uri.port_u16().unwrap_or(if self.is_tls() { 443 } else { 80 })
    }
}

impl Client {
    /// Trusts whom this machine trusts.
    pub fn new(destinations: Destinations) -> Self {
        let mut roots = RootCertStore::empty();
        let (known, _) =
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if known == 0 {
            warn!("this machine trusts no certificate authority: nobody is told over HTTPS");
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring speaks TLS 1.2 and 1.3")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self { tls: TlsConnector::from(Arc::new(config)), destinations }
    }

    /// For a receiver that the operator's settings name.
    pub fn for_named(&self, target: &Target) -> Self {
        let destinations = self.destinations.clone().and_named_by(target);
        Self { tls: self.tls.clone(), destinations }
    }

    /// Whether the operator's settings allow a host although it is private.
    pub fn is_named(&self, target: &Target) -> bool {
        self.destinations.is_named(target)
    }

    /// Why a target is refused already now. What cannot be found at the moment is judged when
    /// something is sent there.
    pub async fn refuses(&self, target: &Target) -> Option<NoAddress> {
        let found = timeout(NAME_WAIT, self.destinations.find(target)).await;
        found.ok()?.err().filter(|why| matches!(why, NoAddress::Private { .. }))
    }

    /// Posts it. Taken is what is answered with a 2xx.
    pub async fn post(
        &self,
        target: &Target,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<(), Failure> {
        let posted = timeout(NOTICE_WAIT, self.exchange(target, headers, body)).await;
        posted.unwrap_or_else(|_| Err(Failure::later("it did not answer in time")))
    }

    async fn exchange(
        &self,
        target: &Target,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<(), Failure> {
        let unreachable =
            |error: io::Error| Failure::later(format!("it cannot be reached: {error}"));
        let addresses = self.destinations.find(target).await.map_err(|why| match why {
            NoAddress::Unknown(_) => Failure::later(why.to_string()),
            NoAddress::Private { .. } => Failure::Refused(why.to_string()),
        })?;
        let stream = TcpStream::connect(&addresses[..]).await.map_err(unreachable)?;
        let request = request(target, headers, body)?;
        let response = match target.is_tls() {
            false => sent(stream, request).await?,
            true => {
                let name = ServerName::try_from(target.host().to_owned());
                let name =
                    name.map_err(|_| Failure::Refused("its name is none for TLS".to_owned()))?;
                let stream = self.tls.connect(name, stream).await.map_err(unreachable)?;
                sent(stream, request).await?
            }
        };
        judged(response).await
    }
}

fn request(
    target: &Target,
    headers: HeaderMap,
    body: Vec<u8>,
) -> Result<Request<Full<Bytes>>, Failure> {
    let path = target.uri.path_and_query().map_or("/", |path| path.as_str());
    let authority = target.uri.authority().map_or("", |authority| authority.as_str());
    let mut request = Request::post(path)
        .header(HOST, authority)
        .header(USER_AGENT, concat!("quarterdeck/", env!("CARGO_PKG_VERSION")))
        .header(CONTENT_LENGTH, body.len())
        .body(Full::from(body))
        .map_err(|error| Failure::Refused(error.to_string()))?;
    request.headers_mut().extend(headers);
    Ok(request)
}

async fn sent(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    request: Request<Full<Bytes>>,
) -> Result<Response<Incoming>, Failure> {
    let broke = |error: hyper::Error| Failure::later(format!("the connection broke: {error}"));
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broke)?;
    // It ends with the answer, or with the sender.
    tokio::spawn(connection);
    sender.send_request(request).await.map_err(broke)
}

async fn judged(response: Response<Incoming>) -> Result<(), Failure> {
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    if matches!(status.as_u16(), 404 | 410) {
        return Err(Failure::Gone(format!("it answered {status}")));
    }
    let asked = response.headers().get(RETRY_AFTER).and_then(|after| after.to_str().ok());
    let after = asked.and_then(|seconds| seconds.trim().parse().ok()).map(Duration::from_secs);
    let body = Limited::new(response.into_body(), NOTICE_ANSWER_BYTES_MAX).collect().await;
    let body = body.map(|body| body.to_bytes()).unwrap_or_default();
    let said = qd_session::operator::notice::plain(&String::from_utf8_lossy(&body), SAID_CHARS_MAX);
    let why = match said.is_empty() {
        true => format!("it answered {status}"),
        false => format!("it answered {status}: {said}"),
    };
    match status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429) {
        true => Err(Failure::Later { why, after }),
        false => Err(Failure::Refused(why)),
    }
}

/// How much of a refusal the operator reads.
const SAID_CHARS_MAX: usize = 160;
