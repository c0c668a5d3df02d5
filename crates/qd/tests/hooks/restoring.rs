//! Install, then uninstall: HOME is byte for byte what it was.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::home::Home;

const CLAUDE: &str = ".claude/settings.json";

const READABLE: [(&str, &str); 18] = [
    ("empty", ""),
    ("object", "{}"),
    ("object_and_newline", "{}\n"),
    ("blank", " \n\n"),
    ("one_line", r#"{"model":"opus","permissions":{"allow":["Bash(ls:*)"]}}"#),
    ("spaces", "{\n    \"model\": \"opus\"\n}\n"),
    ("odd_indentation", "{\n   \"a\" : 1 ,\n \"b\":\n  [ 1,2 ]\n      }\n"),
    ("tabs", "{\n\t\"a\": {\n\t\t\"b\": 1\n\t}\n}\n"),
    ("crlf", "{\r\n  \"a\": 1\r\n}\r\n"),
    ("byte_order_mark", "\u{feff}{\n  \"a\": 1\n}\n"),
    ("no_final_newline", "{\n  \"a\": 1\n}"),
    ("empty_hooks", "{\n  \"hooks\": {}\n}\n"),
    ("empty_event", "{\"hooks\": {\"Stop\": []}}\n"),
    (
        "foreign_hooks",
        "{\"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"say done\"}]}]}}",
    ),
    (
        "foreign_matchers",
        "{\"hooks\":{\"PreToolUse\":[{\"matcher\":\"Bash\",\"hooks\":[{\"type\":\"command\",\"command\":\"guard\"}]}]}}\n",
    ),
    ("unicode", "{\"schl\u{fc}ssel\": \"\u{1f600}\", \"\\u00fc\": \"\\ud83d\\ude00\"}\n"),
    ("duplicate_elsewhere", "{\"a\": 1, \"a\": 2}\n"),
    ("own_environment", "{\"env\": {\"OTEL_LOGS_EXPORTER\": \"otlp\"}}\n"),
];

#[test]
fn claude_code_settings_come_back_byte_for_byte() {
    for (name, text) in READABLE {
        for otel in [&["--otel"][..], &[]] {
            let home = Home::new(&format!("claude_{name}_{}", otel.len()));
            home.write(CLAUDE, text);
            check_there_and_back(&home, "claude-code", otel);
        }
    }
}

#[test]
fn gemini_settings_come_back_byte_for_byte() {
    let comments = "// mine\n{\n  \"theme\": \"x\", // dark\n  /* none */ \"mcp\": {}\n}\n";
    let readable = READABLE.into_iter().filter(|(_, text)| !text.starts_with('\u{feff}'));
    for (name, text) in readable.chain([("comments", comments)]) {
        let home = Home::new(&format!("gemini_{name}"));
        home.write(".gemini/settings.json", text);
        check_there_and_back(&home, "gemini-cli", &["--otel"]);
    }
}

#[test]
fn a_missing_file_and_a_missing_folder_are_missing_again() {
    for product in ["claude-code", "codex", "gemini-cli"] {
        let home = Home::new(&format!("missing_folder_{product}"));
        check_there_and_back(&home, product, &[]);
    }
    let home = Home::new("missing_file");
    home.write(".claude/history.jsonl", "{}\n");
    check_there_and_back(&home, "claude-code", &["--otel"]);
}

#[test]
fn a_link_stays_a_link_and_its_target_is_written() {
    let home = Home::new("link");
    let target = home.write("dotfiles/claude.json", "{\n  \"a\": 1\n}\n");
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    fs::create_dir_all(home.path(".claude")).unwrap();
    symlink("../dotfiles/claude.json", home.path(CLAUDE)).unwrap();
    let before = home.picture();
    home.hooks(&["install", "claude-code", "--yes"]).expect(0);
    assert!(fs::symlink_metadata(home.path(CLAUDE)).unwrap().is_symlink());
    assert!(fs::read_to_string(&target).unwrap().contains("qd-hook"));
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o640);
    home.hooks(&["uninstall", "claude-code", "--yes"]).expect(0);
    assert_eq!(home.picture(), before);
}

#[test]
fn a_relocated_folder_is_honoured() {
    let home = Home::new("relocated");
    home.write("elsewhere/settings.json", "{}");
    let before = home.picture();
    for action in ["install", "uninstall"] {
        let mut command = home.command(home.qd());
        command.args(["hooks", action, "--yes"]).env("CLAUDE_CONFIG_DIR", home.path("elsewhere"));
        assert!(command.output().unwrap().status.success());
        let text = home.read("elsewhere/settings.json");
        assert_eq!(text.contains("qd-hook send --harness claude-code"), action == "install");
    }
    assert_eq!(home.picture(), before);
}

#[test]
fn what_the_operator_wrote_in_between_stays_and_so_does_the_backup() {
    let home = Home::new("edited");
    home.write(CLAUDE, "{\n  \"model\": \"opus\"\n}\n");
    home.hooks(&["install", "--yes"]).expect(0);
    home.write(CLAUDE, &home.read(CLAUDE).replace("opus", "sonnet"));
    home.hooks(&["uninstall", "--yes"]).expect(0);
    assert_eq!(home.read(CLAUDE), "{\n  \"model\": \"sonnet\"\n}\n");
    let backup = format!("{CLAUDE}.before-quarterdeck");
    assert_eq!(home.read(&backup), "{\n  \"model\": \"opus\"\n}\n");
    // A second time: the first backup is not overwritten.
    home.hooks(&["install", "--yes"]).expect(0);
    home.hooks(&["uninstall", "--yes"]).expect(0);
    assert_eq!(home.read(CLAUDE), "{\n  \"model\": \"sonnet\"\n}\n");
    assert_eq!(home.read(&backup), "{\n  \"model\": \"opus\"\n}\n");
}

fn check_there_and_back(home: &Home, product: &str, otel: &[&str]) {
    let before = home.picture();
    let with_otel = |args: &[&'static str]| {
        let args = args.iter().copied().chain(otel.iter().copied()).map(str::to_owned);
        args.collect::<Vec<_>>()
    };
    let run = |args: &[String]| {
        let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
        args.insert(1, product);
        home.hooks(&args)
    };
    run(&with_otel(&["install", "--dry-run"])).expect(0);
    assert_eq!(home.picture(), before, "{product}: a dry run writes nothing");
    run(&with_otel(&["install", "--yes"])).expect(0);
    let installed = home.picture();
    assert_ne!(installed, before);
    run(&with_otel(&["install", "--yes"])).expect(0);
    assert_eq!(home.picture(), installed, "{product}: twice is once");
    run(&["uninstall".to_owned(), "--yes".to_owned()]).expect(0);
    assert_eq!(home.picture(), before, "{product}");
}
