//! Codex, driven over `codex app-server`.

use qd_harness::driver::{Command, Launch, Mode, Protocol, Resume};
use qd_session::decision::Decision;
use qd_session::machine::TroubleKind;
use qd_testbed::{Client, Home, Model, Reply, Result, Script};
use serde_json::json;

use super::world::{ALLOW, Agent, deny};

fn start(home: &Home, model: &Model, launch: Launch) -> Result<Agent> {
    let client = Client::codex(home, model)?;
    let mut agent = Agent::of_client(&client, home, Protocol::AppServer, launch);
    agent.ready();
    Ok(agent)
}

/// A command that wants more than the sandbox gives.
fn escalated(command: &str) -> serde_json::Value {
    json!({"cmd": command, "sandbox_permissions": "require_escalated", "justification": "needed"})
}

#[test]
fn codex_is_denied_then_allowed_and_really_edits() -> Result<()> {
    let home = Home::new()?;
    let file = home.path().join("outside.txt");
    let write = escalated(&format!("printf hello > {}", file.display()));
    let script = Script::new()
        .replies(Reply::says("I will write it.").and_calls("exec_command", write.clone()))
        .when_tool_returns("ejected", Reply::says("I wait."))
        .when_user_says("go on", Reply::calls("exec_command", write))
        .says("It is written.")
        .strict();
    let model = Model::start(script)?;
    let mut agent = start(&home, &model, Launch::default())?;
    agent.prompt("write a greeting");
    let call = agent.asked();
    assert_eq!((call.name.as_str(), call.mutating), ("exec_command", true));
    // Without words: those would be said into the turn, before the model's next answer or after it.
    agent.decide(&call, Decision::Deny { message: None, interrupt: false });
    assert!(!agent.tool_ended());
    assert_eq!(agent.completed(), "I wait.");
    assert!(!file.exists());
    agent.prompt("go on");
    let call = agent.asked();
    agent.decide(&call, ALLOW);
    assert!(agent.tool_ended());
    assert_eq!(agent.completed(), "It is written.");
    assert_eq!(std::fs::read_to_string(&file).expect("written"), "hello");
    let exit = agent.stop();
    assert_eq!(exit.code, Some(0), "{exit:?}");
    Ok(())
}

/// What a patch changes is shown before it is allowed, and words with a denial reach the model.
#[test]
fn codex_shows_its_patch_and_hears_why_it_is_denied() -> Result<()> {
    let home = Home::new()?;
    let file = home.workspace().join("made.txt");
    let patch = json!("*** Begin Patch\n*** Add File: made.txt\n+hello\n*** End Patch\n");
    let script = Script::new()
        .calls("apply_patch", patch.clone())
        .when_user_says("go on", Reply::calls("apply_patch", patch))
        .then_always(Reply::says("I am done."));
    let model = Model::start(script)?;
    let mut agent = start(&home, &model, Launch { mode: Mode::Ask, ..Launch::default() })?;
    agent.prompt("make it");
    let call = agent.asked();
    assert_eq!(call.name.as_str(), "apply_patch");
    let shown = call.arguments["changes"].to_string();
    assert!(shown.contains("made.txt") && shown.contains("hello"), "{call:?}");
    agent.decide(&call, deny("not yet"));
    agent.completed();
    assert!(!file.exists());
    model.wait_for_request("the reason", |request| {
        request.body.to_string().contains("I did not allow that: not yet")
    })?;
    agent.prompt("go on");
    let call = agent.asked();
    agent.decide(&call, ALLOW);
    assert_eq!(agent.completed(), "I am done.");
    assert_eq!(std::fs::read_to_string(&file).expect("written").trim_end(), "hello");
    Ok(())
}

#[test]
fn codex_is_interrupted_while_it_asks_and_takes_the_next_prompt() -> Result<()> {
    let home = Home::new()?;
    let script = Script::new()
        .calls("exec_command", escalated("touch made"))
        .when_user_says("instead", Reply::says("Something else."));
    let model = Model::start(script)?;
    let mut agent = start(&home, &model, Launch::default())?;
    agent.prompt("make it");
    agent.asked();
    agent.order(Command::Interrupt).expect("a turn runs");
    assert_eq!(agent.completed(), "");
    agent.prompt("do something instead");
    assert_eq!(agent.completed(), "Something else.");
    assert!(!home.workspace().join("made").exists());
    Ok(())
}

#[test]
fn codex_is_resumed_by_its_id_after_it_was_killed() -> Result<()> {
    let home = Home::new()?;
    let script = Script::new()
        .says("The word is heron.")
        .when_user_says("which word", Reply::says("Heron, I said."));
    let model = Model::start(script)?;
    let mut agent = start(&home, &model, Launch::default())?;
    agent.prompt("give me a word");
    assert_eq!(agent.completed(), "The word is heron.");
    let id = agent.vendor_session.clone().expect("it said its id");
    agent.cancel();
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
fn codex_in_yolo_asks_nobody_and_asks_again_after_it() -> Result<()> {
    let home = Home::new()?;
    let script = Script::new()
        .calls("exec_command", json!({"cmd": format!("touch {}/loose", home.path().display())}))
        .says("Done.")
        .when_user_says("again", Reply::calls("exec_command", escalated("touch asked")))
        .says("Asked.");
    let model = Model::start(script)?;
    let mut agent = start(&home, &model, Launch { mode: Mode::Yolo, ..Launch::default() })?;
    agent.prompt("let loose");
    assert_eq!(agent.completed(), "Done.");
    assert!(home.path().join("loose").exists(), "no sandbox was in its way");
    agent.order(Command::SetMode(Mode::Edit)).expect("it has modes");
    agent.prompt("once again");
    let call = agent.asked();
    agent.decide(&call, ALLOW);
    assert_eq!(agent.completed(), "Asked.");
    Ok(())
}

#[test]
fn a_plan_of_codex_is_rejected_with_words_and_then_approved() -> Result<()> {
    let home = Home::new()?;
    let plan =
        |step: &str| format!("Here it is.\n<proposed_plan>\n# Plan\n- {step}\n</proposed_plan>\n");
    let script = Script::new()
        .says(plan("one"))
        .when_user_says("smaller", Reply::says(plan("half")))
        .when_user_says("Implement the plan.", Reply::says("It is done."));
    let model = Model::start(script)?;
    let mut agent = start(&home, &model, Launch { mode: Mode::Plan, ..Launch::default() })?;
    agent.prompt("plan it");
    let call = agent.asked();
    assert_eq!(call.name.as_str(), "exit_plan_mode");
    assert!(call.arguments["plan"].as_str().is_some_and(|plan| plan.contains("- one")));
    agent.decide(&call, Decision::RejectPlan { feedback: Some("smaller".to_owned()) });
    let call = agent.asked();
    assert!(call.arguments["plan"].as_str().is_some_and(|plan| plan.contains("- half")));
    agent.decide(&call, Decision::ApprovePlan { mode: None });
    assert_eq!(agent.completed(), "It is done.");
    Ok(())
}

#[test]
fn a_failed_request_of_codex_is_a_failed_turn_that_can_go_on() -> Result<()> {
    let home = Home::new()?;
    let script = Script::new()
        .fails(401)
        .when_user_says("Continue.", Reply::says("Back again."))
        .then_always(Reply::fails(401));
    let model = Model::start(script)?;
    let mut agent = start(&home, &model, Launch::default())?;
    agent.prompt("try");
    assert_eq!(agent.failed(), TroubleKind::Auth);
    agent.order(Command::Retry).expect("it is idle");
    assert_eq!(agent.completed(), "Back again.");
    Ok(())
}
