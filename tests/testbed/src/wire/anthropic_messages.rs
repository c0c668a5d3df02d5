//! Anthropic Messages, version 2023-06-01, as Claude Code speaks it.

use serde_json::{Value, json};

use super::{Draft, StreamEvent, Wire, list, pieces, plain, text_of};
use crate::conversation::{Conversation, Turn};
use crate::reply::{Block, StopReason};

pub(super) fn read(body: &Value) -> Conversation {
    let mut turns = Vec::new();
    for message in list(&body["messages"]) {
        let content = &message["content"];
        let blocks = match content.as_str() {
            Some(text) => vec![json!({"type": "text", "text": text})],
            None => list(content).to_vec(),
        };
        for block in &blocks {
            turns.extend(turn(&text_of(message, "role"), block));
        }
    }
    Conversation {
        wire: Wire::AnthropicMessages,
        model: text_of(body, "model"),
        streams: body["stream"] == true,
        tools: list(&body["tools"]).iter().map(|tool| text_of(tool, "name")).collect(),
        turns,
    }
}

fn turn(role: &str, block: &Value) -> Option<Turn> {
    match (role, block["type"].as_str()?) {
        ("user", "text") => Some(Turn::User(text_of(block, "text"))),
        ("assistant", "text") => Some(Turn::Assistant(text_of(block, "text"))),
        ("assistant", "tool_use") => {
            Some(Turn::Call { id: text_of(block, "id"), name: text_of(block, "name") })
        }
        ("user", "tool_result") => {
            Some(Turn::Result { id: text_of(block, "tool_use_id"), text: plain(&block["content"]) })
        }
        // Thinking, images, reminders in a role of their own: nothing a script asks about.
        _ => None,
    }
}

pub(super) fn stream(draft: Draft<'_>) -> Vec<StreamEvent> {
    let mut message = empty_message(draft);
    message["usage"]["output_tokens"] = json!(1);
    let mut events =
        vec![event("message_start", json!({"message": message})), event("ping", json!({}))];
    for (index, block) in draft.reply.blocks.iter().enumerate() {
        stream_block(&mut events, draft.number, index, block);
    }
    if let Some(message) = &draft.reply.breaks_with {
        let error = json!({"type": "overloaded_error", "message": message});
        events.push(event("error", json!({"error": error})));
        return events;
    }
    events.push(event(
        "message_delta",
        json!({"delta": {"stop_reason": stop(draft), "stop_sequence": null}, "usage": usage()}),
    ));
    events.push(event("message_stop", json!({})));
    events
}

fn stream_block(events: &mut Vec<StreamEvent>, number: usize, index: usize, block: &Block) {
    let (start, deltas) = match block {
        Block::Text(text) => (
            json!({"type": "text", "text": ""}),
            pieces(text)
                .into_iter()
                .map(|piece| json!({"type": "text_delta", "text": piece}))
                .collect(),
        ),
        Block::Thinking(text) => {
            let mut deltas: Vec<Value> = pieces(text)
                .into_iter()
                .map(|piece| json!({"type": "thinking_delta", "thinking": piece}))
                .collect();
            deltas.push(json!({"type": "signature_delta", "signature": SIGNATURE}));
            (json!({"type": "thinking", "thinking": "", "signature": ""}), deltas)
        }
        Block::Call { name, input } => (
            json!({"type": "tool_use", "id": call_id(number, index), "name": name, "input": {}}),
            pieces(&input.to_string())
                .into_iter()
                .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}))
                .collect::<Vec<Value>>(),
        ),
    };
    events.push(event("content_block_start", json!({"index": index, "content_block": start})));
    for delta in deltas {
        events.push(event("content_block_delta", json!({"index": index, "delta": delta})));
    }
    events.push(event("content_block_stop", json!({"index": index})));
}

pub(super) fn whole(draft: Draft<'_>) -> Value {
    let content: Vec<Value> = draft
        .reply
        .blocks
        .iter()
        .enumerate()
        .map(|(index, block)| match block {
            Block::Text(text) => json!({"type": "text", "text": text}),
            Block::Thinking(text) => {
                json!({"type": "thinking", "thinking": text, "signature": SIGNATURE})
            }
            Block::Call { name, input } => {
                json!({"type": "tool_use", "id": call_id(draft.number, index), "name": name, "input": input})
            }
        })
        .collect();
    let mut message = empty_message(draft);
    message["content"] = json!(content);
    message["stop_reason"] = json!(stop(draft));
    message
}

pub(super) fn refuse(status: u16, message: &str) -> Value {
    let kind = match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        _ => "api_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

fn empty_message(draft: Draft<'_>) -> Value {
    json!({
        "id": format!("msg_{:04}", draft.number), "type": "message", "role": "assistant",
        "model": draft.model, "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": usage(),
    })
}

fn usage() -> Value {
    json!({
        "input_tokens": 1200, "output_tokens": 40,
        "cache_creation_input_tokens": 300, "cache_read_input_tokens": 9000,
    })
}

fn stop(draft: Draft<'_>) -> &'static str {
    match draft.reply.stop_reason() {
        StopReason::EndTurn => "end_turn",
        StopReason::ToolUse => "tool_use",
        StopReason::MaxTokens => "max_tokens",
    }
}

fn call_id(number: usize, index: usize) -> String {
    format!("toolu_{number:04}_{index}")
}

/// Every event says its own name again.
fn event(name: &'static str, mut data: Value) -> StreamEvent {
    data["type"] = json!(name);
    StreamEvent::named(name, &data)
}

/// Clients send it back and do not look inside.
pub(super) const SIGNATURE: &str = "c2lnbmF0dXJl";
