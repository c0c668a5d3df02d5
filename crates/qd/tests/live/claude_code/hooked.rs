//! The operator's post-tool hooks for a client that somebody else started: it is held meanwhile.

use super::*;

/// Claude Code makes a file, with a hook of the operator's after it. What it has said in the end.
fn made_a_file(world: &mut World, line: &str, failure_policy: &str) -> Vec<String> {
    world.policy("[[rule]]\neffect = \"allow\"\ncommand = \"touch made*\"\n");
    world.post_tool_hook(line, failure_policy);
    world.serve();
    world.install_hooks("claude-code", &client(world));
    let run = client(world).arguments(["-p", "make a file"]).headless().unwrap();
    assert!(run.wait_for_exit().unwrap().success(), "{:?}", run.errors());
    assert!(world.home.workspace().join("made").exists());
    run.lines()
}

fn script() -> Script {
    Script::new().calls("Bash", touch("made")).says("It is there.")
}

#[test]
fn a_hook_runs_after_the_tools_and_before_the_client_goes_on() {
    let mut world = World::new(script());
    // What the tool made is there, and the model has not been asked again.
    let said = made_a_file(&mut world, "test -e made && cat > noted && sleep 1", "fail_session");
    assert_eq!(said, ["It is there."]);
    let noted = std::fs::read_to_string(world.home.workspace().join("noted")).expect("it ran");
    let noted: Value = serde_json::from_str(&noted).expect("JSON");
    assert_eq!(
        (&noted["hook"], &noted["toolRuns"][0]["toolName"]),
        (&json!("check"), &json!("Bash"))
    );
    let settings = world.home.path().join(".claude/settings.json");
    let settings: Value =
        serde_json::from_str(&std::fs::read_to_string(settings).expect("settings")).expect("JSON");
    let hook = &settings["hooks"]["PostToolBatch"][0]["hooks"][0];
    assert!(
        hook["async"].is_null() && hook["command"].as_str().is_some_and(|it| it.contains(" wait "))
    );
}

#[test]
fn a_hook_that_fails_ends_the_turn_and_says_why() {
    let mut world = World::new(script());
    let said = made_a_file(&mut world, "echo the roof leaks; exit 3", "fail_session");
    assert!(!said.contains(&"It is there.".to_owned()), "{said:?}");
    let asked =
        world.model.requests().iter().filter(|request| request.brings("make a file")).count();
    assert_eq!(asked, 1, "the model was not asked again");
    let transcripts = world.home.path().join(".claude/projects");
    let told = std::fs::read_dir(transcripts)
        .expect("projects")
        .flat_map(|project| std::fs::read_dir(project.expect("one").path()).expect("transcripts"));
    let told: String =
        told.filter_map(|file| std::fs::read_to_string(file.expect("one").path()).ok()).collect();
    assert!(told.contains("post-tool hook check failed: exit code 3: the roof leaks"), "{told}");
}

#[test]
fn a_hook_that_only_warns_keeps_nobody_from_going_on() {
    let mut world = World::new(script());
    let said = made_a_file(&mut world, "exit 3", "warn_continue");
    assert_eq!(said, ["It is there."]);
}

#[test]
fn without_the_daemon_the_client_goes_on() {
    let mut world = World::new(script().calls("Bash", touch("made")).says("Still there."));
    made_a_file(&mut world, "true", "fail_session");
    world.kill_daemon();
    let allowed = ["-p", "again", "--allowedTools", "Bash(touch:*)"];
    let run = client(&world).arguments(allowed).headless().unwrap();
    assert!(run.wait_for_exit().unwrap().success(), "{:?}", run.errors());
    assert_eq!(run.lines(), ["Still there."]);
}
