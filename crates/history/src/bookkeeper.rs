//! The daemon's own history: a thread that knows what everything has cost, and tells what changes.
//!
//! It reads all files once; after that it is given the lines that the daemon reads anyway. When it
//! cannot keep up, or somebody edits a file, it reads what it missed. Every queue here is bounded:
//! what does not fit is not lost, it is in the files.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use qd_broker::session_key::SessionKey;
use qd_harness::Harness;
use qd_harness::usage::{Day, PriceTable, Sum};
use qd_session::moment::Timestamp;
use qd_sources::places::Place;
use qd_sources::tail::Position;
use tokio::sync::{mpsc, oneshot};
use tracing::warn;

use super::finding::Trouble;
use super::history::History;
use super::live::Change;
use super::report::{By, Query, Report};
use super::scanning::Progress;

/// Lines and questions that wait for the bookkeeper. It takes some hundred thousand lines a
/// second; while it reads gigabytes at the start, what does not fit is read from the files.
const BOOK_ORDERS_MAX: usize = 4_096;

/// Bytes of lines among them.
const BOOK_LINE_BYTES_MAX: usize = 16 << 20;

/// What the bookkeeper has told and the loop has not heard.
const BOOK_NEWS_MAX: usize = 64;

/// Session files are looked through again at most this often: thousands of them take milliseconds.
const BOOK_READ_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// Lines that are not in the index yet are read again after a crash.
const BOOK_SAVED_AFTER: Duration = Duration::from_secs(30);

/// The day's sum goes over every response there is, so it is not made for each.
const BOOK_TODAY_AFTER: Duration = Duration::from_secs(2);

/// What the thread needs to know.
pub struct Books {
    pub places: Vec<Place>,
    /// Where it is kept how far files were read.
    pub index: PathBuf,
    pub prices: PriceTable,
    /// How many seconds the operator's clock is ahead of UTC at a moment.
    pub offset: Box<dyn FnMut(Timestamp) -> i32 + Send>,
}

impl std::fmt::Debug for Books {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Books").field("index", &self.index).finish_non_exhaustive()
    }
}

/// A way to the thread. It ends when the last one is dropped.
#[derive(Debug, Clone)]
pub struct Bookkeeper {
    orders: SyncSender<Order>,
    waiting: Arc<Waiting>,
}

/// What is on its way to the thread.
#[derive(Debug, Default)]
struct Waiting {
    line_bytes: AtomicUsize,
    /// Something did not fit, or a database changed: look into the files.
    behind: AtomicBool,
}

/// What has changed.
#[derive(Debug, Clone, PartialEq)]
pub enum BookNews {
    /// What these sessions have cost so far.
    Spent(Vec<(SessionKey, Sum)>),
    /// What all of them have cost on the operator's day.
    Today(Sum),
}

/// Somebody's question. Days are spelled as an operator says them.
#[derive(Debug, Clone)]
pub struct Question {
    pub since: Option<String>,
    pub until: Option<String>,
    pub by: By,
}

#[derive(Debug, Clone)]
pub struct Answer {
    pub report: Report,
    /// The day of the prices.
    pub prices_of: String,
    pub troubles: Vec<Trouble>,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoAnswer {
    #[error("`{0}` is no day: write 2026-11-16, 20261116, today, yesterday or 7d")]
    NoDay(String),
    #[error("the files are still being read")]
    Busy,
}

#[derive(Debug)]
enum Order {
    Line {
        harness: Harness,
        path: Arc<Path>,
        line: Vec<u8>,
        end: Position,
    },
    Question {
        question: Question,
        reply: oneshot::Sender<Result<Answer, NoAnswer>>,
    },
    /// There is something in `Waiting`.
    Look,
}

impl Bookkeeper {
    pub fn start(books: Books) -> std::io::Result<(Self, mpsc::Receiver<BookNews>)> {
        let (orders, taken) = sync_channel(BOOK_ORDERS_MAX);
        let (news, heard) = mpsc::channel(BOOK_NEWS_MAX);
        let waiting = Arc::new(Waiting::default());
        let desk = Desk { waiting: waiting.clone(), news, dues: Dues::default() };
        std::thread::Builder::new()
            .name("qd-usage".to_owned())
            .spawn(move || desk.work(&taken, books))?;
        Ok((Self { orders, waiting }, heard))
    }

    /// A line that was read from a session file.
    pub fn line(&self, harness: Harness, path: &Arc<Path>, line: &[u8], end: Position) {
        let bytes = self.waiting.line_bytes.fetch_add(line.len(), Ordering::Relaxed) + line.len();
        let order = Order::Line { harness, path: path.clone(), line: line.to_vec(), end };
        if bytes > BOOK_LINE_BYTES_MAX || self.orders.try_send(order).is_err() {
            self.waiting.line_bytes.fetch_sub(line.len(), Ordering::Relaxed);
            self.look();
        }
    }

    /// Something was written that no line tells of.
    pub fn look(&self) {
        if !self.waiting.behind.swap(true, Ordering::Relaxed) {
            // A thread that is busy looks when it is done.
            let _ = self.orders.try_send(Order::Look);
        }
    }

    pub async fn ask(&self, question: Question) -> Result<Answer, NoAnswer> {
        let (reply, answer) = oneshot::channel();
        let sent = self.orders.try_send(Order::Question { question, reply });
        sent.map_err(|_| NoAnswer::Busy)?;
        answer.await.unwrap_or(Err(NoAnswer::Busy))
    }
}

/// The thread's own things.
struct Desk {
    waiting: Arc<Waiting>,
    news: mpsc::Sender<BookNews>,
    dues: Dues,
}

/// When something is to be done that can wait a little.
#[derive(Debug, Default)]
struct Dues {
    read: Option<Instant>,
    save: Option<Instant>,
    today: Option<Instant>,
}

/// There is nobody left to tell.
struct Done;

impl Desk {
    fn work(mut self, orders: &Receiver<Order>, mut books: Books) {
        let places = std::mem::take(&mut books.places);
        let mut history = History::open(places, Some(&books.index));
        if self.read(&mut history, &mut books).is_err() {
            return;
        }
        while self.next(orders, &mut history, &mut books).is_ok() {}
        history.save();
    }

    /// Waits for something to do and does it.
    fn next(
        &mut self,
        orders: &Receiver<Order>,
        history: &mut History,
        books: &mut Books,
    ) -> Result<(), Done> {
        let now = Instant::now();
        let mut order = match self.dues.next() {
            Some(due) => match orders.recv_timeout(due.saturating_duration_since(now)) {
                Ok(order) => Some(order),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return Err(Done),
            },
            None => Some(orders.recv().map_err(|_| Done)?),
        };
        let mut changed = Vec::new();
        while let Some(one) = order {
            match one {
                Order::Line { harness, path, line, end } => {
                    self.waiting.line_bytes.fetch_sub(line.len(), Ordering::Relaxed);
                    match history.take_line(harness, &path, &line, end) {
                        Change::Nothing => {}
                        Change::Sessions(sessions) => changed.extend(sessions),
                        Change::Behind => self.waiting.behind.store(true, Ordering::Relaxed),
                    }
                    self.dues.save.get_or_insert(now + BOOK_SAVED_AFTER);
                }
                Order::Question { question, reply } => {
                    // Whoever asked may have gone meanwhile.
                    let _ = reply.send(answer(history, books, &question));
                }
                Order::Look => {}
            }
            order = match orders.try_recv() {
                Ok(order) => Some(order),
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Disconnected) => return Err(Done),
            };
        }
        if self.waiting.behind.load(Ordering::Relaxed) {
            self.dues.read.get_or_insert(now + BOOK_READ_AGAIN_AFTER);
        }
        self.tell_changed(history, books, changed)?;
        self.due(history, books)
    }

    fn due(&mut self, history: &mut History, books: &mut Books) -> Result<(), Done> {
        let now = Instant::now();
        let is_due = |due: Option<Instant>| due.is_some_and(|due| due <= now);
        if is_due(self.dues.read) {
            self.dues.read = None;
            self.read(history, books)?;
        }
        if is_due(self.dues.save) {
            self.dues.save = None;
            history.save();
        }
        if is_due(self.dues.today) {
            self.tell_today(history, books)?;
        }
        Ok(())
    }

    /// Reads what is new in all files, and tells of all.
    fn read(&mut self, history: &mut History, books: &mut Books) -> Result<(), Done> {
        self.waiting.behind.store(false, Ordering::Relaxed);
        let before = history.troubles().len();
        history.refresh(&Progress::default());
        for trouble in history.troubles().iter().skip(before) {
            warn!(path = %trouble.path.display(), what = %trouble.what, "usage");
        }
        let query = Query { since: None, until: None, by: By::Session };
        let report = history.report(query, &books.prices, |_| 0);
        let spent = report.rows.into_iter().filter_map(|row| {
            let harness = row.session?.harness;
            Some((SessionKey { harness, session: row.name?.into() }, row.sum))
        });
        self.tell(BookNews::Spent(spent.collect()))?;
        self.tell_today(history, books)
    }

    fn tell_changed(
        &mut self,
        history: &mut History,
        books: &Books,
        mut changed: Vec<SessionKey>,
    ) -> Result<(), Done> {
        changed.sort_unstable();
        changed.dedup();
        let spent: Vec<(SessionKey, Sum)> = changed
            .into_iter()
            .filter_map(|key| history.session(&key, &books.prices).map(|row| (key, row.sum)))
            .collect();
        if spent.is_empty() {
            return Ok(());
        }
        self.dues.today = Some(match self.dues.today {
            Some(due) => due.min(Instant::now() + BOOK_TODAY_AFTER),
            None => Instant::now() + BOOK_TODAY_AFTER,
        });
        self.tell(BookNews::Spent(spent))
    }

    /// And again when another day begins.
    fn tell_today(&mut self, history: &History, books: &mut Books) -> Result<(), Done> {
        let now = timestamp();
        let today = Day::of(now, (books.offset)(now));
        let query = Query { since: Some(today), until: Some(today), by: By::Day };
        let report = history.report(query, &books.prices, &mut books.offset);
        let left = until_tomorrow(now, (books.offset)(now));
        self.dues.today = Some(Instant::now() + left);
        self.tell(BookNews::Today(report.totals))
    }

    fn tell(&self, news: BookNews) -> Result<(), Done> {
        self.news.blocking_send(news).map_err(|_| Done)
    }
}

impl Dues {
    fn next(&self) -> Option<Instant> {
        [self.read, self.save, self.today].into_iter().flatten().min()
    }
}

fn answer(history: &History, books: &mut Books, question: &Question) -> Result<Answer, NoAnswer> {
    let now = timestamp();
    let today = Day::of(now, (books.offset)(now));
    let day = |text: &Option<String>| match text {
        Some(text) => match Day::asked(text, today) {
            Some(day) => Ok(Some(day)),
            None => Err(NoAnswer::NoDay(text.clone())),
        },
        None => Ok(None),
    };
    let query =
        Query { since: day(&question.since)?, until: day(&question.until)?, by: question.by };
    let report = history.report(query, &books.prices, &mut books.offset);
    let troubles = history.troubles().to_vec();
    Ok(Answer { report, prices_of: books.prices.date.clone(), troubles })
}

fn timestamp() -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}

/// A little more, so that the next day has begun by then.
fn until_tomorrow(now: Timestamp, offset_s: i32) -> Duration {
    const DAY_S: i64 = 24 * 60 * 60;
    let local_s = i64::try_from(now.0 / 1_000).unwrap_or(0) + i64::from(offset_s);
    let left = DAY_S - local_s.rem_euclid(DAY_S);
    Duration::from_secs(left.unsigned_abs() + 1)
}
