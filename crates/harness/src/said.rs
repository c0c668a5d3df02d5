//! What was said in a session: prompts and answers, for a search. No tool output, no thoughts, and
//! not what a client itself puts into a prompt.
//!
//! Pure. One line of a session file in, texts out; a line that is anything else says nothing. Each
//! client's `said.rs` reads its lines; here is what all of them have in common.

use qd_session::moment::Timestamp;
use serde::{Deserialize, Serialize};

use crate::payload;

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
    pub(crate) is_subagent: bool,
}

/// Finds the texts in one line of a client's session file, and tells the listener whose they are.
/// `None` for a line that is no prompt and no answer.
pub type LineReader = fn(&mut Listener, &[u8]) -> Option<Vec<Said>>;

impl Listener {
    /// What one line says, read as its client's lines are.
    pub fn read(&mut self, reader: LineReader, line: &[u8]) -> Vec<Said> {
        let said = reader(self, &payload::mended(line));
        if self.is_subagent { Vec::new() } else { said.unwrap_or_default() }
    }

    /// Of the session's first line that tells.
    pub(crate) fn is_of(&mut self, session: Option<String>, project: Option<String>) {
        self.session = self.session.take().or(session);
        self.project = self.project.take().or(project);
    }
}

/// A text, or a list of blocks of which some are texts.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Content {
    Text(String),
    Blocks(Vec<Block>),
}

#[derive(Debug, Deserialize)]
pub(crate) struct Block {
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
    pub(crate) fn texts(self, kinds: &[&str]) -> Vec<String> {
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

pub(crate) fn said(who: Who, at: Timestamp, key: Option<String>, texts: Vec<String>) -> Vec<Said> {
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

/// What a client's reader finds in these lines, compared with what was said.
#[cfg(test)]
#[track_caller]
pub(crate) fn check(reader: LineReader, lines: &[&str], expected: &[(Who, &str)]) {
    let mut listener = Listener::default();
    let said: Vec<Said> =
        lines.iter().flat_map(|line| listener.read(reader, line.as_bytes())).collect();
    let said: Vec<(Who, &str)> = said.iter().map(|said| (said.who, said.text.as_str())).collect();
    assert_eq!(said, expected);
}
