//! `edit_file` and `write_file`.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::world::{World, order};

#[tokio::test]
async fn an_edit_replaces_what_occurs_once() {
    let world = World::new().with(&[("a", "one\ntwo\none\n")]);
    let edit = |old: &str, new: &str| json!({"path": "a", "old_text": old, "new_text": new});
    assert_eq!(world.ok("edit_file", edit("two\n", "2\n")).await, "a: 1 replaced, at lines 2\n");
    assert_eq!(world.text("a"), "one\n2\none\n");
    let told = world.mistake("edit_file", edit("one", "1")).await;
    assert!(told.contains("occurs 2 times in a (lines 1, 3)"), "{told}");
    let told = world.mistake("edit_file", edit("three", "3")).await;
    assert!(told.contains("does not occur in a"), "{told}");
    assert!(world.mistake("edit_file", edit("", "3")).await.contains("empty"));
    assert!(world.mistake("edit_file", edit("2", "2")).await.contains("the same"));
    let all = json!({"path": "a", "old_text": "one", "new_text": "1", "replace_all": true});
    assert_eq!(world.ok("edit_file", all).await, "a: 2 replaced, at lines 1, 3\n");
    assert_eq!(world.text("a"), "1\n2\n1\n");
    let told =
        world.mistake("edit_file", json!({"path": "b", "old_text": "x", "new_text": "y"})).await;
    assert_eq!(told, "b does not exist");
}

#[tokio::test]
async fn line_ends_rights_and_bytes_stay_as_they_are() {
    let world = World::new().with(&[("crlf", "a\r\nb\r\nc\r\n")]);
    let edit = json!({"path": "crlf", "old_text": "a\nb\n", "new_text": "a\nx\nb\n"});
    world.ok("edit_file", edit).await;
    assert_eq!(world.text("crlf"), "a\r\nx\r\nb\r\nc\r\n");
    let script = world.path("script");
    fs::write(&script, b"\xff old").expect("written");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o751)).expect("set");
    world.ok("edit_file", json!({"path": "script", "old_text": "old", "new_text": "new"})).await;
    assert_eq!(fs::read(&script).expect("there"), b"\xff new");
    assert_eq!(fs::metadata(&script).expect("there").mode() & 0o7777, 0o751);
    let names: Vec<_> = fs::read_dir(world.workspace()).expect("a folder").flatten().collect();
    assert_eq!(names.len(), 2, "nothing else is left: {names:?}");
}

#[tokio::test]
async fn a_file_is_written_whole_and_its_folders_made() {
    let world = World::new();
    let write = |path: &str, content: &str| json!({"path": path, "content": content});
    let told = world.ok("write_file", write("a/b/c.txt", "hello")).await;
    assert_eq!(
        (told.as_str(), world.text("a/b/c.txt").as_str()),
        ("a/b/c.txt: made, 5 bytes\n", "hello")
    );
    let told = world.ok("write_file", write("a/b/c.txt", "")).await;
    assert_eq!(
        (told.as_str(), world.text("a/b/c.txt").as_str()),
        ("a/b/c.txt: replaced, 0 bytes\n", "")
    );
    assert!(world.mistake("write_file", write("a/b", "x")).await.contains("is a folder"));
    assert!(world.mistake("write_file", write("a/b/c.txt/d", "x")).await.contains("no folder"));
    assert!(world.mistake("write_file", write(".", "x")).await.contains("is a folder"));
}

#[tokio::test]
async fn a_link_inside_is_followed_and_stays_a_link() {
    let world = World::new().with(&[("real/file", "old")]);
    symlink("real/file", world.path("link")).expect("linked");
    world.ok("edit_file", json!({"path": "link", "old_text": "old", "new_text": "new"})).await;
    assert_eq!(world.text("real/file"), "new");
    assert!(world.path("link").is_symlink());
}

/// The other name may lie anywhere.
#[tokio::test]
async fn a_second_name_of_a_file_keeps_its_bytes() {
    let world = World::new();
    let secret = world.outside().join("secret");
    fs::hard_link(&secret, world.path("inside")).expect("linked");
    world.ok("write_file", json!({"path": "inside", "content": "changed"})).await;
    assert_eq!(world.text("inside"), "changed");
    assert_eq!(fs::read_to_string(&secret).expect("there"), super::world::SECRET);
}

#[tokio::test]
async fn gits_own_files_are_not_for_file_tools() {
    let world = World::new().with(&[(".git/hooks/pre-commit", "old"), ("sub/.git/config", "old")]);
    symlink(".git/hooks", world.path("hooks")).expect("linked");
    for path in
        [".git/hooks/pre-commit", "hooks/pre-commit", "hooks/new", "sub/.git/config", ".GIT/x"]
    {
        let why = world.failure("write_file", json!({"path": path, "content": "x"})).await;
        assert!(why.contains("Git's own"), "{path}: {why}");
    }
    assert_eq!(world.text(".git/hooks/pre-commit"), "old");
}

/// Calls of one batch run at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn edits_of_the_same_file_do_not_lose_each_other() {
    let text: String = (0..20).map(|number| format!("line-{number:02}\n")).collect();
    let world = World::new().with(&[("a", &text)]);
    let toolbox = std::sync::Arc::new(world.toolbox());
    let edits: Vec<_> = (0..20)
        .map(|number| {
            let toolbox = toolbox.clone();
            let (old, new) = (format!("line-{number:02}"), format!("done-{number:02}"));
            let order = order("edit_file", json!({"path": "a", "old_text": old, "new_text": new}));
            tokio::spawn(async move { toolbox.run(&order, CancellationToken::new()).await })
        })
        .collect();
    for edit in edits {
        edit.await.expect("it ran");
    }
    assert_eq!(world.text("a"), text.replace("line", "done"));
}

#[tokio::test]
async fn what_cannot_be_written_leaves_nothing_behind() {
    let world = World::new().with(&[("a", "old")]);
    let told =
        world.mistake("write_file", json!({"path": "x".repeat(300), "content": "new"})).await;
    assert!(told.contains("File name too long"), "{told}");
    let names: Vec<_> = fs::read_dir(world.workspace()).expect("a folder").flatten().collect();
    assert_eq!(names.len(), 1, "{names:?}");
}
