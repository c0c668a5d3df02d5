//! The two doors, and one way to serve a connection.

use std::convert::Infallible;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use qd_daemon::runtime::{Gone, Handle};
use qd_history::{Bookkeeper, Searcher};
use qd_host::supervised::is_confined;
use qd_notices::Notices;
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_send_buffer_size;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use tracing::{debug, warn};

use crate::auth::Tokens;
use crate::browsers::Browsers;
use crate::budget::Streams;
use crate::connections::{Connections, Seat, socket_max, tcp_max};
use crate::error::Refusal;
use crate::feed::Feed;
use crate::guard::{Names, Port, Via};
use crate::hook_posts::HookPosts;
use crate::limits::{ACCEPT_PAUSE, HEAD_WAIT_MAX, SEND_BUFFER_BYTES, STREAM_BUFFER_BYTES};
use crate::patience::Patient;
use crate::presence::Tabs;
use crate::push::OWNER_TOKEN;
use crate::routes::router;
use crate::sign_in_file::SignInFile;
use crate::stream::Readers;
use crate::wire::About;
use crate::{Error, frames, sign_in};

/// Where the daemon listens unless told otherwise.
pub const PORT: u16 = 47892;

/// What every route can reach.
#[derive(Debug, Clone)]
pub struct Server {
    handle: Handle,
    feed: Feed,
    readers: Readers,
    streams: Streams,
    browsers: Arc<Browsers>,
    records: Records,
    tabs: Tabs,
    hook_posts: HookPosts,
    port: u16,
    names: Arc<Names>,
    /// Where the socket is.
    runtime_folder: Arc<PathBuf>,
}

/// What works beside the loop: what is kept of the past, and who tells. Nothing in a demo.
#[derive(Debug, Clone, Default)]
pub struct Records {
    pub books: Option<Bookkeeper>,
    /// None where the operator has turned search off.
    pub searcher: Option<Searcher>,
    /// Who tells the operator.
    pub notices: Option<Notices>,
}

/// Where it listens, and who may come in.
#[derive(Debug)]
pub struct Doors {
    pub socket: UnixListener,
    pub port: TcpListener,
    pub tokens: Tokens,
    /// Names beside the loopback's by which the port is reached, through a proxy that speaks TLS:
    /// `box.example.ts.net`, with a port if it is not the usual one.
    pub hosts: Vec<String>,
}

impl Server {
    /// Takes the port; 0 takes any that is free.
    pub async fn listen(port: u16) -> Result<TcpListener, Error> {
        let bound = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
        bound.map_err(|source| Error::Port { port, source })
    }

    /// Serves both doors until `stop`. Connections that are open then end with the process.
    pub async fn serve(
        handle: Handle,
        records: Records,
        doors: Doors,
        stop: watch::Receiver<bool>,
    ) -> Result<(), Error> {
        let Doors { socket, port, tokens, hosts } = doors;
        let address = port.local_addr().map_err(|source| Error::Accept { source })?;
        let browsers = Arc::new(Browsers::open(tokens.folder())?);
        let beside = socket.local_addr().ok();
        let beside = beside.as_ref().and_then(|address| address.as_pathname()?.parent());
        let runtime_folder = Arc::new(beside.unwrap_or(tokens.folder()).to_owned());
        SignInFile::sweep(&runtime_folder);
        let feed = Feed::start(handle.clone());
        let readers = Readers::of(handle.presence());
        let tabs = Tabs::of(records.notices.clone(), handle.clone());
        let hook_posts = HookPosts::default();
        let port_number = address.port();
        let names = Arc::new(Names::new(port_number, hosts));
        let server = Self {
            handle,
            feed,
            readers,
            streams: Streams::default(),
            browsers: browsers.clone(),
            records,
            tabs,
            hook_posts: hook_posts.clone(),
            port: port_number,
            names: names.clone(),
            runtime_folder,
        };
        let guarded = Arc::new(Port::new(names, tokens, browsers, hook_posts));
        let inside = router(server.clone(), Via::Socket);
        let outside = router(server.clone(), Via::Tcp(guarded));
        let connections = Connections::new(tcp_max());
        let mut stopped = stop.clone();
        let expiry = async {
            tokio::select! {
                _ = stopped.wait_for(|stop| *stop) => {}
                () = sign_in::expire(&server) => {}
            }
        };
        tokio::join!(
            server.serve_socket(socket, inside, &connections, stop.clone()),
            serve_port(port, outside, &connections, stop),
            expiry,
        );
        Ok(())
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    pub(crate) fn feed(&self) -> &Feed {
        &self.feed
    }

    /// Who knows what sessions cost; nobody in a demo.
    pub(crate) fn books(&self) -> Option<&Bookkeeper> {
        self.records.books.as_ref()
    }

    pub(crate) fn searcher(&self) -> Option<&Searcher> {
        self.records.searcher.as_ref()
    }

    /// Who tells the operator; nobody in a demo.
    pub(crate) fn notices(&self) -> Option<&Notices> {
        self.records.notices.as_ref()
    }

    pub(crate) fn tabs(&self) -> &Tabs {
        &self.tabs
    }

    pub(crate) fn browsers(&self) -> &Browsers {
        &self.browsers
    }

    /// Drops the push subscriptions of browsers that are not signed in any more.
    pub(crate) fn end_subscriptions(&self) {
        if let Some(notices) = self.notices() {
            notices.keep_devices(|owner| owner == OWNER_TOKEN || self.browsers.is_listed(owner));
        }
    }

    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// For files that are there for a moment.
    pub(crate) fn runtime_folder(&self) -> &Path {
        &self.runtime_folder
    }

    pub(crate) fn readers(&self) -> Readers {
        self.readers.clone()
    }

    pub(crate) fn hook_posts(&self) -> &HookPosts {
        &self.hook_posts
    }

    /// The streams that callers of the port have open.
    pub(crate) fn streams(&self) -> &Streams {
        &self.streams
    }

    /// The board has everything that was taken before.
    pub(crate) async fn caught_up(&self) -> Result<(), Refusal> {
        let health = self.handle.health().await?;
        self.feed.reach(health.changes).await
    }

    pub(crate) async fn about(&self) -> Result<About, Gone> {
        Ok(About {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            port: self.port,
            health: self.handle.health().await?,
            refused_hooks: self.hook_posts.view(),
            receivers: self.notices().map(Notices::receivers_view).unwrap_or_default(),
        })
    }

    /// Forwarders send frames, commands speak HTTP; the first byte tells which.
    async fn serve_socket(
        &self,
        listener: UnixListener,
        app: Router,
        connections: &Connections,
        mut stop: watch::Receiver<bool>,
    ) {
        let room = Arc::new(Semaphore::new(socket_max()));
        let long_payloads = frames::Room::default();
        loop {
            let permit = room.clone().acquire_owned().await.expect("it is never closed");
            let accepted = tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                accepted = listener.accept() => accepted,
            };
            let Some((stream, _)) = usable(accepted, connections).await else { continue };
            let (handle, app) = (self.handle.clone(), app.clone());
            let long_payloads = long_payloads.clone();
            tokio::spawn(async move {
                match frames::are_spoken(&stream).await {
                    Some(true) => frames::take(stream, &long_payloads, &handle).await,
                    Some(false) => {
                        let app = if is_confined_peer(&stream) { refusing() } else { app };
                        speak_http(stream, TowerToHyperService::new(app)).await;
                    }
                    None => {}
                }
                drop(permit);
            });
        }
    }
}

/// Whether a program in a sandbox is at the other end. The operator may have opened sockets to it
/// (`local_sockets`), and ours would give it the operator's word.
fn is_confined_peer(stream: &UnixStream) -> bool {
    let pid = stream.peer_cred().ok().and_then(|peer| peer.pid());
    pid.and_then(|pid| u32::try_from(pid).ok()).is_some_and(is_confined)
}

fn refusing() -> Router {
    Router::new().fallback(async || Refusal::Confined)
}

async fn serve_port(
    listener: TcpListener,
    app: Router,
    connections: &Connections,
    mut stop: watch::Receiver<bool>,
) {
    loop {
        let accepted = tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            accepted = listener.accept() => accepted,
        };
        let Some((stream, _)) = usable(accepted, connections).await else { continue };
        let (app, seat) = (app.clone(), Arc::new(connections.admit()));
        tokio::spawn(async move {
            tokio::select! {
                () = speak_to(stream, app, seat.clone()) => {}
                () = seat.sent_away() => debug!("a connection went for a newer one"),
            }
        });
    }
}

/// Every request knows the connection it came by.
async fn speak_to(stream: TcpStream, app: Router, seat: Arc<Seat>) {
    let set = stream.set_nodelay(true).and_then(|()| {
        set_socket_send_buffer_size(&stream, SEND_BUFFER_BYTES).map_err(io::Error::from)
    });
    if let Err(error) = set {
        debug!(%error, "a connection that will be slow");
    }
    let app = TowerToHyperService::new(app);
    let served = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(seat.clone());
        app.call(request)
    });
    speak_http(Patient::new(stream), served).await;
}

/// Too many open files, mostly: a connection of the port is closed for it, so that the socket and
/// whoever comes next find one.
async fn usable<T>(accepted: io::Result<T>, connections: &Connections) -> Option<T> {
    match accepted {
        Ok(stream) => Some(stream),
        Err(error) => {
            warn!(%error, "a connection could not be accepted");
            let errno = Errno::from_io_error(&error);
            if matches!(errno, Some(Errno::MFILE | Errno::NFILE)) {
                connections.shed();
            }
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

async fn speak_http<S>(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, service: S)
where
    S: Service<hyper::Request<Incoming>, Response = Response, Error = Infallible>,
{
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT_MAX)
        .max_buf_size(STREAM_BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        debug!(%error, "a connection broke off");
    }
}
