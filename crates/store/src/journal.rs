//! The journal: opened by one process, appended to by anybody in it, folded when asked.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use qd_session::Session;
use qd_session::event::Entry;
use qd_session::id::SessionId;
use qd_session::snapshot::Snapshot;
use rusqlite::Connection;

use crate::batch::{Alias, Batch, Delivery, Encoded, MetaChange, spelled_snapshot};
use crate::decision_log::{self, Ends, RecordLine};
use crate::file::{self, DamagedFile};
use crate::fold::DamagedRecord;
use crate::head::{Durability, Gap, Head};
use crate::job::{Job, Kept, Written};
use crate::lock::Lock;
use crate::memory::Memory;
use crate::place;
use crate::queue::{NotTaken, Queue};
use crate::read::{Loaded, Numbered, Reader, Remembered, SetAsideRecord};
use crate::receipt::{Receipt, pair};
use crate::schema;
use crate::writer::{Health, Writer};
use crate::{Error, Result, Settings};

/// A handle; clones share one journal. The last one to go writes what is queued and closes it.
#[derive(Debug, Clone)]
pub struct Journal {
    shared: Arc<Shared>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// There was none.
    pub created: bool,
    /// It had this older schema.
    pub migrated_from: Option<u32>,
    /// It was beyond reading: it lies there now, and a new one was begun.
    pub set_aside: Option<DamagedFile>,
    /// It is not all that was written; told in [`Gap::all`] from now on.
    pub gap: Option<Gap>,
    pub last_seq: u64,
    pub entries: usize,
    pub sessions: usize,
}

#[derive(Debug)]
struct Shared {
    queue: Arc<Queue>,
    health: Arc<Mutex<Health>>,
    writer: Option<JoinHandle<()>>,
    /// There until the end. It closes before the writer's connection does: the last one to close
    /// moves the log into the file, which a reader could not.
    reader: Option<Arc<Reader>>,
    // Last, so that it is held until both connections are closed.
    _lock: Lock,
}

impl Journal {
    /// Opens the journal, makes it if there is none, brings an older one up to date and reads
    /// every page of it once. A damaged one is set aside, never deleted.
    ///
    /// Refused while another process has it, when its schema is newer, and when it is not ours.
    pub fn open(path: impl Into<PathBuf>, settings: Settings) -> Result<(Self, Opened)> {
        let path = path.into();
        file::make_folder(&path)?;
        let lock = Lock::take(&path)?;
        place::take_place(&path)?;
        let (connection, memory, mut opened) = match connect(&path, &settings) {
            Err(Error::Damaged(reason)) => {
                let aside = file::set_aside(&path)?;
                let (connection, memory, mut opened) = connect(&path, &settings)?;
                opened.set_aside = Some(DamagedFile { path: aside, reason });
                (connection, memory, opened)
            }
            outcome => outcome?,
        };
        opened.gap = find_gap(&path, &connection, &memory, opened.set_aside.as_ref());
        let queue = Arc::new(Queue::default());
        let health = Arc::new(Mutex::new(Health::default()));
        let reader = Arc::new(Reader::new(schema::connect_reader(&path)?));
        let shares = (Arc::clone(&queue), Arc::clone(&health), Arc::clone(&reader));
        let writer = Writer::new(&path, connection, memory, settings, shares);
        let thread = std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || writer.run())
            .map_err(Error::io("cannot start the writer of", &path))?;
        let shared =
            Shared { queue, health, writer: Some(thread), reader: Some(reader), _lock: lock };
        Ok((Self { shared: Arc::new(shared) }, opened))
    }

    /// Appends, in this order, whole or not at all.
    pub fn append(&self, entries: Vec<Entry>) -> Receipt<Written> {
        self.write(&entries.into())
    }

    /// Appends what was made of a delivery. One that was taken before is acknowledged and not
    /// written again.
    pub fn append_once(&self, delivery: Delivery, entries: Vec<Entry>) -> Receipt<Written> {
        self.write(&Batch { entries, deliveries: vec![delivery], ..Batch::default() })
    }

    /// Writes a batch. Blocks while the queue is full, up to [`crate::limits::QUEUE_WAIT_MAX`].
    pub fn write(&self, batch: &Batch) -> Receipt<Written> {
        let batch = match Encoded::of(batch) {
            Ok(batch) => batch,
            Err(error) => return Receipt::refused(error),
        };
        let (reply, receipt) = pair();
        self.queue(Job::Write(batch, reply), receipt)
    }

    /// Writes a batch if there is room at once; else the caller tries again later.
    pub fn try_write(&self, batch: &Batch) -> Option<Receipt<Written>> {
        let batch = match Encoded::of(batch) {
            Ok(batch) => batch,
            Err(error) => return Some(Receipt::refused(error)),
        };
        let (reply, receipt) = pair();
        match self.shared.queue.try_push(Job::Write(batch, reply)) {
            Ok(()) => Some(receipt),
            Err(NotTaken::Closed) => Some(Receipt::refused(Error::Closed)),
            Err(NotTaken::Full) => None,
        }
    }

    /// Keeps the session as it was after the entry `upto_seq`; folding begins there from now on,
    /// and entries it covers may be pruned. One that goes less far than the last is not taken.
    pub fn snapshot(&self, session: &Session, upto_seq: u64) -> Receipt<Kept> {
        let body = match spelled_snapshot(&Snapshot::of(session)) {
            Ok(body) => body,
            Err(error) => return Receipt::refused(error),
        };
        let (reply, receipt) = pair();
        let session = session.id().clone();
        self.queue(Job::Snapshot { session, upto: upto_seq, body, reply }, receipt)
    }

    /// Lets a vendor's id find the session; the last one written wins.
    pub fn set_alias(&self, alias: Alias) -> Receipt<Written> {
        self.write(&Batch { aliases: vec![alias], ..Batch::default() })
    }

    pub fn set_meta(&self, change: MetaChange) -> Receipt<Written> {
        self.write(&Batch { meta: vec![change], ..Batch::default() })
    }

    /// Answers once there is nothing left to prune, or says why it cannot be.
    pub fn tidy(&self) -> Receipt<()> {
        let (reply, receipt) = pair();
        self.queue(Job::Tidy(reply), receipt)
    }

    /// Sees that the journal lies where it should, and writes it anew where it does not.
    pub fn check(&self) -> Receipt<()> {
        let (reply, receipt) = pair();
        match self.shared.queue.try_push(Job::Check(reply)) {
            Ok(()) => receipt,
            Err(NotTaken::Closed) => Receipt::refused(Error::Closed),
            // What is queued is preceded by the same look.
            Err(NotTaken::Full) => Receipt::refused(Error::Stalled),
        }
    }

    /// Every session, byte for byte as it was live. What cannot be read is moved to `set_aside`
    /// and reported; the rest folds.
    pub fn load(&self) -> Result<Loaded> {
        Ok(self.with_damage_set_aside(self.reader().load()?))
    }

    /// The same one after the other, so that they need not all be in memory. What cannot be read is
    /// moved to `set_aside` at the end, and said. `take` must not ask the journal anything.
    pub fn load_each(&self, take: impl FnMut(Remembered)) -> Result<Vec<DamagedRecord>> {
        let damaged = self.reader().load_each(take)?;
        Ok(self.with_damage_set_aside(Loaded { damaged, ..Loaded::default() }).damaged)
    }

    /// The same for one session; empty if there is none of that name.
    pub fn load_session(&self, session: &SessionId) -> Result<Loaded> {
        Ok(self.with_damage_set_aside(self.reader().load_session(session)?))
    }

    /// Entries after this number, at most [`crate::limits::PAGE_ROWS_MAX`].
    pub fn entries(&self, after_seq: u64, count_max: usize) -> Result<Vec<Numbered>> {
        self.reader().entries(after_seq, count_max)
    }

    /// One session's entries after this number, as far as they are kept.
    pub fn history(
        &self,
        session: &SessionId,
        after_seq: u64,
        count_max: usize,
    ) -> Result<Vec<Numbered>> {
        self.reader().history(session, after_seq, count_max)
    }

    /// Records of decisions after this number, as they were written.
    pub fn record_lines(&self, after_seq: u64, count_max: usize) -> Result<Vec<RecordLine>> {
        self.reader().record_lines(after_seq, count_max)
    }

    /// Where their chain begins and ends: the next record follows `last`.
    pub fn record_ends(&self) -> Result<Ends> {
        self.reader().record_ends()
    }

    pub fn alias(&self, harness: &str, vendor_id: &str) -> Result<Option<SessionId>> {
        self.reader().alias(harness, vendor_id)
    }

    pub fn aliases(&self) -> Result<Vec<Alias>> {
        self.reader().aliases()
    }

    /// What was delivered lately, oldest first; the body is empty where it is kept no more.
    pub fn deliveries(&self) -> Result<Vec<Delivery>> {
        let mut deliveries = Vec::new();
        self.each_delivery(|delivery| deliveries.push(delivery))?;
        Ok(deliveries)
    }

    /// The same one after the other. `take` must not ask the journal anything.
    pub fn each_delivery(&self, take: impl FnMut(Delivery)) -> Result<()> {
        self.reader().each_delivery(take)
    }

    pub fn meta(&self, key: &str) -> Result<Option<String>> {
        self.reader().meta(key)
    }

    /// Keys that begin like this, with their values, in order.
    pub fn meta_with_prefix(&self, prefix: &str) -> Result<Vec<(String, String)>> {
        self.reader().meta_with_prefix(prefix)
    }

    /// Damaged records that were moved out of the way, the newest first.
    pub fn set_aside(&self, count_max: usize) -> Result<Vec<SetAsideRecord>> {
        self.reader().set_aside(count_max)
    }

    pub fn health(&self) -> Health {
        self.shared.health.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The last number on disk.
    pub fn last_seq(&self) -> u64 {
        self.shared.health.lock().unwrap_or_else(PoisonError::into_inner).last_seq
    }

    /// Batches that wait for the writer.
    pub fn queue_len(&self) -> usize {
        self.shared.queue.len()
    }

    fn reader(&self) -> &Reader {
        self.shared.reader.as_ref().expect("only the end takes it away")
    }

    fn queue<T>(&self, job: Job, receipt: Receipt<T>) -> Receipt<T> {
        match self.shared.queue.push(job) {
            Ok(()) => receipt,
            Err(error) => Receipt::refused(error),
        }
    }

    fn with_damage_set_aside(&self, mut loaded: Loaded) -> Loaded {
        if !loaded.damaged.is_empty() {
            let (reply, receipt) = pair();
            let job = Job::SetAside(loaded.damaged.clone(), reply);
            loaded.not_set_aside = self.queue(job, receipt).wait().err();
        }
        loaded
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.reader = None;
        self.queue.close();
        if let Some(writer) = self.writer.take()
            // A receipt's waker may own the last handle, and it is woken by the writer.
            && writer.thread().id() != std::thread::current().id()
            && writer.join().is_err()
        {
            // Everybody who waited was told; there is nobody else to tell.
        }
    }
}

/// What the head tells of and the journal has not. It is on record before the head is written anew;
/// where that fails the old head stays, and the next start finds the same again.
fn find_gap(
    path: &Path,
    connection: &Connection,
    memory: &Memory,
    set_aside: Option<&DamagedFile>,
) -> Option<Gap> {
    let found = memory.head();
    let missing = match Head::read(path) {
        Ok(None) => None,
        Ok(Some(head)) => {
            head.missing(&found, |seq| decision_log::hash_of(connection, &memory.ends, seq))
        }
        // Nobody can say what is missing.
        Err(_) => Some((0, 0)),
    };
    let aside = set_aside.map(|file| file.path.display().to_string()).unwrap_or_default();
    let missing = missing.or(set_aside.map(|_| (0, 0)));
    let gap = missing.map(|(entries, records)| Gap::now(entries, records, aside));
    if gap.as_ref().is_none_or(|gap| gap.note(path).is_ok()) {
        // On a full disk the old one stays, which is not ahead either.
        let _ = found.write(path, Durability::Durable);
    }
    gap
}

fn connect(path: &Path, settings: &Settings) -> Result<(Connection, Memory, Opened)> {
    let created = file::make_file(path)?;
    let (connection, found) = schema::connect(path, settings)?;
    let memory = Memory::read(&connection, settings)?;
    let opened = Opened {
        created,
        migrated_from: (1..schema::VERSION).contains(&found).then_some(found),
        set_aside: None,
        gap: None,
        last_seq: memory.last,
        entries: memory.tallies.entries(),
        sessions: memory.tallies.sessions().len(),
    };
    Ok((connection, memory, opened))
}
