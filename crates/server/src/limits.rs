//! Everything that can grow, with its maximum and the reason for it, and every wait.

use std::time::Duration;

/// Longest body of a hook: what the forwarder sends at most.
pub const HOOK_BYTES_MAX: usize = 1 << 20;

/// Longest telemetry body, unpacked. Exporters send some hundred records at a time.
pub const OTLP_BYTES_MAX: usize = 4 << 20;

/// Longest body of any other request.
pub const BODY_BYTES_MAX: usize = 1 << 20;

/// Entries of a transcript's page unless it is asked for otherwise: two screens full.
pub const TRANSCRIPT_ENTRIES: usize = 50;

/// Connections of the socket at once. Forwarders stay for milliseconds; each of the others is a
/// command that somebody runs.
pub const SOCKET_CONNECTIONS_MAX: usize = 1_024;

/// Connections of the port at once: browsers, phones, telemetry exporters.
pub const TCP_CONNECTIONS_MAX: usize = 1_024;

/// A forwarder that says nothing for this long is gone. It has a fifth of a second.
pub const FRAME_WAIT_MAX: Duration = Duration::from_secs(10);

/// A client has this long to send the head of a request.
pub const HEAD_WAIT_MAX: Duration = Duration::from_secs(10);

/// Between two signs of life on a silent stream: proxies and phones close what is silent for a
/// minute or so.
pub const STREAM_PING_EVERY: Duration = Duration::from_secs(25);

/// Wrong tokens within [`GUESS_WINDOW`] after which the port refuses to look at more. Nobody
/// guesses 256 bits; this keeps the log readable.
pub const GUESSES_MAX: u32 = 60;

pub const GUESS_WINDOW: Duration = Duration::from_secs(60);

/// Bytes that one connection buffers: the longest head of a request, many times over.
pub const STREAM_BUFFER_BYTES: usize = 64 << 10;

/// After a connection could not be accepted.
pub const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Bytes of frames read at once. A frame has a few thousand.
pub const FRAME_BUFFER_BYTES: usize = 16 << 10;
