//! What the model said and was told, as a rollout keeps it: messages, calls and their outputs.

use qd_session::id::{CallId, ToolName};
use qd_session::monitor::{Ask, Stage};
use serde_json::Value;

use super::call::Call;
use super::ending::End;
use super::hooks::QUESTION_TOOL;
use super::mark::Mark;
use super::request::{HINT_SILENCE_HOOKED_MS, HINT_SILENCE_MS, Kind, Request};
use super::thread::Thread;
use super::wire;
use crate::excerpt;

impl Thread {
    /// False if the item is of no kind we know.
    pub fn take_response_item(&mut self, mark: Mark, item: &wire::ResponseItem) -> bool {
        let turn = item.passthrough.as_ref().and_then(|passed| passed.turn_id.as_deref());
        match item.r#type.as_deref().unwrap_or_default() {
            "function_call" | "custom_tool_call" | "local_shell_call" | "tool_search_call" => {
                self.speaks(mark, turn);
                self.call_written(mark, turn, item);
            }
            "function_call_output" | "custom_tool_call_output" | "tool_search_output" => {
                self.output_written(mark, turn, item);
            }
            "message" => match item.role.as_deref() {
                Some("assistant") => self.speaks(mark, turn),
                Some(_) | None => self.turn.prompted = true,
            },
            "reasoning" | "web_search_call" | "image_generation_call" => self.speaks(mark, turn),
            "additional_tools" | "agent_message" | "compaction" | "compaction_summary"
            | "ghost_snapshot" | "other" => {}
            _ => return false,
        }
        true
    }

    fn call_written(&mut self, mark: Mark, turn: Option<&str>, item: &wire::ResponseItem) {
        let Some(id) = item.call_id.as_deref() else { return };
        let tool = item.name.as_deref().unwrap_or("shell");
        let input = item.arguments.as_deref().or(item.input.as_deref()).unwrap_or_default();
        let command = match item.arguments.as_deref() {
            Some(arguments) => command_of(arguments),
            None => Some(input.to_owned()),
        };
        let call = Call { in_rollout: true, ..Self::call(id, tool, command.clone()) };
        self.start_tool(mark, turn, call);
        if tool == QUESTION_TOOL {
            self.question_asked(mark, turn, id, input);
        } else if self.asks_to_leave(tool, input) && !self.settings.decides_alone() {
            self.hint(mark, turn, id, tool, input, command);
        }
    }

    /// The call wants what the sandbox does not give.
    fn asks_to_leave(&self, tool: &str, input: &str) -> bool {
        match tool {
            "apply_patch" => self.settings.cwd().is_some_and(|cwd| patches_outside(input, cwd)),
            "request_permissions" => true,
            _ => input.contains("require_escalated"),
        }
    }

    fn hint(
        &mut self,
        mark: Mark,
        turn: Option<&str>,
        call: &str,
        tool: &str,
        input: &str,
        command: Option<String>,
    ) {
        // The app-server will say whether somebody is asked; nothing is gained by guessing.
        if self.turn.heard.app_server {
            return;
        }
        let wait_ms = if self.turn.heard.hooks { HINT_SILENCE_HOOKED_MS } else { HINT_SILENCE_MS };
        let reason = serde_json::from_str::<Value>(input)
            .ok()
            .and_then(|input| input.get("justification")?.as_str().map(excerpt::input));
        let request = Request {
            id: self.request_id(call),
            kind: Kind::Approval,
            stage: Stage::UnderReview,
            mark,
            due: Some(mark.due(wait_ms)),
            ask: Ask {
                call: Some(CallId::new(call)),
                tool: Some(ToolName::new(tool)),
                text: reason.or_else(|| command.as_deref().map(excerpt::input)),
                input: Some(excerpt::input(input)),
            },
            command,
            made_up: false,
            settled: None,
            rpc: None,
        };
        self.ask(turn, request);
    }

    fn output_written(&mut self, mark: Mark, turn: Option<&str>, item: &wire::ResponseItem) {
        let Some(id) = item.call_id.as_deref().map(CallId::new) else { return };
        let output = item.output.as_ref().map(Value::to_string).unwrap_or_default();
        if let Some(tool) = self.calls.find(&id).map(|call| call.tool.clone()) {
            self.goal_told(tool.as_str(), &output);
        }
        if item.output.as_ref().is_some_and(is_aborted) {
            self.end_call(mark, &id, false);
            // The line that says so follows. Until then the agent would seem to work again.
            if turn.is_none_or(|turn| !self.is_over(turn)) && self.turn.open {
                // By its name: what Codex writes about the abort must not open it again.
                let turn = self.turn.id.clone();
                self.end(mark, turn.as_deref(), End::Interrupted);
            }
        } else {
            self.end_tool(mark, turn, &id, true);
        }
    }
}

/// A shell call's command line.
fn command_of(arguments: &str) -> Option<String> {
    let value: Value = serde_json::from_str(arguments).ok()?;
    let command = value.get("cmd").or_else(|| value.get("command"))?;
    wire::command_line(command)
}

/// What Codex itself writes for a call that a person aborted. A command may print the same words,
/// but stands below a header.
fn is_aborted(output: &Value) -> bool {
    let text = output.as_str().unwrap_or_default().trim_end();
    let alone = text.strip_prefix("Wall time: ").and_then(|rest| rest.split_once('\n'));
    alone.map_or(text, |(_, rest)| rest) == "aborted by user"
}

/// A patch that writes where neither the workspace nor the temporary folder is.
fn patches_outside(patch: &str, cwd: &str) -> bool {
    let paths = patch.lines().filter_map(|line| {
        let (what, path) = line.strip_prefix("*** ")?.split_once(": ")?;
        matches!(what, "Add File" | "Update File" | "Delete File" | "Move to").then_some(path)
    });
    let inside = |path: &str| match path.strip_prefix(cwd) {
        Some(rest) => rest.starts_with('/') || rest.is_empty(),
        None => !path.starts_with('/') || path.starts_with("/tmp/"),
    };
    paths.into_iter().any(|path| !inside(path) || path.split('/').any(|part| part == ".."))
}

#[cfg(test)]
mod tests {
    use super::super::story::{Story, story};
    use super::*;

    const ESCALATED: &str = r#"{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"touch /x\",\"sandbox_permissions\":\"require_escalated\"}","call_id":"c1"}"#;
    const OUTPUT: &str = r#"{"type":"function_call_output","call_id":"c1","output":"ok"}"#;

    fn escalated() -> Story {
        story().rollout_begins(0).line(100, "response_item", ESCALATED)
    }

    #[test]
    fn a_call_that_leaves_the_sandbox_waits_when_nothing_follows() {
        escalated().line(4_000, "response_item", OUTPUT).check(&[
            "0 idle",
            "0 thinking",
            "100 acting",
            "700 needs_permission",
            "4000 thinking",
        ]);
    }

    #[test]
    fn a_call_that_is_allowed_by_a_rule_shows_nobody() {
        escalated()
            .line(450, "response_item", OUTPUT)
            .check_at(5_000, &["0 idle", "0 thinking", "100 acting", "450 thinking"]);
    }

    #[test]
    fn a_reviewer_asks_nobody() {
        story()
            .rollout_begins(0)
            .line(50, "turn_context", r#"{"turn_id":"U","approval_policy":"on-request","approvals_reviewer":"auto_review"}"#)
            .line(100, "response_item", ESCALATED)
            .check_at(5_000, &["0 idle", "0 thinking", "100 acting"]);
    }

    #[test]
    fn the_command_itself_ends_the_wait_and_its_output_the_call() {
        escalated()
            .line(3_000, "event_msg", r#"{"type":"item_completed","turn_id":"U","item":{"type":"CommandExecution","id":"c1","status":"completed","exit_code":0}}"#)
            .line(3_100, "response_item", OUTPUT)
            .check(&[
                "0 idle", "0 thinking",
                "100 acting",
                "700 needs_permission",
                "3000 acting",
                "3100 thinking",
            ]);
    }

    #[test]
    fn a_prompt_that_is_escaped_never_looks_like_work() {
        escalated()
            .line(4_000, "response_item", r#"{"type":"function_call_output","call_id":"c1","output":"Wall time: 2.9 seconds\naborted by user"}"#)
            .line(4_040, "response_item", r#"{"type":"message","role":"user"}"#)
            .line(4_050, "event_msg", r#"{"type":"turn_aborted","turn_id":"U","reason":"interrupted"}"#)
            .check(&[
                "0 idle",
                "0 thinking",
                "100 acting",
                "700 needs_permission",
                "4000 interrupted",
            ]);
    }

    #[test]
    fn what_is_written_about_an_abort_does_not_undo_it() {
        const ACTIVE: &str = r#"{"type":"active","activeFlags":[]}"#;
        escalated()
            .line(4_000, "response_item", r#"{"type":"function_call_output","call_id":"c1","output":"aborted by user"}"#)
            .line(4_010, "response_item", r#"{"type":"message","role":"user","internal_chat_message_metadata_passthrough":{"turn_id":"U"}}"#)
            .status(4_020, ACTIVE)
            .line(4_050, "event_msg", r#"{"type":"turn_aborted","turn_id":"U","reason":"interrupted"}"#)
            .check_at(9_000, &[
                "0 idle",
                "0 thinking",
                "100 acting",
                "700 needs_permission",
                "4000 interrupted",
            ]);
    }

    #[test]
    fn only_codex_itself_says_that_a_call_was_aborted() {
        assert!(is_aborted(&Value::from("aborted by user")));
        assert!(is_aborted(&Value::from("Wall time: 2.2 seconds\naborted by user")));
        let printed = "Chunk ID: 1\nWall time: 0.1 seconds\nOutput:\naborted by user\n";
        assert!(!is_aborted(&Value::from(printed)));
    }

    #[test]
    fn a_lost_output_is_made_up_for_when_the_model_speaks_again() {
        story()
            .rollout_begins(0)
            .line(100, "response_item", r#"{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"ls\"}","call_id":"c1"}"#)
            .line(110, "token_usage_record", "{}")
            .line(900, "response_item", r#"{"type":"message","role":"assistant"}"#)
            .check(&["0 idle", "0 thinking", "100 acting", "900 thinking"]);
    }

    #[test]
    fn a_patch_outside_the_workspace_is_a_hint_too() {
        let cwd = "/home/coder/acme";
        let patch = |path: &str| format!("*** Begin Patch\n*** Add File: {path}\n+x\n");
        assert!(patches_outside(&patch("/home/coder/outside.txt"), cwd));
        assert!(patches_outside(&patch("/home/coder/acme-two/x"), cwd));
        assert!(patches_outside(&patch("../x"), cwd));
        assert!(!patches_outside(&patch("/home/coder/acme/x"), cwd));
        assert!(!patches_outside(&patch("src/x"), cwd));
        assert!(!patches_outside(&patch("/tmp/x"), cwd));
    }
}
