//! What hook forwarders send, over the socket and through the spool.
//!
//! Knows bytes, files and ids; what a payload means is the harness's business, and when to
//! listen is the runtime's.
//!
//! What a frame looks like is `qd_hook_wire`'s business.
//!
//! A payload that is longer than a megabyte is abridged while it comes (`qd_harness::abridge`): it
//! stays JSON, and `cut` says so. Those who wait are judged by all of it, up to 16 MiB.
//!
//! Invariant: a frame is taken exactly once. Each has an id; [`KnownIds`] remembers what the
//! journal holds, and a spool file goes only after that. A forwarder whose acknowledgement was
//! lost spools the frame again, under the same id.

mod caller;
mod frame;
mod known_ids;
mod parser;
mod socket;
pub mod speaking;
pub mod spool;

pub use caller::{Ancestor, Caller, Program};
pub use frame::Frame;
pub use known_ids::{Admission, IN_FLIGHT_MAX, KnownIds};
pub use parser::FrameParser;
pub use socket::bind;
pub use spool::{Batch, Losses, SetAside, Spool};
