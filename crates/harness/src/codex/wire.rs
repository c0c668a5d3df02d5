//! The fields we use, as Codex spells them.
//!
//! Everything is optional: a field that is missing, or new, changes nothing. Rollouts write
//! `snake_case` and the app-server `camelCase` for the same things; the aliases say so.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// What a hook finds on its standard input.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Hook {
    pub session_id: Option<String>,
    pub turn_id: Option<String>,
    pub transcript_path: Option<String>,
    pub cwd: Option<String>,
    pub hook_event_name: Option<String>,
    pub model: Option<String>,
    pub permission_mode: Option<String>,
    pub agent_id: Option<String>,
    pub agent_type: Option<String>,
    pub prompt: Option<String>,
    pub tool_name: Option<String>,
    pub tool_input: Option<Box<RawValue>>,
    pub tool_use_id: Option<String>,
    pub tool_response: Option<Box<RawValue>>,
    pub last_assistant_message: Option<String>,
    pub trigger: Option<String>,
    /// How a model request ended, and why it failed.
    pub status: Option<String>,
    pub error: Option<Value>,
}

/// The last argument of the notify program.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Notify {
    pub r#type: Option<String>,
    pub thread_id: Option<String>,
    pub turn_id: Option<String>,
    pub cwd: Option<String>,
    pub input_messages: Option<Vec<String>>,
    pub last_assistant_message: Option<String>,
}

/// One line of a rollout.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Line {
    pub timestamp: Option<String>,
    pub r#type: Option<String>,
    pub payload: Option<Box<RawValue>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct SessionMeta {
    pub id: Option<String>,
    pub session_id: Option<String>,
    pub cwd: Option<String>,
    pub source: Option<Value>,
    pub thread_source: Option<String>,
    pub parent_thread_id: Option<String>,
    pub attached_to_thread_id: Option<String>,
    pub forked_from_id: Option<String>,
    pub git: Option<Git>,
    pub cli_version: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Git {
    pub branch: Option<String>,
}

/// `turn_context` of a rollout, `thread_settings` of both.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Settings {
    pub turn_id: Option<String>,
    pub root_turn_id: Option<String>,
    pub cwd: Option<String>,
    pub model: Option<String>,
    #[serde(alias = "approvalPolicy")]
    pub approval_policy: Option<Value>,
    #[serde(alias = "approvalsReviewer")]
    pub approvals_reviewer: Option<String>,
    #[serde(alias = "collaborationMode")]
    pub collaboration_mode: Option<CollaborationMode>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct CollaborationMode {
    pub mode: Option<String>,
}

/// An `event_msg` of a rollout.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct EventMsg {
    pub r#type: Option<String>,
    pub thread_id: Option<String>,
    pub turn_id: Option<String>,
    pub root_turn_id: Option<String>,
    pub collaboration_mode_kind: Option<String>,
    pub last_agent_message: Option<String>,
    pub error: Option<TurnError>,
    pub item: Option<Item>,
    pub started_at_ms: Option<u64>,
    pub info: Option<TokenInfo>,
    pub rate_limits: Option<RateLimits>,
    pub thread_settings: Option<Settings>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct TurnError {
    pub message: Option<String>,
    #[serde(alias = "codexErrorInfo")]
    pub codex_error_info: Option<Value>,
    /// What went wrong, where the message only says that it is tried again.
    #[serde(alias = "additionalDetails")]
    pub additional_details: Option<String>,
}

/// A thing the agent did or said, in a rollout and from the app-server.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Item {
    pub r#type: Option<String>,
    pub id: Option<String>,
    pub status: Option<String>,
    pub text: Option<String>,
    pub content: Option<Value>,
    pub command: Option<Value>,
    pub tool: Option<String>,
    #[serde(alias = "exitCode")]
    pub exit_code: Option<i64>,
    pub delivery: Option<String>,
    pub questions: Option<Value>,
    pub kind: Option<Value>,
    #[serde(alias = "agentThreadId")]
    pub agent_thread_id: Option<String>,
    #[serde(alias = "agentPath")]
    pub agent_path: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct TokenInfo {
    #[serde(alias = "last")]
    pub last_token_usage: Option<Tokens>,
    #[serde(alias = "modelContextWindow")]
    pub model_context_window: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Tokens {
    #[serde(alias = "totalTokens")]
    pub total_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RateLimits {
    pub primary: Option<RateWindow>,
    pub secondary: Option<RateWindow>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RateWindow {
    #[serde(alias = "usedPercent")]
    pub used_percent: Option<f64>,
    /// Seconds since the epoch.
    #[serde(alias = "resetsAt")]
    pub resets_at: Option<u64>,
}

/// A `response_item` of a rollout: what the model said, and what it was told.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ResponseItem {
    pub r#type: Option<String>,
    pub role: Option<String>,
    pub name: Option<String>,
    pub arguments: Option<String>,
    pub input: Option<String>,
    pub call_id: Option<String>,
    pub output: Option<Value>,
    #[serde(rename = "internal_chat_message_metadata_passthrough")]
    pub passthrough: Option<Passthrough>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Passthrough {
    pub turn_id: Option<String>,
}

/// `token_usage_record` and `retained_context`: only whose they are.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Owned {
    pub r#type: Option<String>,
    pub thread_id: Option<String>,
    pub session_id: Option<String>,
    pub turn_id: Option<String>,
    pub call_id: Option<String>,
}

/// A JSON-RPC message of the app-server, either way.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Message {
    pub id: Option<Value>,
    pub method: Option<String>,
    pub params: Option<Box<RawValue>>,
    pub result: Option<Box<RawValue>>,
    pub emitted_at_ms: Option<u64>,
}

/// The parameters of every method we read, in one.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Params {
    #[serde(alias = "conversationId")]
    pub thread_id: Option<String>,
    pub turn_id: Option<String>,
    #[serde(alias = "callId")]
    pub item_id: Option<String>,
    pub approval_id: Option<String>,
    pub thread: Option<Thread>,
    pub turn: Option<Turn>,
    pub item: Option<Item>,
    pub status: Option<Value>,
    pub reason: Option<String>,
    pub message: Option<String>,
    pub command: Option<Value>,
    pub questions: Option<Value>,
    pub is_blocking: Option<bool>,
    pub error: Option<TurnError>,
    pub will_retry: Option<bool>,
    pub request_id: Option<Value>,
    pub token_usage: Option<TokenInfo>,
    pub rate_limits: Option<RateLimits>,
    pub goal: Option<Goal>,
    pub thread_settings: Option<Settings>,
    pub thread_name: Option<String>,
    pub run: Option<HookRun>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Thread {
    pub id: Option<String>,
    pub session_id: Option<String>,
    pub parent_thread_id: Option<String>,
    /// The thread that owns this one: it is shown there, and is no session of its own.
    pub attached_to_thread_id: Option<String>,
    pub forked_from_id: Option<String>,
    pub cli_version: Option<String>,
    pub ephemeral: Option<bool>,
    pub source: Option<Value>,
    pub thread_source: Option<String>,
    pub status: Option<Status>,
    pub path: Option<String>,
    pub cwd: Option<String>,
    pub name: Option<String>,
    pub git_info: Option<Git>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Status {
    pub r#type: Option<String>,
    pub active_flags: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Turn {
    pub id: Option<String>,
    pub root_turn_id: Option<String>,
    pub status: Option<String>,
    pub error: Option<TurnError>,
    pub items: Option<Vec<Item>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Goal {
    pub status: Option<String>,
}

/// A run of one of the user's hooks, as the app-server tells of it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HookRun {
    pub event_name: Option<String>,
    pub status: Option<String>,
}

/// A line of `codex exec --json`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ExecEvent {
    pub r#type: Option<String>,
    pub thread_id: Option<String>,
    pub item: Option<Item>,
    pub error: Option<TurnError>,
    pub message: Option<String>,
}

impl Item {
    /// What a command returned by itself; one that was refused or killed has a negative code.
    pub fn exit_code(&self) -> Option<i32> {
        self.exit_code.filter(|code| *code >= 0).and_then(|code| i32::try_from(code).ok())
    }

    /// Its kind, spelled as the app-server does: rollouts begin it with a capital, `exec` writes
    /// it in snake case.
    pub fn kind(&self) -> String {
        let mut kind = String::new();
        let mut capital = false;
        for letter in self.r#type.as_deref().unwrap_or_default().chars() {
            match letter {
                '_' => capital = true,
                _ if kind.is_empty() => kind.extend(letter.to_lowercase()),
                _ if capital => {
                    kind.extend(letter.to_uppercase());
                    capital = false;
                }
                _ => kind.push(letter),
            }
        }
        kind
    }

    /// What was said: `text` from the app-server, pieces of `content` in a rollout.
    pub fn said(&self) -> Option<String> {
        if let Some(text) = self.text.as_deref().filter(|text| !text.is_empty()) {
            return Some(text.to_owned());
        }
        let pieces = self.content.as_ref()?.as_array()?;
        let text: Vec<&str> =
            pieces.iter().filter_map(|piece| piece.get("text")?.as_str()).collect();
        (!text.is_empty()).then(|| text.join("\n"))
    }

    /// The command line, which a rollout writes as a list.
    pub fn command_line(&self) -> Option<String> {
        command_line(self.command.as_ref()?)
    }
}

/// A command as one line. The shell around it (`/bin/bash -lc`) is Codex's own.
pub fn command_line(command: &Value) -> Option<String> {
    if let Some(text) = command.as_str() {
        let inner = text.split_once(" -lc '").and_then(|(_, rest)| rest.strip_suffix('\''));
        return Some(inner.unwrap_or(text).to_owned());
    }
    let words: Vec<&str> = command.as_array()?.iter().filter_map(Value::as_str).collect();
    match words.as_slice() {
        [_, "-lc", inner] => Some((*inner).to_owned()),
        words => Some(words.join(" ")),
    }
}

impl Item {
    /// A command that returned an error is a result like any other; one that was refused, or
    /// never ran, is not.
    pub fn is_ok(&self) -> bool {
        match self.status.as_deref() {
            Some("declined") => false,
            Some("failed") => self.exit_code.is_some_and(|code| code >= 0),
            Some(_) | None => true,
        }
    }
}
