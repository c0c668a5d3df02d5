//! Everything that can grow or wait, with its maximum and the reason for it.

use std::time::Duration;

/// How long a test waits for an event. A client starts in one to three seconds; a loaded
/// machine multiplies that, and a wait that succeeds costs nothing.
pub const WAIT_MAX: Duration = Duration::from_secs(60);

/// How long killed processes may take to be gone. SIGKILL needs no answer, only a scheduler.
pub const KILL_WAIT_MAX: Duration = Duration::from_secs(10);

/// Rounds of looking for what a client left behind: a process that forks while it is being
/// killed is found in the next round.
pub const KILL_ROUNDS_MAX: usize = 20;

/// Longest request head. Agents send long beta headers, never more than a few kilobytes.
pub const HTTP_HEAD_BYTES_MAX: usize = 64 << 10;

/// Most header lines in a head.
pub const HTTP_HEADERS_MAX: usize = 100;

/// Largest body in either direction. A real first request is 100–300 KB of prompt and tools.
pub const HTTP_BODY_BYTES_MAX: usize = 32 << 20;

/// Connections served at once. A client holds a handful; more is a client gone wild.
pub const CONNECTIONS_MAX: usize = 256;

/// Requests kept. A client that retries for ever must not eat the machine: further requests
/// are refused with 503 and not kept.
pub const REQUESTS_MAX: usize = 2_000;

/// Bytes of request bodies kept, for the same reason.
pub const REQUEST_BYTES_MAX: usize = 256 << 20;

/// Responses remembered on one WebSocket: a request there names the one it continues, which is
/// nearly always the last.
pub const WEBSOCKET_RESPONSES_MAX: usize = 64;

/// Pieces a text is streamed in: enough to be a stream.
pub const STREAM_PIECES: usize = 4;

/// Raw terminal output kept for a failure's message; the screen itself has a fixed size.
pub const TERMINAL_OUTPUT_BYTES_MAX: usize = 256 << 10;

/// Writes that wait for a client to read its input. A client that reads none of this many is
/// stuck, and the test is told so instead of hanging with it.
pub const INPUT_WRITES_MAX: usize = 256;

/// Longest line of a headless client; agents put whole tool results on one.
pub const LINE_BYTES_MAX: usize = 8 << 20;

/// Lines of a headless client kept. Later ones are counted, not kept.
pub const LINES_MAX: usize = 20_000;

/// Bytes of lines kept, for lines that are long.
pub const LINES_BYTES_MAX: usize = 64 << 20;

/// How much of what was seen goes into an error's message.
pub const SEEN_BYTES_MAX: usize = 8 << 10;
