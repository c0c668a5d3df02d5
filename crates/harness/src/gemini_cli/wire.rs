//! The fields of Gemini CLI's hooks, telemetry, chat files and JSON stream that we use, as it
//! spells them.

use serde::Deserialize;
use serde_json::{Map, Value};

/// What a hook gets on its standard input.
#[derive(Debug, Default, Deserialize)]
pub struct Hook {
    pub session_id: Option<String>,
    pub transcript_path: Option<String>,
    pub cwd: Option<String>,
    pub hook_event_name: Option<String>,
    pub timestamp: Option<String>,
    /// BeforeAgent, AfterAgent.
    pub prompt: Option<String>,
    pub prompt_response: Option<String>,
    pub stop_hook_active: Option<bool>,
    /// BeforeTool, AfterTool.
    pub tool_name: Option<String>,
    pub tool_input: Option<Value>,
    pub tool_response: Option<ToolResponse>,
    /// Notification.
    pub notification_type: Option<String>,
    pub message: Option<String>,
    pub details: Option<Value>,
    /// PreCompress.
    pub trigger: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub struct ToolResponse {
    pub error: Option<Value>,
}

/// What a hook answers, as telemetry keeps it.
#[derive(Debug, Default, Deserialize)]
pub struct HookOutput {
    pub decision: Option<String>,
    #[serde(rename = "continue")]
    pub goes_on: Option<bool>,
}

/// One line of `--output-format stream-json`, or the one object of `--output-format json`.
#[derive(Debug, Default, Deserialize)]
pub struct StreamLine {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub timestamp: Option<String>,
    pub session_id: Option<String>,
    pub model: Option<String>,
    pub role: Option<String>,
    pub content: Option<String>,
    pub tool_name: Option<String>,
    pub tool_id: Option<String>,
    pub parameters: Option<Value>,
    pub status: Option<String>,
    pub severity: Option<String>,
    pub message: Option<String>,
    pub error: Option<StreamError>,
    pub response: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub struct StreamError {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub message: Option<String>,
}

/// One line of a chat file: a header, a message, or a patch.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatLine {
    pub session_id: Option<String>,
    pub start_time: Option<String>,
    /// `main` or `subagent`.
    pub kind: Option<String>,
    #[serde(flatten)]
    pub message: ChatMessage,
    #[serde(rename = "$set")]
    pub set: Option<ChatPatch>,
    #[serde(rename = "$rewindTo")]
    pub rewind_to: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatMessage {
    pub id: Option<String>,
    pub timestamp: Option<String>,
    /// `user`, `gemini`, `info`, `warning`, `error`.
    #[serde(rename = "type")]
    pub role: Option<String>,
    /// A text, or parts.
    pub content: Option<Value>,
    pub tool_calls: Option<Vec<ChatCall>>,
    pub tokens: Option<Tokens>,
    pub model: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub struct ChatCall {
    pub id: Option<String>,
    pub name: Option<String>,
    pub args: Option<Value>,
    pub status: Option<String>,
    pub timestamp: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub struct Tokens {
    pub total: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatPatch {
    pub summary: Option<String>,
    pub last_updated: Option<String>,
    pub messages: Option<Vec<ChatMessage>>,
}

/// One telemetry record, reduced or as the client's file has it.
#[derive(Debug, Default, Deserialize)]
pub struct FileRecord {
    #[serde(default)]
    pub attributes: Map<String, Value>,
}
