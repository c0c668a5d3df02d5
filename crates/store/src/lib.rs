//! What we remember, on SQLite: the journal, and what was read of session files
//! ([`UsageIndex`], [`SearchIndex`]). It knows SQL and no rules. What a client keeps in a database of its own is read
//! here, too ([`OpencodeDatabase`]).
//!
//! ```text
//!   append / append_once / write ──► Queue (bounded) ──► writer thread ──► one transaction
//!            │                                                │               per group
//!            ▼                                                ▼
//!         Receipt ◄─────────────── after the fsync ───────── COMMIT
//!
//!   load ──► snapshot + fold of the tail, on a connection of its own
//! ```
//!
//! [`Journal`] is the whole interface to the journal. An entry is [`qd_session::event::Entry`] as
//! JSON text, a snapshot is [`qd_session::snapshot::Snapshot`]; nobody here looks inside.
//!
//! ```no_run
//! # use qd_store::{Journal, Settings};
//! let (journal, opened) = Journal::open("journal.db", Settings::default())?;
//! if let Some(damaged) = &opened.set_aside {
//!     eprintln!("the old journal was damaged and is now {}", damaged.path.display());
//! }
//! let sessions = journal.load()?;
//! let written = journal.append(Vec::new()).wait()?; // or `.await`
//! # Ok::<(), qd_store::Error>(())
//! ```
//!
//! **Invariant:** a receipt says `Ok` only when its batch is on disk (`synchronous=FULL`). Whatever
//! was acknowledged is there after `kill -9`, exactly once and in order.
//!
//! **Invariant:** a batch is written whole or not at all, and its entries have consecutive numbers.
//! A receipt that says `Err` left nothing behind; a later batch may still succeed, so whoever needs
//! an order waits for the receipt. (As with every database, a crash between the commit and the
//! receipt leaves a batch written that nobody heard of: [`Journal::append_once`] is for that.)
//!
//! **Invariant:** only what a snapshot covers is pruned. Where nobody takes a snapshot and the
//! journal grows beyond its limits, the writer folds one itself, so the file is bounded.
//!
//! **Invariant:** records of decisions are a chain without gaps: one that does not follow the last
//! is refused with its batch. Retention drops the oldest and keeps the hash where it stopped.
//!
//! **Invariant:** how far the journal has come is also written beside it, after it is on disk. What a
//! journal lacks by that is told until somebody removes the list of gaps. A journal that is taken
//! away while it is open is written anew from the open one before anything more is acknowledged.
//!
//! What is deliberately absent:
//! - **An async runtime.** A [`Receipt`] is a plain [`Future`] and can also be waited for.
//! - **Deleting damage.** An unreadable record goes to the table `set_aside`, an unreadable file
//!   gets a name that says so.
//! - **A second writer.** One process holds the journal; another one is told which.

mod batch;
mod decision_log;
mod error;
mod file;
mod fold;
mod group;
mod head;
mod job;
mod journal;
mod journal_reader;
pub mod limits;
mod lock;
mod memory;
mod opencode_database;
mod place;
mod queue;
mod read;
mod receipt;
mod schema;
mod search_index;
mod settings;
mod tally;
mod upkeep;
mod usage_index;
mod writer;

pub use self::batch::{Alias, Batch, Delivery, MetaChange};
pub use self::decision_log::{DecisionLog, Ends, RecordLine};
pub use self::error::Error;
pub use self::file::DamagedFile;
pub use self::fold::{Damage, DamagedRecord};
pub use self::head::{Gap, Head};
pub use self::job::{Kept, Written};
pub use self::journal::{Journal, Opened};
pub use self::journal_reader::JournalReader;
pub use self::opencode_database::{ClientPart, ClientSession, OpencodeDatabase};
pub use self::read::{Loaded, Numbered, Remembered, Replayed, SetAsideRecord};
pub use self::receipt::Receipt;
pub use self::search_index::{Hit, SaidRow, SearchIndex, SearchQuery, SearchedFile};
pub use self::settings::Settings;
pub use self::usage_index::{FileChange, IndexedFile, UsageIndex};
pub use self::writer::Health;

/// What every call here answers.
pub type Result<T> = std::result::Result<T, Error>;
