//! `policy.toml`, the operator's page about it, and the files of a repository.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use qd_host::policy_file::{PolicyFile, RepositoryPolicy};
use qd_session::policy::{Asked, Effect, Layer, Preset, Tightening, Verdict};

const PAGE: &str = include_str!("../../../docs/policy.md");
const HOME: &str = "/home/u";

fn judge(file: &PolicyFile, cwd: &str, tool: &str, input: &str) -> Verdict {
    let (session, repository) = (Layer::default(), Tightening::default());
    let here = file.policy.effective(Some(cwd), &session, &repository);
    here.judge(&Asked { tool, input: Some(input), cwd: Some(cwd), ..Asked::default() })
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("qd-policy-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("made");
        Self(path)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, text).expect("written");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn the_example_of_the_page_does_what_it_says() {
    let example = PAGE.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
    let file = PolicyFile::parsed(example.expect("an example"), Path::new(HOME));
    assert_eq!(file.troubles, []);
    assert_eq!(file.policy.rules_len(), 5);
    for (cwd, tool, input, effect, rule) in [
        ("/w", "Bash", r#"{"command":"git diff HEAD"}"#, Effect::Allow, Some("look at git")),
        ("/w", "Bash", r#"{"command":"cargo test"}"#, Effect::Allow, Some("tests")),
        ("/w", "Bash", r#"{"command":"cd x; git push"}"#, Effect::Deny, Some("no pushing")),
        ("/w", "Read", r#"{"file_path":"/w/.env"}"#, Effect::Ask, Some("secrets")),
        ("/w", "Read", r#"{"file_path":"/w/a"}"#, Effect::Allow, Some("preset careful")),
        ("/w", "WebFetch", r#"{"url":"https://docs.rs/x"}"#, Effect::Allow, Some("documentation")),
        ("/home/u/work/shop", "Read", r#"{"file_path":"a"}"#, Effect::Ask, None),
        ("/home/u/play/x", "Edit", r#"{"file_path":"a"}"#, Effect::Allow, Some("preset auto-edit")),
    ] {
        let verdict = judge(&file, cwd, tool, input);
        assert_eq!((verdict.effect, verdict.rule.as_deref()), (effect, rule), "{cwd} {input}");
    }
    let (session, repository) = (Layer::default(), Tightening::default());
    let play = file.policy.effective(Some("/home/u/play"), &session, &repository);
    assert!(play.waits_headless());
    assert_eq!(
        (play.budget().session.usd, play.budget().day.tokens),
        (Some(5.0), Some(50_000_000))
    );
}

#[test]
fn a_file_that_cannot_be_read_allows_nothing() {
    let folder = Folder::new("file");
    let path = folder.0.join("policy.toml");
    let read = || PolicyFile::read(&path, Path::new(HOME));
    let effect = |file: &PolicyFile| judge(file, "/w", "Read", r#"{"file_path":"a"}"#).effect;
    assert_eq!((read().troubles.len(), effect(&read())), (0, Effect::Ask));
    folder.write("policy.toml", "preset = \"careful\"\n");
    assert_eq!((read().troubles.len(), effect(&read())), (0, Effect::Allow));
    for text in ["preset = \"careful\"\n[[rule]\n", "preset = \"carefull\"", &"#".repeat(300_000)] {
        folder.write("policy.toml", text);
        assert_eq!((read().troubles.len(), effect(&read())), (1, Effect::Ask));
    }
    fs::remove_file(&path).expect("removed");
    fs::create_dir(&path).expect("made");
    assert_eq!((read().troubles.len(), effect(&read())), (1, Effect::Ask));
}

#[test]
fn a_repository_is_looked_through_up_to_its_root() {
    let folder = Folder::new("repository");
    let file = PolicyFile::parsed("preset = \"yolo\"", Path::new(HOME));
    let mode = |sub: &str| {
        let found = RepositoryPolicy::read(&folder.0.join(sub), Path::new(HOME));
        let session = Layer::default();
        let here = file.policy.effective(Some("/w"), &session, &found.tightening);
        (here.mode(), found.troubles.len())
    };
    folder.write("repo/.git/HEAD", "");
    folder.write("repo/a/b/file", "");
    folder.write(".quarterdeck/policy.toml", "preset = \"manual\"");
    assert_eq!(mode("repo/a/b"), (Preset::Yolo, 0));
    folder.write("repo/.gemini/settings.json", r#"{"security":{"disableYoloMode":true}}"#);
    assert_eq!(mode("repo/a/b"), (Preset::Careful, 0));
    folder.write("repo/.gemini/settings.json", "{ half");
    assert_eq!(mode("repo/a/b"), (Preset::Careful, 1));
    folder.write("repo/.gemini/settings.json", r#"{"security":{"disableYoloMode":false}}"#);
    assert_eq!(mode("repo/a/b"), (Preset::Yolo, 0));
    folder.write("repo/a/.quarterdeck/policy.toml", "preset = \"auto-edit\"");
    assert_eq!(mode("repo/a/b"), (Preset::AutoEdit, 0));
    assert_eq!(mode(""), (Preset::Manual, 0));
}

#[test]
fn a_link_of_a_repository_is_not_followed() {
    let folder = Folder::new("link");
    folder.write("elsewhere.toml", "preset = \"yolo\"");
    fs::create_dir_all(folder.0.join("repo/.quarterdeck")).expect("made");
    symlink(folder.0.join("elsewhere.toml"), folder.0.join("repo/.quarterdeck/policy.toml"))
        .expect("linked");
    let found = RepositoryPolicy::read(&folder.0.join("repo"), Path::new(HOME));
    assert_eq!(found.troubles.len(), 1);
    let file = PolicyFile::parsed("preset = \"yolo\"", Path::new(HOME));
    let session = Layer::default();
    let here = file.policy.effective(Some("/w"), &session, &found.tightening);
    let asked = Asked { tool: "Bash", input: Some("{}"), cwd: Some("/w"), ..Asked::default() };
    assert_eq!(here.judge(&asked).effect, Effect::Ask);
}

/// A session in `~/.config` could otherwise write the policy that it is judged by.
#[test]
fn no_preset_but_yolo_allows_to_read_or_write_our_settings_and_the_agents() {
    let private = ["/home/u/.config/quarterdeck", "/home/u/.claude", "/home/u/.claude.json"];
    let file = |preset: &str| {
        let read = PolicyFile::parsed(&format!("preset = \"{preset}\""), Path::new(HOME));
        let policy = read.policy.with_private(private.map(str::to_owned).to_vec());
        PolicyFile { policy, ..read }
    };
    let (cwd, home) = ("/home/u/.config", "/home/u/.claude");
    for (cwd, tool, input) in [
        (cwd, "Write", r#"{"file_path": "/home/u/.config/quarterdeck/policy.toml"}"#),
        (cwd, "Edit", r#"{"file_path": "quarterdeck/hooks.json"}"#),
        (cwd, "write_file", r#"{"path": "QuarterDeck/policy.toml"}"#),
        (cwd, "Read", r#"{"file_path": "other/../quarterdeck/config.toml"}"#),
        (cwd, "Grep", r#"{"pattern": "x", "path": "."}"#),
        (cwd, "Glob", r#"{"pattern": "**/*.toml"}"#),
        (home, "Write", r#"{"file_path": "notes.md"}"#),
        (home, "Read", r#"{"file_path": ".credentials.json"}"#),
    ] {
        for preset in ["careful", "auto-edit"] {
            let verdict = judge(&file(preset), cwd, tool, input);
            assert_eq!(verdict.effect, Effect::Ask, "{preset} {tool} {input}");
        }
    }
    let beside = judge(&file("auto-edit"), cwd, "Write", r#"{"file_path": "other/file"}"#);
    assert_eq!(beside.effect, Effect::Allow);
}
