//! Claude Code itself, in a terminal and without one.

use qd_testbed::{Client, Error, Gate, Home, Key, Model, Reply, Result, Script};
use serde_json::json;

#[test]
fn a_plain_turn_in_a_terminal() -> Result<()> {
    let home = Home::new()?;
    let model = Model::start(Script::new().says("Good morning from the script.").strict())?;
    let claude = Client::claude_code(&home, &model)?.in_terminal()?;
    claude.submit("say good morning")?;
    claude.wait_for_text("Good morning from the script.")?;
    assert!(model.wait_for_answer(0)?.brings("say good morning"));
    assert_eq!(model.outbound(), [""; 0]);
    Ok(())
}

#[test]
fn a_permission_dialog_is_shown_and_answered_by_keys() -> Result<()> {
    let home = Home::new()?;
    let command = json!({"command": "touch made-by-claude", "description": "Make a file"});
    let script = Script::new().calls("Bash", command).says("The file is there.").strict();
    let model = Model::start(script)?;
    let claude = Client::claude_code(&home, &model)?.in_terminal()?;
    claude.submit("make a file")?;
    claude.wait_for_text("Do you want to proceed?")?;
    assert!(!home.workspace().join("made-by-claude").exists());
    claude.press_until_gone(Key::Enter, "Do you want to proceed?")?;
    claude.wait_for_text("The file is there.")?;
    assert!(home.workspace().join("made-by-claude").exists());
    Ok(())
}

#[test]
fn a_tool_that_needs_no_permission_runs_and_its_result_comes_back() -> Result<()> {
    let home = Home::new()?;
    let note = home.workspace().join("note.txt");
    std::fs::write(&note, "the cargo is tea\n").expect("workspace is writable");
    let script = Script::new()
        .replies(Reply::thinks("I should look.").and_calls("Read", json!({"file_path": note})))
        .when_tool_returns("the cargo is tea", Reply::says("It is tea."))
        .strict();
    let model = Model::start(script)?;
    let claude = Client::claude_code(&home, &model)?.in_terminal()?;
    claude.submit("what is the cargo?")?;
    claude.wait_for_text("It is tea.")?;
    Ok(())
}

#[test]
fn an_overloaded_model_is_seen_on_the_screen() -> Result<()> {
    let home = Home::new()?;
    let model = Model::start(Script::new().then_always(Reply::fails(529)))?;
    let claude = Client::claude_code(&home, &model)?.in_terminal()?;
    claude.submit("are you there?")?;
    claude.wait_for_text("529")?;
    Ok(())
}

#[test]
fn escape_ends_a_stream_that_the_script_holds_open() -> Result<()> {
    let home = Home::new()?;
    let gate = Gate::new();
    let reply = Reply::says("This goes on for ever.").held_before_end(&gate);
    let model = Model::start(Script::new().replies(reply))?;
    let claude = Client::claude_code(&home, &model)?.in_terminal()?;
    claude.submit("talk to me")?;
    claude.wait_for_text("This goes on for ever.")?;
    claude.press(Key::Escape)?;
    claude.wait_for_text("Interrupted")?;
    model.wait_for_request("the client to hang up", |request| {
        request.delivery == qd_testbed::Delivery::ClientGone
    })?;
    Ok(())
}

#[test]
fn a_stream_of_json_without_a_terminal() -> Result<()> {
    let home = Home::new()?;
    let model = Model::start(Script::new().says("Headless and well."))?;
    let claude = Client::claude_code(&home, &model)?
        .arguments(["-p", "--input-format", "stream-json", "--output-format", "stream-json"])
        .argument("--verbose")
        .headless()?;
    claude.send(&json!({
        "type": "user", "session_id": "", "parent_tool_use_id": null,
        "message": {"role": "user", "content": "how are you?"},
    }))?;
    let result = claude.wait_for_json("the result", |line| line["type"] == "result")?;
    assert_eq!(
        (&result["is_error"], &result["result"]),
        (&json!(false), &json!("Headless and well."))
    );
    Ok(())
}

#[test]
fn kill_9_is_seen_as_the_end() -> Result<()> {
    let home = Home::new()?;
    let model = Model::start(Script::new())?;
    let claude = Client::claude_code(&home, &model)?.in_terminal()?;
    claude.kill()?;
    let error = claude.wait_for_text("never shown").expect_err("the client is dead");
    assert!(matches!(error, Error::Ended { .. }), "{error}");
    Ok(())
}
