//! The board as text: every card spelled once, however many read it.
//!
//! One task listens to the loop and keeps the cards and the newest frames of the stream. A reader
//! holds a number and nothing else: where it was is in its number, and what it missed is in the
//! ring or in a new snapshot. Invariant: all that is here is in the journal.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::Bytes;
use qd_broker::news::BoardNews;
use qd_broker::{Card, UnreadableAgent};
use qd_daemon::runtime::{Board as Current, Gone, Handle};
use qd_harness::usage::Sum;
use qd_session::id::SessionId;
use serde::Serialize;
use tokio::sync::broadcast::error::TryRecvError;
use tokio::sync::{broadcast, watch};

use crate::error::Refusal;
use crate::limits::{PLAIN_CARDS_MAX, RING_BYTES_MAX, RING_FRAMES_MAX, STREAM_PIECE_BYTES_MAX};
use crate::spelled::{self, Spelled};
use crate::wire::{Removed, Summary};

#[derive(Debug, Clone)]
pub struct Feed {
    board: Arc<Mutex<Board>>,
    progress: watch::Receiver<Progress>,
}

/// How far the board is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// The loop has not answered yet.
    Starting,
    /// The number of the newest frame, and the loop's number for the newest change.
    At {
        frame: u64,
        change: u64,
    },
    Stopped,
}

#[derive(Debug)]
struct Board {
    /// Tells this run of the daemon from others: frame numbers begin again with each.
    run: u64,
    cards: BTreeMap<SessionId, Spelled>,
    /// Cards that are not packed yet, the oldest first; one that changed again comes again.
    plain: VecDeque<SessionId>,
    summary: Summary,
    today: Option<Sum>,
    unreadable: Arc<[UnreadableAgent]>,
    ring: VecDeque<Frame>,
    ring_bytes: usize,
    frame: u64,
    /// Of the present frame, while somebody reads it: all readers share it.
    snapshot: Weak<SnapshotText>,
}

#[derive(Debug)]
struct SnapshotText {
    event: Bytes,
    /// Where in it the list stands.
    list: Range<usize>,
}

#[derive(Debug)]
struct Snapshot {
    event: Bytes,
    /// A part of the event.
    list: Bytes,
}

/// Keeps the text for as long as anybody has a part of it.
struct Reading(Arc<SnapshotText>);

impl AsRef<[u8]> for Reading {
    fn as_ref(&self) -> &[u8] {
        &self.0.event
    }
}

/// One event of the stream, as it is sent.
#[derive(Debug, Clone)]
struct Frame {
    number: u64,
    about: About,
    text: Bytes,
}

/// A newer frame about the same makes an older one needless.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum About {
    Session(SessionId),
    Summary,
    /// What is told once: no other frame makes it needless.
    Event(u64),
}

/// What a reader is to be sent next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// Frames in one piece, and the number of the last.
    Frames(Bytes, u64),
    Nothing,
    /// What comes next is not in the ring any more.
    Lost,
}

impl Feed {
    pub fn start(handle: Handle) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let run = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let board = Arc::new(Mutex::new(Board::new(run)));
        let (progress, seen) = watch::channel(Progress::Starting);
        tokio::spawn(follow(handle, board.clone(), progress));
        Self { board, progress: seen }
    }

    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.clone()
    }

    /// Waits until the board has the loop's change of this number.
    pub async fn reach(&self, change: u64) -> Result<(), Refusal> {
        let there = |progress: &Progress| match progress {
            Progress::Starting => false,
            Progress::At { change: known, .. } => *known >= change,
            Progress::Stopped => true,
        };
        let reached = self.progress.clone().wait_for(there).await.map(|progress| *progress);
        match reached {
            Ok(Progress::At { .. }) => Ok(()),
            Ok(Progress::Starting | Progress::Stopped) | Err(_) => Err(Refusal::Stopping),
        }
    }

    /// All cards as a `SessionList`, and the number of the newest frame in it.
    pub fn list(&self) -> (Bytes, u64) {
        let mut board = self.board();
        (board.snapshot().list, board.frame)
    }

    /// The stream's first event.
    pub fn snapshot(&self) -> (Bytes, u64) {
        let mut board = self.board();
        (board.snapshot().event, board.frame)
    }

    pub fn summary(&self) -> Summary {
        self.board().summary.clone()
    }

    /// What a reader who has all up to `number` has not got, as much as one piece holds. Of several
    /// frames about one card only the newest is left.
    pub fn after(&self, number: u64) -> Next {
        self.board().after(number)
    }

    /// The number in a `Last-Event-ID`, if it is of this run.
    pub fn number_of(&self, event_id: &str) -> Option<u64> {
        let (run, number) = event_id.split_once('-')?;
        let (run, number) = (u64::from_str_radix(run, 16).ok()?, number.parse().ok()?);
        let board = self.board();
        (run == board.run && number <= board.frame).then_some(number)
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn follow(handle: Handle, board: Arc<Mutex<Board>>, progress: watch::Sender<Progress>) {
    let board = || board.lock().unwrap_or_else(PoisonError::into_inner);
    while let Ok(Current { cards, today, unreadable, mut change, mut changes }) =
        all_packed(&handle).await
    {
        let frame = {
            let mut board = board();
            (board.today, board.unreadable) = (today, unreadable);
            board.begin(cards);
            board.frame
        };
        progress.send_replace(Progress::At { frame, change });
        loop {
            // Some were missed, or the loop has ended; the next question tells which.
            let Ok(first) = changes.recv().await else { break };
            let (more, missed) = ready(&mut changes);
            let frame = {
                let mut board = board();
                for news in std::iter::once(first).chain(more) {
                    change = news.id;
                    board.take(&news.news);
                }
                board.frame
            };
            progress.send_replace(Progress::At { frame, change });
            if missed == Missed::Some {
                break;
            }
        }
    }
    progress.send_replace(Progress::Stopped);
}

/// Every card, each packed before the next one is made.
async fn all_packed(handle: &Handle) -> Result<Current<(SessionId, Spelled)>, Gone> {
    let mut press = spelled::press();
    let packed = move |card: Card| {
        let mut spelled = Spelled::new(&card, json(&card));
        spelled.pack(&mut press);
        Some((card.session_id, spelled))
    };
    handle.board_of(packed).await
}

/// Changes for which readers wait together at most.
const TAKEN_AT_ONCE: usize = 256;

#[derive(Debug, PartialEq, Eq)]
enum Missed {
    None,
    Some,
}

/// What can be had without waiting. A channel that overflowed says so once and then goes on behind
/// the gap, so that it must not be overheard.
fn ready<T: Clone>(changes: &mut broadcast::Receiver<T>) -> (Vec<T>, Missed) {
    let mut taken = Vec::new();
    while taken.len() < TAKEN_AT_ONCE {
        match changes.try_recv() {
            Ok(change) => taken.push(change),
            Err(TryRecvError::Empty) => break,
            Err(TryRecvError::Lagged(_) | TryRecvError::Closed) => return (taken, Missed::Some),
        }
    }
    (taken, Missed::None)
}

impl Board {
    fn new(run: u64) -> Self {
        Self {
            run,
            cards: BTreeMap::new(),
            plain: VecDeque::new(),
            summary: Summary::default(),
            today: None,
            unreadable: Arc::default(),
            ring: VecDeque::new(),
            ring_bytes: 0,
            frame: 0,
            snapshot: Weak::new(),
        }
    }

    /// All anew: nobody can go on from before.
    fn begin(&mut self, cards: Vec<(SessionId, Spelled)>) {
        self.frame += 1;
        self.snapshot = Weak::new();
        self.ring.clear();
        self.ring_bytes = 0;
        self.plain.clear();
        self.cards = cards.into_iter().collect();
        self.summary = self.counted();
    }

    fn take(&mut self, news: &BoardNews) {
        match news {
            BoardNews::Shown(card) => {
                let (session, json) = (&card.session_id, json(card));
                self.push("session_changed", About::Session(session.clone()), &json);
                self.cards.insert(session.clone(), Spelled::new(card, json));
                self.plain.push_back(session.clone());
                self.pack_older();
            }
            BoardNews::Removed(session) => {
                let removed = json(&Removed { session_id: session.clone() });
                self.push("session_removed", About::Session(session.clone()), &removed);
                self.cards.remove(session);
            }
            BoardNews::Today(sum) => self.today = Some(*sum),
            BoardNews::Unreadable(agents) => self.unreadable = agents.clone(),
            BoardNews::Changed(shown) => self.push_each("agent:state_event", &json(shown)),
            BoardNews::Streamed(event) => self.push_each("agent:stream_event", &json(event)),
        }
        let summary = self.counted();
        if summary != self.summary {
            self.push("summary", About::Summary, &json(&summary));
            self.summary = summary;
        }
    }

    /// Packs what has not changed since so many others did.
    fn pack_older(&mut self) {
        if self.plain.len() <= 2 * PLAIN_CARDS_MAX {
            return;
        }
        let older: Vec<_> = self.plain.drain(..PLAIN_CARDS_MAX).collect();
        let newer: BTreeSet<&SessionId> = self.plain.iter().collect();
        let mut press = spelled::press();
        for session in older.iter().filter(|session| !newer.contains(session)) {
            if let Some(card) = self.cards.get_mut(session) {
                card.pack(&mut press);
            }
        }
    }

    fn push_each(&mut self, name: &str, data: &Bytes) {
        self.push(name, About::Event(self.frame + 1), data);
    }

    fn counted(&self) -> Summary {
        let groups = self.cards.values().map(|card| card.group);
        Summary { unreadable: self.unreadable.to_vec(), ..Summary::of(groups, self.today) }
    }

    fn push(&mut self, name: &str, about: About, data: &Bytes) {
        self.frame += 1;
        self.snapshot = Weak::new();
        let text = self.spell(name, self.frame, data);
        self.ring_bytes += text.len();
        self.ring.push_back(Frame { number: self.frame, about, text });
        while self.ring.len() > RING_FRAMES_MAX || self.ring_bytes > RING_BYTES_MAX {
            let Some(oldest) = self.ring.pop_front() else { break };
            self.ring_bytes -= oldest.text.len();
        }
    }

    fn snapshot(&mut self) -> Snapshot {
        let text = self.snapshot.upgrade().unwrap_or_else(|| {
            let text = Arc::new(self.spell_snapshot());
            self.snapshot = Arc::downgrade(&text);
            text
        });
        let list = text.list.clone();
        let event = Bytes::from_owner(Reading(text));
        Snapshot { list: event.slice(list), event }
    }

    fn head(&self, name: &str, number: u64) -> String {
        format!("event: {name}\nid: {:x}-{number}\ndata: ", self.run)
    }

    /// JSON has no line breaks outside of strings, and none inside.
    fn spell(&self, name: &str, number: u64, data: &Bytes) -> Bytes {
        let head = self.head(name, number).into_bytes();
        // As long as it is: thousands are kept, and what grows by itself has twice the room it needs.
        let mut text = Vec::with_capacity(head.len() + data.len() + 2);
        text.extend_from_slice(&head);
        text.extend_from_slice(data);
        text.extend_from_slice(EVENT_END);
        text.into()
    }

    /// In one piece: a board of thousands of cards is many megabytes.
    fn spell_snapshot(&self) -> SnapshotText {
        let mut cards: Vec<&Spelled> = self.cards.values().collect();
        cards.sort_by_key(|card| card.place);
        let len: usize = cards.iter().map(|card| card.len() + 1).sum();
        let mut text = Vec::with_capacity(len + 512);
        text.extend_from_slice(self.head("snapshot", self.frame).as_bytes());
        let begin = text.len();
        text.extend_from_slice(b"{\"sessions\":[");
        for (nth, card) in cards.iter().enumerate() {
            if nth > 0 {
                text.push(b',');
            }
            text.extend_from_slice(&card.json());
        }
        text.extend_from_slice(b"],\"summary\":");
        text.extend_from_slice(&json(&self.summary));
        text.push(b'}');
        let list = begin..text.len();
        text.extend_from_slice(EVENT_END);
        SnapshotText { event: text.into(), list }
    }

    fn after(&self, number: u64) -> Next {
        if number >= self.frame {
            return Next::Nothing;
        }
        // Frames are numbered without gaps, so the place follows from the number.
        let first = match self.ring.front() {
            Some(frame) if frame.number <= number + 1 => frame.number,
            Some(_) | None => return Next::Lost,
        };
        let Ok(skip) = usize::try_from(number + 1 - first) else { return Next::Lost };
        let mut bytes = 0;
        let fits = |frame: &&Frame| {
            bytes += frame.text.len();
            bytes <= STREAM_PIECE_BYTES_MAX
        };
        // One that is longer than a piece is shared with all other readers.
        let count = self.ring.range(skip..).take_while(fits).count().max(1);
        let last = self.ring[skip + count - 1].number;
        if count == 1 {
            return Next::Frames(self.ring[skip].text.clone(), last);
        }
        let mut told = BTreeSet::new();
        let piece = self.ring.range(skip..skip + count).rev();
        let mut newest: Vec<&Frame> = piece.filter(|frame| told.insert(&frame.about)).collect();
        newest.reverse();
        let len = newest.iter().map(|frame| frame.text.len()).sum();
        let mut text = Vec::with_capacity(len);
        newest.iter().for_each(|frame| text.extend_from_slice(&frame.text));
        Next::Frames(text.into(), last)
    }
}

/// An empty line ends an event.
const EVENT_END: &[u8] = b"\n\n";

fn json(value: &impl Serialize) -> Bytes {
    serde_json::to_vec(value).expect("our own types are JSON").into_boxed_slice().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(name: &str) -> SessionId {
        SessionId::new(name)
    }

    fn board(changes: &[&str]) -> Board {
        let mut board = Board::new(0xabc);
        board.begin(Vec::new());
        for name in changes {
            board.push("session_changed", About::Session(session(name)), &json(name));
        }
        board
    }

    fn text(next: &Next) -> String {
        let Next::Frames(text, _) = next else { panic!("{next:?}") };
        String::from_utf8(text.to_vec()).expect("text")
    }

    #[test]
    fn an_overflow_is_not_overheard() {
        let (tell, mut changes) = broadcast::channel(2);
        tell.send(1).expect("heard");
        assert_eq!(ready(&mut changes), (vec![1], Missed::None));
        for change in 2..=5 {
            tell.send(change).expect("heard");
        }
        assert_eq!(ready(&mut changes), (vec![], Missed::Some));
    }

    #[test]
    fn a_reader_gets_what_it_has_not_got_in_order() {
        let board = board(&["a", "b", "c"]);
        assert_eq!(board.frame, 4);
        assert_eq!(board.after(4), Next::Nothing);
        assert_eq!(text(&board.after(3)), "event: session_changed\nid: abc-4\ndata: \"c\"\n\n");
        assert_eq!(
            text(&board.after(2)),
            "event: session_changed\nid: abc-3\ndata: \"b\"\n\n\
             event: session_changed\nid: abc-4\ndata: \"c\"\n\n"
        );
    }

    #[test]
    fn of_a_card_that_changed_often_only_the_newest_is_sent() {
        let told = text(&board(&["a", "b", "a", "a"]).after(1));
        assert!(told.contains("abc-3") && told.contains("abc-5"), "{told}");
        assert_eq!(told.matches("data").count(), 2);
    }

    #[test]
    fn readers_share_a_snapshot_until_the_board_changes() {
        let mut board = board(&["a"]);
        let (one, other) = (board.snapshot(), board.snapshot());
        assert_eq!(one.event.as_ptr(), other.event.as_ptr());
        assert!(one.event.as_ptr_range().contains(&one.list.as_ptr()));
        let list: serde_json::Value = serde_json::from_slice(&one.list).expect("JSON");
        assert!(list["sessions"].is_array() && list["summary"].is_object(), "{list}");
        board.push_each("agent:state_event", &json(&1));
        assert!(String::from_utf8_lossy(&board.snapshot().event).contains("id: abc-3"));
    }

    #[test]
    fn a_reader_that_is_far_behind_gets_it_in_pieces() {
        let mut board = board(&[]);
        let long = json(&"x".repeat(STREAM_PIECE_BYTES_MAX / 3));
        (0..9).for_each(|_| board.push_each("agent:state_event", &long));
        let (mut number, mut told) = (1, 0);
        while let Next::Frames(text, last) = board.after(number) {
            assert!(text.len() <= STREAM_PIECE_BYTES_MAX);
            told += String::from_utf8_lossy(&text).matches("agent:state_event").count();
            number = last;
        }
        assert_eq!((number, told), (10, 9));
        board.push_each("agent:state_event", &json(&"x".repeat(2 * STREAM_PIECE_BYTES_MAX)));
        assert!(matches!(board.after(10), Next::Frames(_, 11)));
    }

    #[test]
    fn steps_of_a_driven_session_are_all_sent() {
        let mut board = board(&["a"]);
        for nth in 0..3 {
            board.push_each("agent:state_event", &json(&nth));
        }
        let told = text(&board.after(1));
        assert_eq!(told.matches("agent:state_event").count(), 3, "{told}");
    }

    #[test]
    fn who_is_behind_the_ring_is_lost() {
        let many = vec!["a"; RING_FRAMES_MAX + 5];
        let board = board(&many);
        assert_eq!(board.ring.len(), RING_FRAMES_MAX);
        assert_eq!(board.after(1), Next::Lost);
        assert_eq!(board.after(5), Next::Lost);
        assert!(matches!(board.after(6), Next::Frames(..)));
    }

    #[test]
    fn a_new_beginning_leaves_nobody_where_he_was() {
        let mut board = board(&["a"]);
        board.begin(Vec::new());
        assert_eq!(board.after(2), Next::Lost);
        assert_eq!(board.after(3), Next::Nothing);
    }

    #[test]
    fn the_ring_is_bounded_in_bytes_too() {
        let mut board = board(&[]);
        let long = json(&"x".repeat(1 << 20));
        for _ in 0..40 {
            board.push("session_changed", About::Session(session("a")), &long);
        }
        assert!(board.ring_bytes <= RING_BYTES_MAX && board.ring.len() > 5);
    }
}
