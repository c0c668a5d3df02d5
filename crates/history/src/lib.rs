//! What every session of this machine cost, from the files that agents leave.
//!
//! ```text
//!   finding ──► files ──► scanning (two threads, a window each) ──► portions ──► Ledger ──► sums
//!                 ▲                                                    │
//!                 └────────── where reading stopped ◄── index ◄────────┘
//! ```
//!
//! Blocking: for a command, or a thread of its own. The index only saves reading: without it the
//! answer is the same, and later.

mod bookkeeper;
mod database;
mod finding;
mod history;
mod journal;
mod ledger;
mod live;
mod names;
mod packing;
pub mod past_requests;
mod portion;
mod report;
mod report_json;
mod scanning;
mod search;
mod searcher;
mod window;

pub use self::bookkeeper::{Answer, BookNews, Bookkeeper, Books, NoAnswer, Question};
pub use self::finding::{FileKind, FoundFile, Trouble, find};
pub use self::history::History;
pub use self::ledger::{Counted, Ledger};
pub use self::live::Change;
pub use self::portion::Portion;
pub use self::report::{By, ModelRow, Query, Report, Row, SessionRow, report};
pub use self::scanning::{Job, Known, News, Position, Progress, Scanned, scan};
pub use self::search::{Hit, Search, SearchQuery};
pub use self::searcher::Searcher;
