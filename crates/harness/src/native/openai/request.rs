//! A conversation as chat completions want it.

use serde_json::{Value, json};

use crate::native::request::{plain_name, said};
use crate::native::{AssistantMessage, Block, Conversation, Message, Options, ToolDefinition};

pub(in crate::native) fn body(
    model: &str,
    conversation: &Conversation,
    tools: &[ToolDefinition],
    options: &Options,
) -> Value {
    let mut body = json!({
        "model": model,
        "stream": true,
        "stream_options": {"include_usage": true},
        "messages": messages(conversation, options),
    });
    if !tools.is_empty() {
        body["tools"] = tools.iter().map(tool).collect::<Vec<Value>>().into();
    }
    if let Some(tokens) = options.answer_tokens {
        body["max_completion_tokens"] = tokens.into();
    }
    body
}

fn tool(tool: &ToolDefinition) -> Value {
    json!({"type": "function", "function": {
        "name": tool.name, "description": tool.description, "parameters": tool.input_schema,
    }})
}

fn messages(conversation: &Conversation, options: &Options) -> Vec<Value> {
    let mut messages = Vec::new();
    if let Some(system) = &options.system {
        messages.push(json!({"role": "system", "content": said(system)}));
    }
    // Two prompts in a row, because a request failed between them, are one: templates of many
    // models want user and assistant to take turns.
    let mut prompt: Option<String> = None;
    for message in conversation.messages() {
        match message {
            Message::User { text } => {
                let so_far = prompt.take().map(|so_far| so_far + "\n\n").unwrap_or_default();
                prompt = Some(so_far + said(text));
            }
            Message::Assistant(answer) => {
                let Some(answer) = assistant(answer, options) else { continue };
                messages.extend(prompt.take().map(user));
                messages.push(answer);
            }
            Message::Outputs { outputs } => messages.extend(outputs.iter().map(|output| {
                json!({
                    "role": "tool",
                    "tool_call_id": output.call_id,
                    "content": &*output.content,
                })
            })),
        }
    }
    messages.extend(prompt.map(user));
    messages
}

fn user(text: String) -> Value {
    json!({"role": "user", "content": text})
}

/// None for an answer in which nothing can be sent back.
fn assistant(answer: &AssistantMessage, options: &Options) -> Option<Value> {
    let text = answer.text();
    let calls: Vec<Value> = answer
        .calls()
        .map(|call| {
            json!({"id": call.call_id, "type": "function", "function": {
                "name": plain_name(call.name.as_str()), "arguments": call.arguments.to_string(),
            }})
        })
        .collect();
    if text.is_none() && calls.is_empty() {
        return None;
    }
    let mut message = json!({"role": "assistant", "content": text.as_deref()});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let thoughts = thoughts(answer);
    if options.returns_reasoning && !thoughts.is_empty() {
        message["reasoning_content"] = thoughts.into();
    }
    Some(message)
}

fn thoughts(answer: &AssistantMessage) -> String {
    let thoughts = answer.blocks.iter().filter_map(|block| match block {
        Block::Thinking { text, .. } => Some(&**text),
        Block::Text { .. } | Block::RedactedThinking { .. } | Block::Call(_) => None,
    });
    thoughts.collect()
}
