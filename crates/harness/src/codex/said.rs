//! Prompts and answers in the lines of a rollout.

use memchr::memmem;
use serde::Deserialize;

use crate::said::{Content, Listener, Said, Who, said};
use crate::{payload, rfc3339};

pub(crate) fn said_in(listener: &mut Listener, line: &[u8]) -> Option<Vec<Said>> {
    let begin = &line[..line.len().min(KIND_WITHIN)];
    let has = |word: &str| memmem::find(begin, word.as_bytes()).is_some();
    if has("\"session_meta\"") {
        let meta: Line<Meta> = payload::read(line)?;
        let meta = meta.payload?;
        listener.is_subagent = meta.session_id.is_some() && meta.session_id != meta.id;
        listener.is_of(meta.id, meta.cwd);
        return None;
    }
    if !has("\"response_item\"") || !has("\"message\"") {
        return None;
    }
    let line: Line<Item> = payload::read(line)?;
    let item = line.payload?;
    let who = match (item.kind.as_deref(), item.role.as_deref()) {
        (Some("message"), Some("user")) => Who::Operator,
        (Some("message"), Some("assistant")) => Who::Agent,
        _ => return None,
    };
    let at = line.timestamp.as_deref().and_then(rfc3339::timestamp)?;
    Some(said(who, at, None, item.content?.texts(&["input_text", "output_text"])))
}

#[derive(Debug, Deserialize)]
struct Line<T> {
    timestamp: Option<String>,
    payload: Option<T>,
}

#[derive(Debug, Deserialize)]
struct Meta {
    session_id: Option<String>,
    id: Option<String>,
    cwd: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Item {
    #[serde(rename = "type")]
    kind: Option<String>,
    role: Option<String>,
    content: Option<Content>,
}

/// A line says its kind in its first bytes: after a time and a number.
const KIND_WITHIN: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::said::check;

    #[test]
    fn prompts_and_answers_are_heard() {
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
        check(said_in, &lines, &[(Who::Operator, "make it so"), (Who::Agent, "Made.")]);
    }
}
