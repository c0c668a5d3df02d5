//! The one loop: wait for one thing, hand it to the broker, carry out what comes back.
//!
//! One batch is written at a time, and what comes meanwhile makes the next one, so the busier it
//! gets the more each sync carries. Invariant: nothing is shown or acknowledged before the journal
//! has what it rests on; while the journal takes nothing, nothing more is taken from outside.

mod clock;
mod commit;
mod driving;
mod errands;
mod handle;
mod held;
mod tap;
mod troubles;
mod voices;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::future::{pending, ready};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use memchr::memmem;
use qd_broker::desk::Carried;
use qd_broker::driving::Report;
use qd_broker::news::{BoardChange, BoardNews};
use qd_broker::unreadable::{AgentProcess, UnreadableAgent};
use qd_broker::viewing::Viewing;
use qd_broker::{Broker, Input, NotFound, Output, Staying};
use qd_harness::usage::Sum;
use qd_harness::{Channel, Direction, Harness, Signal};
use qd_history::{BookNews, Bookkeeper, Searcher};
use qd_host::layers_file::LayersFile;
use qd_host::now;
use qd_host::policy_file::PolicyFile;
use qd_host::private_places::PrivatePlaces;
use qd_host::processes::Process;
use qd_session::decision::Record;
use qd_session::id::SessionId;
use qd_session::limits::BOOK_RECORDS_MAX;
use qd_session::moment::Timestamp;
use qd_session::operator::layer::Layers;
use qd_session::policy::Policy;
use qd_sources::agent_processes::AgentScan;
use qd_sources::client_folders::{ClientFolder, ClientFolders, ClientScout, FolderOrigin};
use qd_sources::codex_daemons::CodexDaemons;
use qd_sources::doorbell::{Doorbell, Rings};
use qd_sources::files::{FileNotice, Files, News};
use qd_sources::holders::{HolderNews, Holders};
use qd_sources::hook_intake::{Admission, Frame, IN_FLIGHT_MAX, KnownIds, Losses, Spool};
use qd_sources::live::SourceNews;
use qd_sources::opencode_servers::OpencodeServers;
use qd_sources::places::{Place, places};
use qd_sources::repositories::Repositories;
use qd_sources::terminal::{Located, Locator};
use qd_sources::vitals::{VitalsNews, VitalsWatch};
use qd_sources::watch::{Notice, Root, Tells};
use qd_store::{Delivery, Journal, Opened, Remembered};
use qd_telemetry::{Exporter, Telemetry};
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tracing::{info, warn};

use self::clock::{Clock, Jump, SET_BACK_MIN_MS};
pub use self::clock::{SET_BACK_TOLD, SetBack};
use self::commit::{Pending, Writing};
use self::driving::{Deck, fresh_seed, reported};
use self::errands::{Done, Errands};
pub use self::handle::{
    Archiving, Board, Delivered, Gone, Handle, Health, Presence, SpawnWanted, Waiter,
};
use self::handle::{Beside, Gather, Order, TranscriptFolders, Waited};
use self::held::{Coming, Held, let_go_next};
use self::tap::Tap;
pub use self::tap::{RawSignal, Tapped};
pub use self::troubles::{Trouble, TroubleKind, gaps};
use self::voices::Voices;
use self::waiting::Waiting;
pub use self::waiting::{ReplyOutcome, Told, WAITERS_MAX};
use crate::Error;
use crate::detail::{Attached, Detail, NoDetail};

/// Orders and file lines taken before the loop looks at everything else again.
pub const ORDERS_PER_TURN: usize = 256;

/// Changes kept for those who read the stream slowly; who is further behind starts anew from the
/// whole board.
const CHANGES_KEPT: usize = 4_096;

/// Longest sleep while something is due. A suspended machine does not count its sleep, so the
/// clock is looked at now and then.
const SLEEP_MAX: Duration = Duration::from_secs(600);

/// Records of decisions that are read at once when we start.
const RECORDS_PER_READ: usize = 1_000;

/// Where to look and where to remember.
#[derive(Debug, Clone)]
pub struct Settings {
    pub home: PathBuf,
    /// As agents are started with it: it says where they keep their files.
    pub environment: BTreeMap<OsString, OsString>,
    /// Our own folder: the journal and the spool.
    pub state: PathBuf,
    /// Servers of OpenCode and Kilo that are not found by looking: URLs.
    pub opencode_servers: Vec<String>,
    /// Folders of clients that are not in the environment, as the operator has set them.
    pub client_folders: Vec<ClientFolder>,
    /// The operator's domain layers, a file called `layers.toml`; need not be there.
    pub layers: PathBuf,
    /// The operator's rules, a file called `policy.toml`; need not be there.
    pub policy: PathBuf,
}

impl Settings {
    pub fn journal(&self) -> PathBuf {
        self.state.join("journal.db")
    }

    pub fn spool(&self) -> PathBuf {
        self.state.join("spool")
    }

    /// Where clients keep their files, as far as that is known at the start.
    pub fn places(&self) -> Vec<Place> {
        let mut all = places(&self.home, &self.environment);
        let (_, more) = self.folders();
        all.extend(more);
        all
    }

    /// The folders of clients, and the places of those that only the operator has set.
    fn folders(&self) -> (ClientFolders, Vec<Place>) {
        let (mut folders, mut more) = (ClientFolders::default(), Vec::new());
        for folder in ClientFolder::all(&self.home, &self.environment) {
            folders.add(folder, FolderOrigin::Environment);
        }
        for folder in &self.client_folders {
            more.extend(folders.add(folder.clone(), FolderOrigin::Config).unwrap_or_default());
        }
        (folders, more)
    }
}

#[allow(missing_debug_implementations, reason = "a broker has handlers behind a trait")]
pub struct Runtime {
    broker: Broker,
    journal: Journal,
    journal_path: PathBuf,
    /// Rings when a file of the journal came, went or was replaced: somebody may have taken it away.
    journal_bell: Doorbell,
    files: Files,
    holders: Holders,
    locator: Locator,
    vitals: VitalsWatch,
    codex_daemons: CodexDaemons,
    /// Folders of clients that are followed, and who looks for more.
    folders: ClientFolders,
    scout: ClientScout,
    agents: AgentScan,
    /// Agents that run and cannot be read.
    unreadable: Arc<[UnreadableAgent]>,
    opencode_servers: OpencodeServers,
    /// Processes that have a registry file: it tells of their end. Until all is read.
    registered: BTreeSet<u32>,
    spool: Spool,
    /// Rings when a forwarder that found us too slow has left its frame.
    spool_bell: Doorbell,
    /// There may be something in the spool. It is older than what comes over the socket now, so
    /// it is taken first.
    spool_due: bool,
    /// What forwarders could not keep: as the last daemon told it, and as it is now.
    losses: (Losses, Losses),
    /// Folders are listed now and then, as they cannot be watched.
    is_short_of_watches: bool,
    /// Something in the spool was in flight from the socket as well when we last looked.
    spool_overlaps: bool,
    layers: WatchedLayers,
    policy: WatchedPolicy,
    repositories: Repositories,
    known: KnownIds,
    waiting: Waiting,
    voices: Voices,
    errands: Errands,
    presence: Presence,
    /// Where transcripts may be read.
    transcripts: TranscriptFolders,
    viewing: watch::Receiver<Viewing>,
    /// Who hears of waiting forwarders; without anybody they are released.
    answerer: Option<mpsc::Sender<Frame>>,
    /// Who plays recordings; nobody but in a demo.
    recordings: Option<broadcast::Sender<Arc<str>>>,
    orders: mpsc::Receiver<Order>,
    changes: broadcast::Sender<Arc<BoardChange>>,
    tap: Tap,
    /// What the next batch will hold.
    next: Pending,
    writing: Writing,
    health: Health,
    clock: Clock,
    telemetry: Telemetry,
    /// Who counts what sessions cost; nobody in a demo.
    books: Option<OpenBooks>,
    searcher: Option<Searcher>,
    /// Who drives sessions of our own; nobody in a demo.
    deck: Option<Deck>,
    /// Observed agents that wait for the operator's hooks; none where that is not switched on.
    held: Option<Held>,
    stop: watch::Receiver<bool>,
}

/// In an event of OpenCode's server: a response has come to its end.
const STEP_ENDED: &[u8] = b"step-finish";

/// The operator's layers, and what rings when they change.
struct WatchedLayers {
    path: PathBuf,
    home: PathBuf,
    bell: Doorbell,
}

/// The operator's rules, and what rings when they change.
struct WatchedPolicy {
    path: PathBuf,
    home: PathBuf,
    /// What no preset lets an agent read or write.
    private: PrivatePlaces,
    bell: Doorbell,
}

struct OpenBooks {
    keeper: Bookkeeper,
    news: mpsc::Receiver<BookNews>,
    today: Option<Sum>,
}

impl Runtime {
    /// Opens the journal, brings back what it knows and begins to look. Another process that has
    /// the journal is an error that names it. Must be called in a Tokio runtime.
    pub fn open(settings: &Settings, stop: watch::Receiver<bool>) -> Result<(Self, Handle), Error> {
        let (journal, opened) = Journal::open(settings.journal(), qd_store::Settings::default())
            .map_err(Error::Journal)?;
        report(&opened);
        let journal_bell =
            Doorbell::at("qd-journal", vec![journal_in(settings.state.clone())], Rings::ForEnds)?;
        let told = troubles::losses_told(&journal);
        let spool = Spool::open(&settings.spool())?;
        let spool_bell =
            Doorbell::at("qd-spool", vec![frames_in(settings.spool())], Rings::ForNews)?;
        let layers = WatchedLayers::start(settings)?;
        let policy = WatchedPolicy::start(settings)?;
        let places = settings.places();
        let Restored { broker, known, outputs, set_back } =
            restore(&journal, layers.read(), policy.read())?;
        let files = Files::start(&places, BTreeMap::new(), now)?;
        let holders = Holders::start(&places, now)?;
        let locator = Locator::start()?;
        let codex_daemons = CodexDaemons::start(&places, now)?;
        let opencode_servers =
            OpencodeServers::start(&settings.opencode_servers, &settings.home, &places, now)?;
        let (order, orders) = mpsc::channel(IN_FLIGHT_MAX);
        let (changes, _) = broadcast::channel(CHANGES_KEPT);
        let handle = Handle::new(order, &places);
        let mut runtime = Self {
            broker,
            journal,
            journal_path: settings.journal(),
            journal_bell,
            files,
            holders,
            locator,
            vitals: VitalsWatch::start(now),
            codex_daemons,
            folders: settings.folders().0,
            scout: ClientScout::start(&settings.home)?,
            agents: AgentScan::start(&settings.home, now),
            unreadable: Arc::default(),
            opencode_servers,
            registered: BTreeSet::new(),
            spool,
            spool_bell,
            spool_due: true,
            spool_overlaps: false,
            losses: (told, told),
            is_short_of_watches: false,
            layers,
            policy,
            repositories: Repositories::of(&settings.home),
            known,
            waiting: Waiting::default(),
            voices: Voices::default(),
            errands: Errands::default(),
            presence: handle.presence().clone(),
            transcripts: handle.transcripts().clone(),
            viewing: handle.viewing(),
            answerer: None,
            recordings: None,
            orders,
            changes,
            tap: Tap::default(),
            next: Pending::default(),
            writing: Writing::default(),
            health: Health { set_back, ..Health::default() },
            clock: Clock::new(now(), Instant::now()),
            telemetry: Telemetry::default(),
            books: None,
            searcher: None,
            deck: None,
            held: None,
            stop,
        };
        runtime.take_out(outputs);
        Ok((runtime, handle))
    }

    /// Lets the bookkeeper have every line that is read, and shows what it tells.
    pub fn keep_books(&mut self, keeper: Bookkeeper, news: mpsc::Receiver<BookNews>) {
        self.books = Some(OpenBooks { keeper, news, today: None });
    }

    /// Tells the search whenever there is something new to find.
    pub fn keep_search(&mut self, searcher: Searcher) {
        self.searcher = Some(searcher);
    }

    /// How long work may go on without a sign of life before it is called stalled; none: for ever.
    pub fn set_stalled_after(&mut self, after: Option<Duration>) {
        let ms = |after: Duration| u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        self.broker.set_stalled_after(after.map(ms));
    }

    /// Lets turns of driven sessions be traced.
    pub fn export_spans(&mut self, exporter: Exporter) {
        self.telemetry.export(exporter);
    }

    /// Tells of each forwarder that waits from now on, by its frame, also when it comes again. They
    /// are answered with [`Handle::reply`]. Who is behind with them has them released.
    pub fn keep_waiters(&mut self, answerer: mpsc::Sender<Frame>) {
        self.answerer = Some(answerer);
    }

    /// What is played from now on are recordings: their requests can be answered, and nothing is
    /// sent to any agent. Each answer is told here by its agent's own name of the session.
    pub fn keep_recordings(&mut self, answered: broadcast::Sender<Arc<str>>) {
        self.recordings = Some(answered);
    }

    /// Until it is told to stop, or the sources fail for good. What was taken is written first.
    pub async fn run(mut self) -> Result<(), Error> {
        let mut orders = Vec::with_capacity(ORDERS_PER_TURN);
        loop {
            let room = self.next.has_room();
            // While the journal takes nothing the spool cannot be emptied, and others may ask why.
            let spool_first = self.spool_due && self.health.journal_error.is_none();
            self.mind_clock();
            let asleep = self.until_wake();
            tokio::select! {
                biased;
                () = stopped(&mut self.stop) => break,
                settled = self.writing.settled() => self.settle(settled)?,
                // What comes of it is in the journal's health.
                () = self.journal_bell.rung() => drop(self.journal.check()),
                () = self.spool_bell.rung(), if room => self.spool_due = true,
                () = ready(()), if room && self.spool_due && !self.next.has_spooled() => {
                    self.drain_spool();
                }
                taken = self.orders.recv_many(&mut orders, ORDERS_PER_TURN), if room && !spool_first => {
                    if taken == 0 {
                        break;
                    }
                    self.look_into_spool(&orders);
                    for order in orders.drain(..) {
                        self.obey(order);
                    }
                }
                news = self.files.next(), if room => self.read(news)?,
                news = self.holders.next(), if room => self.hear_holders(news)?,
                located = self.locator.next(), if room => {
                    let Located { process, terminal } = located;
                    self.hand_in(now(), Input::Located { process, terminal });
                }
                news = self.vitals.next(), if room => self.hear_vitals(news),
                running = self.agents.next(), if room => self.hear_agents(&running),
                done = self.errands.next(), if room => self.hear_errand(&done),
                report = reported(&mut self.deck), if room => self.hear_crew(report),
                done = let_go_next(&mut self.held) => self.let_go(done),
                news = self.codex_daemons.next(), if room => self.hear_server(news)?,
                folder = self.scout.next(), if room => self.follow(folder)?,
                news = self.opencode_servers.next(), if room => self.hear_server(news)?,
                news = told(&mut self.books), if room => self.hear_books(news),
                () = changed(&mut self.viewing), if room => self.look_along(),
                () = self.layers.bell.rung(), if room => {
                    let layers = self.layers.read();
                    self.hand_in(now(), Input::Layers(layers));
                }
                () = self.policy.bell.rung(), if room => {
                    let policy = self.policy.read();
                    self.hand_in(now(), Input::Policy(policy));
                }
                surveyed = self.repositories.next(), if room => {
                    self.hand_in(now(), Input::Surveyed(surveyed));
                }
                () = asleep => self.hand_in(now(), Input::Woken),
            }
            self.commit();
        }
        self.finish().await
    }

    fn obey(&mut self, order: Order) {
        let now = now();
        match order {
            Order::Frame { frame, reply } => match self.known.admit(frame.id) {
                Admission::New => {
                    self.take_frame(now, &frame);
                    self.next.frames.push(frame.id);
                    self.next.acks.push(reply);
                }
                Admission::Taken => handle::answer(reply, Delivered::Taken),
                Admission::InFlight | Admission::Full => {
                    self.health.refused += 1;
                    handle::answer(reply, Delivered::Refused);
                }
            },
            Order::Wait { frame, reply } => match self.known.admit(frame.id) {
                Admission::New => {
                    let is_heard = self.take_frame(now, &frame);
                    self.next.frames.push(frame.id);
                    match is_heard {
                        true => self.next.waits.push((frame, reply)),
                        false => handle::answer(reply, Waited::Released),
                    }
                }
                Admission::Taken => {
                    let harness = Harness::named(&frame.harness);
                    match harness.is_none_or(|harness| self.is_heard(harness, &frame)) {
                        true => self.let_wait(Coming::Again, *frame, reply),
                        false => handle::answer(reply, Waited::Released),
                    }
                }
                // It comes again in a moment.
                Admission::InFlight | Admission::Full => handle::answer(reply, Waited::Refused),
            },
            Order::Reply { frame, text, reply } => {
                handle::answer(reply, self.waiting.answer(frame, text));
            }
            Order::WaiterGone { frame, arrival } => {
                if self.waiting.gone(frame, arrival) {
                    self.unhold(frame);
                    let outputs = self.broker.left(now, frame);
                    self.take_out(outputs);
                }
            }
            Order::Signal { harness, channel, payload, reply } => {
                let signal = signal(now, channel, &payload);
                self.hand_in(now, Input::Signal { harness, signal });
                self.next.acks.push(reply);
            }
            Order::Raw { signal, reply } => {
                let harness = signal.harness;
                let signal = signal.signal();
                let input = match self.recordings {
                    Some(_) => Input::Played { harness, signal },
                    None => Input::Signal { harness, signal },
                };
                self.hand_in(now, input);
                self.next.acks.push(reply);
            }
            Order::Signals { reply } => handle::answer(reply, self.tap.subscribe()),
            Order::Board { gather: Gather(gather) } => {
                let today = self.books.as_ref().and_then(|books| books.today);
                let mut cards = self.broker.each_card(now);
                let beside = Beside { today, unreadable: self.unreadable.clone() };
                gather(&mut cards, beside, self.health.changes, self.changes.subscribe());
            }
            Order::Card { word, reply } => {
                let card = self.broker.find(&word).map(|id| self.broker.card(now, id));
                handle::answer(reply, card.map(|card| card.map(Box::new)));
            }
            Order::Chat { folder, reply } => {
                let card = self.broker.chat(&folder).and_then(|id| self.broker.card(now, id));
                handle::answer(reply, card.map(Box::new));
            }
            Order::Past { wanted, reply } => handle::answer(reply, self.broker.past(now, &wanted)),
            Order::CardsOf { keys, reply } => {
                handle::answer(reply, self.broker.cards_of(now, &keys));
            }
            Order::Detail { word, reader, reply } => {
                let card = self.broker.find(&word).map(|id| self.broker.card(now, id));
                let found = self.broker.find(&word).ok();
                let session = found.and_then(|id| self.broker.session(id));
                let attached = session.as_deref().and_then(Attached::to);
                let journal = self.journal.clone();
                // Reading waits for the disk; the loop does not.
                tokio::task::spawn_blocking(move || {
                    let detail = match card {
                        Ok(Some(card)) => {
                            let read = Detail::read(&journal, card, now);
                            read.map(|detail| Some(Box::new(Detail { attached, ..detail })))
                        }
                        Ok(None) => Ok(None),
                        Err(why) => Err(NoDetail::Session(why)),
                    };
                    drop((journal, reader));
                    handle::answer(reply, detail);
                });
            }
            Order::Dismiss { word, reply } => match self.broker.find(&word).cloned() {
                Ok(session) => {
                    self.hand_in(now, Input::Dismissed { session });
                    self.next.dismissals.push(reply);
                }
                Err(why) => handle::answer(reply, Err(why)),
            },
            Order::Archive { wanted, reply } => match self.archive(now, wanted) {
                Ok(moved) => self.next.archives.push((moved, reply)),
                Err(why) => handle::answer(reply, Err(why)),
            },
            Order::Answer { answering, reply } => {
                let (taken, outputs) = self.broker.answer(now, *answering);
                self.take_out(outputs);
                self.errands.tell_later(taken, reply);
            }
            Order::Command { commanding, reply } => {
                let (taken, outputs) = self.broker.command(now, *commanding);
                self.take_out(outputs);
                self.errands.tell_later(taken, reply);
            }
            Order::Spawn { wanted, reply } => self.spawn(now, *wanted, reply),
            Order::Offers { reply } => handle::answer(reply, self.offers()),
            Order::Health { reply } => {
                let (sessions, troubles) = (self.broker.len(), self.troubles());
                let (folders, clients) = (self.folders.views(), self.broker.clients());
                let health = Health { sessions, troubles, folders, clients, ..self.health.clone() };
                handle::answer(reply, health);
            }
            Order::Meter { reply } => handle::answer(reply, self.telemetry.meter()),
        }
    }

    /// The journal has the frame, and its forwarder stays.
    fn let_wait(&mut self, coming: Coming, frame: Frame, reply: oneshot::Sender<Waited>) {
        let id = frame.id;
        let Some((arrival, told)) = self.waiting.arrived(id, frame.caller.peer()) else {
            handle::answer(reply, Waited::Released);
            return;
        };
        handle::answer(reply, Waited::Taken { arrival, told });
        if let Some(answerer) = &self.answerer {
            if answerer.try_send(frame).is_err() {
                self.waiting.release(id);
            }
            return;
        }
        let Some(harness) = Harness::named(&frame.harness) else {
            self.waiting.release(id);
            return;
        };
        let (entry, payload) = (frame.entry.as_deref(), frame.payload.as_slice());
        if self.holds(coming, harness, id, payload) {
            return;
        }
        let pid = frame.caller.agent(frame.agent).map(|process| u64::from(process.pid));
        let staying = Staying { harness, frame: id, entry, pid, heard: frame.heard() };
        self.broker.set_presence(self.presence.is_somebody());
        self.look_along();
        let outputs = self.broker.arrived(now(), &staying);
        self.take_out(outputs);
    }

    /// Takes in what the operator looks at now.
    fn look_along(&mut self) {
        let viewing = self.viewing.borrow_and_update().clone();
        let outputs = self.broker.set_viewing(now(), viewing);
        self.take_out(outputs);
    }

    /// A hook's frame, from the socket or the spool. False if its caller may not speak for its
    /// session: then nothing is kept of it but that it came.
    fn take_frame(&mut self, now: Timestamp, frame: &Frame) -> bool {
        self.health.hooks += 1;
        let harness = Harness::named(&frame.harness);
        if harness.is_some_and(|harness| !self.is_heard(harness, frame)) {
            let id = frame.id.to_string();
            self.next.batch.deliveries.push(Delivery { id, body: Vec::new() });
            return false;
        }
        self.health.cut += u64::from(frame.cut.is_some());
        self.next.batch.deliveries.push(frame.delivery());
        self.next.bytes += frame.payload.len();
        if !frame.tells() {
            return true;
        }
        match harness {
            Some(harness) => {
                let told = self.next.batch.entries.len();
                let process = frame.process();
                let signal = frame.signal(process.as_deref());
                self.hand_in(now, Input::Signal { harness, signal });
                if let Some(process) = frame.caller.agent(frame.agent) {
                    self.note_holder(harness, process, told);
                    self.scout.look_at(harness, process);
                }
            }
            None => {
                self.health.unknown += 1;
                warn!(harness = frame.harness, "a hook of an agent that is not known here");
            }
        }
        true
    }

    /// The sessions that were put into History, or back. Where a word names no session, nothing is
    /// done.
    fn archive(&mut self, now: Timestamp, wanted: Archiving) -> Result<Vec<SessionId>, NotFound> {
        let (found, wants_archived) = match wanted {
            Archiving::Named(words) => (self.named(&words)?, true),
            Archiving::SilentFor { ms } => (self.broker.archivable(now, ms), true),
            Archiving::Undone(words) => (self.named(&words)?, false),
        };
        let is_archived = |broker: &Broker, id: &SessionId| {
            broker.session(id).is_some_and(|session| session.is_archived())
        };
        let mut moved = Vec::new();
        for session in found {
            if is_archived(&self.broker, &session) == wants_archived {
                continue;
            }
            let input = match wants_archived {
                true => Input::Archived { session: session.clone() },
                false => Input::Unarchived { session: session.clone() },
            };
            self.hand_in(now, input);
            if is_archived(&self.broker, &session) == wants_archived {
                moved.push(session);
            }
        }
        Ok(moved)
    }

    fn named(&self, words: &[String]) -> Result<Vec<SessionId>, NotFound> {
        words.iter().map(|word| self.broker.find(word).cloned()).collect()
    }

    /// A live client keeps its files here.
    fn follow(&mut self, folder: ClientFolder) -> Result<(), Error> {
        let (harness, path) = (folder.harness, folder.path.clone());
        let Some(places) = self.folders.add(folder, FolderOrigin::RunningClient) else {
            return Ok(());
        };
        info!(harness = harness.name(), path = %path.display(), "a client keeps its files here");
        self.files.follow(&places);
        self.holders.follow(&places);
        self.transcripts.follow(&places);
        Ok(self.codex_daemons.follow(&places, now)?)
    }

    /// Whoever ran a hook holds the sessions it told of.
    fn note_holder(&mut self, harness: Harness, process: Process, told: usize) {
        let mut sessions: Vec<&SessionId> =
            self.next.batch.entries[told..].iter().map(|entry| &entry.session).collect();
        sessions.dedup();
        for session in sessions {
            if let Some(vendor_id) = self.broker.vendor_id(session) {
                self.holders.held(harness, vendor_id, process);
            }
        }
    }

    fn hear_holders(&mut self, news: Option<HolderNews>) -> Result<(), Error> {
        match news {
            Some(HolderNews::Signal(found)) => {
                let (harness, signal) = (found.harness, found.signal());
                self.hand_in(found.at, Input::Signal { harness, signal });
            }
            Some(HolderNews::Notice(notice)) => {
                self.health.notices += 1;
                warn!(?notice, "processes");
            }
            Some(HolderNews::Stopped(error)) => return Err(error.into()),
            None => return Err(Error::SourceGone),
        }
        Ok(())
    }

    fn hear_vitals(&mut self, news: VitalsNews) {
        match news {
            VitalsNews::Due => self.vitals.look(self.broker.watched()),
            VitalsNews::Seen(seen) => self.hand_in(now(), Input::Vitals(seen)),
        }
    }

    /// The agents that run now. What cannot be read is told where it changes.
    fn hear_agents(&mut self, running: &[AgentProcess]) {
        // Before all is read nobody can say what is not.
        if !self.health.caught_up || self.recordings.is_some() {
            return;
        }
        let unreadable = self.broker.unreadable(running);
        if *unreadable != *self.unreadable {
            self.unreadable = unreadable.into();
            self.next.news.push(BoardNews::Unreadable(self.unreadable.clone()));
        }
    }

    /// What a client's own server said.
    fn hear_server(&mut self, news: Option<SourceNews>) -> Result<(), Error> {
        match news {
            Some(SourceNews::Signal(found)) => {
                let (harness, signal) = (found.harness, found.signal());
                // It keeps its sums in a database that no line tells of.
                if memmem::find(signal.payload, STEP_ENDED).is_some()
                    && let Some(books) = &self.books
                {
                    books.keeper.look();
                }
                self.hand_in(now(), Input::Signal { harness, signal });
            }
            Some(SourceNews::Notice(notice)) => {
                info!(server = &*notice.server, kind = ?notice.kind, "a client's server");
                self.forget_unreached();
            }
            None => return Err(Error::SourceGone),
        }
        Ok(())
    }

    /// Sessions that no server tells of any more cannot be acted on through one.
    fn forget_unreached(&mut self) {
        let (codex, opencode) = (&self.codex_daemons, &self.opencode_servers);
        let outputs = self.broker.forget_unreached(now(), |harness, vendor_id| match harness {
            Harness::Codex => codex.holds(vendor_id),
            Harness::Opencode | Harness::KiloCode => opencode.holds(vendor_id),
            Harness::ClaudeCode
            | Harness::GeminiCli
            | Harness::Cline
            | Harness::Acp
            | Harness::Native => false,
        });
        self.take_out(outputs);
    }

    /// Processes that carried a session when we last looked: those that ended meanwhile have told
    /// nobody. A registry file tells of its own.
    fn recheck_carriers(&mut self) {
        let mut carriers = Vec::new();
        for (harness, vendor_id, key) in self.broker.carriers() {
            let Some(process) = Process::named(key.as_str()) else { continue };
            if harness != Harness::ClaudeCode || !self.registered.contains(&process.pid) {
                carriers.push((harness, vendor_id.clone(), process));
            }
        }
        for (harness, vendor_id, process) in carriers {
            match self.broker.driven_session(harness, &vendor_id).cloned() {
                // Its handler has heard nothing of a process that our own runner began.
                Some(session) if !process.is_alive() => {
                    let report = Report::ProcessEnded { process: process.key() };
                    self.hand_in(now(), Input::Reported { session, report });
                }
                Some(_) | None => self.holders.held_before(harness, &vendor_id, process),
            }
        }
        self.registered.clear();
    }

    /// What the session files said, and what they have said meanwhile: one turn of it.
    fn read(&mut self, news: Option<News>) -> Result<(), Error> {
        self.read_one(news)?;
        for _ in 1..ORDERS_PER_TURN {
            if !self.next.has_room() {
                break;
            }
            let Some(more) = self.files.next_ready() else { break };
            self.read_one(Some(more))?;
        }
        Ok(())
    }

    fn read_one(&mut self, news: Option<News>) -> Result<(), Error> {
        match news {
            Some(News::Signal(found)) => {
                let file = found.file();
                let signal = found.signal(file.as_deref());
                let harness = found.harness;
                // What was there before is read by the bookkeeper itself.
                if self.health.caught_up
                    && let (Some(books), Some(end)) = (&self.books, found.position)
                {
                    books.keeper.line(harness, &found.path, &found.payload, end);
                }
                if let (true, Some(searcher)) = (self.health.caught_up, &self.searcher) {
                    searcher.look();
                }
                if harness == Harness::GeminiCli {
                    self.holders.touched(&found.path);
                }
                if found.channel == Channel::Registry && !self.health.caught_up {
                    let pid = found.path.file_stem().and_then(|pid| pid.to_str());
                    let pid = pid.and_then(|pid| pid.parse::<u32>().ok());
                    self.registered.extend(pid);
                }
                let input = match self.health.caught_up {
                    true => Input::Signal { harness, signal },
                    false => Input::Recalled { harness, signal },
                };
                self.hand_in(now(), input);
            }
            Some(News::CaughtUp) => {
                self.health.caught_up = true;
                self.recheck_carriers();
            }
            Some(News::Notice(notice)) => {
                if notice == FileNotice::Watch(Notice::WatchesExhausted) {
                    self.is_short_of_watches = true;
                } else if notice == FileNotice::Watch(Notice::WatchesSuffice) {
                    self.is_short_of_watches = false;
                }
                self.health.notices += 1;
                warn!(?notice, "session files");
            }
            Some(News::Stopped(error)) => return Err(error.into()),
            None => return Err(Error::SourceGone),
        }
        Ok(())
    }

    fn hear_books(&mut self, news: BookNews) {
        match news {
            BookNews::Spent(spent) => self.hand_in(now(), Input::Spent(spent)),
            BookNews::Today(sum) => {
                let today = self.books.as_mut().map(|books| &mut books.today);
                if today.is_some_and(|today| today.replace(sum) != Some(sum)) {
                    self.next.news.push(BoardNews::Today(sum));
                    self.hand_in(now(), Input::Today(sum));
                }
            }
        }
    }

    /// An agent that was refused left its hook in the spool, and the next one may be among these
    /// orders before anybody told us of the first.
    fn look_into_spool(&mut self, orders: &[Order]) {
        let is_frame = |order: &Order| matches!(order, Order::Frame { .. } | Order::Wait { .. });
        let has_frames = orders.iter().any(is_frame);
        if has_frames && !self.next.has_spooled() && self.spool.may_have_changed() {
            self.drain_spool();
        }
    }

    /// The oldest frames of the spool. Their files go when the journal has them.
    fn drain_spool(&mut self) {
        let now = now();
        let batch = match self.spool.next_batch(now.0, &mut self.known) {
            Ok(batch) => batch,
            Err(error) => {
                warn!(%error, "the spool cannot be read");
                self.spool_due = false;
                return;
            }
        };
        for aside in &batch.set_aside {
            warn!(file = aside.file, why = %aside.why, "no frame, set aside");
        }
        self.spool_overlaps |= batch.in_flight > 0;
        if batch.frames.is_empty() {
            self.spool_due = false;
            self.count_losses();
            return;
        }
        for frame in &batch.frames {
            self.take_frame(now, frame);
        }
        self.health.spooled += batch.frames.len() as u64;
        self.next.spooled = Some(batch);
    }

    /// Tells the broker of a clock that jumped, before anything is taken in by its new time.
    fn mind_clock(&mut self) {
        let now = now();
        match self.clock.look(now, Instant::now()) {
            None => {}
            Some(Jump::Back { by_ms }) => {
                warn!(by_ms, "the clock was set back");
                self.health.set_back = Some(SetBack { at: now, by_ms });
                self.hand_in(now, Input::ClockSetBack { by_ms });
                let journal = self.journal.clone();
                let heard = journal.each_delivery(|delivery| {
                    if let Some((harness, frame)) = told_by(&delivery) {
                        let process = frame.process();
                        let signal = set_back(frame.signal(process.as_deref()), by_ms);
                        self.broker.handle(now, Input::Reheard { harness, signal });
                    }
                });
                if let Err(error) = heard {
                    warn!(%error, "hooks of before cannot be read again");
                }
            }
            Some(Jump::Forward { by_ms }) => {
                info!(by_ms, "the machine slept, or its clock was set forward");
                self.hand_in(now, Input::Slept { ms: by_ms });
            }
        }
    }

    fn hand_in(&mut self, now: Timestamp, input: Input<'_>) {
        if let Input::Signal { harness, signal }
        | Input::Recalled { harness, signal }
        | Input::Played { harness, signal } = &input
        {
            self.tap.tell(*harness, signal);
        }
        let outputs = self.broker.handle(now, input);
        self.take_out(outputs);
    }

    fn take_out(&mut self, outputs: Vec<Output>) {
        outputs.into_iter().for_each(|output| self.next.take(output));
    }

    /// What a carrier brought back.
    fn hear_errand(&mut self, done: &Done) {
        let (Done { cargo, carried }, now) = (done, now());
        let outputs = self.broker.carried(now, &cargo.decision, &cargo.way, carried);
        self.take_out(outputs);
        let unserved = cargo.frame.filter(|_| *carried != Carried::Delivered);
        if let Some(frame) = unserved {
            let outputs = match self.waiting.has(frame) {
                // Before we knew that its old connection was broken.
                true => self.broker.came_back(frame),
                false => self.broker.left(now, frame),
            };
            self.take_out(outputs);
        }
    }

    /// Sends the next batch off, if none is on its way.
    fn commit(&mut self) {
        if self.writing.is_idle() && !self.next.is_empty() {
            let pending = std::mem::take(&mut self.next);
            if pending.batch_is_empty() {
                self.publish(pending);
            } else {
                self.writing.begin(&self.journal, pending);
            }
        }
    }

    /// What became of the batch on its way.
    fn settle(&mut self, outcome: commit::Outcome) -> Result<(), Error> {
        match outcome {
            commit::Outcome::Written(pending) => {
                self.health.journal_error = None;
                self.publish(*pending);
            }
            commit::Outcome::Delayed(error) => {
                warn!(%error, "the journal cannot be written; trying again");
                self.health.journal_error = Some(error.to_string());
                self.spool_due = true;
            }
            commit::Outcome::Retry => self.writing.again(&self.journal),
            commit::Outcome::Impossible(mut pending, error) => {
                let lost = pending.batch.sift();
                let count = if lost.is_empty() { pending.entries() } else { lost.len() };
                warn!(%error, count, "entries that can never be written");
                self.health.dropped += count as u64;
                self.health.journal_error = Some(error.to_string());
                // What is not in the journal is not done.
                if lost.is_empty() {
                    pending.jobs.clear();
                    let unrecorded = pending.errands.drain(..);
                    unrecorded.for_each(|errand| self.errands.give_back(errand));
                    self.publish(*pending);
                } else {
                    pending.jobs.retain(|job| !lost.contains(&job.session));
                    self.writing.begin(&self.journal, *pending);
                }
            }
            commit::Outcome::Broken(error) => return Err(Error::Journal(error)),
        }
        Ok(())
    }

    /// The journal has it: now it may be seen, and those who wait may go.
    fn publish(&mut self, mut pending: Pending) {
        if !pending.frames.is_empty() {
            // Their copies in the spool may go now.
            self.spool_due |= std::mem::take(&mut self.spool_overlaps);
        }
        for frame in pending.frames.drain(..) {
            self.known.settle(frame);
        }
        if let Some(batch) = pending.spooled.take()
            && let Err(error) = self.spool.settle(batch, &mut self.known)
        {
            warn!(%error, "frames stay in the spool; their ids are known");
        }
        pending.acks.drain(..).for_each(|ack| handle::answer(ack, Delivered::Taken));
        pending.releases.drain(..).for_each(|frame| self.waiting.release(frame));
        for errand in pending.errands.drain(..) {
            self.carry(errand);
        }
        for job in pending.jobs.drain(..) {
            self.carry_out(job);
        }
        pending.spawns.drain(..).for_each(|(id, reply)| handle::answer(reply, Ok(id)));
        pending.settled.drain(..).for_each(|taken| self.errands.settle(&taken));
        pending.locate.drain(..).for_each(|process| self.locator.look(process));
        pending.survey.drain(..).for_each(|survey| self.repositories.read(survey));
        for (session, agent) in pending.looks.drain(..) {
            self.look_into(&session, &agent);
        }
        for (frame, wait) in std::mem::take(&mut pending.waits) {
            self.let_wait(Coming::First, *frame, wait);
        }
        pending.dismissals.drain(..).for_each(|reply| handle::answer(reply, Ok(())));
        pending.archives.drain(..).for_each(|(moved, reply)| handle::answer(reply, Ok(moved)));
        for news in pending.news.drain(..) {
            self.health.changes += 1;
            self.telemetry.take(&news, |session| self.broker.harness(session));
            // Nobody may be listening.
            let _ = self.changes.send(Arc::new(BoardChange { id: self.health.changes, news }));
        }
    }

    /// Writes what was taken, for as long as the journal takes it.
    async fn finish(mut self) -> Result<(), Error> {
        if let Some(deck) = self.deck.take() {
            deck.clear().await;
        }
        self.commit();
        while !self.writing.is_idle() {
            let outcome = self.writing.settled().await;
            if let commit::Outcome::Delayed(error) = outcome {
                return Err(Error::Journal(error));
            }
            self.settle(outcome)?;
            self.commit();
        }
        self.telemetry.finish().await;
        Ok(())
    }

    /// Sleeps until the broker wants to be woken. Never for long: a machine that was suspended
    /// does not count that time.
    fn until_wake(&self) -> impl Future<Output = ()> + use<> {
        let wake = self.broker.next_wake().map(|wake| {
            let ms = wake.ms_since(now());
            Duration::from_millis(ms).min(SLEEP_MAX)
        });
        async move {
            match wake {
                Some(wake) => tokio::time::sleep(wake).await,
                None => pending().await,
            }
        }
    }
}

impl WatchedLayers {
    /// The bell is there before anybody reads, so that no change is missed.
    fn start(settings: &Settings) -> Result<Self, Error> {
        let (path, home) = (settings.layers.clone(), settings.home.clone());
        let bell =
            Doorbell::at("qd-layers", vec![Root::of_settings(&path, is_layers)], Rings::ForEnds)?;
        Ok(Self { path, home, bell })
    }

    fn read(&self) -> Layers {
        let LayersFile { layers, troubles } = LayersFile::read(&self.path, &self.home);
        for trouble in troubles {
            warn!(place = trouble.place, what = trouble.what, "layers.toml");
        }
        info!(rules = layers.rules_len(), "domain layers");
        layers
    }
}

impl WatchedPolicy {
    /// As with the layers.
    fn start(settings: &Settings) -> Result<Self, Error> {
        let (path, home) = (settings.policy.clone(), settings.home.clone());
        let ours = path.parent().map(ToOwned::to_owned).into_iter().chain([settings.state.clone()]);
        let private = PrivatePlaces::new(ours, &home, &settings.environment);
        let bell =
            Doorbell::at("qd-policy", vec![Root::of_settings(&path, is_policy)], Rings::ForEnds)?;
        Ok(Self { path, home, private, bell })
    }

    fn read(&self) -> Policy {
        let PolicyFile { policy, troubles } = PolicyFile::read(&self.path, &self.home);
        for trouble in troubles {
            warn!(place = trouble.place, what = trouble.what, "policy.toml");
        }
        info!(rules = policy.rules_len(), "policy");
        policy.with_private(self.private.spelled())
    }
}

fn is_layers(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name == "layers.toml")
}

fn is_policy(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name == "policy.toml")
}

/// What the bookkeeper tells next; never, where there is none.
async fn told(books: &mut Option<OpenBooks>) -> BookNews {
    let Some(open) = books else { return pending().await };
    match open.news.recv().await {
        Some(news) => news,
        // Its thread has ended; what it told stays.
        None => pending().await,
    }
}

/// Brings back the sessions, the ids of the hooks that were taken, and, by letting them hear the
/// last ones again, what the handlers knew.
fn restore(journal: &Journal, layers: Layers, policy: Policy) -> Result<Restored, Error> {
    let now = now();
    let mut broker = Broker::default();
    let mut kept = Vec::new();
    broker.sow(fresh_seed());
    broker.handle(now, Input::Layers(layers));
    broker.handle(now, Input::Policy(policy));
    recall_records(&mut broker, journal)?;
    // One after the other: each rests before many more are read.
    let restored = journal.load_each(|Remembered { session, aliases }| {
        let mut aliases = aliases.into_iter().filter_map(|(harness, vendor_id)| {
            Some((Harness::named(&harness)?, Arc::<str>::from(vendor_id)))
        });
        let Some((harness, vendor_id)) = aliases.next() else { return };
        let id = session.id().clone();
        let restored = Input::Restored { harness, vendor_id, session: Box::new(session) };
        let outputs = broker.handle(now, restored);
        let is_question = |output: &Output| matches!(output, Output::Locate(_) | Output::Survey(_));
        kept.extend(outputs.into_iter().filter(is_question));
        aliases.for_each(|(harness, vendor_id)| broker.also_known(harness, vendor_id, &id));
    });
    for damaged in &restored.map_err(Error::Journal)? {
        warn!(session = damaged.session.as_str(), seq = damaged.seq, "a damaged record, set aside");
    }
    for session in broker.limited_by_minutes() {
        let Some(card) = broker.card(now, &session) else { continue };
        match Detail::read(journal, card, now) {
            Ok(detail) => {
                broker.handle(now, Input::Worked { session, ms: detail.worked_ms(now) });
            }
            Err(_) => warn!(session = session.as_str(), "how long it worked cannot be read"),
        }
    }
    let by_ms = broker.ahead_ms(now);
    let set_back = (by_ms >= SET_BACK_MIN_MS).then_some(SetBack { at: now, by_ms });
    if set_back.is_some() {
        warn!(by_ms, "the clock was set back while no daemon ran");
        let outputs = broker.handle(now, Input::ClockSetBack { by_ms });
        kept.extend(outputs.into_iter().filter(|output| matches!(output, Output::Append(_))));
    }
    let mut ids = Vec::new();
    let heard = journal.each_delivery(|delivery| {
        ids.extend(qd_hook_wire::FrameId::parse(&delivery.id));
        let Some((harness, frame)) = told_by(&delivery) else { return };
        if set_back.is_some() {
            let process = frame.process();
            let signal = self::set_back(frame.signal(process.as_deref()), by_ms);
            broker.handle(now, Input::Reheard { harness, signal });
            return;
        }
        // All it led to is in the journal, but for timers that had not run out.
        let process = frame.process();
        let signal = frame.signal(process.as_deref());
        let outputs = broker.handle(now, Input::Recalled { harness, signal });
        // The chain of records has no gaps.
        kept.extend(outputs.into_iter().filter(|output| matches!(output, Output::Record(_))));
    });
    heard.map_err(Error::Journal)?;
    kept.extend(broker.close_past(now));
    broker.rest_all();
    Ok(Restored { broker, known: KnownIds::restored(ids), outputs: kept, set_back })
}

/// What a delivery of the journal told, and of which agent.
fn told_by(delivery: &Delivery) -> Option<(Harness, Frame)> {
    let frame = Frame::delivered(delivery).filter(Frame::tells)?;
    Some((Harness::named(&frame.harness)?, frame))
}

/// A signal by the clock as it is now.
fn set_back(signal: Signal<'_>, by_ms: u64) -> Signal<'_> {
    Signal { at: signal.at.minus_ms(by_ms), ..signal }
}

/// All that was, what has to be looked up again, and what is on record about it now.
struct Restored {
    broker: Broker,
    known: KnownIds,
    outputs: Vec<Output>,
    /// The clock was set back since the journal was written.
    set_back: Option<SetBack>,
}

/// Brings back what was decided: what was given and has no outcome yet is not given again.
fn recall_records(broker: &mut Broker, journal: &Journal) -> Result<(), Error> {
    let ends = journal.record_ends().map_err(Error::Journal)?;
    // The book remembers no more than these.
    let newest = ends.last.seq.saturating_sub(BOOK_RECORDS_MAX as u64);
    let mut after = ends.dropped.seq.max(newest);
    loop {
        let lines = journal.record_lines(after, RECORDS_PER_READ).map_err(Error::Journal)?;
        let Some(last) = lines.last() else { break };
        after = last.seq;
        for line in &lines {
            match Record::read(&line.line) {
                Ok((record, _)) => broker.recall_record(&record),
                Err(why) => warn!(seq = line.seq, why, "a record of a decision cannot be read"),
            }
        }
    }
    broker.follow_records(ends.last);
    Ok(())
}

fn frames_in(spool: PathBuf) -> Root {
    Root {
        path: spool,
        enters: |_| false,
        tells: Tells::Changes,
        wants: |file| file.extension().is_some_and(|ending| ending == "frame"),
    }
}

/// The database, its log and its lock; not what is written beside them all the time.
fn journal_in(state: PathBuf) -> Root {
    const FILES: [&str; 4] = ["journal.db", "journal.db-wal", "journal.db-shm", "journal.db.lock"];
    Root {
        path: state,
        enters: |_| false,
        tells: Tells::Presence,
        wants: |file| FILES.iter().any(|name| file.as_os_str() == *name),
    }
}

fn report(opened: &Opened) {
    if let Some(damaged) = &opened.set_aside {
        warn!(path = %damaged.path.display(), reason = damaged.reason,
            "the journal was damaged and lies there now");
    }
    if let Some(gap) = &opened.gap {
        warn!(
            entries = gap.entries,
            records = gap.records,
            "the journal is not all that was written"
        );
    }
    info!(entries = opened.entries, sessions = opened.sessions, "journal opened");
}

fn signal(at: Timestamp, channel: Channel, payload: &[u8]) -> Signal<'_> {
    let direction = Direction::FromAgent;
    Signal { at, seq: 0, channel, direction, file: None, payload }
}

/// Waits for something new to be looked at; for ever once nobody is left to say so.
async fn changed(viewing: &mut watch::Receiver<Viewing>) {
    if viewing.changed().await.is_err() {
        pending().await
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // Whoever could say so is gone: that says it too.
    let _ = stop.wait_for(|stop| *stop).await;
}
