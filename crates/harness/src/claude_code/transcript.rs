//! Transcripts: what the client writes down, line by line, when it is complete.
//!
//! Nothing is written while the model answers, and a tool that runs looks like one that waits for
//! a permission. But interrupts, rejections and API errors stand here, each with its own time.

use std::sync::Arc;

use qd_session::id::AgentId;
use qd_session::moment::Timestamp;
use qd_session::monitor::{Fact, Place};
use serde_json::Value;

use super::call::End;
use super::failure::failure;
use super::holders::Kind as Holder;
use super::hooks::finished_subagent;
use super::notes::Notes;
use super::session::{Prompt, Session};
use super::wire::{Attachment, Block, Content, Line, Message, TokenUsage};
use crate::excerpt::head;
use crate::rfc3339;

/// Lines that say nothing about the state. Some hold whole request bodies and are not read.
const SILENT: [&str; 29] = [
    "last-prompt",
    "mode",
    "atis-latch",
    "tools-used",
    "agent-name",
    "tag",
    "file-history-snapshot",
    "file-history-delta",
    "api-request-shape",
    "api-request-blob",
    "api-request",
    "pr-link",
    "worktree-state",
    "relocated",
    "continued-in",
    "derived-from",
    "ended-by-model",
    "bridge-session",
    "agent-color",
    "agent-setting",
    "content-replacement",
    "session-owner",
    "progress",
    "saved_hook_context",
    "context-collapse",
    "speculation-accept",
    "marble-origami-commit",
    "attribution-snapshot",
    "task-summary",
];

pub fn happened(line: &Line<'_>) -> Option<Timestamp> {
    line.timestamp.as_deref().and_then(rfc3339::timestamp)
}

/// Takes a line in. False if its type is not known.
pub fn take(session: &mut Session, notes: &mut Notes, line: &Line<'_>, file: Option<&str>) -> bool {
    let agent = agent_of(line, file);
    match line.kind.as_deref().unwrap_or_default() {
        "user" => {
            about(session, notes, line, &agent, file);
            user(session, notes, line, &agent);
        }
        "assistant" => {
            about(session, notes, line, &agent, file);
            assistant(session, notes, line, &agent);
        }
        "system" => {
            about(session, notes, line, &agent, file);
            system(session, notes, line, &agent);
        }
        "attachment" => attachment(session, notes, line),
        "queue-operation" => {
            if line.operation.as_deref() == Some("dequeue") {
                session.prompt_taken_up(notes);
            }
        }
        "permission-mode" => session.mode_known(notes, line.permission_mode.as_deref()),
        "custom-title" => title(session, notes, line.custom_title.as_deref(), true),
        "ai-title" => title(session, notes, line.ai_title.as_deref(), false),
        "summary" => title(session, notes, line.summary.as_deref(), false),
        // The totals are written at exit, with a cleared session, and when `/bg` opens its panel.
        "cost-state" if session.process_known => session.totals_written(notes),
        "cost-state" => {
            if session.holders.ended(notes.now, None) {
                session.ended(notes, None);
            }
        }
        kind => return SILENT.contains(&kind),
    }
    true
}

/// Subagents write files of their own; in old versions the line may name only the file.
fn agent_of(line: &Line<'_>, file: Option<&str>) -> AgentId {
    if let Some(id) = line.agent_id.as_deref() {
        return AgentId::sub(id);
    }
    if line.is_sidechain != Some(true) {
        return AgentId::MAIN;
    }
    let name = file.and_then(|file| file.rsplit('/').next()).unwrap_or_default();
    let id = name.strip_prefix("agent-").and_then(|name| name.strip_suffix(".jsonl"));
    AgentId::sub(id.unwrap_or("sidechain"))
}

fn about(
    session: &mut Session,
    notes: &mut Notes,
    line: &Line<'_>,
    agent: &AgentId,
    file: Option<&str>,
) {
    if let Some(kind) = line.entrypoint.as_deref().and_then(Holder::of_entrypoint) {
        session.holders.seen(kind);
    }
    if !agent.is_main() {
        // A subagent may work in a tree of its own.
        return;
    }
    let text =
        |part: &Option<String>| part.as_deref().map(|text| Arc::<str>::from(head(text, 4 << 10)));
    let branch = text(&line.git_branch).filter(|branch| !branch.is_empty());
    let own = file.filter(|file| is_file_of(file, &notes.session()));
    // A hook's word for it stays: it may spell the folder differently.
    let transcript = own.filter(|_| !session.knows_transcript()).map(Arc::from);
    let version = text(&line.version);
    let place = Place { cwd: text(&line.cwd), branch, transcript, version, ..Place::default() };
    session.place_known(notes, place);
    session.mode_known(notes, line.permission_mode.as_deref());
}

/// A session's own file is named after it. What a fork copied stands in another's.
fn is_file_of(file: &str, session: &str) -> bool {
    let name = file.starts_with('/').then(|| file.rsplit('/').next()).flatten();
    name.and_then(|name| name.strip_suffix(".jsonl")) == Some(session)
}

fn title(session: &mut Session, notes: &mut Notes, title: Option<&str>, custom: bool) {
    if let Some(title) = title.filter(|title| !title.is_empty()) {
        session.title_known(notes, title, custom);
    }
}

fn message(line: &Line<'_>) -> Option<Message> {
    serde_json::from_str(line.message?.get()).ok()
}

fn user(session: &mut Session, notes: &mut Notes, line: &Line<'_>, agent: &AgentId) {
    if line.is_compact_summary == Some(true) {
        return session.compaction_ended(notes);
    }
    if session.shared && line.tool_denial_kind.as_deref() == Some("interrupted") {
        // A process that resumes the session closes what it finds open; another still has it so.
        return;
    }
    let Some(message) = message(line) else { return };
    match message.content {
        Content::Text(text) => user_text(session, notes, line, agent, &text),
        Content::Blocks(blocks) => {
            let rejected = line.tool_denial_kind.as_deref() == Some("user-rejected");
            let result = line.tool_use_result;
            let result: Option<Value> =
                result.and_then(|result| serde_json::from_str(result.get()).ok());
            results(session, notes, agent, &blocks, result.as_ref(), rejected);
            if let Some(result) = result {
                session.background.note_result(&result);
                finished_subagent(session, notes, &result);
            }
            let text = blocks.iter().find_map(|block| block.text.as_deref());
            if let Some(text) = text {
                user_text(session, notes, line, agent, text);
            }
        }
        Content::Other(_) => {}
    }
}

/// The results of tools, in a transcript and in a stream.
pub fn results(
    session: &mut Session,
    notes: &mut Notes,
    agent: &AgentId,
    blocks: &[Block],
    result: Option<&Value>,
    rejected: bool,
) {
    let (mut any, mut any_asked) = (false, false);
    for block in blocks.iter().filter(|block| block.kind.as_deref() == Some("tool_result")) {
        let Some(call) = block.tool_use_id.as_deref() else { continue };
        if rejected && block.is_error == Some(true) {
            session.call_rejected(notes, agent, call);
        } else {
            let end = match block.is_error {
                Some(true) => End::by_error(block.content.as_ref().and_then(Value::as_str)),
                Some(false) | None => End::by_result(result),
            };
            any_asked |= !session.calls.starts_agent(call);
            session.call_ended(notes, agent, call, end);
            any = true;
        }
    }
    // That a subagent was started answers nobody.
    if any_asked {
        session.requests.resolve_unbound(notes, agent);
    }
    if any && !session.calls.any_open(agent) {
        session.llm_started(notes, agent);
    }
}

/// Text that begins so was not written to the model: commands of the terminal and their output.
const LOCAL: [&str; 6] = [
    "<command-name>",
    "<command-message>",
    "<local-command-",
    "<bash-input>",
    "<bash-stdout>",
    "<bash-stderr>",
];

pub fn is_interrupt(text: &str) -> bool {
    text.starts_with("[Request interrupted by user")
}

fn user_text(
    session: &mut Session,
    notes: &mut Notes,
    line: &Line<'_>,
    agent: &AgentId,
    text: &str,
) {
    if is_interrupt(text) {
        return session.interrupted(notes, agent);
    }
    if line.is_meta == Some(true) {
        // Injected for the model: a veto of a Stop hook, "go on", a command's text. What is in
        // tags only goes along with something else.
        if !text.starts_with('<') {
            session.llm_started(notes, agent);
        }
        return;
    }
    if text.starts_with("<local-command-stdout>") {
        session.command_ended(notes);
    }
    let local = LOCAL.iter().any(|start| text.starts_with(start));
    if local || line.is_visible_in_transcript_only == Some(true) {
        return;
    }
    if !agent.is_main() {
        session.subagent_started(notes, agent.as_str(), None);
        return notes.tell(agent, Fact::TurnStarted);
    }
    let told = line.origin.as_ref().and_then(|origin| origin.kind.as_deref());
    let by_machine = told == Some("task-notification") || text.starts_with("<task-notification>");
    let id = line.prompt_id.as_deref();
    session.turn_started(notes, Prompt { id, text: Some(text), by_machine });
}

fn assistant(session: &mut Session, notes: &mut Notes, line: &Line<'_>, agent: &AgentId) {
    let Some(message) = message(line) else { return };
    let blocks = match &message.content {
        Content::Blocks(blocks) => blocks.as_slice(),
        Content::Text(_) | Content::Other(_) => &[],
    };
    let text = blocks.iter().find_map(|block| block.text.as_deref());
    if line.is_api_error_message == Some(true) {
        let error = line.error.as_ref().and_then(Value::as_str);
        return session.turn_failed(notes, agent, failure(error, line.api_error_status, text));
    }
    if message.model.as_deref() == Some("<synthetic>") {
        // "No response requested.": the client closes a turn that a resume found open, also where
        // it goes on in another process.
        if !session.shared {
            session.turn_ending(notes, None, false);
        }
        return;
    }
    if agent.is_main() {
        session.compaction_ended(notes);
        session.usage_known(notes, message.model.as_deref(), context_tokens(&message.usage));
    }
    said(session, notes, agent, &message, blocks);
}

/// One or more blocks of the assistant's message, from a transcript.
fn said(
    session: &mut Session,
    notes: &mut Notes,
    agent: &AgentId,
    message: &Message,
    blocks: &[Block],
) {
    let id = message.id.as_deref();
    if agent.is_main() {
        for text in blocks.iter().filter_map(|block| block.text.as_deref()) {
            session.say(id, text);
        }
    }
    let cut_off = match message.stop_reason.as_deref() {
        Some("end_turn" | "stop_sequence" | "refusal") => false,
        Some("max_tokens" | "model_context_window_exceeded") => true,
        // Cut by an interrupt that the next line tells of.
        None => return,
        Some(_) => {
            notes.tell(agent, Fact::LlmStarted);
            return calls(session, notes, agent, blocks);
        }
    };
    if agent.is_main() {
        let text = session.said_in(id);
        session.turn_ending(notes, text.as_deref(), cut_off);
    } else {
        let end = Fact::TurnCompleted { last_message: None, background: None, cut_off };
        notes.tell(agent, end);
    }
}

/// The calls in an assistant's message.
pub fn calls(session: &mut Session, notes: &mut Notes, agent: &AgentId, blocks: &[Block]) {
    for block in blocks.iter().filter(|block| block.kind.as_deref() == Some("tool_use")) {
        if let (Some(id), Some(tool)) = (block.id.as_deref(), block.name.as_deref()) {
            session.call_started(notes, agent, id, tool, block.input.as_ref());
        }
    }
}

/// What the window holds after this message.
pub fn context_tokens(usage: &Option<TokenUsage>) -> Option<u64> {
    let usage = usage.as_ref()?;
    let parts = [
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_creation_input_tokens,
        usage.cache_read_input_tokens,
    ];
    let sum = parts.into_iter().flatten().fold(0, u64::saturating_add);
    Some(sum).filter(|sum| *sum > 0)
}

fn system(session: &mut Session, notes: &mut Notes, line: &Line<'_>, agent: &AgentId) {
    match line.subtype.as_deref().unwrap_or_default() {
        "turn_duration" if agent.is_main() => {
            session.turn_ended(notes, None, false);
            if let Some(agents) = line.pending_background_agent_count.filter(|count| *count > 0) {
                let background = Some(agents.max(session.background.count()));
                let end = Fact::TurnCompleted { last_message: None, background, cut_off: false };
                notes.tell_next(agent, end);
            }
        }
        // With errors it may have been a veto; the line for the model says so.
        "stop_hook_summary"
            if agent.is_main() && line.hook_errors.as_ref().is_none_or(Vec::is_empty) =>
        {
            session.turn_ended(notes, None, false);
        }
        "api_error" => notes.tell(agent, Fact::LlmRetrying { message: retry_message(line) }),
        "compact_boundary" => session.compaction_ended(notes),
        // A command of the terminal: the session is there, and at its prompt.
        "local_command" => notes.tell_main(Fact::SessionStarted { process: None }),
        _ => {}
    }
}

fn retry_message(line: &Line<'_>) -> Option<Arc<str>> {
    let error = line.error.as_ref()?;
    let text = error.get("formatted").or_else(|| error.get("message"))?.as_str()?;
    Some(head(text, 200).into())
}

fn attachment(session: &mut Session, notes: &mut Notes, line: &Line<'_>) {
    let Some(raw) = line.attachment else { return };
    let Ok(attachment) = serde_json::from_str::<Attachment>(raw.get()) else { return };
    match attachment.kind.as_deref().unwrap_or_default() {
        "hook_permission_decision" => {
            if let Some(call) = attachment.tool_use_id.as_deref() {
                let allowed = attachment.decision.as_deref() == Some("allow");
                session.call_answered(notes, call, allowed);
            }
        }
        "queued_command" => {
            let text = attachment.prompt.as_ref().and_then(Value::as_str);
            if let Some(text) = text.filter(|text| !text.starts_with('<')) {
                notes.tell_main(Fact::UserPrompt { text: Some(head(text, 2 << 10).into()) });
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::story::Story;

    fn prompted() -> Story {
        let mut story = Story::new();
        story.line(
            0,
            json!({"type": "user", "promptId": "p1", "entrypoint": "cli",
            "message": {"content": "go"}}),
        );
        story
    }

    fn tool_use(name: &str) -> serde_json::Value {
        json!({"type": "assistant", "message": {"id": "m1", "stop_reason": "tool_use",
            "content": [{"type": "tool_use", "id": "c1", "name": name, "input": {}}]}})
    }

    #[test]
    fn a_turn_is_told_by_its_lines() {
        let mut story = prompted();
        story
            .shows("thinking")
            .line(500, tool_use("Bash"))
            .shows("acting")
            .line(
                900,
                json!({"type": "user", "message": {"content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "ok"}]}}),
            )
            .shows("thinking")
            .said(1_500, "end_turn", "Done.")
            .shows("thinking")
            .line(1_600, json!({"type": "system", "subtype": "turn_duration"}))
            .shows("task_complete");
    }

    #[test]
    fn a_failed_result_leaves_the_model_its_time() {
        prompted()
            .line(500, tool_use("Bash"))
            .line(
                900,
                json!({"type": "user", "message": {"content": [
                {"type": "tool_result", "tool_use_id": "c1", "is_error": true}]}}),
            )
            .wait_until(60_000)
            .shows("thinking");
    }

    #[test]
    fn questions_and_plans_are_known_by_their_tool() {
        prompted().line(500, tool_use("AskUserQuestion")).shows("awaiting_input");
        prompted().line(500, tool_use("ExitPlanMode")).shows("awaiting_approval");
    }

    #[test]
    fn a_rejected_dialog_goes_to_interrupted_without_a_flash() {
        prompted()
            .line(500, tool_use("AskUserQuestion"))
            .line(
                3_000,
                json!({"type": "user", "toolDenialKind": "user-rejected", "message": {
                "content": [{"type": "tool_result", "tool_use_id": "c1", "is_error": true}]}}),
            )
            .shows("awaiting_input")
            .line(
                3_016,
                json!({"type": "user", "message": {"content": [
                {"type": "text", "text": "[Request interrupted by user for tool use]"}]}}),
            )
            .shows("interrupted")
            .line(3_040, json!({"type": "system", "subtype": "turn_duration"}))
            .shows("interrupted");
    }

    #[test]
    fn a_refusal_the_model_lives_with_is_no_interrupt() {
        prompted()
            .line(500, tool_use("Write"))
            .line(
                900,
                json!({"type": "user", "toolDenialKind": "user-rejected", "message": {
                "content": [{"type": "tool_result", "tool_use_id": "c1", "is_error": true}]}}),
            )
            .wait_until(2_000)
            .shows("thinking");
    }

    #[test]
    fn an_api_error_needs_you() {
        prompted()
            .line(500, json!({"type": "system", "subtype": "api_error",
                "error": {"formatted": "529 Overloaded"}}))
            .shows("retrying")
            .line(900, json!({"type": "assistant", "isApiErrorMessage": true,
                "error": "server_error", "message": {"model": "<synthetic>", "content": [
                {"type": "text", "text": "API Error: Overloaded"}], "stop_reason": "stop_sequence"}}))
            .shows("server_error")
            .line(950, json!({"type": "system", "subtype": "turn_duration"}))
            .shows("server_error");
    }

    #[test]
    fn a_cut_reply_that_goes_on_by_itself_is_no_end() {
        prompted()
            .said(500, "max_tokens", "This is cut")
            .line(
                540,
                json!({"type": "user", "isMeta": true,
                "message": {"content": "Output token limit hit. Resume directly."}}),
            )
            .wait_until(3_000)
            .shows("thinking");
    }

    #[test]
    fn background_work_is_counted_from_the_results() {
        prompted()
            .line(500, tool_use("Bash"))
            .line(
                900,
                json!({"type": "user", "toolUseResult": {"backgroundTaskId": "b1"},
                "message": {"content": [{"type": "tool_result", "tool_use_id": "c1"}]}}),
            )
            .said(1_500, "end_turn", "Started.")
            .wait_until(2_000)
            .shows("delegating")
            .line(
                5_000,
                json!({"type": "user", "promptId": "p2", "message": {
                "content": "<task-notification>\n<task-id>b1</task-id>"}}),
            )
            .said(5_500, "end_turn", "It is done.")
            .wait_until(6_000)
            .shows("task_complete");
    }

    #[test]
    fn commands_of_the_terminal_start_no_turn() {
        prompted()
            .said(500, "end_turn", "Done.")
            .wait_until(900)
            .line(
                1_000,
                json!({"type": "user", "message": {
                "content": "<command-name>/model</command-name>"}}),
            )
            .line(
                1_001,
                json!({"type": "user", "isMeta": true, "message": {
                "content": "<local-command-caveat>…"}}),
            )
            .wait_until(2_000)
            .shows("task_complete");
    }

    #[test]
    fn a_subagents_file_speaks_of_the_subagent() {
        let mut story = prompted();
        story
            .line(
                500,
                json!({"type": "user", "isSidechain": true, "agentId": "a1",
                "message": {"content": "count"}}),
            )
            .shows("delegating")
            .line(
                900,
                json!({"type": "assistant", "isSidechain": true, "agentId": "a1", "message": {
                "content": [{"type": "text", "text": "Three."}], "stop_reason": "end_turn"}}),
            )
            .shows("thinking");
    }

    #[test]
    fn the_last_message_keeps_all_its_blocks() {
        let mut story = prompted();
        let block = |text: &str| {
            json!({"type": "assistant", "message": {"id": "m1", "stop_reason": "end_turn",
                "content": [{"type": "text", "text": text}]}})
        };
        story.line(500, block("First.")).line(510, block("Second?")).wait_until(2_000);
        let said = story.monitor().main_agent().last_message.as_ref();
        assert_eq!(
            said.map(|said| said.value.sign),
            Some(qd_session::finished_turn::Sign::Question)
        );
    }

    #[test]
    fn totals_are_written_at_the_end_of_a_session() {
        let mut story = prompted();
        story.said(500, "end_turn", "Done.").wait_until(900);
        let line = json!({"type": "cost-state", "sessionId": "s1"}).to_string();
        let (channel, from) = (crate::Channel::Transcript, crate::Direction::FromAgent);
        story.signal(1_000, channel, from, None, line.as_bytes()).shows("session_ended");
    }
}
