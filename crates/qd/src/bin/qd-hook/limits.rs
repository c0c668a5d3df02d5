//! Every wait and everything that can grow, with the reason.

use std::time::Duration;

/// The daemon's time: connecting, writing and its one byte. An agent that waits longer at every
/// step feels slow; a daemon that needs longer hangs.
const DELIVERY_BUDGET: Duration = Duration::from_millis(200);

/// The same for a frame of that length. A long one takes longer to write, to read and to judge, and
/// must not get past a rule because of it.
pub fn delivery_budget(frame_len: usize) -> Duration {
    let megabytes = u32::try_from(frame_len >> 20).unwrap_or(u32::MAX).min(16);
    DELIVERY_BUDGET + DELIVERY_PER_MEGABYTE * megabytes
}

/// The same for a hook that stays. Its agent waits anyway, and a daemon that is there but slow must
/// not let a call past its rules.
pub fn waiting_budget(frame_len: usize) -> Duration {
    WAITING_BUDGET + delivery_budget(frame_len)
}

const WAITING_BUDGET: Duration = Duration::from_secs(5);

const DELIVERY_PER_MEGABYTE: Duration = Duration::from_millis(250);

/// The agent's time, to write and close the hook's input. It is the agent that waits for itself
/// here; on a busy machine it may be late, and what it says must not be lost. With the daemon's
/// time it stays below the 1.5 s that Claude Code gives hooks at a session's end.
pub const INPUT_WAIT: Duration = Duration::from_secs(1);

/// A long payload's time. Only one that keeps coming gets it; an agent on a busy machine writes
/// some ten megabytes a second.
pub const LONG_INPUT_WAIT: Duration = Duration::from_secs(10);

/// What is longer than most payloads ever are.
pub const LONG_INPUT_BYTES: usize = 1 << 20;

/// Shells between us and the agent that are passed over: `sh -c` and a wrapper script or two.
pub const SHELLS_MAX: usize = 4;

/// Longest registry file of a client that is read: they have some hundred bytes.
pub const REGISTRY_BYTES_MAX: u64 = 64 << 10;

/// Bytes on disk in the spool, above which frames go that a newer one of their session supersedes.
/// As each file takes a block at least, these are some 16,000 files: a hook lists them all to know
/// how full it is, at about 0.3 µs a file.
pub const SPOOL_BYTES_MAX: u64 = 64 << 20;

/// Where making room stops: so that not each hook that follows has to make some.
pub const SPOOL_BYTES_LOW: u64 = SPOOL_BYTES_MAX / 8 * 7;

/// Bytes on disk above which only sessions may write that have a frame in the spool, which theirs
/// supersedes. It takes thousands of sessions, or very long frames, to come here.
pub const SPOOL_BYTES_FULL: u64 = 2 * SPOOL_BYTES_MAX;

/// What the shortest file takes of a disk.
pub const BLOCK_BYTES: u64 = 4 << 10;

/// Age after which a half-written file has no writer any more, in nanoseconds.
pub const PART_STALE_NS: u64 = 60_000_000_000;

/// How long the child that waits for the disk and makes room may live.
pub const SYNC_SECONDS_MAX: u32 = 10;

/// How long a waiting hook stays where its command does not say: below the ten minutes that agents
/// give a hook without a timeout of its own.
pub const WAIT_DEFAULT: Duration = Duration::from_secs(590);

/// The longest that any hook stays. Nobody answers a request that is a week old.
pub const WAIT_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The daemon's time to take a frame that is safe already, when a waiting hook comes back to it.
/// Nobody is kept from anything by that, and a daemon that has just started reads its history.
pub const RETURN_BUDGET: Duration = Duration::from_secs(10);

/// The pause before the daemon is looked for again, the first time; doubled with each.
pub const LOOK_AGAIN_FIRST: Duration = Duration::from_millis(50);

/// The longest such pause: an operator who starts the daemon sees what waits that much later, and
/// a hundred hooks that look in vain cost nothing one could measure.
pub const LOOK_AGAIN_MAX: Duration = Duration::from_secs(2);

/// How long a daemon that is away is looked for. One that is restarted or updated is back by then.
/// While there is none, nobody releases hooks that were answered in the terminal, and a session
/// would gather one with each step of its day.
pub const ABSENCE_MAX: Duration = Duration::from_secs(600);

/// How long a hook that holds its agent up looks for a daemon that went away: it may be restarting.
pub const RESTART_GRACE: Duration = Duration::from_secs(5);

/// Between two looks whether the agent still lives, where the kernel does not tell.
pub const AGENT_LOOK_EVERY: Duration = Duration::from_secs(2);
