//! What an ACP agent does in one of our turns: what it said last, which calls it has told of.

use std::collections::VecDeque;
use std::sync::Arc;

use qd_session::id::CallId;
use qd_session::machine::ToolCall;
use qd_session::monitor::Failure;
use serde_json::{Value, json};

use super::call::{Calls, text_in};
use super::error_notice::ErrorNotice;
use super::wire::{ToolCall as Told, Update};
use crate::driver::{Delta, Output, Report, called};
use crate::excerpt::{self, LAST_MESSAGE_BYTES_MAX, last_message, tail};

/// Most calls of one turn of which is remembered that they were told of.
const REPORTED_MAX: usize = 128;

#[derive(Debug, Default)]
pub struct Turn {
    calls: Calls,
    /// Told of, and not ended yet.
    reported: VecDeque<CallId>,
    said: String,
    message: Option<String>,
    error: ErrorNotice,
    /// The next words begin another message.
    ended: bool,
}

impl Turn {
    /// A piece of what it says.
    pub fn say(&mut self, text: &str, message: Option<&str>) -> Output {
        let another = message.is_some() && self.message.as_deref() != message;
        if std::mem::take(&mut self.ended) || another {
            self.said.clear();
        }
        self.message = message.map(str::to_owned);
        self.error.hear(text);
        self.said.push_str(text);
        if self.said.len() > 2 * LAST_MESSAGE_BYTES_MAX {
            self.said = tail(&self.said, LAST_MESSAGE_BYTES_MAX).to_owned();
        }
        Output::Report(Report::Delta(Delta::Text(text.into())))
    }

    /// What it said last.
    pub fn last_words(&self) -> Option<Arc<str>> {
        last_message(&self.said)
    }

    /// Why it failed, if its last words are an error of its client.
    pub fn failure(&self) -> Option<Failure> {
        self.error.failure()
    }

    pub fn call(&mut self, update: &Update, out: &mut Vec<Output>) {
        self.ended = true;
        self.error.clear();
        let Some(call) = self.learn(&update.call, update.content.as_ref()) else { return };
        let id = call.call_id.clone();
        match update.call.status.as_deref() {
            Some(status @ ("completed" | "failed")) => {
                self.reported.retain(|known| *known != id);
                let is_error = status == "failed";
                let output = came_out(update);
                out.push(Output::Report(Report::ToolEnded { call: id, is_error, output }));
            }
            Some(_) | None if self.reported.contains(&id) => {
                out.push(Output::Report(Report::Alive));
            }
            Some(_) | None => {
                self.remember(id);
                out.push(Output::Report(Report::ToolReported(call)));
            }
        }
    }

    /// What it wants leave for: this may be the first that is heard of the call.
    pub fn ask(&mut self, told: &Told, content: Option<&Value>) -> Option<ToolCall> {
        self.ended = true;
        let call = self.learn(told, content)?;
        self.remember(call.call_id.clone());
        Some(call)
    }

    fn remember(&mut self, id: CallId) {
        if !self.reported.contains(&id) {
            if self.reported.len() == REPORTED_MAX {
                self.reported.pop_front();
            }
            self.reported.push_back(id);
        }
    }

    fn learn(&mut self, told: &Told, content: Option<&Value>) -> Option<ToolCall> {
        let call = self.calls.learn(told, content)?;
        let input = call.input().and_then(|input| serde_json::from_str::<Value>(&input).ok());
        // An agent that tells no input tells in words, and in a diff, what it is about.
        let shown = || {
            let content =
                content.filter(|content| content.as_array().is_some_and(|all| !all.is_empty()));
            json!({ "title": call.about().as_deref(), "content": content })
        };
        let mut out = called(call.id.as_str(), call.tool().as_str(), input.unwrap_or_else(shown));
        // What kind of tool it is, the protocol says.
        match call.kind() {
            "read" | "search" | "think" | "fetch" | "switch_mode" => out.mutating = false,
            "edit" | "delete" | "move" | "execute" => out.mutating = true,
            _ => {}
        }
        if call.kind() == "switch_mode" {
            out.name = "switch_mode".into();
            if let Some(plan) = call.text() {
                out.arguments = json!({ "plan": &*plan });
            }
        }
        Some(out)
    }
}

/// What the agent shows of a call's result; where it shows nothing, the result itself.
fn came_out(update: &Update) -> Option<Arc<str>> {
    let shown = update.content.as_ref().and_then(text_in);
    let raw = || update.call.raw_output.as_ref().and_then(Value::as_str).map(str::to_owned);
    shown.or_else(raw).and_then(|text| excerpt::output(&text))
}
