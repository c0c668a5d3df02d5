//! What providers send, and what is made of it.

use qd_harness::native::{
    AssistantMessage, Block, Call, Cause, Piece, Provider, StopReason, Usage,
};
use qd_harness::usage::{PriceTable, Tokens};
use serde_json::{Value, json};

use crate::conversations::text;
use crate::{pieces, stream};

/// An answer as Anthropic streams it.
pub const ANTHROPIC: &[&str] = &[
    r#"{"type":"message_start","message":{"id":"msg_1","model":"claude-opus-4-6","usage":{"input_tokens":12,"output_tokens":1,"cache_creation_input_tokens":300,"cache_creation":{"ephemeral_1h_input_tokens":100,"ephemeral_5m_input_tokens":200},"cache_read_input_tokens":9000}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
    r#"{"type":"ping"}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm, "}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"ls."}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"ZGF0"}}"#,
    r#"{"type":"content_block_stop","index":1}"#,
    r#"{"type":"content_block_start","index":2,"content_block":{"type":"server_tool_use","id":"x","name":"web"}}"#,
    r#"{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{"}}"#,
    r#"{"type":"content_block_start","index":3,"content_block":{"type":"text","text":""}}"#,
    r#"{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"Grüße, "}}"#,
    r#"{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"I look."}}"#,
    r#"{"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"toolu_1","name":"Bash","input":{}}}"#,
    r#"{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":""}}"#,
    r#"{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"{\"command\""}}"#,
    r#"{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":":\"ls\"}"}}"#,
    r#"{"type":"content_block_start","index":5,"content_block":{"type":"tool_use","id":"toolu_2","name":"Now","input":{}}}"#,
    r#"{"type":"something_new","index":9}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":40}}"#,
    r#"{"type":"message_stop"}"#,
];

/// An answer as OpenAI streams it, with thoughts as others do.
pub const OPENAI: &[&str] = &[
    r#"{"id":"c1","model":"gpt-x","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
    r#"{"choices":[{"index":0,"delta":{"reasoning_content":"Hm, "}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"reasoning":"ls.","reasoning_content":""}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"content":"Grüße, "}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"content":"I look."}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"Bash","arguments":""}}]}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"command\""}}]}}]}"#,
    r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":\"ls\"}"}}]}}]}"#,
    r#"{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
    r#"{"choices":[],"usage":{"prompt_tokens":1200,"completion_tokens":40,"prompt_tokens_details":{"cached_tokens":1000},"completion_tokens_details":{"reasoning_tokens":12}}}"#,
    "[DONE]",
];

fn tool_call(id: &str, name: &str, arguments: Value) -> Block {
    Block::Call(Call { call_id: id.into(), name: name.into(), arguments })
}

fn thoughts(pieces: &[Piece]) -> (String, String, String) {
    let (mut said, mut thought, mut arguments) = (String::new(), String::new(), String::new());
    for piece in pieces {
        match piece {
            Piece::Text { text } => said.push_str(text),
            Piece::Thinking { text } => thought.push_str(text),
            Piece::CallArguments { part, .. } => arguments.push_str(part),
            Piece::Metadata { .. } | Piece::Usage(_) | Piece::End { .. } | Piece::Failed(_) => {}
        }
    }
    (said, thought, arguments)
}

fn ending(provider: Provider, data: &[&str]) -> (StopReason, Vec<Block>, Usage) {
    match pieces(provider, stream(data).as_bytes()).pop() {
        Some(Piece::End { reason, message: AssistantMessage { blocks }, usage }) => {
            (reason, blocks, usage)
        }
        other => panic!("{data:?}: {other:?}"),
    }
}

#[test]
fn an_answer_of_anthropic_is_taken_whole() {
    let all = pieces(Provider::Anthropic, stream(ANTHROPIC).as_bytes());
    let metadata =
        Piece::Metadata { model: Some("claude-opus-4-6".into()), request_id: Some("req_1".into()) };
    assert_eq!(all[0], metadata);
    let told = ("Grüße, I look.".into(), "Hm, ls.".into(), "{\"command\":\"ls\"}".into());
    assert_eq!(thoughts(&all), told);
    let (reason, blocks, usage) = ending(Provider::Anthropic, ANTHROPIC);
    assert_eq!(reason, StopReason::Calls);
    assert_eq!(
        blocks,
        [
            Block::Thinking { text: "Hm, ls.".into(), signature: Some("c2ln".into()) },
            Block::RedactedThinking { data: "ZGF0".into() },
            text("Grüße, I look."),
            tool_call("toolu_1", "Bash", json!({"command": "ls"})),
            tool_call("toolu_2", "Now", json!({})),
        ]
    );
    let tokens =
        Tokens { input: 12, output: 40, cache_write: 200, cache_write_1h: 100, cache_read: 9_000 };
    assert_eq!(usage, Usage { tokens, reasoning: 0 });
}

#[test]
fn an_answer_of_openai_is_taken_whole() {
    let all = pieces(Provider::OpenAi, stream(OPENAI).as_bytes());
    let told = ("Grüße, I look.".into(), "Hm, ls.".into(), "{\"command\":\"ls\"}".into());
    assert_eq!(thoughts(&all), told);
    let (reason, blocks, usage) = ending(Provider::OpenAi, OPENAI);
    assert_eq!(reason, StopReason::Calls);
    assert_eq!(
        blocks,
        [
            Block::Thinking { text: "Hm, ls.".into(), signature: None },
            text("Grüße, I look."),
            tool_call("call_1", "Bash", json!({"command": "ls"})),
        ]
    );
    let tokens = Tokens { input: 200, output: 40, cache_read: 1_000, ..Tokens::default() };
    assert_eq!(usage, Usage { tokens, reasoning: 12 });
}

#[test]
fn the_price_table_prices_what_was_used() {
    let (_, _, usage) = ending(Provider::Anthropic, ANTHROPIC);
    let table = PriceTable::bundled();
    let charge = table.charge_of(Some("claude-opus-4-6"), &usage.tokens, None);
    assert!(charge.dollars > 0.0 && !charge.is_estimate, "{charge:?}");
}

/// Calls as they come from those who imitate OpenAI: the parts, and the calls that they are.
fn check_calls(parts: &[Value], expected: &[(&str, &str, Value)]) {
    let chunks: Vec<String> = parts
        .iter()
        .map(|calls| json!({"choices": [{"delta": {"tool_calls": calls}}]}).to_string())
        .collect();
    let mut data: Vec<&str> = chunks.iter().map(String::as_str).collect();
    data.push(r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#);
    let (reason, blocks, _) = ending(Provider::OpenAi, &data);
    let calls: Vec<Block> =
        expected.iter().map(|(id, name, input)| tool_call(id, name, input.clone())).collect();
    assert_eq!((reason, blocks), (StopReason::Calls, calls), "{parts:?}");
}

#[test]
fn calls_are_told_apart_however_they_are_numbered() {
    let call = |id: Value, index: Value, name: &str, arguments: Value| {
        let mut call = json!({"function": {"name": name, "arguments": arguments}});
        for (field, value) in [("id", id), ("index", index)] {
            if !value.is_null() {
                call[field] = value;
            }
        }
        call
    };
    let none = || Value::Null;
    let (one, two) = (json!({"n": 1}), json!({"n": 2}));
    let both = [("a", "X", one.clone()), ("b", "Y", two.clone())];
    let text = |value: &Value| json!(value.to_string());
    // Whole calls at once, without numbers; in one chunk and in two.
    let whole =
        [call(json!("a"), none(), "X", text(&one)), call(json!("b"), none(), "Y", text(&two))];
    check_calls(&[json!(whole)], &both);
    check_calls(&[json!([whole[0]]), json!([whole[1]])], &both);
    // The number 0 for all of them.
    let zeros =
        [call(json!("a"), json!(0), "X", text(&one)), call(json!("b"), json!(0), "Y", text(&two))];
    check_calls(&[json!([zeros[0]]), json!([zeros[1]])], &both);
    // Interleaved, and the name again each time.
    check_calls(
        &[
            json!([call(json!("a"), json!(0), "X", json!("{\"n\""))]),
            json!([call(json!("b"), json!(1), "Y", json!("{\"n\""))]),
            json!([call(none(), json!(0), "X", json!(":1}"))]),
            json!([call(json!("b"), json!(1), "Y", json!(":2}"))]),
        ],
        &both,
    );
    // Arguments as an object; neither id nor number.
    check_calls(
        &[json!([call(none(), none(), "X", one.clone()), call(none(), none(), "Y", two.clone())])],
        &[("call_1_0", "X", one.clone()), ("call_1_1", "Y", two.clone())],
    );
    // Two calls with one id, in two places.
    check_calls(
        &[json!([
            call(json!("a"), json!(0), "X", text(&one)),
            call(json!("a"), json!(1), "Y", text(&two))
        ])],
        &[("a", "X", one.clone()), ("call_1_1", "Y", two.clone())],
    );
    // No arguments at all, in three spellings.
    for nothing in [json!(""), json!("null"), none()] {
        check_calls(&[json!([call(json!("a"), json!(0), "X", nothing)])], &[("a", "X", json!({}))]);
    }
}

#[test]
fn the_first_version_of_the_protocol_is_read_too() {
    let data = [
        r#"{"choices":[{"delta":{"function_call":{"name":"X","arguments":"{\"n\""}}}]}"#,
        r#"{"choices":[{"delta":{"function_call":{"arguments":":1}"}}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"function_call"}]}"#,
    ];
    let (_, blocks, _) = ending(Provider::OpenAi, &data);
    assert_eq!(blocks, [tool_call("call_1_0", "X", json!({"n": 1}))]);
}

#[test]
fn every_reason_to_stop_is_understood() {
    let check = |provider: Provider, word: &str, reason: StopReason| {
        let data = match provider {
            Provider::Anthropic => {
                vec![
                    json!({"type": "message_delta", "delta": {"stop_reason": word}}).to_string(),
                    json!({"type": "message_stop"}).to_string(),
                ]
            }
            Provider::OpenAi => {
                vec![
                    json!({"choices": [{"delta": {"content": "x"}, "finish_reason": word}]})
                        .to_string(),
                ]
            }
        };
        let data: Vec<&str> = data.iter().map(String::as_str).collect();
        assert_eq!(ending(provider, &data).0, reason, "{word}");
    };
    for (word, reason) in [
        ("end_turn", StopReason::Done),
        ("stop_sequence", StopReason::Done),
        ("something_new", StopReason::Done),
        ("max_tokens", StopReason::Length),
        ("model_context_window_exceeded", StopReason::ContextFull),
        ("refusal", StopReason::Refused),
    ] {
        check(Provider::Anthropic, word, reason);
    }
    for (word, reason) in [
        ("stop", StopReason::Done),
        ("eos", StopReason::Done),
        // It names calls, and there are none.
        ("tool_calls", StopReason::Done),
        ("length", StopReason::Length),
        ("model_length", StopReason::ContextFull),
        ("content_filter", StopReason::Refused),
    ] {
        check(Provider::OpenAi, word, reason);
    }
}

#[test]
fn an_end_may_come_without_its_mark_and_a_mark_without_a_reason() {
    let said = r#"{"choices":[{"delta":{"content":"hi"}}]}"#;
    let stop = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
    for data in [&[said, stop][..], &[said, stop, "[DONE]"], &[said, "[DONE]"]] {
        let (reason, blocks, _) = ending(Provider::OpenAi, data);
        assert_eq!((reason, blocks), (StopReason::Done, vec![text("hi")]));
    }
    // Nothing behind the last event, not even the end of its line.
    let bare = format!("{}data: {stop}", stream(&[said]));
    assert!(matches!(pieces(Provider::OpenAi, bare.as_bytes()).pop(), Some(Piece::End { .. })));
}

#[test]
fn a_whole_message_in_place_of_parts_is_taken() {
    let whole = r#"{"choices":[{"message":{"content":[{"type":"text","text":"hi"}],"refusal":null},"finish_reason":"stop"}]}"#;
    assert_eq!(ending(Provider::OpenAi, &[whole]).1, [text("hi")]);
    let refused = r#"{"choices":[{"delta":{"refusal":"I will not."}}]}"#;
    let (reason, blocks, _) = ending(Provider::OpenAi, &[refused, "[DONE]"]);
    assert_eq!((reason, blocks), (StopReason::Refused, vec![text("I will not.")]));
}

#[test]
fn usage_is_found_wherever_it_stands() {
    let usage = r#"{"prompt_tokens":7,"completion_tokens":3,"prompt_cache_hit_tokens":2}"#;
    for data in [
        format!(r#"{{"choices":[],"usage":{usage}}}"#),
        format!(r#"{{"choices":[{{"delta":{{}},"usage":{usage}}}]}}"#),
        format!(r#"{{"choices":[],"x_groq":{{"usage":{usage}}},"usage":null}}"#),
    ] {
        let (_, _, usage) = ending(Provider::OpenAi, &[&data, "[DONE]"]);
        let tokens = Tokens { input: 5, output: 3, cache_read: 2, ..Tokens::default() };
        assert_eq!(usage, Usage { tokens, reasoning: 0 }, "{data}");
    }
}

#[test]
fn arguments_that_are_no_object_fail_and_half_a_call_of_a_cut_answer_is_left_out() {
    let chunk = |arguments: &str, reason: &str| {
        let call =
            json!({"index": 0, "id": "a", "function": {"name": "X", "arguments": arguments}});
        json!({"choices": [{"delta": {"content": "x", "tool_calls": [call]}, "finish_reason": reason}]})
            .to_string()
    };
    let deep = format!("{{\"n\":{}{}}}", "[".repeat(90), "]".repeat(90));
    for bad in ["{\"n\":", "[1]", "7", "\"text\"", "{} {}", &deep] {
        let text = stream(&[&chunk(bad, "tool_calls")]);
        match pieces(Provider::OpenAi, text.as_bytes()).pop() {
            Some(Piece::Failed(failure)) => assert_eq!(failure.cause, Cause::BadArguments),
            other => panic!("{bad}: {other:?}"),
        }
        let (reason, blocks, _) = ending(Provider::OpenAi, &[&chunk(bad, "length")]);
        assert_eq!((reason, blocks), (StopReason::Length, vec![text_block()]), "{bad}");
    }
    let (_, blocks, _) = ending(Provider::OpenAi, &[&chunk("{}", "length")]);
    assert_eq!(blocks.len(), 2, "a whole call of a cut answer stays");
    let (_, blocks, _) = ending(Provider::OpenAi, &[&chunk("{}", "content_filter")]);
    assert_eq!(blocks, [text_block()], "nothing runs that was refused");
}

fn text_block() -> Block {
    text("x")
}

#[test]
fn what_comes_after_the_end_is_not_heard() {
    let mut data = ANTHROPIC.to_vec();
    let whole = pieces(Provider::Anthropic, stream(&data).as_bytes());
    data.extend([r#"{"type":"error"}"#, r#"{"type":"message_stop"}"#, "garbage"]);
    assert_eq!(pieces(Provider::Anthropic, stream(&data).as_bytes()), whole);
}
