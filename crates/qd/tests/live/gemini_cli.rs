//! Gemini CLI: its screen is the witness. Without hooks its chat file tells of turns and of a
//! refused tool, but not that a person is asked: there a wait looks like a tool that runs.

use qd_testbed::{Client, Gate, Key, Reply, Script, Terminal};
use serde_json::{Value, json};

use crate::world::{World, eventually};

const DIALOG: &str = "Allow execution";

fn gemini(world: &World, hooks: bool, arguments: &[&str]) -> Terminal {
    let client = Client::gemini_cli(&world.home, &world.model).unwrap();
    if hooks {
        world.install_hooks("gemini-cli", &client);
    }
    client.arguments(arguments.iter().copied()).in_terminal().unwrap()
}

fn touch() -> Value {
    json!({"command": "touch made", "description": "Make a file"})
}

fn wait(world: &World, until: &str) -> Value {
    world.wait("", until)
}

/// Hooks tell of the wait; kill -9 is seen by the process, and the chat is resumed.
#[test]
fn a_permission_waits_and_is_answered_with_hooks() {
    let script = Script::new().calls("run_shell_command", touch()).says("The file is there.");
    let again = Reply::calls("run_shell_command", touch());
    let world = World::served(script.when_user_says("make another", again));
    let terminal = gemini(&world, true, &[]);
    terminal.submit("make a file").unwrap();
    terminal.wait_for_text(DIALOG).unwrap();
    wait(&world, "needs-permission");
    terminal.press_until_gone(Key::Enter, DIALOG).unwrap();
    terminal.wait_for_text("The file is there.").unwrap();
    wait(&world, "task-complete");
    terminal.submit("make another").unwrap();
    terminal.wait_for_text(DIALOG).unwrap();
    wait(&world, "needs-permission");
    terminal.kill().unwrap();
    let card = wait(&world, "session-ended");
    assert_eq!(card["requests"], json!([]));
    world.model.then(Script::new().then_always(Reply::says("Well again.")));
    let terminal = gemini(&world, true, &["--resume", "latest"]);
    terminal.submit("how are you").unwrap();
    // It ignores the key while it still reads its past; in an empty line it does nothing.
    terminal.press_until_shown(Key::Enter, "Well again.").unwrap();
    wait(&world, "task-complete");
}

/// Without hooks: the turn, and its end. The wait itself cannot be known.
#[test]
fn a_turn_is_seen_without_hooks() {
    let world = World::served(Script::new().then_always(Reply::says("Good evening.")));
    let terminal = gemini(&world, false, &[]);
    terminal.submit("say good evening").unwrap();
    terminal.wait_for_text("Good evening.").unwrap();
    let card = wait(&world, "task-complete");
    let shown = world.shown(card["vendorId"].as_str().expect("an id"));
    assert!(!shown.contains(&"needs_permission".into()), "{shown:?}");
    terminal.kill().unwrap();
    wait(&world, "session-ended");
}

#[test]
fn who_comes_late_sees_the_permission_with_hooks() {
    let mut world = World::new(Script::new().calls("run_shell_command", touch()).says("Made."));
    let terminal = gemini(&world, true, &[]);
    terminal.submit("make a file").unwrap();
    terminal.wait_for_text(DIALOG).unwrap();
    world.serve();
    wait(&world, "needs-permission");
    terminal.press_until_gone(Key::Enter, DIALOG).unwrap();
    terminal.wait_for_text("Made.").unwrap();
    wait(&world, "task-complete");
}

/// No hook tells of Esc while the model speaks.
#[test]
fn esc_is_seen_with_hooks() {
    let gate = Gate::new();
    let held = Reply::says("This goes on for ever.").held_before_end(&gate);
    let world = World::served(Script::new().replies(held));
    let terminal = gemini(&world, true, &[]);
    terminal.submit("talk to me").unwrap();
    wait(&world, "autonomous");
    terminal.press(Key::Escape).unwrap();
    terminal.wait_for_text("cancelled").unwrap();
    wait(&world, "interrupted");
}

/// A request that the service refuses for good.
#[test]
fn a_failed_service_needs_you_with_hooks() {
    let world = World::served(Script::new().then_always(Reply::fails(400)));
    let terminal = gemini(&world, true, &[]);
    terminal.submit("hello").unwrap();
    terminal.wait_for_text("API Error").unwrap();
    let card = wait(&world, "error");
    assert_eq!(card["agentState"]["group"], "needs_you");
    world.model.then(Script::new().then_always(Reply::says("Well again.")));
    terminal.submit("and now").unwrap();
    terminal.wait_for_text("Well again.").unwrap();
    wait(&world, "task-complete");
}

#[test]
fn a_question_waits_and_is_answered_with_hooks() {
    let question = json!({"questions": [{
        "header": "Storage",
        "question": "Which database?",
        "type": "choice",
        "options": [
            {"label": "SQLite", "description": "A local file"},
            {"label": "Postgres", "description": "A server"},
        ],
    }]});
    let script = Script::new().calls("ask_user", question).says("SQLite it is.");
    let world = World::served(script);
    let terminal = gemini(&world, true, &[]);
    terminal.submit("choose a database").unwrap();
    terminal.wait_for_text("Which database?").unwrap();
    let card = wait(&world, "awaiting-input");
    assert_eq!(card["requests"].as_array().map(Vec::len), Some(1), "{card:#}");
    terminal.press_until_gone(Key::Enter, "A local file").unwrap();
    terminal.wait_for_text("SQLite it is.").unwrap();
    let card = wait(&world, "task-complete");
    assert_eq!(card["requests"], json!([]));
}

/// `/clear` begins another session in the same process.
#[test]
fn clear_begins_another_session_with_hooks() {
    let world = World::served(Script::new().then_always(Reply::says("Good evening.")));
    let terminal = gemini(&world, true, &[]);
    terminal.submit("say good evening").unwrap();
    terminal.wait_for_text("Good evening.").unwrap();
    let first = wait(&world, "task-complete")["vendorId"].as_str().expect("an id").to_owned();
    terminal.type_text("/clear").unwrap();
    terminal.wait_for_text("/clear").unwrap();
    // On a busy machine it takes the first Enter for part of a paste.
    terminal.press_until_gone(Key::Enter, "/clear").unwrap();
    world.wait(&first, "session-ended");
    terminal.wait_for_no_text("Good evening.").unwrap();
    terminal.wait_for_text("Type your message").unwrap();
    terminal.submit("say it again").unwrap();
    terminal.wait_for_text("Good evening.").unwrap();
    let second = eventually("another session", || {
        let cards = world.status();
        let other = cards.into_iter().find(|card| card["vendorId"] != *first)?;
        other["vendorId"].as_str().map(str::to_owned)
    });
    world.wait(&second, "task-complete");
}

/// Its hook can deny and never approve: a rule that denies holds before anybody is asked.
#[test]
fn a_rule_denies_what_it_wants_to_run() {
    let script = Script::new().calls("run_shell_command", touch()).says("Then not.");
    let mut world = World::new(script);
    world.policy(
        "[[rule]]\nname = \"no touching\"\neffect = \"deny\"\ncommand = \"touch *\"\n\
         message = \"Files are made by hand here.\"\n",
    );
    world.serve();
    let terminal = gemini(&world, true, &[]);
    terminal.submit("make a file").unwrap();
    terminal.wait_for_text("Then not.").unwrap();
    let card = wait(&world, "task-complete");
    assert!(!world.home.workspace().join("made").exists());
    let told = |request: &qd_testbed::Request| request.brings("Files are made by hand here.");
    world.model.wait_for_request("what it was told", told).unwrap();
    let shown = world.shown(card["vendorId"].as_str().expect("an id"));
    assert!(!shown.contains(&"needs_permission".into()), "{shown:?}");
    assert_eq!(world.rules_that_answered(), ["no touching"]);
}
