//! All that a request asks for, as text for a terminal: nobody allows what they have not read.

use qd_session::visible::{visible_code, visible_prose};
use serde_json::Value;

use crate::session_line::plain_code;

/// The tool and every field that it is given, each as it is; of what has no input, the agent's words.
pub fn whole(request: &Value) -> String {
    let tool = plain_code(request["tool"].as_str().unwrap_or("something"));
    let mut lines = vec![tool];
    match &request["input"] {
        Value::Object(fields) => {
            lines.extend(fields.iter().map(|(name, value)| field(name, value)))
        }
        Value::Null => {
            lines.extend(request["text"].as_str().map(|text| indented(&visible_prose(text))));
        }
        other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            lines.push(indented(&written(other)));
        }
    }
    lines.join("\n")
}

/// Why it cannot be read here, where the daemon has only its beginning.
pub fn unread(request: &Value) -> Option<&'static str> {
    (request["cut"] == true).then_some(
        "It is too long to be shown whole, so it cannot be allowed from here. \
         Allow it where the agent runs, or deny it with `qd deny`.",
    )
}

/// That its agent's own dialog is hidden, while it waits for an answer from here.
pub fn hidden(request: &Value, now_ms: u64) -> Option<String> {
    let left = request["hiddenUntil"].as_u64()?.saturating_sub(now_ms).div_ceil(1_000);
    Some(format!("Answer here within {left} s. Its own dialog is hidden meanwhile."))
}

fn field(name: &str, value: &Value) -> String {
    let (name, text) = (plain_code(name), written(value));
    match text.contains('\n') {
        true => format!("  {name}:\n{}", indented(&text)),
        false => format!("  {name}: {text}"),
    }
}

fn written(value: &Value) -> String {
    match value.as_str() {
        Some(text) => visible_code(text),
        None => visible_code(&value.to_string()),
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_field_is_told_and_nothing_in_it_hides() {
        let request = json!({
            "tool": "mcp__run", "text": "harmless",
            "input": {
                "command": format!("ls{}; rm -rf ~", " ".repeat(500)),
                "script": "echo \u{202e}a\n\n\n\n\n\n\u{1b}[2Jb", "args": ["-r\u{200b}f"],
            },
        });
        let expected = "mcp__run\n  args: [\"-r⟨U+200B⟩f\"]\n  command: ls⟨500 spaces⟩; rm -rf ~\n  \
                        script:\n    echo ⟨U+202E⟩a\n    ⟨5 blank lines⟩\n    ⟨U+001B⟩[2Jb";
        assert_eq!(whole(&request), expected);
        assert_eq!(whole(&json!({"tool": "Bash", "text": "ls"})), "Bash\n    ls");
        assert!(unread(&json!({"cut": true})).is_some() && unread(&request).is_none());
    }
}
