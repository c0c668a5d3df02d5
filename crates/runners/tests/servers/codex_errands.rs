//! Acting on a terminal of Codex through its daemon. The terminal, the files and the model are the
//! witnesses; after each errand the terminal must go on.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use qd_broker::Card;
use qd_broker::desk::{Answerer, Expecting};
use qd_session::decision::{Answer, Decision, Scope};
use qd_session::id::CallId;
use qd_sources::codex_daemon::errand::{Errand, Task};
use qd_sources::errand::ErrandOutcome;
use qd_testbed::{Client, Gate, Home, Key, Model, Reply, Result, Script, Terminal};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::board::{Board, PATIENCE, Source};
use crate::codex::{DIALOG, observed};

const DONE: ErrandOutcome = ErrandOutcome::Done { detail: None };

/// A terminal, and its daemon as we see it.
struct World {
    home: Home,
    model: Model,
    board: Board,
    codex: Terminal,
}

impl World {
    fn new(arguments: &[&str]) -> Result<Self> {
        let home = Home::new()?;
        let model = Model::start(Script::new())?;
        let board = observed(&home);
        let client = Client::codex(&home, &model)?.arguments(arguments.iter().copied());
        let codex = client.in_terminal()?;
        Ok(Self { home, model, board, codex })
    }

    fn made(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// What the model calls to write outside the workspace.
    fn wants(&self, name: &str) -> Reply {
        let input = json!({
            "cmd": format!("touch {}", self.made(name).display()),
            "sandbox_permissions": "require_escalated",
            "justification": "Need to write outside the workspace",
        });
        Reply::calls("exec_command", input)
    }

    /// Asks for a file, and waits until the operator is asked.
    async fn ask_for(&mut self, name: &str, then: Script) -> Result<(String, CallId)> {
        self.model.then(Script::new().replies(self.wants(name)));
        self.model.then(then);
        self.codex.submit(&format!("make the file {name}"))?;
        self.codex.wait_for_text(DIALOG)?;
        let thread = self.thread("needs_permission").await;
        let call = self.open_call(&thread).await;
        Ok((thread, call))
    }

    async fn thread(&mut self, state: &str) -> String {
        let thread = self.board.until_state(state).await.vendor_id.to_string();
        assert!(self.holds(&thread));
        thread
    }

    /// Until the turn that was begun last is over, not only the one before it.
    async fn rests(&mut self) {
        self.board.until_state("thinking").await;
        self.board.until_state("idle").await;
    }

    /// The call without a result, by the thread's rollout.
    async fn open_call(&self, thread: &str) -> CallId {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let rollout = rollout(&self.home, thread).unwrap_or_default();
            let payloads: Vec<Value> = rollout
                .lines()
                .filter_map(|line| serde_json::from_str::<Value>(line).ok())
                .map(|line| line["payload"].clone())
                .collect();
            let of = |kind: &str| {
                let its = payloads.iter().filter(|payload| payload["type"] == *kind);
                its.filter_map(|payload| payload["call_id"].as_str()).collect::<Vec<_>>()
            };
            let over = of("function_call_output");
            if let Some(open) = of("function_call").into_iter().find(|call| !over.contains(call)) {
                return CallId::new(open);
            }
            assert!(Instant::now() < deadline, "no open call in {rollout}");
            sleep(Duration::from_millis(20)).await;
        }
    }

    fn holds(&self, thread: &str) -> bool {
        let Source::Codex(daemon) = &self.board.source else { unreachable!() };
        daemon.holds(thread)
    }

    async fn carry(&self, thread: &str, what: Task) -> ErrandOutcome {
        let Source::Codex(daemon) = &self.board.source else { unreachable!() };
        daemon.carry(Errand { thread: thread.to_owned(), what }).await
    }

    async fn decide(&self, thread: &str, call: &CallId, decision: Decision) -> ErrandOutcome {
        self.carry(thread, Task::Answer { call: call.clone(), decision, by: Answerer::Person })
            .await
    }

    /// The terminal takes a prompt and shows the answer.
    fn goes_on(&self, word: &str) -> Result<()> {
        let said = format!("Heard: {word}.");
        self.model.then(Script::new().says(&said));
        self.codex.submit(&format!("say {word}"))?;
        self.codex.wait_for_text(&said)?;
        Ok(())
    }
}

fn rollout(home: &Home, thread: &str) -> Option<String> {
    let mut folders = vec![home.path().join(".codex/sessions")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).ok()?.flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().contains(thread) {
                return fs::read_to_string(path).ok();
            }
        }
    }
    None
}

fn says(text: &str) -> Script {
    Script::new().says(text)
}

fn allow(scope: Scope) -> Decision {
    Decision::Allow { input: None, scope }
}

fn deny(interrupt: bool) -> Decision {
    Decision::Deny { message: None, interrupt }
}

fn refused(outcome: ErrandOutcome) -> String {
    match outcome {
        ErrandOutcome::Refused { why } => why,
        other @ (ErrandOutcome::Done { .. }
        | ErrandOutcome::Unreachable { .. }
        | ErrandOutcome::Lost) => {
            panic!("not refused: {other:?}")
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_permission_is_given_or_refused_and_the_terminal_goes_on() -> Result<()> {
    let mut world = World::new(&[])?;
    let (thread, call) = world.ask_for("allowed", says("The file is there.")).await?;
    let changed = Decision::Allow { input: Some(json!({"command": "ls"})), scope: Scope::Once };
    assert_eq!(
        refused(world.decide(&thread, &call, changed).await),
        "Codex takes no such answer to this"
    );
    assert!(world.codex.screen().contains(DIALOG), "nothing was changed");
    assert_eq!(world.decide(&thread, &call, allow(Scope::Once)).await, DONE);
    world.codex.wait_for_text("The file is there.")?;
    assert!(!world.codex.screen().contains(DIALOG));
    assert!(world.made("allowed").exists());
    assert_eq!(
        refused(world.decide(&thread, &call, allow(Scope::Once)).await),
        "it is not open any more"
    );
    world.board.until_state("idle").await;

    let (thread, call) = world.ask_for("denied", says("Then I leave it.")).await?;
    assert_eq!(world.decide(&thread, &call, deny(false)).await, DONE);
    world.codex.wait_for_text("Then I leave it.")?;
    assert!(!world.made("denied").exists());
    world.board.until_state("idle").await;

    let (thread, call) = world.ask_for("stopped", Script::new()).await?;
    assert_eq!(world.decide(&thread, &call, deny(true)).await, DONE);
    world.codex.wait_for_no_text(DIALOG)?;
    world.codex.wait_for_text("interrupted")?;
    assert!(!world.made("stopped").exists());
    world.goes_on("tea")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rule_is_kept_where_codex_offers_one() -> Result<()> {
    let mut world = World::new(&[])?;
    let (thread, call) = world.ask_for("one", says("The first is there.")).await?;
    assert_eq!(world.decide(&thread, &call, allow(Scope::Always)).await, DONE);
    world.codex.wait_for_text("The first is there.")?;
    assert!(world.made("one").exists());
    // The same command is not asked about again.
    fs::remove_file(world.made("one")).expect("it is there");
    world.model.then(Script::new().replies(world.wants("one")).says("It is there again."));
    world.codex.submit("make it again")?;
    world.codex.wait_for_text("It is there again.")?;
    assert!(world.made("one").exists());
    Ok(())
}

/// Only the daemon is heard here, as where a script of code mode calls and no hooks are installed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_only_the_daemon_tells_of_is_looked_into_and_can_be_answered() -> Result<()> {
    let mut world = World::new(&[])?;
    world.board.is_curious = true;
    world.model.then(Script::new().replies(world.wants("made")).says("The file is there."));
    world.codex.submit("make the file")?;
    world.codex.wait_for_text(DIALOG)?;
    let answerable = |card: &Card| card.requests.iter().any(|one| one.way == Some("codex"));
    world.board.until("a way", |board| board.cards().iter().any(answerable)).await;
    let card = world.board.cards().into_iter().find(answerable).expect("it was there");
    let [request] = &card.requests[..] else { panic!("{:?}", card.requests) };
    let shown = request.input.as_ref().expect("what is asked").to_string();
    assert!(shown.contains("touch") && shown.contains("made"), "{shown}");
    assert!(world.codex.screen().contains(DIALOG), "a look changes nothing");
    let call = CallId::new(request.request_id.as_str());
    assert_eq!(world.decide(&card.vendor_id, &call, allow(Scope::Once)).await, DONE);
    world.codex.wait_for_text("The file is there.")?;
    assert!(world.made("made").exists());
    world.board.until_state("idle").await;
    assert!(world.board.cards().iter().all(|card| card.requests.is_empty()));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_after_the_terminal_is_refused() -> Result<()> {
    let mut world = World::new(&[])?;
    let gate = Gate::new();
    let later = Reply::says("The file is there.").held_before_end(&gate);
    world.model.then(Script::new().replies(world.wants("made")).replies(later));
    world.codex.submit("make the file")?;
    world.codex.wait_for_text(DIALOG)?;
    let thread = world.thread("needs_permission").await;
    let call = world.open_call(&thread).await;
    world.codex.press_until_gone(Key::Enter, DIALOG)?;
    // The turn still runs.
    world.codex.wait_for_text("The file is there.")?;
    let late = world.decide(&thread, &call, deny(true)).await;
    assert_eq!(refused(late), "it is not open any more");
    gate.open();
    assert!(world.made("made").exists());
    world.board.until_state("idle").await;
    let late = world.decide(&thread, &call, deny(true)).await;
    assert_eq!(refused(late), "it is not open any more");
    world.goes_on("tea")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_is_answered() -> Result<()> {
    let mut world = World::new(&[])?;
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
    world.model.then(script);
    world.codex.submit("/plan")?;
    world.codex.wait_for_text("Plan mode (shift")?;
    world.codex.submit("choose a database")?;
    world.codex.wait_for_text("Which database?")?;
    let thread = world.thread("awaiting_input").await;
    let call = world.open_call(&thread).await;
    let no_answer = world.decide(&thread, &call, allow(Scope::Once)).await;
    assert_eq!(refused(no_answer), "Codex takes no such answer to this");
    let answers = vec![Answer { question: "db".into(), values: vec!["Postgres".into()] }];
    assert_eq!(world.decide(&thread, &call, Decision::Answer { answers }).await, DONE);
    world.codex.wait_for_text("Postgres it is.")?;
    world.goes_on("tea")
}

/// The name of the last turn, by the thread's rollout.
fn last_turn(home: &Home, thread: &str) -> String {
    let rollout = rollout(home, thread).expect("a rollout");
    let lines = rollout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let started = lines.filter(|line| line["payload"]["type"] == "task_started");
    let mut turns =
        started.filter_map(|line| line["payload"]["turn_id"].as_str().map(str::to_owned));
    turns.next_back().expect("a turn")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_is_sent_back_with_a_sentence_and_the_next_one_is_done() -> Result<()> {
    let mut world = World::new(&[])?;
    let plans = |plan: &str| {
        Reply::says(format!("<proposed_plan>\n# {plan}\n\n- one step\n</proposed_plan>"))
    };
    let touch = json!({ "cmd": "touch done-by-plan" });
    let script = Script::new()
        .when_user_says("plan a file", plans("First plan"))
        .when_user_says("smaller, please", plans("Second plan"))
        .when_user_says("Implement the plan", Reply::calls("exec_command", touch))
        .says("It is done.");
    world.model.then(script);
    world.codex.submit("/plan")?;
    world.codex.wait_for_text("Plan mode (shift")?;
    world.codex.submit("plan a file")?;
    world.codex.wait_for_text("Implement this plan?")?;
    let thread = world.thread("idle").await;
    let judge = |turn: &str, decision| Task::JudgePlan { turn: turn.to_owned(), decision };
    let (first, approve) = (last_turn(&world.home, &thread), Decision::ApprovePlan { mode: None });
    let reject = Decision::RejectPlan { feedback: Some("smaller, please".into()) };
    assert_eq!(world.carry(&thread, judge(&first, reject)).await, DONE);
    world.board.until_state("thinking").await;
    world.board.until_state("idle").await;
    world.codex.wait_for_text("Second plan")?;
    let stale = world.carry(&thread, judge(&first, approve.clone())).await;
    assert_eq!(refused(stale), "it is not open any more");
    let second = last_turn(&world.home, &thread);
    assert_eq!(world.carry(&thread, judge(&second, approve)).await, DONE);
    world.codex.wait_for_text("It is done.")?;
    assert!(world.home.workspace().join("done-by-plan").exists(), "it left plan mode");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_says_why_into_the_turn() -> Result<()> {
    let mut world = World::new(&[])?;
    let said = Reply::says("In the workspace then.");
    let script = Script::new().when_user_says("use the workspace", said);
    let (thread, call) = world.ask_for("denied", script).await?;
    let message = Some("use the workspace".to_owned());
    let denied = Decision::Deny { message, interrupt: false };
    assert_eq!(world.decide(&thread, &call, denied).await, DONE);
    world.codex.wait_for_text("In the workspace then.")?;
    assert!(!world.made("denied").exists());
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_prompted_steered_and_interrupted() -> Result<()> {
    let mut world = World::new(&[])?;
    world.goes_on("tea")?;
    let thread = world.thread("idle").await;
    assert_eq!(refused(world.carry(&thread, Task::Interrupt).await), "nothing runs there");

    let gate = Gate::new();
    let held = Reply::says("I am at it.").held_before_end(&gate);
    let script = Script::new()
        .when_user_says("from afar", held)
        .when_user_says("and quickly", Reply::says("Quickly then."));
    world.model.then(script);
    let prompt = |text: &str| Task::Prompt { text: text.to_owned() };
    assert_eq!(world.carry(&thread, prompt("work, from afar")).await, DONE);
    world.codex.wait_for_text("work, from afar")?;
    world.codex.wait_for_text("I am at it.")?;
    assert_eq!(world.carry(&thread, prompt("and quickly")).await, DONE);
    gate.open();
    world.codex.wait_for_text("Quickly then.")?;
    world.rests().await;

    let gate = Gate::new();
    world.model.then(Script::new().replies(Reply::says("For ever.").held_before_end(&gate)));
    assert_eq!(world.carry(&thread, prompt("talk on")).await, DONE);
    world.codex.wait_for_text("For ever.")?;
    assert_eq!(world.carry(&thread, Task::Interrupt).await, DONE);
    world.codex.wait_for_text("interrupted")?;
    gate.open();

    // An interrupt takes the question with it.
    let (thread, _) = world.ask_for("stopped", Script::new()).await?;
    assert_eq!(world.carry(&thread, Task::Interrupt).await, DONE);
    world.codex.wait_for_no_text(DIALOG)?;
    assert!(!world.made("stopped").exists());
    world.goes_on("coffee")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_asked_from_the_next_turn_on_until_it_is_ended() -> Result<()> {
    let mut world = World::new(&[])?;
    let (thread, call) = world.ask_for("first", says("The first is there.")).await?;
    let ErrandOutcome::Done { detail: before } = world.carry(&thread, Task::Yolo).await else {
        panic!("it is taken while somebody is asked");
    };
    assert!(before.is_some());
    assert_eq!(world.carry(&thread, Task::Yolo).await, DONE, "it is so already");
    // What waits, waits on.
    assert!(world.codex.screen().contains(DIALOG));
    assert_eq!(world.decide(&thread, &call, allow(Scope::Once)).await, DONE);
    world.codex.wait_for_text("The first is there.")?;
    world.board.until_state("idle").await;

    // Who may do everything and asks to leave the sandbox nevertheless is refused by Codex.
    let touch = json!({ "cmd": format!("touch {}", world.made("second").display()) });
    world.model.then(Script::new().calls("exec_command", touch).says("The second is there."));
    world.codex.submit("make the file second")?;
    world.codex.wait_for_text("The second is there.")?;
    assert!(world.made("second").exists());
    world.rests().await;

    let expecting = Expecting::Yolo;
    let end = Task::EndYolo { before, expecting };
    assert_eq!(world.carry(&thread, end.clone()).await, DONE);
    assert_eq!(refused(world.carry(&thread, end).await), "it is not in YOLO");
    let (_, call) = world.ask_for("third", says("The third is there.")).await?;
    assert!(!world.made("third").exists());
    assert_eq!(world.decide(&thread, &call, allow(Scope::Once)).await, DONE);
    world.codex.wait_for_text("The third is there.")?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thread_that_is_not_loaded_is_left_alone() -> Result<()> {
    let mut world = World::new(&[])?;
    world.goes_on("tea")?;
    world.thread("idle").await;
    let unknown = "01900000-0000-7000-8000-000000000000";
    assert!(!world.holds(unknown));
    let prompt = Task::Prompt { text: "hello".to_owned() };
    assert_eq!(refused(world.carry(unknown, prompt).await), "Codex's daemon has not loaded it");
    Ok(())
}
