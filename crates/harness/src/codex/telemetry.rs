//! OpenTelemetry logs: late, in batches, and silent about everything that matters most.
//!
//! No record is written while a person is asked, at the end of a turn, at an interrupt or at the
//! last failure. So telemetry shows work, settles approvals, and ends a turn only where nobody
//! else is heard, after a long silence.

use std::sync::Arc;

use qd_session::id::{CallId, ToolName};
use qd_session::moment::Timestamp;
use qd_session::monitor::{Ask, Fact, Stage, Usage};
use serde_json::Value;

use super::handler::Handler;
use super::mark::Mark;
use super::request::{Kind, Request};
use super::roster::{Role, is_hidden_prompt};
use super::thread::Thread;
use crate::otlp::{self, Record};
use crate::signal::Signal;
use crate::{excerpt, rfc3339};

/// Silence after a finished response that ends a turn nobody else is heard of. Records are up to
/// 1.1 s late, and a slow hook was seen to hold a tool's decision for 1.8 s. A person who is asked
/// is silence too: the session then needs somebody, which is as much as can be said.
const SILENT_END_MS: u64 = 5_000;

/// The same after a failed request: the client may try again, each time later.
const SILENT_FAILURE_MS: u64 = 30_000;

impl Handler {
    pub(super) fn handle_telemetry(&mut self, signal: &Signal<'_>) {
        let Some(body) = self.parsed::<Value>(signal) else { return };
        let Some(records) = otlp::records(&body) else {
            return self.not_understood(signal, None);
        };
        let mut records: Vec<(Option<Timestamp>, Record<'_>)> = records
            .into_iter()
            .map(|record| (record.text("event.timestamp").and_then(rfc3339::timestamp), record))
            .collect();
        // Those without a time say who spawned whom: they come first.
        records.sort_by_key(|(at, _)| *at);
        for (at, record) in records {
            self.handle_record(signal, Mark::told(signal, at), &record);
        }
    }

    fn handle_record(&mut self, signal: &Signal<'_>, mark: Mark, record: &Record<'_>) {
        let name = record.text("event.name").unwrap_or_default();
        if name == "codex.agent_communication" {
            return self.communicated(signal, record);
        }
        let Some(id) = record.text("conversation.id") else { return };
        if !self.roster.knows(id) {
            self.meet_by_record(signal.at, id, name, record);
        }
        let Some(thread) = self.roster.thread(signal.at, id) else { return };
        thread.take_record(mark, name, record);
    }

    fn communicated(&mut self, signal: &Signal<'_>, record: &Record<'_>) {
        if record.text("kind") != Some("spawn") {
            return;
        }
        let (Some(parent), Some(child)) =
            (record.text("sender_thread_id"), record.text("receiver_thread_id"))
        else {
            return;
        };
        let session =
            self.roster.thread(signal.at, parent).map_or(Arc::from(parent), |p| p.session.clone());
        self.introduce(signal.at, child, Role::Subagent { session });
    }

    /// Title, guardian and subagent threads write the same records as a session. What tells them
    /// apart is what they are asked, and that they start while another thread works.
    fn meet_by_record(&mut self, now: Timestamp, id: &str, name: &str, record: &Record<'_>) {
        match name {
            "codex.conversation_starts" => {
                let confined = record.text("sandbox_policy") == Some("read-only");
                if !confined && !self.roster.anybody_works(id) {
                    self.introduce(now, id, Role::Session);
                }
            }
            "codex.user_prompt" => {
                let prompt = record.text("prompt").unwrap_or_default();
                if is_hidden_prompt(prompt) {
                    self.introduce(now, id, Role::Hidden);
                } else if prompt != "[REDACTED]" {
                    self.introduce(now, id, Role::Session);
                }
            }
            "codex.tool_result" if record.text("agent_name") == Some("/root") => {
                self.introduce(now, id, Role::Session);
            }
            _ => {}
        }
    }
}

impl Thread {
    fn take_record(&mut self, mark: Mark, name: &str, record: &Record<'_>) {
        let call = record.text("call_id");
        match name {
            "codex.conversation_starts" => self.exists(mark),
            "codex.user_prompt" => {
                let prompt = record.text("prompt").filter(|prompt| *prompt != "[REDACTED]");
                self.prompted(mark, None, prompt);
            }
            "codex.api_request" => self.api_requested(mark, record),
            // A socket is warmed up before anybody has asked for anything.
            "codex.websocket_request" if self.turn.open => self.llm(mark, None),
            "codex.sse_event" => self.streamed(mark, record),
            "codex.tool_decision" => {
                let Some(call) = call else { return };
                if record.text("decision") == Some("ask_user") {
                    return self.person_asked(mark, call, record.text("tool_name"));
                }
                self.resolve_call(mark, &CallId::new(call));
                if record.text("decision").is_some_and(|said| said.starts_with("approved")) {
                    let tool = record.text("tool_name").unwrap_or_default();
                    self.start_tool(mark, None, Self::call(call, tool, None));
                }
            }
            "codex.tool_result" => {
                let Some(call) = call else { return };
                if !self.turn.heard.anybody() {
                    // The turn goes on: the response before it was not the last.
                    self.ending = None;
                }
                self.end_tool(mark, None, &CallId::new(call), true);
            }
            _ => {}
        }
    }

    /// Nobody has decided yet: a person is to.
    fn person_asked(&mut self, mark: Mark, call: &str, tool: Option<&str>) {
        let id = self.request_id(call);
        let call = CallId::new(call);
        let known = self.requests.of_call(&call).map(|request| request.id.clone());
        if let Some(known) = known {
            return self.needs_person(&known);
        }
        let ask = Ask { call: Some(call), tool: tool.map(ToolName::new), ..Ask::default() };
        let request = Request {
            id,
            kind: Kind::Approval,
            stage: Stage::Waiting,
            mark,
            due: None,
            settled: None,
            ask,
            command: None,
            made_up: false,
            rpc: None,
        };
        self.ask(None, request);
    }

    fn api_requested(&mut self, mark: Mark, record: &Record<'_>) {
        let endpoint = record.text("endpoint").unwrap_or_default();
        if !endpoint.starts_with("/responses") {
            return;
        }
        match record.text("error.message") {
            Some(message) => {
                if self.at_work(mark, None) {
                    let message = Some(excerpt::label(message));
                    self.tell(mark, Fact::LlmRetrying { message });
                    self.end_in_silence(mark, SILENT_FAILURE_MS);
                }
            }
            None => self.llm(mark, None),
        }
    }

    fn streamed(&mut self, mark: Mark, record: &Record<'_>) {
        match record.text("event.kind") {
            Some("response.created") => self.llm(mark, None),
            Some("response.completed") if record.count("input_token_count").is_some() => {
                if !self.turn.heard.anybody()
                    && let Some(tokens) =
                        record.count("tool_token_count").filter(|tokens| *tokens > 0)
                {
                    let usage = Usage {
                        model: record.text("model").map(excerpt::label),
                        context_tokens: Some(tokens),
                        context_window: None,
                    };
                    self.uses(mark, usage);
                }
                self.end_in_silence(mark, SILENT_END_MS);
            }
            Some(_) | None => {}
        }
    }

    /// Where nobody else is heard, silence must do for an end.
    fn end_in_silence(&mut self, mark: Mark, silence_ms: u64) {
        if !self.turn.heard.anybody() && self.turn.open && !self.calls.any_open() {
            self.end_after(mark, silence_ms, None, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::story::story;

    const OF_T: (&str, &str) = ("conversation.id", "T");
    const OF_X: (&str, &str) = ("conversation.id", "X");
    const STARTS: &str = "codex.conversation_starts";
    const ASKED: (&str, &str) = ("endpoint", "/responses");

    #[test]
    fn work_shows_and_only_a_long_silence_ends_it() {
        story()
            .telemetry(
                1_000,
                &[
                    (0, STARTS, &[OF_T, ("sandbox_policy", "workspace-write")]),
                    (300, "codex.user_prompt", &[OF_T, ("prompt", "go")]),
                    (400, "codex.api_request", &[OF_T, ASKED]),
                    (
                        500,
                        "codex.sse_event",
                        &[OF_T, ("event.kind", "response.completed"), ("input_token_count", "12")],
                    ),
                ],
            )
            .check_at(20_000, &["1000 thinking", "6000 idle"]);
    }

    #[test]
    fn an_open_tool_is_never_ended_by_silence() {
        story()
            .telemetry(
                1_000,
                &[
                    (300, "codex.user_prompt", &[OF_T, ("prompt", "go")]),
                    (
                        900,
                        "codex.tool_decision",
                        &[
                            OF_T,
                            ("call_id", "c1"),
                            ("tool_name", "exec_command"),
                            ("decision", "approved"),
                            ("source", "Config"),
                        ],
                    ),
                ],
            )
            .check_at(50_000, &["1000 acting"]);
    }

    #[test]
    fn warming_up_a_socket_is_not_work() {
        story()
            .telemetry(
                1_000,
                &[
                    (0, STARTS, &[OF_T, ("sandbox_policy", "workspace-write")]),
                    (10, "codex.websocket_request", &[OF_T, ("success", "true")]),
                    (
                        20,
                        "codex.sse_event",
                        &[OF_T, ("event.kind", "response.completed"), ("input_token_count", "0")],
                    ),
                ],
            )
            .check_at(5_000, &["1000 idle"]);
    }

    #[test]
    fn hidden_threads_make_no_sessions() {
        story()
            .telemetry(
                1_000,
                &[
                    (0, "codex.user_prompt", &[OF_T, ("prompt", "go")]),
                    (10, STARTS, &[OF_X, ("sandbox_policy", "read-only")]),
                    (20, "codex.user_prompt", &[OF_X, ("prompt", "Generate a concise, single-line task title of at most 36 characters")]),
                    (30, "codex.api_request", &[OF_X, ASKED]),
                ],
            )
            .check_at(2_000, &["1000 thinking"]);
    }

    #[test]
    fn the_decision_ends_a_wait_that_only_a_hook_told_of() {
        let touch = r#""tool_name":"Bash","tool_input":{"command":"touch /x"},"tool_use_id":"c1""#;
        story()
            .hook(0, "PreToolUse", touch)
            .hook(
                100,
                "PermissionRequest",
                r#""tool_name":"Bash","tool_input":{"command":"touch /x"}"#,
            )
            .telemetry(
                3_000,
                &[(
                    2_500,
                    "codex.tool_decision",
                    &[
                        OF_T,
                        ("call_id", "c1"),
                        ("decision", "approved_for_session"),
                        ("source", "User"),
                    ],
                )],
            )
            .check(&["0 acting", "500 needs_permission", "3000 acting"]);
    }

    #[test]
    fn what_comes_late_does_not_wake_a_finished_turn() {
        story()
            .rollout_begins(0)
            .line(
                900,
                "event_msg",
                r#"{"type":"task_complete","turn_id":"U","last_agent_message":"Done."}"#,
            )
            .telemetry(
                1_500,
                &[
                    (100, "codex.user_prompt", &[OF_T, ("prompt", "go")]),
                    (300, "codex.tool_result", &[OF_T, ("call_id", "c1"), ("success", "true")]),
                    (700, "codex.api_request", &[OF_T, ASKED]),
                ],
            )
            .check_at(5_000, &["0 idle", "0 thinking", "1050 task_complete"]);
    }

    #[test]
    fn a_decision_that_is_left_to_a_person_waits_until_it_is_made() {
        let decided = |decision| {
            [OF_T, ("call_id", "c1"), ("tool_name", "exec_command"), ("decision", decision)]
        };
        let (asks, approved) = (decided("ask_user"), decided("approved"));
        story()
            .telemetry(
                1_000,
                &[
                    (0, STARTS, &[OF_T, ("sandbox_policy", "workspace-write")]),
                    (300, "codex.user_prompt", &[OF_T, ("prompt", "go")]),
                    (500, "codex.tool_decision", &asks),
                ],
            )
            .telemetry(9_000, &[(9_000, "codex.tool_decision", &approved)])
            .check_at(9_500, &["1000 needs_permission", "9000 acting"]);
    }

    #[test]
    fn a_tool_that_ran_puts_the_silent_end_off() {
        let completed = [OF_T, ("event.kind", "response.completed"), ("input_token_count", "12")];
        story()
            .telemetry(
                1_000,
                &[
                    (300, "codex.user_prompt", &[OF_T, ("prompt", "go")]),
                    (500, "codex.sse_event", &completed),
                    (600, "codex.tool_result", &[OF_T, ("call_id", "c1"), ("success", "true")]),
                ],
            )
            .check_at(20_000, &["1000 thinking"]);
    }
}
