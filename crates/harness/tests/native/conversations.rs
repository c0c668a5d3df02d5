//! Any conversation: each call has exactly one output, before every request and in every language.

use proptest::prelude::*;
use qd_harness::native::{
    AssistantMessage, Block, Call, Conversation, Message, Options, Provider, ToolDefinition,
    Unasked, request,
};
use qd_session::id::CallId;
use qd_session::machine::CallOutput;
use serde_json::{Value, json};

pub fn call(id: &str) -> Block {
    Block::Call(Call { call_id: id.into(), name: "Bash".into(), arguments: json!({"n": 1}) })
}

pub fn output(id: &str, content: &str) -> CallOutput {
    CallOutput { call_id: id.into(), content: content.into(), is_error: false }
}

pub fn text(text: &str) -> Block {
    Block::Text { text: text.into() }
}

/// What happens to a conversation: an answer, or what is new before a request.
#[derive(Debug, Clone)]
enum Happening {
    Answer(Vec<Block>),
    Ask { outputs: Vec<u8>, text: Option<String> },
}

fn block() -> impl Strategy<Value = Block> {
    prop_oneof![
        "[ a-z]{0,5}".prop_map(|said| text(&said)),
        ("[a-z]{0,5}", prop::option::of("[a-z]{1,5}")).prop_map(|(text, signature)| {
            Block::Thinking { text: text.into(), signature: signature.map(Into::into) }
        }),
        "[a-z]{1,5}".prop_map(|data| Block::RedactedThinking { data: data.into() }),
        (0_u8..6).prop_map(|id| call(&id.to_string())),
    ]
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        prop::collection::vec(block(), 0..6).prop_map(|mut blocks| {
            // A reader gives no two calls of an answer the same id.
            let mut known: Vec<CallId> = Vec::new();
            blocks.retain(|block| match block {
                Block::Call(call) if known.contains(&call.call_id) => false,
                Block::Call(call) => {
                    known.push(call.call_id.clone());
                    true
                }
                Block::Text { .. } | Block::Thinking { .. } | Block::RedactedThinking { .. } => {
                    true
                }
            });
            Happening::Answer(blocks)
        }),
        (prop::collection::vec(0_u8..6, 0..6), prop::option::of("[ a-z]{0,5}"))
            .prop_map(|(outputs, text)| Happening::Ask { outputs, text }),
    ]
}

fn conversation(happenings: &[Happening]) -> Conversation {
    let mut conversation = Conversation::default();
    for happening in happenings {
        match happening {
            Happening::Answer(blocks) => {
                let asked = conversation.awaits_answer();
                let answered = conversation.answer(AssistantMessage { blocks: blocks.clone() });
                assert_eq!(answered, if asked { Ok(()) } else { Err(Unasked) });
            }
            Happening::Ask { outputs, text } => {
                let given: Vec<CallOutput> =
                    outputs.iter().map(|id| output(&id.to_string(), "given")).collect();
                conversation.ask(&given, text.as_deref().map(Into::into));
            }
        }
    }
    conversation
}

fn body(provider: Provider, conversation: &Conversation, thinking: bool) -> Value {
    let tools = [ToolDefinition {
        name: "Bash".into(),
        description: "runs a command".into(),
        input_schema: json!({"type": "object"}),
    }];
    let options = Options { thinking_tokens: thinking.then_some(2_000), ..Options::default() };
    let request = request(provider, "m", conversation, &tools, &options);
    serde_json::from_slice(&request.body).expect("JSON")
}

/// As Anthropic checks it: outputs of all calls of an answer, in order, first in the next message.
fn check_anthropic(body: &Value) {
    let messages = body["messages"].as_array().expect("messages");
    assert_eq!(messages[0]["role"], "user");
    let ids = |message: &Value, kind: &str, field: &str| -> Vec<Value> {
        let blocks = message["content"].as_array().expect("blocks").iter();
        blocks.filter(|block| block["type"] == kind).map(|block| block[field].clone()).collect()
    };
    let mut open = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let blocks = message["content"].as_array().expect("blocks");
        assert!(!blocks.is_empty());
        assert_eq!(message["role"], if at % 2 == 0 { "user" } else { "assistant" });
        assert_eq!(ids(message, "tool_result", "tool_use_id"), open, "{messages:?}");
        let first = blocks.iter().take(open.len()).all(|block| block["type"] == "tool_result");
        assert!(first, "outputs come first");
        open = ids(message, "tool_use", "id");
        for block in blocks {
            let said = block["text"].as_str().is_none_or(|text| !text.trim().is_empty());
            assert!(said && !block["signature"].is_null() | (block["type"] != "thinking"));
        }
        if message["role"] == "assistant" {
            let last = blocks.last().expect("a block")["type"].as_str().unwrap_or_default();
            assert!(!last.ends_with("thinking"), "{blocks:?}");
        }
    }
    assert_eq!(open, Vec::<Value>::new());
    assert_eq!(messages.last().expect("a message")["role"], "user");
}

fn check_openai(body: &Value) {
    let messages = body["messages"].as_array().expect("messages");
    let mut open: Vec<Value> = Vec::new();
    let mut before = "";
    for message in messages {
        let role = message["role"].as_str().expect("a role");
        match role {
            "tool" => assert_eq!(open.remove(0), message["tool_call_id"]),
            "assistant" => {
                assert!(open.is_empty() && before != "assistant");
                let calls = message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
                open = calls.iter().map(|call| call["id"].clone()).collect();
                assert!(!open.is_empty() || message["content"].is_string());
            }
            "user" => assert!(open.is_empty() && before != "user", "{messages:?}"),
            other => panic!("{other}"),
        }
        before = role;
    }
    assert!(open.is_empty() && before != "assistant");
}

proptest! {
    #[test]
    fn every_call_has_its_output_in_every_language(
        happenings in prop::collection::vec(happening(), 0..24),
        thinking in any::<bool>(),
    ) {
        let mut conversation = conversation(&happenings);
        conversation.ask(&[], Some("and now?".into()));
        check_anthropic(&body(Provider::Anthropic, &conversation, thinking));
        check_openai(&body(Provider::OpenAi, &conversation, thinking));
    }

    #[test]
    fn a_conversation_is_read_back_as_it_was_written(
        happenings in prop::collection::vec(happening(), 0..24),
    ) {
        let conversation = conversation(&happenings);
        let text = serde_json::to_string(&conversation).expect("written");
        prop_assert_eq!(serde_json::from_str::<Conversation>(&text).expect("read"), conversation);
    }
}

#[test]
fn an_output_that_is_missing_is_told_as_lost() {
    let mut conversation = Conversation::default();
    conversation.ask(&[], Some("go".into()));
    conversation.answer(AssistantMessage { blocks: vec![call("a"), call("b")] }).expect("asked");
    assert_eq!(conversation.owed().count(), 2);
    conversation.ask(&[output("b", "out"), output("other", "x")], None);
    let lost = CallOutput { is_error: true, ..output("a", "interrupted, outcome unknown") };
    let outputs = vec![lost, output("b", "out")];
    assert_eq!(conversation.messages().last(), Some(&Message::Outputs { outputs }));
}

#[test]
fn what_is_no_conversation_is_not_read() {
    let user = json!({"role": "user", "text": "go"});
    let calls = |ids: &[&str]| {
        let call =
            |id: &&str| json!({"type": "call", "callId": id, "name": "Bash", "arguments": {}});
        json!({"role": "assistant", "blocks": ids.iter().map(call).collect::<Vec<Value>>()})
    };
    let outputs = |ids: &[&str]| {
        let output = |id: &&str| json!({"callId": id, "content": "", "isError": false});
        json!({"role": "outputs", "outputs": ids.iter().map(output).collect::<Vec<Value>>()})
    };
    let check = |messages: &[&Value], is_read: bool| {
        let read = serde_json::from_value::<Conversation>(json!(messages));
        assert_eq!(read.is_ok(), is_read, "{messages:?}");
    };
    check(&[&user, &calls(&["a", "b"]), &outputs(&["a", "b"]), &user], true);
    check(&[&user, &calls(&["a"])], true);
    check(&[&user, &calls(&["a"]), &user], false);
    check(&[&user, &calls(&["a", "b"]), &outputs(&["b", "a"])], false);
    check(&[&user, &calls(&["a", "b"]), &outputs(&["a"])], false);
    check(&[&user, &calls(&["a", "a"]), &outputs(&["a", "a"])], false);
    check(&[&user, &outputs(&["a"])], false);
    check(&[&user, &outputs(&[])], false);
    check(&[&calls(&[])], false);
    check(&[&user, &calls(&[]), &calls(&[])], false);
}

#[test]
#[should_panic(expected = "every call has its output")]
fn a_request_with_an_open_call_is_a_fault_of_ours() {
    let mut conversation = Conversation::default();
    conversation.ask(&[], Some("go".into()));
    conversation.answer(AssistantMessage { blocks: vec![call("a")] }).expect("asked");
    request(Provider::OpenAi, "m", &conversation, &[], &Options::default());
}
