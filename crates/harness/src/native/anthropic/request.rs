//! A conversation as Anthropic Messages want it.

use serde_json::{Value, json};

use crate::native::limits::THINKING_TOKENS_MIN;
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
        "max_tokens": options.answer_tokens(),
        "stream": true,
        "messages": messages(conversation),
    });
    if let Some(system) = &options.system {
        let mut block = json!({"type": "text", "text": said(system)});
        keep_in_cache(&mut block);
        body["system"] = json!([block]);
    }
    if !tools.is_empty() {
        let mut tools: Vec<Value> = tools.iter().map(tool).collect();
        tools.last_mut().into_iter().for_each(keep_in_cache);
        body["tools"] = tools.into();
    }
    if let Some(budget) = thinking_tokens(conversation, options) {
        body["thinking"] = json!({"type": "enabled", "budget_tokens": budget});
    }
    body
}

fn tool(tool: &ToolDefinition) -> Value {
    json!({
        "name": tool.name, "description": tool.description, "input_schema": tool.input_schema,
    })
}

/// Messages of one role in a row are one message, so all outputs of an answer and the operator's
/// next text are together, the outputs first: behind them nothing else is accepted.
fn messages(conversation: &Conversation) -> Vec<Value> {
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in conversation.messages() {
        let (role, blocks) = match message {
            Message::User { text } => ("user", vec![json!({"type": "text", "text": said(text)})]),
            Message::Outputs { outputs } => ("user", outputs.iter().map(output).collect()),
            Message::Assistant(answer) => ("assistant", answer_blocks(answer)),
        };
        match messages.last_mut() {
            _ if blocks.is_empty() => {}
            Some((last, so_far)) if *last == role => so_far.extend(blocks),
            Some(_) | None => messages.push((role, blocks)),
        }
    }
    // The end of this request and of the last one: so the next finds what this one wrote, however
    // many outputs lie between.
    let of_user = messages.iter_mut().rev().filter(|(role, _)| *role == "user").take(2);
    of_user.filter_map(|(_, blocks)| blocks.last_mut()).for_each(keep_in_cache);
    messages.into_iter().map(|(role, content)| json!({"role": role, "content": content})).collect()
}

fn output(output: &qd_session::machine::CallOutput) -> Value {
    let mut block = json!({
        "type": "tool_result",
        "tool_use_id": plain_name(output.call_id.as_str()),
        "content": &*output.content,
    });
    if output.is_error {
        block["is_error"] = true.into();
    }
    block
}

/// Nothing for an answer that cannot be sent back: empty, or thoughts alone.
fn answer_blocks(answer: &AssistantMessage) -> Vec<Value> {
    let is_sent = |block: &Block| match block {
        Block::Text { text } => !text.trim().is_empty(),
        Block::Thinking { signature, .. } => signature.is_some(),
        Block::RedactedThinking { .. } | Block::Call(_) => true,
    };
    let sent: Vec<&Block> = answer.blocks.iter().filter(|block| is_sent(block)).collect();
    // An answer may not end with a thought.
    let is_thought =
        |block: &&&Block| matches!(block, Block::Thinking { .. } | Block::RedactedThinking { .. });
    let thoughts = sent.iter().rev().take_while(is_thought).count();
    sent[..sent.len() - thoughts].iter().map(|block| answer_block(block)).collect()
}

fn answer_block(block: &Block) -> Value {
    match block {
        Block::Text { text } => json!({"type": "text", "text": &**text}),
        Block::Thinking { text, signature } => {
            json!({"type": "thinking", "thinking": &**text, "signature": signature.as_deref()})
        }
        Block::RedactedThinking { data } => json!({"type": "redacted_thinking", "data": &**data}),
        Block::Call(call) => json!({
            "type": "tool_use",
            "id": plain_name(call.call_id.as_str()),
            "name": plain_name(call.name.as_str()),
            "input": call.arguments,
        }),
    }
}

/// None where thinking is off, or cannot be switched on yet: within a turn every answer with calls
/// has to begin with a thought once there is a budget.
fn thinking_tokens(conversation: &Conversation, options: &Options) -> Option<u32> {
    let budget = options.thinking_tokens?.min(options.answer_tokens().saturating_sub(1));
    let of_turn = conversation
        .messages()
        .iter()
        .rev()
        .take_while(|message| !matches!(message, Message::User { .. }));
    let thoughtless = of_turn
        .filter_map(|message| match message {
            Message::Assistant(answer) if answer.calls().next().is_some() => Some(answer),
            Message::Assistant(_) | Message::User { .. } | Message::Outputs { .. } => None,
        })
        .any(|answer| {
            let first = answer_blocks(answer).first().map(|block| block["type"].clone());
            !first.is_some_and(|kind| kind == "thinking" || kind == "redacted_thinking")
        });
    (budget >= THINKING_TOKENS_MIN && !thoughtless).then_some(budget)
}

fn keep_in_cache(block: &mut Value) {
    block["cache_control"] = json!({"type": "ephemeral"});
}
