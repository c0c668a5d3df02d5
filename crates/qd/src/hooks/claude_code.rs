//! Claude Code: `settings.json` in `CLAUDE_CONFIG_DIR` or `~/.claude`.
//!
//! Seen with 2.1.325: the file is strict JSON (one comment, and none of its hooks are loaded), a
//! byte order mark is accepted, an unknown event does no harm. While a hook on `PermissionRequest`
//! runs, the dialog is on screen and can be answered there; the hook is then not told.

use super::wanted::{
    AfterTools, Dialect, Entry, HOOKS_TIMEOUT_S, OTLP_ENDPOINT, Telemetry, Wanted, command,
    waiting_command,
};

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
    ("PermissionRequest", Delivery::Answered),
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
/// ends), and where a turn begins: a background process is stamped when it runs, and on a busy
/// machine the turn may be over by then. `Answered` where the operator's answer comes back.
#[derive(Clone, Copy, PartialEq)]
enum Delivery {
    Answered,
    Awaited,
    Background,
}

/// The forwarder needs 0.2 s at worst; a machine under load gets some more. `SessionEnd` would
/// otherwise get 1.5 s and all others ten minutes.
const TIMEOUT_S: u32 = 5;

/// A request or an idle session may wait until the next morning. The forwarder goes earlier: with
/// its session, and when the daemon says so.
const ANSWER_TIMEOUT_S: u32 = 24 * 60 * 60;

pub fn wanted(forwarder: &str, after_tools: AfterTools) -> Wanted {
    let command = command(forwarder, NAME);
    let waiting = |options| waiting_command(forwarder, NAME, ANSWER_TIMEOUT_S, options);
    let hooked = waiting_command(forwarder, NAME, HOOKS_TIMEOUT_S, " --holds-agent");
    let entry = |(event, delivery)| match delivery {
        Delivery::Background if (event, after_tools) == ("PostToolBatch", AfterTools::Waits) => {
            Entry::new(event, &hooked).with("timeout", HOOKS_TIMEOUT_S)
        }
        Delivery::Answered => Entry::new(event, &waiting("")).with("timeout", ANSWER_TIMEOUT_S),
        Delivery::Awaited => Entry::new(event, &command).with("timeout", TIMEOUT_S),
        Delivery::Background => {
            Entry::new(event, &command).with("timeout", TIMEOUT_S).with("async", true)
        }
    };
    // Beside the one that sends: an exit with 2 makes a prompt for the session that stopped.
    let rewake = Entry::new("Stop", &waiting(" --event Stop"))
        .with("timeout", ANSWER_TIMEOUT_S)
        .with("asyncRewake", true);
    let entries = EVENTS.into_iter().map(entry).chain([rewake]).collect();
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
        let wanted = wanted("/opt/qd-hook", AfterTools::Waits);
        assert!(wanted.entries.iter().all(|entry| entry.event != "WorktreeCreate"));
    }
}
