//! A chat file as a reader sees it: messages that are written again as they grow, and patches that
//! put others in their place.
//!
//! Older clients wrote one JSON document and wrote it anew each time; [`Chat::of_document`] reads it.

use std::collections::BTreeMap;

use qd_session::moment::Timestamp;
use serde_json::Value;

use super::transcript::NOT_A_PROMPT;
use crate::conversation::{Conversation, Entry, Role, named, placed, text_in};
use crate::{payload, rfc3339};

/// Most messages that are remembered of one chat; the oldest go first. A client cannot resume a
/// chat of a tenth of that.
const MESSAGES_MAX: usize = 20_000;

/// The messages of a chat as they are after the lines read so far.
#[derive(Debug, Default)]
pub struct Chat {
    /// What each message says, in their order.
    messages: BTreeMap<u64, Vec<Entry>>,
    /// Where each message stands in that order.
    known: BTreeMap<String, u64>,
    next: u64,
}

impl Chat {
    /// A chat in one document; none if it is no chat.
    pub fn of_document(document: &[u8]) -> Option<Self> {
        let document: Value = serde_json::from_slice(&payload::mended(document)).ok()?;
        let mut chat = Self::default();
        chat.replace(document.get("messages")?.as_array()?);
        Some(chat)
    }

    /// Takes a line in; `place` is where it stands in its file.
    pub fn take(&mut self, line: &[u8], place: u64) {
        let Some(line) = payload::read::<Value>(&payload::mended(line)) else { return };
        if let Some(messages) = line["$set"]["messages"].as_array() {
            self.replace(messages);
        } else if let Some(id) = line["$rewindTo"].as_str() {
            // The client forgets all if it does not find the message.
            let from = self.known.get(id).copied().unwrap_or_default();
            self.messages.split_off(&from);
            self.known.retain(|_, nth| *nth < from);
        } else if line["type"].is_string() {
            self.put(&line, place);
        }
    }

    /// A line that was too long to be read.
    pub fn skip(&mut self, place: u64, bytes: u64) {
        let marker = Entry::too_long(place, bytes);
        self.insert(marker.id.clone(), vec![marker]);
    }

    pub fn into_entries(self) -> Vec<Entry> {
        self.messages.into_values().flatten().collect::<Conversation>().into_entries()
    }

    fn replace(&mut self, messages: &[Value]) {
        *self = Self::default();
        for (nth, message) in messages.iter().enumerate() {
            self.put(message, nth as u64);
        }
    }

    fn put(&mut self, message: &Value, place: u64) {
        let id = message["id"].as_str().map_or_else(|| placed(place, 0), named);
        let pieces = pieces(message, &id);
        self.insert(id, pieces);
    }

    /// A message keeps its place as it grows.
    fn insert(&mut self, id: String, pieces: Vec<Entry>) {
        let nth = *self.known.entry(id).or_insert(self.next);
        self.next = self.next.max(nth + 1);
        self.messages.insert(nth, pieces);
        if self.messages.len() > MESSAGES_MAX {
            self.messages.pop_first();
            let first = self.messages.first_key_value().map_or(self.next, |(first, _)| *first);
            if self.known.len() >= 2 * MESSAGES_MAX {
                self.known.retain(|_, nth| *nth >= first);
            }
        }
    }
}

fn pieces(message: &Value, id: &str) -> Vec<Entry> {
    let at = message["timestamp"].as_str().and_then(rfc3339::timestamp);
    let role = match message["type"].as_str().unwrap_or_default() {
        "user" => Role::User,
        "gemini" => Role::Assistant,
        "info" | "warning" | "error" => Role::System,
        _ => return Vec::new(),
    };
    let content = &message["content"];
    let text = spoken(content, role);
    let text = text.trim();
    let mut pieces = Vec::new();
    if !text.is_empty() {
        let model = message["model"].as_str().map(named);
        pieces.push(Entry { model, ..Entry::said(id, at, role, text) });
    }
    // The past, written again, has its calls among the parts.
    pieces.extend(content.as_array().into_iter().flatten().filter_map(|part| part_ran(part, at)));
    pieces.extend(message["toolCalls"].as_array().into_iter().flatten().filter_map(ran));
    pieces
}

/// What is said in a text or in parts; thoughts and calls are not said. What the client puts before
/// the conversation may stand in the same message as the first prompt.
fn spoken(content: &Value, role: Role) -> String {
    let by_client = |text: &&str| {
        role == Role::User && NOT_A_PROMPT.iter().any(|start| text.trim_start().starts_with(start))
    };
    let parts = content.as_array().into_iter().flatten();
    let said = parts.filter(|part| part["thought"] != true);
    let texts = content.as_str().into_iter().chain(said.filter_map(|part| part["text"].as_str()));
    texts.filter(|text| !by_client(text)).collect::<Vec<_>>().join("\n")
}

fn part_ran(part: &Value, at: Option<Timestamp>) -> Option<Entry> {
    if let Some(call) = part.get("functionCall") {
        let name = call["name"].as_str().unwrap_or_default();
        return Some(Entry::call(call["id"].as_str()?, at, name, call.get("args").cloned()));
    }
    let result = part.get("functionResponse")?;
    let (output, failed) = answer(&result["response"]);
    Some(Entry::result(result["id"].as_str()?, at, &output, failed))
}

/// A call as the client keeps it, with its result once it has one.
fn ran(call: &Value) -> Option<Entry> {
    let id = call["id"].as_str()?;
    let at = call["timestamp"].as_str().and_then(rfc3339::timestamp);
    let name = call["name"].as_str().unwrap_or_default();
    let mut entry = Entry::call(id, at, name, call.get("args").cloned());
    let responses = call["result"].as_array().into_iter().flatten();
    let (mut output, mut failed) = (String::new(), false);
    for response in responses.filter_map(|part| part.get("functionResponse")) {
        let (told, broke) = answer(&response["response"]);
        output.push_str(&told);
        failed |= broke;
    }
    if output.is_empty() {
        output = call["resultDisplay"].as_str().unwrap_or_default().to_owned();
    }
    failed |= matches!(call["status"].as_str(), Some("error" | "cancelled"));
    let result = Entry::result(id, at, output.trim_end(), failed).tool;
    if let (Some(tool), Some(result)) = (&mut entry.tool, result) {
        (tool.output, tool.failed) = (result.output, result.failed);
    }
    Some(entry)
}

fn answer(response: &Value) -> (String, bool) {
    match (response.get("output"), response.get("error")) {
        (Some(output), _) => (text_in(output), false),
        (None, Some(error)) => (text_in(error), true),
        (None, None) => (text_in(response), false),
    }
}
