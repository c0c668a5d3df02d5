//! Codex itself, in a terminal and as an app server.

use qd_testbed::{Client, Home, Key, Model, Reply, Result, Script};
use serde_json::{Value, json};

#[test]
fn a_plain_turn_in_a_terminal() -> Result<()> {
    let home = Home::new()?;
    let model = Model::start(Script::new().says("Good evening from the script.").strict())?;
    let codex = Client::codex(&home, &model)?.in_terminal()?;
    codex.submit("say good evening")?;
    codex.wait_for_text("Good evening from the script.")?;
    assert!(model.wait_for_answer(0)?.brings("say good evening"));
    Ok(())
}

#[test]
fn a_tool_call_runs_in_a_terminal() -> Result<()> {
    let home = Home::new()?;
    let script = Script::new()
        .calls("exec_command", json!({"cmd": "echo the-cargo-is-tea"}))
        .when_tool_returns("the-cargo-is-tea", Reply::says("It is tea."))
        .strict();
    let model = Model::start(script)?;
    let codex = Client::codex(&home, &model)?.argument("--no-daemon").in_terminal()?;
    codex.submit("what is the cargo?")?;
    codex.wait_for_text("It is tea.")?;
    Ok(())
}

#[test]
fn a_permission_dialog_is_shown_and_answered_by_keys() -> Result<()> {
    let home = Home::new()?;
    let made = home.path().join("made-by-codex");
    let script = Script::new()
        .calls("exec_command", escalated(&format!("touch {}", made.display())))
        .says("The file is there.")
        .strict();
    let model = Model::start(script)?;
    let codex = Client::codex(&home, &model)?.in_terminal()?;
    codex.submit("make a file outside")?;
    codex.wait_for_text("Would you like to run the following command?")?;
    assert!(!made.exists());
    codex.press_until_gone(Key::Enter, "Would you like to run the following command?")?;
    codex.wait_for_text("The file is there.")?;
    assert!(made.exists());
    Ok(())
}

#[test]
fn an_overloaded_model_is_seen_on_the_screen() -> Result<()> {
    let home = Home::new()?;
    let model = Model::start(Script::new().then_always(Reply::fails(529)))?;
    let codex = Client::codex(&home, &model)?.argument("--no-daemon").in_terminal()?;
    codex.submit("are you there?")?;
    codex.wait_for_text("529")?;
    Ok(())
}

#[test]
fn the_app_server_asks_for_approval_over_a_websocket_model() -> Result<()> {
    let home = Home::new()?;
    let made = home.path().join("made-by-codex");
    let script = Script::new()
        .calls("exec_command", escalated(&format!("touch {}", made.display())))
        .says("The file is there.")
        .strict();
    let model = Model::start(script)?;
    let codex = Client::codex_over_websocket(&home, &model)?.argument("app-server").headless()?;
    let info = json!({"name": "testbed", "title": "Testbed", "version": "0.1.0"});
    codex.send(&json!({"id": 1, "method": "initialize", "params": {"clientInfo": info}}))?;
    codex.wait_for_json("initialize's answer", |message| message["id"] == 1)?;
    codex.send(&json!({"method": "initialized"}))?;
    codex.send(&json!({"id": 2, "method": "thread/start", "params": {"cwd": home.workspace()}}))?;
    let started = codex.wait_for_json("the thread", |message| message["id"] == 2)?;
    let thread = &started["result"]["thread"]["id"];
    let input = json!([{"type": "text", "text": "make a file outside"}]);
    codex.send(
        &json!({"id": 3, "method": "turn/start", "params": {"threadId": thread, "input": input}}),
    )?;
    let asked = codex.wait_for_json("a request for approval", |message| {
        message["method"] == "item/commandExecution/requestApproval"
    })?;
    codex.send(&json!({"id": asked["id"], "result": {"decision": "accept"}}))?;
    let done =
        codex.wait_for_json("the turn's end", |message| message["method"] == "turn/completed")?;
    assert_eq!(done["params"]["turn"]["status"], "completed");
    assert!(made.exists());
    for number in [0, 1] {
        assert_eq!(model.wait_for_answer(number)?.method, "GET", "over the WebSocket");
    }
    Ok(())
}

#[test]
fn a_rate_limit_over_a_websocket_model_fails_the_turn() -> Result<()> {
    let home = Home::new()?;
    let model = Model::start(Script::new().then_always(Reply::fails(429).retry_after_s(1)))?;
    let mut codex = Client::codex_over_websocket(&home, &model)?
        .arguments(["exec", "--json", "--skip-git-repo-check", "are you there?"])
        .headless()?;
    codex.close_input();
    let failed = codex.wait_for_json("the failure", |line| line["type"] == "turn.failed")?;
    let message = failed["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("429") || message.contains("rate limit"), "{failed}");
    assert!(!codex.wait_for_exit()?.success());
    Ok(())
}

fn escalated(command: &str) -> Value {
    json!({
        "cmd": command,
        "sandbox_permissions": "require_escalated",
        "justification": "Need to write outside the workspace",
    })
}
