//! Gemini CLI: `settings.json` in `~/.gemini`.
//!
//! Seen with 0.61.0: comments are allowed; with a trailing comma or a byte order mark it does not
//! start. While the daemon is away it prints export errors at its end and takes seconds longer.

use super::wanted::{Dialect, Entry, OTLP_ENDPOINT, Telemetry, Wanted, command};

pub const NAME: &str = "gemini-cli";

/// Left out: `BeforeModel AfterModel BeforeToolSelection` (once a chunk or call: 37 runs for three
/// tools) and `PreCompress` (before each model call, compression or not).
const EVENTS: [&str; 7] = [
    "SessionStart",
    "SessionEnd",
    "BeforeAgent",
    "AfterAgent",
    "BeforeTool",
    "AfterTool",
    "Notification",
];

/// Milliseconds here. The forwarder needs 200 at worst.
const TIMEOUT_MS: u32 = 5_000;

pub fn wanted(forwarder: &str) -> Wanted {
    let command = command(forwarder, NAME);
    let entry =
        |event| Entry::new(event, &command).with("name", "quarterdeck").with("timeout", TIMEOUT_MS);
    let entries = EVENTS.into_iter().map(entry).collect();
    Wanted { dialect: Dialect::Comments, entries, telemetry: None }
}

/// Its settings have no place for a token: the client takes that from
/// `OTEL_EXPORTER_OTLP_HEADERS` in its environment.
pub fn telemetry() -> Telemetry {
    let values = vec![
        ("enabled", true.into()),
        ("target", "local".into()),
        ("otlpEndpoint", OTLP_ENDPOINT.into()),
        ("otlpProtocol", "http".into()),
        ("logPrompts", false.into()),
    ];
    Telemetry { section: "telemetry", anchor: "otlpEndpoint", values }
}
