//! The operator's decision in, the client's lines out.
//!
//! Kilo reads JSON lines on its standard input. A permission and a question have no id there: the
//! client waits for one thing at a time, and a line answers that.

use qd_session::decision::{Answer, Decision};
use serde::Serialize;

/// What Kilo is to be told, line by line and without the line ends. `None` if it cannot be told:
/// it takes no changed input, and has no plans.
pub fn kilo(decision: &Decision) -> Option<Vec<String>> {
    match decision {
        Decision::Allow { input: None, .. } => Some(vec![respond(true, None)]),
        Decision::Allow { input: Some(_), .. } => None,
        Decision::Deny { message, interrupt } => {
            let mut lines = vec![respond(false, message.as_deref())];
            lines.extend(interrupt.then(cancel_task));
            Some(lines)
        }
        Decision::Answer { answers } => Some(vec![message(&joined(answers))]),
        Decision::ApprovePlan { .. } | Decision::RejectPlan { .. } => None,
    }
}

/// Cline 2 cannot be answered over its stream, [`CLINE_CANNOT`] says why.
pub fn cline(_decision: &Decision) -> Option<Vec<String>> {
    None
}

/// Shown where a button would be.
pub const CLINE_CANNOT: &str =
    "Cline's JSON mode reads no answers: start it with -y, or answer in its own window";

/// The next prompt, an answer in words, or a resumption with words.
pub fn message(text: &str) -> String {
    line(&AskResponse { r#type: "askResponse", ask_response: "messageResponse", text: Some(text) })
}

/// Yes to what is neither a tool nor a question: try again, go on, resume.
pub fn go_on() -> String {
    line(&AskResponse { r#type: "askResponse", ask_response: "yesButtonClicked", text: None })
}

/// Yes to a missing payment or an invalid model, once that was mended: these two know their own
/// word only.
pub fn retry_mended() -> String {
    line(&AskResponse { r#type: "askResponse", ask_response: "retry_clicked", text: None })
}

/// Ends the turn. The client promises no answer: show "stopping", and kill it in the end.
pub fn cancel_task() -> String {
    r#"{"type":"cancelTask"}"#.to_owned()
}

pub fn new_task(text: &str) -> String {
    line(&NewTask { r#type: "newTask", text })
}

/// The client keeps the mode in its configuration file.
pub fn set_mode(mode: &str, previous: Option<&str>) -> String {
    line(&SetMode { r#type: "setMode", mode, previous_mode: previous })
}

fn respond(approved: bool, text: Option<&str>) -> String {
    line(&Respond { r#type: "respondToApproval", approved, text })
}

/// A client that asks one question at a time takes one text.
fn joined(answers: &[Answer]) -> String {
    let texts: Vec<String> = answers.iter().map(|answer| answer.values.join(", ")).collect();
    texts.join("\n")
}

fn line(message: &impl Serialize) -> String {
    serde_json::to_string(message).expect("plain strings are always JSON")
}

#[derive(Serialize)]
struct Respond<'a> {
    r#type: &'static str,
    approved: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AskResponse<'a> {
    r#type: &'static str,
    ask_response: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
}

#[derive(Serialize)]
struct NewTask<'a> {
    r#type: &'static str,
    text: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SetMode<'a> {
    r#type: &'static str,
    mode: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_mode: Option<&'a str>,
}

#[cfg(test)]
mod tests {
    use qd_session::decision::Scope;
    use serde_json::json;

    use super::*;

    fn check(decision: Decision, lines: &[&str]) {
        let lines = lines.iter().map(|line| (*line).to_owned()).collect();
        assert_eq!(kilo(&decision), Some(lines));
    }

    #[test]
    fn a_permission_is_approved_or_denied_with_a_reason() {
        let allow = Decision::Allow { input: None, scope: Scope::Once };
        check(allow, &[r#"{"type":"respondToApproval","approved":true}"#]);
        check(
            Decision::Deny { message: Some("no \"rm\"".into()), interrupt: false },
            &[r#"{"type":"respondToApproval","approved":false,"text":"no \"rm\""}"#],
        );
        check(
            Decision::Deny { message: None, interrupt: true },
            &[r#"{"type":"respondToApproval","approved":false}"#, r#"{"type":"cancelTask"}"#],
        );
    }

    #[test]
    fn a_question_is_answered_in_words() {
        let answer = Answer { question: "Which?".into(), values: vec!["Hello".into()] };
        check(
            Decision::Answer { answers: vec![answer] },
            &[r#"{"type":"askResponse","askResponse":"messageResponse","text":"Hello"}"#],
        );
    }

    #[test]
    fn a_changed_input_is_not_approved_unchanged() {
        let changed = Decision::Allow { input: Some(json!({"path": "b"})), scope: Scope::Once };
        assert_eq!(kilo(&changed), None);
    }

    #[test]
    fn cline_cannot_be_answered() {
        assert_eq!(cline(&Decision::Deny { message: None, interrupt: false }), None);
    }

    #[test]
    fn commands_are_spelled_as_the_client_reads_them() {
        assert_eq!(go_on(), r#"{"type":"askResponse","askResponse":"yesButtonClicked"}"#);
        assert_eq!(retry_mended(), r#"{"type":"askResponse","askResponse":"retry_clicked"}"#);
        assert_eq!(cancel_task(), r#"{"type":"cancelTask"}"#);
        assert_eq!(new_task("go"), r#"{"type":"newTask","text":"go"}"#);
        assert_eq!(
            set_mode("architect", Some("code")),
            r#"{"type":"setMode","mode":"architect","previousMode":"code"}"#
        );
        assert_eq!(set_mode("ask", None), r#"{"type":"setMode","mode":"ask"}"#);
    }
}
