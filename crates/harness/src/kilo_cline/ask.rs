//! What the client asks: some of it waits for a person, some for its own policy, one for nobody.

use qd_session::id::{CallId, RequestId, ToolName};
use qd_session::moment::Timestamp;
use qd_session::monitor::{Ask, Fact, Failure, FailureKind, Stage};
use serde_json::Value;

use super::failure::failure_of;
use super::policy::kind;
use super::seen::Sight;
use super::stream::{AskKind, Facts, OpenAsk, Phase, Stream, is_news, main};
use super::wire::{Details, Message};
use crate::excerpt::{brief, input};

impl Stream {
    pub(super) fn ask(
        &mut self,
        at: Timestamp,
        word: &str,
        message: &Message,
        sight: Sight,
        facts: &mut Facts,
    ) {
        if word == "command_output" {
            return self.command_output(message, facts);
        }
        // The client is still writing the request, or has printed it before.
        if message.partial || !is_news(sight) {
            return;
        }
        match word {
            "completion_result" | "resume_completed_task" => {
                self.progress(message.stamp, facts);
                self.complete(facts);
            }
            "resume_task" => {
                self.progress(message.stamp, facts);
                self.end(Phase::Paused, Fact::Interrupted, facts);
            }
            "api_req_failed"
            | "mistake_limit_reached"
            | "payment_required_prompt"
            | "invalid_model" => {
                self.progress(message.stamp, facts);
                self.fail(failure(word, message), facts);
            }
            "tool" | "command" | "browser_action_launch" | "use_mcp_server" | "use_subagents" => {
                self.ask_leave(at, word, message, facts);
            }
            "followup" | "act_mode_respond" | "new_task" => {
                self.question(message, AskKind::Question, facts);
            }
            "plan_mode_respond" => self.question(message, AskKind::Plan, facts),
            "auto_approval_max_req_reached"
            | "condense"
            | "summarize_task"
            | "report_bug"
            | "checkpoint_restore" => {
                let details = message.details();
                let open = open_ask(word, message, &details, AskKind::Approval, None);
                self.wait(open, facts);
            }
            // An ask nobody knows: the client may or may not wait. It changes nothing.
            _ => {}
        }
    }

    /// Output of a running command. It is printed as an ask, answered by the client itself.
    fn command_output(&mut self, message: &Message, facts: &mut Facts) {
        let details = message.details();
        self.progress(message.stamp, facts);
        let ended = details.exit_code.is_some() || message.answered;
        let call = CallId::new(details.execution_id.as_deref().unwrap_or("command"));
        if ended {
            self.running = Some(call);
            self.end_running(details.exit_code.unwrap_or(0) == 0, facts);
        } else if self.phase == Phase::Working && message.partial {
            let about = details.command.as_deref().map(|command| brief(command, 200));
            facts.extend(self.run(call, ToolName::new("command"), about));
        }
    }

    /// An ask for leave to use a tool, which the client's own policy may give.
    fn ask_leave(&mut self, at: Timestamp, word: &str, message: &Message, facts: &mut Facts) {
        // It was printed complete only after it was done.
        if message.stamp < self.newest {
            return;
        }
        let details = message.details();
        self.tick_off(&details, facts);
        let patience = self.policy.patience_ms(message, &details);
        let due = patience.filter(|ms| *ms > 0).map(|ms| at.plus_ms(ms));
        let open = open_ask(word, message, &details, AskKind::Approval, due);
        if patience == Some(0) {
            return self.wait(open, facts);
        }
        self.replace_open(open, facts);
        facts.extend(self.open.as_ref().map(|open| main(open.fact(Stage::UnderReview))));
    }

    fn question(&mut self, message: &Message, kind: AskKind, facts: &mut Facts) {
        if message.stamp < self.newest || self.policy.unattended {
            return;
        }
        let details = message.details();
        self.wait(open_ask("question", message, &details, kind, None), facts);
    }

    fn wait(&mut self, open: OpenAsk, facts: &mut Facts) {
        self.replace_open(open, facts);
        facts.extend(self.open.as_ref().map(|open| main(open.fact(Stage::Waiting))));
    }

    fn replace_open(&mut self, open: OpenAsk, facts: &mut Facts) {
        self.progress(open.stamp, facts);
        self.end_running(true, facts);
        self.phase = Phase::Working;
        self.open = Some(open);
    }

    /// To-do items that were ticked off since the last list.
    fn tick_off(&mut self, details: &Details, facts: &mut Facts) {
        let Some(Value::Array(todos)) = &details.todos else { return };
        let done: Vec<&Value> =
            todos.iter().filter(|todo| todo["status"].as_str() == Some("completed")).collect();
        if done.len() > self.done_todos {
            let subject = done.last().and_then(|todo| todo["content"].as_str());
            let subject = subject.map(|subject| brief(subject, 200));
            facts.push(main(Fact::TaskCompleted { subject }));
        }
        self.done_todos = done.len();
    }
}

fn open_ask(
    word: &str,
    message: &Message,
    details: &Details,
    kind_of: AskKind,
    due: Option<Timestamp>,
) -> OpenAsk {
    let stamp = message.stamp.to_string();
    let tool = details.tool.as_deref().or(details.tool_name.as_deref()).unwrap_or(word);
    let plain = message.text.as_deref().filter(|_| message.data.is_none());
    let text = [&details.question, &details.response, &details.path, &details.url]
        .into_iter()
        .find_map(Option::as_deref)
        .or(plain);
    let whole = match (&message.data, plain) {
        (Some(data), _) => Some(data.to_string()),
        (None, Some(text)) => Some(Value::from(text).to_string()),
        (None, None) => None,
    };
    OpenAsk {
        stamp: message.stamp,
        request: RequestId::new(format!("{stamp}:{word}")),
        kind: kind_of,
        ask: Ask {
            call: (kind_of == AskKind::Approval).then(|| CallId::new(stamp)),
            tool: (kind_of == AskKind::Approval).then(|| ToolName::new(tool)),
            text: text.map(|text| brief(text, 2_000)),
            input: whole.as_deref().map(input),
        },
        alike: kind(message, details),
        due,
        delegates: (details.tool.as_deref() == Some("newTask"))
            .then(|| details.mode.as_deref().unwrap_or_default().into()),
    }
}

fn failure(word: &str, message: &Message) -> Failure {
    let details = message.details();
    let text = message.text.as_deref().or(details.message.as_deref()).unwrap_or(word);
    let failure = failure_of(text);
    let kind = match word {
        "api_req_failed" => failure.kind,
        "payment_required_prompt" => FailureKind::UsageLimit,
        _ => FailureKind::Other,
    };
    let message = details.message.as_deref().map(|text| brief(text, 2_000));
    Failure { kind, message: message.or(failure.message), resets_at: None }
}
