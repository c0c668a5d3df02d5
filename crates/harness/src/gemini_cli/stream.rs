//! The JSON stream of a headless run. It never asks; `result` only says that the loop ended.

use qd_session::monitor::{Fact, Failure, FailureKind, Usage};

use super::calls::{Described, Teller};
use super::session::Session;
use super::wire::{StreamError, StreamLine};
use crate::outbox::Outbox;
use crate::{excerpt, failure_sign};

/// A hook stopped the loop at this call.
const STOP_EXECUTION: &str = "stop_execution";

/// How the client words that a hook would not let the agent go on.
pub const STOPPED_BY_HOOK: [&str; 2] = ["Agent execution blocked", "Agent execution stopped"];

impl Session {
    /// Takes a line in. False if nobody knows it.
    pub fn stream(&mut self, line: &StreamLine, out: &mut Outbox) -> bool {
        self.end_is_told = true;
        self.streams = true;
        match line.kind.as_deref() {
            Some("init") => {
                out.tell(Fact::SessionStarted { process: None });
                if let Some(model) = line.model.as_deref() {
                    let usage = Usage { model: Some(model.into()), ..Usage::default() };
                    out.tell(Fact::UsageReported { usage });
                }
                // A headless run has its prompt with it.
                self.work(out.at());
                out.tell(Fact::LlmStarted);
            }
            Some("message") if line.role.as_deref() == Some("user") => {
                self.begin_turn(line.content.as_deref(), out);
            }
            Some("message") => {
                let text = line.content.as_deref().unwrap_or_default();
                self.stream_text(text, line.timestamp.as_deref(), out);
            }
            Some("tool_use") => self.tool_used(line, out),
            Some("tool_result") => self.tool_resulted(line, out),
            Some("error") => self.warned(line, out),
            Some("result") => {
                let failed = line.status.as_deref() == Some("error");
                let ending = match failed {
                    true => Fact::TurnFailed { failure: failure(line.error.as_ref()) },
                    false => self.completed(None),
                };
                self.end_turn(ending, out);
            }
            Some(_) => return false,
            None => return self.answered_at_once(line, out),
        }
        true
    }

    /// `--output-format json` prints one object at the end.
    fn answered_at_once(&mut self, line: &StreamLine, out: &mut Outbox) -> bool {
        let ending = match (&line.error, &line.response) {
            (Some(error), _) => Fact::TurnFailed { failure: failure(Some(error)) },
            (None, Some(response)) => self.completed(Some(response)),
            (None, None) => return false,
        };
        self.end_turn(ending, out);
        true
    }

    fn tool_used(&mut self, line: &StreamLine, out: &mut Outbox) {
        let Some(told) = described(line, line.tool_name.as_deref()) else { return };
        let call = self.calls.begin(told, String::new);
        if call.ended {
            return;
        }
        let started = call.started();
        out.tell(started);
        self.act(out.at());
    }

    fn tool_resulted(&mut self, line: &StreamLine, out: &mut Outbox) {
        let Some(told) = described(line, line.tool_name.as_deref().or(Some(""))) else { return };
        let ok = line.status.as_deref() == Some("success");
        let Some(call) = self.calls.end(told) else {
            // Its start was lost; what was said before it is not the last message all the same.
            return self.act(out.at());
        };
        let (completed, delegated) = (call.completed(ok), call.delegates());
        out.tell(completed);
        let error = line.error.as_ref().and_then(|error| error.kind.as_deref());
        if error == Some(STOP_EXECUTION) {
            self.end_turn(Fact::Interrupted, out);
        } else {
            self.call_ended(delegated, out);
        }
    }

    /// A warning is told when the loop is about to end because of it.
    fn warned(&mut self, line: &StreamLine, out: &mut Outbox) {
        let message = line.message.as_deref().unwrap_or_default();
        if STOPPED_BY_HOOK.iter().any(|stopped| message.starts_with(stopped)) {
            self.end_turn(Fact::Interrupted, out);
        } else if line.severity.as_deref() == Some("error") || message.starts_with("Loop detected")
        {
            self.end_turn(Fact::TurnFailed { failure: failure_in(message) }, out);
        }
    }
}

fn described<'a>(line: &'a StreamLine, tool: Option<&'a str>) -> Option<Described<'a>> {
    let vendor = Some(line.tool_id.as_deref()?);
    Some(Described { teller: Teller::Stream, vendor, tool: tool?, input: line.parameters.as_ref() })
}

fn failure(error: Option<&StreamError>) -> Failure {
    failure_in(error.and_then(|error| error.message.as_deref()).unwrap_or_default())
}

/// What the client wrote about it.
pub fn failure_in(message: &str) -> Failure {
    let kind = match message {
        "" => FailureKind::Other,
        told => failure_sign::in_text(told),
    };
    Failure { kind, message: excerpt::last_message(message), resets_at: None }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::Harness;
    use crate::signal::Channel;
    use crate::story::Story;

    fn line(story: &mut Story, at: u64, payload: Value) {
        story.hear(at, Channel::Stream, &payload);
    }

    fn running() -> Story {
        let mut story = Story::of(Harness::GeminiCli);
        line(&mut story, 0, json!({"type": "init", "session_id": "s", "model": "m"}));
        line(&mut story, 5, json!({"type": "message", "role": "user", "content": "go"}));
        line(
            &mut story,
            100,
            json!({"type": "message", "role": "assistant", "content": "Running.", "delta": true}),
        );
        line(
            &mut story,
            200,
            json!({"type": "tool_use", "tool_name": "run_shell_command", "tool_id": "t",
                "parameters": {"command": "touch x"}}),
        );
        assert_eq!(story.shown, ["autonomous/thinking", "autonomous/acting"]);
        story
    }

    fn failed(kind: &str) -> Value {
        json!({"type": "tool_result", "tool_id": "t", "status": "error",
            "error": {"type": kind, "message": "no"}})
    }

    fn success() -> Value {
        json!({"type": "result", "status": "success", "stats": {}})
    }

    #[test]
    fn success_delivers_what_was_said_after_the_last_tool() {
        let mut story = running();
        line(&mut story, 300, json!({"type": "tool_result", "tool_id": "t", "status": "success"}));
        let said = json!({"type": "message", "role": "assistant", "content": "It is in place."});
        line(&mut story, 400, said);
        line(&mut story, 500, success());
        assert_eq!(story.state(), "delivered/task_complete");
    }

    #[test]
    fn success_after_nothing_but_a_failed_tool_is_no_delivery() {
        let mut story = running();
        line(&mut story, 300, failed("tool_not_registered"));
        line(&mut story, 400, success());
        assert_eq!(story.state(), "needs_you/error");
    }

    #[test]
    fn a_loop_that_a_hook_stopped_was_interrupted_though_the_result_says_success() {
        let mut story = running();
        line(&mut story, 300, failed("stop_execution"));
        line(&mut story, 310, success());
        assert_eq!(story.state(), "needs_you/interrupted");
        let mut story = Story::of(Harness::GeminiCli);
        line(&mut story, 0, json!({"type": "init", "session_id": "s"}));
        let blocked = json!({"type": "error", "severity": "warning",
            "message": "Agent execution blocked: Not now."});
        line(&mut story, 100, blocked);
        line(&mut story, 120, success());
        assert_eq!(story.state(), "needs_you/interrupted");
    }

    #[test]
    fn a_failed_tool_leaves_the_model_all_the_time_it_needs() {
        let mut story = running();
        line(&mut story, 300, failed("policy_violation"));
        story.wait(60_000);
        assert_eq!(story.state(), "autonomous/thinking");
    }

    #[test]
    fn an_api_error_needs_the_operator() {
        let mut story = running();
        let error = json!({"type": "unknown", "message": "[API Error: {\"code\":503}]"});
        line(&mut story, 300, json!({"type": "result", "status": "error", "error": error}));
        assert_eq!(story.state(), "needs_you/server_error");
    }

    #[test]
    fn sigint_writes_no_result_and_the_process_tells() {
        let mut story = running();
        story.hear(400, Channel::Process, &json!({"sessionId": "s", "exited": true}));
        assert_eq!(story.state(), "delivered/session_ended");
    }

    #[test]
    fn a_stopped_turn_or_a_loop_is_an_error_whatever_the_result_says() {
        let mut story = running();
        let limit = json!({"type": "error", "severity": "error",
            "message": "Maximum session turns exceeded"});
        line(&mut story, 300, limit);
        line(&mut story, 310, success());
        assert_eq!(story.state(), "needs_you/error");
    }

    #[test]
    fn the_one_object_of_the_json_format_ends_the_run() {
        let mut story = Story::of(Harness::GeminiCli);
        line(&mut story, 0, json!({"session_id": "s", "response": "Nothing to change."}));
        assert_eq!(story.state(), "delivered/task_complete");
    }
}
