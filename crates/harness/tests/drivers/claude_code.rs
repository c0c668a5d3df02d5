//! Claude Code's stdio protocol.

use qd_harness::driver::{Command, Launch, Mode, Protocol};
use qd_session::decision::{Answer, Decision, Scope};
use qd_session::id::CallId;
use serde_json::Value;

use super::exchange::{Asked, Exchange, Meant};

fn check(scenario: &str, expected: &[&str]) {
    played(scenario).check(expected);
}

fn played(scenario: &str) -> Exchange {
    let mut exchange = Exchange::start(Protocol::ClaudeCode, Launch::default());
    let scenario = format!("claude-code/{scenario}");
    exchange.play(&scenario, "stream", meaning, asked);
    exchange
}

fn asked(line: &Value) -> Option<(String, Asked)> {
    let request = &line["request"];
    let tool = request["tool_name"].as_str()?.to_owned();
    let call = CallId::new(request["tool_use_id"].as_str()?);
    Some((
        line["request_id"].as_str()?.to_owned(),
        Asked { call, tool, params: request["input"].clone() },
    ))
}

fn meaning(line: &Value, exchange: &Exchange) -> Meant {
    match line["type"].as_str() {
        Some("user") => {
            let text = line["message"]["content"].as_str().expect("a prompt").into();
            Meant::Command(vec![Command::Prompt { text }])
        }
        Some("control_request") => match line["request"]["subtype"].as_str() {
            Some("initialize") => Meant::Course,
            Some("interrupt") => Meant::Command(vec![Command::Interrupt]),
            Some("set_permission_mode") => match line["request"]["mode"].as_str() {
                Some("bypassPermissions") => Meant::Command(vec![Command::SetMode(Mode::Yolo)]),
                Some("default") => Meant::Command(vec![Command::SetMode(Mode::Ask)]),
                Some("acceptEdits") => Meant::Command(vec![Command::SetMode(Mode::Edit)]),
                _ => Meant::Command(vec![Command::SetMode(Mode::Plan)]),
            },
            _ => Meant::Skipped,
        },
        _ => decided(&line["response"], exchange),
    }
}

fn decided(response: &Value, exchange: &Exchange) -> Meant {
    let id = response["request_id"].as_str().expect("an answer names its request");
    let asked = &exchange.asked[id];
    let answer = &response["response"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let allowed = answer["behavior"] == "allow";
    let permissions = answer.get("updatedPermissions");
    let decision = match (asked.tool.as_str(), allowed) {
        ("AskUserQuestion", true) => {
            // One was answered in words of its own, which is no answer of ours.
            let Some(given) = answer["updatedInput"]["answers"].as_object() else {
                return Meant::Skipped;
            };
            let one = |(question, value): (&String, &Value)| Answer {
                question: question.clone(),
                values: vec![value.as_str().unwrap_or_default().to_owned()],
            };
            Decision::Answer { answers: given.iter().map(one).collect() }
        }
        ("ExitPlanMode", true) => {
            let mode = permissions.and_then(|list| text(&list[0]["mode"]));
            Decision::ApprovePlan { mode }
        }
        ("ExitPlanMode", false) => Decision::RejectPlan { feedback: text(&answer["message"]) },
        (_, true) => {
            let changed = answer["updatedInput"] != asked.params;
            let input = changed.then(|| answer["updatedInput"].clone());
            let scope = if permissions.is_some() { Scope::Always } else { Scope::Once };
            Decision::Allow { input, scope }
        }
        (_, false) => Decision::Deny {
            message: text(&answer["message"]),
            interrupt: answer["interrupt"] == true,
        },
    };
    Meant::Command(vec![Command::Decide { call: asked.call.clone(), decision }])
}

#[test]
fn allowed_denied_and_changed() {
    check(
        "ctl-allow-deny-change",
        &[
            "named",
            "mode default",
            "ready",
            "runs Write",
            "asks for Write",
            "ended",
            "completed: Written.",
            "runs Bash",
            "asks for Bash",
            "ended badly",
            "completed: OK.",
            "runs Bash",
            "asks for Bash",
            "ended",
            "completed: Done.",
        ],
    );
}

#[test]
fn always_is_asked_once() {
    check(
        "ctl-allow-always",
        &[
            "named",
            "mode default",
            "ready",
            "runs Write",
            "asks for Write",
            "mode acceptEdits",
            "ended",
            "runs Write",
            "ended",
            "completed: Both.",
        ],
    );
}

#[test]
fn an_api_error_fails_the_turn() {
    check(
        "ctl-api-error",
        &["named", "mode default", "ready", "failed: Passing", "completed: Back."],
    );
}

#[test]
fn questions_are_answered_and_dismissed() {
    check(
        "ctl-ask-user-question",
        &[
            "named",
            "mode default",
            "ready",
            "runs AskUserQuestion",
            "asks by AskUserQuestion",
            "ended",
            "completed: You chose SQLite.",
        ],
    );
    check(
        "ctl-ask-multi",
        &[
            "named",
            "mode default",
            "ready",
            "runs AskUserQuestion",
            "asks by AskUserQuestion",
            "ended",
            "completed: ok",
            "runs AskUserQuestion",
            "asks by AskUserQuestion",
            "ended",
            "completed: ok2",
        ],
    );
    check(
        "ctl-ask-dismissed",
        &[
            "named",
            "mode default",
            "ready",
            "runs AskUserQuestion",
            "asks by AskUserQuestion",
            "ended badly",
            "completed: You did not choose.",
        ],
    );
}

#[test]
fn an_interrupt_withdraws_what_was_asked() {
    check(
        "ctl-interrupt-permission",
        &[
            "named",
            "mode default",
            "ready",
            "runs Write",
            "asks for Write",
            "withdrawn",
            "ended badly",
            "completed: ",
        ],
    );
    check(
        "ctl-interrupt-tool",
        &["named", "mode default", "ready", "runs Bash", "ended badly", "completed: "],
    );
}

#[test]
fn plans_are_approved_and_rejected() {
    check(
        "ctl-plan-approve",
        &[
            "named",
            "mode plan",
            "ready",
            "runs Write",
            "ended",
            "runs ExitPlanMode",
            "asks for ExitPlanMode",
            "mode acceptEdits",
            "ended",
            "completed: Plan approved; working.",
        ],
    );
    check(
        "ctl-plan-reject",
        &[
            "named",
            "mode plan",
            "ready",
            "runs Write",
            "ended",
            "runs ExitPlanMode",
            "asks for ExitPlanMode",
            "ended badly",
            "completed: I will revise.",
        ],
    );
}

#[test]
fn modes_change_while_it_runs() {
    check(
        "ctl-yolo-toggle",
        &[
            "named",
            "mode default",
            "ready",
            "mode bypassPermissions",
            "runs Write",
            "ended",
            "completed: Written.",
            "mode default",
            "runs Write",
            "asks for Write",
            "ended",
            "completed: Again.",
        ],
    );
    check(
        "ctl-modes",
        &[
            "named",
            "mode default",
            "ready",
            "mode acceptEdits",
            "refused another permission mode",
            "runs Write",
            "ended",
            "completed: Written without asking.",
        ],
    );
}

#[test]
fn what_came_out_of_a_call_is_told() {
    played("ctl-allow-deny-change").check_came_out(&[
        "File created successfully at: /home/user/acme/x.txt (file state is current in your \
         context — no need to Read it back)",
        "Operator denied this from the deck",
        "(Bash completed with no output)",
    ]);
}
