//! `bash` and `run_command`: what the model gets of a command.

use std::time::Duration;

use qd_runners::tools::Toolbox;
use qd_session::machine::ToolOutcome;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::world::{SECRET, World, alive, mark, order, run};

#[tokio::test]
async fn a_command_says_what_it_says() {
    let world = World::new().with(&[("sub/file", "x")]);
    let said = world.ok("bash", json!({"command": "echo out; echo err >&2; pwd"})).await;
    assert_eq!(said, format!("out\nerr\n{}\n", world.workspace().display()));
    let told = world.mistake("run_command", json!({"command": ["ls", "*"], "folder": "."})).await;
    assert!(told.contains("cannot access '*'"), "no shell reads it: {told}");
}

#[tokio::test]
async fn a_command_that_fails_is_a_result() {
    let world = World::new();
    let told = world.mistake("bash", json!({"command": "echo so far; exit 3"})).await;
    assert_eq!(told, "so far\n[exit code 3]\n");
    let told = world.mistake("bash", json!({"command": "kill -TERM $$"})).await;
    assert_eq!(told, "[killed by signal 15]\n");
    assert_eq!(world.ok("bash", json!({"command": "true"})).await, "[no output]\n");
    // What a shell would tell with 127 and 126.
    let told = world.mistake("run_command", json!({"command": ["no-such-program"]})).await;
    assert!(told.starts_with("[cannot run no-such-program: "), "{told}");
    let told = world.mistake("run_command", json!({"command": ["./"]})).await;
    assert!(told.starts_with("[cannot run ./: "), "{told}");
    assert!(world.mistake("run_command", json!({"command": []})).await.contains("name a program"));
    let told = world.mistake("bash", json!({"command": "ls", "folder": "nowhere"})).await;
    assert_eq!(told, "nowhere does not exist");
}

#[tokio::test]
async fn a_time_limit_is_a_result_with_what_was_said_until_then() {
    let (world, mark) = (World::new(), mark());
    let command = format!("echo started; sleep {mark}");
    let told = world.mistake("bash", json!({"command": command, "timeout_ms": 3_000})).await;
    assert_eq!(told, "started\n[stopped: it ran longer than 3000 ms]\n");
    assert_eq!(alive(&mark), Vec::<String>::new());
}

#[tokio::test]
async fn the_operator_says_how_long_a_tool_may_take() {
    let world = World::new();
    let mut settings = world.settings();
    settings.sandbox.timeouts_ms.insert("run_command".to_owned(), 1);
    let toolbox = Toolbox::open(settings).expect("it opens");
    let sleep = json!({"command": ["sleep", "600"]});
    let output = "[stopped: it ran longer than 1 ms]\n".into();
    let stopped = ToolOutcome::Succeeded { output, is_error: true };
    assert_eq!(run(&toolbox, "run_command", sleep).await, stopped);
    // The model's own limit comes first, and other tools have theirs.
    let patient = json!({"command": ["true"], "timeout_ms": 60_000});
    assert_eq!(run(&toolbox, "run_command", patient).await, done("[no output]\n"));
    assert_eq!(run(&toolbox, "bash", json!({"command": "true"})).await, done("[no output]\n"));
}

fn done(output: &str) -> ToolOutcome {
    ToolOutcome::Succeeded { output: output.into(), is_error: false }
}

#[tokio::test]
async fn a_canceled_command_has_no_result_and_no_process() {
    let (world, mark) = (World::new(), mark());
    let toolbox = world.toolbox();
    let order = order("bash", json!({"command": format!("touch started; sleep {mark}")}));
    let cancel = CancellationToken::new();
    let running = toolbox.run(&order, cancel.clone());
    tokio::pin!(running);
    while !world.path("started").exists() {
        assert!(tokio::time::timeout(Duration::from_millis(5), &mut running).await.is_err());
    }
    cancel.cancel();
    assert_eq!(running.await, ToolOutcome::Failed { error: "canceled".into() });
    assert_eq!(alive(&mark), Vec::<String>::new());
    let outcome = toolbox.run(&order, cancel).await;
    assert_eq!(outcome, ToolOutcome::Failed { error: "canceled".into() });
}

#[tokio::test]
async fn long_output_keeps_its_beginning_and_its_end() {
    let world = World::new();
    let said = world.ok("bash", json!({"command": "seq 1 200000"})).await;
    assert!(said.starts_with("1\n2\n3\n") && said.ends_with("199999\n200000\n"));
    assert!(said.contains(" bytes left out …]\n") && said.len() < 40 << 10, "{}", said.len());
    let said = world.ok("bash", json!({"command": "printf 'a\\0b\\xff\\x1b[1m'"})).await;
    assert_eq!(said, "a\u{fffd}b\u{fffd}\u{fffd}[1m\n");
}

#[tokio::test]
async fn a_command_gets_the_environment_that_is_allowed_and_nothing_else() {
    let world = World::new();
    let said = world.ok("run_command", json!({"command": ["env"]})).await;
    let mut names: Vec<&str> =
        said.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    names.sort_unstable();
    let allowed = [
        "GIT_EDITOR",
        "GIT_PAGER",
        "GIT_TERMINAL_PROMPT",
        "HOME",
        "LANG",
        "NO_COLOR",
        "PAGER",
        "PATH",
        "TERM",
        "TMPDIR",
        "USER",
    ];
    assert_eq!(names, allowed);
    assert!(!said.contains(SECRET), "{said}");
    let mut settings = world.settings();
    settings.sandbox.environment.push("WANTED".to_owned());
    let toolbox = qd_runners::tools::Toolbox::open(settings).expect("it opens");
    let outcome = super::world::run(&toolbox, "bash", json!({"command": "echo $WANTED"})).await;
    assert_eq!(outcome, ToolOutcome::Succeeded { output: "yes\n".into(), is_error: false });
}

#[tokio::test]
async fn a_session_has_a_folder_for_temporary_files_while_it_lives() {
    let world = World::new();
    let toolbox = world.toolbox();
    let command = json!({"command": "echo kept > $TMPDIR/file; cat $TMPDIR/file; mktemp"});
    let outcome = super::world::run(&toolbox, "bash", command).await;
    let scratch = world.base.join("scratch");
    assert!(
        matches!(&outcome, ToolOutcome::Succeeded { output, is_error: false }
            if output.starts_with("kept\n") && output.contains(scratch.to_str().expect("text"))),
        "{outcome:?}"
    );
    assert!(scratch.join("file").exists());
    drop(toolbox);
    assert!(!scratch.exists());
}

#[tokio::test]
async fn nobody_is_asked_anything() {
    let world = World::new();
    let told = world
        .mistake("bash", json!({"command": "read answer; echo got:$answer; : < /dev/tty"}))
        .await;
    assert!(told.starts_with("got:\n") && told.contains("/dev/tty"), "{told}");
}

#[tokio::test]
async fn a_workspace_that_is_gone_is_a_failure() {
    let world = World::new();
    let toolbox = world.toolbox();
    std::fs::remove_dir_all(world.workspace()).expect("removed");
    let outcome = super::world::run(&toolbox, "bash", json!({"command": "ls"})).await;
    assert!(
        matches!(&outcome, ToolOutcome::Failed { error } if error.contains("cannot start bash")),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn no_warden_is_a_failure() {
    let world = World::new();
    for (program, why) in
        [("/no/such/warden", "cannot start a warden"), ("/bin/false", "without a word")]
    {
        let mut settings = world.settings();
        settings.warden = qd_runners::warden::Warden::at(program.as_ref(), &[]);
        let toolbox = qd_runners::tools::Toolbox::open(settings).expect("it opens");
        let outcome = super::world::run(&toolbox, "bash", json!({"command": "ls"})).await;
        assert!(
            matches!(&outcome, ToolOutcome::Failed { error } if error.contains(why)),
            "{outcome:?}"
        );
    }
}
