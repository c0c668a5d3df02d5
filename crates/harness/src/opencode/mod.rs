//! What OpenCode's server, and Kilo's from 7 on, says, and how to answer it.
//!
//! Source: the server's event stream (`GET /event`), with the requests that were made to it and
//! their responses; and what a process watcher saw. Known: OpenCode 1.18.33, Kilo 7.7.9, whose
//! interface is a superset: it adds `sync` events (the same once more, without `properties`) and
//! `session.turn.open` / `session.turn.close`.
//!
//! Oddities, all seen:
//! - While a permission or a question waits the status stays `busy` and the tool says `running`.
//! - Rejecting without a message ends the turn, and nothing but the silence after it says so; with
//!   a message the turn goes on. `permission.replied` does not tell which.
//! - An abort leaves no reply to what was open. `session.idle` comes twice, the second time seconds
//!   later, with late news of the tools and messages of the turn that is over.
//! - The pending lists and `/session/status` hold what is open now; idle sessions are left out. They
//!   rebuild what a restart has lost.
//! - A subagent is a session with a `parentID`.

mod asking;
mod conversation;
mod event;
mod handler;
mod message;
mod part;
mod poll;
mod reply;
mod request;
mod session;
#[cfg(test)]
mod tests;
pub mod usage;
mod wire;

pub use self::asking::{Product, asking};
pub use self::conversation::{PartSaid, conversation};
pub use self::handler::Handler;
pub use self::reply::{
    Call, abort, create, decide, in_order, kept, polls, prompt, reject_question,
};
use crate::version::Tested;

/// Recorded and run live: OpenCode, and Kilo, whose server is the same.
pub const TESTED: Tested = Tested(&[("1.18.33", "1.18.34"), ("7.7.9", "7.7.9")]);
