//! `apply_patch`.

use serde_json::json;

use super::world::World;

fn world() -> World {
    let text: String = (1..=12).map(|number| format!("line {number}\n")).collect();
    World::new().with(&[
        ("a.txt", &text),
        ("b.txt", "b\n"),
        ("crlf", "x\r\ny\r\n"),
        ("open", "end"),
    ])
}

async fn check(patch: &str, told: &str, files: &[(&str, Option<&str>)]) {
    let world = world();
    let answer = world.ok("apply_patch", json!({"patch": patch})).await;
    assert_eq!(answer, told);
    for (name, text) in files {
        match text {
            Some(text) => assert_eq!(world.text(name), *text, "{name}"),
            None => assert!(!world.path(name).exists(), "{name}"),
        }
    }
}

async fn refused(patch: &str, why: &str) {
    let world = world();
    let before = world.text("a.txt");
    let told = world.mistake("apply_patch", json!({"patch": patch})).await;
    assert!(told.contains(why), "{told}");
    assert_eq!((world.text("a.txt"), world.text("b.txt")), (before, "b\n".to_owned()));
}

#[tokio::test]
async fn files_are_changed_made_renamed_and_deleted() {
    check(
        "diff --git a/b.txt b/b.txt\nindex 1..2 100644\n--- a/b.txt\n+++ b/b.txt\n@@ -1 +1,2 @@\n-b\n+B\n+C\n\
         diff --git a/n/new b/n/new\nnew file mode 100644\n--- /dev/null\n+++ b/n/new\n@@ -0,0 +1,2 @@\n+1\n+2\n\
         \\ No newline at end of file\n\
         diff --git a/open b/open\ndeleted file mode 100644\n--- a/open\n+++ /dev/null\n@@ -1 +0,0 @@\n-end\n\
         \\ No newline at end of file\n\
         diff --git a/crlf b/moved\nsimilarity index 100%\nrename from crlf\nrename to moved\n",
        "b.txt: +2 -1\nn/new: made, 2 lines\nopen: deleted\ncrlf is now moved: +0 -0\n",
        &[
            ("b.txt", Some("B\nC\n")),
            ("n/new", Some("1\n2")),
            ("open", None),
            ("crlf", None),
            ("moved", Some("x\r\ny\r\n")),
        ],
    )
    .await;
}

#[tokio::test]
async fn numbers_may_be_wrong_when_the_lines_are_right() {
    let patched: String = (1..=12)
        .map(|number| match number {
            5 => "FIVE\n".to_owned(),
            9 => "line 9\nmore\n".to_owned(),
            _ => format!("line {number}\n"),
        })
        .collect();
    check(
        "--- a/a.txt\n+++ b/a.txt\n@@ -40,9 +40,2 @@ whatever\n line 4\n-line 5\n+FIVE\n line 6\n@@ -1,1 +1,1 @@\n line 9\n+more\n",
        "a.txt: +2 -1\n",
        &[("a.txt", Some(&patched))],
    )
    .await;
}

#[tokio::test]
async fn line_ends_are_the_files() {
    check(
        "--- a/crlf\n+++ b/crlf\n@@ -1,2 +1,3 @@\n x\n+new\n y\n",
        "crlf: +1 -0\n",
        &[("crlf", Some("x\r\nnew\r\ny\r\n"))],
    )
    .await;
    check(
        "--- a/open\n+++ b/open\n@@ -1 +1,2 @@\n end\n+more\n",
        "open: +1 -0\n",
        &[("open", Some("end\nmore\n"))],
    )
    .await;
}

#[tokio::test]
async fn a_patch_that_does_not_fit_changes_nothing() {
    let good = "--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-b\n+B\n";
    let bad = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-line one\n+x\n";
    refused(&format!("{good}{bad}"), "a.txt, hunk 1 (at line 1): its lines do not occur").await;
    refused(&format!("{good}{good}"), "b.txt is changed twice").await;
    refused("--- /dev/null\n+++ b/b.txt\n@@ -0,0 +1 @@\n+x\n", "b.txt exists already").await;
    refused("--- a/none\n+++ b/none\n@@ -1 +1 @@\n-x\n+y\n", "none does not exist").await;
    refused("hello", "no unified diff").await;
    refused("@@ -1 +1 @@\n-x\n+y\n", "before any").await;
    refused("--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n b\n", "changes nothing").await;
    refused("--- a/b.txt\n+++ b/b.txt\n@@ -1,2 +1,2 @@\n*b\n", "begins with a space").await;
}

#[tokio::test]
async fn lines_that_occur_often_need_more_around_them() {
    let world = World::new().with(&[("a", "x\ny\nx\ny\n")]);
    let patch = |at: usize| format!("--- a/a\n+++ b/a\n@@ -{at},2 +{at},2 @@\n x\n-y\n+z\n");
    let told = world.mistake("apply_patch", json!({"patch": patch(2)})).await;
    assert!(told.contains("occur 2 times"), "{told}");
    world.ok("apply_patch", json!({"patch": patch(3)})).await;
    assert_eq!(world.text("a"), "x\ny\nx\nz\n");
}

#[tokio::test]
async fn a_patch_does_not_lead_out() {
    let world = world();
    std::os::unix::fs::symlink(world.outside(), world.path("out")).expect("linked");
    for name in ["../outside/new", "/etc/qd-new", "out/new", ".git/hooks/post-commit"] {
        let patch = format!("--- /dev/null\n+++ {name}\n@@ -0,0 +1 @@\n+x\n");
        let why = world.failure("apply_patch", json!({"patch": patch})).await;
        assert!(why.starts_with("refused: "), "{name}: {why}");
    }
    assert!(!world.outside().join("new").exists());
    let patch = "--- a/out/secret\n+++ b/stolen\n@@ -1 +1 @@\n-the-operators-secret\n+x\n";
    assert!(world.failure("apply_patch", json!({"patch": patch})).await.starts_with("refused: "));
}
