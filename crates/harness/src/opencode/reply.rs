//! The operator's decision in, the calls to the server out.

use qd_session::decision::{Answer, Decision, Scope};
use serde_json::{Value, json};

/// One HTTP request to the session's server.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub method: &'static str,
    pub path: String,
    pub body: Option<Value>,
}

/// What the server is to be told about a request of a session. `None` if it cannot be told: it
/// takes no changed input, no mode after a plan, and no yes to a question. A second answer gets a 404 and does no harm.
/// Answers are given in the order of the questions: see [`in_order`].
pub fn decide(session: &str, request: &str, decision: &Decision) -> Option<Vec<Call>> {
    if is_question(request) {
        match decision {
            // A refusal ends the turn, and takes no message.
            Decision::Allow { .. } | Decision::Deny { message: Some(_), .. } => return None,
            Decision::Deny { message: None, .. } => return Some(vec![reject_question(request)]),
            Decision::Answer { .. }
            | Decision::ApprovePlan { .. }
            | Decision::RejectPlan { .. } => {}
        }
    }
    match decision {
        Decision::Allow { input: Some(_), .. } => None,
        Decision::Allow { input: None, scope } => {
            let reply = match scope {
                Scope::Once => "once",
                Scope::Always => "always",
                // The server keeps it as long as it runs, which is the session and more.
                Scope::Session => return None,
            };
            Some(vec![permission(request, json!({ "reply": reply }))])
        }
        Decision::Deny { message, interrupt } => {
            let body = match message {
                Some(message) => json!({ "reply": "reject", "message": message }),
                // Ends the turn by itself.
                None => json!({ "reply": "reject" }),
            };
            let mut calls = vec![permission(request, body)];
            calls.extend((*interrupt && message.is_some()).then(|| abort(session)));
            Some(calls)
        }
        Decision::Answer { answers } => Some(vec![question(request, answers)]),
        // A finished plan is a question with these answers.
        Decision::ApprovePlan { mode: Some(_) } => None,
        Decision::ApprovePlan { mode: None } => Some(vec![question_text(request, "Yes")]),
        Decision::RejectPlan { feedback: Some(feedback) } => {
            Some(vec![question_text(request, feedback)])
        }
        Decision::RejectPlan { feedback: None } => Some(vec![question_text(request, "No")]),
    }
}

/// What the server would keep of a permission that is given always: `bash(node *)`. `input` is what
/// the request kept of it.
pub fn kept(input: &str) -> Vec<String> {
    let asked: Value = serde_json::from_str(input).unwrap_or_default();
    let permission = asked["permission"].as_str().unwrap_or_default();
    let patterns = asked["always"].as_array().into_iter().flatten().filter_map(Value::as_str);
    patterns.map(|pattern| format!("{permission}({pattern})")).collect()
}

/// The answers to a request for answers, in the order of its questions; none to one that was left
/// out. `None` if one of them answers something else.
pub fn in_order(request: &Value, answers: &[Answer]) -> Option<Vec<Answer>> {
    let questions = request["questions"].as_array()?;
    let texts = questions.iter().map(|question| question["question"].as_str().unwrap_or_default());
    let texts: Vec<&str> = texts.collect();
    if !answers.iter().all(|answer| texts.contains(&answer.question.as_str())) {
        return None;
    }
    let answer = |text: &&str| {
        let given = answers.iter().find(|answer| answer.question == **text);
        given
            .cloned()
            .unwrap_or_else(|| Answer { question: (*text).to_owned(), values: Vec::new() })
    };
    Some(texts.iter().map(answer).collect())
}

/// Turns a question down: the turn ends.
pub fn reject_question(request: &str) -> Call {
    post(format!("/question/{}/reject", spelled(request)), None)
}

/// The next prompt; in the middle of a turn it is queued.
pub fn prompt(session: &str, text: &str) -> Call {
    let body = json!({ "parts": [{ "type": "text", "text": text }] });
    post(format!("/session/{}/prompt_async", spelled(session)), Some(body))
}

/// Ends the turn. What was open gets no reply any more.
pub fn abort(session: &str) -> Call {
    post(format!("/session/{}/abort", spelled(session)), None)
}

pub fn create(title: Option<&str>) -> Call {
    post("/session".to_owned(), Some(title.map_or(json!({}), |title| json!({ "title": title }))))
}

/// What is open now, to be asked for after a restart.
pub fn polls() -> [Call; 4] {
    ["/session", "/permission", "/question", "/session/status"].map(|path| Call {
        method: "GET",
        path: path.to_owned(),
        body: None,
    })
}

fn is_question(request: &str) -> bool {
    request.starts_with("que_")
}

fn permission(request: &str, body: Value) -> Call {
    post(format!("/permission/{}/reply", spelled(request)), Some(body))
}

fn question(request: &str, answers: &[Answer]) -> Call {
    let answers: Vec<&[String]> = answers.iter().map(|answer| answer.values.as_slice()).collect();
    post(format!("/question/{}/reply", spelled(request)), Some(json!({ "answers": answers })))
}

fn question_text(request: &str, text: &str) -> Call {
    post(format!("/question/{}/reply", spelled(request)), Some(json!({ "answers": [[text]] })))
}

fn post(path: String, body: Option<Value>) -> Call {
    Call { method: "POST", path, body }
}

/// An id as one step of a path, whatever somebody has put into it.
fn spelled(id: &str) -> String {
    id.bytes().fold(String::with_capacity(id.len()), |mut path, byte| {
        if byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-' {
            path.push(char::from(byte));
        } else {
            path.push_str(&format!("%{byte:02X}"));
        }
        path
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(decision: Decision, expected: &[(&str, Option<Value>)]) {
        let calls = decide("ses_1", "req_1", &decision).expect("it can be told");
        let told: Vec<_> =
            calls.iter().map(|call| (call.path.as_str(), call.body.clone())).collect();
        assert!(calls.iter().all(|call| call.method == "POST"));
        assert_eq!(told, expected);
    }

    #[test]
    fn a_permission_is_given_once_or_always() {
        let allow = |scope| Decision::Allow { input: None, scope };
        let path = "/permission/req_1/reply";
        check(allow(Scope::Once), &[(path, Some(json!({"reply": "once"})))]);
        check(allow(Scope::Always), &[(path, Some(json!({"reply": "always"})))]);
        // It would keep it for longer.
        assert_eq!(decide("ses_1", "req_1", &allow(Scope::Session)), None);
        let asked = json!({"permission": "bash", "patterns": ["node x"], "always": ["node *"]});
        assert_eq!(kept(&asked.to_string()), ["bash(node *)"]);
        assert_eq!(kept("cut off"), [""; 0]);
    }

    #[test]
    fn a_denial_with_a_message_goes_on_unless_the_turn_is_to_end() {
        let deny = |message: Option<&str>, interrupt| Decision::Deny {
            message: message.map(str::to_owned),
            interrupt,
        };
        let path = "/permission/req_1/reply";
        let plain = json!({"reply": "reject"});
        let told = json!({"reply": "reject", "message": "use git"});
        check(deny(None, false), &[(path, Some(plain.clone()))]);
        check(deny(None, true), &[(path, Some(plain))]);
        check(deny(Some("use git"), false), &[(path, Some(told.clone()))]);
        check(deny(Some("use git"), true), &[(path, Some(told)), ("/session/ses_1/abort", None)]);
    }

    #[test]
    fn questions_are_answered_one_list_each() {
        let answers = [["Hello", ""], ["Red", "Blue"]].map(|values| Answer {
            question: "?".into(),
            values: values.iter().filter(|v| !v.is_empty()).map(|v| (*v).to_owned()).collect(),
        });
        check(
            Decision::Answer { answers: answers.to_vec() },
            &[("/question/req_1/reply", Some(json!({"answers": [["Hello"], ["Red", "Blue"]]})))],
        );
        assert_eq!(reject_question("que_1").path, "/question/que_1/reject");
    }

    #[test]
    fn answers_come_in_the_order_of_the_questions() {
        let asked = json!({"questions": [{"question": "Name?"}, {"question": "Colour?"}]});
        let answer = |question: &str, values: &[&str]| Answer {
            question: question.to_owned(),
            values: values.iter().map(|value| (*value).to_owned()).collect(),
        };
        let (name, colour) = (answer("Name?", &["deck"]), answer("Colour?", &["Red"]));
        let given = [colour.clone(), name.clone()];
        assert_eq!(in_order(&asked, &given), Some(vec![name, colour.clone()]));
        let one = std::slice::from_ref(&colour);
        assert_eq!(in_order(&asked, one), Some(vec![answer("Name?", &[]), colour.clone()]));
        assert_eq!(in_order(&asked, &[answer("Size?", &["L"])]), None);
        assert_eq!(in_order(&json!({}), one), None);
    }

    #[test]
    fn a_question_is_turned_down_and_never_allowed() {
        let deny = |message| Decision::Deny { message, interrupt: false };
        assert_eq!(decide("ses_1", "que_1", &deny(None)), Some(vec![reject_question("que_1")]));
        assert_eq!(decide("ses_1", "que_1", &deny(Some("no".into()))), None, "it takes no words");
        let allow = Decision::Allow { input: None, scope: Scope::Once };
        assert_eq!(decide("ses_1", "que_1", &allow), None);
    }

    #[test]
    fn a_plan_is_approved_or_sent_back() {
        let path = "/question/req_1/reply";
        check(Decision::ApprovePlan { mode: None }, &[(path, Some(json!({"answers": [["Yes"]]})))]);
        check(
            Decision::RejectPlan { feedback: Some("smaller".into()) },
            &[(path, Some(json!({"answers": [["smaller"]]})))],
        );
    }

    #[test]
    fn a_changed_input_is_not_allowed_unchanged() {
        let changed = Decision::Allow { input: Some(json!({})), scope: Scope::Once };
        assert_eq!(decide("ses_1", "per_1", &changed), None);
    }

    #[test]
    fn prompts_and_stops_are_spelled_as_the_server_reads_them() {
        let expected = json!({"parts": [{"type": "text", "text": "hi"}]});
        assert_eq!(prompt("ses_1", "hi").path, "/session/ses_1/prompt_async");
        assert_eq!(prompt("ses_1", "hi").body, Some(expected));
        assert_eq!(abort("ses_1"), post("/session/ses_1/abort".into(), None));
        assert_eq!(abort("../x?").path, "/session/%2E%2E%2Fx%3F/abort");
    }
}
