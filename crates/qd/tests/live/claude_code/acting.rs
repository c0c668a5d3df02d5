//! Answered from elsewhere while the terminal shows its dialog: the file is really written or not,
//! and the screen goes on.

use super::*;

/// What a session waits for has a way from here to there.
fn has_a_way(claude: &Claude) -> Value {
    let session = claude.session();
    eventually("a request that can be answered", || {
        let cards = claude.world.status();
        let card = cards.into_iter().find(|card| card["vendorId"] == *session)?;
        let request = card["requests"].as_array()?.first()?.clone();
        (request["way"] == "hook").then_some(request)
    })
}

fn made(claude: &Claude, file: &str) -> bool {
    claude.world.home.workspace().join(file).exists()
}

#[test]
fn a_permission_is_allowed_and_another_denied_from_elsewhere() {
    let script = Script::new()
        .calls("Bash", touch("made"))
        .says("The file is there.")
        .calls("Bash", touch("other"))
        .says("Then not.");
    let claude = Claude::observed(Installed, script);
    claude.submit("make a file");
    claude.asks_for_permission("touch made");
    let request = has_a_way(&claude);
    assert!(request["suggestions"].is_array(), "{request}");
    let key = request["key"].as_str().expect("a key");
    claude.world.must(&["approve", &claude.session()]);
    claude.terminal.wait_for_text("The file is there.").unwrap();
    assert!(made(&claude, "made"));
    claude.agree("idle", "task-complete");
    let (done, said) = claude.world.qd(&["deny", key]);
    assert!(!done && said.contains("no request of that id is open"), "{said}");

    claude.submit("make another");
    claude.asks_for_permission("touch other");
    has_a_way(&claude);
    claude.world.must(&["deny", &claude.session(), "--message", "Not in this folder"]);
    claude.terminal.wait_for_text("Then not.").unwrap();
    assert!(!made(&claude, "other"));
    claude.agree("idle", "task-complete");
    claude.writes("Not in this folder");
}

#[test]
fn another_command_is_run_than_the_one_it_asked_for() {
    let script = Script::new().calls("Bash", touch("made")).says("A file is there.");
    let claude = Claude::observed(Installed, script);
    claude.submit("make a file");
    claude.asks_for_permission("touch made");
    let request = has_a_way(&claude);
    let key = request["key"].as_str().expect("a key");
    let changed = json!({"type": "allow", "input": touch("changed")});
    let (status, said) = claude.world.decide(key, &changed);
    assert_eq!(status, 200, "{said}");
    claude.terminal.wait_for_text("A file is there.").unwrap();
    assert!(made(&claude, "changed") && !made(&claude, "made"));
    claude.agree("idle", "task-complete");
    let (status, said) = claude.world.decide(key, &json!({"type": "deny"}));
    assert_eq!((status, &said["first"]["decision"]["type"]), (409, &json!("allow")), "{said}");
}

/// The rule that the client itself suggests is kept: the same is not asked again.
#[test]
fn what_is_always_allowed_is_not_asked_again() {
    let script = Script::new()
        .calls("Bash", touch("made"))
        .says("The file is there.")
        .calls("Bash", touch("made"))
        .says("It is there again.");
    let claude = Claude::observed(Installed, script);
    claude.submit("make a file");
    claude.asks_for_permission("touch made");
    let request = has_a_way(&claude);
    assert!(request["suggestions"].as_array().is_some_and(|list| !list.is_empty()), "{request}");
    claude.world.must(&["approve", &claude.session(), "--scope", "always"]);
    claude.terminal.wait_for_text("The file is there.").unwrap();
    claude.agree("idle", "task-complete");
    std::fs::remove_file(claude.world.home.workspace().join("made")).expect("it was made");
    claude.submit("make it again");
    claude.terminal.wait_for_text("It is there again.").unwrap();
    assert!(made(&claude, "made"), "nobody was asked");
}

#[test]
fn a_denial_that_interrupts_ends_the_turn() {
    let claude = Claude::observed(Installed, Script::new().calls("Bash", touch("made")));
    claude.submit("make a file");
    claude.asks_for_permission("touch made");
    has_a_way(&claude);
    claude.world.must(&["interrupt", &claude.session()]);
    claude.agree("idle", "interrupted,idle");
    assert!(!made(&claude, "made"));
}

#[test]
fn a_question_is_answered_from_elsewhere() {
    let script = Script::new().calls("AskUserQuestion", question()).says("Postgres it is.");
    let claude = Claude::observed(Installed, script);
    claude.submit("choose one");
    claude.terminal.wait_for_text("Which database?").unwrap();
    claude.agree("waiting", "awaiting-input");
    has_a_way(&claude);
    claude.world.must(&["answer", &claude.session(), "2"]);
    claude.terminal.wait_for_text("Postgres it is.").unwrap();
    claude.writes(r#"\"Which database?\"=\"Postgres\""#);
    claude.agree("idle", "task-complete");
}

/// Several options of one question, words of one's own for the other.
#[test]
fn questions_take_several_options_and_free_words() {
    let option = |label: &str| json!({"label": label, "description": label});
    let questions = json!({"questions": [
        {"question": "Which decks?", "header": "Decks", "multiSelect": true,
            "options": [option("Upper"), option("Gun"), option("Orlop")]},
        {"question": "Which name?", "header": "Name", "multiSelect": false,
            "options": [option("Argo"), option("Beagle")]},
    ]});
    let script = Script::new().calls("AskUserQuestion", questions).says("So be it.");
    let claude = Claude::observed(Installed, script);
    claude.submit("ask me");
    claude.terminal.wait_for_text("Which decks?").unwrap();
    claude.agree("waiting", "awaiting-input");
    let request = has_a_way(&claude);
    let key = request["key"].as_str().expect("a key");
    let (status, said) = claude.world.decide(key, &json!({"type": "allow"}));
    assert_eq!(status, 409, "a question takes no yes: {said}");
    claude.world.must(&["answer", &claude.session(), "1,3", "Call her Vega"]);
    claude.terminal.wait_for_text("So be it.").unwrap();
    claude.agree("idle", "task-complete");
    claude.writes("Upper, Orlop");
    claude.writes("Call her Vega");
}

/// Puts it into its plan mode, and lets it propose one.
fn proposes_a_plan(claude: &Claude) {
    for mode in ["accept edits on", "plan mode on"] {
        claude.terminal.press(Key::BackTab).unwrap();
        claude.terminal.wait_for_text(mode).unwrap();
    }
    claude.submit("plan the way home");
    claude.terminal.wait_for_text("Exit plan mode?").unwrap();
    claude.agree("waiting", "awaiting-approval");
    has_a_way(claude);
}

#[test]
fn a_plan_is_rejected_with_what_is_missing() {
    let script = Script::new()
        .calls("ExitPlanMode", json!({"plan": "1. Sail home."}))
        .when_tool_returns("mind the reef", Reply::says("I plan again."));
    let claude = Claude::observed(Installed, script);
    proposes_a_plan(&claude);
    claude.world.must(&["deny", &claude.session(), "--message", "mind the reef"]);
    claude.terminal.wait_for_text("I plan again.").unwrap();
    claude.terminal.wait_for_text("plan mode on").unwrap();
    claude.agree("idle", "task-complete,awaiting-input");
}

#[test]
fn a_plan_is_approved_from_elsewhere_with_the_mode_that_follows() {
    let script = Script::new()
        .calls("ExitPlanMode", json!({"plan": "1. Sail home."}))
        .says("We sailed home.");
    let claude = Claude::observed(Installed, script);
    proposes_a_plan(&claude);
    claude.world.must(&["approve", &claude.session(), "--mode", "acceptEdits"]);
    claude.terminal.wait_for_text("We sailed home.").unwrap();
    claude.terminal.wait_for_text("accept edits on").unwrap();
    claude.agree("idle", "task-complete");
}

/// The terminal is first: the card goes, the hook is let go, and a late answer is told so.
#[test]
#[cfg(target_os = "linux")]
fn the_terminal_may_be_first() {
    let gate = Gate::new();
    let script = Script::new()
        .calls("Bash", touch("made"))
        .replies(Reply::says("The file is there.").held_before_start(&gate));
    let claude = Claude::observed(Installed, script);
    claude.submit("make a file");
    claude.asks_for_permission("touch made");
    let request = has_a_way(&claude);
    let key = request["key"].as_str().expect("a key");
    claude.terminal.press_until_gone(Key::Enter, DIALOG).unwrap();
    claude.agree("busy", "autonomous");
    eventually("the hook to be let go", || (waiting_hooks(&claude.world) == 0).then_some(()));
    let (done, said) = claude.world.qd(&["approve", key]);
    assert!(!done, "{said}");
    gate.open();
    claude.terminal.wait_for_text("The file is there.").unwrap();
    assert!(made(&claude, "made"));
}

/// The next prompt into an idle terminal, without a key pressed there.
#[test]
fn an_idle_terminal_takes_its_next_prompt_from_elsewhere() {
    let script = Script::new().says("Aye.").says("The sails are up.");
    let claude = Claude::observed(Installed, script);
    claude.submit("hello");
    claude.terminal.wait_for_text("Aye.").unwrap();
    claude.agree("idle", "task-complete");
    let session = claude.session();
    eventually("a way for the next prompt", || {
        let cards = claude.world.status();
        let card = cards.into_iter().find(|card| card["vendorId"] == *session)?;
        (card["capabilities"]["canPrompt"] == true).then_some(())
    });
    claude.world.must(&["send", &session, "set", "the", "sails"]);
    claude.terminal.wait_for_text("The sails are up.").unwrap();
    claude.writes("set the sails");
    claude.agree("idle", "task-complete");
}

/// kill -9 of the daemon while a request waits: it comes back with it, and answers it once.
#[test]
fn a_request_outlives_the_daemon_that_heard_it() {
    let script = Script::new().calls("Bash", touch("made")).says("The file is there.");
    let mut claude = Claude::observed(Installed, script);
    claude.submit("make a file");
    claude.asks_for_permission("touch made");
    let before = has_a_way(&claude);
    claude.world.kill_daemon();
    claude.world.serve();
    claude.agree("waiting", "needs-permission");
    let after = has_a_way(&claude);
    assert_eq!(before["key"], after["key"], "it is the same request");
    claude.world.must(&["approve", &claude.session()]);
    claude.terminal.wait_for_text("The file is there.").unwrap();
    assert!(made(&claude, "made"));
    claude.agree("idle", "task-complete");
}

/// Without a daemon a subagent's dialog is not held back by its hook.
#[test]
fn a_subagents_dialog_shows_where_no_daemon_is() {
    let task = json!({"description": "Make a file", "prompt": "subagent-task", "subagent_type": "general-purpose"});
    let script = Script::new()
        .when_user_says("send somebody", Reply::calls("Agent", task))
        .when_user_says("subagent-task", Reply::calls("Bash", touch("made")))
        .when_tool_returns("launched", Reply::says("Somebody is on it."))
        .then_always(Reply::says("Made."));
    let claude = Claude::alone(Installed, script);
    claude.submit("send somebody");
    claude.terminal.wait_for_text(DIALOG).unwrap();
}

#[test]
fn a_session_is_asked_to_end() {
    let claude = Claude::observed(Installed, Script::new().says("Aye."));
    claude.submit("hello");
    claude.terminal.wait_for_text("Aye.").unwrap();
    let session = claude.session();
    claude.world.wait(&session, "task-complete");
    claude.world.must(&["stop", &session]);
    let card = claude.world.wait(&session, "session-ended");
    assert_eq!(card["capabilities"]["canResume"], true);
}
