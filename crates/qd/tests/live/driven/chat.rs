//! `/api/chat` with the real daemon and our own harness.

use qd_testbed::{Reply, Script};
use serde_json::{Value, json};

use super::setting::{ask, call, world};
use crate::world::World;

fn served(script: Script) -> World {
    let mut world = world(script);
    world.serve();
    world
}

fn lines(text: &str) -> Vec<Value> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

/// A message comes in as many lines as the model's stream has pieces.
fn types(lines: &[Value]) -> Vec<&str> {
    let mut types: Vec<&str> =
        lines.iter().map(|line| line["type"].as_str().expect("a type")).collect();
    types.dedup_by(|one, before| one == before && *one == "MESSAGE");
    types
}

fn said(lines: &[Value]) -> String {
    lines.iter().filter_map(|line| line["content"].as_str()).collect()
}

#[test]
fn several_asks_are_one_line_each_and_the_stream_goes_on_when_they_are_decided() {
    let write = |name: &str| json!({"path": name, "content": "hello"});
    let both = Reply::says("Two files.")
        .and_calls("write_file", write("one.txt"))
        .and_calls("write_file", write("two.txt"));
    let script = Script::new().replies(both).says("One of them.").strict();
    let world = served(script);
    let folder = world.home.workspace();
    let prompt = json!({"folderPath": folder, "prompt": "make two"});
    let (status, text) = call(&world, "POST", "/api/chat/prompt", &prompt);
    assert_eq!(status, 200, "{text}");
    let told = lines(&text);
    assert_eq!(types(&told), ["INIT", "MESSAGE", "TOOL_USE", "TOOL_USE"], "{text}");
    assert_eq!(said(&told), "Two files.");
    let [.., one, two] = told.as_slice() else { panic!("{text}") };
    assert_eq!(one["tool_name"], "write_file");
    assert_eq!(one["parameters"], write("one.txt"));
    let session = told[0]["session_id"].as_str().expect("a session");

    let decisions = json!({"sessionId": session, "toolCalls": [
        {"tool_id": one["tool_id"], "approved": true},
        {"tool_id": two["tool_id"], "approved": false, "message": "one is enough"},
    ]});
    let (status, text) = call(&world, "POST", "/api/chat/tool", &decisions);
    assert_eq!(status, 200, "{text}");
    let told = lines(&text);
    assert_eq!(told.last().expect("lines")["type"], "RESULT", "{text}");
    assert_eq!(said(&told), "One of them.");
    assert!(folder.join("one.txt").exists() && !folder.join("two.txt").exists());
}

#[test]
fn a_command_that_returns_an_error_has_an_error_for_a_result() {
    let script = Script::new().calls("bash", json!({"command": "exit 4"})).says("No.").strict();
    let world = served(script);
    let prompt = json!({"folderPath": world.home.workspace(), "prompt": "build it"});
    let asked = lines(&call(&world, "POST", "/api/chat/prompt", &prompt).1);
    let tool = &asked.last().expect("it asks")["tool_id"];
    let decisions = json!({"sessionId": asked[0]["session_id"],
        "toolCalls": [{"tool_id": tool, "approved": true}]});
    let told = lines(&call(&world, "POST", "/api/chat/tool", &decisions).1);
    let result = told.iter().find(|line| line["type"] == "TOOL_RESULT").expect("a result");
    assert_eq!(result["status"], "error", "{told:?}");
}

#[test]
fn without_a_stream_an_ask_is_a_conflict_and_stays_on_the_board() {
    let write = json!({"path": "made.txt", "content": "hello"});
    let world = served(Script::new().calls("write_file", write).says("Made.").strict());
    let folder = world.home.workspace();
    let prompt = json!({"folderPath": folder, "prompt": "make it", "stream": false});
    let (status, refused) = ask(&world, "POST", "/api/chat/prompt", &prompt);
    assert_eq!((status, &refused["code"]), (409, &json!("TOOL_APPROVAL_REQUIRED")), "{refused}");
    let card = &world.status()[0];
    assert_eq!(card["agentState"]["state"], "needs_permission");
    let decisions = json!({"sessionId": refused["sessionId"], "stream": false, "toolCalls": [
        {"tool_id": refused["toolCalls"][0]["tool_id"], "approved": true},
    ]});
    let (status, answer) = ask(&world, "POST", "/api/chat/tool", &decisions);
    assert_eq!((status, &answer["response"]), (200, &json!("Made.")), "{answer}");
    assert!(folder.join("made.txt").exists());
}

#[test]
fn yolo_is_switched_by_the_config_and_asks_nobody() {
    let write = json!({"path": "made.txt", "content": "hello"});
    let script = Script::new().says("Hello.").calls("write_file", write).says("Made.").strict();
    let world = served(script);
    let folder = world.home.workspace();
    let place = format!("/api/chat/config?folderPath={}", folder.display());
    let nothing = json!({});
    assert_eq!(ask(&world, "GET", &place, &nothing), (200, json!({"yoloMode": false})));
    let on = json!({"folderPath": folder, "yoloMode": true});
    assert_eq!(ask(&world, "PATCH", "/api/chat/config", &on).0, 404, "there is none yet");

    let prompt = |text: &str| json!({"folderPath": folder, "prompt": text, "stream": false});
    assert_eq!(ask(&world, "POST", "/api/chat/prompt", &prompt("hello")).0, 200);
    assert_eq!(ask(&world, "PATCH", "/api/chat/config", &on).0, 200);
    assert_eq!(ask(&world, "GET", &place, &nothing), (200, json!({"yoloMode": true})));
    let (status, answer) = ask(&world, "POST", "/api/chat/prompt", &prompt("make it"));
    assert_eq!((status, &answer["response"]), (200, &json!("Made.")), "{answer}");
    assert!(folder.join("made.txt").exists());
    assert_eq!(world.status().len(), 1, "one session for the folder");
}

#[test]
fn the_conversation_of_a_folder_is_known_after_a_restart_and_its_files_may_forbid_yolo() {
    let mut world = served(Script::new().says("Hello.").says("Still here.").says("Seen.").strict());
    let folder = world.home.workspace();
    let place = format!("/api/chat/config?folderPath={}", folder.display());
    let config = |world: &World| ask(world, "GET", &place, &json!({})).1["yoloMode"].clone();
    let prompt = |text: &str| json!({"folderPath": folder, "prompt": text, "stream": false});
    let on = json!({"folderPath": folder, "yoloMode": true});
    assert_eq!(ask(&world, "POST", "/api/chat/prompt", &prompt("hello")).0, 200);
    assert_eq!(ask(&world, "PATCH", "/api/chat/config", &on).0, 200);
    world.kill_daemon();
    world.serve();
    assert_eq!(config(&world), json!(true));
    assert_eq!(ask(&world, "POST", "/api/chat/prompt", &prompt("and now?")).0, 200);
    assert_eq!(world.status().len(), 1, "it went on with the same");

    let settings = folder.join(".gemini/settings.json");
    std::fs::create_dir_all(folder.join(".gemini")).expect("a folder");
    let forbids = json!({"security": {"disableYoloMode": true}}).to_string();
    std::fs::write(settings, forbids).expect("written");
    assert_eq!(ask(&world, "POST", "/api/chat/prompt", &prompt("look")).0, 200);
    assert_eq!(config(&world), json!(false), "what is effective");
    let (status, problem) = ask(&world, "PATCH", "/api/chat/config", &on);
    assert_eq!((status, &problem["code"]), (403, &json!("YOLO_FORBIDDEN")), "{problem}");
}
