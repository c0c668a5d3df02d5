//! Codex's app-server.

use qd_harness::driver::{Command, Driver, Launch, Mode, Output, Protocol, Report};
use qd_session::decision::{Answer, Decision, Scope};
use qd_session::id::CallId;
use qd_session::moment::Timestamp;
use serde_json::{Value, json};

use super::exchange::{Asked, Exchange, Meant, allow};

fn check(scenario: &str, expected: &[&str]) {
    played(scenario).check(expected);
}

fn played(scenario: &str) -> Exchange {
    let launch = Launch { cwd: "/home/coder/acme".to_owned(), ..Launch::default() };
    let mut exchange = Exchange::start(Protocol::AppServer, launch);
    exchange.play(&format!("codex/{scenario}"), "appserver", meaning, asked);
    exchange
}

fn asked(line: &Value) -> Option<(String, Asked)> {
    let params = &line["params"];
    let (id, method) = (line.get("id")?, line["method"].as_str()?);
    let call = CallId::new(params["itemId"].as_str()?);
    Some((id.to_string(), Asked { call, tool: method.to_owned(), params: params.clone() }))
}

fn meaning(line: &Value, exchange: &Exchange) -> Meant {
    let params = &line["params"];
    match line["method"].as_str() {
        Some("initialize" | "initialized" | "thread/start") => Meant::Course,
        Some("turn/start") => {
            let text = params["input"][0]["text"].as_str().expect("a prompt").into();
            let plans = params["collaborationMode"]["mode"] == "plan";
            let mode = plans.then_some(Command::SetMode(Mode::Plan));
            Meant::Command(mode.into_iter().chain([Command::Prompt { text }]).collect())
        }
        Some("turn/interrupt") => Meant::Command(vec![Command::Interrupt]),
        Some(_) => Meant::Skipped,
        None => decided(line, exchange),
    }
}

fn decided(line: &Value, exchange: &Exchange) -> Meant {
    let asked = &exchange.asked[&line["id"].to_string()];
    let decision = match &line["result"]["decision"] {
        Value::String(word) => match word.as_str() {
            "accept" => allow(),
            "acceptForSession" => Decision::Allow { input: None, scope: Scope::Session },
            "decline" => Decision::Deny { message: None, interrupt: false },
            _ => Decision::Deny { message: None, interrupt: true },
        },
        Value::Object(_) => Decision::Allow { input: None, scope: Scope::Always },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            answers(&line["result"]["answers"])
        }
    };
    Meant::Command(vec![Command::Decide { call: asked.call.clone(), decision }])
}

fn answers(given: &Value) -> Decision {
    let one = |(question, answer): (&String, &Value)| {
        let chosen = answer["answers"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let values = chosen
            .filter(|value| *value != "None of the above")
            .map(|value| value.trim_start_matches("user_note: ").to_owned());
        Answer { question: question.clone(), values: values.collect() }
    };
    Decision::Answer { answers: given.as_object().into_iter().flatten().map(one).collect() }
}

#[test]
fn commands_are_accepted_declined_and_cancelled() {
    check(
        "app-approve-accept",
        &[
            "named",
            "ready",
            "runs exec_command",
            "asks for exec_command",
            "ended",
            "completed: Done.",
        ],
    );
    check(
        "app-approve-decline",
        &[
            "named",
            "ready",
            "runs exec_command",
            "asks for exec_command",
            "ended badly",
            "completed: OK, not doing it.",
        ],
    );
    check(
        "app-approve-cancel",
        &[
            "named",
            "ready",
            "runs exec_command",
            "asks for exec_command",
            "ended badly",
            "completed: ",
        ],
    );
}

#[test]
fn an_acceptance_may_reach_further() {
    check(
        "app-approve-session",
        &[
            "named",
            "ready",
            "runs exec_command",
            "asks for exec_command",
            "ended",
            "runs exec_command",
            "ended",
            "completed: Twice.",
        ],
    );
    check(
        "app-approve-execpolicy",
        &[
            "named",
            "ready",
            "runs exec_command",
            "asks for exec_command",
            "ended",
            "completed: Done.",
        ],
    );
}

#[test]
fn a_patch_is_declined() {
    check(
        "app-patch-decline",
        &[
            "named",
            "ready",
            "runs apply_patch",
            "asks for apply_patch",
            "ended badly",
            "completed: Done.",
        ],
    );
}

/// Whoever decides about a patch sees what it changes, though only its item is named then.
#[test]
fn a_patch_is_asked_about_with_what_it_changes() {
    let mut driver = Protocol::AppServer.driver(Launch::default());
    driver.start();
    let begun = json!({"method": "item/started", "params": {"item": {"type": "fileChange",
        "id": "i1", "changes": [{"path": "/w/a", "diff": "-a\n+b",
        "kind": {"type": "update", "move_path": "/elsewhere/a"}}]}}});
    driver.handle_line(Timestamp::ZERO, begun.to_string().as_bytes());
    let asks = json!({"id": 0, "method": "item/fileChange/requestApproval",
        "params": {"itemId": "i1", "reason": null}});
    let out = driver.handle_line(Timestamp::ZERO, asks.to_string().as_bytes());
    let [Output::Report(Report::ApprovalAsked(call))] = out.as_slice() else { panic!("{out:?}") };
    let change = &call.arguments["changes"][0];
    assert_eq!((&change["path"], &change["diff"]), (&json!("/w/a"), &json!("-a\n+b")));
    assert_eq!(change["new_path"], "/elsewhere/a");
    let asks = json!({"id": 1, "method": "item/fileChange/requestApproval",
        "params": {"itemId": "i2"}});
    let out = driver.handle_line(Timestamp::ZERO, asks.to_string().as_bytes());
    let [Output::Report(Report::ApprovalAsked(call))] = out.as_slice() else { panic!("{out:?}") };
    assert_eq!(call.arguments, json!({"itemId": "i2"}));
}

/// Codex tells what its last response took, and the whole thread: a turn is several responses.
#[test]
fn a_turn_has_used_what_all_its_responses_took() {
    let mut driver = Protocol::AppServer.driver(Launch::default());
    driver.start();
    let said = |line: Value, driver: &mut Box<dyn Driver>| {
        driver.handle_line(Timestamp::ZERO, line.to_string().as_bytes())
    };
    said(json!({"id": 1, "result": {}}), &mut driver);
    said(json!({"id": 2, "result": {"thread": {"id": "T"}}}), &mut driver);
    let mut spent = |total: u64, last: u64| {
        let usage = json!({"total": {"inputTokens": total}, "last": {"inputTokens": last}});
        let line = json!({"method": "thread/tokenUsage/updated",
            "params": {"threadId": "T", "tokenUsage": usage}});
        let out = said(line, &mut driver);
        let [Output::Report(Report::Spent(spending))] = out.as_slice() else { panic!("{out:?}") };
        spending.tokens.expect("tokens").input
    };
    // The thread was resumed: what it took before is of other turns.
    assert_eq!([spent(1_000, 100), spent(1_150, 150), spent(1_150, 150)], [100, 250, 250]);
}

#[test]
fn words_with_a_denial_join_the_turn() {
    let mut driver = Protocol::AppServer.driver(Launch::default());
    driver.start();
    let mut hears = |line: Value| driver.handle_line(Timestamp::ZERO, line.to_string().as_bytes());
    hears(json!({"id": 1, "result": {}}));
    hears(json!({"id": 2, "result": {"thread": {"id": "T"}}}));
    let prompt = Command::Prompt { text: "make it".into() };
    driver.command(Timestamp::ZERO, &prompt).expect("it is idle");
    let mut hears = |line: Value| driver.handle_line(Timestamp::ZERO, line.to_string().as_bytes());
    hears(json!({"id": 3, "result": {"turn": {"id": "U"}}}));
    hears(json!({"id": 7, "method": "item/commandExecution/requestApproval",
        "params": {"itemId": "i", "command": "make"}}));
    let decision = Decision::Deny { message: Some("not yet".to_owned()), interrupt: false };
    let decide = Command::Decide { call: "i".into(), decision };
    let out = driver.command(Timestamp::ZERO, &decide).expect("it asks");
    let [Output::Write(decline), Output::Write(steer)] = out.as_slice() else { panic!("{out:?}") };
    assert!(decline.contains("decline"), "{decline}");
    let steer: Value = serde_json::from_str(steer).expect("JSON");
    assert_eq!(steer["method"], "turn/steer");
    assert_eq!(steer["params"]["input"][0]["text"], "I did not allow that: not yet");
}

#[test]
fn a_plan_is_asked_about_when_its_turn_is_over() {
    check(
        "app-ask-plan",
        &["named", "ready", "mode plan", "asks by request_user_input", "asks for exit_plan_mode"],
    );
}

#[test]
fn a_turn_is_interrupted() {
    check("app-interrupt-tool", &["named", "ready", "runs exec_command", "completed: "]);
    check("app-interrupt-stream", &["named", "ready", "completed: "]);
}

#[test]
fn failures_are_told_apart() {
    check("app-error-429", &["named", "ready", "failed: UsageLimit"]);
    check("app-error-500", &["named", "ready", "failed: Passing"]);
    check("app-error-usage-limit", &["named", "ready", "failed: UsageLimit"]);
    check("app-retry-drop", &["named", "ready", "completed: Recovered."]);
}

#[test]
fn a_childs_turn_is_not_ours() {
    check(
        "app-subagent",
        &[
            "named",
            "ready",
            "runs wait",
            "runs exec_command",
            "ended",
            "ended",
            "completed: Final answer.",
        ],
    );
}

#[test]
fn tools_that_ask_nobody_are_told_all_the_same() {
    check("app-plain", &["named", "ready", "completed: Hello from the fake."]);
    check(
        "app-parallel",
        &[
            "named",
            "ready",
            "runs exec_command",
            "runs exec_command",
            "ended",
            "ended",
            "completed: All done.",
        ],
    );
    check(
        "app-command-fail",
        &["named", "ready", "runs exec_command", "ended badly", "completed: It failed."],
    );
}

#[test]
fn what_came_out_of_a_command_is_told() {
    played("app-parallel").check_came_out(&["two", "one"]);
    played("app-command-fail").check_came_out(&["oops"]);
}
