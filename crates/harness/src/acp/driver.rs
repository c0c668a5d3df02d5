//! Driving any agent over the Agent Client Protocol.
//!
//! `initialize`, then `session/new` or `session/load`; a turn is one `session/prompt`, and its
//! response is the turn's end. Files and terminals stay the agent's own business: we offer neither.
//! A cancel answers every open request first, for an agent that waits for one may never read it.

use std::sync::Arc;

use qd_session::decision::{Answer, Decision};
use qd_session::id::CallId;
use qd_session::machine::Process;
use qd_session::moment::Timestamp;
use serde_json::Value;

use super::driver_turn::Turn;
use super::failure::{is_cancelled, of_error, of_reason};
use super::model_choice::ModelChoice;
use super::quirks::Quirks;
use super::reply::{self, Asked};
use super::wire::{
    ConfigOption, ElicitationParams, Message, PermissionParams, RpcError, Update, UpdateParams,
};
use crate::driver::{
    Cannot, Command, Delta, GO_ON, Invocation, Launch, Mode, OPEN_MAX, Output, Report, Spending,
    accepts_version, called, failed, unrecognised,
};
use crate::payload;
use crate::usage::Tokens;

/// An agent that goes on telling the past after a load is done when it has been silent for so long,
/// if it does not say so sooner.
const REPLAY_PAUSE_MS: u64 = 1_000;

#[derive(Debug)]
pub struct Driver {
    launch: Launch,
    phase: Phase,
    session: Option<Arc<str>>,
    quirks: Quirks,
    modes: Vec<String>,
    mode: Option<Arc<str>>,
    sent: u64,
    unanswered: Vec<(u64, Ask)>,
    open: Vec<(CallId, Asked)>,
    turn: Turn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Starting,
    /// It tells its past, until it says that it is done or falls silent.
    Replaying {
        until: Timestamp,
    },
    Idle,
    Running,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Ask {
    Initialize,
    Open,
    /// The model that the session begins with.
    FirstModel,
    /// The mode that the session begins in.
    FirstMode(String),
    Mode(String),
    Prompt,
}

impl Driver {
    pub fn new(launch: Launch) -> Self {
        Self {
            launch,
            phase: Phase::Starting,
            session: None,
            quirks: Quirks::default(),
            modes: Vec::new(),
            mode: None,
            sent: 0,
            unanswered: Vec::new(),
            open: Vec::new(),
            turn: Turn::default(),
        }
    }

    fn ask(&mut self, ask: Ask) -> u64 {
        self.sent += 1;
        if self.unanswered.len() == OPEN_MAX {
            self.unanswered.remove(0);
        }
        self.unanswered.push((self.sent, ask));
        self.sent
    }

    fn answered(&mut self, now: Timestamp, message: Message, out: &mut Vec<Output>) {
        let id = message.id.as_ref().and_then(Value::as_u64);
        let Some(at) = self.unanswered.iter().position(|(sent, _)| Some(*sent) == id) else {
            return;
        };
        let (_, ask) = self.unanswered.remove(at);
        let result = message.result.unwrap_or_default();
        match (ask, message.error) {
            (Ask::Initialize, None) => self.initialized(&result, out),
            (Ask::Open, None) => self.opened(now, &result, out),
            (Ask::Initialize | Ask::Open, Some(error)) => {
                out.push(Output::GiveUp(
                    format!("the agent did not come up: {}", why(&error)).into(),
                ));
            }
            (Ask::FirstModel, error) => {
                out.extend(error.map(|error| refused("another model", &why(&error))));
                self.begin_in_mode(now, out);
            }
            (Ask::FirstMode(mode), error) => {
                self.mode_answered(&mode, error, out);
                self.begin(now, out);
            }
            (Ask::Mode(mode), error) => self.mode_answered(&mode, error, out),
            (Ask::Prompt, None) => self.prompted(now, &result, out),
            (Ask::Prompt, Some(error)) if is_cancelled(&error) => self.over(CANCELLED, out),
            (Ask::Prompt, Some(error)) => self.over(failed(now, of_error(&error)), out),
        }
    }

    fn initialized(&mut self, result: &Value, out: &mut Vec<Output>) {
        if !accepts_version(&self.launch, result["agentInfo"]["version"].as_str(), out) {
            return;
        }
        self.quirks = Quirks::of(result["agentInfo"]["name"].as_str().unwrap_or_default());
        let can_load = result["agentCapabilities"]["loadSession"].as_bool() == Some(true);
        let resume = self.launch.resume_id().cloned();
        if resume.is_some() && !can_load {
            return out.push(Output::GiveUp("this agent cannot resume a session".into()));
        }
        let id = self.ask(Ask::Open);
        let cwd = &self.launch.cwd;
        out.push(Output::Write(match &resume {
            Some(session) => reply::load(id, session, cwd),
            None => reply::new_session(id, cwd),
        }));
        self.session = resume;
    }

    fn opened(&mut self, now: Timestamp, result: &Value, out: &mut Vec<Output>) {
        let told = result["sessionId"].as_str().map(Arc::from);
        let Some(session) = told.or(self.session.take()) else {
            return out.push(Output::GiveUp("the agent opened a session without an id".into()));
        };
        self.session = Some(session.clone());
        out.push(Output::Report(Report::VendorSession { id: session.clone() }));
        let offered = result["modes"]["availableModes"].as_array().into_iter().flatten();
        self.modes = offered.filter_map(|mode| Some(mode["id"].as_str()?.to_owned())).collect();
        if let Some(mode) = result["modes"]["currentModeId"].as_str() {
            self.mode_is(mode, out);
        }
        let Some(model) = self.launch.model.clone() else { return self.begin_in_mode(now, out) };
        match ModelChoice::offered(result) {
            Some(choice) if choice.current == Some(model.as_str()) => self.begin_in_mode(now, out),
            Some(choice) => {
                let id = self.ask(Ask::FirstModel);
                out.push(Output::Write(choice.set(id, &session, &model)));
            }
            None => {
                out.push(refused("another model", "the agent offers no choice of models"));
                self.begin_in_mode(now, out);
            }
        }
    }

    fn begin_in_mode(&mut self, now: Timestamp, out: &mut Vec<Output>) {
        if self.launch.mode != Mode::Own {
            match (self.mode_named(self.launch.mode), self.session.clone()) {
                (Some(mode), Some(session)) => {
                    let id = self.ask(Ask::FirstMode(mode.clone()));
                    return out.push(Output::Write(reply::set_mode(id, &session, &mode)));
                }
                (None, _) | (_, None) => out.push(refused("the mode to begin in", NO_SUCH_MODE)),
            }
        }
        self.begin(now, out);
    }

    /// Ready, but for one that goes on telling its past.
    fn begin(&mut self, now: Timestamp, out: &mut Vec<Output>) {
        if self.launch.resume_id().is_some() && self.quirks.replays_after_load {
            self.phase = Phase::Replaying { until: now.plus_ms(REPLAY_PAUSE_MS) };
            return;
        }
        self.came_up(out);
    }

    fn came_up(&mut self, out: &mut Vec<Output>) {
        self.phase = Phase::Idle;
        out.push(Output::Report(Report::Ready));
    }

    fn mode_named(&self, mode: Mode) -> Option<String> {
        let names = mode_names(mode).iter();
        names.copied().find(|name| self.modes.iter().any(|offered| offered == name)).map(Into::into)
    }

    fn mode_answered(&mut self, mode: &str, error: Option<RpcError>, out: &mut Vec<Output>) {
        match error {
            None => self.mode_is(mode, out),
            Some(error) => out.push(refused("another mode", &why(&error))),
        }
    }

    fn mode_is(&mut self, mode: &str, out: &mut Vec<Output>) {
        if self.mode.as_deref() != Some(mode) {
            let mode: Arc<str> = mode.into();
            self.mode = Some(mode.clone());
            out.push(Output::Report(Report::ModeChanged { mode }));
        }
    }

    /// The response to a prompt: the turn is over.
    fn prompted(&mut self, now: Timestamp, result: &Value, out: &mut Vec<Output>) {
        if let Some(tokens) = tokens(result) {
            let spending = Spending { tokens: Some(tokens), ..Spending::default() };
            out.push(Output::Report(Report::Spent(spending)));
        }
        let text = self.turn.last_words();
        let report = match result["stopReason"].as_str() {
            Some("cancelled") => CANCELLED,
            Some("max_tokens") => Report::Completed { text, cut_off: true },
            Some(reason @ ("refusal" | "max_turn_requests")) => failed(now, of_reason(reason)),
            Some(_) | None => match self.turn.failure() {
                Some(failure) => failed(now, failure),
                None => Report::Completed { text, cut_off: false },
            },
        };
        self.over(report, out);
    }

    fn over(&mut self, report: Report, out: &mut Vec<Output>) {
        let was_running = self.phase == Phase::Running;
        self.open.clear();
        self.turn = Turn::default();
        self.phase = Phase::Idle;
        if was_running {
            out.push(Output::Report(report));
        }
    }

    fn updated(&mut self, now: Timestamp, update: &Update, out: &mut Vec<Output>) {
        let kind = update.session_update.as_deref().unwrap_or_default();
        if let Phase::Replaying { until } = &mut self.phase {
            *until = now.plus_ms(REPLAY_PAUSE_MS);
            // The last thing that it tells of a session that it has loaded.
            if kind == "available_commands_update" {
                self.came_up(out);
            }
            return;
        }
        match kind {
            "current_mode_update" => {
                if let Some(mode) = &update.current_mode_id {
                    self.mode_is(mode, out);
                }
            }
            "config_option_update" => {
                let options = update.config_options.iter().flatten();
                if let Some(mode) = options.filter_map(mode_of).next() {
                    self.mode_is(mode, out);
                }
            }
            "usage_update" => out.push(Output::Report(Report::Spent(Spending {
                context_tokens: update.used,
                context_window: update.size,
                cost_usd: update.cost.as_ref().and_then(|cost| cost.amount),
                ..Spending::default()
            }))),
            "agent_message_chunk" => self.spoke(update, out),
            _ if self.phase != Phase::Running => {}
            "agent_thought_chunk" => {
                let text = text_of(update).unwrap_or_default();
                out.push(Output::Report(Report::Delta(Delta::Thinking(text.into()))));
            }
            "tool_call" | "tool_call_update" => self.turn.call(update, out),
            _ => out.push(Output::Report(Report::Alive)),
        }
    }

    fn spoke(&mut self, update: &Update, out: &mut Vec<Output>) {
        let text = text_of(update).unwrap_or_default();
        if let Some(mode) = self.quirks.mode_in(text) {
            return self.mode_is(mode, out);
        }
        if self.phase == Phase::Running && !text.is_empty() {
            out.push(self.turn.say(text, update.message_id.as_deref()));
        }
    }

    /// The agent asks its client.
    fn asked(&mut self, message: Message, line: &[u8], out: &mut Vec<Output>) {
        let id = message.id.unwrap_or_default();
        let params = message.params.unwrap_or_default();
        let method = message.method.unwrap_or_default();
        let asked = Asked::read(line).filter(|_| self.open.len() < OPEN_MAX);
        let told = match (method.as_str(), &asked) {
            ("session/request_permission", Some(_)) => self.permission(params),
            ("elicitation/create", Some(_)) => question(&id, params),
            (_, _) => None,
        };
        let (Some(asked), Some((call, report))) = (asked, told) else {
            let why = format!("{method} is not answered here");
            out.push(Output::Write(reply::cannot(&id, &why)));
            return out.push(refused("a request of the agent", &why));
        };
        self.open.retain(|(open, _)| *open != call);
        self.open.push((call, asked));
        out.push(Output::Report(report));
    }

    fn permission(&mut self, params: Value) -> Option<(CallId, Report)> {
        let params: PermissionParams = serde_json::from_value(params).ok()?;
        let told = params.tool_call?;
        let call = self.turn.ask(&told.call, told.content.as_ref())?;
        Some((call.call_id.clone(), Report::ApprovalAsked(call)))
    }

    fn decide(&mut self, call: &CallId, decision: &Decision) -> Result<Vec<Output>, Cannot> {
        let at = self.open.iter().position(|(open, _)| open == call).ok_or(Cannot::NotAsked)?;
        let answer = self.open[at].1.answer(decision).ok_or(Cannot::NotOffered(NO_SUCH_ANSWER))?;
        self.open.remove(at);
        Ok(vec![Output::Write(answer)])
    }

    fn answer_in_words(&mut self, call: &CallId, text: &str) -> Result<Vec<Output>, Cannot> {
        let open = self.open.iter().find(|(open, _)| open == call).ok_or(Cannot::NotAsked)?;
        let values = vec![text.to_owned()];
        let answer = |field: &str| Answer { question: field.to_owned(), values: values.clone() };
        let answers = open.1.questions().into_iter().map(answer).collect();
        self.decide(call, &Decision::Answer { answers })
    }

    fn session(&self) -> Result<Arc<str>, Cannot> {
        match self.phase {
            Phase::Starting => Err(Cannot::NotReady),
            Phase::Replaying { .. } | Phase::Idle | Phase::Running => {
                self.session.clone().ok_or(Cannot::NotReady)
            }
        }
    }

    fn prompt(&mut self, text: &str) -> Result<Vec<Output>, Cannot> {
        let session = self.session()?;
        match self.phase {
            Phase::Starting | Phase::Replaying { .. } => Err(Cannot::NotReady),
            Phase::Running => Err(Cannot::Busy),
            Phase::Idle => {
                self.phase = Phase::Running;
                self.turn = Turn::default();
                let id = self.ask(Ask::Prompt);
                Ok(vec![Output::Write(reply::prompt(id, &session, text))])
            }
        }
    }

    /// What it waits for is withdrawn, for it was answered without the operator.
    fn cancel(&mut self) -> Result<Vec<Output>, Cannot> {
        let session = self.session()?;
        let (calls, asked): (Vec<CallId>, Vec<Asked>) = self.open.drain(..).unzip();
        let lines = reply::cancel(&session, &asked).into_iter().map(Output::Write);
        let withdrawn =
            calls.into_iter().map(|call| Output::Report(Report::RequestWithdrawn { call }));
        Ok(lines.chain(withdrawn).collect())
    }

    fn set_mode(&mut self, mode: Mode) -> Result<Vec<Output>, Cannot> {
        let session = self.session()?;
        let mode = self.mode_named(mode).ok_or(Cannot::NotOffered(NO_SUCH_MODE))?;
        let id = self.ask(Ask::Mode(mode.clone()));
        Ok(vec![Output::Write(reply::set_mode(id, &session, &mode))])
    }
}

impl crate::driver::Driver for Driver {
    fn process(&self) -> Process {
        Process::WholeSession
    }

    fn start(&mut self) -> Vec<Output> {
        let id = self.ask(Ask::Initialize);
        let hello = reply::initialize(id, env!("CARGO_PKG_VERSION"));
        vec![Output::Start(Invocation::of(&self.launch, &[])), Output::Write(hello)]
    }

    fn handle_line(&mut self, now: Timestamp, line: &[u8]) -> Vec<Output> {
        let line = &*payload::mended(line);
        let Ok(message) = serde_json::from_slice::<Message>(line) else {
            return vec![unrecognised(line)];
        };
        let mut out = Vec::new();
        match (message.method.as_deref(), &message.id) {
            (Some(_), Some(_)) => self.asked(message, line, &mut out),
            (Some("session/update"), None) => {
                let params = message.params.unwrap_or_default();
                match serde_json::from_value::<UpdateParams>(params) {
                    Ok(UpdateParams { update: Some(update) }) => {
                        self.updated(now, &update, &mut out);
                    }
                    Ok(UpdateParams { update: None }) | Err(_) => out.push(unrecognised(line)),
                }
            }
            (None, Some(_)) => self.answered(now, message, &mut out),
            (Some(_), None) => {}
            (None, None) => out.push(unrecognised(line)),
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
            Command::Interrupt => self.cancel(),
            Command::SetMode(mode) => self.set_mode(*mode),
            Command::Release => Ok(Vec::new()),
            Command::Stop => {
                let mut out = match self.phase {
                    Phase::Running => self.cancel().unwrap_or_default(),
                    Phase::Starting | Phase::Replaying { .. } | Phase::Idle => Vec::new(),
                };
                out.push(Output::CloseInput);
                Ok(out)
            }
        }
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Replaying { until } => Some(until),
            Phase::Starting | Phase::Idle | Phase::Running => None,
        }
    }

    fn handle_timeout(&mut self, now: Timestamp) -> Vec<Output> {
        let mut out = Vec::new();
        if self.next_timeout().is_some_and(|until| until <= now) {
            self.came_up(&mut out);
        }
        out
    }
}

fn question(id: &Value, params: Value) -> Option<(CallId, Report)> {
    let form = params.get("requestedSchema").cloned().unwrap_or_default();
    let params: ElicitationParams = serde_json::from_value(params).ok()?;
    let own = id.to_string();
    let call = params.tool_call_id.as_deref().unwrap_or(own.trim_matches('"'));
    let questions: Vec<Value> = fields(&form);
    let arguments = serde_json::json!({
        "question": params.message, "questions": questions, "form": form,
    });
    let call = called(call, "elicitation", arguments);
    Some((call.call_id.clone(), Report::QuestionAsked(call)))
}

/// The fields of a form, as questions are shown.
fn fields(form: &Value) -> Vec<Value> {
    let fields = form["properties"].as_object().into_iter().flatten();
    let question = |(name, schema): (&String, &Value)| {
        let several = schema["type"] == "array";
        let offered = if several { &schema["items"] } else { schema };
        let told = [&schema["title"], &schema["description"]].into_iter().find_map(Value::as_str);
        let word = |choice: &Value| {
            let label = choice.as_str().or(choice["const"].as_str())?;
            Some(serde_json::json!({ "label": label }))
        };
        let choices = ["enum", "oneOf", "anyOf"].iter().find_map(|key| offered[*key].as_array());
        let options: Vec<Value> = choices.into_iter().flatten().filter_map(word).collect();
        serde_json::json!({
            "id": name, "question": told.unwrap_or(name), "options": options, "multiSelect": several,
        })
    };
    fields.map(question).collect()
}

fn text_of(update: &Update) -> Option<&str> {
    update.content.as_ref()?.get("text")?.as_str()
}

fn mode_of(option: &ConfigOption) -> Option<&str> {
    let category = option.category.as_deref().or(option.id.as_deref());
    option.current_value.as_ref().filter(|_| category == Some("mode"))?.as_str()
}

fn why(error: &RpcError) -> String {
    error.message.clone().unwrap_or_else(|| "no reason given".to_owned())
}

fn refused(what: &'static str, why: &str) -> Output {
    Output::Report(Report::Refused { what, why: why.into() })
}

/// Some agents tell what a prompt has cost; the names are the protocol's draft's, and Gemini's.
fn tokens(result: &Value) -> Option<Tokens> {
    let draft = result.get("usage").filter(|usage| usage.is_object());
    let gemini = result["_meta"]["quota"].get("token_count");
    let usage = draft.or(gemini)?;
    let count = |names: [&str; 2]| names.iter().find_map(|name| usage[*name].as_u64());
    Some(Tokens {
        input: count(["inputTokens", "input_tokens"]).unwrap_or_default(),
        output: count(["outputTokens", "output_tokens"]).unwrap_or_default(),
        cache_write: count(["cachedWriteTokens", "cached_write_tokens"]).unwrap_or_default(),
        cache_write_1h: 0,
        cache_read: count(["cachedReadTokens", "cached_read_tokens"]).unwrap_or_default(),
    })
}

/// What agents call it, the most telling first.
fn mode_names(mode: Mode) -> &'static [&'static str] {
    match mode {
        Mode::Own => &[],
        // `ask` comes late: where there is an agent that works, it is one that only answers.
        Mode::Ask => &["default", "manual", "read-only", "build", "code", "agent", "ask"],
        Mode::Edit => &["autoEdit", "acceptEdits", "auto-edit", "auto"],
        Mode::Plan => &["plan", "architect"],
        Mode::Yolo => &["yolo", "bypassPermissions", "full-access"],
    }
}

const CANCELLED: Report = Report::Completed { text: None, cut_off: false };
const NO_SUCH_MODE: &str = "the agent offers no such mode";
const NO_SUCH_ANSWER: &str = "the agent offers no such answer";
