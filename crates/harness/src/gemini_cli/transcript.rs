//! Chat files: a header, whole messages that are repeated as they grow, and patches.
//!
//! Tool calls are written when their batch is over. When the history changes (a cancelled prompt,
//! a compression) the client writes the whole past again under new ids and times: that is no work.

use qd_session::id::AgentId;
use qd_session::moment::Timestamp;
use qd_session::monitor::{Fact, Usage};
use serde_json::Value;

use super::agenda::{Item, What};
use super::calls::{Described, Teller};
use super::session::Session;
use super::stream::{STOPPED_BY_HOOK, failure_in};
use super::time;
use super::wire::{ChatCall, ChatMessage, ChatPatch};
use crate::excerpt;
use crate::outbox::Outbox;

/// How long a written reply waits to be the end of its turn, where no other source tells the end.
/// A tool's result is written only when the tool is over, so it must be patient.
const REPLY_IS_LAST_MS: u64 = 5_000;

/// The past is written again in one burst.
const REWRITE_MS_MAX: u64 = 1_000;

/// With these begins what the client puts before the conversation, never what a person wrote.
const NOT_A_PROMPT: [&str; 2] = ["<session_context>", "<state_snapshot>"];

/// One chat file.
#[derive(Debug, Default)]
pub struct ChatFile {
    /// Its session, and which agent of it writes the file.
    pub session: Option<std::sync::Arc<str>>,
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
        let own = message.timestamp.as_deref().and_then(time::read).unwrap_or(arrival);
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
        } else if results.iter().fold(false, |news, id| self.calls.deliver(id) || news) {
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
        let completed = self.calls.begin(told, String::new).completed(ok);
        // What the agent said before a tool was not its last message.
        self.wrote("");
        self.agenda.work_goes_on(out.at().plus_ms(1));
        let own = call.timestamp.as_deref().and_then(time::read).unwrap_or(out.at());
        self.happen_at(own, file, completed, out);
        if call.status.as_deref() == Some("cancelled") {
            self.happen_at(own, file, Fact::Interrupted, out);
        }
    }

    /// A fact at its own time. A file that is written when a call begins and read as of then knows
    /// the call's end before it comes; where the file's clock is ours, it is kept until then.
    fn happen_at(&mut self, own: Timestamp, file: &ChatFile, fact: Fact, out: &mut Outbox) {
        if own > out.arrival() && !file.ahead {
            let source = out.source();
            self.agenda.add(Item { due: own, at: own, source, what: What::Fact(fact) });
            return;
        }
        let mut then = out.at_time(own.min(out.arrival()));
        self.happen(fact, &mut then);
        out.append(then);
    }

    /// What the client itself put into the conversation.
    fn client_wrote(&mut self, message: &ChatMessage, out: &mut Outbox) {
        let text = text_of(message);
        let says = |start: &&str| text.starts_with(*start);
        if CANCELLED.iter().any(|start| says(start))
            || STOPPED_BY_HOOK.iter().any(|start| says(start))
        {
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
            let own = patch.last_updated.as_deref().and_then(time::read).unwrap_or(out.at());
            let failure = failure_in("the model request failed");
            self.happen_at(own, file, Fact::TurnFailed { failure }, out);
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
