//! Everything of our tools that can grow, with its maximum and the reason for it, and every wait.

use std::time::Duration;

/// Longest time limit that a model may ask for: an hour's build.
pub const TIMEOUT_MS_MAX: u64 = 3_600_000;

/// How much of what a command said the model gets, from its beginning and from its end. Errors stand
/// at the end; together it is some ten thousand tokens.
pub const OUTPUT_HEAD_BYTES_MAX: usize = 12 << 10;
pub const OUTPUT_TAIL_BYTES_MAX: usize = 20 << 10;

/// Longest answer of a tool that is no command.
pub const ANSWER_BYTES_MAX: usize = 48 << 10;

/// Lines of a file in one answer where the model does not say how many, and at most.
pub const READ_LINES: usize = 1_000;
pub const READ_LINES_MAX: usize = 5_000;

/// Longest line that is shown; the rest of it is counted.
pub const LINE_BYTES_MAX: usize = 2_000;

/// Bytes of a file that are passed over to come to a line.
pub const READ_PASSED_BYTES_MAX: u64 = 512 << 20;

/// Longest file that is edited or written: it is held in memory, twice.
pub const EDIT_BYTES_MAX: u64 = 16 << 20;

/// Longest file that is searched; longer ones are counted.
pub const SEARCHED_BYTES_MAX: u64 = 8 << 20;

/// Bytes at the beginning of a file in which a zero says that it is no text.
pub const SNIFFED_BYTES: usize = 8 << 10;

/// Entries of folders that one walk looks at; then it says that there are more.
pub const WALK_ENTRIES_MAX: usize = 200_000;

/// How deep a walk goes. Deeper is a mistake or a trap, and each level holds a descriptor.
pub const WALK_DEPTH_MAX: usize = 48;

/// Longest file with which Git links a worktree and its repository: a path.
pub const GIT_LINK_BYTES_MAX: u64 = 8 << 10;

/// How long opening a workspace may take: a disk that does not answer is told as such.
pub const OPEN_WAIT: Duration = Duration::from_secs(20);

/// Entries of a folder that are removed before it is looked at again, and folders that one round of
/// removing takes on.
pub const REMOVED_AT_ONCE: usize = 1_024;
pub const ASIDE_MAX: usize = 1_024;

/// Longest `.gitignore` that is read.
pub const IGNORE_FILE_BYTES_MAX: u64 = 256 << 10;

/// Files that `list_files` names.
pub const LISTED_MAX: usize = 1_000;

/// Lines that `grep` gives where the model does not say how many, and at most.
pub const MATCHES: usize = 200;
pub const MATCHES_MAX: usize = 2_000;

/// Lines around a match.
pub const CONTEXT_LINES_MAX: usize = 10;

/// Longest pattern, and the memory that one may take when it is compiled.
pub const PATTERN_BYTES_MAX: usize = 4 << 10;
pub const PATTERN_COMPILED_BYTES_MAX: usize = 4 << 20;

/// Files that `search` finds, and words that it looks for.
pub const FOUND_MAX: usize = 50;
pub const SEARCH_WORDS_MAX: usize = 16;

/// Longest argument vector of a command.
pub const ARGUMENTS_MAX: usize = 4_096;

/// Longest patch, and the files in it.
pub const PATCH_BYTES_MAX: usize = 4 << 20;
pub const PATCH_FILES_MAX: usize = 500;

/// Entries of `git_log` where the model does not say how many, and at most.
pub const LOG_ENTRIES: u32 = 20;
pub const LOG_ENTRIES_MAX: u32 = 500;

/// Times a path is resolved again when somebody renames folders meanwhile.
pub const RESOLVE_TRIES: usize = 16;

/// Tools of one session that run at once; the others wait their turn.
pub const RUNNING_MAX: usize = 16;

/// How long a canceled tool that reads files may take to notice.
pub const NOTICE_WAIT: Duration = Duration::from_secs(10);

/// Paths, and variables, that the operator may open to commands: each command carries them all.
pub const OPENED_MAX: usize = 256;

/// How long a program may take whose only purpose is to be confined.
pub const PROBE_MS_MAX: u64 = 30_000;
