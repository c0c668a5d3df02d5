//! Everything that can grow, with its maximum and the reason for it, and every wait.

use std::time::Duration;

/// Longest body of a hook. It is abridged while it comes, so that its length costs no memory.
pub const HOOK_BYTES_MAX: usize = 64 << 20;

/// Longest telemetry body, unpacked. Exporters send some hundred records at a time.
pub const OTLP_BYTES_MAX: usize = 4 << 20;

/// Longest file with a token: the token, and a line end that an editor left.
pub const TOKEN_FILE_BYTES_MAX: u64 = 4 << 10;

/// Longest file with the browsers that signed in: as many as there may be, half a kilobyte each.
pub const BROWSERS_FILE_BYTES_MAX: u64 = 1 << 20;

/// Longest body of any other request.
pub const BODY_BYTES_MAX: usize = 1 << 20;

/// Messages of a driven session's detail unless it is asked for more: its page looks often, and
/// each may hold a whole file.
pub const MESSAGES: usize = 50;

/// Entries of a transcript's page unless it is asked for otherwise: two screens full.
pub const TRANSCRIPT_ENTRIES: usize = 50;

/// Connections of the socket at once. Most forwarders stay for milliseconds, a quarter of these at
/// most may wait for an answer, and each of the others is a command that somebody runs.
pub const SOCKET_CONNECTIONS_MAX: usize = 1_024;

/// Connections of the port at once: browsers, phones, telemetry exporters.
pub const TCP_CONNECTIONS_MAX: usize = 1_024;

/// Each of the two doors gets this part of the files that the process may open. The rest is for the
/// journal, session files and the programs of agents.
pub const FILES_PER_DOOR: usize = 4;

/// What the kernel keeps of an answer that is not read. It would take megabytes for each.
pub const SEND_BUFFER_BYTES: usize = 128 << 10;

/// A forwarder that says nothing for this long is gone. It has a fifth of a second.
pub const FRAME_WAIT_MAX: Duration = Duration::from_secs(10);

/// How long a forwarder that waited may take to say that it has the reply. It does so at once; on a
/// machine that is short of everything it may have to be loaded again first.
pub const REPLY_WAIT_MAX: Duration = Duration::from_secs(5);

/// A client has this long to send the head of a request.
pub const HEAD_WAIT_MAX: Duration = Duration::from_secs(10);

/// The body of a request of the port has to be here in this time: a few megabytes at most, and most
/// are a few bytes.
pub const BODY_WAIT_MAX: Duration = Duration::from_secs(20);

/// A code and a bit of JSON around it. Anybody may send this much.
pub const SIGN_IN_BYTES_MAX: usize = 4 << 10;

/// Whoever does not read [`WRITE_PROGRESS_BYTES`] of its answer in this time is gone. A page that was
/// asleep comes back, and goes on where it was.
pub const WRITE_WAIT_MAX: Duration = Duration::from_secs(30);
pub const WRITE_PROGRESS_BYTES: usize = 64 << 10;

/// Streams of one caller of the port. A browser opens six connections to a host, and one that comes
/// through a proxy has as many as its tabs.
pub const STREAMS_PER_CALLER_MAX: usize = 32;

/// Bytes of news that a reader gets in one piece, and that wait for it if it does not read.
pub const STREAM_PIECE_BYTES_MAX: usize = 256 << 10;

/// Between two signs of life on a silent stream: proxies and phones close what is silent for a
/// minute or so.
pub const STREAM_PING_EVERY: Duration = Duration::from_secs(15);

/// How long a page counts as looked at without saying so again. It says so every half minute, and
/// one such word may be lost.
pub const PRESENCE_LIVES: Duration = Duration::from_secs(75);

/// What a tab calls itself: a UUID is 36.
pub const TAB_BYTES_MAX: usize = 64;

/// Cards that changed last and are kept as they are sent; and at most twice as many. The others are
/// packed: a board of thousands is some kilobytes for each.
pub const PLAIN_CARDS_MAX: usize = 256;

/// Frames of the stream that are kept for readers who come back or are behind. A phone that was
/// asleep for some minutes on a busy day goes on without a snapshot.
pub const RING_FRAMES_MAX: usize = 4_096;

/// Bytes of them: a card has some 1,500, one with a long plan in it some tens of thousands.
pub const RING_BYTES_MAX: usize = 8 << 20;

/// How long a reader waits between two pieces, for each other reader. One alone gets everything at
/// once; a thousand get 40 pieces a second each, and a core is enough.
pub const STREAM_GAP_PER_READER: Duration = Duration::from_micros(25);

/// Wrong tokens within [`GUESS_WINDOW`] after which whoever sends another is told to wait. A right
/// one is taken all the same.
pub const GUESSES_MAX: u32 = 60;

pub const GUESS_WINDOW: Duration = Duration::from_secs(60);

/// Wrong codes within a minute after which whoever sends another is told to wait. The right one is
/// taken all the same.
pub const WRONG_CODES_MAX: u32 = 20;

/// A link to sign in with is used at once, or by a phone that has to be fetched first.
pub const LINK_LIVES_S: u64 = 10 * 60;

/// The file that leads a browser to its link: a browser that has to be started first reads it
/// within seconds.
pub const SIGN_IN_FILE_LIVES: Duration = Duration::from_secs(60);

/// Links that wait to be used; the oldest goes.
pub const LINKS_MAX: usize = 16;

/// A browser that nobody opened for a quarter signs in again.
pub const BROWSER_LIVES_S: u64 = 90 * 24 * 60 * 60;

/// Between two looks for browsers that stayed away for that long.
pub const EXPIRY_LOOK_EVERY: Duration = Duration::from_secs(60 * 60);

/// Browsers that are signed in; the one that was seen longest ago goes.
pub const BROWSERS_MAX: usize = 64;

/// What a browser calls itself.
pub const BROWSER_NAME_BYTES_MAX: usize = 200;

/// Requests of one caller that the port answers at once, and each second after that; reports of
/// agents do not count. A page makes a dozen when it opens.
pub const REQUESTS_AT_ONCE: u32 = 1_000;
pub const REQUESTS_PER_S: u32 = 50;

/// Callers whose requests are counted; those who rest are forgotten.
pub const CALLERS_MAX: usize = 256;

/// Lines of the log about requests of the port that were answered: so many at once, then so many a
/// second.
pub const ANSWERED_LINES_AT_ONCE: u32 = 200;
pub const ANSWERED_LINES_PER_S: f64 = 5.0;

/// And about those that were refused.
pub const REFUSED_LINES_AT_ONCE: u32 = 20;
pub const REFUSED_LINES_PER_S: f64 = 0.2;

/// Of a path, in such a line.
pub const LOGGED_PATH_BYTES_MAX: usize = 200;

/// What a caller calls one attempt: a UUID is 36.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 128;

/// Longest prompt: a page of text many times over, and what a hook may pass on.
pub const PROMPT_BYTES_MAX: usize = 64 << 10;

/// Bytes that one connection buffers: the longest head of a request, many times over.
pub const STREAM_BUFFER_BYTES: usize = 64 << 10;

/// After a connection could not be accepted.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Bytes of frames read at once. A frame has a few thousand.
pub const FRAME_BUFFER_BYTES: usize = 16 << 10;

/// Longest name of a model or a provider.
pub const NAME_BYTES_MAX: usize = 256;

/// Longest path of a workspace: what the system itself takes.
pub const WORKSPACE_BYTES_MAX: usize = 4_096;
