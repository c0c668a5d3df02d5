//! Chat files: a header, whole messages that are repeated as they grow, and patches.
//!
//! Tool calls are written when their batch is over. When the history changes (a cancelled prompt,
//! a compression) the client writes the whole past again under new ids and times: that is no work.

use std::sync::Arc;

use qd_session::id::AgentId;
use qd_session::moment::Timestamp;
use qd_session::monitor::{Fact, Usage};
use serde_json::Value;

use super::agenda::{Item, What};
use super::calls::{Described, Teller};
use super::session::Session;
use super::stream::{STOPPED_BY_HOOK, failure_in};
use super::wire::{ChatCall, ChatLine, ChatMessage, ChatPatch};
use crate::outbox::Outbox;
use crate::{excerpt, payload, rfc3339};

/// How long a written reply waits to be the end of its turn, where no other source tells the end.
/// A tool's result is written only when the tool is over, so it must be patient.
const REPLY_IS_LAST_MS: u64 = 5_000;

/// The past is written again in one burst.
const REWRITE_MS_MAX: u64 = 1_000;

/// With these begins what the client puts before the conversation, never what a person wrote.
pub(super) const NOT_A_PROMPT: [&str; 2] = ["<session_context>", "<state_snapshot>"];

/// The first line of a session's own chat file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatHeader {
    pub session: Arc<str>,
    /// By the client's clock.
    pub began: Timestamp,
}

impl ChatHeader {
    /// None for any other line, and for a subagent's file.
    pub fn read(line: &[u8]) -> Option<Self> {
        let line: ChatLine = payload::read(line)?;
        let began = line.start_time.as_deref().and_then(rfc3339::timestamp)?;
        let session = line.session_id.filter(|id| !id.is_empty())?;
        (line.kind.as_deref() != Some("subagent")).then(|| Self { session: session.into(), began })
    }
}

/// One chat file.
#[derive(Debug, Default)]
pub struct ChatFile {
    /// Its session, and which agent of it writes the file.
    pub session: Option<Arc<str>>,
    pub agent: AgentId,
    /// Its clock is ahead of ours: what it says of the future is not to be waited for.
    ahead: bool,
    rewritten_until: Option<Timestamp>,
    /// The prompt that has no reply yet.
    prompt: Option<String>,
}

impl ChatFile {
    /// When a line happened: its own time, unless that is still to come.
    pub fn time_of(&mut self, message: &ChatMessage, arrival: Timestamp) -> Timestamp {
        let own = message.timestamp.as_deref().and_then(rfc3339::timestamp).unwrap_or(arrival);
        self.ahead = own > arrival;
        own.min(arrival)
    }

    fn is_rewritten(&mut self, at: Timestamp) -> bool {
        self.rewritten_until.take_if(|until| at > *until);
        self.rewritten_until.is_some()
    }
}

impl Session {
    /// Takes a message in. False if nobody knows its kind.
    pub fn chat(&mut self, file: &mut ChatFile, message: &ChatMessage, out: &mut Outbox) -> bool {
        match message.role.as_deref() {
            Some("user") => self.user_wrote(file, message, out),
            Some("gemini") => self.agent_wrote(file, message, out),
            Some("info" | "warning") => self.client_wrote(message, out),
            Some("error") => {
                let text = text_of(message);
                if text.contains("API Error") {
                    self.end_turn(Fact::TurnFailed { failure: failure_in(&text) }, out);
                }
            }
            Some(_) | None => return false,
        }
        true
    }

    fn user_wrote(&mut self, file: &mut ChatFile, message: &ChatMessage, out: &mut Outbox) {
        let text = text_of(message);
        if NOT_A_PROMPT.iter().any(|start| text.starts_with(start)) {
            file.rewritten_until = Some(out.at().plus_ms(REWRITE_MS_MAX));
        }
        if file.is_rewritten(out.at()) {
            return;
        }
        let results = results_in(message);
        if !file.agent.is_main() {
            self.begin_subagent(&file.agent, None, out);
            out.tell_of(file.agent.clone(), Fact::LlmStarted);
        } else if results.is_empty() {
            file.prompt.clone_from(&message.id);
            self.begin_turn(Some(&text), out);
        } else if self.calls.deliver(&results) {
            self.think(out);
        }
    }

    fn agent_wrote(&mut self, file: &mut ChatFile, message: &ChatMessage, out: &mut Outbox) {
        // The reply of a model is a text with its tokens; parts without them are the past.
        let synthetic =
            message.tokens.is_none() && message.content.as_ref().is_some_and(Value::is_array);
        if synthetic || file.is_rewritten(out.at()) {
            return;
        }
        file.prompt = None;
        if !file.agent.is_main() {
            self.begin_subagent(&file.agent, None, out);
            out.tell_of(file.agent.clone(), Fact::LlmStarted);
            return;
        }
        let tokens = message.tokens.as_ref().and_then(|tokens| tokens.total);
        if tokens.is_some() {
            let model = message.model.as_deref().map(Into::into);
            let usage = Usage { model, context_tokens: tokens, context_window: None };
            out.tell(Fact::UsageReported { usage });
        }
        let calls = message.tool_calls.as_deref().unwrap_or_default();
        match calls {
            [] => self.replied(&text_of(message), out),
            calls => calls.iter().for_each(|call| self.call_written(file, call, out)),
        }
    }

    /// A reply, as far as it is known now. Its tools are written when they are over.
    fn replied(&mut self, text: &str, out: &mut Outbox) {
        self.work(out.at());
        out.tell(Fact::LlmStarted);
        self.wrote(text);
        if !self.end_is_told && !text.trim().is_empty() {
            let ending = self.completed(None);
            self.end_turn_later(ending, REPLY_IS_LAST_MS, out);
        }
    }

    fn call_written(&mut self, file: &ChatFile, call: &ChatCall, out: &mut Outbox) {
        let (Some(id), Some(tool)) = (call.id.as_deref(), call.name.as_deref()) else { return };
        let told =
            Described { teller: Teller::Chat, vendor: Some(id), tool, input: call.args.as_ref() };
        let ok = match call.status.as_deref() {
            Some("success") => true,
            Some("error" | "cancelled") => false,
            // It is not over, and nobody waits for what the file says of it.
            Some(_) | None => return,
        };
        let ends = What::CallEnds { call: self.calls.begin(told, String::new).id.clone(), ok };
        // What the agent said before a tool was not its last message.
        self.wrote("");
        self.agenda.work_goes_on(out.at().plus_ms(1));
        let own = call.timestamp.as_deref().and_then(rfc3339::timestamp).unwrap_or(out.at());
        self.happen_at(own, file, ends, out);
        if call.status.as_deref() == Some("cancelled") {
            self.happen_at(own, file, What::TurnStops(Fact::Interrupted), out);
        }
    }

    /// A fact at its own time. A file that is written when a call begins and read as of then knows
    /// the call's end before it comes; where the file's clock is ours, it is kept until then.
    fn happen_at(&mut self, own: Timestamp, file: &ChatFile, what: What, out: &mut Outbox) {
        if own > out.arrival() && !file.ahead {
            let source = out.source();
            self.agenda.add(Item { due: own, at: own, source, what });
            return;
        }
        let mut then = out.at_time(own.min(out.arrival()));
        self.happen(what, &mut then);
        out.append(then);
    }

    /// What the client itself put into the conversation.
    fn client_wrote(&mut self, message: &ChatMessage, out: &mut Outbox) {
        let text = text_of(message);
        let mut stops = CANCELLED.iter().chain(&STOPPED_BY_HOOK);
        if stops.any(|start| text.starts_with(start)) {
            self.end_turn(Fact::Interrupted, out);
        } else if HALTED.iter().any(|part| text.contains(part)) {
            self.end_turn(Fact::TurnFailed { failure: failure_in(&text) }, out);
        } else if text.contains("compressed") {
            self.end_compaction(out);
        }
    }

    pub fn patched(&mut self, file: &mut ChatFile, patch: &ChatPatch, out: &mut Outbox) {
        if let Some(title) = patch.summary.as_deref().and_then(excerpt::about) {
            out.tell(Fact::TitleKnown { title, custom: false });
        }
        let Some(messages) = &patch.messages else { return };
        let rewritten = file.rewritten_until.take().is_some();
        if rewritten {
            self.end_compaction(out);
        }
        let Some(prompt) = &file.prompt else { return };
        let taken_back = !messages.iter().any(|message| message.id.as_ref() == Some(prompt));
        if taken_back && !rewritten && self.is_open() && file.agent.is_main() {
            // The model never answered: the client takes the prompt out of its history again.
            file.prompt = None;
            let own =
                patch.last_updated.as_deref().and_then(rfc3339::timestamp).unwrap_or(out.at());
            let failure = failure_in("the model request failed");
            self.happen_at(own, file, What::TurnStops(Fact::TurnFailed { failure }), out);
        }
    }
}

/// A person ended the turn.
const CANCELLED: [&str; 2] = ["Request cancelled.", "User cancelled the request."];

/// The client ended the turn.
const HALTED: [&str; 2] = ["maximum number of turns", "potential loop was detected"];

fn text_of(message: &ChatMessage) -> String {
    match &message.content {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts: Vec<&str> =
                parts.iter().filter_map(|part| part.get("text")?.as_str()).collect();
            texts.join("\n")
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            String::new()
        }
    }
}

/// The calls whose results the message carries to the model.
fn results_in(message: &ChatMessage) -> Vec<&str> {
    let parts = message.content.as_ref().and_then(Value::as_array);
    parts
        .into_iter()
        .flatten()
        .filter_map(|part| part.get("functionResponse")?.get("id")?.as_str())
        .collect()
}

#[cfg(test)]
mod tests {
    use qd_session::moment::Timestamp;
    use serde_json::{Value, json};

    use super::ChatHeader;
    use crate::Harness;
    use crate::signal::{Channel, Direction};
    use crate::story::Story;

    fn stamp(at: u64) -> String {
        format!("1970-01-01T00:00:{:02}.{:03}Z", at / 1_000, at % 1_000)
    }

    fn line(story: &mut Story, at: u64, payload: Value) {
        story.hear(at, Channel::Transcript, &payload);
    }

    fn message(story: &mut Story, at: u64, id: &str, role: &str, content: Value) {
        let tokens = (role == "gemini" && content.is_string()).then(|| json!({"total": 7}));
        let payload = json!({"id": id, "timestamp": stamp(at), "type": role, "content": content,
            "tokens": tokens});
        line(story, at, payload);
    }

    fn prompted() -> Story {
        let mut story = Story::of(Harness::GeminiCli);
        line(&mut story, 0, json!({"sessionId": "s", "startTime": stamp(0), "kind": "main"}));
        message(&mut story, 1_000, "u1", "user", json!([{"text": "make a file"}]));
        assert_eq!(story.state(), "autonomous/thinking");
        story
    }

    /// A reply whose call ended at `ended`, read at `at`.
    fn called(story: &mut Story, at: u64, ended: u64, status: &str) {
        let calls = json!([{"id": "t", "name": "run_shell_command", "args": {"command": "touch x"},
            "status": status, "timestamp": stamp(ended)}]);
        let payload = json!({"id": "g1", "timestamp": stamp(at), "type": "gemini",
            "content": "Running.", "tokens": {"total": 7}, "toolCalls": calls});
        line(story, at, payload);
    }

    fn hook(story: &mut Story, at: u64, name: &str, more: Value) {
        let mut payload =
            json!({"session_id": "s", "hook_event_name": name, "timestamp": stamp(at)});
        let fields = payload.as_object_mut().expect("an object");
        fields.extend(more.as_object().expect("an object").clone());
        story.hear(at, Channel::Hook, &payload);
    }

    /// A dialog on the screen for the call `t`.
    fn asked(story: &mut Story, at: u64) {
        let tool = json!({"tool_name": "run_shell_command", "tool_input": {"command": "touch x"}});
        hook(story, at, "BeforeTool", tool);
        let dialog = json!({"notification_type": "ToolPermission",
            "details": {"type": "exec", "command": "touch x"}});
        hook(story, at + 100, "Notification", dialog);
        assert_eq!(story.state(), "needs_you/needs_permission");
    }

    #[test]
    fn a_header_names_its_session_unless_it_is_a_subagents() {
        let read = |line: Value| ChatHeader::read(line.to_string().as_bytes());
        let start = "2026-11-15T18:40:00.000Z";
        let header = read(json!({"sessionId": "s", "startTime": start, "kind": "main"}));
        let began = Timestamp(crate::story::BEGIN_MS);
        assert_eq!(header, Some(ChatHeader { session: "s".into(), began }));
        assert_eq!(read(json!({"sessionId": "s", "startTime": start})), header);
        for other in [
            json!({"sessionId": "s", "startTime": start, "kind": "subagent"}),
            json!({"sessionId": "", "startTime": start}),
            json!({"sessionId": "s"}),
            json!({"$set": {"sessionId": "s"}}),
            json!([]),
        ] {
            assert_eq!(read(other), None);
        }
    }

    #[test]
    fn an_end_that_is_read_before_its_time_waits_for_it() {
        let mut story = prompted();
        called(&mut story, 2_000, 9_000, "success");
        asked(&mut story, 2_100);
        story.wait(8_900);
        assert_eq!(story.state(), "needs_you/needs_permission");
        story.wait(9_100);
        assert_eq!(story.state(), "autonomous/thinking");
    }

    #[test]
    fn a_cancelled_call_ends_the_dialog_and_the_turn() {
        let mut story = prompted();
        asked(&mut story, 2_000);
        called(&mut story, 8_000, 7_900, "cancelled");
        assert_eq!(story.state(), "needs_you/interrupted");
    }

    #[test]
    fn the_past_written_again_after_a_cancel_is_no_work() {
        let mut story = prompted();
        message(&mut story, 5_000, "i1", "info", json!("Request cancelled."));
        assert_eq!(story.state(), "needs_you/interrupted");
        let context = json!([{"text": "<session_context>\nThis is…"}, {"text": "make a file"}]);
        message(&mut story, 5_010, "u2", "user", context);
        let call = json!([{"text": "Running."}, {"functionCall": {"id": "t"}}]);
        message(&mut story, 5_011, "g2", "gemini", call);
        let result = json!([{"functionResponse": {"id": "t", "response": {}}}]);
        message(&mut story, 5_011, "u3", "user", result);
        line(&mut story, 5_012, json!({"$set": {"messages": [], "lastUpdated": stamp(5_012)}}));
        story.wait(30_000);
        assert_eq!(story.state(), "needs_you/interrupted");
        message(&mut story, 31_000, "u4", "user", json!([{"text": "again"}]));
        assert_eq!(story.state(), "autonomous/thinking");
    }

    #[test]
    fn a_prompt_that_is_taken_back_was_never_answered() {
        let mut story = prompted();
        let context = json!([{"id": "c", "type": "user", "content": "<session_context>"}]);
        let patch = json!({"$set": {"messages": context, "lastUpdated": stamp(2_000)}});
        line(&mut story, 2_000, patch);
        assert_eq!(story.state(), "needs_you/error");
    }

    #[test]
    fn an_error_in_the_terminal_is_told_by_its_kind() {
        let mut story = prompted();
        message(&mut story, 2_000, "e", "error", json!("[API Error: quota exceeded]"));
        assert_eq!(story.state(), "needs_you/usage_limit");
    }

    #[test]
    fn a_reply_is_the_last_only_after_a_while_where_nobody_tells_the_end() {
        let mut story = prompted();
        message(&mut story, 2_000, "g1", "gemini", json!("It is in place."));
        story.wait(6_000);
        assert_eq!(story.state(), "autonomous/thinking");
        story.wait(8_000);
        assert_eq!(story.state(), "delivered/task_complete");
    }

    #[test]
    fn a_subagents_file_is_its_parents_session() {
        let mut story = prompted();
        let file = Some("/tmp/w/chats/s/agent-1.jsonl");
        let mut sub = |at, payload: Value| {
            let payload = payload.to_string();
            story.play(at, Channel::Transcript, Direction::FromAgent, file, payload.as_bytes());
        };
        sub(2_000, json!({"sessionId": "agent-1", "kind": "subagent"}));
        sub(
            2_100,
            json!({"id": "x", "type": "user", "timestamp": stamp(2_100), "content": "look"}),
        );
        assert_eq!((story.state(), story.sessions()), ("autonomous/delegating", 1));
    }

    #[test]
    fn what_nobody_understands_changes_nothing_and_makes_no_session() {
        let huge = vec![b'{'; (4 << 20) + 1];
        let broken: [&[u8]; 6] =
            [b"", b"{\"id\":\"x\",\"ty", b"\xff\xfe", b"[]", b"{\"type\":9}", &huge];
        let channels = [Channel::Hook, Channel::Otel, Channel::Stream, Channel::Transcript];
        let mut story = Story::of(Harness::GeminiCli);
        for channel in channels {
            for payload in broken {
                story.play(5, channel, Direction::FromAgent, None, payload);
            }
        }
        assert_eq!(story.sessions(), 0);
        let mut story = prompted();
        for payload in broken {
            story.play(2_000, Channel::Transcript, Direction::FromAgent, None, payload);
        }
        message(&mut story, 2_100, "x", "never_seen", json!("?"));
        assert_eq!(story.state(), "autonomous/thinking");
        assert_eq!(story.told.iter().filter(|name| *name == "unrecognised").count(), 7);
    }
}
