//! What `qd-hook` and the daemon say to each other: both halves of the format, and no dependency,
//! because the forwarder starts with every hook of every agent.
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
//! frame is safe with the daemon or [`REFUSAL`]. `wait` wants that too, and then stays on the
//! connection for a [`HookReply`], which it acknowledges with [`ACK`] before it acts on it; where
//! that fails it comes again with the same frame. No request of HTTP starts with `qd1 `, so both may
//! share a socket.

mod checksum;
mod frame_id;
mod header;
mod reply;

pub use checksum::Checksum;
pub use frame_id::FrameId;
pub use header::{
    Agent, Cut, HEADER_BYTES_MAX, Header, Malformed, Mode, NAME_BYTES_MAX, PAYLOAD_BYTES_MAX,
    plain_name,
};
pub use reply::{HookReply, Parsed, REPLY_HEADER_BYTES_MAX, REPLY_TEXT_BYTES_MAX};

/// The frame is safe: the forwarder forgets it. In the other direction: the reply has arrived.
pub const ACK: u8 = b'+';

/// The frame was not taken: the forwarder spools it.
pub const REFUSAL: u8 = b'-';

/// Losses of the spool that are counted, one byte each.
pub const LOSSES_MAX: u64 = 1 << 20;
