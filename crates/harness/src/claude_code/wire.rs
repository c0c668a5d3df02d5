//! The fields we use, as the vendor spells them. Everything is optional; the rest is skipped.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

/// Whatever it is, whose is it?
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Named {
    pub session_id: Option<String>,
    /// Transcript lines may have both spellings.
    #[serde(rename = "sessionId")]
    pub session_id_of_file: Option<String>,
}

/// What a hook gets on its standard input. One struct for all events.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Hook {
    pub session_id: Option<String>,
    pub hook_event_name: Option<String>,
    pub transcript_path: Option<String>,
    pub cwd: Option<String>,
    pub prompt_id: Option<String>,
    pub permission_mode: Option<String>,
    pub agent_id: Option<String>,
    pub agent_type: Option<String>,
    pub source: Option<String>,
    pub model: Option<String>,
    pub to_model: Option<String>,
    pub session_title: Option<String>,
    pub context_tokens: Option<u64>,
    pub prompt: Option<String>,
    pub tool_name: Option<String>,
    pub tool_input: Option<Value>,
    pub tool_use_id: Option<String>,
    pub tool_response: Option<Value>,
    pub tool_calls: Option<Vec<BatchCall>>,
    pub is_interrupt: Option<bool>,
    pub error: Option<String>,
    pub last_assistant_message: Option<String>,
    pub background_tasks: Option<Vec<BackgroundTask>>,
    pub session_crons: Option<Vec<IgnoredAny>>,
    pub message: Option<String>,
    pub notification_type: Option<String>,
    pub task_subject: Option<String>,
    pub reason: Option<String>,
    /// Of `permission_decision`, which wrappers around the client tell.
    pub decision: Option<String>,
    pub elicitation_id: Option<String>,
    pub mcp_server_name: Option<String>,
    /// Grok Build writes each member twice, in Claude Code's spelling and in its own.
    #[serde(rename = "hookEventName")]
    pub event_of_grok: Option<IgnoredAny>,
    pub cursor_version: Option<IgnoredAny>,
}

impl Hook {
    /// Another program runs Claude Code's hooks, with members that Claude Code never writes.
    pub fn is_of_another_client(&self) -> bool {
        self.event_of_grok.is_some() || self.cursor_version.is_some()
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct BatchCall {
    pub tool_use_id: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct BackgroundTask {
    pub id: Option<String>,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub status: Option<String>,
}

/// One line of a transcript. Large parts stay unread until their type is known to matter.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Line<'a> {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub subtype: Option<String>,
    pub session_id: Option<String>,
    pub uuid: Option<String>,
    /// The line it stands behind: each process writes behind its own.
    pub parent_uuid: Option<String>,
    pub agent_id: Option<String>,
    pub is_sidechain: Option<bool>,
    pub timestamp: Option<String>,
    pub cwd: Option<String>,
    pub git_branch: Option<String>,
    pub version: Option<String>,
    pub entrypoint: Option<String>,
    pub prompt_id: Option<String>,
    pub permission_mode: Option<String>,
    pub is_meta: Option<bool>,
    pub is_compact_summary: Option<bool>,
    pub is_visible_in_transcript_only: Option<bool>,
    pub is_api_error_message: Option<bool>,
    pub api_error_status: Option<u64>,
    /// A name on an assistant's line, an object on a system one.
    pub error: Option<Value>,
    #[serde(borrow)]
    pub message: Option<&'a RawValue>,
    #[serde(borrow)]
    pub tool_use_result: Option<&'a RawValue>,
    #[serde(borrow)]
    pub attachment: Option<&'a RawValue>,
    pub tool_denial_kind: Option<String>,
    pub operation: Option<String>,
    pub origin: Option<Origin>,
    pub hook_errors: Option<Vec<IgnoredAny>>,
    pub pending_background_agent_count: Option<u32>,
    pub custom_title: Option<String>,
    pub ai_title: Option<String>,
    pub summary: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Origin {
    pub kind: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Attachment {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub decision: Option<String>,
    #[serde(rename = "toolUseID")]
    pub tool_use_id: Option<String>,
    /// Text, or blocks.
    pub prompt: Option<Value>,
}

/// A message of the conversation, in a transcript and in a stream.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Message {
    pub id: Option<String>,
    pub model: Option<String>,
    pub content: Content,
    pub stop_reason: Option<String>,
    pub usage: Option<TokenUsage>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum Content {
    Text(String),
    Blocks(Vec<Block>),
    Other(IgnoredAny),
}

impl Default for Content {
    fn default() -> Self {
        Self::Blocks(Vec::new())
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Block {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub text: Option<String>,
    pub id: Option<String>,
    pub name: Option<String>,
    pub input: Option<Value>,
    pub tool_use_id: Option<String>,
    pub is_error: Option<bool>,
    /// A tool's result: text, or blocks.
    pub content: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct TokenUsage {
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub cache_creation_input_tokens: Option<u64>,
    pub cache_read_input_tokens: Option<u64>,
}

/// `sessions/<pid>.json`.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Registry {
    pub pid: Option<u64>,
    pub session_id: Option<String>,
    pub cwd: Option<String>,
    pub version: Option<String>,
    pub proc_start: Option<Value>,
    pub started_at: Option<u64>,
    pub entrypoint: Option<String>,
    pub name: Option<String>,
    pub name_source: Option<String>,
    pub status: Option<String>,
    pub waiting_for: Option<String>,
    pub updated_at: Option<u64>,
    pub status_updated_at: Option<u64>,
    /// The file is gone: its process has ended, or is about to.
    pub removed: Option<bool>,
    /// The background job that the process works for.
    pub job_id: Option<String>,
}

impl Registry {
    /// A worker of a background job begins under a name of its own, and takes up the job's session
    /// a moment later: with its first status.
    pub fn is_unassigned(&self) -> bool {
        self.job_id.is_some() && self.status.is_none() && self.removed != Some(true)
    }
}

/// `jobs/<id>/state.json`: what the client's own supervisor says of a background session.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Job {
    pub session_id: Option<String>,
    pub state: Option<String>,
}

/// One line of the JSON stream, either way.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct StreamLine<'a> {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub subtype: Option<String>,
    pub session_id: Option<String>,
    pub parent_tool_use_id: Option<String>,
    #[serde(borrow)]
    pub message: Option<&'a RawValue>,
    pub tool_use_result: Option<Value>,
    pub error: Option<Value>,
    pub request_id: Option<String>,
    pub request: Option<ControlRequest>,
    pub response: Option<ControlResponse>,
    pub event: Option<StreamEvent>,
    pub state: Option<String>,
    pub status: Option<String>,
    pub compact_result: Option<String>,
    pub hook_event: Option<String>,
    #[serde(rename = "permissionMode")]
    pub permission_mode: Option<String>,
    pub model: Option<String>,
    pub cwd: Option<String>,
    pub claude_code_version: Option<String>,
    pub is_error: Option<bool>,
    pub is_api_error_message: Option<bool>,
    pub terminal_reason: Option<String>,
    pub stop_reason: Option<String>,
    pub result: Option<String>,
    pub api_error: Option<String>,
    pub api_error_status: Option<u64>,
    pub error_status: Option<u64>,
    pub errors: Option<Vec<Value>>,
    pub tool_use_id: Option<String>,
    pub usage: Option<TokenUsage>,
    pub total_cost_usd: Option<f64>,
    pub task_id: Option<String>,
    pub patch: Option<BackgroundTask>,
    #[serde(rename = "isSynthetic")]
    pub is_synthetic: Option<bool>,
    #[serde(rename = "isReplay")]
    pub is_replay: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct StreamEvent {
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub delta: Option<StreamDelta>,
}

/// A piece of the answer, with `--include-partial-messages`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct StreamDelta {
    pub text: Option<String>,
    pub thinking: Option<String>,
}

/// `can_use_tool`, `hook_callback`, `elicitation` from the client; `interrupt` and others to it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ControlRequest {
    pub subtype: Option<String>,
    pub tool_name: Option<String>,
    pub input: Option<Value>,
    pub tool_use_id: Option<String>,
    pub agent_id: Option<String>,
    pub description: Option<String>,
    pub decision_reason: Option<String>,
    pub message: Option<String>,
    pub mode: Option<String>,
    pub permission_suggestions: Option<Value>,
    pub callback_id: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ControlResponse {
    pub subtype: Option<String>,
    pub request_id: Option<String>,
    pub response: Option<Value>,
    pub error: Option<String>,
}
