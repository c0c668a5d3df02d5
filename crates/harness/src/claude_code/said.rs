//! Prompts and answers in the lines of a transcript.

use memchr::memmem;
use serde::Deserialize;

use crate::said::{Content, Listener, Said, Who, said};
use crate::{payload, rfc3339};

pub(crate) fn said_in(listener: &mut Listener, line: &[u8]) -> Option<Vec<Said>> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::said::check;

    #[test]
    fn prompts_and_answers_are_heard() {
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
            said_in,
            &lines,
            &[
                (Who::Operator, "fix the [31mparser"),
                (Who::Agent, "Done."),
                (Who::Operator, "<div> is wrong"),
            ],
        );
        for broken in ["", "{", "\"type\":\"user\"", "{\"type\":\"user\",\"message\":7}"] {
            check(said_in, &[broken], &[]);
        }
    }
}
