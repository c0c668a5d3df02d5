//! The four languages models are spoken to in, one module each, all with the same four
//! functions: read a request, stream a reply, give it whole, refuse.
//!
//! Pure. Ids are made of the answer's number, so that a run can be repeated.

use serde_json::Value;

use crate::conversation::Conversation;
use crate::limits::STREAM_PIECES;
use crate::reply::Reply;

mod anthropic_exact;
mod anthropic_messages;
mod gemini;
mod openai_chat;
pub(crate) mod openai_responses;
#[cfg(test)]
mod tests;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    AnthropicMessages,
    OpenAiResponses,
    OpenAiChat,
    Gemini,
}

/// A reply about to be written, with what its wire needs to know of the request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Draft<'a> {
    pub(crate) number: usize,
    pub(crate) model: &'a str,
    pub(crate) reply: &'a Reply,
}

/// One server-sent event, or one WebSocket message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StreamEvent {
    pub(crate) name: Option<&'static str>,
    pub(crate) data: String,
}

impl Wire {
    pub(crate) fn read(self, path: &str, body: &Value) -> Conversation {
        match self {
            Self::AnthropicMessages => anthropic_messages::read(body),
            Self::OpenAiResponses => openai_responses::read(body),
            Self::OpenAiChat => openai_chat::read(body),
            Self::Gemini => gemini::read(path, body),
        }
    }

    /// What only the strictest of those who speak it would refuse.
    pub(crate) fn exact_fault(self, body: &Value) -> Option<String> {
        match self {
            Self::AnthropicMessages => anthropic_exact::fault(body),
            Self::OpenAiChat => openai_chat::exact_fault(body),
            Self::OpenAiResponses | Self::Gemini => None,
        }
    }

    pub(crate) fn stream(self, draft: Draft<'_>) -> Vec<StreamEvent> {
        match self {
            Self::AnthropicMessages => anthropic_messages::stream(draft),
            Self::OpenAiResponses => openai_responses::stream(draft),
            Self::OpenAiChat => openai_chat::stream(draft),
            Self::Gemini => gemini::stream(draft),
        }
    }

    pub(crate) fn whole(self, draft: Draft<'_>) -> Value {
        match self {
            Self::AnthropicMessages => anthropic_messages::whole(draft),
            Self::OpenAiResponses => openai_responses::whole(draft),
            Self::OpenAiChat => openai_chat::whole(draft),
            Self::Gemini => gemini::whole(draft),
        }
    }

    pub(crate) fn refuse(self, status: u16, message: &str) -> Value {
        match self {
            Self::AnthropicMessages => anthropic_messages::refuse(status, message),
            Self::OpenAiResponses | Self::OpenAiChat => openai_chat::refuse(status, message),
            Self::Gemini => gemini::refuse(status, message),
        }
    }
}

impl StreamEvent {
    fn named(name: &'static str, data: &Value) -> Self {
        Self { name: Some(name), data: data.to_string() }
    }

    fn unnamed(data: &Value) -> Self {
        Self { name: None, data: data.to_string() }
    }
}

/// A text in the pieces it is streamed in; at least one, cut between characters.
fn pieces(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let size = characters.len().div_ceil(STREAM_PIECES).max(1);
    let mut pieces: Vec<String> = characters.chunks(size).map(|c| c.iter().collect()).collect();
    if pieces.is_empty() {
        pieces.push(String::new());
    }
    pieces
}

/// A field as a string; empty where there is none, for what clients send is not our business.
fn text_of(value: &Value, field: &str) -> String {
    value[field].as_str().unwrap_or_default().to_owned()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Text of a content that is a string, or a list of parts with a `text`.
fn plain(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part.as_str().or(part["text"].as_str()));
            texts.collect::<Vec<_>>().join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}
