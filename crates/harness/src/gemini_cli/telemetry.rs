//! Telemetry records: late and without call ids, but the only ones to tell of a rejected dialog.

use qd_session::id::AgentId;
use qd_session::monitor::{Fact, FailureKind, Usage};
use serde_json::Value;

use super::calls::{Described, Teller};
use super::session::Session;
use super::stream::failure_in;
use super::wire::{Hook, HookOutput};
use crate::otlp::Record;
use crate::outbox::Outbox;
use crate::{excerpt, failure_sign};

/// How long a reply without a tool call waits to be the end of its turn, where no hook and no
/// stream tells the end.
const REPLY_IS_LAST_MS: u64 = 500;

impl Session {
    /// Takes a record in. False if it is none of the client's.
    pub fn record(&mut self, record: &Record<'_>, out: &mut Outbox) -> bool {
        let name = record.text("event.name").unwrap_or_default();
        let Some(name) = name.strip_prefix("gemini_cli.") else { return false };
        match name {
            "config" => {
                out.tell(Fact::SessionStarted { process: None });
                mode(record.text("approval_mode"), out);
                tell_usage(record.text("model"), None, out);
            }
            "user_prompt" => self.begin_turn(Some(record.text("prompt").unwrap_or("")), out),
            "api_request" if is_main(record) => self.think(out),
            "api_response" => self.responded(record, out),
            "api_error" if is_main(record) => self.model_failed(record, out),
            "network_retry_attempt" | "chat.content_retry" => {
                self.retry(record.text("error_type"), out);
            }
            "chat.content_retry_failure" => {
                let why = record.text("final_error_type").unwrap_or_default();
                self.end_turn(Fact::TurnFailed { failure: failure_in(why) }, out);
            }
            "tool_call" => self.tool_called(record, out),
            "hook_call" => self.hook_called(record, out),
            "conversation_finished" => {
                let ending = self.completed(None);
                self.end_turn(ending, out);
            }
            "chat_compression" => self.end_compaction(out),
            "agent.start" | "agent.finish" => self.agent_told(name, record, out),
            "plan.approval_mode_switch" => mode(record.text("to_mode"), out),
            "plan.execution" => mode(record.text("approval_mode"), out),
            // File operations, routing, durations: nothing an operator waits for.
            _ => {}
        }
        true
    }

    fn responded(&mut self, record: &Record<'_>, out: &mut Outbox) {
        if record.text("role") == Some("utility_compressor") {
            self.end_compaction(out);
        }
        if !is_main(record) {
            return;
        }
        let tokens = record.count("total_token_count");
        tell_usage(record.text("model"), tokens, out);
        if !self.end_is_told
            && let Some(reply) = record.text("response_text").and_then(reply_without_tools)
        {
            let ending = self.completed(Some(&reply));
            self.end_turn_later(ending, REPLY_IS_LAST_MS, out);
        }
    }

    /// The client tries again by itself when the service is busy, and gives up on the rest.
    fn model_failed(&mut self, record: &Record<'_>, out: &mut Outbox) {
        let message = record.text("error").or(record.text("error.message")).unwrap_or_default();
        let status = record.count("status_code").and_then(|status| i64::try_from(status).ok());
        let status = status.or_else(|| failure_sign::status_in(message));
        let kind = status.and_then(failure_sign::of_status);
        match (status, kind) {
            (Some(_), Some(FailureKind::Server | FailureKind::UsageLimit)) | (None, _) => {
                self.retry(Some(message), out);
            }
            (Some(_), Some(FailureKind::Auth | FailureKind::Other) | None) => {
                self.end_turn(Fact::TurnFailed { failure: failure_in(message) }, out);
            }
        }
    }

    fn retry(&mut self, why: Option<&str>, out: &mut Outbox) {
        self.work(out.at());
        out.tell(Fact::LlmRetrying { message: why.and_then(excerpt::about) });
    }

    fn tool_called(&mut self, record: &Record<'_>, out: &mut Outbox) {
        let input = record.text("function_args").and_then(|args| serde_json::from_str(args).ok());
        let told = Described {
            teller: Teller::Telemetry,
            vendor: None,
            tool: record.text("function_name").unwrap_or_default(),
            input: input.as_ref(),
        };
        let ok = record.flag("success").unwrap_or(true);
        let ended = self.calls.end(told).map(|call| (call.completed(ok), call.delegates()));
        self.resolve_loose(out);
        if let Some((completed, _)) = &ended {
            out.tell(completed.clone());
        }
        // The dialog was cancelled, and with it the turn; no hook fires for that.
        if record.text("decision") == Some("reject") {
            self.end_turn(Fact::Interrupted, out);
        } else if let Some((_, delegated)) = ended {
            self.call_ended(delegated, out);
        }
    }

    /// A hook, told again: news only where the hook itself did not reach us. What it answered is
    /// told nowhere else.
    fn hook_called(&mut self, record: &Record<'_>, out: &mut Outbox) {
        let input = record.text("hook_input").unwrap_or_default();
        let whole = serde_json::from_str(input).ok();
        let whole = whole.filter(|hook: &Hook| hook.hook_event_name.is_some());
        let hook = whole.unwrap_or_else(|| what_is_left(record, input));
        self.hook(&hook, out);
        let answer: HookOutput = record
            .text("stdout")
            .and_then(|answer| serde_json::from_str(answer).ok())
            .unwrap_or_default();
        let denied = matches!(answer.decision.as_deref(), Some("deny" | "block"));
        match hook.hook_event_name.as_deref() {
            Some("BeforeAgent") if denied || answer.goes_on == Some(false) => {
                self.end_turn(Fact::Interrupted, out);
            }
            Some("BeforeTool") if answer.goes_on == Some(false) => {
                self.end_turn(Fact::Interrupted, out);
            }
            // The agent is sent on with the reason as its prompt.
            Some("AfterAgent") if denied => self.think(out),
            Some(_) | None => {}
        }
    }

    fn agent_told(&mut self, name: &str, record: &Record<'_>, out: &mut Outbox) {
        let Some(agent) = record.text("agent_id").map(AgentId::sub) else { return };
        match name {
            "agent.start" => self.begin_subagent(&agent, record.text("agent_name"), out),
            _ => self.end_subagent(&agent, out),
        }
    }
}

/// A model request of the conversation itself, not of a title or a check.
fn is_main(record: &Record<'_>) -> bool {
    record.text("role").is_none_or(|role| role == "main")
}

fn mode(mode: Option<&str>, out: &mut Outbox) {
    if let Some(mode) = mode {
        out.tell(Fact::ModeChanged { mode: mode.into() });
    }
}

fn tell_usage(model: Option<&str>, context_tokens: Option<u64>, out: &mut Outbox) {
    let usage = Usage { model: model.map(Into::into), context_tokens, context_window: None };
    out.tell(Fact::UsageReported { usage });
}

/// The text of a reply that calls no tool; none if it calls one, or was cut and may.
fn reply_without_tools(response: &str) -> Option<String> {
    if response.contains("\"functionCall\"") {
        return None;
    }
    let chunks: Value = serde_json::from_str(response).ok()?;
    let chunks = chunks.as_array().cloned().unwrap_or_else(|| vec![chunks]);
    let texts: Vec<&str> = chunks
        .iter()
        .filter_map(|chunk| chunk.get("candidates")?.get(0)?.get("content")?.get("parts"))
        .filter_map(Value::as_array)
        .flatten()
        .filter_map(|part| part.get("text")?.as_str())
        .collect();
    Some(texts.concat())
}

/// A hook whose input was cut off.
fn what_is_left(record: &Record<'_>, input: &str) -> Hook {
    let details = ["type", "title", "command", "filePath", "toolName"];
    let details = details.iter().filter_map(|name| {
        let value = field_in(input, name)?;
        Some(((*name).to_owned(), Value::from(value)))
    });
    Hook {
        hook_event_name: record.text("hook_event_name").map(str::to_owned),
        timestamp: field_in(input, "timestamp"),
        tool_name: field_in(input, "tool_name"),
        trigger: field_in(input, "trigger"),
        notification_type: field_in(input, "notification_type"),
        details: Some(Value::Object(details.collect())),
        ..Hook::default()
    }
}

/// A text field of JSON that was cut off somewhere behind it.
fn field_in(json: &str, name: &str) -> Option<String> {
    let (_, rest) = json.split_once(&format!("\"{name}\""))?;
    let (_, value) = rest.split_once('"')?;
    let (value, _) = value.split_once('"')?;
    Some(value.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::Harness;
    use crate::signal::Channel;
    use crate::story::Story;

    fn record(story: &mut Story, at: u64, name: &str, more: Value) {
        let (second, millis) = (at / 1_000, at % 1_000);
        let mut attributes = json!({"session.id": "s", "event.name": format!("gemini_cli.{name}"),
            "event.timestamp": format!("1970-01-01T00:00:{second:02}.{millis:03}Z")});
        let fields = attributes.as_object_mut().expect("an object");
        fields.extend(more.as_object().expect("an object").clone());
        story.hear(at, Channel::Otel, &json!({"body": "…", "attributes": attributes}));
    }

    fn prompted() -> Story {
        let mut story = Story::of(Harness::GeminiCli);
        record(&mut story, 0, "config", json!({"approval_mode": "default", "model": "m"}));
        record(&mut story, 1_000, "user_prompt", json!({"prompt": "go"}));
        assert_eq!(story.state(), "autonomous/thinking");
        story
    }

    fn echo(event: &str, input: &str, stdout: &str) -> Value {
        json!({"hook_event_name": event, "hook_input": input, "stdout": stdout})
    }

    #[test]
    fn a_rejected_dialog_interrupts_the_turn() {
        let mut story = prompted();
        record(
            &mut story,
            2_000,
            "tool_call",
            json!({"function_name": "run_shell_command", "success": false, "decision": "reject"}),
        );
        assert_eq!(story.state(), "needs_you/interrupted");
    }

    #[test]
    fn a_dialog_is_known_from_a_hook_that_was_cut_off() {
        let mut story = prompted();
        let input = "{\n \"timestamp\": \"1970-01-01T00:00:02.000Z\",\n \"notification_type\": \
            \"ToolPermission\",\n \"details\": {\n \"type\": \"exec\",\n \"comm…[cut]";
        record(&mut story, 2_100, "hook_call", echo("Notification", input, ""));
        assert_eq!(story.state(), "needs_you/needs_permission");
    }

    #[test]
    fn a_hook_that_refuses_the_prompt_ends_the_turn() {
        let mut story = prompted();
        let refused = "{\"decision\":\"deny\",\"reason\":\"Not now.\"}";
        record(&mut story, 2_000, "hook_call", echo("BeforeAgent", "{}", refused));
        assert_eq!(story.state(), "needs_you/interrupted");
    }

    #[test]
    fn a_reply_without_tools_is_the_end_where_nobody_else_tells_it() {
        let mut story = prompted();
        let reply = json!([{"candidates": [{"content": {"parts": [{"text": "It is done."}]}}]}]);
        record(&mut story, 2_000, "api_response", json!({"response_text": reply.to_string()}));
        assert_eq!(story.state(), "autonomous/thinking");
        story.wait(3_000);
        assert_eq!(story.state(), "delivered/task_complete");
    }

    #[test]
    fn a_busy_service_is_tried_again_and_a_bad_request_is_not() {
        let mut story = prompted();
        record(&mut story, 2_000, "api_error", json!({"status_code": 503, "error": "overloaded"}));
        assert_eq!(story.state(), "autonomous/retrying");
        record(&mut story, 3_000, "api_request", json!({"role": "main"}));
        assert_eq!(story.state(), "autonomous/thinking");
        record(&mut story, 4_000, "api_error", json!({"status_code": 400, "error": "bad"}));
        assert_eq!(story.state(), "needs_you/error");
    }

    #[test]
    fn titles_and_checks_are_not_the_agents_work() {
        let mut story = Story::of(Harness::GeminiCli);
        record(&mut story, 0, "config", json!({}));
        record(&mut story, 10, "api_request", json!({"role": "utility_summarizer"}));
        assert_eq!(story.state(), "needs_you/idle");
    }

    #[test]
    fn a_record_that_comes_late_does_not_reopen_the_turn() {
        let mut story = prompted();
        record(&mut story, 5_000, "conversation_finished", json!({}));
        assert_eq!(story.state(), "needs_you/idle");
        record(&mut story, 4_000, "api_request", json!({"role": "main"}));
        assert_eq!(story.state(), "needs_you/idle");
    }

    #[test]
    fn subagents_are_told_by_their_own_records() {
        let mut story = prompted();
        record(&mut story, 2_000, "agent.start", json!({"agent_id": "a", "agent_name": "review"}));
        assert_eq!(story.state(), "autonomous/delegating");
        record(&mut story, 3_000, "agent.finish", json!({"agent_id": "a"}));
        assert_eq!(story.state(), "autonomous/thinking");
    }

    #[test]
    fn an_otlp_body_is_read_like_its_records() {
        let mut story = Story::of(Harness::GeminiCli);
        let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
        let attributes = json!([
            text("session.id", "s"),
            text("event.name", "gemini_cli.user_prompt"),
            text("event.timestamp", "1970-01-01T00:00:01.000Z"),
            {"key": "prompt_length", "value": {"intValue": "24"}},
        ]);
        let body = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [
            {"timeUnixNano": "1", "attributes": attributes}]}]}]});
        story.hear(2_000, Channel::Otel, &body);
        assert_eq!(story.state(), "autonomous/thinking");
    }
}
