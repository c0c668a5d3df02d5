//! Kilo up to 0.26, which is on no registry any more: a process that plays the agent's side of a
//! recording, below the real runner and machine. It goes on only when it is answered.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use qd_testbed::Script;
use serde_json::{Value, json};

use super::setting::{Driven, config};
use crate::world::{World, eventually};

/// One line of a recording, or of what is made of one.
enum Line {
    Says(String),
    /// It waits for a line.
    Hears,
}

/// The lines of a recording; what was said on its command line is heard here behind the welcome.
fn recorded(scenario: &str) -> Vec<Line> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../harness/captured/kilo-legacy");
    let text = std::fs::read_to_string(folder.join(scenario).join("signals.jsonl"));
    let mut lines = Vec::new();
    for line in text.expect("a recording").lines() {
        let line: Value = serde_json::from_str(line).expect("a line");
        let is_welcome = line["payload"]["type"] == "welcome";
        lines.push(match line["dir"] == "in" {
            true => Line::Hears,
            false => Line::Says(line["payload"].to_string()),
        });
        if is_welcome {
            lines.push(Line::Hears);
        }
    }
    lines
}

struct Kilo {
    driven: Driven,
    heard: PathBuf,
}

impl Kilo {
    fn plays(lines: &[Line], prompt: &str) -> Self {
        let world = World::new(Script::new());
        let heard = world.home.path().join("heard.jsonl");
        let mut script = "#!/bin/sh\n".to_owned();
        for line in lines {
            match line {
                Line::Says(line) => write!(script, "cat <<'END'\n{line}\nEND\n"),
                Line::Hears => {
                    let heard = heard.display();
                    write!(
                        script,
                        "IFS= read -r line || exit\nprintf '%s\\n' \"$line\" >>{heard}\n"
                    )
                }
            }
            .expect("text");
        }
        // Until it is ended.
        script.push_str("cat >/dev/null\n");
        let program = world.home.write("bin/kilocode", &script).expect("a program");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&program, mode).expect("it can be run");
        let table = format!("[agents.kilo-code]\nprogram = {program:?}\nprotocol = \"json-io\"\n");
        config(&world, "config.toml", &table);
        Self { driven: Driven::begin(world, &["kilo-code", prompt]), heard }
    }

    /// What was said to it, once there is so much.
    fn heard(&self, count: usize) -> Vec<Value> {
        eventually("a line to the agent", || {
            let text = std::fs::read_to_string(&self.heard).unwrap_or_default();
            let lines: Vec<Value> =
                text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
            (lines.len() >= count).then_some(lines)
        })
    }
}

#[test]
fn kilo_is_approved_and_takes_the_next_prompt() {
    let kilo = Kilo::plays(&recorded("json-io-approve"), "add a greeting #scn:k-tools");
    let driven = &kilo.driven;
    let request = driven.asks("editedExistingFile");
    assert!(driven.card()["requests"][0]["input"].to_string().contains("src/greet.js"));
    driven.must(&["approve", &request]);
    let request = driven.asks("command");
    driven.must(&["approve", &request]);
    driven.is("task_complete");
    driven.send("thanks, is there anything else? #scn:k-text");
    let expected = [
        json!({"type": "newTask", "text": "add a greeting #scn:k-tools"}),
        json!({"type": "respondToApproval", "approved": true}),
        json!({"type": "respondToApproval", "approved": true}),
        json!({"type": "askResponse", "askResponse": "messageResponse",
               "text": "thanks, is there anything else? #scn:k-text"}),
    ];
    assert_eq!(kilo.heard(4), expected);
    driven.is("task_complete");
    driven.must(&["stop", &driven.session]);
    driven.is("session_ended");
}

/// None was recorded: the request and the end of a turn are, and between them stands our no.
#[test]
fn kilo_is_denied() {
    let mut lines = recorded("json-io-approve");
    let says = |line: &Line, word: &str| matches!(line, Line::Says(text) if text.contains(word));
    let asks = lines.iter().position(|line| says(line, "editedExistingFile")).expect("it asks");
    let mut end = lines.split_off(asks + 1);
    let last = end.iter().rposition(|line| says(line, "\"api_req_started\"")).expect("it ends");
    lines.push(Line::Hears);
    lines.extend(end.split_off(last - 1));
    let kilo = Kilo::plays(&lines, "add a greeting");
    let driven = &kilo.driven;
    let request = driven.asks("editedExistingFile");
    driven.must(&["deny", &request]);
    let heard = kilo.heard(2);
    assert_eq!(heard[1], json!({"type": "respondToApproval", "approved": false}));
    driven.is("task_complete");
}

/// Its failed request waits for one word only: our retry says it, and nothing else.
#[test]
fn kilo_tries_again_what_failed() {
    let kilo = Kilo::plays(&recorded("json-io-api-failed-retry"), "try it #scn:k-401-once");
    let driven = &kilo.driven;
    let card = driven.is("error,auth_error,server_error");
    assert_eq!(card["capabilities"]["canRetry"], true, "{card:#}");
    let path = format!("/api/sessions/{}/retry", driven.session);
    let (status, said) = super::setting::ask(&driven.world, "POST", &path, &json!({}));
    assert_eq!(status, 200, "{said}");
    let heard = kilo.heard(2);
    assert_eq!(heard[1], json!({"type": "askResponse", "askResponse": "yesButtonClicked"}));
    driven.is("task_complete");
}

/// The same where the operator says something else meanwhile: that comes after what had failed.
#[test]
fn kilo_hears_what_was_said_after_a_failed_request() {
    let mut lines = recorded("json-io-api-failed-retry");
    lines.push(Line::Hears);
    let kilo = Kilo::plays(&lines, "try it #scn:k-401-once");
    let driven = &kilo.driven;
    driven.is("error,auth_error,server_error");
    driven.send("and then stop");
    let heard = kilo.heard(3);
    assert_eq!(heard[1], json!({"type": "askResponse", "askResponse": "yesButtonClicked"}));
    let said = json!({"type": "askResponse", "askResponse": "messageResponse",
                      "text": "and then stop"});
    assert_eq!(heard[2], said);
}

#[test]
fn kilos_question_is_answered() {
    let kilo = Kilo::plays(&recorded("json-io-followup"), "greet someone #scn:k-ask");
    let driven = &kilo.driven;
    driven.is("awaiting_input");
    driven.must(&["answer", &driven.session, "Hello"]);
    let heard = kilo.heard(2);
    assert_eq!(heard[1]["text"], "Hello");
    driven.is("task_complete");
}
