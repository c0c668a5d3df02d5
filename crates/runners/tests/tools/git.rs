//! Git's tools, with a real Git.

use serde_json::json;

use super::world::World;

async fn repository() -> World {
    let world = World::new().with(&[("a", "one\n"), ("b", "b\n")]);
    std::fs::write(
        world.base.join("home/.gitconfig"),
        "[user]\n\tname = Operator\n\temail = operator@example.org\n[init]\n\tdefaultBranch = main\n",
    )
    .expect("written");
    world.ok("bash", json!({"command": "git init -q && git add a && git commit -qm first"})).await;
    world
}

#[tokio::test]
async fn status_diff_and_log_show_what_there_is() {
    let world = repository().await.with(&[("a", "two\n")]);
    let shown = world.ok("git_status", json!({})).await;
    assert_eq!(shown, "## main\n M a\n?? b\n");
    let shown = world.ok("git_diff", json!({})).await;
    assert!(shown.ends_with("@@ -1 +1 @@\n-one\n+two\n"), "{shown}");
    assert_eq!(world.ok("git_diff", json!({"staged": true})).await, "[no output]\n");
    assert_eq!(world.ok("git_diff", json!({"paths": ["b"]})).await, "[no output]\n");
    let shown = world.ok("git_log", json!({"limit": 1})).await;
    assert!(shown.contains("Author: Operator") && shown.contains("    first\n"), "{shown}");
}

#[tokio::test]
async fn a_commit_takes_what_it_names() {
    let world = repository().await.with(&[("a", "two\n"), ("c", "c\n")]);
    world.ok("git_commit", json!({"message": "named\n\nbody", "paths": ["b", "c"]})).await;
    assert_eq!(world.ok("git_status", json!({})).await, "## main\n M a\n");
    world.ok("git_commit", json!({"message": "all", "all": true})).await;
    assert_eq!(world.ok("git_status", json!({})).await, "## main\n");
    let told = world.mistake("git_commit", json!({"message": "nothing"})).await;
    assert!(told.contains("nothing to commit") && told.contains("[exit code 1]"), "{told}");
    assert!(world.mistake("git_commit", json!({"message": " "})).await.contains("message"));
    let both = json!({"message": "x", "all": true, "paths": ["a"]});
    assert!(world.mistake("git_commit", both).await.contains("not both"));
}

#[tokio::test]
async fn branches_are_made_and_files_brought_back() {
    let world = repository().await;
    world.ok("git_checkout", json!({"create": "work"})).await;
    let world = world.with(&[("a", "two\n")]);
    world.ok("git_checkout", json!({"paths": ["a"]})).await;
    assert_eq!(world.text("a"), "one\n");
    world.ok("git_checkout", json!({"revision": "main"})).await;
    assert_eq!(world.ok("git_status", json!({})).await, "## main\n?? b\n");
    assert!(world.mistake("git_checkout", json!({})).await.contains("name a revision"));
    let told = world.mistake("git_checkout", json!({"revision": "none"})).await;
    assert!(told.contains("[exit code "), "{told}");
}

#[tokio::test]
async fn a_patch_of_git_applies_as_a_whole() {
    let world = repository().await.with(&[("a", "two\n")]);
    let patch = world.ok("git_diff", json!({})).await;
    world.ok("git_checkout", json!({"paths": ["a"]})).await;
    world.ok("git_apply", json!({"patch": patch, "staged": true})).await;
    assert_eq!(world.ok("git_status", json!({})).await, "## main\nM  a\n?? b\n");
    let told = world.mistake("git_apply", json!({"patch": patch})).await;
    assert!(told.contains("patch does not apply"), "{told}");
    let out = "--- /dev/null\n+++ b/../outside/new\n@@ -0,0 +1 @@\n+x\n";
    let told = world.mistake("git_apply", json!({"patch": out})).await;
    assert!(told.contains("invalid path"), "{told}");
    assert!(!world.outside().join("new").exists());
}

#[tokio::test]
async fn a_name_is_never_an_option() {
    let world = repository().await;
    let evil = "--output=evil";
    for (tool, arguments) in [
        ("git_diff", json!({"revision": evil})),
        ("git_log", json!({"revision": evil})),
        ("git_checkout", json!({"revision": "-f"})),
        ("git_checkout", json!({"create": "-f"})),
    ] {
        let told = world.mistake(tool, arguments).await;
        assert!(told.contains("is no name of a revision"), "{tool}: {told}");
    }
    world.ok("git_diff", json!({"paths": [evil]})).await;
    assert!(!world.path("evil").exists());
}

/// A repository may bring hooks; they are confined as every command is.
#[tokio::test]
async fn a_repositorys_own_hooks_do_not_leave_the_workspace() {
    let world = repository().await;
    let out = world.outside().join("hooked");
    let hook =
        format!("printf '#!/bin/sh\\ntouch hooked {}\\n' > .git/hooks/pre-commit", out.display());
    world.ok("bash", json!({"command": format!("{hook}; chmod +x .git/hooks/pre-commit")})).await;
    let told = world.mistake("git_commit", json!({"message": "x", "paths": ["b"]})).await;
    assert!(told.contains("Permission denied"), "{told}");
    assert!(world.path("hooked").exists() && !out.exists());
}

#[tokio::test]
async fn a_worktree_can_commit_to_its_repository() {
    let world = World::new();
    let main = world.base.join("main");
    let tree = world.workspace();
    let script = format!(
        "set -e; mkdir -p {main}; cd {main}; git init -q; \
         git -c user.name=o -c user.email=o@o commit -q --allow-empty -m first; \
         rmdir {tree}; git worktree add -q {tree}",
        main = main.display(),
        tree = tree.display()
    );
    let made = std::process::Command::new("bash").args(["-c", &script]).status().expect("it runs");
    assert!(made.success());
    let world = world.with(&[("new", "x\n")]);
    let commit =
        "git config user.name o; git config user.email o@o; git add new; git commit -qm second";
    world.ok("bash", json!({"command": commit})).await;
    assert!(world.ok("git_log", json!({})).await.contains("second"));
    // A file that merely names a folder opens nothing.
    let (link, outside) = (world.path(".git"), world.outside());
    std::fs::write(&link, format!("gitdir: {}\n", outside.display())).expect("written");
    let write = format!("touch {}/new", outside.display());
    world.mistake("bash", json!({"command": write})).await;
    assert!(!outside.join("new").exists());
    // Nor does a whole worktree that a command has made up.
    let forged = format!(
        "mkdir -p fake; echo 'gitdir: fake' > .git; echo $PWD/.git > fake/gitdir; \
         echo {outside} > fake/commondir",
        outside = outside.display()
    );
    world.ok("bash", json!({"command": forged})).await;
    let write = format!("touch {}/new", outside.display());
    world.mistake("bash", json!({"command": write})).await;
    assert!(!outside.join("new").exists());
}
