//! Gemini CLI, OpenCode and Kilo 7, driven over the Agent Client Protocol.

use qd_harness::driver::{Cannot, Command, Launch, Mode, Protocol, Resume};
use qd_testbed::{Client, Gate, Home, Model, Reply, Result, Script};
use serde_json::{Value, json};

use super::world::{ALLOW, Agent, deny};

/// One of them: how it is started, and how its tools are called.
struct Product {
    client: fn(&Home, &Model) -> Result<Client>,
    argument: &'static str,
    run: fn(&str) -> (&'static str, Value),
    /// A refusal ends its turn.
    ends_when_refused: bool,
    /// What has to happen before a session that was just begun can be resumed.
    before_resume: fn(&Home),
}

const GEMINI: Product = Product {
    client: Client::gemini_cli,
    argument: "--acp",
    run: |command| ("run_shell_command", json!({"command": command, "description": "do it"})),
    ends_when_refused: false,
    before_resume: let_the_minute_pass,
};

/// Gemini names the file of a session by the minute in which it began. Loading it begins a file,
/// too, and in the same minute that is the same file, which is empty then: "No previous sessions
/// found". Nobody resumes that fast but a test.
fn let_the_minute_pass(home: &Home) {
    let projects = std::fs::read_dir(home.path().join(".gemini/tmp")).expect("its folder");
    let chats = projects
        .flatten()
        .filter_map(|project| std::fs::read_dir(project.path().join("chats")).ok());
    for chat in chats.flatten().flatten() {
        let name = chat.file_name().into_string().expect("text");
        // session-2026-11-16T17-10-0a1b2c3d.jsonl
        let id = name.rsplit('-').next().expect("an id");
        let earlier = format!("session-2026-01-01T00-00-{id}");
        std::fs::rename(chat.path(), chat.path().with_file_name(earlier)).expect("renamed");
    }
}

const OPENCODE: Product = Product {
    client: Client::opencode,
    argument: "acp",
    run: |command| ("bash", json!({"command": command, "description": "do it"})),
    ends_when_refused: true,
    before_resume: |_| {},
};

const KILO: Product = Product { client: Client::kilo, ..OPENCODE };

impl Product {
    fn start(&self, home: &Home, model: &Model, launch: Launch) -> Result<Agent> {
        let client = (self.client)(home, model)?;
        let launch = Launch { arguments: vec![self.argument.to_owned()], ..launch };
        let mut agent = Agent::of_client(&client, home, Protocol::Acp, launch);
        agent.ready();
        Ok(agent)
    }

    fn calls(&self, command: &str) -> Reply {
        let (tool, input) = (self.run)(command);
        Reply::calls(tool, input)
    }

    fn is_denied_then_allowed(&self) -> Result<()> {
        let home = Home::new()?;
        let file = home.workspace().join("made");
        let script = Script::new()
            .when_user_says("make it", self.calls("printf hello > made"))
            .when_user_says("go on", self.calls("printf hello > made"))
            .when_tool_returns("hello nobody says", Reply::says("never"))
            .then_always(Reply::says("I am done."));
        let model = Model::start(script)?;
        let mut agent = self.start(&home, &model, Launch::default())?;
        agent.prompt("make it");
        let call = agent.asked();
        assert!(call.mutating, "{call:?}");
        agent.decide(&call, deny("not yet"));
        let said = agent.completed();
        assert_eq!(said, if self.ends_when_refused { "" } else { "I am done." });
        assert!(!file.exists());
        agent.prompt("go on");
        let call = agent.asked();
        agent.decide(&call, ALLOW);
        assert!(agent.tool_ended());
        assert_eq!(agent.completed(), "I am done.");
        assert_eq!(std::fs::read_to_string(&file).expect("written"), "hello");
        agent.stop();
        Ok(())
    }

    fn is_interrupted_while_it_asks(&self) -> Result<()> {
        let home = Home::new()?;
        let script = Script::new()
            .when_user_says("make it", self.calls("touch made"))
            .then_always(Reply::says("Something else."));
        let model = Model::start(script)?;
        let mut agent = self.start(&home, &model, Launch::default())?;
        agent.prompt("make it");
        agent.asked();
        agent.order(Command::Interrupt).expect("a turn runs");
        agent.completed();
        assert_eq!(agent.order(Command::Interrupt), Err(Cannot::Idle));
        agent.prompt("do something instead");
        assert_eq!(agent.completed(), "Something else.");
        assert!(!home.workspace().join("made").exists());
        Ok(())
    }

    fn is_resumed_after_it_was_killed(&self) -> Result<()> {
        let home = Home::new()?;
        let gate = Gate::new();
        let script = Script::new()
            .when_user_says("give me a word", Reply::says("The word is heron."))
            .when_user_says("another", Reply::says("Never heard.").held_before_start(&gate))
            .when_user_says("which word", Reply::says("Heron, I said."));
        let model = Model::start(script)?;
        let mut agent = self.start(&home, &model, Launch::default())?;
        agent.prompt("give me a word");
        assert_eq!(agent.completed(), "The word is heron.");
        let id = agent.vendor_session.clone().expect("it said its id");
        agent.prompt("another");
        model.wait_for_request("the second prompt", |request| {
            request.is_scripted() && request.brings("another")
        })?;
        agent.cancel();
        gate.open();
        (self.before_resume)(&home);
        let resume = Some(Resume::Id(id.clone()));
        let mut agent = self.start(&home, &model, Launch { resume, ..Launch::default() })?;
        agent.prompt("which word was it?");
        assert_eq!(agent.completed(), "Heron, I said.");
        assert_eq!(agent.vendor_session, Some(id));
        Ok(())
    }
}

#[test]
fn gemini_is_denied_then_allowed_and_really_edits() -> Result<()> {
    GEMINI.is_denied_then_allowed()
}

#[test]
fn gemini_is_interrupted_while_it_asks() -> Result<()> {
    GEMINI.is_interrupted_while_it_asks()
}

#[test]
fn gemini_is_let_loose_and_asks_nobody() -> Result<()> {
    let home = Home::new()?;
    let script = Script::new()
        .when_user_says("make it", GEMINI.calls("touch made"))
        .then_always(Reply::says("Made."));
    let model = Model::start(script)?;
    let mut agent =
        GEMINI.start(&home, &model, Launch { mode: Mode::Yolo, ..Launch::default() })?;
    agent.prompt("make it");
    assert_eq!(agent.completed(), "Made.");
    assert!(home.workspace().join("made").exists());
    Ok(())
}

#[test]
fn gemini_is_resumed_after_it_was_killed() -> Result<()> {
    GEMINI.is_resumed_after_it_was_killed()
}

#[test]
fn gemini_works_with_the_model_that_was_chosen() -> Result<()> {
    let home = Home::new()?;
    let model = Model::start(Script::new().then_always(Reply::says("Hello.")))?;
    let chosen = Some("gemini-2.5-pro".to_owned());
    let mut agent = GEMINI.start(&home, &model, Launch { model: chosen, ..Launch::default() })?;
    agent.prompt("say hello");
    assert_eq!(agent.completed(), "Hello.");
    model.wait_for_request("a request to that model", |request| {
        request.path.contains("gemini-2.5-pro") && request.body.to_string().contains("say hello")
    })?;
    Ok(())
}

#[test]
fn opencode_is_denied_then_allowed_and_really_edits() -> Result<()> {
    OPENCODE.is_denied_then_allowed()
}

#[test]
fn opencode_is_interrupted_while_it_asks() -> Result<()> {
    OPENCODE.is_interrupted_while_it_asks()
}

#[test]
fn opencode_is_resumed_after_it_was_killed() -> Result<()> {
    OPENCODE.is_resumed_after_it_was_killed()
}

#[test]
fn kilo_is_denied_then_allowed_and_really_edits() -> Result<()> {
    KILO.is_denied_then_allowed()
}
