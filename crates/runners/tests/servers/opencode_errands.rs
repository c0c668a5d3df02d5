//! Acting on sessions of OpenCode and Kilo through their servers. The files and the model are the
//! witnesses.

use std::path::PathBuf;

use qd_session::decision::{Answer, Decision, Scope};
use qd_sources::errand::ErrandOutcome;
use qd_sources::live::NoticeKind;
use qd_sources::opencode_servers::errand::{Errand, Task};
use qd_testbed::{Gate, Home, Model, Reply, Result, Script, Service};
use serde_json::{Value, json};

use crate::board::{Board, Source};
use crate::opencode::{KILO, Make, OPENCODE, observed, spelled_directory};

const DONE: ErrandOutcome = ErrandOutcome::Done { detail: None };

/// A server at work in a directory that it was not started in, as we see it.
struct World {
    model: Model,
    board: Board,
    server: Service,
    directory: String,
    elsewhere: PathBuf,
    session: String,
    _home: Home,
}

impl World {
    async fn new(make: Make) -> Result<Self> {
        let home = Home::new()?;
        let model = Model::start(Script::new())?;
        let server = make(&home, &model)?.served().service()?;
        let mut board = observed(&[server.url()]);
        board.until_notice(&NoticeKind::Attached).await;
        let elsewhere = home.path().join("else where");
        std::fs::create_dir(&elsewhere).expect("a folder");
        let directory = spelled_directory(&elsewhere);
        let session = server.post(&format!("/session?directory={directory}"), &json!({}))?;
        let session = session["id"].as_str().expect("an id").to_owned();
        Ok(Self { model, board, server, directory, elsewhere, session, _home: home })
    }

    async fn carry(&self, what: Task) -> ErrandOutcome {
        let Source::Opencode(servers) = &self.board.source else { unreachable!() };
        servers.carry(Errand { session: self.session.clone(), what }).await
    }

    async fn decide(&self, request: &str, decision: Decision) -> ErrandOutcome {
        self.carry(Task::Answer { request: request.to_owned(), decision }).await
    }

    async fn prompt(&self, text: &str) -> ErrandOutcome {
        self.carry(Task::Prompt { text: text.to_owned() }).await
    }

    /// What waits there, as the server calls it.
    fn pending(&self, what: &str) -> Result<String> {
        let list = self.server.get(&format!("/{what}?directory={}", self.directory))?;
        Ok(list[0]["id"].as_str().expect("one waits").to_owned())
    }

    /// Prompts for a file, and waits until the operator is asked.
    async fn ask_for(&mut self, name: &str, then: Script) -> Result<String> {
        let input = json!({ "command": format!("touch {name}"), "description": "make a file" });
        let calls = Reply::calls("bash", input);
        self.model.then(Script::new().when_user_says(name, calls));
        self.model.then(then);
        assert_eq!(self.prompt(&format!("make the file {name}")).await, DONE);
        self.board.until_state("needs_permission").await;
        self.pending("permission")
    }

    async fn until_over(&mut self) {
        let over = ["task_complete", "idle", "interrupted"];
        let is_over = |state: &String| over.contains(&state.as_str());
        self.board.until("the turn's end", |board| board.states().iter().all(is_over)).await;
    }

    fn has(&self, name: &str) -> bool {
        self.elsewhere.join(name).exists()
    }
}

fn allow(scope: Scope) -> Decision {
    Decision::Allow { input: None, scope }
}

fn deny(message: Option<&str>, interrupt: bool) -> Decision {
    Decision::Deny { message: message.map(str::to_owned), interrupt }
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

async fn a_session_is_found(world: &mut World) -> Result<()> {
    world.model.then(Script::new().says("Hello."));
    // It tells of a session when it is made.
    let session = world.session.clone();
    let holds = move |board: &Board| match &board.source {
        Source::Opencode(servers) => servers.holds(&session),
        Source::Codex(_) => false,
    };
    world.board.until("the session to be known", holds).await;
    assert_eq!(world.prompt("say hello").await, DONE);
    world.model.wait_for_request("the prompt", |request| request.brings("say hello"))?;
    world.board.until_state("task_complete").await;
    Ok(())
}

async fn permissions_are_answered(make: Make) -> Result<()> {
    let mut world = World::new(make).await?;
    a_session_is_found(&mut world).await?;

    let request = world.ask_for("allowed", Script::new().says("It is made.")).await?;
    let changed = Decision::Allow { input: Some(json!({})), scope: Scope::Once };
    let why = refused(world.decide(&request, changed).await);
    assert_eq!(why, "the server takes no such answer to this");
    assert_eq!(world.decide(&request, allow(Scope::Once)).await, DONE);
    world.until_over().await;
    assert!(world.has("allowed"));
    let why = refused(world.decide(&request, allow(Scope::Once)).await);
    assert_eq!(why, "it is not open any more");

    // With a message the turn goes on, and the model hears it.
    let heard = Script::new().when_tool_returns("use the other one", Reply::says("I see."));
    let request = world.ask_for("refused", heard).await?;
    assert_eq!(world.decide(&request, deny(Some("use the other one"), false)).await, DONE);
    world.model.wait_for_request("the refusal", |request| request.brings("use the other one"))?;
    world.until_over().await;
    // Without one it ends.
    let request = world.ask_for("stopped", Script::new()).await?;
    assert_eq!(world.decide(&request, deny(None, false)).await, DONE);
    world.until_over().await;
    assert!(!world.has("refused") && !world.has("stopped"));

    let request = world.ask_for("always", Script::new().says("It is made.")).await?;
    assert_eq!(world.decide(&request, allow(Scope::Always)).await, DONE);
    world.until_over().await;
    let input = json!({ "command": "touch always again", "description": "make two" });
    world.model.then(Script::new().calls("bash", input).says("And again."));
    assert_eq!(world.prompt("make it once more").await, DONE);
    // Nobody is asked.
    let again = world.elsewhere.join("again");
    world.board.until("the second file", |_| again.exists()).await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn permissions_of_opencode_are_answered() -> Result<()> {
    permissions_are_answered(OPENCODE).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn permissions_of_kilo_are_answered() -> Result<()> {
    permissions_are_answered(KILO).await
}

fn question() -> Value {
    let option = |label: &str| json!({ "label": label, "description": "one of them" });
    let one = |text: &str, header: &str, labels: [&str; 2]| json!({ "question": text, "header": header, "options": labels.map(option) });
    json!({ "questions": [
        one("Which greeting?", "Greeting", ["Hello", "Hi"]),
        one("Which colour?", "Colour", ["Red", "Blue"]),
    ] })
}

async fn questions_are_answered_and_turns_ended(make: Make) -> Result<()> {
    let mut world = World::new(make).await?;
    a_session_is_found(&mut world).await?;
    let why = refused(world.carry(Task::Interrupt).await);
    assert_eq!(why, "nothing runs there");

    world.model.then(Script::new().calls("question", question()).says("So it is."));
    assert_eq!(world.prompt("ask me").await, DONE);
    world.board.until_state("awaiting_input").await;
    let request = world.pending("question")?;
    let answer = |question: &str, value: &str| Answer {
        question: question.to_owned(),
        values: vec![value.to_owned()],
    };
    let foreign = Decision::Answer { answers: vec![answer("Which size?", "L")] };
    assert_eq!(refused(world.decide(&request, foreign).await), "that is not what it asked");
    // In another order than they were asked in.
    let answers = vec![answer("Which colour?", "Blue"), answer("Which greeting?", "Hi")];
    let decision = Decision::Answer { answers };
    assert_eq!(world.decide(&request, decision.clone()).await, DONE);
    let told = r#"\"Which greeting?\"=\"Hi\", \"Which colour?\"=\"Blue\""#;
    world
        .model
        .wait_for_request("the answers", |request| request.body.to_string().contains(told))?;
    world.until_over().await;
    assert_eq!(refused(world.decide(&request, decision).await), "it is not open any more");

    let gate = Gate::new();
    world.model.then(Script::new().replies(Reply::says("For ever.").held_before_end(&gate)));
    assert_eq!(world.prompt("talk on").await, DONE);
    world.model.wait_for_request("the prompt", |request| request.brings("talk on"))?;
    assert_eq!(world.carry(Task::Interrupt).await, DONE);
    world.until_over().await;
    gate.open();

    let request = world.ask_for("stopped", Script::new()).await?;
    assert_eq!(world.decide(&request, deny(Some("stop it"), true)).await, DONE);
    world.until_over().await;
    assert!(!world.has("stopped"));

    // Nobody is there any more.
    world.server.process().kill()?;
    let outcome = world.prompt("are you there?").await;
    assert!(matches!(outcome, ErrandOutcome::Unreachable { .. }), "{outcome:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_of_opencode_are_answered_and_turns_ended() -> Result<()> {
    questions_are_answered_and_turns_ended(OPENCODE).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_of_kilo_are_answered_and_turns_ended() -> Result<()> {
    questions_are_answered_and_turns_ended(KILO).await
}
