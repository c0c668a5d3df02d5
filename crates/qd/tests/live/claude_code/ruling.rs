//! Answered by the operator's rules: nobody is asked, the file is really written or not, and the
//! record names the rule.

use super::*;

const RULES: &str = r#"
[[rule]]
name = "files may be touched"
effect = "allow"
command = "touch made*"

[[rule]]
name = "no other file"
effect = "deny"
command = "touch other*"
message = "Only files that are called made."
"#;

fn made(world: &World, file: &str) -> bool {
    world.home.workspace().join(file).exists()
}

#[test]
fn a_rule_allows_one_command_and_denies_another() {
    let script = Script::new()
        .calls("Bash", touch("made"))
        .calls("Bash", touch("other"))
        .says("One is there.");
    let world = World::new(script);
    world.policy(RULES);
    let mut world = world;
    world.serve();
    let claude = Claude::started(Installed, world, &[]);
    claude.submit("make two files");
    claude.terminal.wait_for_text("One is there.").unwrap();
    claude.agree("idle", "task-complete");
    assert!(made(&claude.world, "made") && !made(&claude.world, "other"));
    claude.writes("Only files that are called made.");
    let shown = claude.world.shown(&claude.session());
    assert!(!shown.contains(&"needs_permission".into()), "{shown:?}");
    assert_eq!(claude.world.rules_that_answered(), ["files may be touched", "no other file"]);
    claude.world.must(&["audit", "--verify"]);
}

/// Switched on while it waits, it answers that and what comes; the card says so until it is off.
#[test]
fn yolo_answers_what_waits_and_what_comes() {
    let script = Script::new()
        .calls("Bash", touch("made"))
        .calls("Bash", touch("other"))
        .says("Both are there.")
        .calls("Bash", touch("third"))
        .says("Three are there.");
    let claude = Claude::observed(Installed, script);
    claude.submit("make two files");
    claude.asks_for_permission("touch made");
    let session = claude.session();
    claude.world.must(&["yolo", &session, "on"]);
    claude.terminal.wait_for_text("Both are there.").unwrap();
    let card = claude.agree("idle", "task-complete");
    assert_eq!(card["policy"]["preset"], "yolo", "{card:#}");
    assert!(made(&claude.world, "made") && made(&claude.world, "other"));
    claude.world.must(&["yolo", &session, "off"]);
    claude.submit("make a third");
    claude.asks_for_permission("touch third");
    claude.terminal.press_until_gone(Key::Enter, DIALOG).unwrap();
    claude.terminal.wait_for_text("Three are there.").unwrap();
}

/// A repository may forbid it, and nothing in one can grant it.
#[test]
fn a_project_forbids_yolo() {
    let claude = Claude::observed(Installed, Script::new().calls("Bash", touch("made")));
    let folder = claude.world.home.workspace().join(".gemini");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("settings.json"), r#"{"security":{"disableYoloMode":true}}"#)
        .unwrap();
    claude.world.policy("preset = \"yolo\"\n");
    claude.submit("make a file");
    let card = claude.asks_for_permission("touch made");
    let session = card["vendorId"].as_str().expect("an id");
    let (done, said) = claude.world.qd(&["yolo", session, "on"]);
    assert!(!done && said.contains("forbids YOLO"), "{said}");
    assert!(!made(&claude.world, "made"));
}

/// `-p` denies what no hook answers: a rule answers it, and a project may have it wait.
#[test]
fn a_print_run_is_answered_by_a_rule_and_waits_where_its_project_has_it_so() {
    let script = Script::new()
        .calls("Bash", touch("made"))
        .says("One is there.")
        .calls("Bash", touch("third"))
        .says("Another is there.");
    let world = World::new(script);
    let project = world.home.workspace().display().to_string();
    world.policy(&format!("{RULES}\n[project.\"{project}\"]\nwait_headless = true\n"));
    let mut world = world;
    world.serve();
    world.install_hooks("claude-code", &client(&world));
    let run = client(&world).arguments(["-p", "make a file"]).headless().unwrap();
    assert!(run.wait_for_exit().unwrap().success(), "{:?}", run.errors());
    assert!(made(&world, "made"));

    let run = client(&world).arguments(["-p", "make another"]).headless().unwrap();
    let key = eventually("a request that waits", || {
        let cards = world.status();
        let mut requests = cards.iter().filter_map(|card| card["requests"].as_array()?.first());
        requests.find(|one| one["way"] == "hook")?["key"].as_str().map(str::to_owned)
    });
    world.must(&["approve", &key]);
    assert!(run.wait_for_exit().unwrap().success(), "{:?}", run.errors());
    assert!(made(&world, "third"));
}
