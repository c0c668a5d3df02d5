//! Everything that can grow, with its maximum and the reason for it, and every wait.
//!
//! `spec/limits.md` shows the same numbers; a test compares the two.

/// Most tool calls of one turn that an observed agent remembers. A batch seldom has more than a
/// dozen; ends are kept so that a late start opens nothing. The oldest ended one goes first.
pub const TOOL_SPANS_MAX: usize = 256;

/// How much handlers keep of what a call is about. A command of that length may have been cut, and
/// what it returned then says nothing.
pub const ABOUT_BYTES_MAX: usize = 200;

/// Longest label that a domain layer makes: a line on a card.
pub const LAYER_LABEL_CHARS_MAX: usize = 80;

/// Most rules of an operator, and most projects that name their layers. Each card is held against
/// all of them.
pub const LAYER_RULES_MAX: usize = 100;

/// Longest pattern of a rule, and the memory that one may take when it is compiled.
pub const LAYER_PATTERN_BYTES_MAX: usize = 256;
pub const LAYER_PATTERN_COMPILED_BYTES_MAX: usize = 64 << 10;

/// How much of a command is held against a pattern. A request's input may be a whole file.
pub const LAYER_COMMAND_BYTES_MAX: usize = 4 << 10;

/// Most rules of one layer of a policy, and most projects that have a policy of their own. Each
/// request is held against all of them.
pub const POLICY_RULES_MAX: usize = 200;

/// Most patterns of one condition of a rule.
pub const POLICY_PATTERNS_MAX: usize = 64;

/// Longest name or message of a rule: it is shown on a card and told to an agent.
pub const POLICY_TEXT_BYTES_MAX: usize = 500;

/// Longest command line that a policy reads. A longer one is a script, and a person's.
pub const POLICY_COMMAND_BYTES_MAX: usize = 16 << 10;

/// Most simple commands of a line that are read, and how deep they may be nested.
pub const POLICY_COMMANDS_MAX: usize = 64;
pub const POLICY_COMMAND_DEPTH_MAX: usize = 16;

/// Words behind `sudo`, `env`, `xargs` at which the command proper may begin, and options behind a
/// program that are stepped over. What lies further may be anything.
pub const POLICY_WRAPPED_WORDS_MAX: usize = 32;
pub const POLICY_OPTIONS_MAX: usize = 8;

/// Most paths of one request.
pub const POLICY_PATHS_MAX: usize = 256;

/// Most requests of one session that are open or freshly settled.
pub const REQUESTS_MAX: usize = 256;

/// Most times that an open request is remembered to have been asked before. Clients tell of one
/// two or three times: a hook, a dialog, a notification. The oldest go first, and with them the
/// key that the request would have after a restart.
pub const REQUEST_ASKS_MAX: usize = 16;

/// Most subagents a session remembers, ended ones included. Those that do not work go first.
pub const SUBAGENTS_MAX: usize = 128;

/// Most processes remembered for one session: resumes of the same id.
pub const PROCESSES_MAX: usize = 8;

/// Runs of one session that its timeline shows, the newest: some hours of work, and as many as a
/// page can draw.
pub const TIMELINE_RUNS_MAX: usize = 500;

/// Stretches of time in one state that a timeline shows, the newest. A turn has a few dozen.
pub const TIMELINE_SPANS_MAX: usize = 500;

/// Silence after which a session whose process cannot be found counts as ended.
pub const MISSING_PROCESS_GRACE_MS: u64 = 60_000;

/// Silence after which the work of a process that nobody can observe is `unknown`.
pub const UNOBSERVED_WORK_MAX_MS: u64 = 600_000;

/// Silence after which a session that nobody can observe is history, whatever it waited for. Longer
/// than a weekend or a short holiday: until then a permission may well wait for its operator.
pub const UNOBSERVED_KEPT_MS: u64 = 7 * 24 * 60 * 60 * 1_000;

/// Silence after a failed tool before it is the operator's business and not the model's.
pub const FAILED_TOOL_GRACE_MS: u64 = 10_000;

/// Failures of the very same call in a row, with nothing done in between, that are no progress.
/// Agents try a flaky command two or three times.
pub const LOOPING_CALLS_MIN: usize = 5;

/// How long work may go on without a sign of life before it counts as stalled, where the operator
/// has not set another time. Models have thought for minutes, but not without a byte.
pub const STALLED_AFTER_MS: u64 = 600_000;

/// How long an ended session stays on the board.
pub const ENDED_ON_BOARD_MS: u64 = 24 * 60 * 60 * 1_000;

/// Silence on a model stream before the request counts as lost.
pub const LLM_SILENCE_MAX_MS: u64 = 120_000;

/// Automatic repeats of a failed model request, and the pause before each.
pub const LLM_RETRY_DELAYS_MS: [u64; 2] = [250, 1_000];

/// Longest retry-after that is waited out; a longer one is a usage limit.
pub const RETRY_AFTER_MAX_MS: u64 = 60_000;

/// Automatic repeats of failed tools that change nothing, and the pause before.
pub const TOOL_RETRIES_MAX: u8 = 1;
pub const TOOL_RETRY_DELAY_MS: u64 = 500;

/// A tool's time limit where the tool has none of its own.
pub const TOOL_TIMEOUT_MS: u64 = 300_000;

/// A post-tool hook's time limit where its configuration has none.
pub const HOOK_TIMEOUT_MS: u64 = 120_000;

/// Patience with a harness that was asked to stop, before its process tree is killed; and again
/// before a killed one that never reports its end is given up.
pub const STOP_GRACE_MS: u64 = 10_000;

/// Patience of the manager view with a `session_created` that stays away.
pub const SESSION_CREATED_GRACE_MS: u64 = 2_000;

/// Longest record of a decision, as JSON. Only an answer that changes an agent's input comes near
/// it; a longer one is refused before anything is sent.
pub const RECORD_BYTES_MAX: usize = 256 << 10;

/// How much of what an operator was shown is on record: the text, and the input. Of a longer input
/// the hash is kept, too.
pub const SHOWN_TEXT_BYTES_MAX: usize = 4 << 10;
pub const SHOWN_INPUT_BYTES_MAX: usize = 32 << 10;

/// Longest reason for a failed delivery that is on record.
pub const WHY_BYTES_MAX: usize = 500;

/// Decisions that the book remembers, with their idempotency keys: some days of an operator, and
/// hours of rules that answer everything. The oldest settled one goes first; while none is settled
/// no other is taken.
pub const BOOK_DECISIONS_MAX: usize = 4_096;

/// Bytes of records that the book remembers: answers may be long.
pub const BOOK_BYTES_MAX: usize = 16 << 20;

/// Requests that the book knows. A machine has some hundred open at most.
pub const BOOK_REQUESTS_MAX: usize = 8_192;

/// Requests closed without us that the book still tells from unknown ones.
pub const BOOK_CLOSED_MAX: usize = 1_024;

/// Newest records that are folded after a start: a decision has three at most, so the book
/// remembers no more than these hold.
pub const BOOK_RECORDS_MAX: usize = 3 * BOOK_DECISIONS_MAX;

/// How long something must stand before the operator is told: who answers in the terminal at once
/// hears nothing.
pub const NOTICE_DWELL_MS: u64 = 5_000;

/// Between two notices about one session's state. What is asked anew comes through.
pub const NOTICE_COOLDOWN_MS: u64 = 60_000;

/// A state that was there for so long when it was first seen is no news: a first start would tell of
/// every session that was ever left idle.
pub const NOTICE_NEWS_MS: u64 = 600_000;

/// How often it is looked whether quiet hours are over, while something waits for their end.
pub const NOTICE_QUIET_LOOK_MS: u64 = 60_000;

/// Sessions with something to tell that are watched. A board has some hundred; of further ones
/// nothing is told.
pub const NOTICE_SESSIONS_MAX: usize = 1_024;

/// Open matters of one session that are watched. A batch seldom asks for more than a dozen things;
/// further ones are told of as room is made.
pub const NOTICE_MATTERS_MAX: usize = 64;

/// Matters that are named in a summary; the rest is counted.
pub const NOTICE_SUMMARY_MAX: usize = 8;

/// Notices that are remembered, also over a restart, so that none is told twice: weeks of them.
pub const NOTICES_REMEMBERED_MAX: usize = 2_048;

/// Longest title and text of a notice: two lines of a phone's lock screen, and what one push holds.
pub const NOTICE_TITLE_CHARS_MAX: usize = 80;
pub const NOTICE_TEXT_CHARS_MAX: usize = 240;

/// Longest command that a notice offers Allow for. Phones and desktops cut what is longer.
pub const NOTICE_ALLOW_CHARS_MAX: usize = 120;

/// Ranges of quiet hours that an operator may name.
pub const QUIET_RANGES_MAX: usize = 16;

/// Longest answer of a model that is kept: half of what an entry of the journal may have, which
/// holds its text and its calls beside it. A longer one is a failed answer.
pub const FROZEN_BYTES_MAX: usize = 4 << 20;

/// Deepest nesting of an answer's JSON: an entry and a snapshot wrap it in a dozen levels, and what
/// they hold has to be readable again.
pub const FROZEN_DEPTH_MAX: usize = 64;

/// Most calls of one answer. Models make a dozen at most; each becomes a run of its own.
pub const CALLS_PER_ANSWER_MAX: usize = 128;

/// Longest conversation that a model is asked with: half of what a snapshot may have. Models
/// take far less; beyond it the operator is told to begin a new session.
pub const CONVERSATION_BYTES_MAX: usize = 12 << 20;

/// Longest output of a call that is given to the model. Tools cut theirs before.
pub const CALL_OUTPUT_BYTES_MAX: usize = 1 << 20;

/// How much is kept of what came out of a call of an agent that runs its own tools: beginning and
/// end. The agent has the whole; every note of a logbook may hold one.
pub const THEIR_OUTPUT_BYTES_MAX: usize = 4 << 10;

/// Runs, errors and turns of a driven session's state that its logbook keeps, the newest. A page
/// shows about so many beside what was said; each takes some hundred bytes of a snapshot.
pub const NOTES_MAX: usize = 256;

/// Longest arguments that are noted whole: a command, a path, a small change.
pub const NOTE_ARGUMENTS_BYTES_MAX: usize = 4 << 10;

/// Texts of longer arguments that are noted, and how much of each.
pub const NOTE_FIELDS_MAX: usize = 6;
pub const NOTE_TEXT_CHARS_MAX: usize = 600;
