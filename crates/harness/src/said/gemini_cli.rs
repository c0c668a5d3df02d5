//! Lines of a chat file. A message is written again as it grows, under the same id.

use serde::Deserialize;

use super::{Content, Listener, Said, Who, said};
use crate::{payload, rfc3339};

pub(super) fn read(listener: &mut Listener, line: &[u8]) -> Option<Vec<Said>> {
    let line: Line = payload::read(line)?;
    if line.start_time.is_some() {
        listener.is_subagent = line.kind_of_chat.as_deref() == Some("subagent");
        listener.is_of(line.session_id, None);
        return None;
    }
    let who = match line.kind.as_deref() {
        Some("user") => Who::Operator,
        Some("gemini") => Who::Agent,
        _ => return None,
    };
    let at = line.timestamp.as_deref().and_then(rfc3339::timestamp)?;
    Some(said(who, at, line.id, line.content?.texts(&["text"])))
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    id: Option<String>,
    timestamp: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    content: Option<Content>,
    session_id: Option<String>,
    start_time: Option<String>,
    #[serde(rename = "kind")]
    kind_of_chat: Option<String>,
}
