//! A request to a model: everything but the key.

use std::sync::Arc;

use qd_session::id::ToolName;
use serde_json::Value;

use super::limits::ANSWER_TOKENS;
use super::{Conversation, Provider, anthropic, openai};

/// What is to be sent; where to, and with whose key, is for whoever sends it to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    pub headers: Vec<(&'static str, &'static str)>,
    pub body: Vec<u8>,
}

/// A tool as the model is told of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    pub name: ToolName,
    pub description: Arc<str>,
    /// A JSON schema of an object.
    pub input_schema: Value,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// What the model is told before everything else.
    pub system: Option<Arc<str>>,
    /// Longest answer; where it is absent Anthropic gets [`ANSWER_TOKENS`], others decide.
    pub answer_tokens: Option<u32>,
    /// How much of it Anthropic's models may think; absent, they do not.
    pub thinking_tokens: Option<u32>,
    /// Send thoughts back to an OpenAI-compatible model, as some want it within a turn.
    pub returns_reasoning: bool,
}

impl Options {
    pub(super) fn answer_tokens(&self) -> u32 {
        self.answer_tokens.unwrap_or(ANSWER_TOKENS)
    }
}

/// The next request of a conversation, for a stream.
///
/// Panics where a call has no output or nothing was asked: [`Conversation::ask`] comes first.
pub fn request(
    provider: Provider,
    model: &str,
    conversation: &Conversation,
    tools: &[ToolDefinition],
    options: &Options,
) -> HttpRequest {
    assert_eq!(conversation.owed().count(), 0, "every call has its output before a request");
    assert!(conversation.awaits_answer(), "something is asked before a request");
    let body = match provider {
        Provider::Anthropic => anthropic::body(model, conversation, tools, options),
        Provider::OpenAi => openai::body(model, conversation, tools, options),
    };
    let mut headers = vec![("content-type", "application/json"), ("accept", "text/event-stream")];
    match provider {
        Provider::Anthropic => headers.push(("anthropic-version", anthropic::VERSION)),
        Provider::OpenAi => {}
    }
    HttpRequest { headers, body: body.to_string().into_bytes() }
}

/// An id or a name in the letters that every provider takes; what others made may have more.
pub(super) fn plain_name(name: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    name.chars().map(|letter| if plain(letter) { letter } else { '_' }).collect()
}

/// Providers refuse a text in which nothing stands.
pub(super) fn said(text: &str) -> &str {
    if text.trim().is_empty() { "(nothing was said)" } else { text }
}
