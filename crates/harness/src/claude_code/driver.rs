//! Driving Claude Code over its stdio control protocol.
//!
//! `initialize` is answered when it has come up; `system/init` begins each turn and `result` ends
//! it. What it wants to do it asks by `can_use_tool`, questions and plans among them, and takes back
//! by `control_cancel_request`. An interrupt ends the turn, the process stays.

use std::sync::Arc;

use qd_session::decision::{Answer, Decision};
use qd_session::id::CallId;
use qd_session::machine::Process;
use qd_session::moment::Timestamp;
use serde_json::Value;

use super::conversation::without_reminders;
use super::failure::failure;
use super::reply::{self, Asked};
use super::wire::{
    Block, Content, ControlRequest, ControlResponse, Message, StreamLine, TokenUsage,
};
use crate::conversation::text_in;
use crate::driver::{
    Cannot, Command, Delta, GO_ON, Invocation, Launch, Mode, OPEN_MAX, Output, Report, Spending,
    accepts_version, called, failed, unrecognised,
};
use crate::excerpt::{self, last_message};
use crate::payload;
use crate::usage::Tokens;

#[derive(Debug)]
pub struct Driver {
    launch: Launch,
    session: Option<Arc<str>>,
    mode: Option<Arc<str>>,
    model: Option<Arc<str>>,
    phase: Phase,
    /// Requests of ours so far; their ids are made of it.
    sent: u64,
    /// What we asked for and have no answer to.
    unanswered: Vec<(String, Ask)>,
    open: Vec<Open>,
    /// The callback that waits until we let the agent go on.
    held: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Starting,
    Idle,
    Running,
}

/// What we asked the client for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ask {
    Initialize,
    Interrupt,
    SetMode,
}

/// A request of the client that waits for its answer.
#[derive(Debug)]
struct Open {
    request: String,
    call: CallId,
    tool: String,
    input: Value,
    suggestions: Option<Value>,
}

impl Driver {
    pub fn new(launch: Launch) -> Self {
        Self {
            launch,
            session: None,
            mode: None,
            model: None,
            phase: Phase::Starting,
            sent: 0,
            unanswered: Vec::new(),
            open: Vec::new(),
            held: None,
        }
    }

    fn invocation(&self) -> Invocation {
        let mut invocation = Invocation::of(&self.launch, &ARGUMENTS);
        if let Some(mode) = mode_name(self.launch.mode) {
            // The client reports this mode under another name than it takes it.
            let mode = if mode == "default" { "manual" } else { mode };
            invocation = invocation.and(&["--permission-mode", mode]);
        }
        if self.launch.may_bypass {
            invocation = invocation.and(&["--allow-dangerously-skip-permissions"]);
        }
        if let Some(model) = &self.launch.model {
            invocation = invocation.and(&["--model", model]);
        }
        if let Some(id) = self.launch.resume_id() {
            invocation = invocation.and(&["--resume", id]);
        }
        // What it did after a turn's end would be nobody's turn.
        invocation.variables.push(("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1".to_owned()));
        invocation
    }

    /// The id of a new request of ours.
    fn ask(&mut self, ask: Ask) -> String {
        self.sent += 1;
        let id = format!("qd-{}", self.sent);
        if self.unanswered.len() == OPEN_MAX {
            self.unanswered.remove(0);
        }
        self.unanswered.push((id.clone(), ask));
        id
    }

    fn known(&mut self, line: &StreamLine<'_>, out: &mut Vec<Output>) {
        if let Some(id) = line.session_id.as_deref().filter(|id| !id.is_empty())
            && self.session.as_deref() != Some(id)
        {
            let id: Arc<str> = id.into();
            self.session = Some(id.clone());
            out.push(Output::Report(Report::VendorSession { id }));
        }
        if let Some(mode) = &line.permission_mode {
            self.mode_is(mode, out);
        }
    }

    fn mode_is(&mut self, mode: &str, out: &mut Vec<Output>) {
        if self.mode.as_deref() != Some(mode) {
            let mode: Arc<str> = mode.into();
            self.mode = Some(mode.clone());
            out.push(Output::Report(Report::ModeChanged { mode }));
        }
    }

    fn system(&mut self, line: &StreamLine<'_>, out: &mut Vec<Output>) {
        if line.subtype.as_deref() == Some("init") {
            self.model = line.model.as_deref().map(Into::into);
            if self.phase == Phase::Idle {
                self.phase = Phase::Running;
                out.push(Output::Report(Report::Woke));
            }
        }
        self.lives(out);
    }

    fn lives(&self, out: &mut Vec<Output>) {
        if self.phase == Phase::Running {
            out.push(Output::Report(Report::Alive));
        }
    }

    /// The conversation goes on: calls begin in the assistant's messages and end in the user's.
    fn message(&mut self, line: &StreamLine<'_>, out: &mut Vec<Output>) {
        self.lives(out);
        let message = line.message.and_then(|raw| serde_json::from_str::<Message>(raw.get()).ok());
        let Some(Message { content: Content::Blocks(blocks), .. }) = message else { return };
        for block in &blocks {
            match block.kind.as_deref() {
                Some("tool_use") => begun(block, out),
                Some("tool_result") => self.ended(block, out),
                Some(_) | None => {}
            }
        }
    }

    fn ended(&mut self, block: &Block, out: &mut Vec<Output>) {
        let Some(call) = block.tool_use_id.as_deref().map(CallId::new) else { return };
        self.open.retain(|open| open.call != call);
        let is_error = block.is_error == Some(true);
        let output = block
            .content
            .as_ref()
            .and_then(|content| excerpt::output(&without_reminders(&text_in(content))));
        out.push(Output::Report(Report::ToolEnded { call, is_error, output }));
    }

    fn delta(&self, line: &StreamLine<'_>, out: &mut Vec<Output>) {
        let delta = line.event.as_ref().and_then(|event| event.delta.as_ref());
        // A subagent's words are not the answer.
        let delta = delta.filter(|_| line.parent_tool_use_id.is_none());
        let text =
            |text: &Option<String>| text.as_deref().filter(|text| !text.is_empty()).map(Into::into);
        let said = delta.and_then(|delta| text(&delta.text)).map(Delta::Text);
        let thought = delta.and_then(|delta| text(&delta.thinking)).map(Delta::Thinking);
        match said.or(thought) {
            Some(delta) => out.push(Output::Report(Report::Delta(delta))),
            None => self.lives(out),
        }
    }

    fn asked(&mut self, id: &str, request: ControlRequest, out: &mut Vec<Output>) {
        match request.subtype.as_deref().unwrap_or_default() {
            "can_use_tool" => self.permission(id, request, out),
            "hook_callback" => {
                let of_subagent =
                    request.input.as_ref().is_some_and(|input| input.get("agent_id").is_some());
                if self.phase != Phase::Running || of_subagent || self.held.is_some() {
                    return out.push(Output::Write(reply::go_on(id)));
                }
                self.held = Some(id.to_owned());
                out.push(Output::Report(Report::BatchHeld));
            }
            other => {
                let why = format!("{other} is not answered here");
                out.push(Output::Write(reply::cannot(id, &why)));
                let what = "a request of the client";
                out.push(Output::Report(Report::Refused { what, why: why.into() }));
            }
        }
    }

    fn permission(&mut self, id: &str, request: ControlRequest, out: &mut Vec<Output>) {
        if self.open.len() == OPEN_MAX {
            return out.push(Output::Write(reply::cannot(id, "too many requests are open")));
        }
        let tool = request.tool_name.unwrap_or_else(|| "a tool".to_owned());
        let input = request.input.unwrap_or_default();
        let call = called(request.tool_use_id.as_deref().unwrap_or(id), &tool, input.clone());
        self.open.retain(|open| open.call != call.call_id);
        self.open.push(Open {
            request: id.to_owned(),
            call: call.call_id.clone(),
            tool: tool.clone(),
            input,
            suggestions: request.permission_suggestions,
        });
        out.push(Output::Report(match tool.as_str() {
            QUESTION_TOOL => Report::QuestionAsked(call),
            _ => Report::ApprovalAsked(call),
        }));
    }

    /// The client answers something that we asked for.
    fn answered(&mut self, response: &ControlResponse, out: &mut Vec<Output>) {
        let id = response.request_id.as_deref().unwrap_or_default();
        let Some(at) = self.unanswered.iter().position(|(asked, _)| asked == id) else { return };
        let (_, ask) = self.unanswered.remove(at);
        let told = |key: &str| response.response.as_ref()?.get(key)?.as_str();
        let error = (response.subtype.as_deref() == Some("error"))
            .then(|| response.error.as_deref().unwrap_or("no reason given"));
        match (ask, error) {
            (Ask::Initialize, None) => {
                if !accepts_version(&self.launch, told("claude_code_version"), out) {
                    return;
                }
                self.phase = Phase::Idle;
                if let Some(mode) = told("current_permission_mode").map(str::to_owned) {
                    self.mode_is(&mode, out);
                }
                out.push(Output::Report(Report::Ready));
            }
            (Ask::Initialize, Some(why)) => {
                out.push(Output::GiveUp(format!("Claude Code did not come up: {why}").into()));
            }
            (Ask::SetMode, None) => {
                if let Some(mode) = told("mode").map(str::to_owned) {
                    self.mode_is(&mode, out);
                }
            }
            (Ask::SetMode, Some(why)) => {
                let what = "another permission mode";
                out.push(Output::Report(Report::Refused { what, why: why.into() }));
            }
            (Ask::Interrupt, None) => self.lives(out),
            (Ask::Interrupt, Some(why)) => {
                out.push(Output::Report(Report::Refused { what: "an interrupt", why: why.into() }));
            }
        }
    }

    fn withdrawn(&mut self, id: &str, out: &mut Vec<Output>) {
        if let Some(at) = self.open.iter().position(|open| open.request == id) {
            let call = self.open.remove(at).call;
            out.push(Output::Report(Report::RequestWithdrawn { call }));
        }
        if self.held.as_deref() == Some(id) {
            self.held = None;
        }
    }

    fn result(&mut self, now: Timestamp, line: &StreamLine<'_>, out: &mut Vec<Output>) {
        self.open.clear();
        self.held = None;
        let spending = Spending {
            model: self.model.clone(),
            tokens: line.usage.as_ref().map(tokens),
            cost_usd: line.total_cost_usd,
            ..Spending::default()
        };
        out.push(Output::Report(Report::Spent(spending)));
        let was_running = self.phase == Phase::Running;
        if self.phase != Phase::Starting {
            self.phase = Phase::Idle;
        }
        if was_running {
            out.push(Output::Report(ending(now, line)));
        }
    }

    fn decide(&mut self, call: &CallId, decision: &Decision) -> Result<Vec<Output>, Cannot> {
        let at = self.open.iter().position(|open| open.call == *call).ok_or(Cannot::NotAsked)?;
        let open = self.open.remove(at);
        let suggestions = open.suggestions.as_ref();
        let asked = Asked { tool: &open.tool, input: &open.input, suggestions };
        Ok(vec![Output::Write(reply::can_use_tool(&open.request, &asked, decision))])
    }

    fn answer_in_words(&mut self, call: &CallId, text: &str) -> Result<Vec<Output>, Cannot> {
        let open = self.open.iter().find(|open| open.call == *call).ok_or(Cannot::NotAsked)?;
        let questions = open.input.get("questions").and_then(Value::as_array);
        let named = questions.into_iter().flatten().filter_map(|one| one.get("question")?.as_str());
        let answers = named
            .map(|question| Answer { question: question.to_owned(), values: vec![text.to_owned()] })
            .collect();
        self.decide(call, &Decision::Answer { answers })
    }

    fn prompt(&mut self, text: &str) -> Result<Vec<Output>, Cannot> {
        match self.phase {
            Phase::Starting => Err(Cannot::NotReady),
            Phase::Running => Err(Cannot::Busy),
            Phase::Idle => {
                self.phase = Phase::Running;
                Ok(vec![Output::Write(reply::user_message(text))])
            }
        }
    }

    fn interrupt(&mut self) -> Vec<Output> {
        let id = self.ask(Ask::Interrupt);
        vec![Output::Write(reply::interrupt(&id))]
    }

    fn release(&mut self) -> Option<Output> {
        self.held.take().map(|id| Output::Write(reply::go_on(&id)))
    }
}

impl crate::driver::Driver for Driver {
    fn process(&self) -> Process {
        Process::WholeSession
    }

    fn start(&mut self) -> Vec<Output> {
        let invocation = self.invocation();
        let id = self.ask(Ask::Initialize);
        let hello = match self.launch.hold_batches {
            true => reply::initialize_held(&id, CALLBACK),
            false => reply::initialize(&id),
        };
        vec![Output::Start(invocation), Output::Write(hello)]
    }

    fn handle_line(&mut self, now: Timestamp, bytes: &[u8]) -> Vec<Output> {
        let mended = payload::mended(bytes);
        let Ok(mut line) = serde_json::from_slice::<StreamLine<'_>>(&mended) else {
            return vec![unrecognised(bytes)];
        };
        let mut out = Vec::new();
        self.known(&line, &mut out);
        let id = line.request_id.take().unwrap_or_default();
        match line.kind.as_deref().unwrap_or_default() {
            "system" => self.system(&line, &mut out),
            "assistant" | "user" => self.message(&line, &mut out),
            "stream_event" => self.delta(&line, &mut out),
            "result" => self.result(now, &line, &mut out),
            "control_request" => match line.request.take() {
                Some(request) => self.asked(&id, request, &mut out),
                None => out.push(unrecognised(bytes)),
            },
            "control_response" => match &line.response {
                Some(response) => self.answered(response, &mut out),
                None => out.push(unrecognised(bytes)),
            },
            "control_cancel_request" => self.withdrawn(&id, &mut out),
            "keep_alive" | "tool_progress" | "auth_status" | "rate_limit_event"
            | "tool_use_summary" | "prompt_suggestion" | "streamlined_text" => {
                self.lives(&mut out);
            }
            _ => out.push(unrecognised(bytes)),
        }
        out
    }

    fn command(&mut self, _now: Timestamp, command: &Command) -> Result<Vec<Output>, Cannot> {
        match command {
            Command::Prompt { text } => self.prompt(text),
            Command::Retry => self.prompt(GO_ON),
            Command::Decide { call, decision } => self.decide(call, decision),
            Command::AnswerInWords { call, text } => self.answer_in_words(call, text),
            Command::Interrupt if self.phase != Phase::Running => Err(Cannot::Idle),
            // One that is held takes its callback back.
            Command::Interrupt => Ok(self.interrupt()),
            Command::SetMode(mode) => {
                let mode = mode_name(*mode).ok_or(Cannot::NotOffered(NO_OWN_MODE))?;
                let id = self.ask(Ask::SetMode);
                Ok(vec![Output::Write(reply::set_permission_mode(&id, mode))])
            }
            Command::Release => Ok(self.release().into_iter().collect()),
            Command::Stop => {
                let mut out: Vec<Output> = self.release().into_iter().collect();
                if self.phase == Phase::Running {
                    out.extend(self.interrupt());
                }
                out.push(Output::CloseInput);
                Ok(out)
            }
        }
    }
}

fn begun(block: &Block, out: &mut Vec<Output>) {
    if let (Some(id), Some(tool)) = (block.id.as_deref(), block.name.as_deref()) {
        let call = called(id, tool, block.input.clone().unwrap_or_default());
        out.push(Output::Report(Report::ToolReported(call)));
    }
}

/// How the turn ended. An API error is a `success` that is none.
fn ending(now: Timestamp, line: &StreamLine<'_>) -> Report {
    let text = line.result.as_deref();
    let subtype = line.subtype.as_deref().unwrap_or_default();
    if line.terminal_reason.as_deref().is_some_and(|reason| reason.starts_with("aborted")) {
        return Report::Completed { text: None, cut_off: false };
    }
    if line.is_error == Some(true) || subtype.starts_with("error") {
        let told = line.errors.iter().flatten().find_map(Value::as_str).unwrap_or(subtype);
        let why = failure(line.api_error.as_deref(), line.api_error_status, text.or(Some(told)));
        return failed(now, why);
    }
    let cut_off = line.stop_reason.as_deref() == Some("max_tokens");
    Report::Completed { text: text.and_then(last_message), cut_off }
}

fn tokens(usage: &TokenUsage) -> Tokens {
    Tokens {
        input: usage.input_tokens.unwrap_or_default(),
        output: usage.output_tokens.unwrap_or_default(),
        cache_write: usage.cache_creation_input_tokens.unwrap_or_default(),
        cache_write_1h: 0,
        cache_read: usage.cache_read_input_tokens.unwrap_or_default(),
    }
}

/// As the protocol takes it and the client reports it.
fn mode_name(mode: Mode) -> Option<&'static str> {
    match mode {
        Mode::Own => None,
        Mode::Ask => Some("default"),
        Mode::Edit => Some("acceptEdits"),
        Mode::Plan => Some("plan"),
        Mode::Yolo => Some("bypassPermissions"),
    }
}

const ARGUMENTS: [&str; 9] = [
    "-p",
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
    "--verbose",
    "--include-partial-messages",
    "--permission-prompt-tool",
    "stdio",
];

const QUESTION_TOOL: &str = "AskUserQuestion";
const NO_OWN_MODE: &str = "Claude Code cannot be told to go back to its configuration's mode";

/// The one callback that we register.
const CALLBACK: &str = "qd_held";
