//! OpenAI chat completions, as OpenCode, Kilo and Cline speak it to a compatible provider.

use serde_json::{Value, json};

use super::{Draft, StreamEvent, Wire, list, pieces, plain, text_of};
use crate::conversation::{Conversation, Turn};
use crate::reply::{Block, StopReason};

pub(super) fn read(body: &Value) -> Conversation {
    Conversation {
        wire: Wire::OpenAiChat,
        model: text_of(body, "model"),
        streams: body["stream"] == true,
        tools: list(&body["tools"]).iter().map(|tool| text_of(&tool["function"], "name")).collect(),
        turns: list(&body["messages"]).iter().flat_map(turns).collect(),
    }
}

fn turns(message: &Value) -> Vec<Turn> {
    let text = plain(&message["content"]);
    match message["role"].as_str() {
        Some("user") => vec![Turn::User(text)],
        Some("tool") => vec![Turn::Result { id: text_of(message, "tool_call_id"), text }],
        Some("assistant") => {
            let calls = list(&message["tool_calls"]).iter().map(|call| Turn::Call {
                id: text_of(call, "id"),
                name: text_of(&call["function"], "name"),
            });
            let said = (!text.is_empty()).then_some(Turn::Assistant(text));
            said.into_iter().chain(calls).collect()
        }
        _ => Vec::new(),
    }
}

/// Results stand right behind their calls, in the same order; an answer says or calls something.
pub(super) fn exact_fault(body: &Value) -> Option<String> {
    let mut open: Vec<String> = Vec::new();
    for message in list(&body["messages"]) {
        let role = text_of(message, "role");
        if role == "tool" {
            let id = text_of(message, "tool_call_id");
            if open.first() != Some(&id) {
                return Some(format!("the result of {id} where {open:?} were due"));
            }
            open.remove(0);
            continue;
        }
        if !open.is_empty() {
            return Some(format!("{role} where the results of {open:?} were due"));
        }
        open = list(&message["tool_calls"]).iter().map(|call| text_of(call, "id")).collect();
        if role == "assistant" && open.is_empty() && plain(&message["content"]).is_empty() {
            return Some("an answer without content".into());
        }
    }
    None
}

pub(super) fn stream(draft: Draft<'_>) -> Vec<StreamEvent> {
    let mut events = vec![chunk(draft, json!({"role": "assistant", "content": ""}), None)];
    let mut calls = 0;
    for block in &draft.reply.blocks {
        match block {
            Block::Text(text) => {
                let deltas = pieces(text).into_iter().map(|piece| json!({"content": piece}));
                events.extend(deltas.map(|delta| chunk(draft, delta, None)));
            }
            Block::Thinking(text) => {
                events.push(chunk(draft, json!({"reasoning_content": text}), None));
            }
            Block::Call { name, input } => {
                let mut start = call(draft.number, calls, name, "");
                start["index"] = json!(calls);
                events.push(chunk(draft, json!({"tool_calls": [start]}), None));
                for piece in pieces(&input.to_string()) {
                    let delta = json!({"index": calls, "function": {"arguments": piece}});
                    events.push(chunk(draft, json!({"tool_calls": [delta]}), None));
                }
                calls += 1;
            }
        }
    }
    if let Some(message) = &draft.reply.breaks_with {
        events.push(StreamEvent::unnamed(&refuse(500, message)));
        return events;
    }
    events.push(chunk(draft, json!({}), Some(finish(draft))));
    events.push(usage_chunk(draft));
    events.push(StreamEvent { name: None, data: "[DONE]".into() });
    events
}

pub(super) fn whole(draft: Draft<'_>) -> Value {
    let mut text = String::new();
    let mut calls = Vec::new();
    for block in &draft.reply.blocks {
        match block {
            Block::Text(more) => text.push_str(more),
            Block::Thinking(_) => {}
            Block::Call { name, input } => {
                calls.push(call(draft.number, calls.len(), name, &input.to_string()));
            }
        }
    }
    let mut message = json!({"role": "assistant", "content": text});
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    json!({
        "id": id(draft), "object": "chat.completion", "created": CREATED, "model": draft.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish(draft)}],
        "usage": usage(),
    })
}

pub(super) fn refuse(status: u16, message: &str) -> Value {
    let kind = match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        429 => "rate_limit_error",
        _ => "server_error",
    };
    json!({"error": {"message": message, "type": kind, "param": null, "code": null}})
}

fn chunk(draft: Draft<'_>, delta: Value, finish: Option<&str>) -> StreamEvent {
    StreamEvent::unnamed(&json!({
        "id": id(draft), "object": "chat.completion.chunk", "created": CREATED, "model": draft.model,
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }))
}

fn usage_chunk(draft: Draft<'_>) -> StreamEvent {
    StreamEvent::unnamed(&json!({
        "id": id(draft), "object": "chat.completion.chunk", "created": CREATED, "model": draft.model,
        "choices": [], "usage": usage(),
    }))
}

fn call(number: usize, index: usize, name: &str, arguments: &str) -> Value {
    json!({
        "id": format!("call_{number:04}_{index}"), "type": "function",
        "function": {"name": name, "arguments": arguments},
    })
}

fn usage() -> Value {
    json!({"prompt_tokens": 1200, "completion_tokens": 40, "total_tokens": 1240})
}

fn finish(draft: Draft<'_>) -> &'static str {
    match draft.reply.stop_reason() {
        StopReason::EndTurn => "stop",
        StopReason::ToolUse => "tool_calls",
        StopReason::MaxTokens => "length",
    }
}

fn id(draft: Draft<'_>) -> String {
    format!("chatcmpl-{:04}", draft.number)
}

/// Some second of the past: no client looks, and a run can be repeated.
const CREATED: u32 = 1_700_000_000;
