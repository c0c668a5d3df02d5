//! Items and requests of the app-server as calls of the agent's tools.

use std::collections::VecDeque;
use std::sync::Arc;

use qd_session::id::CallId;
use qd_session::machine::ToolCall;
use serde_json::{Map, Value};

use super::wire::command_line;
use crate::conversation::text_in;
use crate::driver::{OPEN_MAX, Output, Report, called};
use crate::excerpt;
use crate::usage::Tokens;

/// An item began: a call, unless it is only something said.
pub fn begun(item: &Value) -> Option<Output> {
    let (kind, id) = (item["type"].as_str()?, item["id"].as_str()?);
    let tool = tool_of(kind, item)?;
    let call = called(id, tool, arguments(kind, item));
    Some(Output::Report(Report::ToolReported(call)))
}

pub fn ended(item: &Value) -> Option<Output> {
    let (kind, id) = (item["type"].as_str()?, item["id"].as_str()?);
    tool_of(kind, item)?;
    let status = item["status"].as_str();
    let failed = matches!(status, Some("declined" | "failed"));
    let is_error = failed || item["exitCode"].as_i64().is_some_and(|code| code != 0);
    let output = came_out(item);
    Some(Output::Report(Report::ToolEnded { call: CallId::new(id), is_error, output }))
}

/// What a command wrote, or a server's tool answered.
fn came_out(item: &Value) -> Option<Arc<str>> {
    let text = match (&item["aggregatedOutput"], &item["error"]["message"]) {
        (Value::String(text), _) | (_, Value::String(text)) => text.clone(),
        _ => text_in(&item["result"]["content"]),
    };
    excerpt::output(&text)
}

/// What patches that have begun would change, by their items: whoever asks leave for one names only
/// its item.
#[derive(Debug, Default)]
pub struct Patches(VecDeque<(String, Value)>);

impl Patches {
    pub fn begun(&mut self, item: &Value) {
        let (Some("fileChange"), Some(id)) = (item["type"].as_str(), item["id"].as_str()) else {
            return;
        };
        self.ended(item);
        if self.0.len() == OPEN_MAX {
            self.0.pop_front();
        }
        let mut changes = item["changes"].clone();
        for change in changes.as_array_mut().into_iter().flatten() {
            // Where a file is moved to is a path like any other, and rules look for it as one.
            if let Some(to) = change["kind"]["move_path"].as_str().map(Value::from) {
                change["new_path"] = to;
            }
        }
        self.0.push_back((id.to_owned(), changes));
    }

    pub fn ended(&mut self, item: &Value) {
        self.0.retain(|(id, _)| item["id"].as_str() != Some(id));
    }

    fn of(&self, item: &Value) -> Option<&Value> {
        let mut patches = self.0.iter();
        patches.find(|(id, _)| item.as_str() == Some(id)).map(|(_, changes)| changes)
    }
}

/// What the server asks leave for, or the answer to.
pub fn asked(method: &str, call: &str, params: &Value, patches: &Patches) -> ToolCall {
    let tool = match method {
        "item/commandExecution/requestApproval" => "exec_command",
        "item/fileChange/requestApproval" => "apply_patch",
        _ => "request_user_input",
    };
    let mut arguments = params.clone();
    if let Some(command) = params.get("command").and_then(command_line) {
        arguments["command"] = Value::from(command);
    }
    if let Some(changes) = patches.of(&params["itemId"]) {
        arguments["changes"] = changes.clone();
    }
    called(call, tool, arguments)
}

/// The name of the tool; none for items that are no calls.
fn tool_of<'a>(kind: &'a str, item: &'a Value) -> Option<&'a str> {
    match kind {
        "userMessage" | "agentMessage" | "reasoning" | "plan" | "hookPrompt"
        | "contextCompaction" | "enteredReviewMode" | "exitedReviewMode" | "subAgentActivity" => {
            None
        }
        "commandExecution" => Some("exec_command"),
        "fileChange" => Some("apply_patch"),
        "webSearch" => Some("web_search"),
        "imageView" => Some("view_image"),
        other => Some(item["tool"].as_str().unwrap_or(other)),
    }
}

fn arguments(kind: &str, item: &Value) -> Value {
    let fields: &[&str] = match kind {
        "commandExecution" => &["command", "cwd"],
        "fileChange" => &["changes"],
        _ => &["arguments", "server", "query", "path", "prompt"],
    };
    let known = fields.iter().filter_map(|field| Some((*field, item.get(*field)?)));
    let mut arguments: Map<String, Value> =
        known.map(|(field, value)| (field.to_owned(), value.clone())).collect();
    if let Some(command) = item.get("command").and_then(command_line) {
        arguments.insert("command".to_owned(), Value::from(command));
    }
    Value::from(arguments)
}

/// Codex counts what it read from a cache as input too.
pub fn tokens(usage: &Value) -> Tokens {
    let count = |name: &str| usage[name].as_u64().unwrap_or_default();
    let (cache_read, cache_write) = (count("cachedInputTokens"), count("cacheWriteInputTokens"));
    Tokens {
        input: count("inputTokens").saturating_sub(cache_read).saturating_sub(cache_write),
        output: count("outputTokens"),
        cache_write,
        cache_write_1h: 0,
        cache_read,
    }
}
