//! Lines of a transcript.

use memchr::memmem;
use serde::Deserialize;

use super::{Content, Listener, Said, Who, said};
use crate::{payload, rfc3339};

pub(super) fn read(listener: &mut Listener, line: &[u8]) -> Option<Vec<Said>> {
    // Most lines are tool output; only these kinds are parsed.
    let has = |word: &str| memmem::find(line, word.as_bytes()).is_some();
    if !has("\"type\":\"user\"") && !has("\"type\":\"text\"") {
        return None;
    }
    let line: Line = payload::read(line)?;
    listener.is_of(line.session_id, line.cwd);
    if line.is_meta || line.is_sidechain || line.is_api_error_message {
        return None;
    }
    let who = match line.kind.as_deref() {
        Some("user") => Who::Operator,
        Some("assistant") => Who::Agent,
        _ => return None,
    };
    let at = line.timestamp.as_deref().and_then(rfc3339::timestamp)?;
    Some(said(who, at, None, line.message?.content?.texts(&["text"])))
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    #[serde(rename = "type")]
    kind: Option<String>,
    timestamp: Option<String>,
    session_id: Option<String>,
    cwd: Option<String>,
    #[serde(default)]
    is_meta: bool,
    #[serde(default)]
    is_sidechain: bool,
    #[serde(default)]
    is_api_error_message: bool,
    message: Option<Message>,
}

#[derive(Debug, Deserialize)]
struct Message {
    content: Option<Content>,
}
