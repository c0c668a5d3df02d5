//! Everything of post-tool hooks that can grow, with its maximum and the reason for it.

/// Longest `hooks.json`: a hundred hooks with long commands.
pub const HOOKS_FILE_BYTES_MAX: u64 = 256 << 10;

/// Most hooks. Each runs after every batch that it is for, one after the other.
pub const HOOKS_MAX: usize = 64;

/// Longest name: it stands on a card and in every event of the hook.
pub const HOOK_NAME_BYTES_MAX: usize = 100;

/// Longest time limit of a hook. The session waits for it.
pub const HOOK_TIMEOUT_MS_MAX: u64 = 3_600_000;

/// Most runs of a hook by its policy, and the longest pause between two.
pub const HOOK_ATTEMPTS_MAX: u8 = 10;
pub const HOOK_DELAY_MS_MAX: u64 = 600_000;

/// Names in a filter or a list of variables.
pub const HOOK_NAMES_MAX: usize = 256;

/// How much of what a hook said is kept, from its beginning and from its end. It is shown, and no
/// model reads it.
pub const HOOK_OUTPUT_HEAD_BYTES_MAX: usize = 4 << 10;
pub const HOOK_OUTPUT_TAIL_BYTES_MAX: usize = 12 << 10;

/// How much of its last words is told with a failure.
pub const HOOK_ERROR_BYTES_MAX: usize = 500;
