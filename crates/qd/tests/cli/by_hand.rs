//! Hooks that a script of the operator's own posts: docs/hooks-by-hand.md, word by word.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::world::World;

/// The first block of that kind in the page.
fn block(kind: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/hooks-by-hand.md");
    let page = fs::read_to_string(page).expect("the page");
    let fence = format!("```{kind}\n");
    let begin = page.find(&fence).expect("a block") + fence.len();
    let end = page[begin..].find("```").expect("its end");
    page[begin..begin + end].to_owned()
}

/// The line that the page adds to the script.
const TOKEN_LINE: &str =
    "  -H \"Authorization: Bearer $(cat ~/.local/state/quarterdeck/tokens/ingest)\" \\\n";

impl World {
    fn about(&self) -> Value {
        let mut stream = UnixStream::connect(self.socket()).expect("it listens");
        let request = "GET /api/health HTTP/1.1\r\nhost: quarterdeck\r\nconnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).expect("asked");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("text");
        let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
        serde_json::from_str(body).expect("JSON")
    }

    /// The page's script where the settings look for it, with this test's port.
    fn script(&self, text: &str) {
        let port = format!("localhost:{}", self.about()["port"]);
        let token = self.run(&["token", "--scope", "ingest", "--path"]).expect(0).out;
        let text = text.replace("localhost:47892", &port);
        // Tests have a state folder of their own.
        let text = text.replace("~/.local/state/quarterdeck/tokens/ingest", token.trim());
        let path = self.write("home/.claude/hooks/notify-mission-control.sh", &text);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("runnable");
    }

    /// Runs what the settings have for an event, as Claude Code would.
    fn fires(&self, settings: &Value, event: &str, body: &str) {
        let command = &settings["hooks"][event][0]["hooks"][0]["command"];
        let mut hook = self.command("/bin/sh");
        hook.args(["-c", command.as_str().expect("a command")]).stdin(Stdio::piped());
        let mut child = hook.spawn().expect("a shell");
        child.stdin.take().expect("its input").write_all(body.as_bytes()).expect("written");
        assert!(child.wait().expect("it ends").success(), "a hook never fails");
    }

    fn states(&self) -> Vec<String> {
        let board = self.run(&["status", "--json"]).expect(0).json();
        let cards = board["sessions"].as_array().cloned().unwrap_or_default();
        let state = |card: &Value| card["agentState"]["state"].as_str().unwrap_or("?").to_owned();
        cards.iter().map(state).collect()
    }

    fn posted(&self) -> Option<String> {
        let report = self.run(&["doctor", "--json"]).json();
        let checks = report["checks"].as_array().expect("checks");
        let found = checks.iter().find(|check| check["check"] == "posted hooks");
        found.map(|check| format!("{} {}", check["reason"], check["advice"]))
    }
}

fn hook(event: &str, more: &Value) -> String {
    let mut payload = json!({"session_id": "by-hand", "cwd": "/w", "hook_event_name": event,
        "permission_mode": "default"});
    let more = more.as_object().cloned().unwrap_or_default();
    payload.as_object_mut().expect("an object").extend(more);
    payload.to_string()
}

#[test]
fn the_script_and_the_settings_of_the_page_report_as_they_stand_there() {
    let world = World::new();
    let daemon = world.daemon();
    let settings: Value = serde_json::from_str(&block("json")).expect("settings");
    world.script(&block("bash"));
    let call = json!({"tool_name": "Bash", "tool_input": {"command": "make"}});
    world.fires(&settings, "PermissionRequest", &hook("PermissionRequest", &call));
    world.run(&["wait", "by-hand", "--until", "needs-permission", "--timeout", "30"]).expect(0);
    let done = json!({"last_assistant_message": "It is done.", "background_tasks": []});
    world.fires(&settings, "Stop", &hook("Stop", &done));
    world.run(&["wait", "by-hand", "--until", "task-complete", "--timeout", "30"]).expect(0);
    world.fires(&settings, "SessionEnd", &hook("SessionEnd", &json!({"reason": "other"})));
    world.run(&["wait", "by-hand", "--until", "session-ended", "--timeout", "30"]).expect(0);
    assert_eq!(world.posted(), None);
    drop(daemon);
}

#[test]
fn without_the_line_for_the_token_the_doctor_says_so() {
    let world = World::new();
    let _daemon = world.daemon();
    let settings: Value = serde_json::from_str(&block("json")).expect("settings");
    let script = block("bash");
    let bare = script.replace(TOKEN_LINE, "");
    assert_ne!(bare, script, "one line is all the difference");
    world.script(&bare);
    world.fires(&settings, "Stop", &hook("Stop", &json!({})));
    world.script(&script.replace("$(cat ~/.local/state/quarterdeck/tokens/ingest)", "old"));
    world.fires(&settings, "Stop", &hook("Stop", &json!({})));
    world.script(&script);
    world.fires(&settings, "Stop", "no JSON");
    assert_eq!(world.states(), [""; 0]);
    let told = world.posted().expect("a warning");
    assert!(told.contains("1 bodies"), "{told}");
    assert!(told.contains("1 hooks were posted to /api/live/hook without a token and 1"), "{told}");
    assert!(told.contains("hooks-by-hand.md"), "{told}");
}

#[test]
fn what_is_no_hook_is_refused_and_counted() {
    let world = World::new();
    let _daemon = world.daemon();
    let settings: Value = serde_json::from_str(&block("json")).expect("settings");
    world.script(&block("bash"));
    for body in
        ["no JSON", "{\"half", "[]", r#"{"hook_event_name":"Stop"}"#, r#"{"session_id":""}"#]
    {
        world.fires(&settings, "Stop", body);
    }
    assert_eq!(world.about()["refusedHooks"]["broken"], 5);
    assert_eq!(world.about()["hooks"], 0, "none was kept");
    assert!(world.posted().is_some_and(|told| told.contains("5 bodies")));
}

#[test]
fn whose_hook_it_is_stands_in_the_address() {
    let world = World::new();
    let _daemon = world.daemon();
    let settings: Value = serde_json::from_str(&block("json")).expect("settings");
    for (name, event) in [("codex", "UserPromptSubmit"), ("gemini_cli", "BeforeAgent")] {
        let address = format!("/api/live/hook?harness={name}");
        world.script(&block("bash").replace("/api/live/hook", &address));
        let payload = json!({"session_id": name, "hook_event_name": event, "prompt": "go on",
            "turn_id": "t-1", "cwd": "/w"});
        world.fires(&settings, "Stop", &payload.to_string());
        let wait = ["wait", name, "--until", "autonomous", "--timeout", "30", "--json"];
        assert_eq!(world.run(&wait).expect(0).json()["harness"], name);
    }
}

#[test]
fn what_wrappers_tell_of_permissions_and_interrupts_is_taken() {
    let world = World::new();
    let _daemon = world.daemon();
    let call = json!({"tool_name": "Bash", "tool_use_id": "toolu_1",
        "tool_input": {"command": "make"}});
    let told = |event: &str, more: &Value, until: &str| {
        let mut payload = json!({"session_id": "wrapped", "hook_event_name": event});
        for part in [&call, more] {
            let part = part.as_object().cloned().unwrap_or_default();
            payload.as_object_mut().expect("an object").extend(part);
        }
        world.posts(&payload);
        world.run(&["wait", "wrapped", "--until", until, "--timeout", "30"]).expect(0);
    };
    told("PreToolUse", &json!({}), "acting");
    told("PermissionRequest", &json!({}), "needs-permission");
    told("permission_decision", &json!({"decision": "ask_user"}), "needs-permission");
    told("permission_decision", &json!({"decision": "allow"}), "acting");
    told("Interrupt", &json!({}), "interrupted");
}
