//! Who runs this hook: the client that it was installed for, or another program that reads the same
//! settings file.
//!
//! Grok Build, Cursor, VS Code and others run what stands in Claude Code's settings, and wait for
//! it. Claude Code is therefore believed only where it is proven: its environment names the session
//! of the payload and the process above us. `CLAUDECODE` and the like prove nothing, because every
//! program that Claude Code starts inherits them.
//! Invariant: whoever is not proven is never waited for, and its hooks are not the client's.

use std::path::{Path, PathBuf};

use crate::ancestry::Nearest;
use crate::limits::REGISTRY_BYTES_MAX;
use crate::whose::text_member;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// The client that the hook was installed for, and its process where it names it itself.
    Client { pid: Option<u32> },
    /// Another program: a product's name, else that of its file.
    Other(String),
}

/// What is known of a caller.
pub struct Evidence<'a> {
    pub payload: &'a [u8],
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    pub nearest: Option<&'a Nearest>,
}

impl Evidence<'_> {
    /// Who calls a hook that was installed for `harness`.
    pub fn caller(&self, harness: &str) -> Caller {
        if harness != CLAUDE_CODE {
            // Nobody else is known to read their settings, and they have no proof to show.
            return match self.known_product() {
                Some(product) => Caller::Other(product.to_owned()),
                None => Caller::Client { pid: None },
            };
        }
        let pid = self.number("CLAUDE_PID");
        if self.is_claude_code(pid) {
            return Caller::Client { pid };
        }
        let program = self.nearest.and_then(|nearest| nearest.program.clone());
        let product = self.known_product().map(str::to_owned);
        Caller::Other(product.or(program).unwrap_or_else(|| "unknown".to_owned()))
    }

    fn is_claude_code(&self, pid: Option<u32>) -> bool {
        // A process whose program the system does not show may be a shell between the two.
        let shown = self.nearest.filter(|nearest| nearest.program.is_some());
        match (self.variable)("CLAUDE_CODE_SESSION_ID") {
            Some(session) => {
                let is_another = shown.zip(pid).is_some_and(|(shown, pid)| shown.pid != pid);
                !is_another && self.text("session_id") == Some(session.as_bytes())
            }
            // Older versions do not name the session: their registry file does.
            None => pid == shown.map(|shown| shown.pid) && self.is_registered(pid),
        }
    }

    /// `<config>/sessions/<pid>.json` names the session, beside `<config>/projects/…`.
    fn is_registered(&self, pid: Option<u32>) -> bool {
        let registered = || {
            let transcript = std::str::from_utf8(self.text("transcript_path")?).ok()?;
            let config = Path::new(transcript).ancestors().nth(3)?;
            let file: PathBuf = config.join("sessions").join(format!("{}.json", pid?));
            let entry = std::fs::metadata(&file).ok()?;
            if !entry.is_file() || entry.len() > REGISTRY_BYTES_MAX {
                return None;
            }
            let entry = std::fs::read(file).ok()?;
            Some(text_member(&entry, b"sessionId")? == self.text("session_id")?)
        };
        registered() == Some(true)
    }

    /// A product that says who it is. Its session must be the payload's: what it starts inherits
    /// its environment.
    fn known_product(&self) -> Option<&'static str> {
        let session = self.text("session_id").or_else(|| self.text("sessionId"));
        let grok = (self.variable)("GROK_SESSION_ID");
        if grok.is_some_and(|id| session == Some(id.as_bytes())) {
            return Some("grok_build");
        }
        self.text("cursor_version").map(|_| "cursor")
    }

    fn text(&self, name: &str) -> Option<&[u8]> {
        text_member(self.payload, name.as_bytes())
    }

    fn number(&self, name: &str) -> Option<u32> {
        (self.variable)(name)?.parse().ok().filter(|pid| *pid > 1)
    }
}

const CLAUDE_CODE: &str = "claude-code";

#[cfg(test)]
mod tests {
    use super::*;

    const CLAUDE: u32 = 4711;

    fn nearest(pid: u32, program: Option<&str>) -> Nearest {
        Nearest { pid, program: program.map(str::to_owned) }
    }

    #[track_caller]
    fn check(harness: &str, environment: &str, session: &str, above: Nearest, expected: Caller) {
        let variable = |name: &str| {
            let mut words = environment.split_whitespace();
            let value = words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
            value.map(str::to_owned)
        };
        let payload = format!(r#"{{"session_id":"{session}","hook_event_name":"Stop"}}"#);
        let evidence =
            Evidence { payload: payload.as_bytes(), variable: &variable, nearest: Some(&above) };
        assert_eq!(evidence.caller(harness), expected, "{environment}");
    }

    fn other(name: &str) -> Caller {
        Caller::Other(name.to_owned())
    }

    const OF_CLAUDE: &str = "CLAUDECODE=1 CLAUDE_PID=4711 CLAUDE_CODE_SESSION_ID=s";

    #[test]
    fn claude_code_is_proven_by_its_session_and_its_process() {
        let proven = Caller::Client { pid: Some(CLAUDE) };
        check("claude-code", OF_CLAUDE, "s", nearest(CLAUDE, Some("claude")), proven.clone());
        // Whatever its program is called, and where processes are not shown.
        check("claude-code", OF_CLAUDE, "s", nearest(CLAUDE, Some("electron")), proven.clone());
        check("claude-code", OF_CLAUDE, "s", nearest(7, None), proven);
        // The first process of a container has no number that is believed.
        let first = Caller::Client { pid: None };
        check("claude-code", "CLAUDE_PID=1 CLAUDE_CODE_SESSION_ID=s", "s", nearest(1, None), first);
        check("claude-code", OF_CLAUDE, "t", nearest(CLAUDE, Some("claude")), other("claude"));
        check("claude-code", OF_CLAUDE, "s", nearest(7, Some("node")), other("node"));
        // An older version that has no registry file is not proven either.
        check("claude-code", "CLAUDE_PID=4711", "s", nearest(CLAUDE, Some("node")), other("node"));
        check("claude-code", "CLAUDECODE=1", "s", nearest(7, Some("code")), other("code"));
        check("claude-code", "", "s", nearest(7, None), other("unknown"));
    }

    #[test]
    fn grok_build_is_known_also_inside_claude_code() {
        let grok = |pid| nearest(pid, Some("grok"));
        check("claude-code", "GROK_SESSION_ID=g", "g", grok(7), other("grok_build"));
        let inside = format!("{OF_CLAUDE} GROK_SESSION_ID=g");
        check("claude-code", &inside, "g", grok(7), other("grok_build"));
        check("codex", "GROK_SESSION_ID=g", "g", grok(7), other("grok_build"));
        // Claude Code in a terminal of Grok's, and Codex, speak for themselves.
        let within = format!("GROK_SESSION_ID=g {OF_CLAUDE}");
        let proven = Caller::Client { pid: Some(CLAUDE) };
        check("claude-code", &within, "s", nearest(CLAUDE, Some("claude")), proven);
        let codex = nearest(9, Some("codex"));
        check("codex", &within, "c", codex, Caller::Client { pid: None });
    }

    #[test]
    fn an_older_claude_code_is_proven_by_its_registry_file() {
        let folder = std::env::temp_dir().join(format!("qd-caller-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("sessions")).expect("a folder");
        let entry = folder.join(format!("sessions/{CLAUDE}.json"));
        std::fs::write(entry, r#"{"pid":4711,"sessionId":"s"}"#).expect("a file");
        let caller = |session: &str| {
            let path = folder.join(format!("projects/-w/{session}.jsonl"));
            let path = path.display();
            let payload =
                format!(r#"{{"session_id":"{session}","transcript_path":"{path}"}}"#).into_bytes();
            let variable = |name: &str| (name == "CLAUDE_PID").then(|| CLAUDE.to_string());
            let above = nearest(CLAUDE, Some("node"));
            let evidence =
                Evidence { payload: &payload, variable: &variable, nearest: Some(&above) };
            evidence.caller("claude-code")
        };
        let (own, others) = (caller("s"), caller("t"));
        std::fs::remove_dir_all(&folder).expect("removed");
        assert_eq!((own, others), (Caller::Client { pid: Some(CLAUDE) }, other("node")));
    }

    #[test]
    fn cursor_says_who_it_is_in_its_payload() {
        let payload = br#"{"session_id":"s","cursor_version":"1.7","hook_event_name":"Stop"}"#;
        let above = nearest(7, Some("cursor"));
        let evidence = Evidence { payload, variable: &|_| None, nearest: Some(&above) };
        assert_eq!(evidence.caller("claude-code"), other("cursor"));
    }
}
