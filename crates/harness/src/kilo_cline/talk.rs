//! A stream that we drive: its facts as reports.
//!
//! The stream itself knows doubles, reprints and what Kilo's own policy may allow; this only turns
//! what it says into what a machine wants to know.

use std::sync::Arc;

use qd_session::id::{CallId, RequestId};
use qd_session::machine::ToolCall;
use qd_session::moment::Timestamp;
use qd_session::monitor::{Ask, Fact, Stage};
use serde_json::{Value, json};

use super::stream::{Facts, Stream};
use super::wire::{Line, Word, parse};
use crate::driver::{Delta, Output, Report, Spending, called, failed, unrecognised};
use crate::excerpt;

#[derive(Debug, Default)]
pub struct Talk {
    pub stream: Stream,
    /// Between a prompt and the end of its turn.
    pub running: bool,
    open: Option<Open>,
    named: Option<Arc<str>>,
    /// Our prompt, which the client prints as if the model had said it.
    prompt: Option<Arc<str>>,
    /// What the command that runs has written so far.
    output: Option<Arc<str>>,
}

/// The one thing the client waits for.
#[derive(Debug)]
struct Open {
    request: RequestId,
    call: CallId,
    stage: Stage,
    question: bool,
}

impl Talk {
    /// A line of the client.
    pub fn hear(&mut self, now: Timestamp, bytes: &[u8]) -> Vec<Output> {
        let Some(line) = parse(bytes) else { return vec![unrecognised(bytes)] };
        let words = self.words(bytes);
        self.listen(bytes);
        let Some(facts) = self.stream.hear(now, line) else { return vec![unrecognised(bytes)] };
        let mut out: Vec<Output> = words.into_iter().collect();
        self.report(now, facts, &mut out);
        if let Some(id) = self.stream.id.clone().filter(|id| self.named.as_ref() != Some(id)) {
            self.named = Some(id.clone());
            out.push(Output::Report(Report::VendorSession { id }));
        }
        if out.is_empty() && self.running {
            out.push(Output::Report(Report::Alive));
        }
        out
    }

    /// What the model says, once it has said it whole.
    fn words(&self, bytes: &[u8]) -> Option<Output> {
        let message = parse(bytes).and_then(Line::into_message)?;
        let word = match &message.word {
            Word::Say(word) => word.as_str(),
            Word::Ask(_) => return None,
        };
        let text =
            message.text.filter(|text| !message.partial && self.running && !text.is_empty())?;
        if self.prompt.as_deref() == Some(&text) {
            return None;
        }
        let delta = match word {
            "text" => Delta::Text(text.into()),
            "reasoning" => Delta::Thinking(text.into()),
            _ => return None,
        };
        Some(Output::Report(Report::Delta(delta)))
    }

    /// What a command writes is printed anew each time, and ends with the command.
    fn listen(&mut self, bytes: &[u8]) {
        let message = parse(bytes).and_then(Line::into_message);
        let message = message.filter(|message| message.word == Word::Ask("command_output".into()));
        if let Some(message) = message {
            self.output = message.details().output.as_deref().and_then(excerpt::output);
        }
    }

    pub fn timeout(&mut self, now: Timestamp) -> Vec<Output> {
        let facts = self.stream.handle_timeout(now);
        let mut out = Vec::new();
        self.report(now, facts, &mut out);
        out
    }

    /// A turn begins, by this line to the client if it is told of it by one.
    pub fn begin(&mut self, now: Timestamp, text: &str, line: Option<&str>) -> Vec<Output> {
        self.running = true;
        self.prompt = Some(text.into());
        line.map_or_else(Vec::new, |line| self.told(now, line))
    }

    /// A line that goes to the client, and what that means.
    pub fn told(&mut self, now: Timestamp, line: &str) -> Vec<Output> {
        let mut out = vec![Output::Write(line.to_owned())];
        let facts = parse(line.as_bytes()).and_then(|line| self.stream.told(line));
        self.report(now, facts.unwrap_or_default(), &mut out);
        out
    }

    /// What is asked under this call, if a person is waited for: true for a question.
    pub fn asks(&self, call: &CallId) -> Option<bool> {
        let open = self.open.as_ref().filter(|open| open.stage == Stage::Waiting);
        open.filter(|open| open.call == *call).map(|open| open.question)
    }

    /// The operator has answered it.
    pub fn answered(&mut self) {
        self.open = None;
    }

    fn report(&mut self, now: Timestamp, facts: Facts, out: &mut Vec<Output>) {
        for (_, fact) in facts {
            if let Some(report) = self.one(now, fact) {
                out.push(Output::Report(report));
            }
        }
    }

    fn one(&mut self, now: Timestamp, fact: Fact) -> Option<Report> {
        Some(match fact {
            Fact::LlmStarted | Fact::LlmRetrying { .. } if self.running => Report::Alive,
            Fact::ToolStarted { call, tool, about } => {
                self.output = None;
                let about = json!({ "about": about.as_deref() });
                Report::ToolReported(called(call.as_str(), tool.as_str(), about))
            }
            Fact::ToolCompleted { call, ok, exit_code } => {
                let is_error = !ok || exit_code.is_some_and(|code| code != 0);
                Report::ToolEnded { call, is_error, output: self.output.take() }
            }
            Fact::ApprovalRequested { request, stage, ask } => {
                let call = asked(&request, &ask, "tool");
                self.opened(request, &call, stage, false);
                match stage {
                    // Its own policy may allow it: then it simply runs.
                    Stage::UnderReview => Report::ToolReported(call),
                    Stage::Waiting => Report::ApprovalAsked(call),
                }
            }
            Fact::PlanProposed { request, ask } => {
                let call = asked(&request, &ask, "switch_mode");
                self.opened(request, &call, Stage::Waiting, false);
                Report::ApprovalAsked(call)
            }
            Fact::QuestionAsked { request, ask } => {
                let call = asked(&request, &ask, "question");
                self.opened(request, &call, Stage::Waiting, true);
                Report::QuestionAsked(call)
            }
            Fact::ApprovalResolved { request }
            | Fact::QuestionAnswered { request }
            | Fact::PlanResolved { request } => return self.resolved(&request),
            Fact::TurnCompleted { last_message, cut_off, .. } => {
                return self.over(Report::Completed { text: last_message, cut_off });
            }
            Fact::TurnFailed { failure } => return self.over(failed(now, failure)),
            Fact::Interrupted => {
                return self.over(Report::Completed { text: None, cut_off: false });
            }
            Fact::UsageReported { usage } => Report::Spent(Spending {
                model: usage.model,
                context_tokens: usage.context_tokens,
                context_window: usage.context_window,
                ..Spending::default()
            }),
            Fact::ModeChanged { mode } => Report::ModeChanged { mode },
            Fact::LlmStarted
            | Fact::LlmRetrying { .. }
            | Fact::SessionStarted { .. }
            | Fact::SessionEnded { .. }
            | Fact::UserPrompt { .. }
            | Fact::TurnStarted
            | Fact::CompactionStarted
            | Fact::CompactionEnded
            | Fact::SubagentStarted { .. }
            | Fact::SubagentEnded
            | Fact::TaskCompleted { .. }
            | Fact::ProcessSeen { .. }
            | Fact::ProcessGone { .. }
            | Fact::ProcessMissing
            | Fact::TitleKnown { .. }
            | Fact::PlaceKnown { .. }
            | Fact::Unrecognised { .. } => return None,
        })
    }

    fn opened(&mut self, request: RequestId, call: &ToolCall, stage: Stage, question: bool) {
        self.open = Some(Open { request, call: call.call_id.clone(), stage, question });
    }

    /// Settled by somebody else: its own policy, or what it did next.
    fn resolved(&mut self, request: &RequestId) -> Option<Report> {
        let open = self.open.take_if(|open| open.request == *request)?;
        Some(match open.stage {
            Stage::UnderReview => {
                Report::ToolEnded { call: open.call, is_error: false, output: None }
            }
            Stage::Waiting => Report::RequestWithdrawn { call: open.call },
        })
    }

    fn over(&mut self, report: Report) -> Option<Report> {
        self.open = None;
        std::mem::take(&mut self.running).then_some(report)
    }
}

fn asked(request: &RequestId, ask: &Ask, unnamed: &str) -> ToolCall {
    let call = ask.call.as_ref().map_or(request.as_str(), CallId::as_str);
    let tool = ask.tool.as_ref().map_or(unnamed, |tool| tool.as_str());
    let input = ask.input.as_deref().map(|input| {
        // What was cut is no JSON any more, and still worth showing.
        serde_json::from_str::<Value>(input).unwrap_or_else(|_| Value::from(input))
    });
    called(call, tool, input.unwrap_or_default())
}
