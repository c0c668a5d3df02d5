//! Operator's decision in, vendor's answer out.
//!
//! Pure text: who is asked, when, and whether the answer arrived is the caller's business. What a
//! hook prints and what the stdio protocol takes differ in small ways that matter: a plan is only
//! approved with its input sent back, an allowance over stdio always carries the whole input.

use qd_session::decision::{Answer, Decision, Scope};
use serde::Serialize;
use serde_json::{Map, Value};

/// What the client asked, as its hook or `can_use_tool` told it.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    pub tool: &'a str,
    /// `tool_input` or `input`, whole.
    pub input: &'a Value,
    /// `permission_suggestions`, where there are any.
    pub suggestions: Option<&'a Value>,
}

/// What a `PermissionRequest` hook prints, or answers over HTTP.
pub fn permission_hook(asked: &Asked<'_>, decision: &Decision) -> String {
    let verdict = match Verdict::of(asked, decision) {
        // The dialog stays where a tool that needs a person gets no input back.
        Verdict::Allow { input: None, permissions } if needs_a_person(asked.tool) => {
            Verdict::Allow { input: Some(asked.input.clone()), permissions }
        }
        Verdict::Deny { message, interrupt } => {
            Verdict::Deny { message, interrupt: Some(interrupt.unwrap_or(false)) }
        }
        allow @ Verdict::Allow { .. } => allow,
    };
    text(&HookOutput { specific: PermissionOutput { event: "PermissionRequest", verdict } })
}

/// What a `PreToolUse` hook prints. While it waits no dialog shows, so it is for sessions whose
/// only operator is us.
pub fn pre_tool_hook(asked: &Asked<'_>, decision: &Decision) -> String {
    let (verdict, reason, input) = match Verdict::of(asked, decision) {
        Verdict::Allow { input, .. } => ("allow", None, input),
        Verdict::Deny { message, .. } => ("deny", Some(message), None),
    };
    text(&HookOutput { specific: PreToolOutput { event: "PreToolUse", verdict, reason, input } })
}

/// What a `Stop` hook prints to make the agent go on.
pub fn stop_hook(reason: &str) -> String {
    text(&StopOutput { decision: "block", reason })
}

/// What a Stop hook with `asyncRewake` writes to its standard error before it exits with 2: the
/// client makes a prompt of it.
pub fn rewake(prompt: &str) -> String {
    prompt.trim().to_owned()
}

/// The exit code that wakes the session.
pub const REWAKE_EXIT_CODE: i32 = 2;

/// The answer to a `can_use_tool` of that request id: one line to the client.
pub fn can_use_tool(request: &str, asked: &Asked<'_>, decision: &Decision) -> String {
    let verdict = match Verdict::of(asked, decision) {
        Verdict::Allow { input, permissions } => Verdict::Allow {
            input: Some(input.unwrap_or_else(|| asked.input.clone())),
            permissions,
        },
        deny @ Verdict::Deny { .. } => deny,
    };
    let response = Response { subtype: "success", request_id: request, response: verdict };
    text(&ControlResponse { kind: "control_response", response })
}

/// The first line to the client.
pub fn initialize(request: &str) -> String {
    control(request, ControlRequest { subtype: "initialize", mode: None })
}

/// The first line to a client that is to be held after each batch of its tools: it asks for leave
/// to go on, under this callback.
pub fn initialize_held(request: &str, callback: &str) -> String {
    let hook = serde_json::json!([{ "hookCallbackIds": [callback], "timeout": HELD_SECONDS_MAX }]);
    let request_line = serde_json::json!({
        "type": "control_request",
        "request_id": request,
        "request": { "subtype": "initialize", "hooks": { "PostToolBatch": hook } },
    });
    request_line.to_string()
}

/// How long the client lets itself be held: longer than all post-tool hooks together may take.
const HELD_SECONDS_MAX: u32 = 3_600;

/// Lets the client go on after a callback.
pub fn go_on(request: &str) -> String {
    let response = serde_json::json!({
        "subtype": "success", "request_id": request, "response": { "continue": true },
    });
    serde_json::json!({ "type": "control_response", "response": response }).to_string()
}

/// The answer to a request that we have no answer to: the client must not wait for one.
pub fn cannot(request: &str, why: &str) -> String {
    let response = serde_json::json!({ "subtype": "error", "request_id": request, "error": why });
    serde_json::json!({ "type": "control_response", "response": response }).to_string()
}

/// Ends the turn; the process stays and takes the next prompt.
pub fn interrupt(request: &str) -> String {
    control(request, ControlRequest { subtype: "interrupt", mode: None })
}

pub fn set_permission_mode(request: &str, mode: &str) -> String {
    control(request, ControlRequest { subtype: "set_permission_mode", mode: Some(mode) })
}

/// The next prompt.
pub fn user_message(prompt: &str) -> String {
    let message = UserMessage { role: "user", content: prompt };
    text(&UserLine { kind: "user", message, parent_tool_use_id: None, session_id: "" })
}

/// Allow or deny, in the vendor's words; what is left out means "as it was".
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "behavior", rename_all = "lowercase")]
enum Verdict {
    Allow {
        #[serde(rename = "updatedInput", skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
        #[serde(rename = "updatedPermissions", skip_serializing_if = "Option::is_none")]
        permissions: Option<Value>,
    },
    Deny {
        message: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        interrupt: Option<bool>,
    },
}

impl Verdict {
    fn of(asked: &Asked<'_>, decision: &Decision) -> Self {
        match decision {
            Decision::Allow { input, scope } => {
                Self::Allow { input: input.clone(), permissions: permissions(asked, *scope) }
            }
            Decision::Deny { message, interrupt } => {
                let message = message.as_deref().unwrap_or("The operator denied this");
                Self::Deny { message: message.to_owned(), interrupt: interrupt.then_some(true) }
            }
            Decision::Answer { answers } => {
                Self::Allow { input: Some(answered(asked.input, answers)), permissions: None }
            }
            Decision::ApprovePlan { mode } => Self::Allow {
                input: Some(asked.input.clone()),
                permissions: mode.as_deref().map(set_mode),
            },
            Decision::RejectPlan { feedback } => {
                let feedback = feedback.as_deref().unwrap_or("The operator rejected this plan");
                Self::Deny { message: feedback.to_owned(), interrupt: None }
            }
        }
    }
}

pub(crate) fn needs_a_person(tool: &str) -> bool {
    matches!(tool, "ExitPlanMode" | "AskUserQuestion")
}

/// "Always" is what the client suggested; for the session only, it is kept nowhere.
fn permissions(asked: &Asked<'_>, scope: Scope) -> Option<Value> {
    let suggested = asked.suggestions?.as_array().filter(|list| !list.is_empty())?;
    match scope {
        Scope::Once => None,
        Scope::Always => Some(Value::from(suggested.clone())),
        Scope::Session => {
            let mut list = suggested.clone();
            for one in list.iter_mut().filter_map(Value::as_object_mut) {
                one.insert("destination".to_owned(), Value::from("session"));
            }
            Some(Value::from(list))
        }
    }
}

/// One of `permission_suggestions` in words: `Bash(cargo test:*) in this project`.
pub fn suggestion(suggested: &Value) -> Option<String> {
    let what = match suggested["type"].as_str()? {
        "addRules" => {
            let rule = |rule: &Value| {
                let tool = rule["toolName"].as_str()?;
                Some(match rule["ruleContent"].as_str() {
                    Some(content) => format!("{tool}({content})"),
                    None => tool.to_owned(),
                })
            };
            let rules = suggested["rules"].as_array()?.iter().filter_map(rule);
            rules.collect::<Vec<_>>().join(", ")
        }
        "setMode" => format!("mode {}", suggested["mode"].as_str()?),
        "addDirectories" => {
            let list = suggested["directories"].as_array()?.iter().filter_map(Value::as_str);
            format!("the folder {}", list.collect::<Vec<_>>().join(", "))
        }
        _ => return None,
    };
    let place = match suggested["destination"].as_str()? {
        "session" => "in this session",
        "localSettings" => "in this project, for you",
        "projectSettings" => "in this project",
        "userSettings" => "everywhere",
        _ => return None,
    };
    Some(format!("{what} {place}"))
}

/// The mode that follows the plan.
fn set_mode(mode: &str) -> Value {
    serde_json::json!([{ "type": "setMode", "mode": mode, "destination": "session" }])
}

/// The questions sent back with their answers, by the questions' text.
fn answered(input: &Value, answers: &[Answer]) -> Value {
    let answers: Map<String, Value> = answers
        .iter()
        .map(|answer| (answer.question.clone(), Value::from(answer.values.join(", "))))
        .collect();
    let mut input = input.as_object().cloned().unwrap_or_default();
    input.insert("answers".to_owned(), Value::from(answers));
    Value::from(input)
}

fn control(request_id: &str, request: ControlRequest<'_>) -> String {
    text(&ControlLine { kind: "control_request", request_id, request })
}

fn text(answer: &impl Serialize) -> String {
    // Only maps with keys that are no text could fail, and there are none.
    serde_json::to_string(answer).expect("answers are plain JSON")
}

#[derive(Serialize)]
struct HookOutput<T> {
    #[serde(rename = "hookSpecificOutput")]
    specific: T,
}

#[derive(Serialize)]
struct PermissionOutput {
    #[serde(rename = "hookEventName")]
    event: &'static str,
    #[serde(rename = "decision")]
    verdict: Verdict,
}

#[derive(Serialize)]
struct PreToolOutput {
    #[serde(rename = "hookEventName")]
    event: &'static str,
    #[serde(rename = "permissionDecision")]
    verdict: &'static str,
    #[serde(rename = "permissionDecisionReason", skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(rename = "updatedInput", skip_serializing_if = "Option::is_none")]
    input: Option<Value>,
}

#[derive(Serialize)]
struct StopOutput<'a> {
    decision: &'static str,
    reason: &'a str,
}

#[derive(Serialize)]
struct ControlResponse<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    response: Response<'a>,
}

#[derive(Serialize)]
struct Response<'a> {
    subtype: &'static str,
    request_id: &'a str,
    response: Verdict,
}

#[derive(Serialize)]
struct ControlLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    request_id: &'a str,
    request: ControlRequest<'a>,
}

#[derive(Serialize)]
struct ControlRequest<'a> {
    subtype: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<&'a str>,
}

#[derive(Serialize)]
struct UserLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    message: UserMessage<'a>,
    parent_tool_use_id: Option<&'a str>,
    session_id: &'static str,
}

#[derive(Serialize)]
struct UserMessage<'a> {
    role: &'static str,
    content: &'a str,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ALLOW: Decision = Decision::Allow { input: None, scope: Scope::Once };

    fn write() -> Value {
        json!({"file_path": "/home/user/acme/x.txt", "content": "x"})
    }

    fn deny(message: &str, interrupt: bool) -> Decision {
        Decision::Deny { message: Some(message.to_owned()), interrupt }
    }

    fn check_hook(tool: &str, input: &Value, decision: &Decision, expected: &str) {
        let suggestions = json!([
            {"type": "setMode", "mode": "acceptEdits", "destination": "session"}
        ]);
        let asked = Asked { tool, input, suggestions: Some(&suggestions) };
        let expected = format!(
            r#"{{"hookSpecificOutput":{{"hookEventName":"PermissionRequest","decision":{expected}}}}}"#
        );
        let told = permission_hook(&asked, decision);
        assert!(told.starts_with(r#"{"hookSpecificOutput":{"hookEventName":"PermissionRequest","#));
        let read = |text: &str| serde_json::from_str::<Value>(text).expect("it is JSON");
        assert_eq!(read(&told), read(&expected), "{told}");
    }

    fn check_stdio(tool: &str, input: &Value, decision: &Decision, expected: &str) {
        let asked = Asked { tool, input, suggestions: None };
        let expected = format!(
            r#"{{"type":"control_response","response":{{"subtype":"success","request_id":"r1","response":{expected}}}}}"#
        );
        assert_eq!(can_use_tool("r1", &asked, decision), expected);
    }

    #[test]
    fn a_permission_is_allowed_or_denied_to_the_byte() {
        let input = write();
        let asked = Asked { tool: "Write", input: &input, suggestions: None };
        assert_eq!(
            permission_hook(&asked, &ALLOW),
            r#"{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}"#
        );
        assert_eq!(
            permission_hook(&asked, &deny("Operator said no", false)),
            r#"{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"Operator said no","interrupt":false}}}"#
        );
        assert_eq!(
            permission_hook(&asked, &deny("Stop it", true)),
            r#"{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"Stop it","interrupt":true}}}"#
        );
    }

    #[test]
    fn a_changed_input_replaces_the_whole() {
        let changed = json!({"file_path": "/home/user/acme/x.txt", "content": "changed"});
        let decision = Decision::Allow { input: Some(changed), scope: Scope::Once };
        check_hook(
            "Write",
            &write(),
            &decision,
            r#"{"behavior":"allow","updatedInput":{"file_path":"/home/user/acme/x.txt","content":"changed"}}"#,
        );
    }

    #[test]
    fn always_is_what_the_client_suggested() {
        let decision = Decision::Allow { input: None, scope: Scope::Always };
        check_hook(
            "Write",
            &write(),
            &decision,
            r#"{"behavior":"allow","updatedPermissions":[{"type":"setMode","mode":"acceptEdits","destination":"session"}]}"#,
        );
    }

    #[test]
    fn for_the_session_a_suggested_rule_is_kept_nowhere() {
        let rules = json!([{"type": "addRules", "rules": [{"toolName": "Bash"}],
            "behavior": "allow", "destination": "localSettings"}]);
        let input = json!({"command": "ls"});
        let asked = Asked { tool: "Bash", input: &input, suggestions: Some(&rules) };
        let decision = Decision::Allow { input: None, scope: Scope::Session };
        assert!(permission_hook(&asked, &decision).contains(r#""destination":"session""#));
    }

    #[test]
    fn answers_go_back_with_their_questions() {
        let input = json!({"questions": [{"question": "Which DBs?"}, {"question": "Name?"}]});
        let answer = |question: &str, values: &[&str]| Answer {
            question: question.to_owned(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        let answers =
            vec![answer("Which DBs?", &["SQLite", "Postgres"]), answer("Name?", &["my own text"])];
        let expected = r#"{"behavior":"allow","updatedInput":{"answers":{"Name?":"my own text","Which DBs?":"SQLite, Postgres"},"questions":[{"question":"Which DBs?"},{"question":"Name?"}]}}"#;
        let decision = Decision::Answer { answers };
        check_hook("AskUserQuestion", &input, &decision, expected);
        check_stdio("AskUserQuestion", &input, &decision, expected);
    }

    #[test]
    fn a_plan_is_approved_only_with_its_input_sent_back() {
        let input = json!({"plan": "# Plan", "planFilePath": "/p.md"});
        let to_mode = Decision::ApprovePlan { mode: Some("acceptEdits".to_owned()) };
        check_hook(
            "ExitPlanMode",
            &input,
            &to_mode,
            r##"{"behavior":"allow","updatedInput":{"plan":"# Plan","planFilePath":"/p.md"},"updatedPermissions":[{"type":"setMode","mode":"acceptEdits","destination":"session"}]}"##,
        );
        let plain =
            r##"{"behavior":"allow","updatedInput":{"plan":"# Plan","planFilePath":"/p.md"}}"##;
        check_hook("ExitPlanMode", &input, &Decision::ApprovePlan { mode: None }, plain);
        check_hook("ExitPlanMode", &input, &ALLOW, plain);
    }

    #[test]
    fn a_rejected_plan_carries_the_feedback() {
        let input = json!({"plan": "# Plan"});
        let decision = Decision::RejectPlan { feedback: Some("Add a rollback step".to_owned()) };
        check_stdio(
            "ExitPlanMode",
            &input,
            &decision,
            r#"{"behavior":"deny","message":"Add a rollback step"}"#,
        );
        check_hook(
            "ExitPlanMode",
            &input,
            &decision,
            r#"{"behavior":"deny","message":"Add a rollback step","interrupt":false}"#,
        );
    }

    #[test]
    fn over_stdio_an_allowance_carries_the_whole_input() {
        let input = json!({"content": "x"});
        let allowed = r#"{"behavior":"allow","updatedInput":{"content":"x"}}"#;
        check_stdio("Write", &input, &ALLOW, allowed);
        let denied = r#"{"behavior":"deny","message":"no"}"#;
        check_stdio("Write", &input, &deny("no", false), denied);
        let ended = r#"{"behavior":"deny","message":"no","interrupt":true}"#;
        check_stdio("Write", &input, &deny("no", true), ended);
    }

    #[test]
    fn a_pre_tool_hook_decides_without_a_dialog() {
        let input = json!({"command": "ls"});
        let asked = Asked { tool: "Bash", input: &input, suggestions: None };
        assert_eq!(
            pre_tool_hook(&asked, &ALLOW),
            r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}"#
        );
        assert_eq!(
            pre_tool_hook(&asked, &deny("policy", false)),
            r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"policy"}}"#
        );
    }

    #[test]
    fn an_idle_agent_is_sent_on() {
        assert_eq!(stop_hook("Run the tests"), r#"{"decision":"block","reason":"Run the tests"}"#);
        assert_eq!(rewake(" now the docs\n"), "now the docs");
    }

    #[test]
    fn control_requests_are_as_the_protocol_has_them() {
        assert_eq!(
            initialize("deck-1"),
            r#"{"type":"control_request","request_id":"deck-1","request":{"subtype":"initialize"}}"#
        );
        assert_eq!(
            interrupt("deck-2"),
            r#"{"type":"control_request","request_id":"deck-2","request":{"subtype":"interrupt"}}"#
        );
        assert_eq!(
            set_permission_mode("deck-3", "acceptEdits"),
            r#"{"type":"control_request","request_id":"deck-3","request":{"subtype":"set_permission_mode","mode":"acceptEdits"}}"#
        );
        assert_eq!(
            user_message("write it"),
            r#"{"type":"user","message":{"role":"user","content":"write it"},"parent_tool_use_id":null,"session_id":""}"#
        );
    }
}
