//! `qd hooks status` tells what is there.

use std::fs;

use serde_json::{Value, json};

use crate::home::Home;

const CLAUDE: &str = ".claude/settings.json";

#[test]
fn status_follows_what_happens_to_the_file() {
    let home = Home::new("status");
    assert_eq!(claude(&home)["state"], "not_installed");
    home.write(CLAUDE, "{}\n");
    assert_eq!(claude(&home)["state"], "not_installed");
    home.hooks(&["install", "--yes", "--otel"]).expect(0);
    let status = claude(&home);
    assert_eq!(
        (&status["state"], &status["telemetry"]),
        (&json!("installed"), &json!("installed"))
    );

    let mut value: Value = serde_json::from_str(&home.read(CLAUDE)).unwrap();
    value["hooks"].as_object_mut().unwrap().remove("Stop");
    value["hooks"]["SessionEnd"][0]["hooks"][0]["timeout"] = json!(60);
    value["disableAllHooks"] = json!(true);
    home.write(CLAUDE, &value.to_string());
    let status = claude(&home);
    assert_eq!(status["state"], "partly");
    assert_eq!(
        (&status["missing"], &status["changed"]),
        (&json!(["Stop", "Stop (waits)"]), &json!(["SessionEnd"]))
    );
    assert_eq!(status["notes"].as_array().unwrap().len(), 1);
    home.hooks(&["install", "--yes"]).expect(0);
    assert_eq!(claude(&home)["state"], "installed");

    let forwarder = home.qd().with_file_name("qd-hook");
    fs::remove_file(&forwarder).unwrap();
    let status = claude(&home);
    assert_eq!(status["state"], "partly");
    assert_eq!(status["gone"], json!([forwarder.to_str().unwrap()]));
    let told = home.hooks(&["status", "claude-code"]).expect(0).out;
    assert!(told.starts_with("claude-code: partly ("), "{told}");
    assert!(told.contains("program gone: /"), "{told}");
}

#[test]
fn hooks_of_an_older_version_are_told_and_brought_up_to_date_and_leave_no_trace() {
    let home = Home::new("status_old");
    let before = "{\n  \"model\": \"opus\"\n}\n";
    home.write(CLAUDE, before);
    home.hooks(&["install", "--yes"]).expect(0);
    let mut value: Value = serde_json::from_str(&home.read(CLAUDE)).unwrap();
    let new = value["hooks"].clone();
    let sends = value["hooks"]["Stop"][0].clone();
    let groups = value["hooks"].as_object_mut().unwrap();
    groups["PermissionRequest"] = json!([sends]);
    groups["Stop"] = json!([sends]);
    home.write(CLAUDE, &format!("{value:#}\n"));

    let status = claude(&home);
    assert_eq!(status["state"], "partly");
    assert_eq!(status["old"], json!(["PermissionRequest (waits)", "Stop (waits)"]));
    assert_eq!((&status["missing"], &status["changed"]), (&json!([]), &json!([])));
    let told = home.hooks(&["status", "claude-code"]).expect(0).out;
    assert!(told.contains("of an older version: PermissionRequest (waits), Stop"), "{told}");

    let shown = home.hooks(&["install", "--dry-run"]).expect(0).out;
    assert!(shown.contains("+") && shown.contains("\"asyncRewake\": true"), "{shown}");
    home.hooks(&["install", "--yes"]).expect(0);
    assert_eq!(claude(&home)["state"], "installed");
    let upgraded: Value = serde_json::from_str(&home.read(CLAUDE)).unwrap();
    assert_eq!(upgraded["hooks"], new);
    home.hooks(&["uninstall", "--yes"]).expect(0);
    assert_eq!(home.read(CLAUDE), before);
}

#[test]
fn a_file_that_cannot_be_read_is_told() {
    let home = Home::new("status_unreadable");
    home.write(CLAUDE, "{\n  \"a\": ,\n}");
    let told = home.hooks(&["status"]).expect(1).out;
    assert!(told.contains("claude-code: cannot be read: line 2, column 8"), "{told}");
    assert!(told.contains("gemini-cli: not installed"), "{told}");
}

fn claude(home: &Home) -> Value {
    let outcome = home.hooks(&["status", "claude-code", "--json"]).expect(0);
    outcome.json()["harnesses"][0].clone()
}
