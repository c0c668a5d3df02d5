//! Claude Code: `settings.json` in `CLAUDE_CONFIG_DIR` or `~/.claude`.
//!
//! Seen with 2.1.325: the file is strict JSON (one comment, and none of its hooks are loaded), a
//! byte order mark is accepted, an unknown event does no harm.

use super::wanted::{Dialect, Entry, OTLP_ENDPOINT, Telemetry, Wanted, command};

pub const NAME: &str = "claude-code";

/// The events we listen to, and whether the client waits for the forwarder. Left out:
/// `WorktreeCreate` (whoever answers it replaces the client's own work: never), `MessageDisplay`
/// and `FileChanged` (noise), and those that say nothing about the state or only repeat what comes
/// with each event (`WorktreeRemove UserPromptExpansion PreModelSwitch PostModelSwitch Setup
/// TeammateIdle TaskCreated ConfigChange InstructionsLoaded CwdChanged DirectoryAdded`).
const EVENTS: [(&str, Delivery); 19] = [
    ("SessionStart", Delivery::Awaited),
    ("SessionEnd", Delivery::Awaited),
    ("UserPromptSubmit", Delivery::Awaited),
    ("PreToolUse", Delivery::Background),
    ("PermissionRequest", Delivery::Awaited),
    ("PermissionDenied", Delivery::Background),
    ("PostToolUse", Delivery::Background),
    ("PostToolUseFailure", Delivery::Background),
    ("PostToolBatch", Delivery::Background),
    ("Stop", Delivery::Awaited),
    ("StopFailure", Delivery::Awaited),
    ("SubagentStart", Delivery::Background),
    ("SubagentStop", Delivery::Background),
    ("PreCompact", Delivery::Background),
    ("PostCompact", Delivery::Background),
    ("Notification", Delivery::Background),
    ("TaskCompleted", Delivery::Background),
    ("Elicitation", Delivery::Background),
    ("ElicitationResult", Delivery::Background),
];

/// `Awaited` where the client may be gone before a background process has run (its start, its
/// ends), where the answer will matter, and where a turn begins: a background process is stamped
/// when it runs, and on a busy machine the turn may be over by then.
#[derive(Clone, Copy, PartialEq)]
enum Delivery {
    Awaited,
    Background,
}

/// The forwarder needs 0.2 s at worst; a machine under load gets some more. `SessionEnd` would
/// otherwise get 1.5 s and all others ten minutes.
const TIMEOUT_S: u32 = 5;

pub fn wanted(forwarder: &str) -> Wanted {
    let command = command(forwarder, NAME);
    let entry = |(event, delivery)| {
        let entry = Entry::new(event, &command).with("timeout", TIMEOUT_S);
        match delivery {
            Delivery::Awaited => entry,
            Delivery::Background => entry.with("async", true),
        }
    };
    let entries = EVENTS.into_iter().map(entry).collect();
    Wanted { dialect: Dialect::Strict, entries, telemetry: None }
}

pub fn telemetry(token: Option<&str>) -> Telemetry {
    let mut values = vec![
        ("CLAUDE_CODE_ENABLE_TELEMETRY", "1".into()),
        ("OTEL_LOGS_EXPORTER", "otlp".into()),
        ("OTEL_METRICS_EXPORTER", "otlp".into()),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json".into()),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", OTLP_ENDPOINT.into()),
    ];
    if let Some(token) = token {
        let header = format!("Authorization=Bearer {token}");
        values.push(("OTEL_EXPORTER_OTLP_HEADERS", header.into()));
    }
    Telemetry { section: "env", anchor: "OTEL_EXPORTER_OTLP_ENDPOINT", values }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replacement_hook_is_never_wanted() {
        let wanted = wanted("/opt/qd-hook");
        assert!(wanted.entries.iter().all(|entry| entry.event != "WorktreeCreate"));
    }
}
