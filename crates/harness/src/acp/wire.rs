//! The fields of ACP messages that we use, as the protocol spells them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One JSON-RPC message: request, notification or response.
#[derive(Debug, Default, Deserialize)]
pub struct Message {
    pub id: Option<Value>,
    pub method: Option<String>,
    pub params: Option<Value>,
    pub result: Option<Value>,
    pub error: Option<RpcError>,
}

#[derive(Debug, Default, Deserialize)]
pub struct RpcError {
    pub code: Option<i64>,
    pub message: Option<String>,
    pub data: Option<Value>,
}

/// `session/new`, `session/load`, `session/prompt`, … : what any of them may carry.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionParams {
    pub session_id: Option<String>,
    pub cwd: Option<String>,
    pub mode_id: Option<String>,
    #[serde(default)]
    pub prompt: Vec<Content>,
}

/// The result of whatever the client asked: each field is of some method's response.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    pub protocol_version: Option<Value>,
    pub agent_info: Option<AgentInfo>,
    pub session_id: Option<String>,
    pub modes: Option<Modes>,
    pub models: Option<Models>,
    pub config_options: Option<Vec<ConfigOption>>,
    pub stop_reason: Option<String>,
    pub sessions: Option<Vec<Listed>>,
}

#[derive(Debug, Default, Deserialize)]
pub struct AgentInfo {
    pub name: Option<String>,
    pub version: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Modes {
    pub current_mode_id: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Models {
    pub current_model_id: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConfigOption {
    pub id: Option<String>,
    pub category: Option<String>,
    pub current_value: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listed {
    pub session_id: Option<String>,
    pub title: Option<String>,
}

/// `session/update`.
#[derive(Debug, Default, Deserialize)]
pub struct UpdateParams {
    pub update: Option<Update>,
}

/// One update; which fields there are depends on its kind.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Update {
    pub session_update: Option<String>,
    /// One block in a chunk, a list in a tool call.
    pub content: Option<Value>,
    pub message_id: Option<String>,
    #[serde(flatten)]
    pub call: ToolCall,
    pub entries: Option<Vec<PlanEntry>>,
    pub current_mode_id: Option<String>,
    pub config_options: Option<Vec<ConfigOption>>,
    pub used: Option<u64>,
    pub size: Option<u64>,
    pub cost: Option<Cost>,
    pub state: Option<String>,
    pub stop_reason: Option<String>,
}

/// What a session has cost so far; in dollars wherever it was seen.
#[derive(Debug, Default, Deserialize)]
pub struct Cost {
    pub amount: Option<f64>,
}

/// A tool call as far as a message tells of it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    pub tool_call_id: Option<String>,
    pub title: Option<String>,
    pub name: Option<String>,
    pub kind: Option<String>,
    pub status: Option<String>,
    pub raw_input: Option<Value>,
    pub raw_output: Option<Value>,
    #[serde(rename = "_meta")]
    pub meta: Option<Meta>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Meta {
    pub claude_code: Option<ClaudeCodeMeta>,
    #[serde(rename = "_claude/model")]
    pub claude_model: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaudeCodeMeta {
    pub tool_name: Option<String>,
    pub parent_tool_use_id: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub struct PlanEntry {
    pub content: Option<String>,
    pub status: Option<String>,
}

/// `session/request_permission`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionParams {
    pub tool_call: Option<PermissionCall>,
    #[serde(default)]
    pub options: Vec<PermissionOption>,
}

#[derive(Debug, Default, Deserialize)]
pub struct PermissionCall {
    #[serde(flatten)]
    pub call: ToolCall,
    pub content: Option<Value>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionOption {
    #[serde(default)]
    pub option_id: String,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub kind: String,
}

/// `elicitation/create`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ElicitationParams {
    pub message: Option<String>,
    pub tool_call_id: Option<String>,
    pub elicitation_id: Option<String>,
    pub requested_schema: Option<Value>,
}

/// The client's answer to a permission or an elicitation.
#[derive(Debug, Default, Deserialize)]
pub struct Answer {
    pub outcome: Option<PermissionOutcome>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionOutcome {
    pub outcome: Option<String>,
    pub option_id: Option<String>,
}

/// A content block: text, or something that has none.
#[derive(Debug, Default, Deserialize)]
pub struct Content {
    #[serde(default)]
    pub text: String,
}
