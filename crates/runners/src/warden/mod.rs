//! A warden: a process between us and a program that we start, which ends with all of its kind.
//!
//! A program may leave its process group, its session and its parent; it cannot leave a subreaper.
//! The warden is one: whatever the program starts becomes, when its parents are gone, the warden's
//! child, and is killed and reaped before the warden reports. It lives on its standard input: when
//! that ends, because we cancel or because we are dead, so does everything.
//!
//! It is our own executable run again (`qd warden`), because what confines a program has to be done
//! in a process that becomes it, and that cannot be done safely in a fork of a program with threads.
//! Commands and hooks are run to their end ([`Warden::run`]); vendor agents and MCP servers are
//! talked to meanwhile ([`Charge`]).
//!
//! - standard input: one [`Job`], then nothing, or what the program reads;
//! - standard output: what the program says;
//! - standard error: [`News`], when the program runs and when nothing of it is left.

mod captured;
mod charge;
mod confine;
mod job;
pub mod limits;
mod pipes;
mod post;
mod program;
mod run;
mod tree;

pub use captured::Captured;
pub(crate) use captured::readable;
pub(super) use charge::{Charge, Ends};
pub use confine::{Confinement, LocalSockets, Network};
pub use job::{Ending, Enforced, Input, Job, News, Report, Said};
pub(super) use job::{LAST_PIECE, pieces};
pub use post::keep_watch;
pub use run::{Ended, Lost, Warden};
