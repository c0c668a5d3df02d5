//! Each wire, read and written: one reply in all four languages, and what a request means.

use serde_json::{Value, json};

use super::{Draft, StreamEvent, Wire, pieces};
use crate::conversation::Turn;
use crate::reply::{Reply, StopReason};

const WIRES: [Wire; 4] =
    [Wire::AnthropicMessages, Wire::OpenAiResponses, Wire::OpenAiChat, Wire::Gemini];

fn draft(reply: &Reply) -> Draft<'_> {
    Draft { number: 7, model: "scripted", reply }
}

fn last_json(events: &[StreamEvent]) -> Value {
    let mut values = events.iter().rev().filter_map(|event| serde_json::from_str(&event.data).ok());
    values.next().expect("a stream has an event")
}

/// What a client that puts the stream together would have at the field.
fn streamed(wire: Wire, reply: &Reply, pointers: &[&str]) -> String {
    let events = wire.stream(draft(reply));
    let values = events.iter().filter_map(|event| serde_json::from_str::<Value>(&event.data).ok());
    let deltas = values.filter(|value| value["type"] != "response.output_item.done");
    deltas
        .filter_map(|value| {
            pointers.iter().find_map(|p| value.pointer(p)?.as_str().map(str::to_owned))
        })
        .collect()
}

#[test]
fn a_text_streamed_in_pieces_is_the_text() {
    let reply = Reply::says("Grüße vom Script, in several pieces");
    let fields =
        ["/delta/text", "/delta", "/choices/0/delta/content", "/candidates/0/content/parts/0/text"];
    for wire in WIRES {
        assert_eq!(
            streamed(wire, &reply, &fields),
            "Grüße vom Script, in several pieces",
            "{wire:?}"
        );
    }
}

#[test]
fn the_input_of_a_call_streamed_in_pieces_is_the_input() {
    let input = json!({"command": "ls -l", "count": 3});
    let reply = Reply::calls("Bash", input.clone());
    let fields =
        ["/delta/partial_json", "/delta", "/choices/0/delta/tool_calls/0/function/arguments"];
    for wire in [Wire::AnthropicMessages, Wire::OpenAiResponses, Wire::OpenAiChat] {
        let text = streamed(wire, &reply, &fields);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), input, "{wire:?}");
    }
    let gemini = Wire::Gemini.stream(draft(&reply));
    let first: Value = serde_json::from_str(&gemini[0].data).unwrap();
    assert_eq!(first["candidates"][0]["content"]["parts"][0]["functionCall"]["args"], input);
}

#[test]
fn every_stop_reason_is_said_in_every_wire() {
    let check = |reply: &Reply, words: [&str; 4]| {
        let fields =
            ["/stop_reason", "/status", "/choices/0/finish_reason", "/candidates/0/finishReason"];
        for ((wire, field), word) in WIRES.into_iter().zip(fields).zip(words) {
            assert_eq!(wire.whole(draft(reply)).pointer(field), Some(&json!(word)), "{wire:?}");
        }
    };
    check(&Reply::says("x"), ["end_turn", "completed", "stop", "STOP"]);
    check(&Reply::calls("x", json!({})), ["tool_use", "completed", "tool_calls", "STOP"]);
    let cut = Reply::says("x").stops_for(StopReason::MaxTokens);
    check(&cut, ["max_tokens", "incomplete", "length", "MAX_TOKENS"]);
}

#[test]
fn anthropic_events_come_in_their_order() {
    let reply = Reply::thinks("a").and_says("b").and_calls("C", json!({}));
    let events = Wire::AnthropicMessages.stream(draft(&reply));
    let mut names: Vec<&str> = events.iter().filter_map(|event| event.name).collect();
    names.dedup();
    let block = ["content_block_start", "content_block_delta", "content_block_stop"];
    let expected = [
        &["message_start", "ping"][..],
        &block,
        &block,
        &block,
        &["message_delta", "message_stop"],
    ];
    assert_eq!(names, expected.concat());
}

#[test]
fn a_broken_stream_ends_in_an_error() {
    let reply = Reply::says("so far").breaks_with("Overloaded");
    let fields = ["/error/message", "/response/error/message", "/error/message", "/error/message"];
    for (wire, field) in WIRES.into_iter().zip(fields) {
        let last = last_json(&wire.stream(draft(&reply)));
        assert_eq!(last.pointer(field), Some(&json!("Overloaded")), "{wire:?}");
    }
}

#[test]
fn a_refusal_says_its_kind_in_the_vendors_word() {
    let kind = |wire: Wire, status, field| wire.refuse(status, "no").pointer(field).cloned();
    for (status, word) in [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (429, "rate_limit_error"),
        (500, "api_error"),
        (529, "overloaded_error"),
    ] {
        assert_eq!(kind(Wire::AnthropicMessages, status, "/error/type"), Some(json!(word)));
    }
    assert_eq!(kind(Wire::OpenAiChat, 429, "/error/type"), Some(json!("rate_limit_error")));
    assert_eq!(kind(Wire::Gemini, 429, "/error/status"), Some(json!("RESOURCE_EXHAUSTED")));
}

/// The same conversation in four languages: a prompt, a call with its result, a new prompt.
fn conversations() -> [(Wire, &'static str, Value); 4] {
    let anthropic = json!({"model": "m", "stream": true, "tools": [{"name": "Bash"}], "messages": [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "Bash", "input": {}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "out"}]},
            {"type": "text", "text": "and now?"}]},
    ]});
    let responses = json!({"model": "m", "stream": true, "tools": [{"type": "function", "name": "Bash"}], "input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "rules"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
        {"type": "function_call", "call_id": "c1", "name": "Bash", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "out"},
        {"role": "user", "content": "and now?"},
    ]});
    let chat = json!({"model": "m", "stream": true, "tools": [{"type": "function", "function": {"name": "Bash"}}], "messages": [
        {"role": "system", "content": "rules"},
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "Bash", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "out"},
        {"role": "user", "content": [{"type": "text", "text": "and now?"}]},
    ]});
    let gemini = json!({"tools": [{"functionDeclarations": [{"name": "Bash"}]}], "contents": [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [{"text": "hm", "thought": true}, {"functionCall": {"id": "c1", "name": "Bash", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "Bash", "response": {"output": "out"}}}]},
        {"role": "user", "parts": [{"text": "and now?"}]},
    ]});
    [
        (Wire::AnthropicMessages, "/v1/messages", anthropic),
        (Wire::OpenAiResponses, "/v1/responses", responses),
        (Wire::OpenAiChat, "/v1/chat/completions", chat),
        (Wire::Gemini, "/v1beta/models/m:streamGenerateContent", gemini),
    ]
}

#[test]
fn a_conversation_means_the_same_in_every_wire() {
    let turns = vec![
        Turn::User("go".into()),
        Turn::Call { id: "c1".into(), name: "Bash".into() },
        Turn::Result { id: "c1".into(), text: "out".into() },
        Turn::User("and now?".into()),
    ];
    for (wire, path, body) in conversations() {
        let read = wire.read(path, &body);
        assert_eq!(
            (&read.turns, read.streams, read.model.as_str()),
            (&turns, true, "m"),
            "{wire:?}"
        );
        assert_eq!(
            (read.tools.as_slice(), read.fault()),
            (&["Bash".to_owned()][..], None),
            "{wire:?}"
        );
    }
}

#[test]
fn a_call_without_its_result_is_a_fault_in_every_wire() {
    for (wire, path, body) in conversations() {
        let mut read = wire.read(path, &body);
        read.turns.retain(|turn| !matches!(turn, Turn::Result { .. }));
        let fault = read.fault().expect("the call is open");
        assert!(fault.contains("c1"), "{wire:?}: {fault}");
    }
}

#[test]
fn a_result_without_its_call_is_a_fault_in_every_wire() {
    for (wire, path, body) in conversations() {
        let mut read = wire.read(path, &body);
        read.turns.retain(|turn| !matches!(turn, Turn::Call { .. }));
        assert!(read.fault().is_some(), "{wire:?}");
    }
}

#[test]
fn gemini_results_without_ids_belong_to_the_first_open_call_of_their_name() {
    let call = json!({"functionCall": {"name": "Bash", "args": {}}});
    let result = json!({"functionResponse": {"name": "Bash", "response": {"output": "out"}}});
    let body = |results: Vec<&Value>| {
        json!({"contents": [
            {"role": "model", "parts": [call, call]}, {"role": "user", "parts": results}]})
    };
    let fault = |body: Value| Wire::Gemini.read("/models/m:generateContent", &body).fault();
    assert_eq!(fault(body(vec![&result, &result])), None);
    assert!(fault(body(vec![&result])).is_some());
}

#[test]
fn nonsense_is_read_as_an_empty_conversation() {
    for wire in WIRES {
        for body in [
            json!(null),
            json!("text"),
            json!([1]),
            json!({"messages": 3, "input": {}, "contents": [null]}),
        ] {
            let read = wire.read("", &body);
            assert_eq!((read.turns.len(), read.tools.len()), (0, 0), "{wire:?} {body}");
        }
    }
}

#[test]
fn pieces_are_never_none() {
    assert_eq!(pieces(""), [""]);
    assert_eq!(pieces("ab").concat(), "ab");
}
