//! Agents over the Agent Client Protocol.

use qd_harness::driver::{Command, Launch, Mode, Output, Protocol, Report, Resume};
use qd_session::decision::{Answer, Decision, Scope};
use qd_session::id::CallId;
use qd_session::moment::Timestamp;
use serde_json::{Value, json};

use super::exchange::{Asked, Exchange, Meant, allow};

fn check(scenario: &str, resume: Option<&str>, expected: &[&str]) {
    played(scenario, resume).check(expected);
}

fn played(scenario: &str, resume: Option<&str>) -> Exchange {
    let launch = Launch {
        cwd: "/home/dev/webapp".to_owned(),
        resume: resume.map(|id| Resume::Id(id.into())),
        ..Launch::default()
    };
    let mut exchange = Exchange::start(Protocol::Acp, launch);
    exchange.play(scenario, "acp", meaning, asked);
    exchange
}

fn asked(line: &Value) -> Option<(String, Asked)> {
    let (id, method) = (line.get("id")?, line["method"].as_str()?);
    let params = &line["params"];
    let own = id.to_string();
    let call = params["toolCall"]["toolCallId"].as_str().or(params["toolCallId"].as_str());
    let call = CallId::new(call.unwrap_or(own.trim_matches('"')));
    Some((id.to_string(), Asked { call, tool: method.to_owned(), params: params.clone() }))
}

fn meaning(line: &Value, exchange: &Exchange) -> Meant {
    let params = &line["params"];
    match line["method"].as_str() {
        Some("initialize" | "session/new" | "session/load") => Meant::Course,
        Some("session/prompt") => {
            let text = params["prompt"][0]["text"].as_str().expect("a prompt").into();
            Meant::Command(vec![Command::Prompt { text }])
        }
        Some("session/cancel") => Meant::Command(vec![Command::Interrupt]),
        Some("session/set_mode") => {
            Meant::Command(vec![Command::SetMode(match params["modeId"].as_str() {
                Some("yolo" | "bypassPermissions") => Mode::Yolo,
                Some("plan") => Mode::Plan,
                Some("acceptEdits" | "autoEdit") => Mode::Edit,
                _ => Mode::Ask,
            })])
        }
        Some(_) => Meant::Skipped,
        None => decided(line, exchange),
    }
}

fn decided(line: &Value, exchange: &Exchange) -> Meant {
    let Some(asked) = exchange.asked.get(&line["id"].to_string()) else { return Meant::Skipped };
    let result = &line["result"];
    let decision = match result["outcome"]["optionId"].as_str() {
        Some(chosen) => {
            let options = asked.params["options"].as_array().into_iter().flatten();
            let kind = options.filter(|option| option["optionId"] == chosen);
            let kind: Vec<&str> = kind.filter_map(|option| option["kind"].as_str()).collect();
            match kind.as_slice() {
                ["allow_once"] => allow(),
                ["allow_always"] => Decision::Allow { input: None, scope: Scope::Always },
                _ => Decision::Deny { message: None, interrupt: false },
            }
        }
        None => {
            let content = result["content"].as_object().into_iter().flatten();
            let one = |(question, value): (&String, &Value)| Answer {
                question: question.clone(),
                values: vec![value.as_str().unwrap_or_default().to_owned()],
            };
            Decision::Answer { answers: content.map(one).collect() }
        }
    };
    Meant::Command(vec![Command::Decide { call: asked.call.clone(), decision }])
}

#[test]
fn gemini_is_allowed_denied_and_let_loose() {
    check(
        "gemini-acp/allow-deny-yolo",
        None,
        &[
            "named",
            "mode default",
            "ready",
            "runs read",
            "ended",
            "asks for edit",
            "ended",
            "asks for execute",
            "ended",
            "completed: The greeting is in place and the check printed 2.",
            "asks for execute",
            "completed: Finished.",
            "mode yolo",
            "runs execute",
            "ended",
            "completed: Finished.",
        ],
    );
}

#[test]
fn gemini_fails_with_a_status() {
    check(
        "gemini-acp/question-error",
        None,
        &[
            "named",
            "mode default",
            "ready",
            "completed: I need a decision.Thanks, using your choice.",
            "failed: Lasting",
        ],
    );
}

#[test]
fn codex_ends_its_turn_when_it_is_refused() {
    check(
        "codex-acp/allow-deny",
        None,
        &[
            "named",
            "ready",
            "runs search",
            "ended",
            "asks for execute",
            "ended",
            "completed: Created the file.",
            "asks for execute",
            "completed: ",
        ],
    );
}

#[test]
fn a_loaded_session_tells_its_past_before_it_is_ready() {
    let id = "01a1e0a6-3dd5-7d01-a13f-130f57611138";
    check(
        "codex-acp/load-question-plan-cancel",
        Some(id),
        &[
            "named",
            "ready",
            "completed: Model metadata for `fake-model` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.Thanks.",
            "completed: Model metadata for `fake-model` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.Plan shown.",
            "completed: ",
        ],
    );
}

#[test]
fn claudes_plans_and_errors_come_through() {
    check(
        "claude-acp/plan-approval-yolo-error",
        None,
        &[
            "named",
            "mode default",
            "ready",
            "mode plan",
            "runs switch_mode",
            "asks for switch_mode",
            "mode default",
            "ended",
            "completed: Proceeding.",
            "mode plan",
            "runs switch_mode",
            "asks for switch_mode",
            "ended badly",
            "completed: ",
            "mode bypassPermissions",
            "runs Bash",
            "ended",
            "completed: Finished.",
            "failed: Lasting",
        ],
    );
}

#[test]
fn what_came_out_of_a_call_is_told() {
    played("codex-acp/allow-deny", None).check_came_out(&["```sh\ngreet.js\n```"]);
}

/// A form is asked field by field, so that each gets its own answer.
#[test]
fn the_fields_of_a_form_are_questions() {
    let mut driver = Protocol::Acp.driver(Launch::default());
    driver.start();
    let asks = json!({"jsonrpc": "2.0", "id": 9, "method": "elicitation/create", "params": {
        "message": "Two things", "requestedSchema": {"type": "object", "properties": {
            "colour": {"type": "string", "title": "Which colour?", "enum": ["red", "blue"]},
            "where": {"type": "string"}}}}});
    let out = driver.handle_line(Timestamp::ZERO, asks.to_string().as_bytes());
    let [Output::Report(Report::QuestionAsked(call))] = out.as_slice() else { panic!("{out:?}") };
    let expected = json!([
        {"id": "colour", "question": "Which colour?", "multiSelect": false,
         "options": [{"label": "red"}, {"label": "blue"}]},
        {"id": "where", "question": "where", "multiSelect": false, "options": []},
    ]);
    assert_eq!(call.arguments["questions"], expected);
    let answer = |question: &str, value: &str| Answer {
        question: question.to_owned(),
        values: vec![value.to_owned()],
    };
    let answers = vec![answer("colour", "blue"), answer("where", "here")];
    let decide =
        Command::Decide { call: call.call_id.clone(), decision: Decision::Answer { answers } };
    let out = driver.command(Timestamp::ZERO, &decide).expect("it asks");
    let [Output::Write(line)] = out.as_slice() else { panic!("{out:?}") };
    let line: Value = serde_json::from_str(line).expect("JSON");
    assert_eq!(line["result"]["content"], json!({"colour": "blue", "where": "here"}));
}

/// Kilo's `ask` is an agent that answers and changes nothing.
#[test]
fn an_agent_that_works_is_chosen_before_one_that_only_answers() {
    let mut driver = Protocol::Acp.driver(Launch { mode: Mode::Ask, ..Launch::default() });
    driver.start();
    let mut hears = |line: Value| driver.handle_line(Timestamp::ZERO, line.to_string().as_bytes());
    hears(json!({"jsonrpc": "2.0", "id": 1, "result": {"agentInfo": {"name": "Kilo"}}}));
    let modes = ["ask", "code", "debug", "plan"].map(|id| json!({"id": id}));
    let out = hears(json!({"jsonrpc": "2.0", "id": 2, "result": {"sessionId": "s",
        "modes": {"currentModeId": "plan", "availableModes": modes}}}));
    let Some(Output::Write(line)) = out.last() else { panic!("{out:?}") };
    let line: Value = serde_json::from_str(line).expect("JSON");
    assert_eq!(line["params"]["modeId"], "code");
}
