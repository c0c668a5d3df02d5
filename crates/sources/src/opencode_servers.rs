//! Servers of OpenCode and of Kilo from 7 on, observed over their event streams.
//!
//! Found among the processes ([`discovery`], loopback only) or named by the operator. Each has a
//! task of its own that listens, asks for what is open after each connect ([`snapshot`]), and
//! comes back after a failure. A server's end is the end of its sessions.
//! What the operator wants done goes by an [`errand`], to the server that a session was last heard
//! on ([`whereabouts`]).
//! Invariant: observing only reads. A directory that a server does not work in is not asked about,
//! because asking makes it begin to.

mod address;
pub(crate) mod discovery;
pub mod errand;
mod event_stream;
mod http;
mod snapshot;
mod whereabouts;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use qd_harness::{Channel, Direction, Harness};
use qd_host::processes::{Process, Processes};
use qd_session::moment::Timestamp;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, sleep, timeout};

use self::address::Address;
use self::discovery::{Discovery, Found};
use self::errand::Errand;
use self::event_stream::EventStream;
use self::http::Events;
use self::whereabouts::Whereabouts;
use super::doorbell::{Doorbell, Rings};
use super::errand::{ErrandOutcome, ErrandReceipt, Errands};
use super::live::{self, Backoff, End, Inbox, NoticeKind, Outlet, SourceNews, Trouble, Unheard};
use super::places::{Place, PlaceKind};
use super::watch::{Root, Tells};
use crate::Error;
use crate::files::reading::HISTORY_AGE_MS;
use crate::live::SERVER_REPLY_WAIT;

/// Servers of OpenCode and Kilo that are connected at once.
const SERVERS_MAX: usize = 64;

/// How long after a connect a server of OpenCode is asked once more what is open. It greets before
/// it has subscribed us to its own events; on a loaded machine a second's events were lost so.
const SERVER_ASK_AGAIN: Duration = Duration::from_secs(3);

/// Directories of one server that are asked for what is open in them, newest first. Each takes
/// three requests after a connect.
pub const SERVER_DIRECTORIES_MAX: usize = 32;

/// Least time between two looks at the list of processes. It is looked at while new ones may
/// become servers, and when a client wrote into its folder; it is read only if a process was
/// started since.
const PROCESS_SCAN_EVERY: Duration = Duration::from_secs(2);

/// Between two looks at every process, whether known or not: one may have become another program,
/// or listen only now.
pub const PROCESS_RESCAN_EVERY: Duration = Duration::from_secs(60);

/// The source. Dropping it ends its connections.
#[derive(Debug)]
pub struct OpencodeServers {
    inbox: Inbox,
    whereabouts: Whereabouts,
    errands: Errands,
}

impl OpencodeServers {
    /// Connects to these, `http://[user:password@]host:port`, and to what is found on this
    /// machine and was started with this home; `places` say where a new one leaves its traces. A
    /// URL of another kind is an error. Must be called in a Tokio runtime.
    pub fn start(
        urls: &[String],
        home: &Path,
        places: &[Place],
        now: fn() -> Timestamp,
    ) -> Result<Self, Error> {
        let traces = places
            .iter()
            .filter(|place| (place.harness, place.kind) == (Harness::Opencode, PlaceKind::Data));
        let bell = Doorbell::at("qd-opencode", traces.map(root).collect(), Rings::ForNews)?;
        Self::begin(urls, Some((Discovery::new(home), bell)), now)
    }

    /// Connects to these and looks for no others.
    pub fn start_without_discovery(urls: &[String], now: fn() -> Timestamp) -> Result<Self, Error> {
        Self::begin(urls, None, now)
    }

    fn begin(
        urls: &[String],
        discovery: Option<(Discovery, Doorbell)>,
        now: fn() -> Timestamp,
    ) -> Result<Self, Error> {
        let mut named = Vec::new();
        for url in urls {
            let address = Address::of_url(url);
            named.push(address.ok_or_else(|| Error::ServerUrl { url: url.clone() })?);
        }
        let (tell, heard) = live::channel();
        let whereabouts = Whereabouts::default();
        let roster = Roster {
            servers: BTreeMap::new(),
            whereabouts: whereabouts.clone(),
            processes: Processes::new()?,
            tell,
            now,
            too_many: false,
        };
        let task = tokio::spawn(async move {
            // It ends only when nobody listens.
            let Err(Unheard) = roster.run(named, discovery).await;
        });
        Ok(Self { inbox: Inbox::new(heard, task), whereabouts, errands: Errands::default() })
    }

    /// The next thing. May be dropped and asked again.
    pub async fn next(&mut self) -> Option<SourceNews> {
        self.inbox.next().await
    }

    /// Whether a server was heard to have this session.
    pub fn holds(&self, session: &str) -> bool {
        self.whereabouts.of(session).is_some()
    }

    /// Has an errand done. It is refused for a session that no server was heard to have. Must be
    /// called in a Tokio runtime.
    pub fn carry(&self, errand: Errand) -> ErrandReceipt {
        let address = self.whereabouts.of(&errand.session);
        self.errands.send(async move {
            match address {
                Some(address) => errand::carry(address, errand).await,
                None => ErrandOutcome::refused("no server has it"),
            }
        })
    }
}

/// All servers we know.
#[derive(Debug)]
struct Roster {
    servers: BTreeMap<String, Server>,
    whereabouts: Whereabouts,
    processes: Processes,
    tell: mpsc::Sender<Vec<SourceNews>>,
    now: fn() -> Timestamp,
    too_many: bool,
}

#[derive(Debug)]
struct Server {
    process: Option<Process>,
    /// The operator named it: it stays when its process ends.
    is_named: bool,
    outlet: Outlet,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Roster {
    async fn run(
        mut self,
        named: Vec<Address>,
        discovery: Option<(Discovery, Doorbell)>,
    ) -> Result<Infallible, Unheard> {
        for address in named {
            self.connect(address, None).await?;
        }
        let (tell, mut found) = mpsc::channel(1);
        if let Some((discovery, bell)) = discovery {
            tokio::spawn(look_on(discovery, bell, tell));
        }
        loop {
            tokio::select! {
                Some(found) = found.recv() => {
                    for Found { process, address } in found {
                        self.connect(address, Some(process)).await?;
                    }
                }
                Some(ended) = self.processes.next_end() => self.ended(ended).await?,
                () = self.tell.closed() => return Err(Unheard),
            }
        }
    }

    async fn connect(&mut self, address: Address, process: Option<Process>) -> Result<(), Unheard> {
        if let Some(known) = self.servers.get(&address.host) {
            match (known.process, process) {
                (Some(before), Some(after)) if before != after => self.ended(before).await?,
                (None, Some(_)) => {}
                _ => return Ok(()),
            }
        }
        let url = address.url();
        let what = (Harness::Opencode, Channel::Events);
        let mut outlet = Outlet::new(what, url.clone(), Some(url), self.now, self.tell.clone());
        if !self.servers.contains_key(&address.host) && self.servers.len() >= SERVERS_MAX {
            if !std::mem::replace(&mut self.too_many, true) {
                outlet.notice(NoticeKind::TooMany).await?;
            }
            return Ok(());
        }
        if let Some(process) = process
            && self.processes.observe(process).is_err()
        {
            outlet.notice(NoticeKind::NotObserved).await?;
        }
        if let Some(known) = self.servers.get_mut(&address.host) {
            known.process = process;
            return Ok(());
        }
        let a_day_ago = Timestamp((self.now)().0.saturating_sub(HISTORY_AGE_MS));
        let since = process.and_then(Process::started_at).unwrap_or(a_day_ago);
        if let Some(process) = process {
            // Before anything it says: who was in that process before is in this server.
            let seen = json!({ "pid": process.pid, "procStart": process.start }).to_string();
            outlet.tell(vec![outlet.process(seen.into_bytes())]).await?;
        }
        let host = address.host.clone();
        let listener = Listener {
            address,
            outlet: outlet.clone(),
            since,
            directories: BTreeSet::new(),
            whereabouts: self.whereabouts.clone(),
        };
        let task = tokio::spawn(async move {
            // It ends only when nobody listens.
            let Err(Unheard) = listener.run().await;
        });
        self.servers.insert(host, Server { process, is_named: process.is_none(), outlet, task });
        Ok(())
    }

    async fn ended(&mut self, process: Process) -> Result<(), Unheard> {
        let report = json!({ "pid": process.pid, "exited": true }).to_string();
        let mut news = Vec::new();
        self.servers.retain(|host, server| {
            let is_its = server.process == Some(process);
            if is_its {
                self.whereabouts.forget(host);
                server.process = None;
                news.push(server.outlet.process(report.clone().into_bytes()));
            }
            !is_its || server.is_named
        });
        match self.tell.send(news).await {
            Ok(()) => Ok(()),
            Err(_) => Err(Unheard),
        }
    }
}

/// Looks for servers while new processes may become some, and when one has left its traces. Ends
/// when nobody wants to know.
async fn look_on(mut discovery: Discovery, bell: Doorbell, tell: mpsc::Sender<Vec<Found>>) {
    loop {
        // Looking may hang in a sick process's memory; nothing else hangs with it.
        let looked = spawn_blocking(move || {
            let found = discovery.look();
            (discovery, found)
        });
        let Ok((looked, found)) = looked.await else { return };
        discovery = looked;
        if tell.send(found).await.is_err() {
            return;
        }
        let rest = async {
            sleep(PROCESS_SCAN_EVERY).await;
            if !discovery.has_young() {
                // Whoever wrote there may be one that we have looked at too early.
                if timeout(PROCESS_RESCAN_EVERY, bell.rung()).await.is_ok() {
                    discovery.look_at_all();
                }
            }
        };
        tokio::select! {
            () = rest => {}
            () = tell.closed() => return,
        }
    }
}

/// A server writes its log before it listens.
fn root(place: &Place) -> Root {
    Root {
        path: place.path.clone(),
        enters: |folder| folder == Path::new("log"),
        wants: |_| true,
        tells: Tells::Changes,
    }
}

/// One server's ear.
#[derive(Debug)]
struct Listener {
    address: Address,
    outlet: Outlet,
    /// What it did before is history.
    since: Timestamp,
    /// Where it was heard to work.
    directories: BTreeSet<String>,
    whereabouts: Whereabouts,
}

/// An event and the directory it is about.
#[derive(Debug, Deserialize)]
struct Global<'a> {
    #[serde(default)]
    directory: Option<String>,
    #[serde(borrow)]
    payload: &'a RawValue,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Event {
    r#type: Option<String>,
    properties: Properties,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Properties {
    #[serde(rename = "sessionID")]
    session: Option<String>,
}

impl Listener {
    async fn run(mut self) -> Result<Infallible, Unheard> {
        let mut backoff = Backoff::default();
        loop {
            let mut attached = None;
            match self.attach(&mut attached).await {
                Err(End::Unheard) => return Err(Unheard),
                Err(End::Trouble(trouble)) => {
                    self.outlet.notice(NoticeKind::Failed(trouble)).await?;
                }
            }
            sleep(backoff.after(attached)).await;
        }
    }

    /// Listens first and asks then, so that nothing falls between the two: what the list and an
    /// event both tell is told twice, and a handler knows it.
    async fn attach(&mut self, attached: &mut Option<Instant>) -> Result<Infallible, End> {
        let mut events = Events::open(&self.address, "/global/event").await?;
        let mut stream = EventStream::default();
        let greeting = greeting(&mut events, &mut stream);
        let greeting =
            timeout(SERVER_REPLY_WAIT, greeting).await.unwrap_or(Err(Trouble::Silent))?;
        self.ask().await?;
        *attached = Some(Instant::now());
        self.outlet.notice(NoticeKind::Attached).await?;
        self.hear(greeting).await?;
        // A busy server greets before it has begun to tell: what it did in between is asked for.
        let ask_again = sleep(SERVER_ASK_AGAIN);
        tokio::pin!(ask_again);
        let mut asked_again = false;
        loop {
            tokio::select! {
                told = events.next() => {
                    let heard = stream.take(&told?)?;
                    self.hear(heard).await?;
                }
                () = &mut ask_again, if !asked_again => {
                    asked_again = true;
                    self.ask().await?;
                }
            }
        }
    }

    /// What is open there.
    async fn ask(&self) -> Result<(), End> {
        let open =
            snapshot::snapshot(&self.address, &self.outlet, self.since, &self.directories).await?;
        for session in &open.busy {
            self.whereabouts.heard(session, &self.address);
        }
        for session in &open.listed {
            self.whereabouts.listed(session, &self.address);
        }
        Ok(self.outlet.tell(open.news).await?)
    }

    async fn hear(&mut self, events: Vec<Vec<u8>>) -> Result<(), Unheard> {
        let at = (self.outlet.now)();
        let mut news = Vec::new();
        for data in events {
            // What is no event of theirs goes on as it is: a handler counts it.
            let payload = match serde_json::from_slice::<Global<'_>>(&data) {
                Ok(global) => {
                    self.note(global.directory);
                    global.payload.get().as_bytes().to_vec()
                }
                Err(_) => data,
            };
            let event = serde_json::from_slice::<Event>(&payload).unwrap_or_default();
            if let Some(session) = &event.properties.session {
                self.whereabouts.heard(session, &self.address);
            }
            if !event.is_of_the_connection() {
                news.push(self.outlet.message(Direction::FromAgent, at, payload));
            }
        }
        self.outlet.tell(news).await
    }

    fn note(&mut self, directory: Option<String>) {
        let room = self.directories.len() < SERVER_DIRECTORIES_MAX;
        // What concerns none in particular is said to be about `global`.
        let real = directory.filter(|directory| directory.starts_with('/') && room);
        self.directories.extend(real);
    }
}

/// The first events: it greets whom it will tell.
async fn greeting(events: &mut Events, stream: &mut EventStream) -> Result<Vec<Vec<u8>>, Trouble> {
    loop {
        let heard = stream.take(&events.next().await?)?;
        if !heard.is_empty() {
            return Ok(heard);
        }
    }
}

impl Event {
    /// The greeting and the heartbeat: nobody need wake for them.
    fn is_of_the_connection(&self) -> bool {
        matches!(self.r#type.as_deref(), Some("server.connected" | "server.heartbeat"))
    }
}

/// A value as a part of a path or a query.
fn spelled(value: &str) -> String {
    value.bytes().fold(String::with_capacity(value.len()), |mut text, byte| {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
        text
    })
}
