//! Programs that run hooks which were installed for another client.
//!
//! Claude Code's settings file is read by others: Grok Build, Cursor, VS Code. Their hooks have
//! Claude Code's names and are about sessions that are none of its own.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::Harness;

/// The product whose hook this is, where the payload shows that it is another's than the client's
/// that the hook was installed for.
pub fn of_hook(installed_for: Harness, payload: &[u8]) -> Option<&'static str> {
    match installed_for {
        Harness::ClaudeCode => of_claude_code_hook(payload),
        Harness::Codex
        | Harness::GeminiCli
        | Harness::KiloCode
        | Harness::Cline
        | Harness::Opencode
        | Harness::Acp
        | Harness::Native => None,
    }
}

fn of_claude_code_hook(payload: &[u8]) -> Option<&'static str> {
    /// Members that Claude Code never writes.
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Marks {
        #[serde(rename = "hookEventName")]
        event_of_grok: Option<IgnoredAny>,
        cursor_version: Option<IgnoredAny>,
    }
    let Marks { event_of_grok, cursor_version } = crate::payload::read(payload)?;
    let cursor = cursor_version.map(|_| CURSOR);
    cursor.or(event_of_grok.map(|_| GROK_BUILD))
}

const CURSOR: &str = "cursor";
const GROK_BUILD: &str = "grok_build";

/// What people call a program that a forwarder or a payload has named.
pub fn display_name(program: &str) -> &str {
    match program {
        GROK_BUILD | "grok" => "Grok Build",
        CURSOR | "cursor-agent" => "Cursor",
        "code" | "code-insiders" => "VS Code",
        "copilot" => "GitHub Copilot",
        "unknown" => "an unknown program",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_clients_payload_shows_whose_it_is() {
        let product = |payload: &str| of_claude_code_hook(payload.as_bytes());
        let grok = r#"{"session_id":"g","hook_event_name":"Stop","hookEventName":"stop"}"#;
        assert_eq!(product(grok), Some("grok_build"));
        let cursor = r#"{"session_id":"c","hook_event_name":"Stop","cursor_version":"1.7"}"#;
        assert_eq!(product(cursor), Some("cursor"));
        let inside =
            r#"{"session_id":"s","tool_input":{"hookEventName":"x"},"prompt":"cursor_version"}"#;
        assert_eq!(product(inside), None);
        assert_eq!(product("no JSON"), None);
    }
}
