//! A hook that holds its agent after tools have run: which ones did, and how the agent is told that
//! something is wrong with what they left.
//!
//! Pure. Seen with Claude Code 2.1.325: a `PostToolBatch` hook that blocks ends the turn, and the
//! reason is in the transcript for the next one. With Codex 0.166.0: a `PostToolUse` hook that
//! blocks puts its reason in the place of the tool's output, and the turn goes on.

use std::sync::Arc;

use qd_session::id::{CallId, ToolName};
use qd_session::policy::ToolKind;
use serde_json::{Value, json};

use crate::Harness;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolsRan {
    /// The agent's own id for the session.
    pub session: Arc<str>,
    /// Where the agent works.
    pub folder: Arc<str>,
    pub calls: Vec<RanCall>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RanCall {
    pub call: CallId,
    pub tool: ToolName,
    /// It may have changed something: it edits, runs a command, or nobody knows what it does.
    pub is_mutating: bool,
}

impl ToolsRan {
    /// None where the payload is of another event, or of an agent that cannot be held there.
    pub fn read(harness: Harness, payload: &[u8]) -> Option<Self> {
        let (event, list) = match harness {
            Harness::ClaudeCode => ("PostToolBatch", Some("tool_calls")),
            // One hook for each call.
            Harness::Codex => ("PostToolUse", None),
            Harness::GeminiCli
            | Harness::KiloCode
            | Harness::Cline
            | Harness::Opencode
            | Harness::Acp
            | Harness::Native => return None,
        };
        let payload: Value = serde_json::from_slice(payload).ok()?;
        if payload["hook_event_name"] != event {
            return None;
        }
        let calls = match list {
            Some(list) => payload[list].as_array()?.iter().filter_map(call).collect(),
            None => call(&payload).into_iter().collect(),
        };
        let text = |name: &str| payload[name].as_str().map(Arc::from);
        Some(Self { session: text("session_id")?, folder: text("cwd")?, calls })
    }

    /// What the hook prints so that the agent learns of it; both understand the same.
    pub fn complaint(why: &str) -> String {
        json!({"decision": "block", "reason": why}).to_string()
    }
}

fn call(value: &Value) -> Option<RanCall> {
    let tool = value["tool_name"].as_str()?;
    let is_mutating = match ToolKind::of(tool) {
        ToolKind::Edit | ToolKind::Run | ToolKind::Other => true,
        ToolKind::Read | ToolKind::Search | ToolKind::Fetch | ToolKind::Question => false,
    };
    let call = CallId::new(value["tool_use_id"].as_str()?);
    Some(RanCall { call, tool: ToolName::new(tool), is_mutating })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(harness: Harness, payload: &Value) -> Option<Vec<(String, bool)>> {
        let ran = ToolsRan::read(harness, payload.to_string().as_bytes())?;
        assert_eq!((&*ran.session, &*ran.folder), ("s", "/w"));
        Some(ran.calls.iter().map(|ran| (ran.tool.to_string(), ran.is_mutating)).collect())
    }

    #[test]
    fn a_batch_of_claude_code_is_all_of_its_calls() {
        let mut batch = json!({"session_id": "s", "cwd": "/w", "hook_event_name": "PostToolBatch",
            "tool_calls": [{"tool_name": "Read", "tool_use_id": "a"},
                {"tool_name": "Bash", "tool_use_id": "b"},
                {"tool_name": "mcp__shop__buy", "tool_use_id": "c"}, {"tool_name": "Edit"}, 7]});
        let calls = [("Read", false), ("Bash", true), ("mcp__shop__buy", true)];
        let calls = calls.map(|(tool, is_mutating)| (tool.to_owned(), is_mutating));
        assert_eq!(read(Harness::ClaudeCode, &batch), Some(calls.to_vec()));
        assert_eq!(read(Harness::Codex, &batch), None);
        batch["hook_event_name"] = "PostToolUse".into();
        assert_eq!(read(Harness::ClaudeCode, &batch), None);
        assert_eq!(ToolsRan::read(Harness::ClaudeCode, b"no JSON"), None);
    }

    #[test]
    fn codex_tells_of_each_call() {
        let call = json!({"session_id": "s", "cwd": "/w", "hook_event_name": "PostToolUse",
            "tool_name": "apply_patch", "tool_use_id": "call_1"});
        assert_eq!(read(Harness::Codex, &call), Some(vec![("apply_patch".to_owned(), true)]));
        assert_eq!(read(Harness::GeminiCli, &call), None);
    }
}
