//! The scripted model itself, spoken to over a plain socket.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use qd_testbed::limits::WAIT_MAX;
use qd_testbed::{Answer, Delivery, Gate, Model, Reply, Result, Script};
use serde_json::{Value, json};

/// Sends a request and reads until the model closes or the answer's stream is over.
fn ask(model: &Model, path: &str, body: &Value) -> String {
    let mut stream = send(model, path, body);
    let mut text = String::new();
    let mut bytes = [0; 4096];
    loop {
        match stream.read(&mut bytes).expect("an answer within the bound") {
            0 => return text,
            length => text.push_str(&String::from_utf8_lossy(&bytes[..length])),
        }
        if text.ends_with("\r\n0\r\n\r\n") || is_whole(&text) {
            return text;
        }
    }
}

fn send(model: &Model, path: &str, body: &Value) -> TcpStream {
    let mut stream = TcpStream::connect(model.address()).expect("the model listens");
    stream.set_read_timeout(Some(WAIT_MAX)).expect("a bound");
    let body = body.to_string();
    let length = body.len();
    write!(stream, "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n{body}")
        .expect("the model reads");
    stream
}

fn is_whole(text: &str) -> bool {
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    length.is_some_and(|length| length.parse() == Ok(body.len()))
}

fn messages(text: &str) -> Value {
    json!({
        "model": "m", "stream": true, "tools": [{"name": "Bash"}],
        "messages": [{"role": "user", "content": text}],
    })
}

#[test]
fn replies_come_in_order_and_by_what_was_said() -> Result<()> {
    let script = Script::new()
        .says("first")
        .when_user_says("weather", Reply::says("rain"))
        .says("second")
        .then_always(Reply::says("no more"));
    let model = Model::start(script)?;
    for (said, heard) in
        [("hello", "first"), ("the weather?", "rain"), ("hello", "second"), ("hello", "no more")]
    {
        let answer = ask(
            &model,
            "/v1/messages",
            &json!({
                "model": "m", "tools": [{"name": "Bash"}],
                "messages": [{"role": "user", "content": said}],
            }),
        );
        assert!(answer.contains(heard), "{said}: {answer}");
    }
    let answers: Vec<Answer> = model.requests().iter().map(|request| request.answer).collect();
    let scripted = Answer::Scripted;
    assert_eq!(answers, [scripted(0), scripted(1), scripted(2), Answer::Otherwise]);
    Ok(())
}

#[test]
fn failures_carry_their_status_and_retry_after() -> Result<()> {
    for status in [400, 401, 429, 500, 529] {
        let model = Model::start(Script::new().replies(Reply::fails(status).retry_after_s(7)))?;
        let answer = ask(&model, "/v1/messages", &messages("hello"));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        assert!(answer.contains("retry-after: 7\r\n"), "{answer}");
    }
    Ok(())
}

#[test]
fn strict_refuses_a_call_without_its_result() -> Result<()> {
    let mut body = messages("hello");
    let call = json!({"type": "tool_use", "id": "c1", "name": "Bash", "input": {}});
    body["messages"] =
        json!([{"role": "user", "content": "go"}, {"role": "assistant", "content": [call]}]);
    let lenient = Model::start(Script::new().says("fine"))?;
    assert!(ask(&lenient, "/v1/messages", &body).starts_with("HTTP/1.1 200"));
    let strict = Model::start(Script::new().says("fine").strict())?;
    let answer = ask(&strict, "/v1/messages", &body);
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("c1"), "{answer}");
    assert_eq!(strict.requests()[0].answer, Answer::Refused);
    Ok(())
}

#[test]
fn a_cut_stream_has_no_end() -> Result<()> {
    let model = Model::start(Script::new().replies(Reply::says("hello there").cut_after(4)))?;
    let answer = ask(&model, "/v1/messages", &messages("hello"));
    assert_eq!(answer.matches("event: ").count(), 4, "{answer}");
    assert!(!answer.ends_with("0\r\n\r\n"), "{answer}");
    model.wait_for_request("the cut", |request| request.delivery == Delivery::Cut)?;
    Ok(())
}

#[test]
fn a_slow_stream_comes_whole() -> Result<()> {
    let slow = Reply::says("hello there").slowly(Duration::from_millis(1));
    let model = Model::start(Script::new().replies(slow))?;
    assert!(ask(&model, "/v1/messages", &messages("hello")).contains("message_stop"));
    model.wait_for_answer(0)?;
    Ok(())
}

#[test]
fn a_gate_holds_the_answer_and_a_peer_that_leaves_is_noticed() -> Result<()> {
    let (opened, never) = (Gate::new(), Gate::new());
    let script = Script::new()
        .replies(Reply::says("patience").held_before_end(&opened))
        .replies(Reply::says("too late").held_before_start(&never));
    let model = Model::start(script)?;
    let mut stream = send(&model, "/v1/messages", &messages("hello"));
    let mut first = [0; 16];
    stream.read_exact(&mut first).expect("the beginning is sent");
    assert_eq!(model.requests()[0].delivery, Delivery::UnderWay);
    opened.open();
    model.wait_for_answer(0)?;
    drop(send(&model, "/v1/messages", &messages("hello")));
    model.wait_for_request("the peer's end", |request| request.delivery == Delivery::ClientGone)?;
    Ok(())
}

#[test]
fn all_wires_live_on_one_port() -> Result<()> {
    let model = Model::start(Script::new().without_tools_too().then_always(Reply::says("hi")))?;
    let stream = json!({"model": "m", "stream": true});
    assert!(ask(&model, "/v1/messages", &stream).contains("message_stop"));
    assert!(ask(&model, "/v1/responses", &stream).contains("response.completed"));
    assert!(ask(&model, "/v1/chat/completions", &stream).contains("[DONE]"));
    let gemini = "/v1beta/models/m:streamGenerateContent?alt=sse";
    assert!(ask(&model, gemini, &stream).contains("\"finishReason\":\"STOP\""));
    assert!(ask(&model, "/v1/messages/count_tokens", &stream).contains("input_tokens"));
    assert!(ask(&model, "/v1/files", &stream).starts_with("HTTP/1.1 404"));
    Ok(())
}

#[test]
fn what_is_not_http_is_refused_and_others_are_still_served() -> Result<()> {
    let model = Model::start(Script::new().says("hi"))?;
    let mut stream = TcpStream::connect(model.address()).expect("the model listens");
    stream.write_all(b"\x16\x03\x01 not http\r\n\r\n").expect("the model reads");
    let mut answer = String::new();
    stream.set_read_timeout(Some(WAIT_MAX)).expect("a bound");
    stream.read_to_string(&mut answer).expect("the model answers and closes");
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(ask(&model, "/v1/messages", &messages("hello")).contains("message_stop"));
    Ok(())
}

#[test]
fn a_client_that_wants_to_leave_loopback_is_refused_and_recorded() -> Result<()> {
    let model = Model::start(Script::new())?;
    let mut stream = TcpStream::connect(model.address()).expect("the model listens");
    stream.write_all(b"CONNECT far.example:443 HTTP/1.1\r\n\r\n").expect("the model reads");
    let mut start = [0; 12];
    stream.set_read_timeout(Some(WAIT_MAX)).expect("a bound");
    stream.read_exact(&mut start).expect("the model answers");
    assert_eq!((&start, model.outbound()), (b"HTTP/1.1 403", vec!["far.example:443".to_owned()]));
    Ok(())
}

#[test]
fn exacting_refuses_what_a_careful_client_never_sends() -> Result<()> {
    let user = |text: &str| json!({"type": "text", "text": text});
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "Bash", "input": {}});
    let result = |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": "x"});
    let thought =
        |signature: &str| json!({"type": "thinking", "thinking": "a", "signature": signature});
    let check = |answer: Value, next: Value, status: u16| -> Result<()> {
        let model = Model::start(Script::new().says("fine").exacting())?;
        let mut body = messages("hello");
        body["messages"] = json!([
            {"role": "user", "content": [user("go")]},
            {"role": "assistant", "content": answer},
            {"role": "user", "content": next},
        ]);
        let heard = ask(&model, "/v1/messages", &body);
        assert!(heard.starts_with(&format!("HTTP/1.1 {status}")), "{body}: {heard}");
        Ok(())
    };
    let both = json!([call("a"), call("b")]);
    check(both.clone(), json!([result("a"), result("b"), user("on")]), 200)?;
    check(both.clone(), json!([result("b"), result("a")]), 400)?;
    check(both.clone(), json!([result("a"), user("on"), result("b")]), 400)?;
    check(both, json!([result("a")]), 400)?;
    check(json!([thought("c2lnbmF0dXJl"), user("x")]), json!([user("on")]), 200)?;
    check(json!([thought(""), user("x")]), json!([user("on")]), 400)?;
    check(json!([thought("c2lnbmF0dXJl")]), json!([user("on")]), 400)?;
    check(json!([]), json!([user("on")]), 400)?;
    check(json!([user("x")]), json!([user(" ")]), 400)?;
    let chat = |second: &str| {
        let call = |id: &str| json!({"id": id, "type": "function", "function": {"name": "B", "arguments": "{}"}});
        json!({"model": "m", "stream": true, "tools": [{"type": "function", "function": {"name": "B"}}], "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": null, "tool_calls": [call("a"), call("b")]},
            {"role": "tool", "tool_call_id": if second == "b" { "a" } else { "b" }, "content": "x"},
            {"role": "tool", "tool_call_id": second, "content": "x"},
        ]})
    };
    for (second, status) in [("b", 200), ("a", 400)] {
        let model = Model::start(Script::new().says("fine").exacting())?;
        let heard = ask(&model, "/v1/chat/completions", &chat(second));
        assert!(heard.starts_with(&format!("HTTP/1.1 {status}")), "{heard}");
    }
    Ok(())
}

#[test]
fn a_stream_can_break_within_an_event_stall_and_turn_to_nonsense() -> Result<()> {
    let gate = Gate::new();
    let script = Script::new()
        .replies(Reply::says("hello there").cut_within(4))
        .replies(Reply::says("hello there").garbled_after(2))
        .replies(Reply::says("hello there").held_after(3, &gate))
        .replies(Reply::fails(429).with_header("retry-after-ms", "250"));
    let model = Model::start(script)?;
    let cut = ask(&model, "/v1/messages", &messages("hello"));
    assert!(cut.matches("event: ").count() == 5 && !cut.ends_with("\n\n\r\n"), "{cut}");
    let garbled = ask(&model, "/v1/messages", &messages("hello"));
    assert!(garbled.contains('\u{fffd}') && garbled.contains("message_stop"), "{garbled}");
    let mut stalled = send(&model, "/v1/messages", &messages("hello"));
    let mut first = [0; 16];
    stalled.read_exact(&mut first).expect("the beginning is sent");
    assert_eq!(model.requests()[2].delivery, Delivery::UnderWay);
    gate.open();
    model.wait_for_answer(2)?;
    let refused = ask(&model, "/v1/messages", &messages("hello"));
    assert!(refused.contains("retry-after-ms: 250\r\n"), "{refused}");
    Ok(())
}
