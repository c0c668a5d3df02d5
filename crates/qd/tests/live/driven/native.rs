//! Our own harness: a model's endpoint, our tools and hooks.

use qd_testbed::{Gate, Reply, Script};
use serde_json::json;

use crate::world::eventually;

use super::setting::{Driven, ask, config, git, world};

/// The whole of it in one session: denied once, allowed then, a hook that commits, an overloaded
/// model, an interrupt, the end, and on again.
#[test]
fn it_asks_is_denied_then_edits_and_a_hook_commits() {
    let gate = Gate::new();
    let write = json!({"path": "greeting.txt", "content": "hello\n"});
    let script = Script::new()
        .replies(Reply::says("I will write it.").and_calls("write_file", write.clone()))
        .when_tool_returns("not yet", Reply::says("I wait."))
        .when_user_says("go on", Reply::fails(529))
        .when_user_says("go on", Reply::calls("write_file", write))
        .when_user_says("wait", Reply::says("Never heard.").held_before_start(&gate))
        .when_user_says("last", Reply::says("All done."))
        .says("It is written.")
        .strict();
    let world = world(script);
    let hook = json!({"hooks": [{
        "name": "auto_commit",
        "command": ["sh", "-c", "git add -A && git -c user.name=q -c user.email=q@q commit -qm auto"],
    }]});
    config(&world, "hooks.json", &hook.to_string());
    git(&world, &["init", "-q"]);
    let driven = Driven::begin(world, &["native", "write a greeting"]);

    let request = driven.asks("write_file");
    assert_eq!(driven.state(), "needs_permission");
    driven.must(&["deny", &request, "--message", "not yet"]);
    driven.is("task_complete,awaiting_input,idle");
    assert!(!driven.file("greeting.txt").exists());

    driven.send("go on");
    let request = driven.asks("write_file");
    driven.must(&["approve", &request]);
    driven.is("task_complete");
    assert_eq!(std::fs::read_to_string(driven.file("greeting.txt")).expect("written"), "hello\n");
    assert!(git(&driven.world, &["log", "--oneline"]).contains("auto"), "the hook commits");

    driven.send("wait");
    driven.is("thinking");
    driven.must(&["interrupt", &driven.session]);
    driven.is("interrupted");
    gate.open();

    driven.must(&["stop", &driven.session]);
    driven.is("session_ended");
    driven.must(&["resume", &driven.session]);
    driven.is_up();
    let label = &driven.card()["agentState"]["label"];
    assert_eq!(label, "Waiting for your next prompt", "it was prompted before");
    driven.send("the last one");
    driven.is("task_complete");
    assert!(driven.told_model().contains("It is written."), "it remembers");
    let usage = driven.must(&["usage", "--by", "session", "--json"]);
    assert!(usage.contains(&driven.session), "what it cost is counted: {usage}");
}

/// A command that runs into its limit has a result, and the provider, which refuses a call without
/// its output, takes the next request.
#[test]
fn a_command_past_its_limit_is_a_result() {
    let sleeps = json!({"command": "echo began; sleep 600", "timeout_ms": 300});
    let script = Script::new()
        .calls("bash", sleeps)
        .when_tool_returns("began", Reply::says("It took too long."))
        .strict();
    let driven = Driven::begin(world(script), &["native", "--policy", "yolo", "wait a bit"]);
    driven.is("task_complete");
    assert!(driven.card()["drive"]["lastError"].is_null());
    assert!(driven.told_model().contains("300 ms"), "{}", driven.told_model());
    assert_eq!(driven.world.rules_that_answered(), ["preset yolo"]);
}

/// Whoever looks at the run is told: the board's runs, its past, and the agent monitor's view.
#[test]
fn a_command_that_returns_an_error_says_so_everywhere() {
    let script = Script::new()
        .calls("bash", json!({"command": "echo no such rule; exit 4"}))
        .when_tool_returns("no such rule", Reply::says("There is no such rule."))
        .strict();
    let driven = Driven::begin(world(script), &["native", "--policy", "yolo", "build it"]);
    driven.is("task_complete");
    let path = format!("/api/live/sessions/{}", driven.session);
    let (status, detail) = ask(&driven.world, "GET", &path, &json!({}));
    assert_eq!(status, 200, "{detail:#}");
    assert_eq!(detail["runs"][0]["outcome"], "error", "{detail:#}");
    let notes = detail["attached"]["notes"].as_array().expect("notes");
    let run = notes.iter().find(|note| note["type"] == "tool_lifecycle").expect("a run");
    assert_eq!((&run["status"], &run["isError"]), (&json!("succeeded"), &json!(true)));
    assert_eq!(detail["monitorView"], json!({"state": "idle"}), "it is at rest");
}

/// A retry would get the same answer, so none is offered; the session takes another prompt.
#[test]
fn what_a_retry_cannot_mend_says_what_happened_and_offers_none() {
    let cases = [
        (404, "The provider doesn't have this model", "start a session with another one"),
        (413, "The conversation is too long for the model", "start a new session"),
    ];
    for (status, label, advice) in cases {
        let script = Script::new().replies(Reply::fails(status)).says("Now it fits.").strict();
        let driven = Driven::begin(world(script), &["native", "build it"]);
        let card = driven.is("error");
        let state = &card["agentState"];
        assert_eq!(state["label"], label, "{state:#}");
        let message = state["context"]["message"].as_str().expect("a message");
        assert!(message.contains(advice), "{message}");
        assert_eq!(card["capabilities"]["canRetry"], false, "{card:#}");
        driven.send("shorter");
        driven.is("task_complete");
    }
}

/// kill -9 while a tool runs: it ends with the daemon, and is not run again by itself.
#[test]
fn what_was_in_flight_is_interrupted_and_not_run_again() {
    let command = json!({"command": "echo ran >> runs; sleep 600"});
    let script = Script::new()
        .says("The word is heron.")
        .when_user_says("run it", Reply::calls("bash", command))
        .when_user_says("which word", Reply::says("Heron, I said."))
        .strict();
    let mut driven = Driven::begin(world(script), &["native", "--policy", "yolo", "a word"]);
    driven.is("task_complete");
    driven.send("run it");
    let runs = driven.file("runs");
    let ran = || std::fs::read_to_string(&runs).unwrap_or_default();
    eventually("the command to run", || (ran() == "ran\n").then_some(()));
    driven.world.kill_daemon();
    driven.world.serve();
    let card = driven.is("error,idle,interrupted,awaiting_input");
    assert_eq!(card["drive"]["lastError"]["code"], "interrupted", "{card:#}");
    driven.send("which word was it?");
    driven.is("task_complete");
    assert_eq!(ran(), "ran\n", "once");
    assert!(driven.told_model().contains("outcome unknown"));
}

/// The answer is lost with the daemon; a person asks for it again.
#[test]
fn an_answer_that_was_lost_is_asked_for_again_by_hand() {
    let gate = Gate::new();
    let script = Script::new()
        .replies(Reply::says("Never heard.").held_before_start(&gate))
        .says("Heard this time.")
        .strict();
    let mut driven = Driven::begin(world(script), &["native", "say something"]);
    driven.world.model.wait_for_request("the prompt", |_| true).expect("asked");
    driven.world.kill_daemon();
    gate.open();
    driven.world.serve();
    driven.is("error");
    let path = format!("/api/sessions/{}/retry", driven.session);
    assert_eq!(ask(&driven.world, "POST", &path, &json!({})).0, 200);
    driven.is("task_complete");
    assert_eq!(driven.world.model.requests().len(), 2);
}

#[test]
fn it_asks_the_operator_a_question() {
    let question = json!({"question": "Which database?", "options": ["SQLite", "Postgres"]});
    let script = Script::new()
        .calls("ask_user", question)
        .when_tool_returns("SQLite", Reply::says("SQLite it is."))
        .strict();
    let driven = Driven::begin(world(script), &["native", "choose"]);
    let request = driven.asks("ask_user");
    assert_eq!(driven.state(), "awaiting_input");
    driven.must(&["answer", &request, "SQLite"]);
    driven.is("task_complete");
}

#[test]
fn it_is_held_at_a_boundary_and_let_go_on() {
    let write = json!({"path": "made.txt", "content": "hello"});
    let gate = Gate::new();
    let script = Script::new()
        .replies(Reply::calls("write_file", write).held_before_end(&gate))
        .says("It is made.")
        .strict();
    let driven = Driven::begin(world(script), &["native", "--policy", "yolo", "make it"]);
    driven.is("thinking");
    let path = |what: &str| format!("/api/sessions/{}/{what}", driven.session);
    assert_eq!(ask(&driven.world, "POST", &path("pause"), &json!({})).0, 200);
    gate.open();
    driven.is("paused");
    driven.must(&["resume", &driven.session]);
    driven.is("task_complete");
    assert!(driven.file("made.txt").exists());
}

#[test]
fn yolo_releases_what_waits_and_a_repository_may_forbid_it() {
    let write = json!({"path": "made.txt", "content": "hello"});
    let script = Script::new().calls("write_file", write).says("It is made.").strict();
    let driven = Driven::begin(world(script), &["native", "make it"]);
    driven.asks("write_file");
    driven.must(&["yolo", &driven.session]);
    driven.is("task_complete");
    assert!(driven.file("made.txt").exists());
    driven.must(&["yolo", &driven.session, "off"]);

    let folder = driven.file(".gemini");
    std::fs::create_dir_all(&folder).expect("a folder");
    let settings = json!({"security": {"disableYoloMode": true}}).to_string();
    std::fs::write(folder.join("settings.json"), settings).expect("written");
    driven.world.model.then(Script::new().says("Seen."));
    driven.send("look again");
    driven.is("task_complete");
    let path = format!("/api/sessions/{}/yolo", driven.session);
    let (status, problem) = ask(&driven.world, "POST", &path, &json!({"on": true}));
    assert_eq!((status, &problem["code"]), (403, &json!("YOLO_FORBIDDEN")), "{problem}");
}

#[test]
fn a_hook_that_fails_holds_the_session_until_it_is_run_again() {
    let write = json!({"path": "made.txt", "content": "hello"});
    let script = Script::new().calls("write_file", write).says("It is made.").strict();
    let world = world(script);
    let hook = json!({"hooks": [{"name": "check", "command": ["test", "-e", "ready"]}]});
    config(&world, "hooks.json", &hook.to_string());
    let driven = Driven::begin(world, &["native", "--policy", "yolo", "make it"]);
    driven.is("error");
    let card = driven.card();
    assert_eq!(card["drive"]["lastError"]["code"], "hook_execution_failed", "{card:#}");
    std::fs::write(driven.file("ready"), "").expect("written");
    let run = card["drive"]["retry"]["run"].as_str().expect("a run").to_owned();
    let path = format!("/api/sessions/{}/hooks/{run}/retry", driven.session);
    assert_eq!(ask(&driven.world, "POST", &path, &json!({})).0, 200);
    driven.is("task_complete");
}

#[test]
fn hooks_that_cannot_be_read_are_told_and_the_session_works_without() {
    let write = json!({"path": "made.txt", "content": "hello"});
    let script = Script::new().calls("write_file", write).says("It is made.").strict();
    let mut world = world(script);
    config(&world, "hooks.json", r#"{"hooks": [{"name": "x", "comand": ["true"]}]}"#);
    world.serve();
    let folder = world.home.workspace().display().to_string();
    let said = world.must(&["run", "--folder", &folder, "--policy", "yolo", "native", "make it"]);
    assert!(said.contains("It is made."), "{said}");
    assert!(said.contains("no post-tool hook runs") && said.contains("hooks[0].command"), "{said}");
}

/// A repository whose `.git` never ends, and one that waits for a writer: the daemon answers, the
/// session works, and both hold after a restart.
#[test]
fn a_git_that_never_ends_does_not_hold_the_daemon_up() {
    for target in ["/dev/zero", "endless"] {
        let script = Script::new()
            .calls("bash", json!({"command": "echo works"}))
            .when_user_says("again", Reply::says("Once more."))
            .says("Done.");
        let world = world(script);
        let workspace = world.home.workspace();
        let made = std::process::Command::new("mkfifo").arg(workspace.join("endless")).status();
        assert!(made.expect("mkfifo runs").success());
        std::os::unix::fs::symlink(target, workspace.join(".git")).expect("linked");
        let mut driven = Driven::begin(world, &["native", "run it"]);
        let request = driven.asks("bash");
        driven.must(&["approve", &request]);
        driven.is("task_complete");
        driven.world.kill_daemon();
        driven.world.serve();
        driven.send("again");
        driven.is("task_complete");
    }
}

/// A home is no workspace of ours alone: the session says so, and its commands do not reach the
/// admin's token.
#[test]
fn a_session_in_the_home_says_what_lies_there_and_reads_no_token() {
    let command = json!({"command": "cat ~/.local/state/quarterdeck/tokens/admin; echo end"});
    let script = Script::new().calls("bash", command).says("Done.");
    let mut world = world(script);
    world.serve();
    let home = world.home.path().display().to_string();
    let session = world.must(&["run", "--detach", "--folder", &home, "native", "read it"]);
    let driven = Driven { session: session.trim().to_owned(), world };
    let request = driven.asks("bash");
    driven.must(&["approve", &request]);
    driven.is("task_complete");
    let tokens = driven.world.home.path().join(".local/state/quarterdeck/tokens");
    let token = std::fs::read_to_string(tokens.join("admin")).expect("a token");
    let told = driven.told_model();
    assert!(told.contains("end") && told.contains("Permission denied"), "{told}");
    assert!(!told.contains(token.trim()), "{told}");
    let path = format!("/api/live/sessions/{}", driven.session);
    let (_, detail) = ask(&driven.world, "GET", &path, &json!(null));
    let caution = "This folder contains settings of Quarterdeck";
    assert!(detail.to_string().contains(caution), "{detail}");
}

/// Where the operator opens sockets to commands, ours stays closed to them.
#[test]
fn a_command_that_may_use_sockets_cannot_use_ours() {
    let ask = r#"perl -MIO::Socket::UNIX -e '
        $s = IO::Socket::UNIX->new(Peer => "$ENV{HOME}/.local/state/quarterdeck/qd.sock") or die;
        print $s "GET /api/live/sessions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
        print <$s>'"#;
    let script = Script::new().calls("bash", json!({"command": ask})).says("Done.");
    let world = world(script);
    let path = world.home.path().join(".config/quarterdeck/config.toml");
    let settings = std::fs::read_to_string(&path).expect("settings");
    let opened = format!("{settings}\n[sandbox]\nlocal_sockets = \"allowed\"\n");
    config(&world, "config.toml", &opened);
    let driven = Driven::begin(world, &["native", "ask the daemon"]);
    let request = driven.asks("bash");
    driven.must(&["approve", &request]);
    driven.is("task_complete");
    let told = driven.told_model();
    assert!(told.contains("403") && told.contains("confined"), "{told}");
    assert!(!told.contains("agentState"), "{told}");
}
