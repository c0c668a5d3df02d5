//! Answers over HTTP: who is first, who comes later, and what did not surely arrive.

use std::thread::JoinHandle;
use std::time::Instant;

use qd_host::now;

use super::*;

/// A forwarder that waits: its connection, and the request that it asked.
fn waiting(daemon: &Daemon) -> (UnixStream, String) {
    let payload = json!({"session_id": "s-1", "hook_event_name": "PermissionRequest",
        "tool_name": "Bash", "tool_input": {"command": "make"}});
    let payload = payload.to_string();
    let sum = payload.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    let at_ms = now().0;
    let id = u128::from(at_ms * 1_000_000) << 64 | 7;
    let frame = format!(
        "qd1 wait id={id:032x} at={at_ms} seq=1 harness=claude-code entry=cli \
         sum={sum:016x} len={}\n{payload}",
        payload.len()
    );
    let mut stream = daemon.socket();
    stream.write_all(frame.as_bytes()).expect("sent");
    let mut ack = [0];
    stream.read_exact(&mut ack).expect("answered");
    assert_eq!(ack, [qd_hook_wire::ACK]);
    let deadline = Instant::now() + PATIENCE;
    loop {
        let list = daemon.request("GET", "/api/requests").token(Scope::Operate).json();
        let request = &list["requests"][0]["request"];
        if let Some(key) = request["key"].as_str().filter(|_| request["way"] == "hook") {
            return (stream, key.to_owned());
        }
        assert!(Instant::now() < deadline, "no hook waits: {list}");
    }
}

fn decide<'a>(daemon: &'a Daemon, key: &str, decision: &Value) -> Request<'a> {
    answered(daemon, key, &json!({"decision": decision}))
}

fn answered<'a>(daemon: &'a Daemon, key: &str, body: &Value) -> Request<'a> {
    let request = daemon.request("POST", &format!("/api/requests/{key}/decision"));
    let request = request.token(Scope::Operate).with(HEADER, "1");
    request.with("content-type", "application/json").body(body.to_string())
}

/// Answers from another thread, because the answer waits for its delivery.
fn decided(daemon: &Daemon, key: &str, decision: &Value) -> JoinHandle<(u16, String)> {
    let stream = decide(daemon, key, decision).open();
    std::thread::spawn(move || answer(stream))
}

/// What the forwarder is told, to the byte.
fn told(stream: &mut UnixStream, expected: &str) {
    let mut bytes = vec![0; expected.len()];
    stream.read_exact(&mut bytes).expect("a reply");
    assert_eq!(String::from_utf8_lossy(&bytes), expected);
}

const ALLOWED: &str = "qd1 reply exit=0 out=92 err=0\n{\"hookSpecificOutput\":{\"hookEventName\":\"PermissionRequest\",\"decision\":{\"behavior\":\"allow\"}}}";

#[test]
fn who_answers_second_is_told_of_the_first() {
    let daemon = Daemon::start("second");
    let (mut stream, key) = waiting(&daemon);
    let allow = json!({"type": "allow"});
    let (status, code) = decide(&daemon, &key, &json!({"type": "approve_plan"})).refused();
    assert_eq!((status, code.as_str()), (409, "not_possible"), "it asks for a permission");
    let first = decided(&daemon, &key, &allow);
    told(&mut stream, ALLOWED);
    stream.write_all(&[qd_hook_wire::ACK]).expect("sent");
    let (status, body) = first.join().expect("no panic");
    assert_eq!(status, 200, "{body}");
    let (status, body) = decide(&daemon, &key, &json!({"type": "deny"})).send();
    let conflict: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!((status, &conflict["code"]), (409, &json!("already_answered")), "{body}");
    assert_eq!(conflict["first"]["decision"]["type"], "allow", "{body}");
    assert_eq!(conflict["first"]["state"], "delivered", "{body}");
}

/// Who answers names what they were shown: an answer to another command, or to a request that is
/// gone, reaches no agent.
#[test]
fn an_answer_to_what_was_shown_before_reaches_nobody() {
    let daemon = Daemon::start("replaced");
    let (mut stream, key) = waiting(&daemon);
    let list = daemon.request("GET", "/api/requests").token(Scope::Operate).json();
    let revision = list["requests"][0]["request"]["revision"].clone();
    assert!(revision.is_string(), "{list}");
    let allow = |revision: &Value| json!({"decision": {"type": "allow"}, "revision": revision});
    let stale = answered(&daemon, &key, &allow(&json!("0123456789abcdef"))).refused();
    assert_eq!(stale, (409, "replaced".into()));
    let gone = answered(&daemon, "req_0123456789abcdef", &allow(&revision)).refused();
    assert_eq!(gone, (404, "no_such_request".into()));
    let open = answered(&daemon, &key, &allow(&revision)).open();
    let given = std::thread::spawn(move || answer(open));
    // The first that it hears is the answer to what it asked.
    told(&mut stream, ALLOWED);
    stream.write_all(&[qd_hook_wire::ACK]).expect("sent");
    assert_eq!(given.join().expect("no panic").0, 200);
}

#[test]
fn what_nobody_says_has_arrived_is_not_called_done_and_its_card_stays() {
    let daemon = Daemon::start("unclear");
    let (mut stream, key) = waiting(&daemon);
    let given = decided(&daemon, &key, &json!({"type": "allow"}));
    told(&mut stream, ALLOWED);
    // It is gone, and has not said that it had it.
    drop(stream);
    let (status, body) = given.join().expect("no panic");
    let problem: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!((status, &problem["code"]), (503, &json!("delivery_unclear")), "{body}");
    let list = daemon.request("GET", "/api/requests").token(Scope::Operate).json();
    let request = &list["requests"][0]["request"];
    assert_eq!((&request["key"], &request["answer"]["state"]), (&json!(key), &json!("unclear")));
    assert!(request["way"].is_null(), "no hook waits any more: {request}");
}
