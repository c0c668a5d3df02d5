//! Kilo up to 0.26, which is on no registry any more: its recordings are all there is.

use qd_harness::driver::{Command, Driver, Launch, Mode, Output, Protocol, Report, Resume};
use qd_session::decision::Decision;
use qd_session::moment::Timestamp;
use serde_json::{Value, json};

use super::exchange::{Asked, Exchange, Meant, allow};

/// The recordings gave the first prompt on the command line; a driver gives it when it comes.
fn check(scenario: &str, launch: Launch, prompt: Option<&str>, expected: &[&str]) {
    played(scenario, launch, prompt).check(expected);
}

fn played(scenario: &str, launch: Launch, prompt: Option<&str>) -> Exchange {
    let mut exchange = Exchange::start(Protocol::Kilo, launch);
    let scenario = format!("kilo-legacy/{scenario}");
    let first = std::cell::Cell::new(prompt);
    exchange.play_from(&scenario, "stream", meaning, learn, |exchange| {
        if exchange.told.last().is_some_and(|told| told == "ready")
            && let Some(text) = first.take()
        {
            exchange.command(&scenario, &Command::Prompt { text: text.into() });
            exchange.forget_written();
        }
    });
    exchange.pass_time(Timestamp(u64::MAX));
    exchange
}

fn learn(_line: &Value) -> Option<(String, Asked)> {
    None
}

fn meaning(line: &Value, exchange: &Exchange) -> Meant {
    let text = || line["text"].as_str().map(Into::into);
    let open = exchange.last_asked.clone();
    Meant::Command(vec![match (line["type"].as_str(), open) {
        (Some("respondToApproval"), Some((call, _))) => {
            let message = line["text"].as_str().map(str::to_owned);
            let approved = line["approved"] == true;
            let deny = Decision::Deny { message, interrupt: false };
            Command::Decide { call, decision: if approved { allow() } else { deny } }
        }
        (Some("askResponse"), _) if line["askResponse"] == "yesButtonClicked" => Command::Retry,
        (Some("askResponse"), Some((call, true))) => {
            Command::AnswerInWords { call, text: text().expect("words") }
        }
        (Some("askResponse" | "newTask"), _) => Command::Prompt { text: text().expect("words") },
        (Some("cancelTask"), _) => Command::Interrupt,
        (Some("setMode"), _) if line["mode"] == "architect" => Command::SetMode(Mode::Plan),
        (Some("setMode"), _) => Command::SetMode(Mode::Ask),
        _ => return Meant::Skipped,
    }])
}

#[test]
fn writes_and_commands_are_approved_and_the_task_goes_on() {
    let prompt = Some("add a greeting #scn:k-tools");
    check(
        "json-io-approve",
        Launch::default(),
        prompt,
        &[
            "ready",
            "runs readFile",
            "ended",
            "runs editedExistingFile",
            "asks for editedExistingFile",
            "runs editedExistingFile",
            "ended",
            "runs command",
            "asks for command",
            "runs command",
            "ended",
            "runs command",
            "ended",
            "completed: The greeting is in place and the check printed 2.",
            "completed: Nothing else to do.",
        ],
    );
}

#[test]
fn what_a_command_wrote_is_told_with_its_end() {
    let prompt = Some("add a greeting #scn:k-tools");
    let exchange = played("json-io-approve", Launch::default(), prompt);
    exchange.check_came_out(&["2", "2"]);
}

#[test]
fn a_question_is_answered_in_words() {
    let prompt = Some("greet someone #scn:k-ask");
    check(
        "json-io-followup",
        Launch::default(),
        prompt,
        &["ready", "asks by question", "completed: Used your greeting."],
    );
}

#[test]
fn a_cancelled_command_ends_the_turn_when_it_has_ended() {
    let launch = Launch { mode: Mode::Yolo, ..Launch::default() };
    check(
        "json-io-cancel-command",
        launch,
        Some("long command #scn:k-long"),
        &[
            "ready",
            "runs command",
            "ended",
            "runs command",
            "ended",
            "completed: ",
            "completed: ok",
        ],
    );
}

#[test]
fn a_failed_request_is_tried_again() {
    check(
        "json-io-api-failed-retry",
        Launch::default(),
        Some("try it #scn:k-401-once"),
        &["ready", "failed: Auth", "completed: Recovered."],
    );
}

#[test]
fn a_resumed_task_is_ready_when_its_past_is_told() {
    let launch = Launch { resume: Some(Resume::Latest), ..Launch::default() };
    check("json-io-continue", launch, None, &["ready"]);
}

/// It waits for nothing but whether to try again: what is said meanwhile comes after that.
#[test]
fn a_prompt_after_a_failed_request_is_said_once_that_is_answered() {
    let mut driver = Protocol::Kilo.driver(Launch::default());
    driver.start();
    let mut at = 0;
    let mut hears = |driver: &mut Box<dyn Driver>, line: Value| {
        at += 10;
        driver.handle_line(Timestamp(at), line.to_string().as_bytes())
    };
    hears(&mut driver, json!({"type": "welcome", "metadata": {"welcomeOptions": {}}}));
    let prompt = |text: &str| Command::Prompt { text: text.into() };
    driver.command(Timestamp(20), &prompt("make it")).expect("it is up");
    let failed = json!({"timestamp": 1, "source": "extension", "type": "ask",
        "ask": "api_req_failed", "content": "500"});
    hears(&mut driver, failed);
    let out = driver.command(Timestamp(40), &prompt("and mend it")).expect("it is heard");
    assert_eq!(written(&out), [r#"{"type":"askResponse","askResponse":"yesButtonClicked"}"#]);
    hears(
        &mut driver,
        json!({"timestamp": 2, "source": "extension", "type": "say",
        "say": "api_req_retried"}),
    );
    let done = json!({"timestamp": 3, "source": "extension", "type": "ask",
        "ask": "completion_result", "partial": false});
    let out = hears(&mut driver, done.clone());
    let said = r#"{"type":"askResponse","askResponse":"messageResponse","text":"and mend it"}"#;
    assert_eq!(written(&out), [said]);
    assert!(!out.iter().any(is_over), "{out:?}");
    let mut done = done;
    done["timestamp"] = json!(4);
    let out = hears(&mut driver, done);
    assert!(out.iter().any(is_over), "{out:?}");
}

fn written(out: &[Output]) -> Vec<String> {
    let line = |output: &Output| {
        if let Output::Write(line) = output { Some(line.clone()) } else { None }
    };
    out.iter().filter_map(line).collect()
}

fn is_over(output: &Output) -> bool {
    matches!(output, Output::Report(Report::Completed { .. }))
}

/// Cline prints what was said in a task before it goes on with it: seen with 2.18.
#[test]
fn what_a_task_said_before_is_not_this_turns_answer() {
    let resume = Some(Resume::Id("1".into()));
    let mut driver = Protocol::Cline.driver(Launch { resume, ..Launch::default() });
    driver.start();
    driver.handle_exit(Some(0));
    let prompt = Command::Prompt { text: "which word was it?".into() };
    driver.command(Timestamp(1_000), &prompt).expect("it is up");
    let lines = [
        json!({"type": "task_started", "taskId": "1"}),
        json!({"ts": 100, "type": "say", "say": "task", "text": "give me a word"}),
        json!({"ts": 200, "type": "say", "say": "completion_result", "text": "Heron."}),
        json!({"ts": 1_100, "type": "say", "say": "user_feedback", "text": "which word was it?"}),
        json!({"ts": 1_200, "type": "say", "say": "api_req_started", "text": "{}"}),
        json!({"ts": 1_300, "type": "say", "say": "completion_result", "text": "Heron, I said."}),
    ];
    for line in lines {
        let out = driver.handle_line(Timestamp(1_400), line.to_string().as_bytes());
        assert!(!out.iter().any(is_over), "its process has not ended: {out:?}");
    }
    let out = driver.handle_exit(Some(0));
    let text = Some("Heron, I said.".into());
    assert_eq!(out, [Output::Report(Report::Completed { text, cut_off: false })]);
}
