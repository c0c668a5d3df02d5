//! Gemini CLI: `settings.json` in `~/.gemini`.
//!
//! Seen with 0.61.0: comments are allowed; with a trailing comma or a byte order mark it does not
//! start. While the daemon is away it prints export errors at its end and takes seconds longer.

use super::wanted::{Dialect, Entry, OTLP_ENDPOINT, Telemetry, Wanted, command, waiting_command};

pub const NAME: &str = "gemini-cli";

/// All but the one in which a rule may deny. Left out: `BeforeModel AfterModel BeforeToolSelection` (once a chunk or call: 37 runs for three
/// tools) and `PreCompress` (before each model call, compression or not).
const EVENTS: [&str; 6] =
    ["SessionStart", "SessionEnd", "BeforeAgent", "AfterAgent", "AfterTool", "Notification"];

/// Milliseconds here. The forwarder needs 200 at worst.
const TIMEOUT_MS: u32 = 5_000;

/// The tool waits for this one: the daemon says at once whether a rule denies it, and whoever does
/// not reach the daemon goes on at once.
const VERDICT_TIMEOUT_S: u32 = 15;

pub fn wanted(forwarder: &str) -> Wanted {
    let command = command(forwarder, NAME);
    let entry =
        |event| Entry::new(event, &command).with("name", "quarterdeck").with("timeout", TIMEOUT_MS);
    let waiting = waiting_command(forwarder, NAME, VERDICT_TIMEOUT_S, " --holds-agent");
    let judged = Entry::new("BeforeTool", &waiting)
        .with("name", "quarterdeck")
        .with("timeout", VERDICT_TIMEOUT_S * 1_000);
    let entries = EVENTS.into_iter().map(entry).chain([judged]).collect();
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
