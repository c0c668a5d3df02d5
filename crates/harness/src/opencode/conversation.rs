//! Rows of the client's database as a reader sees them.

use qd_session::moment::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::conversation::{Entry, Role, ToolUse, bounded, named};
use crate::payload;

/// A part of a message, and the message, as the database holds them.
#[derive(Debug, Clone, Copy)]
pub struct PartSaid<'a> {
    pub id: &'a str,
    pub at: Timestamp,
    pub part: &'a [u8],
    pub message: &'a [u8],
}

/// What a row says; none for steps, snapshots, reasoning and what is empty.
pub fn conversation(row: &PartSaid<'_>) -> Option<Entry> {
    let part: Part = payload::read(&payload::mended(row.part))?;
    let message: Message = payload::read(&payload::mended(row.message)).unwrap_or_default();
    let at = Some(row.at);
    match part.r#type.as_deref()? {
        "text" => {
            let text = part.text.as_deref().filter(|text| !text.trim().is_empty())?;
            let role = match (message.role.as_deref(), part.synthetic) {
                (Some("user"), Some(true)) => Role::System,
                (Some("user"), _) => Role::User,
                _ => Role::Assistant,
            };
            let model = message.model.as_deref().map(named).filter(|_| role == Role::Assistant);
            Some(Entry { model, ..Entry::said(row.id, at, role, text) })
        }
        "tool" => {
            let Called { status, input, output, error } = part.state?;
            let name = part.tool.as_deref().unwrap_or("tool");
            let called = Entry::call(row.id, at, name, input);
            let failed = status.as_deref() == Some("error");
            let output = output.or(error).and_then(|output| match output {
                Value::String(text) => (!text.is_empty()).then_some(text),
                Value::Null => None,
                other
                @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                    Some(other.to_string())
                }
            });
            let output = output.as_deref().map(bounded);
            let tool = called.tool.clone().map(|tool| ToolUse { output, failed, ..tool });
            Some(Entry { tool, ..called })
        }
        "compaction" => {
            Some(Entry::said(row.id, at, Role::System, "The conversation was compacted."))
        }
        _ => None,
    }
}

/// As far as it is shown; a field of another kind than we know must not hide the rest.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Part {
    r#type: Option<String>,
    text: Option<String>,
    /// Written by the client itself into a user's message.
    synthetic: Option<bool>,
    tool: Option<String>,
    state: Option<Called>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Called {
    status: Option<String>,
    input: Option<Value>,
    output: Option<Value>,
    error: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Message {
    role: Option<String>,
    #[serde(rename = "modelID")]
    model: Option<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(part: Value, message: Value) -> Option<Value> {
        let (part, message) = (part.to_string(), message.to_string());
        let row = PartSaid {
            id: "prt_1",
            at: Timestamp(7),
            part: part.as_bytes(),
            message: message.as_bytes(),
        };
        conversation(&row).map(|entry| serde_json::to_value(entry).expect("JSON"))
    }

    #[test]
    fn words_and_tools_are_told_and_steps_are_not() {
        let user = json!({"role": "user"});
        let agent = json!({"role": "assistant", "modelID": "big"});
        assert_eq!(
            said(json!({"type": "text", "text": "go"}), user.clone()),
            Some(json!({"id": "prt_1", "at": 7, "role": "user", "text": "go"}))
        );
        assert_eq!(
            said(json!({"type": "text", "text": "Done."}), agent.clone()),
            Some(
                json!({"id": "prt_1", "at": 7, "role": "assistant", "text": "Done.", "model": "big"})
            )
        );
        let state = json!({"status": "error", "input": {"command": "make"}, "error": "no rule"});
        assert_eq!(
            said(json!({"type": "tool", "tool": "bash", "callID": "c", "state": state}), agent),
            Some(json!({"id": "prt_1", "at": 7, "role": "tool", "tool": {"name": "bash",
                "input": {"command": "make"}, "output": "no rule", "failed": true}}))
        );
        for kind in ["step-start", "step-finish", "reasoning", "snapshot", "nobody knows"] {
            assert_eq!(said(json!({"type": kind, "text": "x"}), user.clone()), None, "{kind}");
        }
        assert_eq!(said(json!({"type": "text", "text": " "}), user), None);
    }
}
