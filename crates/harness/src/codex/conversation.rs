//! A rollout's line as a reader sees it.
//!
//! Calls, their outputs and what the agent said are response items. What a person wrote is taken
//! from the events: among the items the same role also carries instructions and the environment.
//! What really ran is told by events too, under the id of the call.

use qd_session::moment::Timestamp;
use serde_json::Value;

use super::wire;
use crate::conversation::{Entry, Role, placed, text_in};
use crate::excerpt::head;
use crate::{payload, rfc3339};

/// Bytes of an output that may say how a command ended: the client's own words come first.
const VERDICT_BYTES_MAX: usize = 400;

/// What the client puts under a person's name begins so.
const NOT_A_PERSON: [&str; 4] =
    ["<environment_context>", "<user_instructions>", "<turn_aborted>", "# AGENTS.md instructions"];

/// What a line says; `place` is where it stands in its file.
pub fn conversation(line: &[u8], place: u64) -> Vec<Entry> {
    let line = payload::mended(line);
    let Some(line) = payload::read::<wire::Line>(&line) else { return Vec::new() };
    let at = line.timestamp.as_deref().and_then(rfc3339::timestamp);
    let Some(payload) = line.payload else { return Vec::new() };
    let Ok(payload) = serde_json::from_str::<Value>(payload.get()) else { return Vec::new() };
    let here = placed(place, 0);
    let entry = match line.r#type.as_deref().unwrap_or_default() {
        "response_item" => response_item(&payload, &here, at),
        "event_msg" => event(&payload, &here, at),
        "compacted" => Some(Entry::said(&here, at, Role::System, "Conversation compacted")),
        _ => None,
    };
    entry.into_iter().collect()
}

fn response_item(item: &Value, here: &str, at: Option<Timestamp>) -> Option<Entry> {
    let text = |key: &str| item[key].as_str();
    let own = text("id").unwrap_or(here);
    match text("type").unwrap_or_default() {
        "message" if item["role"] == "assistant" => {
            words(own, at, Role::Assistant, &text_in(&item["content"]))
        }
        // One agent to another.
        "agent_message" => words(own, at, Role::System, &text_in(&item["content"])),
        "function_call" | "custom_tool_call" => {
            let input = text("arguments").or(text("input")).unwrap_or_default();
            let name = text("name").unwrap_or("tool");
            Some(Entry::call(text("call_id")?, at, name, Some(json_or_text(input))))
        }
        "local_shell_call" => {
            let id = text("call_id").unwrap_or(own);
            Some(Entry::call(id, at, "shell", Some(item["action"]["command"].clone())))
        }
        "tool_search_call" => {
            Some(Entry::call(text("call_id")?, at, "tool_search", item.get("arguments").cloned()))
        }
        "web_search_call" => Some(Entry::call(own, at, "web_search", item.get("action").cloned())),
        "function_call_output" | "custom_tool_call_output" | "tool_search_output" => {
            let output = &item["output"];
            let told = output.get("content").unwrap_or(output);
            let told = text_in(told);
            let broke = output["success"] == false || told.starts_with("exec_command failed");
            let failed = broke || exit_code(&told).is_some_and(|code| code != 0);
            Some(Entry::result(text("call_id")?, at, told.trim_end(), failed))
        }
        _ => None,
    }
}

fn event(event: &Value, here: &str, at: Option<Timestamp>) -> Option<Entry> {
    match event["type"].as_str().unwrap_or_default() {
        "item_completed" => item(&event["item"], here, at),
        // Older clients.
        "user_message" => words(here, at, Role::User, event["message"].as_str()?),
        "turn_aborted" => {
            let reason = event["reason"].as_str().unwrap_or("interrupted");
            words(here, at, Role::System, &format!("Turn ended: {reason}"))
        }
        "task_complete" | "turn_complete" => {
            words(here, at, Role::System, event["error"]["message"].as_str()?)
        }
        "error" | "warning" => words(here, at, Role::System, event["message"].as_str()?),
        _ => None,
    }
}

/// A thing that was done or said, written when it was over.
fn item(item: &Value, here: &str, at: Option<Timestamp>) -> Option<Entry> {
    let id = item["id"].as_str().unwrap_or(here);
    match item["type"].as_str().unwrap_or_default() {
        "UserMessage" => words(id, at, Role::User, &text_in(&item["content"])),
        "Plan" => words(id, at, Role::Assistant, item["text"].as_str()?),
        "HookPrompt" => words(id, at, Role::System, &text_in(&item["fragments"])),
        "CommandExecution" => {
            let command = item["command"].as_array().and_then(|words| words.last()).cloned();
            let output = item["aggregated_output"].as_str().unwrap_or_default();
            Some(ran(item, id, at, "exec_command", command, output))
        }
        "FileChange" => {
            let output = [&item["stdout"], &item["stderr"]].map(text_in).join("\n");
            Some(ran(item, id, at, "apply_patch", item.get("changes").cloned(), output.trim()))
        }
        _ => None,
    }
}

/// A tool that ran. Its call stands in the rollout as well, unless a script made it.
fn ran(
    item: &Value,
    id: &str,
    at: Option<Timestamp>,
    name: &str,
    input: Option<Value>,
    output: &str,
) -> Entry {
    let broke = matches!(item["status"].as_str(), Some("failed" | "declined"));
    let failed = broke || item["exit_code"].as_i64().is_some_and(|code| code != 0);
    let mut entry = Entry::call(id, at, name, input);
    entry.tool = entry.tool.zip(Entry::result(id, at, output, failed).tool).map(|(call, end)| {
        crate::conversation::ToolUse { output: end.output, failed: end.failed, ..call }
    });
    entry
}

fn words(id: &str, at: Option<Timestamp>, role: Role, text: &str) -> Option<Entry> {
    let text = text.trim();
    let by_client = role == Role::User && NOT_A_PERSON.iter().any(|start| text.starts_with(start));
    (!text.is_empty() && !by_client).then(|| Entry::said(id, at, role, text))
}

fn json_or_text(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

/// How a command ended, in the client's words before its output.
fn exit_code(output: &str) -> Option<i64> {
    let told = head(output, VERDICT_BYTES_MAX);
    let told = told.split("Output:").next().unwrap_or(told);
    ["exited with code ", "Exit code: "].iter().find_map(|before| {
        let (_, after) = told.split_once(before)?;
        let number = after.split(|c: char| !c.is_ascii_digit() && c != '-').next()?;
        number.parse().ok()
    })
}
