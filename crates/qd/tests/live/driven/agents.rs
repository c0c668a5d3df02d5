//! The real agents, driven: asked, denied once, allowed, overloaded, interrupted, ended and resumed.

use qd_testbed::{Client, Gate, Home, Model, Reply, Result, Script};
use serde_json::{Value, json};

use super::setting::{Driven, config, git};
use crate::world::{World, eventually};

/// One of them: how it is started, and how its tools are called.
struct Product {
    name: &'static str,
    client: fn(&Home, &Model) -> Result<Client>,
    /// A command that makes `made.txt` in the workspace, as its shell tool is called.
    runs: (&'static str, fn() -> Value),
    /// A call of its own tool for files that does the same.
    edits: (&'static str, fn(&str) -> Value),
    /// It can be held after a batch, so that our hooks run.
    is_held: bool,
    /// It can be told why something is denied.
    hears_why: bool,
}

const CLAUDE_CODE: Product = Product {
    name: "claude-code",
    client: Client::claude_code,
    runs: ("Bash", || json!({"command": "printf hello > made.txt", "description": "make it"})),
    edits: ("Write", |path| json!({"file_path": path, "content": "hello"})),
    is_held: true,
    hears_why: true,
};

const CODEX: Product = Product {
    name: "codex",
    client: Client::codex,
    runs: ("exec_command", || {
        json!({"cmd": "printf hello > made.txt", "justification": "needed",
               "sandbox_permissions": "require_escalated"})
    }),
    edits: ("apply_patch", |path| {
        json!(format!("*** Begin Patch\n*** Add File: {path}\n+hello\n*** End Patch\n"))
    }),
    is_held: false,
    hears_why: true,
};

const GEMINI: Product = Product {
    name: "gemini-cli",
    client: Client::gemini_cli,
    runs: (
        "run_shell_command",
        || json!({"command": "printf hello > made.txt", "description": "make it"}),
    ),
    edits: ("write_file", |path| json!({"file_path": path, "content": "hello"})),
    is_held: false,
    hears_why: false,
};

const OPENCODE: Product = Product {
    name: "opencode",
    client: |home, model| {
        let client = Client::opencode(home, model)?;
        lets_all_pass(home, "opencode", "build")?;
        Ok(client)
    },
    runs: ("bash", || json!({"command": "printf hello > made.txt", "description": "make it"})),
    edits: ("write", |path| json!({"filePath": path, "content": "hello"})),
    is_held: false,
    hears_why: false,
};

const KILO: Product = Product {
    name: "kilo-code",
    client: |home, model| {
        let client = Client::kilo(home, model)?;
        lets_all_pass(home, "kilo", "code")?;
        Ok(client)
    },
    ..OPENCODE
};

/// The user's own settings ask for nothing: it is we who have it ask.
fn lets_all_pass(home: &Home, product: &str, agent: &str) -> Result<()> {
    let file = format!(".config/{product}/{product}.json");
    let text = std::fs::read_to_string(home.path().join(&file)).expect("its settings");
    let mut settings: Value = serde_json::from_str(&text).expect("JSON");
    let all = json!({"*": "allow", "bash": {"*": "allow", "printf *": "allow"}, "edit": "allow"});
    settings["permission"] = all.clone();
    settings["agent"] = json!({agent: {"permission": all}});
    home.write(file, &settings.to_string())?;
    Ok(())
}

const RESTS: &str = "task_complete,awaiting_input,idle,interrupted";

impl Product {
    fn runs(&self) -> Reply {
        let (tool, input) = self.runs;
        Reply::calls(tool, input())
    }

    fn edits(&self, world: &World) -> Reply {
        let path = world.home.workspace().join("made.txt");
        let (tool, input) = self.edits;
        Reply::calls(tool, input(&path.display().to_string()))
    }

    fn works(&self) {
        let gate = Gate::new();
        let world = World::new(Script::new());
        world.model.then(
            Script::new()
                .when_user_says("make it", self.runs())
                .when_user_says("go on", Reply::fails(529))
                .when_user_says("go on", self.edits(&world))
                .when_user_says("hold", Reply::says("Never heard.").held_before_start(&gate))
                .when_user_says("which word", Reply::says("Heron."))
                .then_always(Reply::says("I am done.")),
        );
        let driven = self.begin(world, &["make it"]);
        let request = driven.asks_anything();
        if self.hears_why {
            driven.must(&["deny", &request, "--message", "not yet"]);
        } else {
            let (done, said) = driven.world.qd(&["deny", &request, "--message", "not yet"]);
            assert!(!done && said.contains("only told no"), "{said}");
            driven.must(&["deny", &request]);
        }
        driven.is(RESTS);
        assert!(!driven.file("made.txt").exists());

        driven.send("go on");
        let request = driven.asks_anything();
        let shown = driven.card()["requests"][0]["input"].to_string();
        assert!(shown.contains("made.txt") && shown.contains("hello"), "{shown}");
        driven.must(&["approve", &request]);
        driven.is(RESTS);
        let made = std::fs::read_to_string(driven.file("made.txt")).expect("made");
        assert_eq!(made.trim_end(), "hello");
        assert_eq!(driven.told_model().contains("not yet"), self.hears_why);
        let commits = git(&driven.world, &["log", "--oneline", "--all"]);
        assert_eq!(commits.contains("auto"), self.is_held, "{commits}");
        let reasons = driven.world.board().reasons_of(&driven.session);
        let skipped = reasons.iter().any(|reason| reason == "hooks_skipped");
        assert_eq!(skipped, !self.is_held, "{reasons:?}");

        driven.send("hold");
        let held = |request: &qd_testbed::Request| request.brings("hold");
        driven.world.model.wait_for_request("the held prompt", held).expect("asked");
        driven.must(&["interrupt", &driven.session]);
        driven.is("interrupted");
        gate.open();

        driven.must(&["stop", &driven.session]);
        driven.is("session_ended");
        driven.must(&["resume", &driven.session]);
        driven.is_up();
        driven.send("which word");
        driven.is(RESTS);
        let which = |request: &qd_testbed::Request| request.brings("which word");
        let last = driven.world.model.wait_for_request("the last prompt", which).expect("asked");
        assert!(last.body.to_string().contains("make it"), "it remembers");
        assert_eq!(driven.world.status().len(), 1, "{}", driven.world.picture());
    }

    fn begin(&self, world: World, arguments: &[&str]) -> Driven {
        let hook = json!({"name": "auto_commit", "command": ["sh", "-c",
            "git add -A && git -c user.name=q -c user.email=q@q commit -qm auto"]});
        self.begin_with(world, &hook, arguments)
    }

    /// With this hook after its tools.
    fn begin_with(&self, world: World, hook: &Value, arguments: &[&str]) -> Driven {
        let client = (self.client)(&world.home, &world.model).expect("a client");
        let (own, variables) = client.command_line();
        let program = client.program_path();
        let env: Vec<&String> = variables.keys().collect();
        let table = format!(
            "[agents.{}]\nprogram = {program:?}\narguments = {own:?}\nenv = {env:?}\n",
            self.name
        );
        config(&world, "config.toml", &table);
        config(&world, "hooks.json", &json!({"hooks": [hook]}).to_string());
        git(&world, &["init", "-q"]);
        Driven::begin_among(world, &variables.clone(), &[&[self.name], arguments].concat())
    }
}

#[test]
fn claude_code_works() {
    CLAUDE_CODE.works();
}

#[test]
fn codex_works() {
    CODEX.works();
}

#[test]
fn gemini_cli_works() {
    GEMINI.works();
}

#[test]
fn opencode_works() {
    OPENCODE.works();
}

#[test]
fn kilo_works() {
    KILO.works();
}

/// Its hooks and its registry file tell of it, too: it is one card all the same.
#[test]
fn claude_code_with_our_hooks_is_one_card() {
    let world = World::new(Script::new());
    let edits = CLAUDE_CODE.edits(&world);
    world.model.then(Script::new().replies(edits).then_always(Reply::says("I am done.")));
    let client = Client::claude_code(&world.home, &world.model).expect("a client");
    world.install_hooks("claude-code", &client);
    let driven = CLAUDE_CODE.begin(world, &["make it"]);
    let request = driven.asks_anything();
    assert_eq!(driven.world.status().len(), 1, "{}", driven.world.picture());
    driven.must(&["approve", &request]);
    driven.is(RESTS);
    assert!(driven.file("made.txt").exists());
    assert_eq!(driven.world.status().len(), 1, "{}", driven.world.picture());
    driven.must(&["stop", &driven.session]);
    driven.is("session_ended");
    assert_eq!(driven.world.status().len(), 1, "{}", driven.world.picture());
}

/// A rule answers what an agent asks, and is on record for it.
#[test]
fn what_claude_code_asks_a_rule_answers() {
    let world = World::new(Script::new());
    let edits = CLAUDE_CODE.edits(&world);
    world.model.then(Script::new().replies(edits).then_always(Reply::says("I am done.")));
    world.policy("[[rule]]\nname = \"writes\"\ntool = \"Write\"\neffect = \"allow\"\n");
    let driven = CLAUDE_CODE.begin(world, &["make it"]);
    driven.is("task_complete");
    assert!(driven.file("made.txt").exists());
    assert_eq!(driven.world.rules_that_answered(), ["writes"]);
    let id = driven.card()["vendorId"].as_str().expect("an id").to_owned();
    let shown = driven.world.shown(&id);
    assert!(!shown.contains(&"needs_permission".to_owned()), "{shown:?}");
}

/// What OpenCode would let pass is asked of us, and a rule that denies holds, also with `yolo`. What
/// only reads costs the operator no question.
#[test]
fn a_rule_holds_for_what_opencode_lets_pass() {
    let world = World::new(Script::new());
    std::fs::write(world.home.workspace().join("note.txt"), "a note").expect("written");
    let note = world.home.workspace().join("note.txt");
    let script = Script::new()
        .calls("read", json!({"filePath": note}))
        .when_tool_returns("a note", OPENCODE.runs())
        .then_always(Reply::says("I am done."));
    world.model.then(script);
    let rule = "[[rule]]\nname = \"no printing\"\ncommand = \"printf *\"\neffect = \"deny\"\n";
    world.policy(rule);
    let driven = OPENCODE.begin(world, &["--policy", "yolo", "make it"]);
    // It rests before it has heard the prompt, too.
    eventually("the rule's answer", || {
        let answered = driven.world.rules_that_answered();
        answered.contains(&"no printing".to_owned()).then_some(())
    });
    driven.is(RESTS);
    assert!(!driven.file("made.txt").exists());
    assert!(driven.told_model().contains("a note"), "it has read");
    let id = driven.card()["vendorId"].as_str().expect("an id").to_owned();
    let shown = driven.world.shown(&id);
    assert!(!shown.contains(&"needs_permission".to_owned()), "{shown:?}");
}

/// A hook that fails holds the session; the next prompt goes on with it all the same.
#[test]
fn claude_code_takes_a_prompt_after_a_failed_hook() {
    let world = World::new(Script::new());
    let edits = CLAUDE_CODE.edits(&world);
    let script = Script::new().replies(edits);
    let script = script.when_user_says("instead", Reply::says("Something else."));
    world.model.then(script.then_always(Reply::says("I am done.")));
    let hook = json!({"name": "check", "command": ["sh", "-c", "exit 1"],
                      "failure_policy": {"type": "fail_session"}});
    let driven = CLAUDE_CODE.begin_with(world, &hook, &["--policy", "yolo", "make it"]);
    driven.is("error");
    driven.send("do something instead");
    let card = driven.is(RESTS);
    assert_eq!(card["drive"]["lastError"], Value::Null, "{card:#}");
    assert!(driven.told_model().contains("do something instead"));
}

/// Its questions are answered one by one, and its plan with the mode that follows it.
#[test]
fn what_claude_code_asks_and_plans_is_answered() {
    let question = |text: &str, first: &str, second: &str| {
        json!({"question": text, "header": "Choice", "multiSelect": false,
               "options": [{"label": first, "description": "one"},
                           {"label": second, "description": "two"}]})
    };
    let questions =
        [question("Which database?", "SQLite", "Postgres"), question("Which port?", "80", "8080")];
    let world = World::new(Script::new());
    let script = Script::new()
        .calls("AskUserQuestion", json!({"questions": questions}))
        .when_tool_returns("Postgres", Reply::says("Postgres it is."))
        .when_user_says("plan it", Reply::calls("EnterPlanMode", json!({})))
        .when_tool_returns(
            "Entered plan",
            Reply::calls("ExitPlanMode", json!({"plan": "1. Make."})),
        )
        .when_tool_returns("approved exiting", CLAUDE_CODE.edits(&world))
        .then_always(Reply::says("I am done."));
    world.model.then(script);
    let hook = json!({"name": "check", "command": ["true"]});
    let driven = CLAUDE_CODE.begin_with(world, &hook, &["choose"]);
    driven.is("awaiting_input");
    driven.must(&["answer", &driven.session, "Postgres", "80"]);
    driven.is(RESTS);
    let told = driven.told_model();
    assert!(told.contains("Which port?") && !told.contains("Which database?: Postgres"), "{told}");

    driven.send("plan it");
    let request = driven.asks("ExitPlanMode");
    assert_eq!(driven.state(), "awaiting_approval", "a plan, and no permission");
    driven.must(&["approve", &request, "--mode", "acceptEdits"]);
    // Its edits are not asked about from then on.
    driven.is(RESTS);
    assert!(driven.file("made.txt").exists());
}

/// Cline asks where nobody can answer it: it is driven without asking, or it says so.
#[test]
fn cline_works_in_yolo() {
    let world = World::new(Script::new().without_tools_too());
    let path = world.home.workspace().join("made.txt");
    let write = json!({"path": "made.txt", "content": "hello", "absolutePath": path});
    let done = Reply::calls("attempt_completion", json!({"result": "It is made."}));
    let script = Script::new().when_user_says("make it", Reply::calls("write_to_file", write));
    world.model.then(script.then_always(done));
    let product = Product { name: "cline", client: Client::cline, ..GEMINI };
    let driven = product.begin(world, &["--policy", "yolo", "make it"]);
    driven.is("task_complete");
    assert_eq!(std::fs::read_to_string(&path).expect("made").trim(), "hello");
    driven.must(&["stop", &driven.session]);
    driven.is("session_ended");
}
