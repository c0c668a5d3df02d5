//! The two doors, and one way to serve a connection.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use qd_broker::history::{Bookkeeper, Searcher};
use qd_broker::notices::Notices;
use qd_broker::runtime::{Gone, Handle};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::{Semaphore, watch};
use tracing::{debug, warn};

use crate::auth::Tokens;
use crate::browsers::Browsers;
use crate::error::Refusal;
use crate::feed::Feed;
use crate::guard::{Port, Via};
use crate::limits::{
    ACCEPT_PAUSE, HEAD_WAIT_MAX, SOCKET_CONNECTIONS_MAX, STREAM_BUFFER_BYTES, TCP_CONNECTIONS_MAX,
};
use crate::presence::Tabs;
use crate::routes::router;
use crate::stream::Readers;
use crate::wire::About;
use crate::{Error, frames};

/// Where the daemon listens unless told otherwise.
pub const PORT: u16 = 47892;

/// What every route can reach.
#[derive(Debug, Clone)]
pub struct Server {
    handle: Handle,
    feed: Feed,
    readers: Readers,
    browsers: Arc<Browsers>,
    records: Records,
    tabs: Tabs,
    port: u16,
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
        let feed = Feed::start(handle.clone());
        let readers = Readers::of(handle.presence());
        let tabs = Tabs::of(records.notices.clone());
        let port_number = address.port();
        let server = Self {
            handle,
            feed,
            readers,
            browsers: browsers.clone(),
            records,
            tabs,
            port: port_number,
        };
        let guarded = Arc::new(Port::new(port_number, tokens, browsers, hosts));
        let inside = router(server.clone(), Via::Socket);
        let outside = router(server.clone(), Via::Tcp(guarded));
        tokio::join!(
            server.serve_socket(socket, inside, stop.clone()),
            serve_port(port, outside, stop),
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

    pub(crate) fn readers(&self) -> Readers {
        self.readers.clone()
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
            receivers: self.notices().map(Notices::receivers_view).unwrap_or_default(),
        })
    }

    /// Forwarders send frames, commands speak HTTP; the first byte tells which.
    async fn serve_socket(
        &self,
        listener: UnixListener,
        app: Router,
        mut stop: watch::Receiver<bool>,
    ) {
        let room = Arc::new(Semaphore::new(SOCKET_CONNECTIONS_MAX));
        let long_payloads = frames::Room::default();
        loop {
            let permit = room.clone().acquire_owned().await.expect("it is never closed");
            let accepted = tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return,
                accepted = listener.accept() => accepted,
            };
            let Some((stream, _)) = usable(accepted).await else { continue };
            let (handle, app) = (self.handle.clone(), app.clone());
            let long_payloads = long_payloads.clone();
            tokio::spawn(async move {
                match frames::are_spoken(&stream).await {
                    Some(true) => frames::take(stream, &long_payloads, &handle).await,
                    Some(false) => speak_http(stream, app).await,
                    None => {}
                }
                drop(permit);
            });
        }
    }
}

async fn serve_port(listener: TcpListener, app: Router, mut stop: watch::Receiver<bool>) {
    let room = Arc::new(Semaphore::new(TCP_CONNECTIONS_MAX));
    loop {
        let permit = room.clone().acquire_owned().await.expect("it is never closed");
        let accepted = tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            accepted = listener.accept() => accepted,
        };
        let Some((stream, _)) = usable(accepted).await else { continue };
        if let Err(error) = stream.set_nodelay(true) {
            debug!(%error, "a connection that will be slow");
        }
        let app = app.clone();
        tokio::spawn(async move {
            speak_http(stream, app).await;
            drop(permit);
        });
    }
}

/// Too many open files, mostly: somebody closes one soon.
async fn usable<T>(accepted: io::Result<T>) -> Option<T> {
    match accepted {
        Ok(stream) => Some(stream),
        Err(error) => {
            warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

async fn speak_http(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, app: Router) {
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT_MAX)
        .max_buf_size(STREAM_BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(app))
        .await;
    if let Err(error) = served {
        debug!(%error, "a connection broke off");
    }
}
