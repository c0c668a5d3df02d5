//! OpenAI Responses, as Codex speaks it: the same events over SSE and over a WebSocket.

use serde_json::{Value, json};

use super::{Draft, StreamEvent, Wire, list, pieces, plain, text_of};
use crate::conversation::{Conversation, Turn};
use crate::reply::{Block, StopReason};

pub(super) fn read(body: &Value) -> Conversation {
    let turns = match body["input"].as_str() {
        Some(text) => vec![Turn::User(text.to_owned())],
        None => list(&body["input"]).iter().filter_map(turn).collect(),
    };
    let name = |tool: &Value| match tool["name"].as_str() {
        Some(name) => name.to_owned(),
        None => text_of(tool, "type"),
    };
    // Newer models get their tools as an item of the input.
    let more = list(&body["input"]).iter().filter(|item| item["type"] == "additional_tools");
    let tools = list(&body["tools"]).iter().chain(more.flat_map(|item| list(&item["tools"])));
    Conversation {
        wire: Wire::OpenAiResponses,
        model: text_of(body, "model"),
        streams: body["stream"] == true,
        tools: tools.map(name).collect(),
        turns,
    }
}

fn turn(item: &Value) -> Option<Turn> {
    let call = || Turn::Call { id: text_of(item, "call_id"), name: text_of(item, "name") };
    let result = || Turn::Result { id: text_of(item, "call_id"), text: plain(&item["output"]) };
    match item["type"].as_str().unwrap_or("message") {
        "message" => match item["role"].as_str()? {
            "user" => Some(Turn::User(plain(&item["content"]))),
            "assistant" => Some(Turn::Assistant(plain(&item["content"]))),
            _ => None,
        },
        // What one agent tells another; to the one who hears it, it is a prompt.
        "agent_message" => Some(Turn::User(plain(&item["content"]))),
        "function_call" | "custom_tool_call" => Some(call()),
        "function_call_output" | "custom_tool_call_output" => Some(result()),
        _ => None,
    }
}

pub(super) fn stream(draft: Draft<'_>) -> Vec<StreamEvent> {
    let response = response(draft, "in_progress");
    let mut events = vec![
        event("response.created", json!({"response": response})),
        event("response.in_progress", json!({"response": response})),
    ];
    for (index, block) in draft.reply.blocks.iter().enumerate() {
        stream_item(&mut events, draft.number, index, block);
    }
    events.push(last_event(draft));
    events
}

/// The answer to a request that only warms the connection up.
pub(crate) fn warm_up(draft: Draft<'_>) -> Vec<StreamEvent> {
    let mut done = response(draft, "completed");
    done["output"] = json!([]);
    done["usage"] = usage(0, 0);
    vec![
        event("response.created", json!({"response": response(draft, "in_progress")})),
        event("response.completed", json!({"response": done})),
    ]
}

/// What the reply adds to the conversation, as the next request would send it.
pub(crate) fn items(draft: Draft<'_>) -> Vec<Value> {
    let blocks = draft.reply.blocks.iter().enumerate();
    blocks.map(|(index, block)| item(draft.number, index, block)).collect()
}

pub(crate) fn response_id(number: usize) -> String {
    format!("resp_{number:04}")
}

fn stream_item(events: &mut Vec<StreamEvent>, number: usize, index: usize, block: &Block) {
    let done = item(number, index, block);
    let id = done["id"].clone();
    let mut added = done.clone();
    let at = |mut data: Value| {
        data["item_id"] = id.clone();
        data["output_index"] = json!(index);
        data
    };
    let middle = match block {
        Block::Text(text) => {
            added["content"] = json!([]);
            let part = json!({"type": "output_text", "text": "", "annotations": []});
            let mut middle = vec![event(
                "response.content_part.added",
                at(json!({"content_index": 0, "part": part})),
            )];
            middle.extend(pieces(text).into_iter().map(|piece| {
                event("response.output_text.delta", at(json!({"content_index": 0, "delta": piece})))
            }));
            let whole = at(json!({"content_index": 0, "text": text}));
            middle.push(event("response.output_text.done", whole));
            middle
        }
        Block::Thinking(text) => {
            added["summary"] = json!([]);
            let part = json!({"type": "summary_text", "text": ""});
            vec![
                event(
                    "response.reasoning_summary_part.added",
                    at(json!({"summary_index": 0, "part": part})),
                ),
                event(
                    "response.reasoning_summary_text.delta",
                    at(json!({"summary_index": 0, "delta": text})),
                ),
                event(
                    "response.reasoning_summary_text.done",
                    at(json!({"summary_index": 0, "text": text})),
                ),
            ]
        }
        Block::Call { input: Value::String(text), .. } => {
            added["input"] = json!("");
            vec![
                event("response.custom_tool_call_input.delta", at(json!({"delta": text}))),
                event("response.custom_tool_call_input.done", at(json!({"input": text}))),
            ]
        }
        Block::Call { input, .. } => {
            added["arguments"] = json!("");
            let arguments = input.to_string();
            let mut middle: Vec<StreamEvent> = pieces(&arguments)
                .into_iter()
                .map(|piece| {
                    event("response.function_call_arguments.delta", at(json!({"delta": piece})))
                })
                .collect();
            let whole = at(json!({"arguments": arguments}));
            middle.push(event("response.function_call_arguments.done", whole));
            middle
        }
    };
    if added.get("status").is_some() {
        added["status"] = json!("in_progress");
    }
    events.push(event("response.output_item.added", json!({"output_index": index, "item": added})));
    events.extend(middle);
    events.push(event("response.output_item.done", json!({"output_index": index, "item": done})));
}

fn item(number: usize, index: usize, block: &Block) -> Value {
    let id = |kind: &str| format!("{kind}_{number:04}_{index}");
    match block {
        Block::Text(text) => json!({
            "id": id("msg"), "type": "message", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }),
        Block::Thinking(text) => json!({
            "id": id("rs"), "type": "reasoning", "encrypted_content": "c2VjcmV0",
            "summary": [{"type": "summary_text", "text": text}],
        }),
        Block::Call { name, input: Value::String(text) } => json!({
            "id": id("ctc"), "type": "custom_tool_call", "status": "completed",
            "name": name, "input": text, "call_id": id("call"),
        }),
        Block::Call { name, input } => {
            let mut call = json!({
                "id": id("fc"), "type": "function_call", "status": "completed",
                "name": name, "arguments": input.to_string(), "call_id": id("call"),
            });
            if let Some((namespace, name)) = name.split_once('/') {
                call["namespace"] = json!(namespace);
                call["name"] = json!(name);
            }
            call
        }
    }
}

fn last_event(draft: Draft<'_>) -> StreamEvent {
    if let Some(message) = &draft.reply.breaks_with {
        let mut failed = response(draft, "failed");
        failed["error"] = json!({"code": "server_is_overloaded", "message": message});
        return event("response.failed", json!({"response": failed}));
    }
    let whole = whole(draft);
    let name =
        if whole["status"] == "incomplete" { "response.incomplete" } else { "response.completed" };
    event(name, json!({"response": whole}))
}

pub(super) fn whole(draft: Draft<'_>) -> Value {
    let cut = draft.reply.stop_reason() == StopReason::MaxTokens;
    let mut whole = response(draft, if cut { "incomplete" } else { "completed" });
    if cut {
        whole["incomplete_details"] = json!({"reason": "max_output_tokens"});
    }
    whole["output"] = json!(items(draft));
    whole["usage"] = usage(1200, 40);
    whole
}

fn response(draft: Draft<'_>, status: &str) -> Value {
    json!({"id": response_id(draft.number), "object": "response", "model": draft.model, "status": status})
}

fn usage(input: u32, output: u32) -> Value {
    json!({
        "input_tokens": input, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": output, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": input + output,
    })
}

/// Every event says its own name again; over a WebSocket that is all it has.
fn event(name: &'static str, mut data: Value) -> StreamEvent {
    data["type"] = json!(name);
    StreamEvent::named(name, &data)
}
