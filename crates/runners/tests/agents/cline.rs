//! Cline 2, driven by one `task --json` for each turn.

use qd_harness::driver::{Cannot, Command, Launch, Mode, Protocol};
use qd_session::machine::TroubleKind;
use qd_testbed::{Client, Gate, Home, Model, Reply, Result, Script};
use serde_json::json;

use super::world::Agent;

fn start(home: &Home, model: &Model, mode: Mode) -> Result<Agent> {
    let client = Client::cline(home, model)?;
    let launch = Launch { mode, ..Launch::default() };
    let mut agent = Agent::of_client(&client, home, Protocol::Cline, launch);
    agent.ready();
    Ok(agent)
}

fn done(text: &str) -> Reply {
    Reply::calls("attempt_completion", json!({"result": text}))
}

#[test]
fn cline_works_in_yolo() -> Result<()> {
    let home = Home::new()?;
    let path = home.workspace().join("made.txt");
    let write = json!({"path": "made.txt", "content": "hello", "absolutePath": path});
    let script = Script::new()
        .when_user_says("make it", Reply::calls("write_to_file", write))
        .then_always(done("It is made."))
        .without_tools_too();
    let model = Model::start(script)?;
    let mut agent = start(&home, &model, Mode::Yolo)?;
    agent.prompt("make it");
    assert_eq!(agent.completed(), "It is made.");
    assert_eq!(std::fs::read_to_string(path).expect("written").trim(), "hello");
    agent.order(Command::Stop).expect("a stop is always taken");
    Ok(())
}

#[test]
fn a_failed_request_of_cline_is_a_failed_turn() -> Result<()> {
    let home = Home::new()?;
    let model = Model::start(Script::new().then_always(Reply::fails(401)).without_tools_too())?;
    let mut agent = start(&home, &model, Mode::Yolo)?;
    agent.prompt("try");
    assert_eq!(agent.failed(), TroubleKind::Auth);
    Ok(())
}

#[test]
fn cline_survives_a_model_that_is_overloaded() -> Result<()> {
    let home = Home::new()?;
    let script = Script::new()
        .when_user_says("make it", Reply::fails(529))
        .then_always(done("It is made."))
        .without_tools_too();
    let model = Model::start(script)?;
    let mut agent = start(&home, &model, Mode::Yolo)?;
    agent.prompt("make it");
    assert_eq!(agent.completed(), "It is made.");
    Ok(())
}

/// It is ended by a signal. What it goes on with afterwards is its own: resumed by its task's id it
/// waits a tenth of a second for that task, and loses the prompt on a machine that is slower.
#[test]
fn cline_is_interrupted() -> Result<()> {
    let home = Home::new()?;
    let gate = Gate::new();
    let script = Script::new()
        .when_user_says("give me a word", done("Never heard.").held_before_start(&gate))
        .then_always(done("Never asked."))
        .without_tools_too();
    let model = Model::start(script)?;
    let mut agent = start(&home, &model, Mode::Yolo)?;
    agent.prompt("give me a word");
    model.wait_for_request("the prompt", |request| request.brings("give me a word"))?;
    agent.order(Command::Interrupt).expect("a turn runs");
    assert_eq!(agent.completed(), "");
    gate.open();
    assert!(agent.vendor_session.is_some(), "it can be resumed");
    assert_eq!(agent.order(Command::Interrupt), Err(Cannot::Idle));
    Ok(())
}
