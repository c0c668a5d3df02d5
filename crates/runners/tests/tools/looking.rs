//! `read_file`, `list_files`, `grep` and `search`.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::json;

use super::world::World;

fn tree() -> World {
    World::new().with(&[
        (".gitignore", "target/\n*.log\n!keep.log\n"),
        ("README.md", "Read me.\nTwo lines.\n"),
        ("src/lib.rs", "fn one() {}\nfn Two() {}\nfn three() {}\n"),
        ("src/deep/mod.rs", "// nothing one\n"),
        ("src/deep/.gitignore", "made.rs\n"),
        ("src/deep/made.rs", "fn one() {}\n"),
        ("target/out.rs", "fn one() {}\n"),
        ("a.log", "one"),
        ("keep.log", "one"),
        (".git/config", "one"),
    ])
}

#[tokio::test]
async fn a_file_comes_with_its_line_numbers() {
    let world = World::new().with(&[("a", "x\ny\r\nz"), ("empty", "")]);
    assert_eq!(world.ok("read_file", json!({"path": "a"})).await, "1\tx\n2\ty\n3\tz\n");
    let whole = world.path("a");
    assert_eq!(world.ok("read_file", json!({"path": whole, "offset": 3})).await, "3\tz\n");
    let part = world.ok("read_file", json!({"path": "./a", "offset": 2, "limit": 1})).await;
    assert_eq!(part, "2\ty\n[more follows; go on with offset 3]\n");
    assert_eq!(world.ok("read_file", json!({"path": "empty"})).await, "[the file is empty]\n");
    let told = world.mistake("read_file", json!({"path": "a", "offset": 9})).await;
    assert_eq!(told, "the file has only 3 lines");
    assert_eq!(world.mistake("read_file", json!({"path": "b"})).await, "b does not exist");
    let told = world.mistake("read_file", json!({"path": "."})).await;
    assert!(told.contains("is a folder"), "{told}");
}

#[tokio::test]
async fn huge_files_long_lines_and_no_text_are_bounded() {
    let long = format!("{}\nend\n", "é".repeat(200_000));
    let many: String = (0..30_000).map(|number| format!("line {number}\n")).collect();
    let world = World::new().with(&[("long", &long), ("many", &many)]);
    fs::write(world.path("binary"), b"ab\0cd").expect("written");
    fs::write(world.path("latin"), b"caf\xe9\n\x1b[31m\n").expect("written");
    let read = world.ok("read_file", json!({"path": "long"})).await;
    assert!(
        read.ends_with("é [… 398000 bytes left out]\n2\tend\n"),
        "{}",
        &read[read.len() - 60..]
    );
    let read = world.ok("read_file", json!({"path": "many"})).await;
    assert!(read.ends_with("1000\tline 999\n[more follows; go on with offset 1001]\n"));
    let read = world.ok("read_file", json!({"path": "many", "limit": 5000})).await;
    assert!(read.len() < 64 << 10, "{}", read.len());
    assert!(read.contains("[more follows; go on with offset "), "{}", &read[read.len() - 60..]);
    let told = world.mistake("read_file", json!({"path": "binary"})).await;
    assert_eq!(told, "binary is no text; it has 5 bytes");
    let read = world.ok("read_file", json!({"path": "latin"})).await;
    assert_eq!(read, "1\tcaf\u{fffd}\n2\t\u{fffd}[31m\n");
}

#[tokio::test]
async fn a_pipe_is_not_waited_for() {
    let world = World::new();
    let pipe = world.path("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .expect("a pipe");
    for tool in ["read_file", "grep"] {
        let arguments = json!({"path": "pipe", "pattern": "x"});
        let arguments = if tool == "read_file" { json!({"path": "pipe"}) } else { arguments };
        let told = world.mistake(tool, arguments).await;
        assert!(told.contains("no plain file") || told.contains("no folder"), "{told}");
    }
    assert_eq!(world.ok("grep", json!({"pattern": "x"})).await, "[nothing found]\n");
}

#[tokio::test]
async fn what_git_ignores_is_not_listed() {
    let world = tree();
    symlink("/etc", world.path("etc")).expect("linked");
    let listed = world.ok("list_files", json!({})).await;
    let expected = ".gitignore\nREADME.md\netc@\nkeep.log\nsrc/\nsrc/deep/\nsrc/lib.rs\n";
    assert_eq!(listed, expected);
    let listed = world.ok("list_files", json!({"glob": "*.rs"})).await;
    assert_eq!(listed, "src/lib.rs\nsrc/deep/mod.rs\n");
    let listed = world.ok("list_files", json!({"path": "src/deep", "glob": "src/**/*.rs"})).await;
    assert_eq!(listed, "src/deep/mod.rs\n");
    let listed = world.ok("list_files", json!({"path": "src", "depth": 1})).await;
    assert_eq!(listed, "src/deep/\nsrc/lib.rs\n");
    assert_eq!(world.ok("list_files", json!({"glob": "*.none"})).await, "[nothing found]\n");
    let told = world.mistake("list_files", json!({"path": "nowhere"})).await;
    assert_eq!(told, "nowhere does not exist");
    let told = world.mistake("list_files", json!({"glob": "[a"})).await;
    assert!(told.starts_with("the glob: "), "{told}");
}

#[tokio::test]
async fn many_files_are_bounded() {
    let world = World::new();
    for number in 0..1_200 {
        fs::write(world.path(&format!("{number:04}")), "x\n").expect("written");
    }
    let listed = world.ok("list_files", json!({})).await;
    assert_eq!(listed.lines().count(), 1_001);
    assert!(listed.ends_with("0999\n[more follows; name a folder or a pattern]\n"));
    let found = world.ok("grep", json!({"pattern": "x"})).await;
    assert_eq!(found.lines().count(), 201);
    assert!(found.ends_with("0199:1:x\n[more follows; narrow the pattern or the path]\n"));
}

#[tokio::test]
async fn grep_gives_paths_lines_and_what_is_around() {
    let world = tree();
    let found = world.ok("grep", json!({"pattern": "one"})).await;
    assert_eq!(
        found,
        "keep.log:1:one\nsrc/lib.rs:1:fn one() {}\nsrc/deep/mod.rs:1:// nothing one\n"
    );
    let found =
        world.ok("grep", json!({"pattern": "^fn t", "ignore_case": true, "path": "src"})).await;
    assert_eq!(found, "src/lib.rs:2:fn Two() {}\nsrc/lib.rs:3:fn three() {}\n");
    let found = world.ok("grep", json!({"pattern": "Two", "context": 1, "glob": "*.rs"})).await;
    assert_eq!(
        found,
        "src/lib.rs-1-fn one() {}\nsrc/lib.rs:2:fn Two() {}\nsrc/lib.rs-3-fn three() {}\n"
    );
    // A file that is named is searched, though Git would not look at it.
    let found = world.ok("grep", json!({"pattern": "one", "path": "target/out.rs"})).await;
    assert_eq!(found, "target/out.rs:1:fn one() {}\n");
    let told = world.mistake("grep", json!({"pattern": "("})).await;
    assert!(told.starts_with("the pattern: "), "{told}");
    let told = world.mistake("grep", json!({"pattern": "(\\w{1000}){1000}"})).await;
    assert!(told.starts_with("the pattern: "), "{told}");
    assert_eq!(world.ok("grep", json!({"pattern": "nobody"})).await, "[nothing found]\n");
}

#[tokio::test]
async fn lines_end_where_they_end_on_other_systems_too() {
    let world = World::new().with(&[("a", "x one\r\ny\r\n")]);
    assert_eq!(world.ok("grep", json!({"pattern": "one$"})).await, "a:1:x one\n");
}

#[tokio::test]
async fn search_finds_by_words_in_path_and_text() {
    let world = tree();
    let found = world.ok("search", json!({"query": "lib"})).await;
    assert_eq!(found, "src/lib.rs\n");
    let found = world.ok("search", json!({"query": "src TWO"})).await;
    assert_eq!(found, "src/lib.rs:2: fn Two() {}\n");
    let found = world.ok("search", json!({"query": "nothing one"})).await;
    assert_eq!(found, "src/deep/mod.rs:1: // nothing one\n");
    assert_eq!(world.ok("search", json!({"query": "zebra"})).await, "[nothing found]\n");
    assert!(world.mistake("search", json!({"query": " "})).await.contains("words"));
}
