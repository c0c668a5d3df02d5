//! Gemini generateContent and streamGenerateContent, version v1beta, as Gemini CLI speaks it.

use serde_json::{Value, json};

use super::{Draft, StreamEvent, Wire, list, pieces, text_of};
use crate::conversation::{Conversation, Turn};
use crate::reply::{Block, StopReason};

/// The model and the wish for a stream are in the path: `…/models/NAME:streamGenerateContent`.
pub(super) fn read(path: &str, body: &Value) -> Conversation {
    let (model, method) =
        path.rsplit('/').next().unwrap_or_default().split_once(':').unwrap_or_default();
    let tools = list(&body["tools"]).iter().flat_map(|tool| list(&tool["functionDeclarations"]));
    let mut turns = Vec::new();
    for content in list(&body["contents"]) {
        for part in list(&content["parts"]) {
            turns.extend(turn(content["role"] == "model", part, &turns));
        }
    }
    Conversation {
        wire: Wire::Gemini,
        model: model.to_owned(),
        streams: method.starts_with("stream"),
        tools: tools.map(|tool| text_of(tool, "name")).collect(),
        turns,
    }
}

fn turn(by_model: bool, part: &Value, before: &[Turn]) -> Option<Turn> {
    if let Some(text) = part["text"].as_str() {
        let text = text.to_owned();
        return match (by_model, part["thought"] == true) {
            (_, true) => None,
            (true, false) => Some(Turn::Assistant(text)),
            (false, false) => Some(Turn::User(text)),
        };
    }
    let call = &part["functionCall"];
    if call.is_object() {
        let name = text_of(call, "name");
        let nth = before.iter().filter(|turn| matches!(turn, Turn::Call { .. })).count();
        return Some(Turn::Call { id: id_or(call, || format!("{name}#{nth}")), name });
    }
    let result = &part["functionResponse"];
    let text = match result["response"]["output"].as_str() {
        Some(text) => text.to_owned(),
        None => result["response"].to_string(),
    };
    // Without ids a result belongs to the first open call of its name.
    let open = || first_open(before, &text_of(result, "name")).unwrap_or_default();
    result.is_object().then(|| Turn::Result { id: id_or(result, open), text })
}

fn id_or(value: &Value, otherwise: impl FnOnce() -> String) -> String {
    value["id"].as_str().map_or_else(otherwise, str::to_owned)
}

fn first_open(before: &[Turn], wanted: &str) -> Option<String> {
    let answered = |wanted: &str| {
        before.iter().any(|turn| matches!(turn, Turn::Result { id, .. } if id == wanted))
    };
    before.iter().find_map(|turn| match turn {
        Turn::Call { id, name } if name == wanted && !answered(id) => Some(id.clone()),
        Turn::Call { .. } | Turn::User(_) | Turn::Assistant(_) | Turn::Result { .. } => None,
    })
}

pub(super) fn stream(draft: Draft<'_>) -> Vec<StreamEvent> {
    let mut events = Vec::new();
    for (index, block) in draft.reply.blocks.iter().enumerate() {
        let parts: Vec<Value> = match block {
            Block::Text(text) => {
                pieces(text).into_iter().map(|piece| json!({"text": piece})).collect()
            }
            Block::Thinking(_) | Block::Call { .. } => vec![part(draft, index, block)],
        };
        events.extend(parts.into_iter().map(|part| chunk(draft, vec![part], None)));
    }
    events.push(match &draft.reply.breaks_with {
        Some(message) => StreamEvent::unnamed(&refuse(503, message)),
        None => chunk(draft, vec![json!({"text": ""})], Some(finish(draft))),
    });
    events
}

pub(super) fn whole(draft: Draft<'_>) -> Value {
    let blocks = draft.reply.blocks.iter().enumerate();
    let parts = blocks.map(|(index, block)| part(draft, index, block)).collect();
    response(draft, parts, Some(finish(draft)))
}

pub(super) fn refuse(status: u16, message: &str) -> Value {
    let kind = match status {
        400 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 | 529 => "UNAVAILABLE",
        _ => "INTERNAL",
    };
    json!({"error": {"code": status, "message": message, "status": kind}})
}

fn part(draft: Draft<'_>, index: usize, block: &Block) -> Value {
    match block {
        Block::Text(text) => json!({"text": text}),
        Block::Thinking(text) => json!({"text": text, "thought": true}),
        Block::Call { name, input } => {
            let id = format!("call_{:04}_{index}", draft.number);
            json!({"functionCall": {"id": id, "name": name, "args": input}})
        }
    }
}

fn chunk(draft: Draft<'_>, parts: Vec<Value>, finish: Option<&str>) -> StreamEvent {
    StreamEvent::unnamed(&response(draft, parts, finish))
}

fn response(draft: Draft<'_>, parts: Vec<Value>, finish: Option<&str>) -> Value {
    let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
    if let Some(reason) = finish {
        candidate["finishReason"] = json!(reason);
    }
    json!({
        "responseId": format!("resp-{:04}", draft.number), "modelVersion": draft.model,
        "candidates": [candidate],
        "usageMetadata": {"promptTokenCount": 1200, "candidatesTokenCount": 40, "totalTokenCount": 1240},
    })
}

fn finish(draft: Draft<'_>) -> &'static str {
    match draft.reply.stop_reason() {
        StopReason::EndTurn | StopReason::ToolUse => "STOP",
        StopReason::MaxTokens => "MAX_TOKENS",
    }
}
