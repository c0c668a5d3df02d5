//! The operator's decision in, a hook's output out.
//!
//! A Gemini hook can deny and stop; it can never approve, so there is no reply that does:
//! what it does not refuse is asked in the terminal.

use qd_session::decision::Decision;
use serde_json::{Value, json};

/// Told where the operator gave no reason.
const NO_REASON: &str = "Denied by the operator.";

/// A BeforeTool hook's output. None where the hook must be silent and the terminal asks.
pub fn before_tool(decision: &Decision) -> Option<Value> {
    match decision {
        Decision::Deny { message, interrupt: true } => Some(stop(message.as_deref())),
        Decision::Deny { message, interrupt: false } => Some(deny(message.as_deref())),
        Decision::RejectPlan { feedback } => Some(deny(feedback.as_deref())),
        Decision::Allow { .. } | Decision::Answer { .. } | Decision::ApprovePlan { .. } => None,
    }
}

/// Ends the loop.
pub fn stop(reason: Option<&str>) -> Value {
    json!({"continue": false, "stopReason": reason.unwrap_or(NO_REASON)})
}

fn deny(reason: Option<&str>) -> Value {
    json!({"decision": "deny", "reason": reason.unwrap_or(NO_REASON)})
}

#[cfg(test)]
mod tests {
    use qd_session::decision::Scope;

    use super::*;

    fn check(decision: Decision, expected: &str) {
        let output = before_tool(&decision).map(|output| output.to_string());
        assert_eq!(output.as_deref().unwrap_or("nothing"), expected);
    }

    #[test]
    fn a_denial_carries_its_reason_to_the_model() {
        check(
            Decision::Deny {
                message: Some("Operator denied this command.".into()),
                interrupt: false,
            },
            r#"{"decision":"deny","reason":"Operator denied this command."}"#,
        );
        check(
            Decision::Deny { message: None, interrupt: false },
            r#"{"decision":"deny","reason":"Denied by the operator."}"#,
        );
    }

    #[test]
    fn a_denial_that_interrupts_stops_the_loop() {
        check(
            Decision::Deny { message: Some("Stopped by operator.".into()), interrupt: true },
            r#"{"continue":false,"stopReason":"Stopped by operator."}"#,
        );
    }

    #[test]
    fn nothing_is_ever_approved_by_a_hook() {
        check(Decision::Allow { input: None, scope: Scope::Always }, "nothing");
        check(Decision::ApprovePlan { mode: None }, "nothing");
        check(Decision::Answer { answers: Vec::new() }, "nothing");
    }
}
