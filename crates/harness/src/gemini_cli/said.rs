//! Prompts and answers in the lines of a chat file. A message is written again as it grows, under the same id.

use serde::Deserialize;

use crate::said::{Content, Listener, Said, Who, said};
use crate::{payload, rfc3339};

pub(crate) fn said_in(listener: &mut Listener, line: &[u8]) -> Option<Vec<Said>> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::said::check;

    #[test]
    fn prompts_and_answers_are_heard() {
        let chat = [
            r#"{"sessionId":"g","startTime":"x","kind":"main"}"#,
            r#"{"id":"1","timestamp":"2026-11-15T19:35:53.194Z","type":"user","content":[{"text":"hello"}]}"#,
            r#"{"id":"2","timestamp":"2026-11-15T19:36:13.418Z","type":"gemini","content":"Hello.","thoughts":[]}"#,
        ];
        check(said_in, &chat, &[(Who::Operator, "hello"), (Who::Agent, "Hello.")]);
        let subagent = chat[0].replace("main", "subagent");
        check(said_in, &[&subagent, chat[1]], &[]);
    }
}
