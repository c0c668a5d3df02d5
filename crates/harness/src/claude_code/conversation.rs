//! A transcript's line as a reader sees it.
//!
//! Much of what stands under the user's name was put there by the client: reminders, caveats,
//! notes of finished tasks, the output of commands. None of that is shown as a person's words.

use qd_session::moment::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::transcript::is_interrupt;
use crate::conversation::{Entry, Role, named, placed, text_in};
use crate::{payload, rfc3339};

/// One line, with the fields that are shown. Read apart from [`super::wire::Line`], which is on the
/// way of every line that is written.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Line {
    #[serde(rename = "type")]
    kind: Option<String>,
    subtype: Option<String>,
    uuid: Option<String>,
    timestamp: Option<String>,
    agent_id: Option<String>,
    is_meta: Option<bool>,
    is_compact_summary: Option<bool>,
    is_visible_in_transcript_only: Option<bool>,
    is_api_error_message: Option<bool>,
    message: Option<Message>,
    attachment: Option<Attachment>,
    content: Option<Value>,
    error: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Message {
    model: Option<String>,
    /// Text, or blocks.
    content: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Attachment {
    #[serde(rename = "type")]
    kind: Option<String>,
    prompt: Option<Value>,
}

/// What a line says; `place` is where it stands in its file.
pub fn conversation(line: &[u8], place: u64) -> Vec<Entry> {
    let line = payload::mended(line);
    let Some(line) = payload::read::<Line>(&line) else { return Vec::new() };
    let at = line.timestamp.as_deref().and_then(rfc3339::timestamp);
    let id = line.uuid.clone().filter(|id| !id.is_empty()).unwrap_or_else(|| placed(place, 0));
    let mut entries = match line.kind.as_deref().unwrap_or_default() {
        "user" => user(&line, &id, at),
        "assistant" => assistant(&line, &id, at),
        "system" => system(&line, &id, at).into_iter().collect(),
        "attachment" => queued(&line, &id, at).into_iter().collect(),
        _ => Vec::new(),
    };
    for entry in &mut entries {
        entry.agent = line.agent_id.as_deref().map(named);
    }
    entries
}

fn user(line: &Line, id: &str, at: Option<Timestamp>) -> Vec<Entry> {
    let Some(message) = &line.message else { return Vec::new() };
    let injected = line.is_meta == Some(true)
        || line.is_compact_summary == Some(true)
        || line.is_visible_in_transcript_only == Some(true);
    let words = |id: &str, text: &str| if injected { None } else { said(id, at, text) };
    match &message.content {
        Value::String(text) => words(id, text).into_iter().collect(),
        Value::Array(blocks) => {
            let several = blocks.len() > 1;
            let block = |(nth, block): (usize, &Value)| {
                let id = if several { format!("{id}.{nth}") } else { id.to_owned() };
                match block["type"].as_str().unwrap_or_default() {
                    "tool_result" => Some(result(block, at)?),
                    "text" => words(&id, block["text"].as_str()?),
                    "image" | "document" => words(&id, "[attachment]"),
                    _ => None,
                }
            };
            blocks.iter().enumerate().filter_map(block).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}

fn result(block: &Value, at: Option<Timestamp>) -> Option<Entry> {
    let call = block["tool_use_id"].as_str()?;
    let output = without_reminders(&text_in(&block["content"]));
    Some(Entry::result(call, at, output.trim_end(), block["is_error"] == true))
}

/// What stands under the user's name: a person's words, or the client's.
fn said(id: &str, at: Option<Timestamp>, text: &str) -> Option<Entry> {
    let text = without_reminders(text);
    let text = text.trim();
    let by_client = |text: &str| Some(Entry::said(id, at, Role::System, text));
    if text.is_empty() || text.starts_with("<local-command-caveat>") {
        return None;
    }
    if is_interrupt(text) {
        return by_client(text.trim_matches(['[', ']']));
    }
    if let Some(command) = tagged(text, "command-name") {
        let arguments = tagged(text, "command-args").unwrap_or_default();
        return by_client(format!("{command} {arguments}").trim());
    }
    if let Some(command) = tagged(text, "bash-input") {
        return by_client(&format!("! {command}"));
    }
    for tag in ["local-command-stdout", "local-command-stderr", "bash-stdout", "bash-stderr"] {
        if text.starts_with(&format!("<{tag}>")) {
            let output = tagged(text, tag).unwrap_or_default();
            let errors = tagged(text, "bash-stderr").filter(|_| tag == "bash-stdout");
            let told = [output, errors.unwrap_or_default()].join("\n");
            let told = without_colours(&told);
            return (!told.trim().is_empty()).then(|| by_client(told.trim())).flatten();
        }
    }
    if text.starts_with("<task-notification>") {
        let summary = tagged(text, "summary").unwrap_or("A background task has news.");
        return by_client(summary);
    }
    if text.starts_with("<command-message>") {
        return None;
    }
    Some(Entry::said(id, at, Role::User, text))
}

/// Commands write for a terminal.
fn without_colours(text: &str) -> String {
    let mut pieces = text.split("\u{1b}[");
    let mut plain = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let end = piece.find(|c: char| c.is_ascii_alphabetic()).map_or(0, |letter| letter + 1);
        plain.push_str(&piece[end..]);
    }
    plain
}

/// What stands between a tag and its end.
fn tagged<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let begin = text.find(&format!("<{tag}>"))? + tag.len() + 2;
    let end = text[begin..].find(&format!("</{tag}>"))?;
    Some(text[begin..begin + end].trim())
}

/// Reminders are for the model only. One without an end is a person's text about reminders.
pub(super) fn without_reminders(text: &str) -> String {
    const BEGIN: &str = "<system-reminder>";
    const END: &str = "</system-reminder>";
    let mut left = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = rest.find(BEGIN) {
        let Some(end) = rest[begin..].find(END) else { break };
        left.push_str(&rest[..begin]);
        rest = &rest[begin + end + END.len()..];
    }
    left.push_str(rest);
    left
}

fn assistant(line: &Line, id: &str, at: Option<Timestamp>) -> Vec<Entry> {
    let Some(message) = &line.message else { return Vec::new() };
    let failed = line.is_api_error_message == Some(true);
    if message.model.as_deref() == Some("<synthetic>") && !failed {
        // "No response requested.": nobody said it.
        return Vec::new();
    }
    let role = if failed { Role::System } else { Role::Assistant };
    let model = message.model.as_deref().filter(|_| !failed).map(named);
    let blocks = match &message.content {
        Value::Array(blocks) => blocks.as_slice(),
        Value::String(text) => {
            let entry = Entry::said(id, at, role, text);
            return vec![Entry { model, ..entry }];
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => &[],
    };
    let several = blocks.len() > 1;
    let block = |(nth, block): (usize, &Value)| {
        let entry = match block["type"].as_str().unwrap_or_default() {
            "text" => {
                let id = if several { format!("{id}.{nth}") } else { id.to_owned() };
                let text = block["text"].as_str().filter(|text| !text.trim().is_empty())?;
                Entry::said(&id, at, role, text.trim())
            }
            "tool_use" | "server_tool_use" => {
                let name = block["name"].as_str().unwrap_or_default();
                Entry::call(block["id"].as_str()?, at, name, block.get("input").cloned())
            }
            // What a model thinks is neither said nor done.
            _ => return None,
        };
        Some(Entry { model: model.clone(), ..entry })
    };
    blocks.iter().enumerate().filter_map(block).collect()
}

fn system(line: &Line, id: &str, at: Option<Timestamp>) -> Option<Entry> {
    let content = line.content.as_ref().and_then(Value::as_str);
    match line.subtype.as_deref().unwrap_or_default() {
        "compact_boundary" => {
            let text = content.unwrap_or("Conversation compacted");
            Some(Entry::said(id, at, Role::System, text))
        }
        "api_error" => {
            let error = line.error.as_ref()?;
            let told = error.get("formatted").or_else(|| error.get("message"));
            let told = told.and_then(Value::as_str).unwrap_or("the model could not be asked");
            Some(Entry::said(id, at, Role::System, &format!("Trying again: {told}")))
        }
        "local_command" => {
            said(id, at, content?).map(|entry| Entry { role: Role::System, ..entry })
        }
        "informational" => {
            let text = content.filter(|text| !text.trim().is_empty())?;
            Some(Entry::said(id, at, Role::System, text))
        }
        _ => None,
    }
}

/// What a person wrote while the agent was at work.
fn queued(line: &Line, id: &str, at: Option<Timestamp>) -> Option<Entry> {
    let attachment = line.attachment.as_ref()?;
    if attachment.kind.as_deref() != Some("queued_command") {
        return None;
    }
    said(id, at, &text_in(attachment.prompt.as_ref()?))
}
