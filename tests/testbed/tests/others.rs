//! Gemini CLI, OpenCode, Kilo and Cline: one turn each, and what they ask.

use qd_testbed::{Client, Home, Model, Reply, Result, Script, Service};
use serde_json::{Value, json};

#[test]
fn gemini_takes_a_turn_with_a_tool() -> Result<()> {
    let home = Home::new()?;
    std::fs::write(home.workspace().join("note.txt"), "the cargo is tea\n").expect("writable");
    let script = Script::new()
        .calls("read_file", json!({"file_path": "note.txt"}))
        .when_tool_returns("the cargo is tea", Reply::says("It is tea."))
        .strict();
    let model = Model::start(script)?;
    let mut gemini = Client::gemini_cli(&home, &model)?
        .arguments(["-p", "what is the cargo?", "-o", "stream-json"])
        .headless()?;
    gemini.close_input();
    let result = gemini.wait_for_json("the result", |line| line["type"] == "result")?;
    assert_eq!(result["status"], "success");
    assert_eq!(said_by_gemini(&gemini.lines()), "It is tea.");
    assert!(gemini.wait_for_exit()?.success());
    Ok(())
}

#[test]
fn gemini_takes_a_turn_in_a_terminal() -> Result<()> {
    let home = Home::new()?;
    let model = Model::start(Script::new().says("Good night from the script."))?;
    let gemini = Client::gemini_cli(&home, &model)?.in_terminal()?;
    gemini.submit("say good night")?;
    gemini.wait_for_text("Good night from the script.")?;
    Ok(())
}

#[test]
fn opencode_serves_a_turn_and_asks() -> Result<()> {
    let home = Home::new()?;
    let model = asking_model()?;
    let server = Client::opencode(&home, &model)?.served().service()?;
    one_turn_with_a_permission(&server)?;
    assert!(home.workspace().join("made").exists());
    Ok(())
}

#[test]
fn kilo_serves_a_turn_and_asks() -> Result<()> {
    let home = Home::new()?;
    let model = asking_model()?;
    let server = Client::kilo(&home, &model)?.served().service()?;
    one_turn_with_a_permission(&server)?;
    assert!(home.workspace().join("made").exists());
    Ok(())
}

#[test]
fn cline_takes_a_turn() -> Result<()> {
    let home = Home::new()?;
    let completion = json!({"result": "It is done."});
    let script = Script::new().calls("attempt_completion", completion).without_tools_too();
    let model = Model::start(script)?;
    let mut cline =
        Client::cline(&home, &model)?.arguments(["task", "--json", "-y", "do it"]).headless()?;
    cline.close_input();
    cline.wait_for_json("the completion", |line| line["say"] == "completion_result")?;
    assert!(cline.wait_for_exit()?.success());
    Ok(())
}

fn said_by_gemini(lines: &[String]) -> String {
    let messages = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let said = messages.filter(|message| message["role"] == "assistant");
    said.map(|message| message["content"].as_str().unwrap_or_default().to_owned()).collect()
}

fn asking_model() -> Result<Model> {
    let command = json!({"command": "touch made", "description": "Make a file"});
    let script = Script::new()
        .replies(Reply::says("I will make it.").and_calls("bash", command))
        .says("It is made.")
        .strict();
    Model::start(script)
}

fn one_turn_with_a_permission(server: &Service) -> Result<()> {
    let events = server.events("/event")?;
    let session = server.post("/session", &json!({}))?;
    let id = session["id"].as_str().expect("a session has an id").to_owned();
    let prompt = json!({"parts": [{"type": "text", "text": "make a file"}]});
    server.post(&format!("/session/{id}/prompt_async"), &prompt)?;
    let asked = events.wait_for("a permission", |event| event["type"] == "permission.asked")?;
    let request = asked["properties"]["id"].as_str().expect("a request has an id").to_owned();
    server.post(&format!("/permission/{request}/reply"), &json!({"reply": "once"}))?;
    events.wait_for("the answer", |event| text_of(event).contains("It is made."))?;
    events.wait_for("the end", |event| event["type"] == "session.idle")?;
    Ok(())
}

fn text_of(event: &Value) -> &str {
    event["properties"]["part"]["text"].as_str().unwrap_or_default()
}
