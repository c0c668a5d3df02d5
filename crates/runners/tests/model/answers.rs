//! Whole conversations, with a provider that refuses whatever any provider would.

use qd_harness::native::{
    AssistantMessage, Conversation, Piece, Provider, StopReason, StreamEvents,
};
use qd_harness::{Harness, usage::PriceTable};
use qd_session::machine::CallOutput;
use qd_session::moment::Timestamp;
use qd_testbed::{Model, Reply, Request, Script, StopReason as Stops};
use serde_json::json;

use crate::{KEY, ask, endpoint, line, prompt};

fn answer(pieces: &[Piece]) -> (StopReason, AssistantMessage) {
    match pieces.last() {
        Some(Piece::End { reason, message, usage }) => {
            assert!(usage.tokens.output > 0 && usage.tokens.input > 0, "{usage:?}");
            (*reason, message.clone())
        }
        other => panic!("{other:?}"),
    }
}

fn outputs(message: &AssistantMessage) -> Vec<CallOutput> {
    let output = |call: &qd_harness::native::Call| CallOutput {
        call_id: call.call_id.clone(),
        content: format!("output of {}", call.arguments["command"]).into(),
        is_error: false,
    };
    message.calls().map(output).collect()
}

async fn check_turns(provider: Provider) -> (Conversation, Vec<std::sync::Arc<Request>>) {
    let script = Script::new()
        .exacting()
        .replies(
            Reply::thinks("two at once")
                .and_says("I look.")
                .and_calls("Bash", json!({"command": "ls"}))
                .and_calls("Bash", json!({"command": "pwd"})),
        )
        .when_tool_returns("output of \"pwd\"", Reply::calls("Bash", json!({"command": "date"})))
        .when_tool_returns("output of \"date\"", Reply::says("Done."))
        .when_user_says("more", Reply::says("It goes on").stops_for(Stops::MaxTokens));
    let model = Model::start(script).expect("a model");
    let (line, endpoint) = (line(), endpoint(provider, &model.url()));
    let mut conversation = prompt("go");
    for expected in [StopReason::Calls, StopReason::Calls, StopReason::Done, StopReason::Length] {
        let pieces = ask(&line, &endpoint, &conversation).await;
        let (reason, message) = answer(&pieces);
        assert_eq!(reason, expected, "{message:?}");
        let outputs = outputs(&message);
        let more = outputs.is_empty().then(|| "more".into());
        conversation.answer(message).expect("it was asked");
        conversation.ask(&outputs, more);
    }
    (conversation, model.requests())
}

#[tokio::test]
async fn anthropic_is_told_every_output_and_gets_its_thoughts_back() {
    let (conversation, requests) = check_turns(Provider::Anthropic).await;
    assert_eq!(conversation.messages().len(), 9);
    let first = &requests[0];
    assert_eq!(first.path, "/v1/messages");
    assert_eq!(first.header("x-api-key"), Some(KEY));
    assert_eq!(first.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(first.body["thinking"]["budget_tokens"], 2_000);
    // The second answer has calls and no thought: until the turn is over there is no budget.
    let budgets: Vec<bool> =
        requests.iter().map(|request| request.body["thinking"].is_object()).collect();
    assert_eq!(budgets, [true, true, false, true]);
    let back = &requests[1].body["messages"][1]["content"][0];
    assert_eq!((&back["type"], &back["thinking"]), (&json!("thinking"), &json!("two at once")));
}

#[tokio::test]
async fn openai_is_told_every_output() {
    let (_, requests) = check_turns(Provider::OpenAi).await;
    let first = &requests[0];
    assert_eq!(first.path, "/v1/chat/completions");
    assert_eq!(first.header("authorization"), Some(&*format!("Bearer {KEY}")));
    assert_eq!(first.body["messages"][0], json!({"role": "system", "content": "Be brief."}));
    assert!(first.header("cookie").is_none());
    let agent = first.header("user-agent").expect("a name");
    assert!(agent.starts_with("quarterdeck/"), "{agent}");
}

#[tokio::test]
async fn an_answer_is_shown_priced_and_names_its_request() {
    let model = Model::start(Script::new().replies(
        Reply::thinks("hm").and_says("Hello there").and_calls("Bash", json!({"command": "ls"})),
    ))
    .expect("a model");
    let endpoint = endpoint(Provider::Anthropic, &model.url());
    let pieces = ask(&line(), &endpoint, &prompt("go")).await;
    let mut events = StreamEvents::new(
        "sess_1".into(),
        Harness::Native,
        Some(endpoint.provider.name().into()),
        "turn_1".into(),
        Timestamp(1),
    );
    let shown: Vec<serde_json::Value> = pieces
        .iter()
        .flat_map(|piece| events.take(Timestamp(2), piece))
        .map(|event| serde_json::to_value(event).expect("written"))
        .collect();
    assert_eq!(shown[0]["payload"]["providerRequestId"], "req_0000");
    let text: String =
        shown.iter().filter_map(|event| event["payload"]["argumentsDelta"].as_str()).collect();
    assert_eq!(text, "{\"command\":\"ls\"}");
    let last = shown.last().expect("an event");
    assert_eq!((&last["type"], &last["payload"]["reason"]), (&json!("completed"), &json!("stop")));
    let Some(Piece::End { usage, .. }) = pieces.last() else { panic!("{pieces:?}") };
    assert_eq!(usage.tokens.context(), 1_200 + 300 + 9_000);
    let charge = PriceTable::bundled().charge_of(Some("claude-opus-4-6"), &usage.tokens, None);
    assert!(charge.dollars > 0.0);
}
