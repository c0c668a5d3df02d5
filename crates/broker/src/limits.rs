//! Everything that can grow, with its maximum and the reason for it, and every wait.

use std::time::Duration;

/// Sessions kept in memory: as many as the journal keeps. At rest one takes less than
/// [`RESTING_BYTES_MAX`].
pub const SESSIONS_MAX: usize = 20_000;

/// What a session at rest takes, all that is kept of it together: about half of it the session with
/// the maps that find it, the rest its card as readers get it. A test counts the bytes.
pub const RESTING_BYTES_MAX: usize = 2 << 10;

/// How long a session stays awake that nothing is heard of, and at most twice as long. An agent at
/// work says something every few seconds; packing and unpacking takes some ten microseconds.
pub const REST_AFTER_MS: u64 = 30_000;

/// Sessions that may wake, or begin, before others are sent to rest early. One awake takes some ten
/// kilobytes, and a restart brings thousands at once.
pub const WOKEN_MAX: usize = 256;

/// Longest file of an operator's layers: a hundred rules with room for comments.
pub const LAYERS_FILE_BYTES_MAX: u64 = 64 << 10;

/// Longest file of a policy, the operator's or a repository's, and longest settings of a client
/// that are looked into for what they forbid.
pub const POLICY_FILE_BYTES_MAX: u64 = 256 << 10;

/// Longest file of our own in the state folder: keys, devices, what was told.
pub const PRIVATE_FILE_BYTES_MAX: u64 = 16 << 20;

/// Folders above a session's that are looked through for a repository's policy.
pub const REPOSITORY_DEPTH_MAX: usize = 32;

/// Links that a path is followed through, as the kernel does.
pub const LINKS_MAX: usize = 40;

/// Past requests that a policy is tried on, the newest; the others are counted.
pub const PAST_REQUESTS_MAX: usize = 10_000;

/// How long an ended session stays on the board; then it is history.
pub const ENDED_SHOWN_MS: u64 = 24 * 60 * 60 * 1_000;

/// Longest header line of a hook frame. Ours have about 200 bytes; the rest is room for fields
/// that a newer forwarder adds.
pub const HEADER_BYTES_MAX: usize = 1 << 10;

/// Longest payload of a hook frame. A file of some megabytes is an ordinary one to write, and a
/// rule has to judge all of it; what is longer the forwarder abridges. No more than a megabyte of
/// it is kept, but for those who wait: see [`WHOLE_BYTES_ALL_MAX`].
pub const PAYLOAD_BYTES_MAX: usize = 16 << 20;

/// Processes above a forwarder that are looked at: an agent, its shell and its wrappers, a
/// terminal, a session of the system.
pub const ANCESTORS_MAX: usize = 32;

/// Sessions of which it is known who spoke for them; the one that was silent for longest goes.
pub const VOICES_MAX: usize = 4_096;

/// Programs that are counted which run hooks of other clients. Few are known to; whoever makes up
/// more names is not worth remembering.
pub const OTHER_CALLERS_MAX: usize = 16;

/// Longest payload of a waiting forwarder that is held whole without asking for room.
pub const WHOLE_BYTES_FREE: usize = 1 << 20;

/// Bytes of longer payloads that are held whole for all waiting forwarders together. Who comes
/// then is judged by what is left after abridging, and a person is asked more often.
pub const WHOLE_BYTES_ALL_MAX: usize = 64 << 20;

/// Longest harness or event name in a header. The longest vendor's name has 20 letters.
pub const NAME_BYTES_MAX: usize = 64;

/// Frames taken from sockets and not yet in the journal. One group commit holds a few hundred;
/// beyond this the daemon is behind, and a refused forwarder spools instead.
pub const IN_FLIGHT_MAX: usize = 4_096;

/// Frame ids remembered after they were taken. More than the journal remembers: it refuses a batch
/// with a frame that it knows, and with it the others of that batch.
pub const KNOWN_IDS_MAX: usize = qd_store::limits::DELIVERIES_MAX as usize + 4 * BATCH_FRAMES_MAX;

/// Forwarders that wait at once: each idle session has one and each open request another. A quarter
/// of the file descriptors that a program may have; who comes then is released.
pub const WAITERS_MAX: usize = 256;

/// Longest text that a waiting forwarder prints; it takes no longer one. It may be a tool's whole
/// input with the operator's changes, which came in a payload, spelled with more escapes.
pub const REPLY_TEXT_BYTES_MAX: usize = 2 << 20;

/// Orders and file lines taken before the loop looks at everything else again.
pub const ORDERS_PER_TURN: usize = 256;

/// Changes kept for those who read the stream slowly; who is further behind starts anew from the
/// whole board.
pub const CHANGES_KEPT: usize = 4_096;

/// Raw signals kept for those who record them and read slowly; what they miss is counted.
pub const TAPPED_SIGNALS_KEPT: usize = 64;

/// Longest payload that a recorder is given. With the number kept it bounds what a slow one can
/// hold: 64 MiB. Transcript lines may be longer; such a one is counted as missed.
pub const TAPPED_BYTES_MAX: usize = 1 << 20;

/// Entries, changes and waiting senders of one batch. Far more than come during one sync; beyond it the
/// disk is slow and the sources wait.
pub const PENDING_ITEMS_MAX: usize = 16_384;

/// Bytes of the hooks and entries in one batch: less than half of what the journal takes at once, so
/// that what one more input brings still fits.
pub const PENDING_BYTES_MAX: usize = 6 << 20;

/// Between two tries of a journal that cannot be written, as on a full disk.
pub const JOURNAL_RETRY_EVERY: Duration = Duration::from_secs(1);

/// Agents that run and are listed although nobody can read them. An operator runs a dozen.
pub const AGENT_PROCESSES_MAX: usize = 64;

/// Files of one process that are looked at for sockets. A client has some dozen.
pub const SOCKETS_MAX: usize = 1_024;

/// Longest sleep while something is due. A suspended machine does not count its sleep, so the
/// clock is looked at now and then.
pub const SLEEP_MAX: Duration = Duration::from_secs(600);

/// Files looked at in one listing of the spool, oldest first; the rest waits for the next listing.
/// Forwarders leave up to 64 MiB there, which is some 16,000 files.
pub const SPOOL_LISTING_MAX: usize = 4_096;

/// Frames of one batch from the spool: what one group commit takes.
pub const BATCH_FRAMES_MAX: usize = 256;

/// Payload bytes after which a batch is full, so that draining never needs more memory than
/// this and one frame.
pub const BATCH_BYTES_MAX: usize = 4 << 20;

/// Age after which a half-written file has no writer any more. A forwarder lives for about a
/// quarter of a second, and its disk may be slow.
pub const PART_STALE_MS: u64 = 10_000;

/// How coarse the clock of a file system may be: two changes of a folder within that time may bear
/// the same stamp. Linux stamps with the timer's tick, ten milliseconds at most.
pub const FOLDER_CLOCK_MS: u64 = 20;

/// Files kept that are no frames. They are evidence of a fault, not data: the oldest goes first
/// and is counted.
pub const ASIDE_FILES_MAX: usize = 64;

/// Bytes of the loss file that are read. One byte is one lost frame, so the count ends here and
/// means "at least"; the forwarder stops writing at the same size.
pub const LOSSES_MAX: u64 = 1 << 20;

/// Bytes of a session file read at once, and how much of a big one is read when it is first seen:
/// about the last twenty turns, which is what a card needs.
pub const WINDOW_BYTES: usize = 256 << 10;

/// Bytes of the first lines of such a file that are read as well: whose session it is, and its
/// first prompt.
pub const HEAD_BYTES: usize = 32 << 10;

/// Longest of these lines. Codex writes its whole instructions into the first one.
pub const HEAD_LINE_BYTES_MAX: u64 = 512 << 10;

/// Longest transcript line we keep. Agents put whole tool results on one line, so it is generous;
/// a longer one is skipped and reported, and does not stop the reader.
pub const TRANSCRIPT_LINE_BYTES_MAX: usize = 4 << 20;

/// Bytes before the place where reading stopped that are looked at again, to know a file that was
/// written anew. A line of any agent differs in that many bytes: they hold a time or an id.
pub const MARK_BYTES: usize = 64;

/// Directories watched. Half of what older kernels grant one user for all programs together; the
/// rest is listed now and then.
pub const WATCHES_MAX: usize = 4_096;

/// Directories known in all trees together, watched or not. Ten years of daily use make a few
/// thousand.
pub const WATCHED_DIRS_MAX: usize = 32_768;

/// Files known in all trees together, about 200 bytes each. Ten sessions a day for ten years are
/// 36,500.
pub const WATCHED_FILES_MAX: usize = 131_072;

/// Unreadable directories remembered, so that each is spoken of once.
pub const TROUBLED_PATHS_MAX: usize = 256;

/// Between two listings of directories that cannot be watched: an operator waits that long
/// without wondering, and listing a thousand directories takes a few milliseconds.
pub const RESCAN_EVERY: Duration = Duration::from_secs(2);

/// Processes whose end is waited for: each takes a file descriptor, of which a program may have
/// 1,024. Far more than agents fit on one machine.
pub const PROCESSES_MAX: usize = 512;

/// Between two looks at a process whose end the kernel does not tell.
pub const PROCESS_POLL_EVERY: Duration = Duration::from_secs(2);

/// Bytes of one file read before the others have their turn.
pub const FILE_TURN_BYTES: u64 = 1 << 20;

/// Between two looks at the files of sessions that work, whatever the kernel told of them: a link
/// to a file elsewhere, a network's disk or a read that failed has no event. Looking costs a few
/// microseconds a file.
pub const LOOK_AGAIN_EVERY: Duration = Duration::from_secs(5);

/// How long after its last line a file is looked at so: a model or a command seldom takes longer.
pub const LOOK_AGAIN_FOR_MS: u64 = 10 * 60 * 1_000;

/// Files looked at so; those read longest ago go first.
pub const LOOK_AGAIN_FILES_MAX: usize = 256;

/// Half lines kept in memory, of all files together. Beyond it a half line is read again from
/// its beginning.
pub const HALF_LINES_BYTES_MAX: usize = 16 << 20;

/// Batches of lines read and not yet taken. One has about a window of bytes, at worst a turn and
/// a line, so that all of them have 20 MiB at worst.
pub const FILE_BATCHES_MAX: usize = 4;

/// Age after which a session file is history: not read at the start, only when it changes. What
/// ended within a day is on the board.
pub const HISTORY_AGE_MS: u64 = 24 * 60 * 60 * 1_000;

/// Longest registry file. Real ones have less than a thousand bytes.
pub const REGISTRY_BYTES_MAX: u64 = 64 << 10;

/// Ended processes remembered until the registry files they left are removed: the end of each is
/// told once.
pub const ENDED_PROCESSES_MAX: usize = 512;

/// Bytes of the kernel's list of locks that are read: some 50,000 locks. What is not in a longer
/// one may yet be held.
pub const KERNEL_LOCKS_BYTES_MAX: u64 = 4 << 20;

/// When a lock file that was opened is looked at again. Whoever opens one locks it within a
/// millisecond, and the kernel tells of the opening only; the later looks are for a machine that
/// is short of everything.
pub const LOCK_LOOKS: [Duration; 4] = [
    Duration::from_millis(10),
    Duration::from_millis(100),
    Duration::from_secs(1),
    Duration::from_secs(5),
];

/// Lock files followed at once. A client that loads a thousand threads needs a lot of memory first.
pub const LOCKS_MAX: usize = 4_096;

/// Chat files whose holder is looked for and remembered; the one that was silent for longest goes.
pub const CHATS_MAX: usize = 1_024;

/// Chat files that changed and wait to be looked at; one more is looked at with its next change.
pub const TOUCHED_CHATS_MAX: usize = 1_024;

/// Between two looks through all processes: each takes half a millisecond for a hundred of them,
/// and chats change many times a second.
pub const CHAT_LOOK_EVERY: Duration = Duration::from_secs(1);

/// Longest first line of a chat file. Real ones have 250 bytes.
pub const CHAT_HEADER_BYTES_MAX: u64 = 64 << 10;

/// Longest path in a `.project_root` file: what a kernel takes.
pub const PROJECT_ROOT_BYTES_MAX: u64 = 4 << 10;

/// Entries of a folder of chats that are looked at: more are no chats of one project.
pub const CHAT_ENTRIES_MAX: usize = 50_000;

/// Bytes of a command line that are looked at: program, options and script stand at its beginning.
pub const COMMAND_LINE_BYTES_MAX: u64 = 64 << 10;

/// Ancestors of a process that are looked at for a warden. More are a trick, and count as one.
pub const ANCESTORS_SEARCHED_MAX: usize = 1_024;

/// Folders of clients that are followed: profiles of one user, of every client.
pub const CLIENT_FOLDERS_MAX: usize = 32;

/// Between two looks for clients that use another folder than the daemon's. Whoever has hooks is
/// known at once by them.
pub const CLIENT_LOOK_EVERY: Duration = Duration::from_secs(5);

/// How often a process is looked at: it may be about to become another program, and Claude Code's
/// registry file comes a moment after its process, or only once a dialog at its start is answered.
pub const CLIENT_LOOKS: u32 = 12;

/// Longest file in `/proc` about one process's rights.
pub const PROCESS_FILE_BYTES_MAX: u64 = 64 << 10;

/// Findings about holders made and not yet taken; then looking waits.
pub const FINDINGS_MAX: usize = 256;

/// Sessions held by observed processes. A daemon may hold hundreds.
pub const HELD_SESSIONS_MAX: usize = 8_192;

/// Batches of news from servers of clients that are told and not yet taken. Beyond it we stop
/// reading, and the server keeps its words, or drops us and is asked again.
pub const SERVER_BATCHES_MAX: usize = 8;

/// Longest message of a client's server. A handler parses no longer one; what comes unasked has
/// a few kilobytes, a diff in it some hundred.
pub const SERVER_MESSAGE_BYTES_MAX: usize = 4 << 20;

/// How long a server may take to accept, to answer one request, or to take what we send. It is
/// on this machine, but it may be loading a project, and the machine may be busy.
pub const SERVER_REPLY_WAIT: Duration = Duration::from_secs(20);

/// Before a server that failed us is asked again for the first time; doubled with each failure.
pub const RECONNECT_FIRST: Duration = Duration::from_millis(250);

/// The longest wait before it is asked again: an operator who restarts it sees it in that time,
/// and one that is gone for good costs two connects a minute.
pub const RECONNECT_MAX: Duration = Duration::from_secs(30);

/// A connection that lasted this long was a good one: the next failure is its first.
pub const CONNECTION_STEADY: Duration = Duration::from_secs(10);

/// Between two looks for the socket of Codex's daemon while there is none, or none that answers.
/// The kernel tells of a new one; this is for a folder that cannot be watched.
pub const SOCKET_MISSED_EVERY: Duration = Duration::from_secs(30);

/// Between two looks at the kernel's table of sockets while Codex's daemon has no client yet.
pub const SOCKET_LOOK_EVERY: Duration = Duration::from_secs(2);

/// Silence after which Codex's daemon is asked whether it still lives. It says nothing by itself
/// while nobody works.
pub const DAEMON_PING_EVERY: Duration = Duration::from_secs(60);

/// How long a client that has connected to the daemon may take to greet it. It does so at once.
pub const DAEMON_GREETING_WAIT: Duration = Duration::from_millis(500);

/// How long a daemon with threads may be without a client before we are its first. The terminal
/// that starts one connects to it at once.
pub const DAEMON_ALONE_WAIT: Duration = Duration::from_secs(10);

/// Threads of the daemon that are remembered. It unloads those that nobody looks at after half
/// an hour.
pub const DAEMON_THREADS_MAX: usize = 1_024;

/// Errands to the servers of one source that are under way at once. An operator has a handful; a
/// rule that answers for many sessions at once tries again.
pub const ERRANDS_MAX: usize = 32;

/// How long a server may take for one step of an errand. The operator waits for it.
pub const ERRAND_REPLY_WAIT: Duration = Duration::from_secs(10);

/// How long Codex's daemon may take to send an open request to us, of a thread that waits. It does
/// so at once; a thread that waits for something else would keep us waiting for ever.
pub const REPLAY_WAIT: Duration = Duration::from_secs(5);

/// Open requests that an errand remembers. A thread has one, with subagents a few.
pub const ERRAND_REQUESTS_MAX: usize = 64;

/// Letters of what a server says to an errand that it does not take.
pub const ERRAND_TEXT_CHARS_MAX: usize = 200;

/// Sessions of which it is known on which server they are; the one that was silent for longest
/// goes.
pub const SERVED_SESSIONS_MAX: usize = 4_096;

/// Servers of OpenCode and Kilo that are connected at once.
pub const SERVERS_MAX: usize = 64;

/// Silence after which an event stream is dead: the servers send a heartbeat every ten seconds.
pub const EVENT_SILENCE_MAX: Duration = Duration::from_secs(45);

/// How long after a connect a server of OpenCode is asked once more what is open. It greets before
/// it has subscribed us to its own events; on a loaded machine a second's events were lost so.
pub const SERVER_ASK_AGAIN: Duration = Duration::from_secs(3);

/// Directories of one server that are asked for what is open in them, newest first. Each takes
/// three requests after a connect.
pub const SERVER_DIRECTORIES_MAX: usize = 32;

/// Sessions whose description is asked for after a connect: those that work or wait.
pub const SERVER_SESSIONS_MAX: usize = 128;

/// How deep a session's parents are asked for.
pub const SERVER_PARENTS_MAX: usize = 8;

/// Least time between two looks at the list of processes. It is looked at while new ones may
/// become servers, and when a client wrote into its folder; it is read only if a process was
/// started since.
pub const PROCESS_SCAN_EVERY: Duration = Duration::from_secs(2);

/// Between two looks at every process, whether known or not: one may have become another program,
/// or listen only now.
pub const PROCESS_RESCAN_EVERY: Duration = Duration::from_secs(60);

/// Looks at a new process before it is left to the next full look. A shell's child becomes its
/// program after it was made, and a server needs a few seconds until it listens.
pub const PROCESS_LOOKS: u8 = 5;

/// Bytes of a process's environment that are read: for the password of its server, its terminal, and
/// the folder of its files. It has a few kilobytes.
pub const ENVIRONMENT_BYTES_MAX: u64 = 256 << 10;

/// Bytes of the kernel's table of TCP sockets that are read: some 20,000 sockets.
pub const SOCKET_TABLE_BYTES_MAX: u64 = 3 << 20;

/// Descriptors of a process that are looked at for its listening sockets.
pub const DESCRIPTORS_MAX: usize = 4_096;

/// Threads that read a history: on most machines half the cores or fewer, because agents are at
/// work beside us.
pub const HISTORY_THREADS: usize = 2;

/// How deep folders of session files are entered. Clients use five levels at most; deeper is a
/// mistake or a trap.
pub const HISTORY_DEPTH_MAX: usize = 16;

/// Session files of one history. Years of ten agents a day make about ten thousand; with their
/// paths a million would take 200 MB.
pub const HISTORY_FILES_MAX: usize = 200_000;

/// Entries of folders that are looked at for them: a few files of other kinds lie beside each.
pub const HISTORY_ENTRIES_MAX: usize = 2_000_000;

/// Portions of one file in the index before they are joined: a file that grows while somebody
/// looks again and again adds one each time.
pub const PORTIONS_PER_FILE_MAX: usize = 64;

/// Troubles of a history that are told, of thousands that a lost disk may cause.
pub const HISTORY_TROUBLES_MAX: usize = 200;

/// Bytes before the place where a history stopped that are looked at again. The lines of a session
/// of Claude Code end alike for two hundred bytes: the session, the folder, the version. In so many
/// stand a time and an id.
pub const HISTORY_MARK_BYTES: usize = 1 << 10;

/// How far from a subagent its operator's session is looked for: subagents of subagents are rare,
/// and a damaged database may have a circle.
pub const SUBAGENT_DEPTH_MAX: usize = 16;

/// Lines of one file that came in one by one before what they told is written into the index. A
/// crash costs reading them again.
pub const LIVE_LINES_MAX: usize = 1_024;

/// Bytes of prompts and answers of one file that are held before they are written.
pub const SAID_BATCH_BYTES_MAX: usize = 2 << 20;

/// Sessions of which only their cost is known: files of years.
pub const SPENT_MAX: usize = 100_000;

/// Lines and questions that wait for the bookkeeper. It takes some hundred thousand lines a
/// second; while it reads gigabytes at the start, what does not fit is read from the files.
pub const BOOK_ORDERS_MAX: usize = 4_096;

/// Bytes of lines among them.
pub const BOOK_LINE_BYTES_MAX: usize = 16 << 20;

/// What the bookkeeper has told and the loop has not heard.
pub const BOOK_NEWS_MAX: usize = 64;

/// Session files are looked through again at most this often: thousands of them take milliseconds.
pub const BOOK_READ_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// Lines that are not in the index yet are read again after a crash.
pub const BOOK_SAVED_AFTER: Duration = Duration::from_secs(30);

/// The day's sum goes over every response there is, so it is not made for each.
pub const BOOK_TODAY_AFTER: Duration = Duration::from_secs(2);

/// What was said is put into the search index at most this often.
pub const SEARCH_READ_AGAIN_AFTER: Duration = Duration::from_secs(20);

/// Sessions of one page of the history.
pub const HISTORY_PAGE_MAX: usize = 200;

/// Readers of the journal's past and of transcripts at once. They read for people who look at a
/// page, and each may hold some megabytes; who comes then waits.
pub const READERS_MAX: usize = 4;

/// Entries of one page of a transcript, about: a line may hold several.
pub const TRANSCRIPT_ENTRIES_MAX: usize = 200;

/// Bytes of entries after which a page is full, whatever was asked for.
pub const TRANSCRIPT_PAGE_BYTES_MAX: usize = 4 << 20;

/// Bytes of a file that are read for one page. Between what is shown lie whole requests that are
/// not; a page may come out short, or empty, and the next one goes on.
pub const TRANSCRIPT_PAGE_READ_MAX: u64 = 16 << 20;

/// Bytes before a page in which the calls of its first results are looked for.
pub const CALL_LOOKBACK_BYTES: u64 = 1 << 20;

/// Bytes of a chat file that are read, the last. Lines of it may change others, so all of it has
/// to be read for any part; real ones have a few megabytes.
pub const CHAT_BYTES_MAX: u64 = 64 << 20;

/// Rows of a session in a client's database that are read for its transcript, the last. A turn
/// writes some ten.
pub const TRANSCRIPT_ROWS_MAX: usize = 5_000;

/// Longest chat that is one document: it takes several times that to read it.
pub const CHAT_DOCUMENT_BYTES_MAX: u64 = 16 << 20;

/// Full pages of a session's history that are read for its timeline; the newest is kept. The
/// journal keeps far fewer entries of one session once it had time to fold them.
pub const HISTORY_PAGES_MAX: usize = 8;

/// Facts shown as evidence, the newest.
pub const EVIDENCE_LINES_MAX: usize = 20;

/// Longest line of evidence.
pub const EVIDENCE_TEXT_CHARS_MAX: usize = 200;

/// Longest name of a terminal, a pane or a socket.
pub const TERMINAL_TEXT_BYTES_MAX: usize = 512;

/// How long tmux may take for a question, and how often we look whether it has answered. It takes
/// some milliseconds; a server that hangs must not hold a thread.
pub const TMUX_WAIT: Duration = Duration::from_secs(1);
pub const TMUX_LOOK_EVERY: Duration = Duration::from_millis(2);

/// Longest answer of tmux: a line for each terminal that shows it. A pipe holds so much before
/// anybody reads it.
pub const TMUX_TEXT_BYTES_MAX: u64 = 64 << 10;

/// Terminals that are remembered: of every process that may carry a session.
pub const TERMINALS_MAX: usize = 4_096;

/// Records of decisions that are read at once when we start.
pub const RECORDS_PER_READ: usize = 1_000;

/// Errands that are carried at once. Each is a person's decision or a rule's; one that finds no
/// room has not arrived, and says so.
pub const CARRIED_MAX: usize = 256;

/// How long the hook of a request may keep its agent from asking in the terminal, while the
/// operator looks at its card: those of Claude Code's subagents are waited for before any dialog
/// shows.
pub const HOLD_MS: u64 = 30_000;

/// How long a hook that only a rule may answer stays for it. Files of a repository are read
/// meanwhile, which takes a millisecond; a call of some megabytes takes a while to be judged on a
/// busy machine, and must not get past a rule because of it. Its agent waits; Gemini CLI does so
/// for 15 seconds.
pub const RULING_MS: u64 = 10_000;

/// How long a request that a rule has answered needs nobody, although its agent has not gone on.
/// An agent takes an answer in some ten milliseconds; one that has not taken it by then waits.
pub const RULED_MS: u64 = 10_000;

/// How long a new request needs nobody where rules may answer it and have not been asked: the time
/// until its hook is here and its folder is read, with room for a busy machine.
pub const JUDGING_MS: u64 = 400;

/// Folders whose repositories are remembered: of every session on the board.
pub const FOLDERS_MAX: usize = 4_096;

/// Folders that are looked at at once, and how long a look may take. A network that hangs must not
/// keep the others waiting; what is not known in time is asked.
pub const SURVEYS_MAX: usize = 4;
pub const SURVEY_WAIT: Duration = Duration::from_secs(1);

/// How long a process may take to end after it was asked to.
pub const ENDING_WAIT: Duration = Duration::from_secs(10);

/// Notices that wait for one receiver. Nobody reads more at once; the oldest goes, and is counted.
pub const NOTICES_WAITING_MAX: usize = 64;

/// Devices that are told by Web Push; a person has a handful. The one that came first goes.
pub const DEVICES_MAX: usize = 32;

/// Longest address that a browser's push service gives out. They have some 200 bytes.
pub const ENDPOINT_BYTES_MAX: usize = 1_024;

/// What a device is called, for people.
pub const DEVICE_LABEL_CHARS_MAX: usize = 60;

/// How long a receiver may take to answer a notice, from the connection on.
pub const NOTICE_WAIT: Duration = Duration::from_secs(10);

/// How long a browser that subscribes waits until it is known where its push service is.
pub const NAME_WAIT: Duration = Duration::from_secs(3);

/// How much of a receiver's answer is read: it says why it refused.
pub const NOTICE_ANSWER_BYTES_MAX: usize = 4 << 10;

/// Pauses before a notice that was not taken is tried again. After the last it is given up: an
/// operator who hears of it later than that has looked at the page.
pub const NOTICE_RETRIES: [Duration; 3] =
    [Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(30)];

/// Longest pause that a receiver may ask for.
pub const NOTICE_PAUSE_MAX: Duration = Duration::from_secs(60);

/// How long a push service keeps what it cannot deliver: a phone that was off for half a day is
/// still told; what was settled meanwhile was replaced.
pub const PUSH_TTL_S: u32 = 12 * 60 * 60;

/// How long a signature of ours is good for a push service; they take a day at most.
pub const PUSH_TOKEN_LIVES_S: u64 = 12 * 60 * 60;

/// Longest payload of a push: services take 4096 bytes with the 103 of the encryption.
pub const PUSH_PAYLOAD_BYTES_MAX: usize = 3_500;

/// Notifications on the desktop that can be taken back.
pub const DESKTOP_SHOWN_MAX: usize = 64;

/// Between two looks whether `notify-send` has ended: it takes a few milliseconds.
pub const DESKTOP_LOOK_EVERY: Duration = Duration::from_millis(10);

/// Receivers of one sort that the settings may name.
pub const RECEIVERS_MAX: usize = 8;

/// How long the notices wait between two looks whether everything has been read at the start.
pub const NOTICE_START_LOOK: Duration = Duration::from_millis(250);

/// Longest sleep of the notices: a machine that was suspended wakes with another time.
pub const NOTICE_SLEEP_MAX: Duration = Duration::from_secs(60);

/// Longest key of a model endpoint; the longest, a token of a cloud, has some two thousand bytes.
pub const KEY_BYTES_MAX: usize = 8 << 10;

/// Model endpoints that an operator can name; a person keeps a handful apart.
pub const MODELS_MAX: usize = 100;

/// Processes of one agent that are known as its own: a client, its other self, its tools' servers.
pub const KIN_MAX: usize = 64;

/// ACP agents that an operator can name; a person keeps a handful apart.
pub const AGENT_PROGRAMS_MAX: usize = 100;

/// Pieces of an answer that wait to be told. When they are full the provider is not read on.
pub const MODEL_PIECES_MAX: usize = 256;

/// As much of a project's instructions for agents as goes with every request. The longest in use
/// have some twenty thousand letters.
pub const INSTRUCTIONS_BYTES_MAX: u64 = 64 << 10;

/// How long a connection to a model endpoint may take to be made, TLS included.
pub const MODEL_CONNECT_MAX: Duration = Duration::from_secs(10);

/// How long a model may be silent. Thinking models send a ping every few seconds; the machine's
/// own timer has the same length.
pub const MODEL_SILENCE_MAX: Duration =
    Duration::from_millis(qd_session::limits::LLM_SILENCE_MAX_MS);

/// Largest request to a model. Anthropic takes no more; what is larger fits into no context.
pub const MODEL_REQUEST_BYTES_MAX: usize = 32 << 20;

/// Bytes of one answer as it comes over the wire: each token may be wrapped into some three
/// hundred bytes of an event, and there are at most 128 k of them.
pub const MODEL_RESPONSE_BYTES_MAX: usize = 64 << 20;

/// What is read of a response that is no answer: a message, or the beginning of a page.
pub const MODEL_ERROR_BYTES_MAX: usize = 64 << 10;

/// Sessions that we drive and that have not ended. Each may hold a process tree, an open stream and
/// some megabytes of conversation.
pub const DRIVEN_MAX: usize = 64;

/// Calls that a session makes without anybody being asked, while nobody looks at the board, before
/// it is held.
pub const UNWATCHED_CALLS_MAX: u32 = 50;

/// Reports of runners that the loop has not read. A runner that is faster waits; pieces of answers
/// are joined meanwhile.
pub const REPORTS_MAX: usize = 256;

/// Orders that a harness has not taken. There is one turn at a time; one that is this far behind
/// does not listen.
pub const HARNESS_ORDERS_MAX: usize = 64;

/// Longest text that is joined of pieces which nobody had time for. Beyond it the stream waits.
pub const HELD_PIECE_BYTES_MAX: usize = 64 << 10;

/// How long the end of the program waits for runners to end theirs. Process trees are killed at
/// once; what takes longer is a disk or a kernel that hangs.
pub const CREW_CLEAR_MAX: Duration = Duration::from_secs(10);

/// Messages of a driven session that whoever attaches to it may be given, the newest. They are
/// shared and cost nothing here; who reads them asks for far fewer at a time.
pub const ATTACHED_MESSAGES_MAX: usize = 2_000;

/// Names of tools, and of hooks, that have numbers of their own; further ones are counted together.
/// An MCP server may bring thousands, and who reads the numbers keeps a series for each.
pub const LABELS_MAX: usize = 64;

/// Longest name that is a label. The APIs of models take none that is longer.
pub const LABEL_CHARS_MAX: usize = 128;

/// Longest arguments or message in a line of the log, which are there at debug only.
pub const LOGGED_TEXT_BYTES_MAX: usize = 4 << 10;

/// Spans that wait for their collector, about 1 KiB each: minutes of a busy board. Further ones are
/// dropped and counted.
pub const SPANS_WAITING_MAX: usize = 2_048;

/// Spans of one request to a collector, about 200 KiB: they take requests of some megabytes.
pub const SPAN_BATCH_MAX: usize = 512;

/// How long a span waits for others, so that a turn is one request and not twenty.
pub const SPAN_BATCH_WAIT: Duration = Duration::from_secs(1);

/// For one request to a collector, as other exporters wait.
pub const SPAN_POST_MAX: Duration = Duration::from_secs(10);

/// Before a batch is sent again that may be taken later. Then it is dropped: what comes after it
/// has to wait meanwhile.
pub const SPAN_RETRIES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];

/// Longest pause that a collector may ask for.
pub const SPAN_PAUSE_MAX: Duration = Duration::from_secs(30);

/// For the last batch when the daemon ends. Whoever stops it waits for that.
pub const SPAN_FLUSH_MAX: Duration = Duration::from_secs(3);

/// Longest answer of a collector that is looked at: a number and a sentence.
pub const SPAN_ANSWER_BYTES_MAX: usize = 64 << 10;

/// How long an observed agent is held for post-tool hooks, all that it waits for included. Clients
/// give a hook ten minutes; the forwarder leaves before that, and so it goes before the forwarder.
pub const OBSERVED_HOOKS_MAX: Duration = Duration::from_secs(570);

/// How long after an answer that may have arrived or not it is sent again, the first time: time for
/// the agent's own signals to say that it arrived.
pub const AGAIN_MS: u64 = 5_000;

/// How often that time is doubled. A server that hangs is asked every five minutes in the end.
pub const AGAIN_DOUBLINGS_MAX: u32 = 6;
