//! Claude Code: its screen and its registry file (`~/.claude/sessions/PID.json`) are the
//! witnesses. Everything here is knowable without hooks too: the registry says who waits, the
//! transcript says for what.

mod acting;
mod background;
mod by_hand;
mod elsewhere;
mod hidden_dialog;
mod hooked;
mod ruling;
mod stopped;
mod two_terminals;

use qd_testbed::{Client, Gate, Key, Reply, Script, Terminal};
use serde_json::{Value, json};

use crate::world::{World, eventually, group_and_state};

const DIALOG: &str = "Do you want to proceed?";

/// Whether the client reports by hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hooks {
    Installed,
    Missing,
}

use Hooks::{Installed, Missing};

/// A terminal with Claude Code in it, the session it is in, and the daemon.
struct Claude {
    terminal: Terminal,
    world: World,
    /// Its folder in the home.
    config: &'static str,
}

impl Claude {
    /// The daemon was there first.
    fn observed(hooks: Hooks, script: Script) -> Self {
        Self::started(hooks, World::served(script), &[])
    }

    /// The daemon is not there yet.
    fn alone(hooks: Hooks, script: Script) -> Self {
        Self::started(hooks, World::new(script), &[])
    }

    fn started(hooks: Hooks, world: World, arguments: &[&str]) -> Self {
        let client = client(&world);
        if hooks == Installed {
            world.install_hooks("claude-code", &client);
        }
        let terminal = client.arguments(arguments.iter().copied()).in_terminal().unwrap();
        Self { terminal, world, config: ".claude" }
    }

    /// What the client itself says about itself.
    fn registry(&self) -> Value {
        let pid = self.terminal.pid().expect("it runs");
        let file = self.world.home.path().join(format!("{}/sessions/{pid}.json", self.config));
        eventually("its registry file", || {
            serde_json::from_str(&std::fs::read_to_string(&file).ok()?).ok()
        })
    }

    fn session(&self) -> String {
        self.registry()["sessionId"].as_str().expect("an id").to_owned()
    }

    /// What it has written of its session so far.
    fn transcript(&self) -> String {
        let folder = self.world.home.workspace().display().to_string();
        let folder = folder.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
        let file = format!("{}/projects/{folder}/{}.jsonl", self.config, self.session());
        std::fs::read_to_string(self.world.home.path().join(file)).unwrap_or_default()
    }

    /// Waits until these words are in its transcript: what its screen shows is not yet written.
    fn writes(&self, words: &str) {
        eventually(&format!("{words:?} in its transcript"), || {
            self.transcript().contains(words).then_some(())
        });
    }

    fn submit(&self, prompt: &str) {
        self.terminal.submit(prompt).unwrap();
    }

    /// A dialog for this command stands on the screen, and the card shows the command.
    fn asks_for_permission(&self, command: &str) -> Value {
        self.terminal.wait_for_text(DIALOG).unwrap();
        self.agree("waiting", "needs-permission");
        let session = self.session();
        // Without hooks the transcript tells for what, a moment after the registry.
        eventually("what it wants to run", || {
            let cards = self.world.status();
            let card = cards.into_iter().find(|card| card["vendorId"] == *session)?;
            let request = card["requests"].as_array()?.first()?.clone();
            (request["tool"] == "Bash" && request["input"]["command"] == command).then_some(card)
        })
    }

    /// Both say so: the registry file and the daemon.
    fn agree(&self, status: &str, until: &str) -> Value {
        eventually(&format!("{status} in the registry"), || {
            (self.registry()["status"] == status).then_some(())
        });
        self.world.wait(&self.session(), until)
    }
}

fn client(world: &World) -> Client {
    Client::claude_code(&world.home, &world.model).unwrap()
}

fn touch(file: &str) -> Value {
    json!({"command": format!("touch {file}"), "description": "Make a file"})
}

fn a_turn_with_a_tool_is_delivered(hooks: Hooks) {
    let gate = Gate::new();
    let script = Script::new()
        .replies(Reply::calls("Bash", json!({"command": "ls", "description": "List"})))
        .replies(Reply::says("It is all here.").held_before_start(&gate));
    let claude = Claude::observed(hooks, script);
    claude.agree("idle", "idle");
    claude.submit("look around");
    claude.agree("busy", "autonomous");
    gate.open();
    claude.terminal.wait_for_text("It is all here.").unwrap();
    let card = claude.agree("idle", "task-complete");
    assert_eq!(group_and_state(&card), "delivered/task_complete");
    let shown = claude.world.shown(&claude.session());
    assert_eq!(shown.iter().filter(|state| *state == "idle").count(), 1, "{shown:?}");
    assert!(!shown.contains(&"needs_permission".into()), "{shown:?}");
}

#[test]
fn a_turn_with_a_tool_is_delivered_with_hooks() {
    a_turn_with_a_tool_is_delivered(Installed);
}

#[test]
fn a_turn_with_a_tool_is_delivered_without_hooks() {
    a_turn_with_a_tool_is_delivered(Missing);
}

/// A permission that is granted, then one that is refused by Esc.
fn a_permission_waits_and_is_answered(hooks: Hooks) {
    let gate = Gate::new();
    let script = Script::new()
        .calls("Bash", touch("made"))
        .replies(Reply::says("The file is there.").held_before_start(&gate))
        .calls("Bash", touch("other"));
    let claude = Claude::observed(hooks, script);
    claude.submit("make a file");
    let card = claude.asks_for_permission("touch made");
    assert_eq!(card["agentState"]["label"], "Needs permission: Bash");
    claude.terminal.press_until_gone(Key::Enter, DIALOG).unwrap();
    claude.agree("busy", "autonomous");
    gate.open();
    claude.terminal.wait_for_text("The file is there.").unwrap();
    claude.agree("idle", "task-complete");
    claude.submit("make another");
    claude.asks_for_permission("touch other");
    claude.terminal.press_until_gone(Key::Escape, DIALOG).unwrap();
    // No hook tells of it: the registry and the transcript do.
    let card = claude.agree("idle", "interrupted");
    assert_eq!(card["requests"], json!([]));
}

#[test]
fn a_permission_waits_and_is_answered_with_hooks() {
    a_permission_waits_and_is_answered(Installed);
}

#[test]
fn a_permission_waits_and_is_answered_without_hooks() {
    a_permission_waits_and_is_answered(Missing);
}

fn who_comes_late_sees_the_permission(hooks: Hooks) {
    let script = Script::new().calls("Bash", touch("made")).says("The file is there.");
    let mut claude = Claude::alone(hooks, script);
    claude.submit("make a file");
    claude.terminal.wait_for_text(DIALOG).unwrap();
    claude.world.serve();
    claude.asks_for_permission("touch made");
    // And who comes back after kill -9.
    claude.world.kill_daemon();
    claude.world.serve();
    claude.asks_for_permission("touch made");
    claude.terminal.press_until_gone(Key::Enter, DIALOG).unwrap();
    claude.terminal.wait_for_text("The file is there.").unwrap();
    claude.agree("idle", "task-complete");
}

#[test]
fn who_comes_late_sees_the_permission_with_hooks() {
    who_comes_late_sees_the_permission(Installed);
}

#[test]
fn who_comes_late_sees_the_permission_without_hooks() {
    who_comes_late_sees_the_permission(Missing);
}

/// Its hooks on a request and on a turn's end wait where no daemon is to release them; the terminal
/// does not notice, and they end with it.
#[test]
#[cfg(target_os = "linux")]
fn hooks_that_wait_are_in_nobodys_way_and_end_with_their_client() {
    let script = Script::new().calls("Bash", touch("made")).says("The file is there.");
    let claude = Claude::alone(Installed, script);
    claude.submit("make a file");
    claude.terminal.wait_for_text(DIALOG).unwrap();
    let waiting = |count| {
        eventually(&format!("{count} hooks that wait"), || {
            (waiting_hooks(&claude.world) == count).then_some(())
        });
    };
    waiting(1);
    claude.terminal.press_until_gone(Key::Enter, DIALOG).unwrap();
    claude.terminal.wait_for_text("The file is there.").unwrap();
    assert!(claude.world.home.workspace().join("made").exists());
    eventually("an idle client", || (claude.registry()["status"] == "idle").then_some(()));
    // The client does not end the first one, and starts the second in the background.
    waiting(2);
    let pid = claude.terminal.pid().expect("it runs");
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).expect("a process");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    waiting(0);
}

/// Forwarders of this home that wait.
#[cfg(target_os = "linux")]
fn waiting_hooks(world: &World) -> usize {
    let home = format!("HOME={}", world.home.path().display());
    let is_of_home = |pid: &str| {
        let read = |file| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let (words, variables) = (read("cmdline"), read("environ"));
        let mut words = words.split(|byte| *byte == 0);
        words.next().is_some_and(|program| program.ends_with(b"/qd-hook"))
            && words.next() == Some(b"wait")
            && variables.split(|byte| *byte == 0).any(|variable| variable == home.as_bytes())
    };
    let entries = std::fs::read_dir("/proc").expect("processes");
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(|name| is_of_home(name)).count()
}

fn question() -> Value {
    json!({"questions": [{
        "question": "Which database?", "header": "Database", "multiSelect": false,
        "options": [
            {"label": "SQLite", "description": "One file"},
            {"label": "Postgres", "description": "A server"},
        ],
    }]})
}

/// A question that is answered, then one that is dismissed.
fn a_question_waits_and_is_answered(hooks: Hooks) {
    let script = Script::new()
        .calls("AskUserQuestion", question())
        .says("SQLite it is.")
        .calls("AskUserQuestion", question());
    let claude = Claude::observed(hooks, script);
    claude.submit("choose one");
    claude.terminal.wait_for_text("Which database?").unwrap();
    let card = claude.agree("waiting", "awaiting-input");
    assert_eq!(group_and_state(&card), "needs_you/awaiting_input");
    claude.terminal.press_until_gone(Key::Enter, "Enter to select").unwrap();
    claude.terminal.wait_for_text("SQLite it is.").unwrap();
    claude.agree("idle", "task-complete");
    claude.submit("choose again");
    claude.terminal.wait_for_text("Enter to select").unwrap();
    claude.agree("waiting", "awaiting-input");
    claude.terminal.press_until_gone(Key::Escape, "Enter to select").unwrap();
    let card = claude.agree("idle", "interrupted,idle");
    assert_eq!(card["requests"], json!([]));
}

#[test]
fn a_question_waits_and_is_answered_with_hooks() {
    a_question_waits_and_is_answered(Installed);
}

#[test]
fn a_question_waits_and_is_answered_without_hooks() {
    a_question_waits_and_is_answered(Missing);
}

#[test]
fn who_comes_late_sees_the_question() {
    let script = Script::new().calls("AskUserQuestion", question()).says("SQLite it is.");
    let mut claude = Claude::alone(Missing, script);
    claude.submit("choose one");
    claude.terminal.wait_for_text("Which database?").unwrap();
    claude.world.serve();
    claude.agree("waiting", "awaiting-input");
    claude.terminal.press_until_gone(Key::Enter, "Enter to select").unwrap();
    claude.terminal.wait_for_text("SQLite it is.").unwrap();
    claude.agree("idle", "task-complete");
}

fn a_plan_waits_and_is_approved(hooks: Hooks) {
    let script = Script::new()
        .calls("ExitPlanMode", json!({"plan": "1. Sail home."}))
        .says("We sailed home.");
    let claude = Claude::observed(hooks, script);
    // manual → accept edits → plan.
    for mode in ["accept edits on", "plan mode on"] {
        claude.terminal.press(Key::BackTab).unwrap();
        claude.terminal.wait_for_text(mode).unwrap();
    }
    claude.submit("plan the way home");
    claude.terminal.wait_for_text("Exit plan mode?").unwrap();
    let card = claude.agree("waiting", "awaiting-approval");
    assert_eq!(group_and_state(&card), "needs_you/awaiting_approval");
    claude.terminal.press_until_gone(Key::Enter, "Exit plan mode?").unwrap();
    claude.terminal.wait_for_text("We sailed home.").unwrap();
    claude.agree("idle", "task-complete");
}

#[test]
fn a_plan_waits_and_is_approved_with_hooks() {
    a_plan_waits_and_is_approved(Installed);
}

#[test]
fn a_plan_waits_and_is_approved_without_hooks() {
    a_plan_waits_and_is_approved(Missing);
}

/// Esc while the model speaks, then while a tool runs: neither fires a hook.
fn esc_is_seen(hooks: Hooks) {
    let gate = Gate::new();
    let script = Script::new()
        .replies(Reply::says("This goes on for ever.").held_before_end(&gate))
        .calls("Bash", json!({"command": "mkfifo pipe && cat pipe", "description": "Wait"}));
    let claude = Claude::observed(hooks, script);
    claude.submit("talk to me");
    claude.terminal.wait_for_text("This goes on for ever.").unwrap();
    claude.agree("busy", "thinking");
    claude.terminal.press(Key::Escape).unwrap();
    claude.terminal.wait_for_text("Interrupted").unwrap();
    claude.agree("idle", "interrupted");
    claude.submit("sleep well");
    claude.asks_for_permission("mkfifo pipe && cat pipe");
    claude.terminal.press_until_gone(Key::Enter, DIALOG).unwrap();
    claude.agree("busy", "acting");
    claude.terminal.press(Key::Escape).unwrap();
    claude.agree("idle", "interrupted");
}

#[test]
fn esc_is_seen_with_hooks() {
    esc_is_seen(Installed);
}

#[test]
fn esc_is_seen_without_hooks() {
    esc_is_seen(Missing);
}

/// kill -9 leaves the registry file as it was; the process is watched. Then it is resumed.
fn kill_9_ends_it_and_it_is_resumed(hooks: Hooks) {
    let script = Script::new().calls("Bash", touch("made")).then_always(Reply::says("Well again."));
    let mut claude = Claude::observed(hooks, script);
    claude.submit("make a file");
    claude.asks_for_permission("touch made");
    let session = claude.session();
    // Only what it has written can be resumed.
    claude.writes("touch made");
    claude.terminal.kill().unwrap();
    assert_eq!(claude.registry()["status"], "waiting", "it has the last word nobody believes");
    let card = claude.world.wait(&session, "session-ended");
    assert_eq!(
        (group_and_state(&card), &card["requests"]),
        ("delivered/session_ended".into(), &json!([]))
    );
    claude.terminal =
        client(&claude.world).arguments(["--resume", &session]).in_terminal().unwrap();
    assert_eq!(claude.session(), session);
    claude.agree("idle", "idle,interrupted,task-complete");
    claude.submit("how are you");
    claude.terminal.wait_for_text("Well again.").unwrap();
    claude.agree("idle", "task-complete");
    assert_eq!(claude.world.status().len(), 1, "{}", claude.world.picture());
}

#[test]
fn kill_9_ends_it_and_it_is_resumed_with_hooks() {
    kill_9_ends_it_and_it_is_resumed(Installed);
}

#[test]
fn kill_9_ends_it_and_it_is_resumed_without_hooks() {
    kill_9_ends_it_and_it_is_resumed(Missing);
}

/// `/clear` ends the session and not the process.
fn clear_begins_another_session(hooks: Hooks) {
    let claude = Claude::observed(hooks, Script::new().then_always(Reply::says("Good evening.")));
    claude.submit("say good evening");
    claude.terminal.wait_for_text("Good evening.").unwrap();
    claude.agree("idle", "task-complete");
    let before = claude.session();
    claude.submit("/clear");
    let after = eventually("another session", || Some(claude.session()).filter(|id| *id != before));
    claude.world.wait(&before, "session-ended");
    claude.world.wait(&after, "idle");
    claude.submit("say it again");
    claude.terminal.wait_for_text("Good evening.").unwrap();
    claude.agree("idle", "task-complete");
    assert_eq!(claude.world.state(&before), "session_ended");
}

#[test]
fn clear_begins_another_session_with_hooks() {
    clear_begins_another_session(Installed);
}

#[test]
fn clear_begins_another_session_without_hooks() {
    clear_begins_another_session(Missing);
}

/// The service fails for good; the next turn goes well.
fn a_failed_service_needs_you(hooks: Hooks) {
    let script = Script::new().replies(Reply::fails(529)).replies(Reply::fails(529));
    let claude = Claude::observed(hooks, script.then_always(Reply::says("Well again.")));
    claude.submit("are you there?");
    claude.terminal.wait_for_text("API Error").unwrap();
    let card = claude.agree("idle", "server-error");
    assert_eq!(group_and_state(&card), "needs_you/server_error");
    claude.submit("and now?");
    claude.terminal.wait_for_text("Well again.").unwrap();
    claude.agree("idle", "task-complete");
}

#[test]
fn a_failed_service_needs_you_with_hooks() {
    a_failed_service_needs_you(Installed);
}

#[test]
fn a_failed_service_needs_you_without_hooks() {
    a_failed_service_needs_you(Missing);
}

/// A subagent works in the background; its request comes after the main turn's end.
fn a_subagent_asks_for_permission(hooks: Hooks) {
    let task = json!({"description": "Make a file", "prompt": "subagent-task", "subagent_type": "general-purpose"});
    let gate = Gate::new();
    let asks = Reply::calls("Bash", touch("made")).held_before_start(&gate);
    let script = Script::new()
        .when_user_says("send somebody", Reply::calls("Agent", task))
        .when_user_says("subagent-task", asks)
        .when_tool_returns("launched", Reply::says("Somebody is on it."))
        .when_user_says("task-notification", Reply::says("Somebody made it."))
        .then_always(Reply::says("Made."));
    let claude = Claude::observed(hooks, script);
    claude.submit("send somebody");
    claude.terminal.wait_for_text("Somebody is on it.").unwrap();
    claude.world.wait(&claude.session(), "delegating");
    gate.open();
    claude.terminal.wait_for_text(DIALOG).unwrap();
    claude.agree("waiting", "needs-permission");
    // Without hooks a subagent is known by its own transcript, a moment after the dialog.
    eventually("the subagent", || {
        let cards = claude.world.status();
        (cards[0]["subagents"].as_array()?.len() == 1).then_some(())
    });
    claude.terminal.press_until_gone(Key::Enter, DIALOG).unwrap();
    claude.terminal.wait_for_text("Somebody made it.").unwrap();
    let card = claude.agree("idle", "task-complete");
    assert_eq!(card["requests"], json!([]));
}

#[test]
fn a_subagent_asks_for_permission_with_hooks() {
    a_subagent_asks_for_permission(Installed);
}

#[test]
fn a_subagent_asks_for_permission_without_hooks() {
    a_subagent_asks_for_permission(Missing);
}

/// `-p` asks nobody: what it may not do is denied, and no card calls a person.
#[test]
fn a_print_run_calls_nobody_and_ends() {
    let world = World::served(Script::new().calls("Bash", touch("made")).says("I may not."));
    let client = client(&world);
    world.install_hooks("claude-code", &client);
    let mut print =
        client.arguments(["-p", "make a file", "--output-format", "json"]).headless().unwrap();
    print.close_input();
    print.wait_for_exit().unwrap();
    let result: Value = serde_json::from_str(&print.lines().join("")).expect("a result");
    let session = result["session_id"].as_str().expect("an id");
    assert_eq!(result["permission_denials"].as_array().map(Vec::len), Some(1), "{result:#}");
    world.wait(session, "session-ended");
    let shown = world.shown(session);
    assert!(!shown.contains(&"needs_permission".into()), "{shown:?}");
    assert!(!home_has(&world, "made"));
}

fn home_has(world: &World, file: &str) -> bool {
    world.home.workspace().join(file).exists()
}
