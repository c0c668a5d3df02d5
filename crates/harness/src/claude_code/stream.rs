//! The JSON stream of `-p` and of the stdio protocol: the conversation itself, as it goes.
//!
//! `system/init` begins each turn and `result` ends it. An API error is a `result` of subtype
//! `success` with `is_error`. Block messages here have no stop reason: only `result` tells.

use std::sync::Arc;

use qd_session::id::AgentId;
use qd_session::moment::Timestamp;
use qd_session::monitor::{Fact, Place};
use serde_json::Value;

use super::failure::failure;
use super::hooks::finished_subagent;
use super::notes::Notes;
use super::request::Kind;
use super::session::{Prompt, Session};
use super::transcript::{calls, context_tokens, is_interrupt, results};
use super::wire::{Content, Message, StreamLine};
use crate::excerpt::{head, label};

/// What is remembered of one stream.
#[derive(Debug, Default)]
pub struct Stream {
    /// Whose it is, once a message has said so.
    pub session: Option<Arc<str>>,
    /// Written to it before that.
    pub early_prompt: Option<(Timestamp, Arc<str>)>,
    /// Between a prompt and its result.
    pub running: bool,
    /// The task of a subagent's call: hooks and transcripts know it by the task's id.
    tasks: Vec<(Arc<str>, Arc<str>)>,
}

/// Most subagents of one stream whose ids are joined.
const TASKS_MAX: usize = 64;

/// A prompt was written to it.
pub fn prompt(stream: &mut Stream, session: &mut Session, notes: &mut Notes, text: Option<&str>) {
    let prompt = Prompt { id: None, text, by_machine: false };
    if std::mem::replace(&mut stream.running, true) {
        session.prompt_typed(notes, prompt);
    } else {
        session.turn_started(notes, prompt);
    }
}

/// The text of a message of the conversation.
pub fn text_of(line: &StreamLine<'_>) -> Option<String> {
    match message(line)?.content {
        Content::Text(text) => Some(text),
        Content::Blocks(blocks) => blocks.into_iter().find_map(|block| block.text),
        Content::Other(_) => None,
    }
}

fn message(line: &StreamLine<'_>) -> Option<Message> {
    serde_json::from_str(line.message?.get()).ok()
}

/// Takes a message of the client in. False if its type is not known.
pub fn take(
    stream: &mut Stream,
    session: &mut Session,
    notes: &mut Notes,
    line: &StreamLine<'_>,
) -> bool {
    let agent = stream.agent_of(line);
    match line.kind.as_deref().unwrap_or_default() {
        "system" => system(stream, session, notes, line),
        "assistant" => assistant(session, notes, line, &agent),
        "user" => user(session, notes, line, &agent),
        "stream_event" => {
            let kind = line.event.as_ref().and_then(|event| event.kind.as_deref());
            if kind == Some("message_start") {
                notes.tell(&agent, Fact::LlmStarted);
            }
        }
        "result" => {
            stream.running = false;
            result(session, notes, line);
        }
        "keep_alive" | "tool_progress" | "auth_status" | "rate_limit_event"
        | "tool_use_summary" | "prompt_suggestion" | "streamlined_text" => {}
        _ => return false,
    }
    true
}

impl Stream {
    fn agent_of(&self, line: &StreamLine<'_>) -> AgentId {
        let Some(call) = line.parent_tool_use_id.as_deref() else { return AgentId::MAIN };
        let task = self.tasks.iter().find(|(known, _)| **known == *call).map(|(_, task)| task);
        AgentId::sub(task.cloned().unwrap_or_else(|| head(call, 128).into()))
    }

    fn task_started(&mut self, call: &str, task: &str) {
        if self.tasks.len() == TASKS_MAX {
            self.tasks.remove(0);
        }
        self.tasks.push((head(call, 128).into(), head(task, 128).into()));
    }
}

fn system(stream: &mut Stream, session: &mut Session, notes: &mut Notes, line: &StreamLine<'_>) {
    match line.subtype.as_deref().unwrap_or_default() {
        "init" => init(stream, session, notes, line),
        "status" => status(session, notes, line),
        "hook_started" if line.hook_event.as_deref() == Some("SessionStart") => {
            notes.tell_main(Fact::SessionStarted { process: None });
        }
        "thinking_tokens" => notes.tell_main(Fact::LlmStarted),
        "api_retry" => {
            let text = line.error.as_ref().and_then(Value::as_str);
            notes.tell_main(Fact::LlmRetrying { message: text.map(|text| head(text, 200).into()) });
        }
        "permission_denied" => {
            if let Some(call) = line.tool_use_id.as_deref() {
                session.call_answered(notes, call, false);
            }
        }
        "task_started" => {
            if let (Some(call), Some(task)) = (&line.tool_use_id, &line.task_id) {
                stream.task_started(call, task);
            }
        }
        "task_notification" => {
            if let Some(task) = line.task_id.as_deref() {
                session.background.settled(task);
            }
        }
        "task_updated" => {
            let state = line.patch.as_ref().and_then(|patch| patch.status.as_deref());
            if let (Some("completed" | "failed" | "killed"), Some(task)) = (state, &line.task_id) {
                session.background.settled(task);
            }
        }
        "compact_boundary" => session.compaction_ended(notes),
        "session_state_changed" => state(stream, session, notes, line.state.as_deref()),
        _ => {}
    }
}

fn init(stream: &mut Stream, session: &mut Session, notes: &mut Notes, line: &StreamLine<'_>) {
    let cwd = line.cwd.as_deref().map(|path| head(path, 4 << 10).into());
    let version = line.claude_code_version.as_deref().map(label);
    session.place_known(notes, Place { cwd, version, ..Place::default() });
    session.mode_known(notes, line.permission_mode.as_deref());
    session.usage_known(notes, line.model.as_deref(), None);
    if std::mem::replace(&mut stream.running, true) {
        session.llm_started(notes, &AgentId::MAIN);
    } else {
        session.turn_started(notes, Prompt { id: None, text: None, by_machine: false });
    }
}

fn status(session: &mut Session, notes: &mut Notes, line: &StreamLine<'_>) {
    session.mode_known(notes, line.permission_mode.as_deref());
    match line.status.as_deref() {
        Some("compacting") => session.compaction_started(notes),
        Some("requesting") => notes.tell_main(Fact::LlmStarted),
        Some(_) => {}
        None if line.compact_result.is_some() => session.compaction_ended(notes),
        None => {}
    }
}

/// Where it is switched on, the client's own word.
fn state(stream: &mut Stream, session: &mut Session, notes: &mut Notes, state: Option<&str>) {
    match state {
        Some("running") => {
            session.requests.resolve_unbound(notes, &AgentId::MAIN);
            notes.tell_main(Fact::LlmStarted);
        }
        Some("requires_action") => session.dialog_opened(notes, notes.at, Kind::Permission, None),
        Some("idle") => {
            stream.running = false;
            session.turn_ended(notes, None, false);
        }
        Some(_) | None => {}
    }
}

fn assistant(session: &mut Session, notes: &mut Notes, line: &StreamLine<'_>, agent: &AgentId) {
    let Some(message) = message(line) else { return };
    let blocks = match &message.content {
        Content::Blocks(blocks) => blocks.as_slice(),
        Content::Text(_) | Content::Other(_) => &[],
    };
    let text = blocks.iter().find_map(|block| block.text.as_deref());
    let error = line.error.as_ref().and_then(Value::as_str);
    if line.is_api_error_message == Some(true) || error.is_some() {
        return session.turn_failed(notes, agent, failure(error, line.api_error_status, text));
    }
    if !agent.is_main() {
        session.subagent_started(notes, agent.as_str(), None);
    } else {
        session.compaction_ended(notes);
        session.usage_known(notes, message.model.as_deref(), context_tokens(&message.usage));
    }
    // The transcript may have told already that this message was the last.
    if !(agent.is_main() && session.was_last(message.id.as_deref())) {
        notes.tell(agent, Fact::LlmStarted);
    }
    calls(session, notes, agent, blocks);
}

fn user(session: &mut Session, notes: &mut Notes, line: &StreamLine<'_>, agent: &AgentId) {
    let Some(message) = message(line) else { return };
    let Content::Blocks(blocks) = message.content else { return };
    let refused = |text: &str| text.starts_with("The user doesn't want to proceed");
    let rejected = blocks
        .iter()
        .any(|block| block.content.as_ref().and_then(Value::as_str).is_some_and(refused));
    for block in &blocks {
        // A subagent that was waited for is done when its call is.
        if let (true, Some(call)) = (agent.is_main(), block.tool_use_id.as_deref()) {
            session.subagent_of_call_ended(notes, call);
        }
    }
    results(session, notes, agent, &blocks, line.tool_use_result.as_ref(), rejected);
    if let Some(result) = &line.tool_use_result {
        session.background.note_result(result);
        finished_subagent(session, notes, result);
    }
    let text = blocks.iter().find_map(|block| block.text.as_deref()).unwrap_or_default();
    if is_interrupt(text) {
        session.interrupted(notes, agent);
    } else if line.is_synthetic == Some(true) && line.is_replay != Some(true) && !text.is_empty() {
        session.llm_started(notes, agent);
    }
}

fn result(session: &mut Session, notes: &mut Notes, line: &StreamLine<'_>) {
    let text = line.result.as_deref();
    let reason = line.terminal_reason.as_deref().unwrap_or_default();
    let main = AgentId::MAIN;
    if reason.starts_with("aborted") {
        return session.interrupted(notes, &main);
    }
    session.compaction_ended(notes);
    let subtype = line.subtype.as_deref().unwrap_or_default();
    if line.is_error == Some(true) || subtype.starts_with("error") {
        let told = line.errors.iter().flatten().find_map(Value::as_str).unwrap_or(subtype);
        let failure =
            failure(line.api_error.as_deref(), line.api_error_status, text.or(Some(told)));
        return session.turn_failed(notes, &main, failure);
    }
    session.turn_ended(notes, text, line.stop_reason.as_deref() == Some("max_tokens"));
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::story::Story;
    use crate::signal::Direction;

    fn prompted() -> Story {
        let mut story = Story::new();
        story.stream(0, json!({"type": "system", "subtype": "init", "permissionMode": "default"}));
        story.stream(
            500,
            json!({"type": "assistant", "message": {"content": [
            {"type": "tool_use", "id": "c1", "name": "Write", "input": {"content": "x"}}]}}),
        );
        story
    }

    fn can_use(tool: &str) -> Value {
        json!({"type": "control_request", "request_id": "r1", "request": {
            "subtype": "can_use_tool", "tool_name": tool, "input": {}, "tool_use_id": "c1"}})
    }

    fn answer(response: &Value) -> Value {
        json!({"type": "control_response", "response": {"subtype": "success",
            "request_id": "r1", "response": response}})
    }

    #[test]
    fn the_driver_is_asked_at_once_and_its_answer_closes_the_request() {
        prompted()
            .shows("acting")
            .control(600, Direction::FromAgent, &can_use("Write"))
            .shows("needs_permission")
            .control(900, Direction::ToAgent, &answer(&json!({"behavior": "allow"})))
            .shows("acting");
    }

    #[test]
    fn a_hooks_request_after_the_drivers_answer_opens_nothing() {
        prompted()
            .control(600, Direction::FromAgent, &can_use("AskUserQuestion"))
            .shows("awaiting_input")
            .control(601, Direction::ToAgent, &answer(&json!({"behavior": "allow"})))
            .hook(
                640,
                json!({"hook_event_name": "PermissionRequest", "tool_name": "Write",
                "tool_input": {"content": "x"}}),
            )
            .wait_until(5_000)
            .shows("acting");
    }

    #[test]
    fn without_a_driver_to_ask_a_print_run_shows_no_card() {
        prompted()
            .hook(
                600,
                json!({"hook_event_name": "PermissionRequest", "tool_name": "Write",
                "tool_input": {"content": "x"}}),
            )
            .wait_until(5_000)
            .never_showed("needs_permission");
    }

    #[test]
    fn an_interrupted_request_goes_to_interrupted_without_a_flash() {
        prompted()
            .control(600, Direction::FromAgent, &can_use("Write"))
            .control(
                2_000,
                Direction::FromAgent,
                &json!({"type": "control_cancel_request", "request_id": "r1"}),
            )
            .shows("needs_permission")
            .stream(
                2_030,
                json!({"type": "result", "subtype": "error_during_execution",
                "is_error": true, "terminal_reason": "aborted_tools"}),
            )
            .shows("interrupted");
    }

    #[test]
    fn a_result_ends_the_turn_and_the_next_prompt_of_the_same_moment_begins_one() {
        let prompt = json!({"type": "user", "message": {"role": "user", "content": "next"},
            "session_id": ""});
        prompted()
            .stream(900, json!({"type": "result", "subtype": "success", "result": "Written."}))
            .shows("task_complete")
            .control(900, Direction::ToAgent, &prompt)
            .shows("thinking");
    }

    #[test]
    fn an_api_error_is_a_success_that_is_none() {
        prompted()
            .stream(900, json!({"type": "system", "subtype": "api_retry", "error": "overloaded"}))
            .shows("retrying")
            .stream(
                2_000,
                json!({"type": "result", "subtype": "success", "is_error": true,
                "terminal_reason": "api_error", "api_error_status": 529, "result": "API Error"}),
            )
            .shows("server_error");
    }

    #[test]
    fn the_last_message_told_again_by_the_stream_reopens_nothing() {
        prompted()
            .said(600, "end_turn", "Done.")
            .wait_until(1_000)
            .shows("task_complete")
            .stream(
                1_001,
                json!({"type": "assistant", "message": {"id": "m600", "content": [
                {"type": "text", "text": "Done."}]}}),
            )
            .shows("task_complete");
    }

    #[test]
    fn compaction_shows_until_its_status_is_cleared() {
        prompted()
            .stream(900, json!({"type": "system", "subtype": "status", "status": "compacting"}))
            .shows("compacting")
            .stream(
                2_000,
                json!({"type": "system", "subtype": "status", "status": null,
                "compact_result": "failed"}),
            )
            .shows("acting");
    }

    #[test]
    fn the_clients_own_word_on_its_state_is_taken() {
        let state = |state: &str| json!({"type": "system", "subtype": "session_state_changed", "state": state});
        prompted()
            .stream(900, state("requires_action"))
            .shows("needs_permission")
            .control(910, Direction::FromAgent, &can_use("Write"))
            .control(2_000, Direction::ToAgent, &answer(&json!({"behavior": "allow"})))
            .stream(2_010, state("running"))
            .shows("acting")
            .stream(3_000, state("idle"))
            .shows("idle");
    }
}
