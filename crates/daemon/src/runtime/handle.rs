//! How others speak to the loop: each question carries the place for its answer.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use qd_broker::Card;
use qd_broker::desk::{Answering, Commanding, Declined, Taken};
use qd_broker::driving::Unspawned;
use qd_broker::news::BoardChange;
use qd_broker::session_key::SessionKey;
use qd_broker::unreadable::UnreadableAgent;
use qd_broker::viewing::Viewing;
use qd_broker::{ClientView, NotFound, Past};
use qd_harness::usage::Sum;
use qd_harness::{Channel, Harness};
use qd_hook_wire::{FrameId, HookReply};
use qd_runners::crew::HarnessOffer;
use qd_session::id::SessionId;
use qd_session::logbook::Brief;
use qd_sources::client_folders::FolderView;
use qd_sources::hook_intake::Frame;
use qd_sources::places::{Place, PlaceKind};
use qd_sources::transcript::{self, Page, Part, Unread, Whose};
use qd_telemetry::Meter;
use serde::{Deserialize, Serialize};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast, mpsc, oneshot, watch};

use super::clock::SetBack;
use super::tap::{RawSignal, Tapped};
use super::troubles::Trouble;
use super::waiting::{Arrival, ReplyOutcome, ReplyReceipt, Told};
use crate::detail::{Detail, NoDetail};

/// Readers of the journal's past and of transcripts at once. They read for people who look at a
/// page, and each may hold some megabytes; who comes then waits.
const READERS_MAX: usize = 4;

/// What became of something that was handed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivered {
    /// The journal has it.
    Taken,
    /// We have not got it: keep it.
    Refused,
}

/// The board at one moment, and what becomes of it.
#[derive(Debug)]
pub struct Board<T = Card> {
    /// What was kept of each; whole cards are in their order.
    pub cards: Vec<T>,
    /// What all sessions have cost on the operator's day, once it is known.
    pub today: Option<Sum>,
    /// Agents that run and cannot be read.
    pub unreadable: Arc<[UnreadableAgent]>,
    /// The newest change that is in them.
    pub change: u64,
    /// Every change after that.
    pub changes: broadcast::Receiver<Arc<BoardChange>>,
}

/// Takes the board's cards one after the other, so that they are never all there at once, and then
/// what else [`Board`] has.
pub struct Gather(pub(super) Box<GatherCards>);

type GatherCards = dyn FnOnce(&mut dyn Iterator<Item = Card>, Beside, u64, broadcast::Receiver<Arc<BoardChange>>)
    + Send;

/// What is on the board beside the cards.
#[derive(Debug)]
pub struct Beside {
    pub today: Option<Sum>,
    pub unreadable: Arc<[UnreadableAgent]>,
}

impl fmt::Debug for Gather {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gather")
    }
}

/// How the daemon itself is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Health {
    /// Everything that was there at the start has been read.
    pub caught_up: bool,
    pub sessions: usize,
    /// Hooks taken, from the socket and from the spool.
    pub hooks: u64,
    /// Those of them that lay in the spool.
    pub spooled: u64,
    /// Hooks that were sent back to be spooled.
    pub refused: u64,
    /// Hooks of agents that are not known here.
    pub unknown: u64,
    /// Hooks that were longer than what is kept of one: all but their longest parts was taken.
    #[serde(default)]
    pub cut: u64,
    /// Hooks that were ignored, because the process that sent them does not hold the session that
    /// they named.
    #[serde(default)]
    pub strangers: u64,
    /// Hooks that were ignored, because another program ran them than the client they were
    /// installed for: how many, by the program.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub other_callers: BTreeMap<String, u64>,
    /// Changes shown so far.
    pub changes: u64,
    /// Troubles with session files, told in the log.
    pub notices: u64,
    /// Entries that could never be written.
    pub dropped: u64,
    /// The last time that the clock was set back, since the daemon started or just before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub set_back: Option<SetBack>,
    /// What was heard of each client.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub clients: Vec<ClientView>,
    /// Folders in which clients keep their files.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub folders: Vec<FolderView>,
    /// Why the journal takes nothing, while it takes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal_error: Option<String>,
    /// What is wrong now, each with what to do about it.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub troubles: Vec<Trouble>,
}

/// A way to the loop. Everything is bounded: a loop that is behind refuses, it does not pile up.
#[derive(Debug, Clone)]
pub struct Handle {
    orders: mpsc::Sender<Order>,
    /// Room for those who read the past.
    readers: Arc<Semaphore>,
    presence: Presence,
    viewing: watch::Sender<Viewing>,
    /// Where clients may keep conversations.
    databases: Arc<[PathBuf]>,
    transcripts: TranscriptFolders,
}

/// Where clients keep transcripts; more are learnt from clients that run.
#[derive(Debug, Clone, Default)]
pub struct TranscriptFolders(Arc<RwLock<Vec<(Harness, PathBuf)>>>);

impl TranscriptFolders {
    pub(super) fn follow(&self, places: &[Place]) {
        let transcripts = places.iter().filter(|place| place.kind == PlaceKind::Transcripts);
        let transcripts = transcripts.map(|place| (place.harness, place.path.clone()));
        self.0.write().unwrap_or_else(PoisonError::into_inner).extend(transcripts);
    }

    fn of(&self, harness: Harness) -> Vec<PathBuf> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let of_client = all.iter().filter(|(of, _)| *of == harness);
        of_client.map(|(_, folder)| folder.clone()).collect()
    }
}

/// How many look at the board: pages, phones, `qd watch`.
#[derive(Debug, Clone, Default)]
pub struct Presence(Arc<AtomicU32>);

impl Presence {
    /// For whoever comes and goes.
    pub fn counter(&self) -> Arc<AtomicU32> {
        self.0.clone()
    }

    pub fn is_somebody(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

/// What became of the frame of a forwarder that wants to wait.
#[derive(Debug)]
pub enum Waited {
    /// The journal has it; it is told on this.
    Taken { arrival: Arrival, told: oneshot::Receiver<Told> },
    /// The journal has it, and it is not to wait.
    Released,
    /// We have not got it: keep it.
    Refused,
}

/// A forwarder that waits, for the one who holds its connection.
#[derive(Debug)]
pub struct Waiter {
    frame: FrameId,
    waited: Option<(Arrival, oneshot::Receiver<Told>)>,
    orders: mpsc::Sender<Order>,
}

impl Waiter {
    /// What it is told, in the end. None if it came again on another connection meanwhile, or the
    /// loop has ended. May be dropped and asked again.
    pub async fn told(&mut self) -> Option<Told> {
        match &mut self.waited {
            Some((_, told)) => told.await.ok(),
            None => Some(Told::release()),
        }
    }

    /// The connection has ended, whether it was told something or not.
    pub async fn leave(self) {
        if let Some((arrival, told)) = self.waited {
            // Whoever answers from here on is told that it failed.
            drop(told);
            let gone = Order::WaiterGone { frame: self.frame, arrival };
            // A loop that has ended knows of nobody.
            let _ = self.orders.send(gone).await;
        }
    }
}

/// The loop has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the daemon is stopping")]
pub struct Gone;

/// Sessions to be put into History, or back on the board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Archiving {
    /// Those that a word names, where nothing of them is known to live.
    Named(Vec<String>),
    /// All on the board that were silent for so long, and of which nothing is known to live.
    SilentFor { ms: u64 },
    /// Back on the board.
    Undone(Vec<String>),
}

#[derive(Debug)]
pub enum Order {
    Frame {
        frame: Box<Frame>,
        reply: oneshot::Sender<Delivered>,
    },
    Wait {
        frame: Box<Frame>,
        reply: oneshot::Sender<Waited>,
    },
    Reply {
        frame: FrameId,
        text: HookReply,
        reply: oneshot::Sender<ReplyReceipt>,
    },
    WaiterGone {
        frame: FrameId,
        arrival: Arrival,
    },
    Signal {
        harness: Harness,
        channel: Channel,
        payload: Vec<u8>,
        reply: oneshot::Sender<Delivered>,
    },
    Raw {
        signal: Box<RawSignal>,
        reply: oneshot::Sender<Delivered>,
    },
    Signals {
        reply: oneshot::Sender<broadcast::Receiver<Arc<Tapped>>>,
    },
    Board {
        gather: Gather,
    },
    Card {
        word: String,
        reply: oneshot::Sender<Result<Option<Box<Card>>, NotFound>>,
    },
    Chat {
        folder: String,
        reply: oneshot::Sender<Option<Box<Card>>>,
    },
    Past {
        wanted: Past,
        reply: oneshot::Sender<Vec<Card>>,
    },
    CardsOf {
        keys: Vec<SessionKey>,
        reply: oneshot::Sender<Vec<Option<Card>>>,
    },
    Detail {
        word: String,
        /// Held until it has been read.
        reader: OwnedSemaphorePermit,
        reply: oneshot::Sender<Result<Option<Box<Detail>>, NoDetail>>,
    },
    Dismiss {
        word: String,
        reply: oneshot::Sender<Result<(), NotFound>>,
    },
    Archive {
        wanted: Archiving,
        reply: ArchiveReply,
    },
    Answer {
        answering: Box<Answering>,
        reply: oneshot::Sender<Result<Taken, Declined>>,
    },
    Command {
        commanding: Box<Commanding>,
        reply: oneshot::Sender<Result<Taken, Declined>>,
    },
    Spawn {
        wanted: Box<SpawnWanted>,
        reply: SpawnReply,
    },
    Offers {
        reply: oneshot::Sender<Vec<HarnessOffer>>,
    },
    Health {
        reply: oneshot::Sender<Health>,
    },
    Meter {
        reply: oneshot::Sender<Meter>,
    },
}

/// A session that somebody wants driven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpawnWanted {
    pub harness: Harness,
    pub brief: Brief,
}

pub type SpawnReply = oneshot::Sender<Result<SessionId, Unspawned>>;

pub type ArchiveReply = oneshot::Sender<Result<Vec<SessionId>, NotFound>>;

impl Handle {
    pub(super) fn new(orders: mpsc::Sender<Order>, places: &[Place]) -> Self {
        let readers = Arc::new(Semaphore::new(READERS_MAX));
        let databases = places.iter().filter_map(Place::database).collect();
        let transcripts = TranscriptFolders::default();
        transcripts.follow(places);
        let (presence, viewing) = (Presence::default(), watch::Sender::default());
        Self { orders, readers, presence, viewing, databases, transcripts }
    }

    /// Hands a hook's frame in, and waits until it is on disk. Does not wait for room.
    pub async fn deliver(&self, frame: Frame) -> Delivered {
        let (reply, answer) = oneshot::channel();
        match self.orders.try_send(Order::Frame { frame: Box::new(frame), reply }) {
            Ok(()) => answer.await.unwrap_or(Delivered::Refused),
            Err(_) => Delivered::Refused,
        }
    }

    /// Hands the frame of a forwarder in that waits, and gives back how it is told. None if we have
    /// not got the frame. Comes it again, it is journaled once and waits on as if nothing had been.
    pub async fn wait(&self, frame: Frame) -> Option<Waiter> {
        let (reply, answer) = oneshot::channel();
        let id = frame.id;
        self.orders.try_send(Order::Wait { frame: Box::new(frame), reply }).ok()?;
        let waited = match answer.await.ok()? {
            Waited::Taken { arrival, told } => Some((arrival, told)),
            Waited::Released => None,
            Waited::Refused => return None,
        };
        Some(Waiter { frame: id, waited, orders: self.orders.clone() })
    }

    /// Answers the forwarder that waits with this frame, and waits until it has the answer.
    pub async fn reply(&self, frame: FrameId, text: HookReply) -> Result<ReplyOutcome, Gone> {
        let receipt = self.ask(|reply| Order::Reply { frame, text, reply }).await?;
        Ok(receipt.outcome().await)
    }

    /// Hands in what an agent said over another way than a hook.
    pub async fn signal(&self, harness: Harness, channel: Channel, payload: Vec<u8>) -> Delivered {
        let (reply, answer) = oneshot::channel();
        match self.orders.try_send(Order::Signal { harness, channel, payload, reply }) {
            Ok(()) => answer.await.unwrap_or(Delivered::Refused),
            Err(_) => Delivered::Refused,
        }
    }

    /// Hands in a signal with its own time and file, as a recording holds it. Waits for room.
    pub async fn play(&self, signal: RawSignal) -> Result<Delivered, Gone> {
        self.ask(|reply| Order::Raw { signal: Box::new(signal), reply }).await
    }

    /// Every signal that is taken in from now on, as it came.
    pub async fn signals(&self) -> Result<broadcast::Receiver<Arc<Tapped>>, Gone> {
        self.ask(|reply| Order::Signals { reply }).await
    }

    /// All of it: many megabytes where there are thousands of cards.
    pub async fn board(&self) -> Result<Board, Gone> {
        let mut board = self.board_of(Some).await?;
        board.cards.sort_by_key(|card| card.agent_state.place());
        Ok(board)
    }

    /// The board with only that of each card which is kept; the cards go one after the other, in no
    /// order that means anything.
    pub async fn board_of<T: Send + 'static>(
        &self,
        keep: impl FnMut(Card) -> Option<T> + Send + 'static,
    ) -> Result<Board<T>, Gone> {
        let gather = |reply| {
            Gather(Box::new(move |cards, Beside { today, unreadable }, change, changes| {
                let cards = cards.filter_map(keep).collect();
                answer(reply, Board { cards, today, unreadable, change, changes });
            }))
        };
        self.ask(|reply| Order::Board { gather: gather(reply) }).await
    }

    /// The card of the session that the operator's word means.
    pub async fn card(&self, word: &str) -> Result<Result<Option<Box<Card>>, NotFound>, Gone> {
        self.ask(|reply| Order::Card { word: word.to_owned(), reply }).await
    }

    /// The card of the conversation that is led about a folder.
    pub async fn chat(&self, folder: &str) -> Result<Option<Box<Card>>, Gone> {
        self.ask(|reply| Order::Chat { folder: folder.to_owned(), reply }).await
    }

    /// Sessions of the past, the latest first.
    pub async fn past(&self, wanted: Past) -> Result<Vec<Card>, Gone> {
        self.ask(|reply| Order::Past { wanted, reply }).await
    }

    /// The cards of these, where they are known.
    pub async fn cards_of(&self, keys: Vec<SessionKey>) -> Result<Vec<Option<Card>>, Gone> {
        self.ask(|reply| Order::CardsOf { keys, reply }).await
    }

    /// The same session with what it did over time. The journal is read beside the loop.
    pub async fn detail(&self, word: &str) -> Result<Result<Option<Box<Detail>>, NoDetail>, Gone> {
        let reader = self.reader().await;
        self.ask(|reply| Order::Detail { word: word.to_owned(), reader, reply }).await
    }

    /// A part of what was said in the session that the operator's word means.
    pub async fn transcript(
        &self,
        word: &str,
        part: Part,
        limit: usize,
    ) -> Result<Result<Page, Unread>, Gone> {
        let card = match self.card(word).await? {
            Ok(Some(card)) => card,
            Ok(None) => return Ok(Err(Unread::NoTranscript)),
            Err(why) => return Ok(Err(Unread::Session(why))),
        };
        let reader = self.reader().await;
        let databases = self.databases.clone();
        let folders = self.transcripts.of(card.harness);
        let reading = tokio::task::spawn_blocking(move || {
            let whose = Whose {
                harness: card.harness,
                session: &card.vendor_id,
                path: card.transcript.as_deref(),
                databases: &databases,
                folders: &folders,
            };
            let page = transcript::read(&whose, &part, limit);
            drop(reader);
            page
        });
        reading.await.map_err(|_| Gone)
    }

    async fn reader(&self) -> OwnedSemaphorePermit {
        self.readers.clone().acquire_owned().await.expect("it is never closed")
    }

    pub async fn dismiss(&self, word: &str) -> Result<Result<(), NotFound>, Gone> {
        self.ask(|reply| Order::Dismiss { word: word.to_owned(), reply }).await
    }

    /// Puts sessions into History, or back on the board, and waits until that is on record. The
    /// answer names those that were moved.
    pub async fn archive(
        &self,
        wanted: Archiving,
    ) -> Result<Result<Vec<SessionId>, NotFound>, Gone> {
        self.ask(|reply| Order::Archive { wanted, reply }).await
    }

    /// Answers a request, and waits until the agent's side has the answer, or has not.
    pub async fn decide(&self, answering: Answering) -> Result<Result<Taken, Declined>, Gone> {
        self.ask(|reply| Order::Answer { answering: Box::new(answering), reply }).await
    }

    /// Wants something of a session, and waits until it is done, or cannot be.
    pub async fn command(&self, commanding: Commanding) -> Result<Result<Taken, Declined>, Gone> {
        self.ask(|reply| Order::Command { commanding: Box::new(commanding), reply }).await
    }

    /// Begins a session of our own, and waits until it is on record. It goes on by commands.
    pub async fn spawn_session(
        &self,
        wanted: SpawnWanted,
    ) -> Result<Result<SessionId, Unspawned>, Gone> {
        let workspace = PathBuf::from(&*wanted.brief.workspace);
        // A folder on a network may take its time.
        let looked =
            tokio::task::spawn_blocking(move || workspace.is_absolute() && workspace.is_dir());
        if !looked.await.unwrap_or(false) {
            return Ok(Err(Unspawned::NoWorkspace));
        }
        self.ask(|reply| Order::Spawn { wanted: Box::new(wanted), reply }).await
    }

    /// Which harnesses a session can be begun with.
    pub async fn offers(&self) -> Result<Vec<HarnessOffer>, Gone> {
        self.ask(|reply| Order::Offers { reply }).await
    }

    /// How many look at the board.
    pub fn presence(&self) -> &Presence {
        &self.presence
    }

    /// Says what the operator looks at now.
    pub fn set_viewing(&self, viewing: Viewing) {
        self.viewing.send_if_modified(|known| {
            let is_new = *known != viewing;
            *known = viewing;
            is_new
        });
    }

    pub(super) fn transcripts(&self) -> &TranscriptFolders {
        &self.transcripts
    }

    pub(super) fn viewing(&self) -> watch::Receiver<Viewing> {
        self.viewing.subscribe()
    }

    pub async fn health(&self) -> Result<Health, Gone> {
        self.ask(|reply| Order::Health { reply }).await
    }

    /// What driven sessions did since the start, counted.
    pub async fn meter(&self) -> Result<Meter, Gone> {
        self.ask(|reply| Order::Meter { reply }).await
    }

    async fn ask<T>(&self, order: impl FnOnce(oneshot::Sender<T>) -> Order) -> Result<T, Gone> {
        let (reply, answer) = oneshot::channel();
        self.orders.send(order(reply)).await.map_err(|_| Gone)?;
        answer.await.map_err(|_| Gone)
    }
}

/// Whoever asked may have gone meanwhile.
pub(super) fn answer<T>(reply: oneshot::Sender<T>, answer: T) {
    let _ = reply.send(answer);
}
