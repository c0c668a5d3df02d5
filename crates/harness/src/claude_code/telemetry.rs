//! Telemetry: OTLP log records, in batches and late, each with its own time.
//!
//! No record says that somebody is waited for, and none that a turn has ended well. Numbers come
//! as numbers or as text.

use std::sync::Arc;

use qd_session::id::AgentId;
use qd_session::moment::Timestamp;
use qd_session::monitor::Fact;

use super::call::End;
use super::failure::failure;
use super::notes::Notes;
use super::session::{Prompt, Session};
use crate::excerpt::head;
use crate::otlp::Record;
use crate::rfc3339;

/// When it happened: by the exporter's clock, else by the client's own.
pub fn happened(record: &Record<'_>) -> Option<Timestamp> {
    record.time().or_else(|| record.text("event.timestamp").and_then(rfc3339::timestamp))
}

/// Takes a record in. False if it says nothing about the session's state.
pub fn take(session: &mut Session, notes: &mut Notes, record: &Record<'_>) -> bool {
    let agent = record.text("agent_id").map_or(AgentId::MAIN, AgentId::sub);
    match record.text("event.name").unwrap_or_default() {
        "user_prompt" => {
            let id = record.text("prompt.id");
            session.prompt_typed(notes, Prompt { id, text: None, by_machine: false });
        }
        "api_request" => api_request(session, notes, &agent, record),
        "api_error" | "api_retries_exhausted" if !is_aside(record) => {
            let error = failure(None, record.count("status_code"), record.text("error"));
            session.turn_failed(notes, &agent, error);
        }
        "tool_decision" => {
            let call = record.text("tool_use_id");
            let accepted = record.text("decision") == Some("accept");
            if let (true, Some(call), Some(tool)) = (accepted, call, record.text("tool_name")) {
                session.call_started(notes, &agent, call, tool, None);
                session.call_answered(notes, call, true);
            }
        }
        "tool_result" => {
            if let Some(call) = record.text("tool_use_id") {
                let end = match record.text("success") {
                    Some("false") => End::FAILED,
                    Some(_) | None => End::OK,
                };
                session.call_ended(notes, &agent, call, end);
            }
        }
        "permission_mode_changed" => session.mode_known(notes, record.text("to_mode")),
        "compaction" => session.compaction_ended(notes),
        "subagent_completed" => {
            if let Some(id) = record.text("agent_id") {
                session.subagent_ended(notes, id);
            }
        }
        _ => return false,
    }
    true
}

/// Requests on the side: a compaction's, a title's.
fn is_aside(record: &Record<'_>) -> bool {
    let source = record.text("query_source").unwrap_or_default();
    !matches!(source, "" | "sdk" | "repl_main_thread" | "main") && !source.starts_with("agent:")
}

/// Logged when the answer was complete: the model has been at work since it was asked.
fn api_request(session: &Session, notes: &mut Notes, agent: &AgentId, record: &Record<'_>) {
    if is_aside(record) {
        return;
    }
    let asked_at = notes.at.0.saturating_sub(record.count("duration_ms").unwrap_or_default());
    notes.tell_at(Timestamp(asked_at), agent, Fact::LlmStarted);
    if agent.is_main() {
        let model: Option<Arc<str>> = record.text("model").map(|model| head(model, 128).into());
        let parts = ["input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens"];
        let counts = parts.iter().filter_map(|part| record.count(part));
        let tokens = counts.fold(0, u64::saturating_add);
        session.usage_known(notes, model.as_deref(), Some(tokens).filter(|sum| *sum > 0));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::story::{START, Story};
    use crate::signal::{Channel, Direction};

    fn tell(story: &mut Story, at: u64, happened: u64, name: &str, more: Value) {
        let text = |key: &str, value: Value| json!({"key": key, "value": {"stringValue": value}});
        let mut attributes = vec![text("session.id", "s1".into()), text("event.name", name.into())];
        attributes.extend(
            more.as_object().into_iter().flatten().map(|(key, value)| text(key, value.clone())),
        );
        let record = json!({"timeUnixNano": format!("{}000000", START + happened),
            "attributes": attributes});
        let body = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]});
        let payload = body.to_string();
        story.signal(at, Channel::Otel, Direction::FromAgent, None, payload.as_bytes());
    }

    #[test]
    fn late_telemetry_of_an_ended_turn_reopens_nothing() {
        let mut story = Story::prompted();
        story.stop(500, "Done.").wait_until(900);
        tell(&mut story, 5_000, 90, "user_prompt", json!({"prompt.id": "p1"}));
        tell(&mut story, 5_001, 510, "api_request", json!({"duration_ms": "300", "model": "m"}));
        story.shows("task_complete");
    }

    #[test]
    fn counts_that_nobody_can_hold_do_not_overflow() {
        let mut story = Story::prompted();
        let huge = u64::MAX.to_string();
        let more = json!({"input_tokens": huge, "output_tokens": huge, "duration_ms": huge});
        tell(&mut story, 2_000, 900, "api_request", more);
        story.shows("thinking");
    }

    #[test]
    fn an_accepted_tool_is_at_work() {
        let mut story = Story::prompted();
        let call = json!({"tool_use_id": "c1", "tool_name": "Bash", "decision": "accept"});
        tell(&mut story, 2_000, 900, "tool_decision", call);
        story.shows("acting");
        tell(&mut story, 3_000, 1_900, "tool_result", json!({"tool_use_id": "c1"}));
        story.shows("thinking");
    }

    #[test]
    fn used_up_retries_need_you_and_those_of_a_compaction_do_not() {
        let mut story = Story::prompted();
        let aside = json!({"status_code": "529", "query_source": "compact"});
        tell(&mut story, 1_000, 900, "api_retries_exhausted", aside);
        story.shows("thinking");
        let main = json!({"status_code": "529", "query_source": "sdk"});
        tell(&mut story, 2_000, 1_900, "api_retries_exhausted", main);
        story.shows("server_error");
    }
}
