//! Everything of a warden that can grow, with its maximum and the reason for it, and every wait.

use std::time::Duration;

/// Entries of a folder that are opened one by one, because a private place lies beside them. Those
/// behind them stay closed.
pub const BESIDE_PRIVATE_MAX: usize = 20_000;

/// Longest job: a command line and what is written into its program, a patch for instance.
pub const JOB_BYTES_MAX: usize = 16 << 20;

/// Longest piece of what a program reads while it runs; its length has to fit four bytes.
pub const PIECE_BYTES_MAX: usize = 1 << 20;

/// All that a warden tells: two numbers, then a sentence and its program's last words, in which a
/// byte may become six.
pub const NEWS_BYTES_MAX: u64 = 128 << 10;

/// The end of what a program wrote to its standard error: a stack trace and the line before it.
pub const LAST_WORDS_BYTES_MAX: usize = 8 << 10;

/// Between two rounds of killing, at first and at most. A killed process ends within microseconds,
/// but for one that waits for a disk or a network that does not answer.
pub const KILL_AGAIN_AFTER: Duration = Duration::from_millis(2);
pub const KILL_AGAIN_AFTER_MAX: Duration = Duration::from_millis(200);

/// How long a warden may take to start its program. It takes milliseconds; a machine may be busy.
pub const WARDEN_START_WAIT: Duration = Duration::from_secs(60);

/// How long a warden may take to end after it was let go of, before its run counts as lost.
pub const WARDEN_END_WAIT: Duration = Duration::from_secs(10);

/// After a warden's end nobody should hold its output; whoever does is not waited for.
pub const OUTPUT_END_WAIT: Duration = Duration::from_secs(1);

/// Processes of one user while a confined program runs. The kernel counts all of the user's, so it
/// is generous; it ends a fork bomb and no build.
pub const PROCESSES_MAX: u64 = 16_384;

/// Largest file that a confined program may write: no build's result, but a disk's end.
pub const FILE_BYTES_MAX: u64 = 32 << 30;

/// Depth of processes below a warden that is followed in one round; deeper ones come nearer as those
/// above them are killed.
pub const TREE_DEPTH_MAX: usize = 64;
