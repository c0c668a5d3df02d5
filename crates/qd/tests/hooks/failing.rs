//! What cannot be done: a clear word, and nothing changed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::home::{Home, Outcome};

const CLAUDE: &str = ".claude/settings.json";

#[test]
fn a_file_that_cannot_be_edited_is_left_alone() {
    let nested = format!("{{\"a\": {}{}}}", "[".repeat(200_000), "]".repeat(200_000));
    for (name, text, said) in [
        ("invalid", "{\n  \"a\": 1,\n}\n", "line 3, column 1"),
        ("cut_off", "{\"a\": [1", "line 1, column 8"),
        ("comment", "{\n  // no\n}\n", "line 2, column 3"),
        ("list", "[]", "the file should be an object"),
        ("hooks_list", "{\"hooks\": []}", "\"hooks\" should be an object"),
        ("event_object", "{\"hooks\": {\"Stop\": {}}}", "\"Stop\" should be a list"),
        ("twice", "{\"hooks\": {}, \"hooks\": {}}", "\"hooks\" is there twice"),
        ("nested", &nested, "nesting depth"),
        ("huge", &format!("{{\"a\": \"{}\"}}", "x".repeat(4 << 20)), "larger than 4 MiB"),
    ] {
        let home = Home::new(&format!("refused_{name}"));
        home.write(CLAUDE, text);
        check_refused(&home, said);
    }
}

#[test]
fn what_is_no_settings_file_is_left_alone() {
    let home = Home::new("no_text");
    fs::write(home.write(CLAUDE, ""), b"{\"a\": \"\xff\"}").unwrap();
    check_refused(&home, "is not UTF-8");

    let home = Home::new("folder");
    fs::create_dir_all(home.path(CLAUDE)).unwrap();
    check_refused(&home, "is not a file");

    let home = Home::new("dangling");
    fs::create_dir_all(home.path(".claude")).unwrap();
    symlink("nowhere.json", home.path(CLAUDE)).unwrap();
    check_refused(&home, "which does not exist");
}

#[test]
fn what_is_read_only_is_left_alone() {
    let home = Home::new("read_only_file");
    let path = home.write(CLAUDE, "{}");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    check_refused(&home, "is read-only");

    let home = Home::new("read_only_folder");
    home.write(CLAUDE, "{}");
    let folder = home.path(".claude");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o555)).unwrap();
    check_refused(&home, "is read-only");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn one_bad_file_does_not_stop_the_others() {
    let home = Home::new("one_bad");
    home.write(CLAUDE, "{");
    home.write(".gemini/settings.json", "{}");
    let outcome = home.hooks(&["install", "--yes"]).expect(1);
    assert!(outcome.err.contains("claude-code: "), "{outcome:?}");
    assert_eq!(home.read(CLAUDE), "{");
    assert!(home.read(".gemini/settings.json").contains("qd-hook"));
}

#[test]
fn a_full_disk_changes_nothing() {
    let home = Home::new("full_disk");
    home.write(CLAUDE, "{\"a\": 1}\n");
    let before = home.picture();
    // No file may grow past 512 bytes: a write fails half-way, as on a full disk.
    let outcome = limited(&home, "trap '' XFSZ; ulimit -f 1");
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.err.contains("nothing was changed"), "{outcome:?}");
    let mut after = home.picture();
    after.retain(|(path, ..)| !path.ends_with("settings.json.before-quarterdeck"));
    assert_eq!(after, before);
}

#[test]
fn a_kill_in_the_middle_of_a_write_changes_nothing_and_is_got_over() {
    let home = Home::new("killed");
    home.write(CLAUDE, "{\"a\": 1}\n");
    let before = home.picture();
    // The same, but the signal kills.
    let outcome = limited(&home, "ulimit -f 1");
    assert_eq!(outcome.code, None, "{outcome:?}");
    assert_eq!(home.read(CLAUDE), "{\"a\": 1}\n");
    home.hooks(&["install", "claude-code", "--yes"]).expect(0);
    home.hooks(&["uninstall", "claude-code", "--yes"]).expect(0);
    assert_eq!(home.picture(), before);
}

#[test]
fn without_a_forwarder_nothing_is_installed() {
    let home = Home::new("no_forwarder");
    home.write(CLAUDE, "{}");
    fs::remove_file(home.qd().with_file_name("qd-hook")).unwrap();
    check_refused(&home, "the forwarder is not beside this program");
}

#[test]
fn without_any_agent_it_says_so() {
    let home = Home::new("no_agent");
    let outcome = home.hooks(&["install", "--yes"]).expect(1);
    assert!(outcome.err.contains("no agent has a settings folder here"), "{outcome:?}");
}

fn limited(home: &Home, limit: &str) -> Outcome {
    let script = format!("{limit}; exec \"$0\" hooks install claude-code --yes");
    let mut shell = home.command("/bin/sh");
    Outcome::of(shell.arg("-c").arg(script).arg(home.qd()).output().unwrap())
}

fn check_refused(home: &Home, said: &str) {
    let before = home.picture();
    let outcome = home.hooks(&["install", "claude-code", "--yes"]).expect(1);
    assert!(outcome.err.contains(said), "{said}: {outcome:?}");
    assert_eq!(home.picture(), before);
}
