//! What is sent, to the letter.

use qd_harness::native::{
    AssistantMessage, Block, Call, Conversation, Options, Provider, ToolDefinition, request,
};
use serde_json::{Value, json};

use crate::conversations::{call, output, text};

fn thinking(signature: Option<&str>) -> Block {
    Block::Thinking { text: "hm".into(), signature: signature.map(Into::into) }
}

fn conversation(answer: Vec<Block>) -> Conversation {
    let mut conversation = Conversation::default();
    conversation.ask(&[], Some("go".into()));
    conversation.answer(AssistantMessage { blocks: answer }).expect("asked");
    conversation
}

fn body(provider: Provider, conversation: &Conversation, options: &Options) -> Value {
    let tool = |name: &str| ToolDefinition {
        name: name.into(),
        description: "does it".into(),
        input_schema: json!({"type": "object"}),
    };
    let request = request(provider, "m", conversation, &[tool("Read"), tool("Bash")], options);
    serde_json::from_slice(&request.body).expect("JSON")
}

#[test]
fn anthropic_gets_thoughts_back_outputs_first_and_marks_for_its_cache() {
    let answer = vec![thinking(Some("sig")), text("look"), call("a"), call("b")];
    let mut conversation = conversation(answer);
    conversation.ask(&[output("a", "1"), output("b", "2")], Some("also this".into()));
    let options = Options {
        system: Some("be brief".into()),
        thinking_tokens: Some(4_000),
        answer_tokens: Some(9_000),
        returns_reasoning: false,
    };
    let cache = json!({"type": "ephemeral"});
    let schema = json!({"type": "object"});
    assert_eq!(
        body(Provider::Anthropic, &conversation, &options),
        json!({
            "model": "m", "max_tokens": 9_000, "stream": true,
            "thinking": {"type": "enabled", "budget_tokens": 4_000},
            "system": [{"type": "text", "text": "be brief", "cache_control": cache}],
            "tools": [
                {"name": "Read", "description": "does it", "input_schema": schema},
                {"name": "Bash", "description": "does it", "input_schema": schema, "cache_control": cache},
            ],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "go", "cache_control": cache}]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "sig"},
                    {"type": "text", "text": "look"},
                    {"type": "tool_use", "id": "a", "name": "Bash", "input": {"n": 1}},
                    {"type": "tool_use", "id": "b", "name": "Bash", "input": {"n": 1}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "1"},
                    {"type": "tool_result", "tool_use_id": "b", "content": "2"},
                    {"type": "text", "text": "also this", "cache_control": cache},
                ]},
            ],
        })
    );
}

#[test]
fn openai_gets_a_message_for_each_output() {
    let answer = vec![thinking(None), text("look"), call("a"), call("b")];
    let mut conversation = conversation(answer);
    conversation.ask(&[output("a", "1"), output("b", "2")], Some("also this".into()));
    let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "Bash", "arguments": "{\"n\":1}"}});
    let mut told = body(Provider::OpenAi, &conversation, &Options::default());
    assert_eq!(told["stream_options"], json!({"include_usage": true}));
    assert_eq!(told["tools"][1]["function"]["parameters"], json!({"type": "object"}));
    assert_eq!(
        told["messages"].take(),
        json!([
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": "look", "tool_calls": [call("a"), call("b")]},
            {"role": "tool", "tool_call_id": "a", "content": "1"},
            {"role": "tool", "tool_call_id": "b", "content": "2"},
            {"role": "user", "content": "also this"},
        ])
    );
    let options = Options {
        system: Some("be brief".into()),
        answer_tokens: Some(9),
        returns_reasoning: true,
        ..Options::default()
    };
    let told = body(Provider::OpenAi, &conversation, &options);
    assert_eq!(told["messages"][0], json!({"role": "system", "content": "be brief"}));
    assert_eq!(told["messages"][2]["reasoning_content"], "hm");
    assert_eq!(told["max_completion_tokens"], 9);
}

#[test]
fn thinking_is_not_switched_on_in_the_middle_of_a_turn() {
    let options = Options { thinking_tokens: Some(2_000), ..Options::default() };
    let check = |answer: Vec<Block>, said: Option<&str>, thinks: bool| {
        let mut conversation = conversation(answer);
        conversation.ask(&[], said.map(Into::into));
        let told = body(Provider::Anthropic, &conversation, &options);
        assert_eq!(told.get("thinking").is_some(), thinks, "{told}");
    };
    check(vec![thinking(Some("sig")), call("a")], None, true);
    check(vec![Block::RedactedThinking { data: "x".into() }, call("a")], None, true);
    check(vec![call("a")], None, false);
    check(vec![thinking(None), call("a")], None, false);
    check(vec![call("a")], Some("a new turn"), true);
    let little = Options { answer_tokens: Some(500), ..options.clone() };
    let mut conversation = Conversation::default();
    conversation.ask(&[], Some("go".into()));
    assert!(body(Provider::Anthropic, &conversation, &little).get("thinking").is_none());
}

#[test]
fn ids_and_names_of_others_are_spelled_plainly() {
    let odd = Call {
        call_id: "functions.bash:0".into(),
        name: "functions.bash".into(),
        arguments: json!({}),
    };
    let mut conversation = conversation(vec![Block::Call(odd)]);
    conversation.ask(&[], None);
    let told = body(Provider::Anthropic, &conversation, &Options::default());
    let (used, result) = (&told["messages"][1]["content"][0], &told["messages"][2]["content"][0]);
    assert_eq!(
        (&used["id"], &used["name"]),
        (&json!("functions_bash_0"), &json!("functions_bash"))
    );
    assert_eq!((&result["tool_use_id"], &result["is_error"]), (&used["id"], &json!(true)));
}

#[test]
fn an_answer_that_says_nothing_is_not_sent_back() {
    for answer in [vec![], vec![text("  ")], vec![thinking(Some("sig"))], vec![thinking(None)]] {
        let mut conversation = conversation(answer);
        conversation.ask(&[], Some("hello?".into()));
        for provider in Provider::ALL {
            let told = body(provider, &conversation, &Options::default());
            assert_eq!(told["messages"].as_array().map(Vec::len), Some(1), "{told}");
        }
    }
}

#[test]
fn headers_hold_the_version_and_no_key() {
    let mut conversation = Conversation::default();
    conversation.ask(&[], Some("go".into()));
    let headers =
        |provider| request(provider, "m", &conversation, &[], &Options::default()).headers;
    let both = [("content-type", "application/json"), ("accept", "text/event-stream")];
    assert_eq!(headers(Provider::OpenAi), both);
    assert_eq!(headers(Provider::Anthropic)[..2], both);
    assert_eq!(headers(Provider::Anthropic)[2..], [("anthropic-version", "2023-06-01")]);
}
