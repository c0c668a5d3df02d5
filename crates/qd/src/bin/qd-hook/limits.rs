//! Every wait and everything that can grow, with the reason.

use std::time::Duration;

/// The daemon's time: connecting, writing and its one byte. An agent that waits longer at every
/// step feels slow; a daemon that needs longer hangs.
pub const DELIVERY_BUDGET: Duration = Duration::from_millis(200);

/// The agent's time, to write and close the hook's input. It is the agent that waits for itself
/// here; on a busy machine it may be late, and what it says must not be lost. With the daemon's
/// time it stays below the 1.5 s that Claude Code gives hooks at a session's end.
pub const INPUT_WAIT: Duration = Duration::from_secs(1);

/// Longest payload. What follows is read, so that the agent can write it, and thrown away.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;

/// Longest harness or event name; longer ones are cut.
pub const NAME_BYTES_MAX: usize = 64;

/// Shells between us and the agent that are passed over: `sh -c` and a wrapper script or two.
pub const SHELLS_MAX: usize = 4;

/// Files in the spool before new frames are refused and counted. Each hook lists them all to know
/// how many there are, at about 0.3 µs a file: more would cost the agent a millisecond.
pub const SPOOL_FRAMES_MAX: usize = 2_048;

/// Bytes in the spool before new frames are refused and counted.
pub const SPOOL_BYTES_MAX: u64 = 64 << 20;

/// Losses that are counted, one byte each.
pub const LOSSES_MAX: u64 = 1 << 20;

/// How long the child that waits for the disk may live.
pub const SYNC_SECONDS_MAX: u32 = 10;
