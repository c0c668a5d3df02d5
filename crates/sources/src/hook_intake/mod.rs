//! What hook forwarders send, over the socket and through the spool.
//!
//! Knows bytes, files and ids; what a payload means is the harness's business, and when to
//! listen is the runtime's.
//!
//! A **frame** is a header line and as many payload bytes as it announces:
//!
//! ```text
//! qd1 send id=<32 hex> at=<ms> seq=<n> harness=claude-code event=Stop agent=4711:93021
//!     cut=size sum=<16 hex> len=1234\n<payload>
//! ```
//!
//! (one line; `event`, `entry`, `agent` and `cut` only where known; unknown fields are skipped).
//! `by=<program>` stands there where the caller is not the client that the hook was installed for:
//! it is counted, and nothing more is made of what it says.
//! The first word is the version, the second the mode: `send` wants one byte back, [`ACK`] once the
//! frame is safe with us or [`REFUSAL`]. `wait` wants that too, and then stays on the connection
//! for a [`qd_hook_wire::HookReply`], which it acknowledges with [`ACK`] before it acts on it; where that fails
//! it comes again with the same frame. No request of HTTP starts with `qd1 `, so both may share a
//! socket.
//!
//! A payload that is longer than a megabyte is abridged while it comes (`qd_harness::abridge`): it
//! stays JSON, and `cut` says so. Those who wait are judged by all of it, up to 16 MiB.
//!
//! Invariant: a frame is taken exactly once. Each has an id; [`KnownIds`] remembers what the
//! journal holds, and a spool file goes only after that. A forwarder whose acknowledgement was
//! lost spools the frame again, under the same id.

mod caller;
pub(crate) mod frame;
mod known_ids;
pub(crate) mod parser;
mod socket;
pub mod speaking;
pub mod spool;

pub use caller::{Ancestor, Caller, Program};
pub use frame::{Agent, Cut, Frame, Mode};
pub use known_ids::{Admission, IN_FLIGHT_MAX, KnownIds};
pub use parser::FrameParser;
pub use socket::bind;
pub use spool::{Batch, Losses, SetAside, Spool};

/// The frame is safe: the forwarder forgets it. In the other direction: the reply has arrived.
pub const ACK: u8 = b'+';

/// The frame was not taken: the forwarder spools it.
pub const REFUSAL: u8 = b'-';
