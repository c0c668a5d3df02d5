//! Claude Code, driven over its stdio protocol.

use qd_harness::driver::{Command, Launch, Mode, Protocol, Report, Resume};
use qd_runners::agents::Told;
use qd_session::decision::{Decision, Scope};
use qd_session::machine::TroubleKind;
use qd_testbed::{Client, Gate, Home, Model, Reply, Result, Script};
use serde_json::json;

use super::world::{ALLOW, Agent, deny};

fn start(home: &Home, model: &Model, launch: Launch) -> Result<Agent> {
    let client = Client::claude_code(home, model)?;
    let mut agent = Agent::of_client(&client, home, Protocol::ClaudeCode, launch);
    agent.ready();
    Ok(agent)
}

#[test]
fn claude_code_is_denied_then_allowed_and_really_edits() -> Result<()> {
    let home = Home::new()?;
    let file = home.workspace().join("greeting.txt");
    let write = json!({"file_path": file, "content": "hello"});
    let script = Script::new()
        .replies(Reply::says("I will write it.").and_calls("Write", write.clone()))
        .when_tool_returns("not yet", Reply::says("I wait."))
        .when_user_says("go on", Reply::calls("Write", write))
        .says("It is written.")
        .strict();
    let model = Model::start(script)?;
    let mut agent = start(&home, &model, Launch::default())?;

    agent.prompt("write a greeting");
    let call = agent.asked();
    assert_eq!((call.name.as_str(), call.mutating), ("Write", true));
    assert_eq!(call.arguments["content"], "hello");
    agent.decide(&call, deny("not yet"));
    assert!(!agent.tool_ended());
    assert_eq!(agent.completed(), "I wait.");
    assert!(!file.exists());

    agent.prompt("go on");
    let call = agent.asked();
    let changed = json!({"file_path": file, "content": "hello, changed"});
    agent.decide(&call, Decision::Allow { input: Some(changed), scope: Scope::Once });
    assert!(agent.tool_ended());
    assert_eq!(agent.completed(), "It is written.");
    assert_eq!(std::fs::read_to_string(&file).expect("written"), "hello, changed");

    let exit = agent.stop();
    assert_eq!(exit.code, Some(0), "{exit:?}");
    Ok(())
}

#[test]
fn claude_code_is_interrupted_while_it_asks_and_takes_the_next_prompt() -> Result<()> {
    let home = Home::new()?;
    let script = Script::new()
        .calls("Bash", json!({"command": "touch made", "description": "make it"}))
        .when_user_says("instead", Reply::says("Something else."));
    let model = Model::start(script)?;
    let mut agent = start(&home, &model, Launch::default())?;
    agent.prompt("make it");
    let call = agent.asked();
    agent.order(Command::Interrupt).expect("a turn runs");
    let withdrawn = agent.wait_for("its withdrawal", |told| {
        if let Told::Report(Report::RequestWithdrawn { call }) = told {
            Some(call.clone())
        } else {
            None
        }
    });
    assert_eq!(withdrawn, call.call_id);
    assert_eq!(agent.completed(), "");
    agent.prompt("do something instead");
    assert_eq!(agent.completed(), "Something else.");
    assert!(!home.workspace().join("made").exists());
    Ok(())
}

#[test]
fn claude_code_is_resumed_by_its_id_after_it_was_killed_in_the_middle() -> Result<()> {
    let home = Home::new()?;
    let gate = Gate::new();
    let script = Script::new()
        .says("The word is heron.")
        .replies(Reply::says("Never heard.").held_before_start(&gate))
        .when_user_says("which word", Reply::says("Heron, I said."));
    let model = Model::start(script)?;
    let mut agent = start(&home, &model, Launch::default())?;
    agent.prompt("give me a word");
    assert_eq!(agent.completed(), "The word is heron.");
    let id = agent.vendor_session.clone().expect("it said its id");
    agent.prompt("another");
    model.wait_for_request("the second prompt", |request| {
        request.is_scripted() && request.brings("another")
    })?;
    agent.cancel();
    gate.open();

    let resume = Some(Resume::Id(id.clone()));
    let mut agent = start(&home, &model, Launch { resume, ..Launch::default() })?;
    agent.prompt("which word was it?");
    assert_eq!(agent.completed(), "Heron, I said.");
    assert_eq!(agent.vendor_session, Some(id));
    let last = model.wait_for_request("the resumed prompt", |request| {
        request.body.to_string().contains("which word was it?")
    })?;
    assert!(last.body.to_string().contains("The word is heron."), "it remembers");
    Ok(())
}

#[test]
fn claude_code_is_asked_and_plans_are_approved() -> Result<()> {
    let home = Home::new()?;
    let questions = json!({"questions": [{
        "question": "Which database?", "header": "Storage", "multiSelect": false,
        "options": [{"label": "SQLite", "description": "a file"},
                    {"label": "Postgres", "description": "a server"}],
    }]});
    let script = Script::new()
        .calls("AskUserQuestion", questions)
        .when_tool_returns("Postgres", Reply::says("Postgres it is."));
    let model = Model::start(script)?;
    let mut agent = start(&home, &model, Launch::default())?;
    agent.prompt("choose");
    let call = agent.questioned();
    let text = "Postgres".into();
    let answer = Command::AnswerInWords { call: call.call_id, text };
    agent.order(answer).expect("a question is open");
    assert_eq!(agent.completed(), "Postgres it is.");
    Ok(())
}

#[test]
fn claude_code_is_held_after_each_batch_until_it_is_released() -> Result<()> {
    let home = Home::new()?;
    let script = Script::new()
        .calls("Bash", json!({"command": "touch made", "description": "make it"}))
        .says("Made.");
    let model = Model::start(script)?;
    let launch = Launch { hold_batches: true, ..Launch::default() };
    let mut agent = start(&home, &model, launch)?;
    agent.prompt("make it");
    let call = agent.asked();
    agent.decide(&call, ALLOW);
    agent.wait_for("the hold", |told| (*told == Told::Report(Report::BatchHeld)).then_some(()));
    assert!(home.workspace().join("made").exists());
    assert_eq!(
        model
            .requests()
            .iter()
            .filter(|request| request.body.to_string().contains("tool_result"))
            .count(),
        0
    );
    agent.order(Command::Release).expect("it is held");
    assert_eq!(agent.completed(), "Made.");
    Ok(())
}

#[test]
fn claude_code_is_interrupted_while_it_is_held() -> Result<()> {
    let home = Home::new()?;
    let script = Script::new()
        .calls("Bash", json!({"command": "touch made", "description": "make it"}))
        .when_user_says("instead", Reply::says("Something else."));
    let model = Model::start(script)?;
    let mut agent = start(&home, &model, Launch { hold_batches: true, ..Launch::default() })?;
    agent.prompt("make it");
    let call = agent.asked();
    agent.decide(&call, ALLOW);
    agent.wait_for("the hold", |told| (*told == Told::Report(Report::BatchHeld)).then_some(()));
    agent.order(Command::Interrupt).expect("a turn runs");
    agent.completed();
    agent.prompt("do something instead");
    assert_eq!(agent.completed(), "Something else.");
    Ok(())
}

#[test]
fn claude_code_changes_its_mode_and_stops_asking() -> Result<()> {
    let home = Home::new()?;
    let file = home.workspace().join("a.txt");
    let script = Script::new()
        .calls("Write", json!({"file_path": file, "content": "a"}))
        .says("Written without asking.");
    let model = Model::start(script)?;
    let mut agent = start(&home, &model, Launch::default())?;
    agent.order(Command::SetMode(Mode::Edit)).expect("it has modes");
    let edits = Told::Report(Report::ModeChanged { mode: "acceptEdits".into() });
    agent.wait_for("the mode", |told| (*told == edits).then_some(()));
    agent.prompt("write it");
    assert_eq!(agent.completed(), "Written without asking.");
    assert!(file.exists());
    Ok(())
}

#[test]
fn a_failed_request_of_claude_code_is_a_failed_turn_that_can_go_on() -> Result<()> {
    let home = Home::new()?;
    let script = Script::new()
        .fails(529)
        .fails(529)
        .when_user_says("Continue.", Reply::says("Back again."))
        .then_always(Reply::fails(529));
    let model = Model::start(script)?;
    let mut agent = start(&home, &model, Launch::default())?;
    agent.prompt("try");
    assert_eq!(agent.failed(), TroubleKind::Passing);
    agent.order(Command::Retry).expect("it is idle");
    assert_eq!(agent.completed(), "Back again.");
    Ok(())
}
