//! What was said in a session: prompts and answers, for a search. No tool output, no thoughts, and
//! not what a client itself puts into a prompt.
//!
//! Pure. One line of a session file in, texts out; a line that is anything else says nothing.

mod claude_code;
mod codex;
mod gemini_cli;

use qd_session::moment::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Harness, payload};

/// A prompt or an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    pub who: Who,
    pub at: Timestamp,
    /// The client's id of the message, where it is written again as it grows.
    pub key: Option<String>,
    /// On one line, without control characters.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Who {
    Operator,
    Agent,
}

impl Who {
    pub fn name(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Agent => "agent",
        }
    }
}

/// Reads one file's lines in their order, and remembers whose they are.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Listener {
    /// The client's id, where the lines tell it.
    pub session: Option<String>,
    /// The folder it began in.
    pub project: Option<String>,
    /// A subagent talks to its agent, not to the operator.
    is_subagent: bool,
}

impl Listener {
    /// True for a client whose session files can be searched.
    pub fn hears(harness: Harness) -> bool {
        match harness {
            Harness::ClaudeCode | Harness::Codex | Harness::GeminiCli => true,
            Harness::KiloCode
            | Harness::Cline
            | Harness::Opencode
            | Harness::Acp
            | Harness::Native => false,
        }
    }

    pub fn read(&mut self, harness: Harness, line: &[u8]) -> Vec<Said> {
        let line = &*payload::mended(line);
        let said = match harness {
            Harness::ClaudeCode => claude_code::read(self, line),
            Harness::Codex => codex::read(self, line),
            Harness::GeminiCli => gemini_cli::read(self, line),
            Harness::KiloCode
            | Harness::Cline
            | Harness::Opencode
            | Harness::Acp
            | Harness::Native => None,
        };
        if self.is_subagent { Vec::new() } else { said.unwrap_or_default() }
    }

    /// Of the session's first line that tells.
    fn is_of(&mut self, session: Option<String>, project: Option<String>) {
        self.session = self.session.take().or(session);
        self.project = self.project.take().or(project);
    }
}

/// A text, or a list of blocks of which some are texts.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Blocks(Vec<Block>),
}

#[derive(Debug, Deserialize)]
struct Block {
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default, deserialize_with = "text_or_none")]
    text: Option<String>,
}

/// A block of another kind may have anything there.
fn text_or_none<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let value = serde_json::Value::deserialize(from)?;
    Ok(value.as_str().map(str::to_owned))
}

impl Content {
    /// The texts whose blocks have one of these kinds, or none at all.
    fn texts(self, kinds: &[&str]) -> Vec<String> {
        match self {
            Self::Text(text) => vec![text],
            Self::Blocks(blocks) => blocks
                .into_iter()
                .filter(|block| block.kind.as_deref().is_none_or(|kind| kinds.contains(&kind)))
                .filter_map(|block| block.text)
                .collect(),
        }
    }
}

fn said(who: Who, at: Timestamp, key: Option<String>, texts: Vec<String>) -> Vec<Said> {
    let texts = texts.into_iter().filter(|text| !is_clients_own(text));
    let texts: Vec<String> = texts.map(|text| cleaned(&text)).collect();
    let text = texts.join(" ").trim().to_owned();
    if text.is_empty() { Vec::new() } else { vec![Said { who, at, key, text }] }
}

/// `<environment_context>…`, `<local-command-stdout>…`: no word of HTML has such a sign in it.
fn is_clients_own(text: &str) -> bool {
    let tag = text.trim_start().strip_prefix('<').and_then(|rest| rest.split(['>', ' ']).next());
    tag.is_some_and(|tag| tag.len() < 64 && tag.contains(['_', '-']) && !tag.starts_with('!'))
}

/// No more than is worth finding, on one line, with nothing a terminal would obey.
fn cleaned(text: &str) -> String {
    let mut out = String::new();
    for sign in text.chars() {
        if out.len() >= SAID_BYTES_MAX {
            break;
        }
        match sign {
            sign if sign.is_control() || sign.is_whitespace() => {
                if !out.ends_with(' ') {
                    out.push(' ');
                }
            }
            sign => out.push(sign),
        }
    }
    out
}

/// Of one message. Longer ones are pasted files; their beginnings find them.
const SAID_BYTES_MAX: usize = 32 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(harness: Harness, lines: &[&str], expected: &[(Who, &str)]) {
        let mut listener = Listener::default();
        let said: Vec<Said> =
            lines.iter().flat_map(|line| listener.read(harness, line.as_bytes())).collect();
        let said: Vec<(Who, &str)> =
            said.iter().map(|said| (said.who, said.text.as_str())).collect();
        assert_eq!(said, expected);
    }

    #[test]
    fn claude_code_is_heard() {
        let line = |rest: &str| {
            format!(r#"{{"timestamp":"2026-03-01T10:00:00.000Z","sessionId":"s",{rest}}}"#)
        };
        let lines = [
            r#""type":"user","message":{"role":"user","content":"fix\nthe \u001b[31mparser"}"#,
            r#""type":"user","message":{"content":[{"type":"tool_result","content":"secret"}]}"#,
            r#""type":"assistant","message":{"content":[{"type":"thinking","text":"hm"},{"type":"text","text":"Done."}]}"#,
            r#""type":"user","isMeta":true,"message":{"content":"not typed"}"#,
            r#""type":"user","isSidechain":true,"message":{"content":"to a subagent"}"#,
            r#""type":"user","message":{"content":"<local-command-stdout>x</local-command-stdout>"}"#,
            r#""type":"user","message":{"content":"<div> is wrong"}"#,
            r#""type":"assistant","isApiErrorMessage":true,"message":{"content":[{"type":"text","text":"API Error"}]}"#,
            r#""type":"system","message":{"content":"x"}"#,
        ]
        .map(line);
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        check(
            Harness::ClaudeCode,
            &lines,
            &[
                (Who::Operator, "fix the [31mparser"),
                (Who::Agent, "Done."),
                (Who::Operator, "<div> is wrong"),
            ],
        );
        for broken in ["", "{", "\"type\":\"user\"", "{\"type\":\"user\",\"message\":7}"] {
            check(Harness::ClaudeCode, &[broken], &[]);
        }
    }

    #[test]
    fn codex_and_gemini_are_heard() {
        let item = |role: &str, kind: &str, text: &str| {
            format!(
                r#"{{"timestamp":"2026-03-01T10:00:00.000Z","type":"response_item","payload":{{"type":"message","role":"{role}","content":[{{"type":"{kind}","text":"{text}"}}]}}}}"#
            )
        };
        let lines = [
            item("developer", "input_text", "rules"),
            item("user", "input_text", "<environment_context>x"),
            item("user", "input_text", "make it so"),
            item("assistant", "output_text", "Made."),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        check(Harness::Codex, &lines, &[(Who::Operator, "make it so"), (Who::Agent, "Made.")]);
        let chat = [
            r#"{"sessionId":"g","startTime":"x","kind":"main"}"#,
            r#"{"id":"1","timestamp":"2026-11-15T19:35:53.194Z","type":"user","content":[{"text":"hello"}]}"#,
            r#"{"id":"2","timestamp":"2026-11-15T19:36:13.418Z","type":"gemini","content":"Hello.","thoughts":[]}"#,
        ];
        check(Harness::GeminiCli, &chat, &[(Who::Operator, "hello"), (Who::Agent, "Hello.")]);
        let subagent = chat[0].replace("main", "subagent");
        check(Harness::GeminiCli, &[&subagent, chat[1]], &[]);
    }
}
