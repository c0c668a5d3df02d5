//! Codex: `hooks.json` and `config.toml` in `CODEX_HOME` or `~/.codex`.
//!
//! Seen with 0.166.0 and 0.169.0: a hook runs only after its hash was written to `config.toml`
//! under `hooks.state`; see [`super::trust`]. Groups are known by their index there, so ours goes
//! last and is changed in place. It reads no `hooks.json` that starts with a byte order mark or
//! holds anything but `hooks` and a `description`; the trust step says so. An event that a version
//! does not know does no harm.

use super::wanted::{
    AfterTools, Dialect, Entry, HOOKS_TIMEOUT_S, Wanted, command, waiting_command,
};

pub const NAME: &str = "codex";

/// All but the one that is answered. The client waits where its process may be gone before a
/// background one has run, and where a late word would reopen what has ended since.
const EVENTS: [(&str, bool); 13] = [
    ("SessionStart", true),
    ("SessionEnd", true),
    ("UserPromptSubmit", false),
    ("PreToolUse", false),
    ("PostToolUse", false),
    ("PreCompact", false),
    ("PostCompact", false),
    ("SubagentStart", false),
    ("SubagentStop", false),
    ("PreModelRequest", true),
    ("PostModelRequest", false),
    ("Interrupt", true),
    ("Stop", true),
];

/// The forwarder needs 0.2 s at worst. More than 3 s on `SessionEnd` makes Codex warn.
const TIMEOUT_S: u32 = 3;

/// Its own dialog comes only when the hook has ended, so the operator has half a minute elsewhere.
/// A hook that leaves by itself falls through in silence; one that is ended is shown as failed.
const ANSWER_TIMEOUT_S: u32 = 40;

pub fn wanted(forwarder: &str, after_tools: AfterTools) -> Wanted {
    let command = command(forwarder, NAME);
    let hooked = waiting_command(forwarder, NAME, HOOKS_TIMEOUT_S, " --holds-agent");
    let entry = |(event, awaited)| {
        if (event, after_tools) == ("PostToolUse", AfterTools::Waits) {
            return Entry::new(event, &hooked).with("timeout", HOOKS_TIMEOUT_S);
        }
        let entry = Entry::new(event, &command).with("timeout", TIMEOUT_S);
        if awaited { entry } else { entry.with("async", true) }
    };
    let waiting = waiting_command(forwarder, NAME, ANSWER_TIMEOUT_S, " --holds-agent");
    let answered = Entry::new("PermissionRequest", &waiting).with("timeout", ANSWER_TIMEOUT_S);
    let entries = EVENTS.into_iter().map(entry).chain([answered]).collect();
    Wanted { dialect: Dialect::StrictUnmarked, entries, telemetry: None }
}
