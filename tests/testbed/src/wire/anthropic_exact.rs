//! Everything about a request that Anthropic refuses, or advises against.

use serde_json::Value;

use super::anthropic_messages::SIGNATURE;
use super::{list, text_of};

pub(super) fn fault(body: &Value) -> Option<String> {
    let messages = list(&body["messages"]);
    let marks = body.to_string().matches("\"cache_control\"").count();
    if marks > 4 {
        return Some(format!("{marks} marks for the cache; four are allowed"));
    }
    if messages.first().is_none_or(|message| message["role"] != "user") {
        return Some("the first message is not the user's".into());
    }
    let mut due: Vec<String> = Vec::new();
    for message in messages {
        let blocks = list(&message["content"]);
        let results = blocks.iter().take(due.len()).map(|block| text_of(block, "tool_use_id"));
        if !results.eq(due.iter().cloned()) {
            return Some(format!("the results of {due:?} are not the first, in their order"));
        }
        if let Some(fault) = blocks.iter().find_map(block_fault) {
            return Some(fault);
        }
        let kinds: Vec<String> = blocks.iter().map(|block| text_of(block, "type")).collect();
        let is_answer = message["role"] == "assistant";
        if is_answer && kinds.last().is_none_or(|kind| kind.ends_with("thinking")) {
            return Some("an answer that is empty, or ends with a thought".into());
        }
        let calls = blocks.iter().filter(|block| block["type"] == "tool_use");
        due = calls.map(|block| text_of(block, "id")).collect();
    }
    thinking_fault(body, messages)
}

fn block_fault(block: &Value) -> Option<String> {
    match block["type"].as_str()? {
        "text" if text_of(block, "text").trim().is_empty() => Some("a text without text".into()),
        "thinking" if block["signature"] != SIGNATURE => Some("a thought without signature".into()),
        "tool_use" if !block["input"].is_object() => Some("an input that is no object".into()),
        _ => None,
    }
}

/// With a budget, the answers with calls of the current turn begin with their thoughts.
fn thinking_fault(body: &Value, messages: &[Value]) -> Option<String> {
    let budget = body["thinking"]["budget_tokens"].as_u64()?;
    if body["max_tokens"].as_u64().is_none_or(|all| budget >= all || budget < 1_024) {
        return Some(format!("a budget of {budget} is not within max_tokens"));
    }
    let is_prompt = |message: &&Value| {
        list(&message["content"]).iter().any(|block| block["type"] == "text")
            && message["role"] == "user"
    };
    let of_turn = messages.iter().rev().take_while(|message| !is_prompt(message));
    let thoughtless = of_turn.filter(|message| message["role"] == "assistant").any(|message| {
        !list(&message["content"])
            .first()
            .is_some_and(|block| text_of(block, "type").ends_with("thinking"))
    });
    thoughtless.then(|| "expected thinking, found tool_use".into())
}
