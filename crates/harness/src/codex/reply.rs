//! The operator's decision in, Codex's answer out.
//!
//! Over the app-server an answer repeats the server's own number. A hook answers on its standard
//! output; no output at all lets Codex show its own prompt, so `None` is always a safe answer and
//! means that the decision cannot be given this way.

use std::collections::BTreeMap;

use qd_session::decision::{Answer, Decision, Scope};
use serde::Serialize;
use serde_json::Value;

/// The answer to `item/commandExecution/requestApproval` and `item/fileChange/requestApproval`.
/// `input` is the request's parameters, as the request kept them.
pub fn approval(rpc: &Value, input: Option<&str>, decision: &Decision) -> Option<String> {
    let word = match decision {
        // What a person must see each time is not kept.
        Decision::Allow { scope: Scope::Session | Scope::Always, .. } if needs_person(input) => {
            return None;
        }
        // The app-server takes no changed command.
        Decision::Allow { input: Some(_), .. } => return None,
        Decision::Allow { scope: Scope::Once, .. } => Approval::Word("accept"),
        Decision::Allow { scope: Scope::Session, .. } => Approval::Word("acceptForSession"),
        // Without a rule there is nothing to keep, and for the session was not asked for.
        Decision::Allow { scope: Scope::Always, .. } => {
            Approval::Rule { rule: Rule { execpolicy_amendment: proposed_rule(input)? } }
        }
        Decision::Deny { interrupt: false, .. } => Approval::Word("decline"),
        Decision::Deny { interrupt: true, .. } => Approval::Word("cancel"),
        Decision::Answer { .. } | Decision::ApprovePlan { .. } | Decision::RejectPlan { .. } => {
            return None;
        }
    };
    Some(written(&Response { id: rpc, result: Decided { decision: word } }))
}

/// How far beyond this once the app-server can allow a call. Rules are kept for commands; whether
/// it proposes one stands in its request, which nobody sees who has not subscribed.
pub fn scopes(tool: Option<&str>, input: Option<&str>) -> &'static [Scope] {
    match tool {
        _ if needs_person(input) => &[],
        Some("apply_patch") => &[Scope::Session],
        Some(_) | None => &[Scope::Session, Scope::Always],
    }
}

/// Whether an approval is one that the machine's administrator wants from a person, by the
/// parameters of its request: no rule, no preset and no hook may answer it.
pub fn needs_person(input: Option<&str>) -> bool {
    let params = input.and_then(|input| serde_json::from_str::<Value>(input).ok());
    params.is_some_and(|params| params["kind"] == "humanCommand")
}

/// The answer to `item/tool/requestUserInput`.
pub fn user_input(rpc: &Value, input: Option<&str>, decision: &Decision) -> Option<String> {
    let Decision::Answer { answers } = decision else { return None };
    let questions = questions(input);
    let answers = answers.iter().map(|answer| one_answer(answer, &questions)).collect();
    Some(written(&Response { id: rpc, result: Answers { answers } }))
}

/// What a `PermissionRequest` hook prints.
pub fn permission_hook(decision: &Decision) -> Option<String> {
    let decision = match decision {
        // The hook can allow what was asked, not something else, and only this once.
        Decision::Allow { input: None, scope: Scope::Once } => {
            Behaviour { behavior: "allow", message: None }
        }
        Decision::Allow { .. } => return None,
        // It cannot end the turn.
        Decision::Deny { interrupt: true, .. } => return None,
        Decision::Deny { message, interrupt: false } => {
            let message = message.as_deref().unwrap_or("Denied by the operator");
            Behaviour { behavior: "deny", message: Some(message) }
        }
        Decision::Answer { .. } | Decision::ApprovePlan { .. } | Decision::RejectPlan { .. } => {
            return None;
        }
    };
    let specific = PermissionOutput { hook_event_name: "PermissionRequest", decision };
    Some(written(&HookOutput { hook_specific_output: specific }))
}

/// What a `PreToolUse` hook prints to block a call. It cannot allow one.
pub fn deny_tool(reason: &str) -> String {
    let specific = PreToolOutput {
        hook_event_name: "PreToolUse",
        permission_decision: "deny",
        permission_decision_reason: reason,
    };
    written(&HookOutput { hook_specific_output: specific })
}

/// What a `Stop` hook prints to send the agent on, and a `UserPromptSubmit` hook to drop a prompt.
pub fn block(reason: &str) -> String {
    written(&Block { decision: "block", reason })
}

#[derive(Serialize)]
struct Response<'a, T> {
    id: &'a Value,
    result: T,
}

#[derive(Serialize)]
struct Decided {
    decision: Approval,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Approval {
    Word(&'static str),
    Rule {
        #[serde(rename = "acceptWithExecpolicyAmendment")]
        rule: Rule,
    },
}

#[derive(Serialize)]
struct Rule {
    execpolicy_amendment: Value,
}

#[derive(Serialize)]
struct Answers {
    answers: BTreeMap<String, Chosen>,
}

#[derive(Serialize)]
struct Chosen {
    answers: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct HookOutput<T> {
    hook_specific_output: T,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PermissionOutput<'a> {
    hook_event_name: &'static str,
    decision: Behaviour<'a>,
}

#[derive(Serialize)]
struct Behaviour<'a> {
    behavior: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PreToolOutput<'a> {
    hook_event_name: &'static str,
    permission_decision: &'static str,
    permission_decision_reason: &'a str,
}

#[derive(Serialize)]
struct Block<'a> {
    decision: &'static str,
    reason: &'a str,
}

fn written(message: &impl Serialize) -> String {
    serde_json::to_string(message).expect("names and texts are always JSON")
}

/// The rule that Codex itself offers to keep.
fn proposed_rule(input: Option<&str>) -> Option<Value> {
    let params: Value = serde_json::from_str(input?).ok()?;
    params.get("proposedExecpolicyAmendment").filter(|rule| rule.is_array()).cloned()
}

fn questions(input: Option<&str>) -> Vec<Value> {
    let params = input.and_then(|input| serde_json::from_str::<Value>(input).ok());
    let questions = params.and_then(|params| params.get("questions")?.as_array().cloned());
    questions.unwrap_or_default()
}

/// Codex wants the question's id, and words of one's own as a note to "none of the above".
fn one_answer(answer: &Answer, questions: &[Value]) -> (String, Chosen) {
    let is_it = |one: &&Value| {
        ["id", "question"]
            .iter()
            .any(|key| one.get(key).and_then(Value::as_str) == Some(&answer.question))
    };
    let question = questions.iter().find(is_it);
    let id = question.and_then(|one| one.get("id")?.as_str()).unwrap_or(&answer.question);
    let options: Vec<&str> = question
        .and_then(|one| one.get("options")?.as_array())
        .into_iter()
        .flatten()
        .filter_map(|option| option.get("label")?.as_str())
        .collect();
    let mut chosen = Vec::new();
    for value in &answer.values {
        if options.is_empty() || options.contains(&value.as_str()) {
            chosen.push(value.clone());
        } else {
            chosen.push("None of the above".to_owned());
            chosen.push(format!("user_note: {value}"));
        }
    }
    (id.to_owned(), Chosen { answers: chosen })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ASKED: &str = r#"{"itemId":"call_1","proposedExecpolicyAmendment":["touch"]}"#;

    fn allow(scope: Scope) -> Decision {
        Decision::Allow { input: None, scope }
    }

    fn deny(interrupt: bool) -> Decision {
        Decision::Deny { message: Some("not there".into()), interrupt }
    }

    fn check_approval(decision: &Decision, expected: &str) {
        assert_eq!(approval(&json!(0), Some(ASKED), decision).as_deref(), Some(expected));
    }

    #[test]
    fn every_answer_to_an_approval_is_spelled_as_the_server_expects() {
        check_approval(&allow(Scope::Once), r#"{"id":0,"result":{"decision":"accept"}}"#);
        check_approval(
            &allow(Scope::Session),
            r#"{"id":0,"result":{"decision":"acceptForSession"}}"#,
        );
        check_approval(
            &allow(Scope::Always),
            r#"{"id":0,"result":{"decision":{"acceptWithExecpolicyAmendment":{"execpolicy_amendment":["touch"]}}}}"#,
        );
        check_approval(&deny(false), r#"{"id":0,"result":{"decision":"decline"}}"#);
        check_approval(&deny(true), r#"{"id":0,"result":{"decision":"cancel"}}"#);
    }

    #[test]
    fn without_a_proposed_rule_nothing_is_allowed_always() {
        assert_eq!(approval(&json!("7"), None, &allow(Scope::Always)), None);
        assert_eq!(scopes(Some("apply_patch"), None), [Scope::Session]);
        assert_eq!(scopes(Some("Bash"), Some(ASKED)), [Scope::Session, Scope::Always]);
    }

    #[test]
    fn what_a_person_must_approve_is_allowed_once_only() {
        let human = Some(r#"{"kind":"humanCommand","itemId":"call_1"}"#);
        let command = Some(r#"{"kind":"command","itemId":"call_1","command":"humanCommand"}"#);
        assert!(needs_person(human) && !needs_person(command) && !needs_person(None));
        assert!(scopes(Some("exec_command"), human).is_empty());
        for (scope, is_taken) in
            [(Scope::Once, true), (Scope::Session, false), (Scope::Always, false)]
        {
            assert_eq!(approval(&json!(0), human, &allow(scope)).is_some(), is_taken, "{scope:?}");
        }
        assert!(approval(&json!(0), human, &deny(false)).is_some());
    }

    #[test]
    fn a_changed_command_cannot_be_allowed() {
        let changed = Decision::Allow { input: Some(json!({"command": "ls"})), scope: Scope::Once };
        assert_eq!(approval(&json!(0), None, &changed), None);
        assert_eq!(permission_hook(&changed), None);
    }

    #[test]
    fn answers_go_by_the_questions_id_and_own_words_as_a_note() {
        let input = r#"{"questions":[
            {"id":"db","question":"Which database?","options":[{"label":"SQLite (Recommended)"}]},
            {"id":"name","question":"What name?","options":[{"label":"acme"}]}]}"#;
        let answers = vec![
            Answer { question: "db".into(), values: vec!["SQLite (Recommended)".into()] },
            Answer { question: "What name?".into(), values: vec!["call it deck".into()] },
        ];
        assert_eq!(
            user_input(&json!(0), Some(input), &Decision::Answer { answers }).as_deref(),
            Some(
                r#"{"id":0,"result":{"answers":{"db":{"answers":["SQLite (Recommended)"]},"name":{"answers":["None of the above","user_note: call it deck"]}}}}"#
            )
        );
    }

    #[test]
    fn a_permission_hook_allows_or_denies_in_codex_words() {
        assert_eq!(
            permission_hook(&allow(Scope::Once)).as_deref(),
            Some(
                r#"{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}"#
            )
        );
        assert_eq!(
            permission_hook(&deny(false)).as_deref(),
            Some(
                r#"{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"not there"}}}"#
            )
        );
        assert_eq!(permission_hook(&allow(Scope::Session)), None);
        assert_eq!(permission_hook(&deny(true)), None, "it cannot end the turn");
    }

    #[test]
    fn hooks_block_a_tool_and_send_the_agent_on() {
        assert_eq!(
            deny_tool("no"),
            r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}"#
        );
        assert_eq!(
            block("Run the tests too"),
            r#"{"decision":"block","reason":"Run the tests too"}"#
        );
    }
}
