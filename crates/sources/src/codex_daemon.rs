//! Codex's shared daemon, observed over its socket.
//!
//! Every terminal of the user's Codex is attached to it, and it tells every client the status of
//! every thread; [`inquiry`] asks for the threads that were there before us. The socket is looked
//! for now and then, because the daemon comes and goes with its terminals.
//! We let another client greet it first ([`company`]).
//! Invariant: observing only looks. It subscribes to no thread, so that no request for approval
//! comes to us and no thread is kept loaded for us; and what comes nevertheless is not answered.
//! What the operator wants done goes by an [`errand`], on a connection of its own; so does a look
//! into what a thread waits for, which only those who subscribe are told.

mod company;
pub mod errand;
mod inquiry;
mod line;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use futures_util::{SinkExt, StreamExt};
use qd_harness::{Channel, Direction, Harness};
use qd_host::processes::{Process, Processes};
use qd_session::moment::Timestamp;
use serde_json::json;
use tokio::net::UnixStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use self::company::Company;
use self::errand::Errand;
use self::inquiry::Inquiry;
use super::doorbell::{Doorbell, Rings};
use super::errand::{ErrandOutcome, ErrandReceipt, Errands};
use super::live::{self, Backoff, End, Inbox, NoticeKind, Outlet, SourceNews, Trouble, Unheard};
use super::watch::{Root, Tells};
use crate::Error;
use crate::errand::ERRANDS_MAX;
use crate::live::{SERVER_MESSAGE_BYTES_MAX, SERVER_REPLY_WAIT};

/// Between two looks for the socket of Codex's daemon while there is none, or none that answers.
/// The kernel tells of a new one; this is for a folder that cannot be watched.
const SOCKET_MISSED_EVERY: Duration = Duration::from_secs(30);

/// Between two looks at the kernel's table of sockets while Codex's daemon has no client yet.
const SOCKET_LOOK_EVERY: Duration = Duration::from_secs(2);

/// Silence after which Codex's daemon is asked whether it still lives. It says nothing by itself
/// while nobody works.
const DAEMON_PING_EVERY: Duration = Duration::from_secs(60);

/// How long a client that has connected to the daemon may take to greet it. It does so at once.
const DAEMON_GREETING_WAIT: Duration = Duration::from_millis(500);

/// How long a daemon with threads may be without a client before we are its first. The terminal
/// that starts one connects to it at once.
const DAEMON_ALONE_WAIT: Duration = Duration::from_secs(10);

/// The source. Dropping it ends its connection.
#[derive(Debug)]
pub struct CodexDaemon {
    inbox: Inbox,
    socket: PathBuf,
    held: watch::Receiver<BTreeSet<String>>,
    errands: Errands,
    outlet: Outlet,
    looks: JoinSet<()>,
}

impl CodexDaemon {
    /// Attaches to the daemon whenever there is one. Must be called in a Tokio runtime.
    pub fn start(socket: impl Into<PathBuf>, now: fn() -> Timestamp) -> Result<Self, Error> {
        let socket = socket.into();
        let (tell, heard) = live::channel();
        let what = (Harness::Codex, Channel::AppServer);
        let outlet = Outlet::new(what, socket.to_string_lossy().into(), None, now, tell);
        let told = outlet.clone();
        let processes = Processes::new()?;
        let bell = Doorbell::at("qd-codex-socket", vec![root(&socket)], Rings::ForNews)?;
        let (hold, held) = watch::channel(BTreeSet::new());
        let observer = Observer {
            socket: socket.clone(),
            bell,
            outlet,
            processes,
            asked_at: now(),
            met: None,
            daemon: None,
            loaded: BTreeSet::new(),
            hold,
        };
        let task = tokio::spawn(async move {
            // It ends only when nobody listens.
            let Err(Unheard) = observer.run().await;
        });
        let inbox = Inbox::new(heard, task);
        let (errands, looks) = (Errands::default(), JoinSet::new());
        Ok(Self { inbox, socket, held, errands, outlet: told, looks })
    }

    /// The next thing. May be dropped and asked again.
    pub async fn next(&mut self) -> Option<SourceNews> {
        self.inbox.next().await
    }

    /// Whether the daemon has loaded this thread, as far as was heard.
    pub fn holds(&self, thread: &str) -> bool {
        self.held.borrow().contains(thread)
    }

    /// Asks what a thread waits for: a short subscription, on a connection of its own. What the
    /// daemon asks then is news as everything it says. Where too many look, it stays unknown.
    pub fn look_into(&mut self, thread: String) {
        while self.looks.try_join_next().is_some() {}
        if self.looks.len() >= ERRANDS_MAX || !self.holds(&thread) {
            return;
        }
        let (socket, outlet) = (self.socket.clone(), self.outlet.clone());
        self.looks.spawn(async move {
            // It tells of some moment since now: news of a later one are newer.
            let at = (outlet.now)();
            let asked = errand::look_into(socket, &thread).await;
            let message =
                |asked: String| outlet.message(Direction::FromAgent, at, asked.into_bytes());
            // Nobody listens at the end.
            let _ = outlet.tell(asked.into_iter().map(message).collect()).await;
        });
    }

    /// Has an errand done. It is refused for a thread that the daemon does not hold. Must be
    /// called in a Tokio runtime.
    pub fn carry(&self, errand: Errand) -> ErrandReceipt {
        let is_held = self.holds(&errand.thread);
        let socket = self.socket.clone();
        self.errands.send(async move {
            if !is_held {
                return ErrandOutcome::refused("Codex's daemon has not loaded it");
            }
            errand::carry(socket, errand).await
        })
    }
}

#[derive(Debug)]
struct Observer {
    socket: PathBuf,
    /// Rings when another socket stands there.
    bell: Doorbell,
    outlet: Outlet,
    processes: Processes,
    /// The socket of a daemon that knows us.
    met: Option<Identity>,
    /// When the last question was asked.
    asked_at: Timestamp,
    /// Whom we last talked to.
    daemon: Option<Process>,
    /// The sessions it had loaded then.
    loaded: BTreeSet<String>,
    /// All threads it has loaded, for those who act on them.
    hold: watch::Sender<BTreeSet<String>>,
}

type Socket = WebSocketStream<UnixStream>;
/// The file that a socket is: a daemon that was started anew has made another.
type Identity = (u64, u64, i64, i64);

impl Observer {
    async fn run(mut self) -> Result<Infallible, Unheard> {
        let mut backoff = Backoff::default();
        let mut failed: Option<(Identity, Instant)> = None;
        loop {
            let found = identity(&self.socket);
            let not_before = match (found, failed) {
                (None, _) => Some(Instant::now() + SOCKET_MISSED_EVERY),
                (Some(found), Some((failed, until))) if found == failed => Some(until),
                (Some(_), _) => {
                    backoff = Backoff::default();
                    None
                }
            };
            let wait = not_before.map(|until| until.saturating_duration_since(Instant::now()));
            if let Some(wait) = wait.filter(|wait| !wait.is_zero()) {
                self.pause(wait.min(SOCKET_MISSED_EVERY)).await?;
                continue;
            }
            let Some(found) = found else { continue };
            if self.met != Some(found) && !self.others_were_first(found).await? {
                continue;
            }
            let mut attached = None;
            match self.attach(&mut attached).await {
                Err(End::Unheard) => return Err(Unheard),
                Err(End::Trouble(trouble)) => {
                    self.outlet.notice(NoticeKind::Failed(trouble)).await?;
                }
            }
            if attached.is_some() {
                self.met = Some(found);
            }
            failed = Some((found, Instant::now() + backoff.after(attached)));
        }
    }

    /// Waits until somebody else has greeted the daemon. False if there is another one meanwhile.
    async fn others_were_first(&mut self, socket: Identity) -> Result<bool, Unheard> {
        let began = Instant::now();
        let mut others = false;
        loop {
            match Company::at(&self.socket) {
                Company::Unknown => return Ok(true),
                // Seen twice: it has had the time to speak.
                Company::Others if others => return Ok(true),
                Company::Traces if began.elapsed() >= DAEMON_ALONE_WAIT => return Ok(true),
                Company::Others => others = true,
                Company::Traces | Company::Nobody => others = false,
            }
            self.pause(if others { DAEMON_GREETING_WAIT } else { SOCKET_LOOK_EVERY }).await?;
            if identity(&self.socket) != Some(socket) {
                return Ok(false);
            }
        }
    }

    /// Waits, but not while there is another socket; tells of a daemon that ends meanwhile.
    async fn pause(&mut self, wait: Duration) -> Result<(), Unheard> {
        let over = sleep(wait);
        tokio::pin!(over);
        loop {
            tokio::select! {
                () = &mut over => return Ok(()),
                () = self.bell.rung() => return Ok(()),
                Some(ended) = self.processes.next_end() => self.ended(ended).await?,
            }
        }
    }

    /// Connects, asks what there is, and listens until there is trouble.
    async fn attach(&mut self, attached: &mut Option<Instant>) -> Result<Infallible, End> {
        let (mut socket, process) = in_time(connect(&self.socket)).await?;
        if let Some(process) = process.filter(|process| self.daemon != Some(*process)) {
            if let Some(before) = self.daemon.replace(process) {
                self.processes.forget(before);
            }
            if self.processes.observe(process).is_err() {
                self.outlet.notice(NoticeKind::NotObserved).await?;
            }
        }
        let mut inquiry = Inquiry::default();
        self.send(&mut socket, inquiry.begin()).await?;
        let mut heard_at = Instant::now();
        let mut pinged = false;
        loop {
            let patience = match inquiry.is_waiting() || pinged {
                true => SERVER_REPLY_WAIT,
                false => DAEMON_PING_EVERY,
            };
            let silence = sleep_until(heard_at + patience);
            tokio::select! {
                message = socket.next() => {
                    let message = message.ok_or(Trouble::Closed)?.map_err(trouble)?;
                    (heard_at, pinged) = (heard_at.max(Instant::now()), false);
                    self.take(&mut socket, &mut inquiry, message).await?;
                    if inquiry.is_settled() && attached.is_none() {
                        *attached = Some(Instant::now());
                        self.outlet.notice(NoticeKind::Attached).await?;
                    }
                }
                Some(ended) = self.processes.next_end() => self.ended(ended).await?,
                () = silence => {
                    if inquiry.is_waiting() || pinged {
                        return Err(Trouble::Silent.into());
                    }
                    (heard_at, pinged) = (Instant::now(), true);
                    let ping = socket.send(Message::Ping(Vec::new().into()));
                    in_time(async { ping.await.map_err(trouble) }).await?;
                }
            }
        }
    }

    async fn take(
        &mut self,
        socket: &mut Socket,
        inquiry: &mut Inquiry,
        message: Message,
    ) -> Result<(), End> {
        let payload = match message {
            Message::Text(text) => text.as_str().as_bytes().to_vec(),
            Message::Binary(bytes) => bytes.to_vec(),
            Message::Close(_) => return Err(Trouble::Closed.into()),
            Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => return Ok(()),
        };
        let was_listed = inquiry.listed().is_some();
        let next = inquiry.handle(&payload);
        // An answer tells of some moment since the question. News may have overtaken it, and are
        // newer for certain only than the question.
        let at = if inquiry.was_answer() { self.asked_at } else { (self.outlet.now)() };
        // First, so that whoever hears of a thread can act on it.
        self.note_held(inquiry);
        let news = self.outlet.message(Direction::FromAgent, at, payload);
        self.outlet.tell(vec![news]).await?;
        if let Some(listed) = inquiry.listed() {
            // What was loaded before and is not now has ended while we were away.
            if !was_listed {
                self.gone(self.loaded.difference(listed)).await?;
            }
            if self.loaded != *inquiry.sessions() {
                self.loaded.clone_from(inquiry.sessions());
            }
        }
        self.send(socket, next?).await
    }

    /// What was held before a reconnect is so until the daemon has listed everything.
    fn note_held(&self, inquiry: &Inquiry) {
        self.hold.send_if_modified(|held| match inquiry.listed() {
            Some(listed) if held != listed => {
                held.clone_from(listed);
                true
            }
            None if !inquiry.loaded().is_subset(held) => {
                held.extend(inquiry.loaded().iter().cloned());
                true
            }
            Some(_) | None => false,
        });
    }

    async fn send(&mut self, socket: &mut Socket, messages: Vec<String>) -> Result<(), End> {
        for text in messages {
            let payload = text.clone().into_bytes();
            self.asked_at = (self.outlet.now)();
            let sent = socket.send(Message::text(text));
            in_time(async { sent.await.map_err(trouble) }).await?;
            let news = self.outlet.message(Direction::ToAgent, self.asked_at, payload);
            self.outlet.tell(vec![news]).await?;
        }
        Ok(())
    }

    async fn ended(&mut self, process: Process) -> Result<(), Unheard> {
        if self.daemon != Some(process) {
            return Ok(());
        }
        self.daemon = None;
        self.hold.send_replace(BTreeSet::new());
        let loaded = std::mem::take(&mut self.loaded);
        self.gone(loaded.iter()).await
    }

    /// No process has these threads any more.
    async fn gone(&self, threads: impl Iterator<Item = &String>) -> Result<(), Unheard> {
        let report = |thread| json!({ "sessionId": thread, "exited": true }).to_string();
        let news = threads.map(|thread| self.outlet.process(report(thread).into_bytes()));
        self.outlet.tell(news.collect()).await
    }
}

async fn connect(path: &Path) -> Result<(Socket, Option<Process>), Trouble> {
    let unreachable = |error: io::Error| Trouble::Unreachable(error.kind());
    let stream = UnixStream::connect(path).await.map_err(unreachable)?;
    let peer = stream.peer_cred().map_err(unreachable)?;
    if peer.uid() != rustix::process::geteuid().as_raw() {
        return Err(Trouble::Refused { why: "it is another user's".to_owned() });
    }
    let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok());
    let config = WebSocketConfig::default()
        .max_message_size(Some(SERVER_MESSAGE_BYTES_MAX))
        .max_frame_size(Some(SERVER_MESSAGE_BYTES_MAX));
    let shaken = client_async_with_config("ws://localhost/", stream, Some(config)).await;
    let (socket, _) = shaken.map_err(trouble)?;
    Ok((socket, pid.and_then(Process::with_pid)))
}

async fn in_time<T>(what: impl Future<Output = Result<T, Trouble>>) -> Result<T, Trouble> {
    timeout(SERVER_REPLY_WAIT, what).await.unwrap_or(Err(Trouble::Silent))
}

fn trouble(error: tungstenite::Error) -> Trouble {
    use tungstenite::Error as E;
    match error {
        E::Io(error) if CLOSED.contains(&error.kind()) => Trouble::Closed,
        E::Io(error) => Trouble::Unreachable(error.kind()),
        E::ConnectionClosed | E::AlreadyClosed => Trouble::Closed,
        E::Protocol(tungstenite::error::ProtocolError::ResetWithoutClosingHandshake) => {
            Trouble::Closed
        }
        E::Capacity(_) => Trouble::TooLong,
        E::Http(response) => Trouble::Refused { why: response.status().to_string() },
        E::Protocol(_)
        | E::Utf8(_)
        | E::Url(_)
        | E::HttpFormat(_)
        | E::Tls(_)
        | E::WriteBufferFull(_)
        | E::AttackAttempt => Trouble::Foreign,
    }
}

/// How the system spells that nobody is there any more.
const CLOSED: [io::ErrorKind; 3] =
    [io::ErrorKind::ConnectionReset, io::ErrorKind::BrokenPipe, io::ErrorKind::UnexpectedEof];

/// The folder that a socket stands in.
fn root(socket: &Path) -> Root {
    Root {
        path: socket.parent().unwrap_or(socket).to_owned(),
        enters: |_| false,
        wants: |file| file.extension().is_some_and(|ending| ending == "sock"),
        tells: Tells::Changes,
    }
}

/// `None` where there is no socket.
fn identity(path: &Path) -> Option<Identity> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec()))
}
