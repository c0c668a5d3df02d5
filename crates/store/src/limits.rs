//! Everything that can grow, with its maximum and the reason for it, and every wait.

use std::time::Duration;

/// Longest entry, as JSON. A frozen model response with its tool results fits many
/// times over; a longer one is refused with an error, before anything is queued.
pub const ENTRY_BYTES_MAX: usize = 8 << 20;

/// Longest snapshot, as JSON. A session's parts are bounded in number, not in bytes; one that is
/// longer keeps its entries instead.
pub const SNAPSHOT_BYTES_MAX: usize = 24 << 20;

/// Deepest nesting of an entry's JSON. The parser gives up at 128 levels, and a snapshot wraps an
/// agent's arguments in a dozen more than the entry that brought them: what is accepted here can
/// be read back from either.
pub const ENTRY_DEPTH_MAX: usize = 96;

/// Deepest nesting of a snapshot's JSON: the parser's own limit with a little room.
pub const SNAPSHOT_DEPTH_MAX: usize = 124;

/// Most entries, records, aliases and meta changes of one batch, each. It is one transaction, so it has to
/// fit in memory; a first scan of a long history takes several.
pub const BATCH_ITEMS_MAX: usize = 65_536;

/// Most bytes of one batch as JSON. Twice the longest entry.
pub const BATCH_BYTES_MAX: usize = 2 * ENTRY_BYTES_MAX;

/// Most batches that wait for the writer. A disk that syncs 400 times a second empties it within
/// milliseconds, because all of it goes in a few transactions.
pub const QUEUE_LEN_MAX: usize = 8_192;

/// Most bytes that wait for the writer: what a stalled disk may cost in memory. One batch is
/// always let in, however long.
pub const QUEUE_BYTES_MAX: usize = 32 << 20;

/// How long a full queue is waited for before the append is refused. A disk that does not take
/// anything for this long is not slow but broken, and the caller must be able to say so.
pub const QUEUE_WAIT_MAX: Duration = Duration::from_secs(30);

/// Most entries of one transaction (a longer batch goes alone). Large enough that the fsync is
/// cheap for each, small enough that the first in it waits some milliseconds only.
pub const GROUP_ENTRIES_MAX: usize = 2_048;

/// Most bytes of one transaction, for the same reason.
pub const GROUP_BYTES_MAX: usize = 8 << 20;

/// Entries of one session that are kept although a snapshot covers them: its timeline, and a way
/// back when the snapshot turns out to be damaged.
pub const ENTRIES_PER_SESSION_MAX: usize = 2_000;

/// Entries that are kept in all. Some 400 bytes each, so about 80 MB: a restart checks and
/// replays it within the time it has.
pub const ENTRIES_MAX: usize = 200_000;

/// Sessions that are remembered: years of work for one operator. Beyond it those that nothing was
/// written to for longest are forgotten, with their aliases.
pub const SESSIONS_MAX: usize = 20_000;

/// Records of decisions that are kept: years of an operator who answers each by hand, weeks of
/// rules that answer everything. Of those that are dropped the last one's hash stays.
pub const RECORDS_MAX: usize = 200_000;

/// Bytes of records that are kept. A record has some 600; one whose answer changes an agent's input
/// may have hundreds of times that.
pub const RECORDS_BYTES_MAX: u64 = 128 << 20;

/// Largest database file. With the limits above it is never reached in ordinary use; it keeps a
/// few enormous sessions from filling the disk, which then get a "no space" error.
pub const FILE_BYTES_MAX: u64 = 4 << 30;

/// How far above a limit the journal may grow before it is pruned back to it, as a part of the
/// limit: pruning one entry for each one written would cost a transaction each.
pub const SLACK_DIVISOR: usize = 8;

/// Entries that one step of upkeep prunes or folds. A few milliseconds: nobody who appends in the
/// meantime notices.
pub const UPKEEP_STEP: usize = 1_024;

/// Sessions that one step of upkeep forgets.
pub const FORGET_STEP: usize = 64;

/// Steps of upkeep after each transaction: two that fold and two that prune take as many entries
/// as the fullest transaction brings, so the file stays bounded under any load.
pub const UPKEEP_STEPS_PER_GROUP: usize = 4;

/// How often it is written beside the journal how far that has come, where no record of a decision
/// was written. Each costs a file; a journal that an older copy replaced is behind by more.
pub const HEAD_EVERY: Duration = Duration::from_secs(1);

/// Deliveries remembered as seen. Several times what a spool holds, so that whatever is delivered
/// again after a crash is recognised; the oldest are forgotten first.
pub const DELIVERIES_MAX: u64 = 16_384;

/// Deliveries whose bodies are kept, the newest: what a restart goes through again. The longest
/// wait that depends on them is some seconds, and no machine full of agents sends more in a minute.
pub const DELIVERY_BODIES_MAX: u64 = 2_048;

/// Bytes of these bodies. Hooks have some 2 KB, so all of them fit three times over; a few that
/// carry whole files push older ones out.
pub const DELIVERY_BODIES_BYTES_MAX: u64 = 16 << 20;

/// Longest body of a delivery: what a hook forwarder sends, and a header.
pub const DELIVERY_BYTES_MAX: usize = (1 << 20) + (4 << 10);

/// Damaged records kept in `set_aside`. More than that is not a damaged record but a damaged disk;
/// the newest are kept.
pub const SET_ASIDE_RECORDS_MAX: u64 = 10_000;

/// Damaged journals that may lie beside the live one. They are never deleted by us; one more is
/// refused with an error that asks the operator to look.
pub const DAMAGED_FILES_MAX: u32 = 16;

/// Vendor ids in all. A session has one or two, a resumed one a few more.
pub const ALIASES_MAX: u64 = 200_000;

/// Rows of `meta`: chiefly one offset for each transcript that was ever read.
pub const META_ROWS_MAX: u64 = 200_000;

/// Longest key: a source's, a harness's, a vendor's id, a meta key (which may hold a path).
pub const KEY_BYTES_MAX: usize = 8 << 10;

/// Longest value in `meta`.
pub const META_VALUE_BYTES_MAX: usize = 1 << 20;

/// Most rows that one call reads: `entries`, `history`, `set_aside`.
pub const PAGE_ROWS_MAX: usize = 10_000;

/// How long SQLite waits for another program that has the file locked (somebody's `sqlite3`).
pub const BUSY_WAIT_MAX: Duration = Duration::from_secs(5);

/// Pages in the write-ahead log before they are moved into the file: 4 MiB, so a crash leaves
/// little to recover.
pub const WAL_PAGES: u32 = 1_000;

/// What the write-ahead log is cut back to once it was moved: what one large batch left behind
/// does not stay for ever.
pub const WAL_BYTES_KEPT: u64 = 16 << 20;

/// SQLite's page cache, for each of the two connections.
pub const CACHE_KIB: u32 = 4_096;

/// Longest text kept as the reason why a record or file is damaged.
pub const REASON_BYTES_MAX: usize = 1_024;

/// Prepared statements that a connection keeps: all there are.
pub const STATEMENTS_MAX: usize = 64;

/// Largest index of what was read of session files. It takes some 4 MB for each GB of history;
/// when it is full, what does not fit is read again each time.
pub const INDEX_BYTES_MAX: u64 = 1 << 30;

/// How long we wait for a client that has its own database locked. It works on; we look again the
/// next time.
pub const CLIENT_BUSY_WAIT_MAX: Duration = Duration::from_millis(500);

/// Longest write-ahead log of a client's database that is read with it. SQLite reads all of it
/// before the first row; clients write theirs back at some megabytes.
pub const CLIENT_LOG_BYTES_MAX: u64 = 1 << 30;

/// Sessions of a client's database that are known by their parents, the newest.
pub const CLIENT_SESSIONS_MAX: u32 = 100_000;

/// Longest part or message of a client's database that is read. What tells of tokens has some
/// hundred bytes; a tool's output may have any number.
pub const CLIENT_ROW_BYTES_MAX: u32 = 1 << 20;

/// Letters of prompts and answers that can be searched: some years of ten agents a day. What was
/// said first goes first.
pub const SEARCH_TEXT_BYTES_MAX: u64 = 256 << 20;

/// Largest file of the search. The words' index takes about as much as the texts, and letters of
/// some languages take three bytes.
pub const SEARCH_FILE_BYTES_MAX: u64 = 1 << 30;

/// Words of a search that are looked for; nobody types more.
pub const SEARCH_WORDS_MAX: usize = 32;

/// What one search finds at most.
pub const SEARCH_HITS_MAX: usize = 1_000;
