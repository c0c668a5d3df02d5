//! Codex: alone (`--no-daemon`), attached to its own daemon, and `codex exec`. Its screen is the
//! witness.
//!
//! Alone and without hooks, its rollout is all there is: a call that asks to leave the sandbox
//! and then silence. That somebody is asked is concluded, not told; a kill is seen by its lock.

use std::time::{Duration, Instant};

use qd_testbed::{Client, Gate, Key, Reply, Script, Terminal};
use serde_json::{Value, json};

use crate::world::{Tab, World, eventually, group_and_state};

const DIALOG: &str = "Would you like to run the following command?";

/// How it runs, and what it reports by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// One process with hooks.
    Hooked,
    /// One process that reports nothing.
    Alone,
    /// A terminal on the shared daemon.
    Attached,
    /// The same with hooks.
    AttachedHooked,
}

use Way::{Alone, Attached, AttachedHooked, Hooked};

fn codex(world: &World, way: Way, arguments: &[&str]) -> Terminal {
    let client = Client::codex(&world.home, &world.model).unwrap();
    if matches!(way, Hooked | AttachedHooked) {
        world.install_hooks("codex", &client);
    }
    let client = match way {
        Hooked | Alone => client.argument("--no-daemon"),
        Attached | AttachedHooked => client,
    };
    client.arguments(arguments.iter().copied()).in_terminal().unwrap()
}

/// Wants to write outside the workspace.
fn wants_out(world: &World) -> Script {
    let command = format!("touch {}", world.home.path().join("made").display());
    let call = json!({
        "cmd": command,
        "sandbox_permissions": "require_escalated",
        "justification": "Need to write outside the workspace",
    });
    Script::new().calls("exec_command", call)
}

/// Waits for the only session to be so.
fn wait(world: &World, until: &str) -> Value {
    world.wait("", until)
}

/// A permission that is granted, then one that is refused by Esc.
fn a_permission_waits_and_is_answered(way: Way) {
    let world = World::served(Script::new());
    world.model.then(wants_out(&world).says("The file is there."));
    let terminal = codex(&world, way, &[]);
    terminal.submit("make a file outside").unwrap();
    terminal.wait_for_text(DIALOG).unwrap();
    let card = wait(&world, "needs-permission");
    assert_eq!(group_and_state(&card), "needs_you/needs_permission");
    terminal.press_until_gone(Key::Enter, DIALOG).unwrap();
    terminal.wait_for_text("The file is there.").unwrap();
    let card = wait(&world, "task-complete");
    assert_eq!(card["requests"], json!([]));
    world.model.then(wants_out(&world));
    terminal.submit("make another").unwrap();
    terminal.wait_for_text(DIALOG).unwrap();
    wait(&world, "needs-permission");
    terminal.press_until_gone(Key::Escape, DIALOG).unwrap();
    let card = wait(&world, "interrupted");
    assert_eq!(card["requests"], json!([]));
    assert_eq!(world.status().len(), 1, "{}", world.picture());
    // Its turn is active once more before it is over: that is no work.
    let shown = world.shown(card["vendorId"].as_str().expect("an id"));
    let end = shown.iter().rposition(|state| state == "needs_permission").expect("it asked");
    assert_eq!(shown[end..], ["needs_permission", "interrupted"], "{}", world.picture());
}

#[test]
fn a_permission_waits_and_is_answered_with_hooks() {
    a_permission_waits_and_is_answered(Hooked);
}

#[test]
fn a_permission_waits_and_is_answered_alone() {
    a_permission_waits_and_is_answered(Alone);
}

#[test]
fn a_permission_waits_and_is_answered_on_the_daemon() {
    a_permission_waits_and_is_answered(Attached);
}

#[test]
fn a_permission_waits_and_is_answered_on_the_daemon_with_hooks() {
    a_permission_waits_and_is_answered(AttachedHooked);
}

fn who_comes_late_sees_the_permission(way: Way) {
    let mut world = World::new(Script::new());
    world.model.then(wants_out(&world).says("The file is there."));
    let terminal = codex(&world, way, &[]);
    terminal.submit("make a file outside").unwrap();
    terminal.wait_for_text(DIALOG).unwrap();
    world.serve();
    wait(&world, "needs-permission");
    terminal.press_until_gone(Key::Enter, DIALOG).unwrap();
    terminal.wait_for_text("The file is there.").unwrap();
    wait(&world, "task-complete");
}

#[test]
fn who_comes_late_sees_the_permission_with_hooks() {
    who_comes_late_sees_the_permission(Hooked);
}

#[test]
fn who_comes_late_sees_the_permission_on_the_daemon() {
    who_comes_late_sees_the_permission(Attached);
}

/// A tool runs without asking, the model speaks until Esc: no hook tells of that.
fn esc_is_seen(way: Way) {
    let gate = Gate::new();
    let script = Script::new()
        .calls("exec_command", json!({"cmd": "echo the-cargo-is-tea"}))
        .replies(Reply::says("This goes on for ever.").held_before_end(&gate));
    let world = World::served(script);
    let terminal = codex(&world, way, &[]);
    terminal.submit("talk to me").unwrap();
    terminal.wait_for_text("This goes on for ever.").unwrap();
    wait(&world, "autonomous");
    terminal.press(Key::Escape).unwrap();
    terminal.wait_for_text("interrupted").unwrap();
    let card = wait(&world, "interrupted");
    let shown = world.shown(card["vendorId"].as_str().expect("an id"));
    assert!(!shown.contains(&"needs_permission".into()), "{shown:?}");
}

#[test]
fn esc_is_seen_with_hooks() {
    esc_is_seen(Hooked);
}

#[test]
fn esc_is_seen_alone() {
    esc_is_seen(Alone);
}

#[test]
fn esc_is_seen_on_the_daemon() {
    esc_is_seen(Attached);
}

#[test]
fn esc_is_seen_on_the_daemon_with_hooks() {
    esc_is_seen(AttachedHooked);
}

/// kill -9 while it asks, then it is resumed.
fn kill_9_ends_it_and_it_is_resumed(way: Way) {
    let world = World::served(Script::new());
    world.model.then(wants_out(&world).then_always(Reply::says("Well again.")));
    let terminal = codex(&world, way, &[]);
    terminal.submit("make a file outside").unwrap();
    terminal.wait_for_text(DIALOG).unwrap();
    wait(&world, "needs-permission");
    terminal.kill().unwrap();
    let card = wait(&world, "session-ended");
    assert_eq!(card["requests"], json!([]));
    let session = card["vendorId"].as_str().expect("an id").to_owned();
    let terminal = codex(&world, Alone, &["resume", "--last"]);
    terminal.submit("how are you").unwrap();
    terminal.wait_for_text("Well again.").unwrap();
    world.wait(&session, "task-complete");
    assert_eq!(world.status().len(), 1, "{}", world.picture());
}

#[test]
fn kill_9_ends_it_and_it_is_resumed_with_hooks() {
    kill_9_ends_it_and_it_is_resumed(Hooked);
}

#[test]
fn kill_9_ends_it_and_it_is_resumed_alone() {
    kill_9_ends_it_and_it_is_resumed(Alone);
}

/// The reason is told by its rollout, its hook and its daemon, in any order: it stands whoever
/// comes last.
fn a_failed_service_needs_you(way: Way, status: u16, why: &str) {
    let world = World::served(Script::new().then_always(Reply::fails(status)));
    let terminal = codex(&world, way, &[]);
    terminal.submit("are you there?").unwrap();
    terminal.wait_for_text(&status.to_string()).unwrap();
    let card = wait(&world, &why.replace('_', "-"));
    assert_eq!(card["agentState"]["group"], "needs_you");
    world.model.then(Script::new().then_always(Reply::says("Well again.")));
    terminal.submit("and now?").unwrap();
    terminal.wait_for_text("Well again.").unwrap();
    wait(&world, "task-complete");
    let shown = world.shown(card["vendorId"].as_str().expect("an id"));
    let last = shown.iter().rfind(|state| state.ends_with("error"));
    assert_eq!(last.map(String::as_str), Some(why), "{shown:?}");
}

#[test]
fn a_failed_service_needs_you_alone() {
    a_failed_service_needs_you(Alone, 529, "server_error");
}

#[test]
fn a_failed_service_needs_you_with_hooks() {
    a_failed_service_needs_you(Hooked, 529, "server_error");
}

#[test]
fn a_failed_service_needs_you_on_the_daemon() {
    a_failed_service_needs_you(Attached, 529, "server_error");
}

#[test]
fn a_missing_sign_in_needs_you_on_the_daemon() {
    a_failed_service_needs_you(Attached, 401, "auth_error");
}

#[test]
fn a_missing_sign_in_needs_you_on_the_daemon_with_hooks() {
    a_failed_service_needs_you(AttachedHooked, 401, "auth_error");
}

/// `/new` lets go of the thread, and the process goes on with another.
fn a_new_thread_is_another_session(way: Way) {
    let world = World::served(Script::new().then_always(Reply::says("Good evening.")));
    let terminal = codex(&world, way, &[]);
    terminal.submit("say good evening").unwrap();
    terminal.wait_for_text("Good evening.").unwrap();
    let first = wait(&world, "task-complete")["vendorId"].as_str().expect("an id").to_owned();
    terminal.submit("/new").unwrap();
    terminal.wait_for_no_text("Good evening.").unwrap();
    terminal.submit("say it again").unwrap();
    terminal.wait_for_text("Good evening.").unwrap();
    let second = eventually("another session", || {
        let cards = world.status();
        let other = cards.into_iter().find(|card| card["vendorId"] != *first)?;
        other["vendorId"].as_str().map(str::to_owned)
    });
    world.wait(&second, "task-complete");
    world.wait(&first, "session-ended");
}

#[test]
fn a_new_thread_is_another_session_with_hooks() {
    a_new_thread_is_another_session(Hooked);
}

#[test]
fn a_new_thread_is_another_session_alone() {
    a_new_thread_is_another_session(Alone);
}

/// Puts it into its plan mode. While its session comes up, which nothing on the screen tells, it
/// takes the mode back: so it is asked again until it stays.
fn plan(terminal: &Terminal) {
    const STAYS: Duration = Duration::from_secs(2);
    for _ in 0..5 {
        terminal.submit("/plan").unwrap();
        terminal.wait_for_text("for Plan mode").unwrap();
        let mut since = Instant::now();
        let deadline = since + 3 * STAYS;
        while Instant::now() < deadline {
            if !terminal.screen().contains("Plan mode (shift") {
                since = Instant::now();
            }
            if since.elapsed() >= STAYS {
                return;
            }
            std::thread::yield_now();
        }
    }
    panic!("it does not stay in its plan mode: {}", terminal.screen());
}

/// Codex asks questions only in its plan mode.
fn a_question_waits_and_is_answered(way: Way) {
    let question = json!({"questions": [{
        "id": "db",
        "header": "Storage",
        "question": "Which database?",
        "options": [
            {"label": "SQLite (Recommended)", "description": "A local file"},
            {"label": "Postgres", "description": "A server"},
        ],
    }]});
    let script = Script::new().calls("request_user_input", question).says("SQLite it is.");
    let world = World::served(script);
    let terminal = codex(&world, way, &[]);
    // While it still starts it keeps a command for later; its header says so.
    terminal.wait_for_no_text("loading").unwrap();
    plan(&terminal);
    terminal.submit("choose a database").unwrap();
    terminal.wait_for_text("Which database?").unwrap();
    let card = wait(&world, "awaiting-input");
    assert_eq!(card["requests"].as_array().map(Vec::len), Some(1), "{card:#}");
    terminal.press_until_gone(Key::Enter, "A local file").unwrap();
    terminal.wait_for_text("SQLite it is.").unwrap();
    let card = wait(&world, "task-complete");
    assert_eq!(card["requests"], json!([]));
}

#[test]
fn a_question_waits_and_is_answered_with_hooks() {
    a_question_waits_and_is_answered(Hooked);
}

#[test]
fn a_question_waits_and_is_answered_alone() {
    a_question_waits_and_is_answered(Alone);
}

#[test]
fn a_question_waits_and_is_answered_on_the_daemon() {
    a_question_waits_and_is_answered(Attached);
}

/// A subagent asks while its parent's turn is over. The models that have subagents run tools by
/// JavaScript.
fn a_subagent_asks_for_permission(way: Way) {
    let world = World::served(Script::new());
    let made = world.home.path().join("made");
    let call = json!({
        "cmd": format!("touch {}", made.display()),
        "sandbox_permissions": "require_escalated",
        "justification": "Need to write outside the workspace",
    });
    let javascript = format!("text(await tools.exec_command({call}));");
    let task = json!({"task_name": "make_it", "message": "subagent-task", "fork_turns": "none"});
    let script = Script::new()
        .when_user_says("NEW_TASK", Reply::calls("exec", Value::from(javascript)))
        .when_user_says("send somebody", Reply::calls("collaboration/spawn_agent", task))
        .then_always(Reply::says("Somebody is on it."));
    world.model.then(script);
    let terminal = codex(&world, way, &["--model", "gpt-6.1-sol"]);
    terminal.submit("send somebody").unwrap();
    terminal.wait_for_text(DIALOG).unwrap();
    let card = wait(&world, "needs-permission");
    assert_eq!(card["requests"].as_array().map(Vec::len), Some(1), "{card:#}");
    terminal.press_until_gone(Key::Enter, DIALOG).unwrap();
    let card = wait(&world, "task-complete");
    assert_eq!(card["requests"], json!([]));
}

#[test]
fn a_subagent_asks_for_permission_with_hooks() {
    a_subagent_asks_for_permission(Hooked);
}

#[test]
fn a_subagent_asks_for_permission_alone() {
    a_subagent_asks_for_permission(Alone);
}

#[test]
fn a_subagent_asks_for_permission_on_the_daemon() {
    a_subagent_asks_for_permission(Attached);
}

/// `codex exec` asks nobody.
#[test]
fn an_exec_run_calls_nobody_and_ends() {
    let world = World::served(Script::new());
    world.model.then(wants_out(&world).says("I may not."));
    let client = Client::codex(&world.home, &world.model).unwrap();
    let arguments = ["exec", "--json", "--skip-git-repo-check", "make a file outside"];
    let mut run = client.arguments(arguments).headless().unwrap();
    run.close_input();
    let started = run.wait_for_json("its thread", |line| line["type"] == "thread.started").unwrap();
    let session = started["thread_id"].as_str().expect("an id");
    run.wait_for_exit().unwrap();
    world.wait(session, "session-ended");
    let shown = world.shown(session);
    assert!(!shown.contains(&"needs_permission".into()), "{shown:?}");
}

/// A permission is allowed, a question answered, a prompt sent and a turn ended, all from
/// elsewhere, while the terminal shows it.
#[test]
fn a_terminal_on_the_daemon_is_acted_on_from_elsewhere() {
    let world = World::served(Script::new());
    world.model.then(wants_out(&world).says("The file is there."));
    let terminal = codex(&world, Attached, &[]);
    terminal.submit("make a file outside").unwrap();
    terminal.wait_for_text(DIALOG).unwrap();
    wait(&world, "needs-permission");
    // Its daemon says that somebody is asked; for what, its rollout says a moment later.
    let card = eventually("a way to it", || {
        let card = world.status().into_iter().next()?;
        (card["requests"][0]["way"] == "codex").then_some(card)
    });
    let session = card["vendorId"].as_str().expect("an id");
    assert_eq!(card["requests"][0]["scopes"], json!(["session", "always"]), "{card:#}");
    world.must(&["approve", session, "--scope", "session"]);
    terminal.wait_for_text("The file is there.").unwrap();
    assert!(world.home.path().join("made").exists());
    wait(&world, "task-complete");

    let gate = Gate::new();
    world.model.then(Script::new().replies(Reply::says("For ever.").held_before_end(&gate)));
    world.must(&["send", session, "talk", "to", "me"]);
    terminal.wait_for_text("talk to me").unwrap();
    wait(&world, "autonomous");
    world.must(&["interrupt", session]);
    wait(&world, "interrupted");
}

/// The only session, once its request can be answered over its daemon.
fn answerable(world: &World) -> String {
    eventually("a way over its daemon", || {
        let card = world.status().into_iter().next()?;
        let session = card["vendorId"].as_str()?.to_owned();
        (card["requests"][0]["way"] == "codex").then_some(session)
    })
}

/// With hooks installed, too: on the daemon the hook goes at once, and the dialog shows.
#[test]
fn a_permission_on_the_daemon_is_denied_with_a_reason_and_its_hook_is_in_nobodys_way() {
    let world = World::served(Script::new());
    let workspace = Reply::says("In the workspace then.");
    world.model.then(wants_out(&world).when_user_says("use the workspace", workspace));
    world.install_hooks("codex", &Client::codex(&world.home, &world.model).unwrap());
    let terminal = codex(&world, Attached, &[]);
    terminal.submit("make a file outside").unwrap();
    terminal.wait_for_text(DIALOG).unwrap();
    let session = answerable(&world);
    world.must(&["deny", &session, "--message", "use the workspace"]);
    terminal.wait_for_text("In the workspace then.").unwrap();
    assert!(!world.home.path().join("made").exists());
    wait(&world, "task-complete");
}

#[test]
fn a_question_on_the_daemon_is_answered_from_elsewhere() {
    let question = json!({"questions": [{
        "id": "db",
        "header": "Storage",
        "question": "Which database?",
        "options": [
            {"label": "SQLite (Recommended)", "description": "A local file"},
            {"label": "Postgres", "description": "A server"},
        ],
    }]});
    let chosen = Reply::says("Postgres it is.");
    let script =
        Script::new().calls("request_user_input", question).when_tool_returns("Postgres", chosen);
    let world = World::served(script);
    let terminal = codex(&world, Attached, &[]);
    terminal.wait_for_no_text("loading").unwrap();
    plan(&terminal);
    terminal.submit("choose a database").unwrap();
    terminal.wait_for_text("Which database?").unwrap();
    let session = answerable(&world);
    let (done, said) = world.qd(&["deny", &session]);
    assert!(!done && said.contains("takes no refusal"), "{said}");
    world.must(&["answer", &session, "2"]);
    terminal.wait_for_text("Postgres it is.").unwrap();
}

/// kill -9 of the daemon of ours while a request waits on Codex's.
#[test]
fn a_request_on_the_daemon_outlives_the_killed_one_that_heard_it() {
    let mut world = World::served(Script::new());
    world.model.then(wants_out(&world).says("The file is there."));
    let terminal = codex(&world, Attached, &[]);
    terminal.submit("make a file outside").unwrap();
    terminal.wait_for_text(DIALOG).unwrap();
    answerable(&world);
    world.kill_daemon();
    world.serve();
    let session = answerable(&world);
    world.must(&["approve", &session]);
    terminal.wait_for_text("The file is there.").unwrap();
    assert!(world.home.path().join("made").exists());
    wait(&world, "task-complete");
}

/// What a script of the model calls stands in no file, and no hook tells of it here.
#[test]
fn a_call_of_a_script_is_allowed_from_elsewhere_without_hooks() {
    let world = World::served(Script::new());
    let made = world.home.path().join("made");
    let call = json!({
        "cmd": format!("touch {}", made.display()),
        "sandbox_permissions": "require_escalated",
        "justification": "Need to write outside the workspace",
    });
    let javascript = format!("text(await tools.exec_command({call}));");
    let script = Script::new().calls("exec", Value::from(javascript)).says("The file is there.");
    world.model.then(script);
    let terminal = codex(&world, Attached, &["--model", "gpt-6.1-sol"]);
    terminal.submit("make a file outside").unwrap();
    terminal.wait_for_text(DIALOG).unwrap();
    // Until it was looked into, only the script is known.
    let session = eventually("what the script asks for", || {
        let card = world.status().into_iter().next()?;
        let request = &card["requests"][0];
        let is_its_call = request["way"] == "codex" && request["tool"] != "exec";
        let shown = request["input"].to_string().contains("touch");
        (is_its_call && shown).then(|| card["vendorId"].as_str().map(str::to_owned))?
    });
    world.must(&["approve", &session]);
    terminal.wait_for_text("The file is there.").unwrap();
    assert!(made.exists());
    wait(&world, "task-complete");
}

#[test]
fn a_plan_on_the_daemon_is_approved_from_elsewhere() {
    let plan_text = "<proposed_plan>\n# Make a file\n\n- one step\n</proposed_plan>";
    let touch = json!({"cmd": "touch done-by-plan"});
    let script = Script::new()
        .when_user_says("plan a file", Reply::says(plan_text))
        .when_user_says("Implement the plan", Reply::calls("exec_command", touch))
        .says("It is done.");
    let world = World::served(script);
    let terminal = codex(&world, Attached, &[]);
    terminal.wait_for_no_text("loading").unwrap();
    plan(&terminal);
    terminal.submit("plan a file").unwrap();
    wait(&world, "awaiting-approval");
    let session = answerable(&world);
    world.must(&["approve", &session]);
    terminal.wait_for_text("It is done.").unwrap();
    assert!(world.home.workspace().join("done-by-plan").exists());
    wait(&world, "task-complete");
}

/// How the newest turn of the only thread asks and is confined, as its rollout says.
fn last_turn(world: &World) -> (Value, Value) {
    let mut folders = vec![world.home.path().join(".codex/sessions")];
    let mut rollout = String::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            match entry.path() {
                path if path.is_dir() => folders.push(path),
                path => rollout = std::fs::read_to_string(path).expect("a rollout"),
            }
        }
    }
    let lines = rollout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut turns = lines.filter(|line| line["type"] == "turn_context");
    let turn = turns.next_back().unwrap_or_else(|| panic!("no turn in {rollout}"));
    let payload = &turn["payload"];
    (payload["approval_policy"].clone(), payload["sandbox_policy"]["type"].clone())
}

/// YOLO is switched on and off: at once, and with a restart of ours between. The thread is
/// confined as it was before, and not as Codex does by default.
#[test]
fn a_confined_thread_on_the_daemon_is_confined_again_after_yolo() {
    let mut world = World::served(Script::new());
    let terminal = codex(&world, Attached, &["--sandbox", "read-only"]);
    let says = |world: &World, word: &str| {
        world.model.then(Script::new().says(format!("Heard: {word}.")));
        terminal.submit(&format!("say {word}")).unwrap();
        terminal.wait_for_text(&format!("Heard: {word}.")).unwrap();
        wait(world, "task-complete");
        last_turn(world)
    };
    let confined = (json!("on-request"), json!("read-only"));
    assert_eq!(says(&world, "tea"), confined);
    let reached = || {
        let card = world.status().into_iter().next()?;
        let session = card["vendorId"].as_str().map(str::to_owned);
        session.filter(|_| card["capabilities"]["canPrompt"] == true)
    };
    let session = eventually("a way to it", reached);
    let (done, said) = world.qd(&["yolo", &session, "off"]);
    assert!(!done && said.contains("not in YOLO"), "{said}");
    assert_eq!(says(&world, "coffee"), confined);

    world.must(&["yolo", &session, "on"]);
    world.must(&["yolo", &session, "off"]);
    assert_eq!(says(&world, "milk"), confined);

    world.must(&["yolo", &session, "on"]);
    assert_eq!(says(&world, "rum"), (json!("never"), json!("danger-full-access")));
    world.kill_daemon();
    world.serve();
    eventually("a way to it", || {
        let card = world.status().into_iter().next()?;
        (card["capabilities"]["canPrompt"] == true).then_some(())
    });
    world.must(&["yolo", &session, "off"]);
    assert_eq!(says(&world, "water"), confined);
}

/// Without the daemon its hook waits while the operator looks at its card, before any dialog shows.
#[test]
fn a_permission_of_a_lone_terminal_is_allowed_through_its_hook() {
    let world = World::served(Script::new());
    let tab = Tab::open(&world);
    tab.looks(&world, true);
    world.model.then(wants_out(&world).says("The file is there."));
    let terminal = codex(&world, Hooked, &[]);
    terminal.submit("make a file outside").unwrap();
    let card = eventually("a hook that waits", || {
        let card = world.status().into_iter().next()?;
        (card["requests"][0]["way"] == "hook").then_some(card)
    });
    world.must(&["approve", card["vendorId"].as_str().expect("an id")]);
    terminal.wait_for_text("The file is there.").unwrap();
    assert!(world.home.path().join("made").exists());
    wait(&world, "task-complete");
}

/// The operator's hook failed: the model reads why in the place of the tool's output.
#[test]
fn a_post_tool_hook_that_fails_is_told_to_the_model() {
    let mut world = World::new(Script::new().calls("exec_command", json!({"cmd": "touch made"})));
    world.model.then(Script::new().says("I see."));
    world.post_tool_hook("test -e made && echo the roof leaks; exit 3", "fail_session");
    world.serve();
    let terminal = codex(&world, Hooked, &[]);
    terminal.submit("make a file").unwrap();
    terminal.wait_for_text("I see.").unwrap();
    let why = "post-tool hook check failed: exit code 3: the roof leaks";
    assert!(world.model.requests().iter().any(|request| request.brings(why)));
    wait(&world, "task-complete");
}
