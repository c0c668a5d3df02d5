//! Driving Codex over `codex app-server` on stdio.
//!
//! One connection, one thread of ours. A turn ends with `turn/completed` of that thread; child
//! threads share the connection, and what they run and ask is told as the agent's own. A plan is
//! only an item of a turn that has ended: the turn is kept open until the operator has judged it,
//! and approving it is a turn of Codex's that the machine does not see begin.

use std::sync::Arc;

use qd_session::decision::{Answer, Decision};
use qd_session::id::CallId;
use qd_session::machine::Process;
use qd_session::moment::Timestamp;
use serde_json::Value;

use super::client::{self, TurnSettings};
use super::driver_items::{self as items, Patches, tokens};
use super::failure::{failure, resets_at};
use super::reply;
use super::wire::{RateLimits, TurnError};
use crate::driver::{
    Cannot, Command, Delta, GO_ON, Invocation, Launch, Mode, OPEN_MAX, Output, Report, Spending,
    accepts_version, called, failed, unrecognised,
};
use crate::excerpt::last_message;
use crate::payload;
use crate::usage::Tokens;

#[derive(Debug)]
pub struct Driver {
    launch: Launch,
    phase: Phase,
    thread: Option<Arc<str>>,
    model: Option<Arc<str>>,
    mode: Mode,
    /// The thread is in plan mode and has to be told when it leaves it.
    planning: bool,
    /// Requests of ours so far: the number of the last.
    sent: u64,
    unanswered: Vec<(u64, Ask)>,
    open: Vec<Open>,
    patches: Patches,
    said: Option<Arc<str>>,
    plan: Option<(CallId, Arc<str>)>,
    limit_resets_at: Option<Timestamp>,
    /// What the thread had used when the turn began; known with its first response.
    spent_before: Option<Tokens>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    Starting,
    Idle,
    /// Codex's own id of the turn comes a little later than the turn.
    Running {
        turn: Option<String>,
        interrupting: bool,
    },
    /// A plan waits to be judged.
    Planned,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ask {
    Initialize,
    Thread,
    Turn,
    Other,
}

/// A request of the server that waits for its answer.
#[derive(Debug)]
struct Open {
    rpc: Value,
    call: CallId,
    params: String,
    question: bool,
}

impl Driver {
    pub fn new(launch: Launch) -> Self {
        Self {
            mode: launch.mode,
            launch,
            phase: Phase::Starting,
            thread: None,
            model: None,
            planning: false,
            sent: 0,
            unanswered: Vec::new(),
            open: Vec::new(),
            patches: Patches::default(),
            said: None,
            plan: None,
            limit_resets_at: None,
            spent_before: None,
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

    fn thread(&self) -> Result<Arc<str>, Cannot> {
        self.thread.clone().ok_or(Cannot::NotReady)
    }

    fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running { .. })
    }

    /// The server answers something that we asked for.
    fn answered(&mut self, now: Timestamp, message: &Value, out: &mut Vec<Output>) {
        let id = message["id"].as_u64();
        let Some(at) = self.unanswered.iter().position(|(sent, _)| Some(*sent) == id) else {
            return;
        };
        let (_, ask) = self.unanswered.remove(at);
        let error = message["error"]["message"].as_str();
        match (ask, error) {
            (Ask::Initialize, None) => {
                let agent = message["result"]["userAgent"].as_str();
                if !accepts_version(&self.launch, agent.and_then(version_in), out) {
                    return;
                }
                out.push(Output::Write(client::initialized()));
                let id = self.ask(Ask::Thread);
                out.push(Output::Write(match self.launch.resume_id() {
                    Some(thread) => client::resume_thread(id, thread),
                    None => {
                        client::start_thread(id, &self.launch.cwd, self.launch.model.as_deref())
                    }
                }));
            }
            (Ask::Thread, None) => self.opened(&message["result"], out),
            (Ask::Initialize | Ask::Thread, Some(why)) => {
                out.push(Output::GiveUp(format!("Codex did not come up: {why}").into()));
            }
            (Ask::Turn, None) => self.turn_is(message["result"]["turn"]["id"].as_str(), out),
            (Ask::Turn, Some(why)) if self.is_running() => {
                let error = TurnError { message: Some(why.to_owned()), ..TurnError::default() };
                self.over(failed(now, failure(Some(&error), None)), out);
            }
            (Ask::Other, Some(why)) => {
                let what = "something we asked for";
                out.push(Output::Report(Report::Refused { what, why: why.into() }));
            }
            (Ask::Turn, Some(_)) | (Ask::Other, None) => {}
        }
    }

    fn opened(&mut self, result: &Value, out: &mut Vec<Output>) {
        let Some(id) = result["thread"]["id"].as_str() else {
            return out.push(Output::GiveUp("Codex opened a thread without an id".into()));
        };
        let id: Arc<str> = id.into();
        self.thread = Some(id.clone());
        let model = result["model"].as_str().or(result["thread"]["model"].as_str());
        self.model = model.map(Into::into);
        self.phase = Phase::Idle;
        out.push(Output::Report(Report::VendorSession { id }));
        out.push(Output::Report(Report::Ready));
    }

    /// The turn's id is known. An interrupt that came sooner can go out now.
    fn turn_is(&mut self, id: Option<&str>, out: &mut Vec<Output>) {
        let (Phase::Running { turn, interrupting }, Some(id)) = (&mut self.phase, id) else {
            return;
        };
        if turn.is_none() {
            *turn = Some(id.to_owned());
            if *interrupting {
                out.extend(self.interrupt_now());
            }
        }
    }

    fn interrupt_now(&mut self) -> Option<Output> {
        let Phase::Running { turn, interrupting } = &mut self.phase else { return None };
        *interrupting = true;
        let (turn, thread) = (turn.clone()?, self.thread.clone()?);
        let id = self.ask(Ask::Other);
        Some(Output::Write(client::interrupt_turn(id, &thread, &turn)))
    }

    fn notified(&mut self, now: Timestamp, method: &str, params: &Value, out: &mut Vec<Output>) {
        let ours = params["threadId"].as_str() == self.thread.as_deref();
        match method {
            "turn/started" if ours => self.turn_is(params["turn"]["id"].as_str(), out),
            "turn/completed" if ours => self.completed(now, &params["turn"], out),
            "item/started" => {
                self.patches.begun(&params["item"]);
                out.extend(items::begun(&params["item"]));
            }
            "item/completed" => self.item_completed(&params["item"], ours, out),
            "item/agentMessage/delta" | "item/plan/delta" if ours => {
                out.extend(piece(params, Delta::Text));
            }
            "item/reasoning/textDelta" | "item/reasoning/summaryTextDelta" if ours => {
                out.extend(piece(params, Delta::Thinking));
            }
            "serverRequest/resolved" => self.withdrawn(&params["requestId"], out),
            "thread/tokenUsage/updated" if ours => {
                let spending = self.spending(&params["tokenUsage"]);
                out.push(Output::Report(Report::Spent(spending)));
            }
            "account/rateLimits/updated" => {
                let limits = serde_json::from_value::<RateLimits>(params["rateLimits"].clone());
                self.limit_resets_at = limits.ok().and_then(|limits| resets_at(&limits));
            }
            _ if self.is_running() => out.push(Output::Report(Report::Alive)),
            _ => {}
        }
    }

    fn item_completed(&mut self, item: &Value, ours: bool, out: &mut Vec<Output>) {
        self.patches.ended(item);
        match (item["type"].as_str().unwrap_or_default(), ours) {
            ("agentMessage", true) if item["delivery"].as_str() != Some("async") => {
                self.said = item["text"].as_str().and_then(last_message).or(self.said.take());
            }
            ("plan", true) => {
                let (id, text) = (item["id"].as_str(), item["text"].as_str());
                self.plan = id.zip(text).map(|(id, text)| (CallId::new(id), text.into()));
            }
            _ => out.extend(items::ended(item)),
        }
    }

    fn completed(&mut self, now: Timestamp, turn: &Value, out: &mut Vec<Output>) {
        if !self.is_running() {
            return;
        }
        let plan = self.plan.take();
        match (turn["status"].as_str(), plan) {
            (Some("failed"), _) => {
                let error = serde_json::from_value::<TurnError>(turn["error"].clone()).ok();
                let report = failed(now, failure(error.as_ref(), self.limit_resets_at));
                self.over(report, out);
            }
            (Some("interrupted"), _) => {
                self.over(Report::Completed { text: None, cut_off: false }, out);
            }
            (_, Some((id, text))) => {
                let mut call =
                    called(id.as_str(), PLAN_TOOL, serde_json::json!({ "plan": &*text }));
                call.mutating = false;
                self.phase = Phase::Planned;
                self.plan = Some((id, text));
                out.push(Output::Report(Report::ApprovalAsked(call)));
            }
            (_, None) => {
                let text = self.said.take();
                self.over(Report::Completed { text, cut_off: false }, out);
            }
        }
    }

    fn over(&mut self, report: Report, out: &mut Vec<Output>) {
        self.open.clear();
        (self.said, self.plan, self.patches) = (None, None, Patches::default());
        self.spent_before = None;
        self.phase = Phase::Idle;
        out.push(Output::Report(report));
    }

    /// Codex counts the whole thread, and its last response.
    fn spending(&mut self, usage: &Value) -> Spending {
        let (total, last) = (tokens(&usage["total"]), tokens(&usage["last"]));
        let before = *self.spent_before.get_or_insert_with(|| total.less(&last));
        Spending {
            model: self.model.clone(),
            tokens: Some(total.less(&before)),
            cost_usd: None,
            context_tokens: usage["last"]["totalTokens"].as_u64(),
            context_window: usage["modelContextWindow"].as_u64(),
        }
    }

    /// The server asks its client.
    fn asked(&mut self, method: &str, rpc: &Value, params: &Value, out: &mut Vec<Output>) {
        let question = match method {
            "item/commandExecution/requestApproval" | "item/fileChange/requestApproval" => false,
            "item/tool/requestUserInput" => true,
            other => {
                let why = format!("{other} is not answered here");
                out.push(Output::Write(client::cannot(rpc, &why)));
                let what = "a request of the server";
                return out.push(Output::Report(Report::Refused { what, why: why.into() }));
            }
        };
        if self.open.len() == OPEN_MAX {
            return out.push(Output::Write(client::cannot(rpc, "too many requests are open")));
        }
        let item = params["itemId"].as_str().map(CallId::new);
        // One command may ask more than once, for each program it starts.
        let taken =
            item.as_ref().is_some_and(|item| self.open.iter().any(|open| open.call == *item));
        let own = || CallId::new(format!("rpc:{rpc}"));
        let call = item.filter(|_| !taken).unwrap_or_else(own);
        let report = items::asked(method, call.as_str(), params, &self.patches);
        self.open.push(Open { rpc: rpc.clone(), call, params: params.to_string(), question });
        out.push(Output::Report(match question {
            true => Report::QuestionAsked(report),
            false => Report::ApprovalAsked(report),
        }));
    }

    fn withdrawn(&mut self, rpc: &Value, out: &mut Vec<Output>) {
        if let Some(at) = self.open.iter().position(|open| open.rpc == *rpc) {
            let call = self.open.remove(at).call;
            out.push(Output::Report(Report::RequestWithdrawn { call }));
        }
    }

    fn decide(&mut self, call: &CallId, decision: &Decision) -> Result<Vec<Output>, Cannot> {
        if self.plan.as_ref().is_some_and(|(plan, _)| plan == call) {
            return self.judge_plan(decision);
        }
        let at = self.open.iter().position(|open| open.call == *call).ok_or(Cannot::NotAsked)?;
        let open = &self.open[at];
        let answer = match open.question {
            true => reply::user_input(&open.rpc, Some(&open.params), decision),
            false => reply::approval(&open.rpc, Some(&open.params), decision),
        };
        let answer = answer.ok_or(Cannot::NotOffered(NO_SUCH_ANSWER))?;
        self.open.remove(at);
        let mut out = vec![Output::Write(answer)];
        if let Decision::Deny { message: Some(words), interrupt: false } = decision {
            out.extend(self.say_why(words));
        }
        Ok(out)
    }

    /// An answer of Codex's has no place for words: they join the turn that goes on.
    fn say_why(&mut self, words: &str) -> Option<Output> {
        let Phase::Running { turn: Some(turn), .. } = &self.phase else { return None };
        let (turn, thread) = (turn.clone(), self.thread.clone()?);
        let id = self.ask(Ask::Other);
        let text = format!("I did not allow that: {words}");
        Some(Output::Write(client::steer_turn(id, &thread, &turn, &text)))
    }

    fn judge_plan(&mut self, decision: &Decision) -> Result<Vec<Output>, Cannot> {
        let thread = self.thread()?;
        match decision {
            Decision::Allow { .. } | Decision::ApprovePlan { .. } => {
                let id = self.begin();
                (self.plan, self.planning) = (None, false);
                let model = self.model.clone().unwrap_or_default();
                Ok(vec![Output::Write(client::implement_plan(id, &thread, &model))])
            }
            Decision::RejectPlan { feedback: Some(words) }
            | Decision::Deny { message: Some(words), interrupt: false } => {
                self.plan = None;
                Ok(vec![self.turn(&thread, words)])
            }
            Decision::RejectPlan { feedback: None } | Decision::Deny { .. } => {
                let mut out = Vec::new();
                let text = self.said.take();
                self.over(Report::Completed { text, cut_off: false }, &mut out);
                Ok(out)
            }
            Decision::Answer { .. } => Err(Cannot::NotOffered(NO_SUCH_ANSWER)),
        }
    }

    fn answer_in_words(&mut self, call: &CallId, text: &str) -> Result<Vec<Output>, Cannot> {
        let open = self.open.iter().find(|open| open.call == *call).ok_or(Cannot::NotAsked)?;
        let params: Value = serde_json::from_str(&open.params).unwrap_or_default();
        let questions = params["questions"].as_array().into_iter().flatten();
        let ids = questions.filter_map(|question| question["id"].as_str());
        let values = vec![text.to_owned()];
        let answers =
            ids.map(|id| Answer { question: id.to_owned(), values: values.clone() }).collect();
        self.decide(call, &Decision::Answer { answers })
    }

    /// A turn of Codex's begins.
    fn begin(&mut self) -> u64 {
        self.phase = Phase::Running { turn: None, interrupting: false };
        self.said = None;
        self.ask(Ask::Turn)
    }

    fn turn(&mut self, thread: &str, text: &str) -> Output {
        let id = self.begin();
        let plans = self.mode == Mode::Plan;
        let leaves = self.planning && !plans;
        self.planning = plans;
        let model = self.model.as_deref().unwrap_or_default();
        let mode = if plans { "plan" } else { "default" };
        let (approval_policy, sandbox) = confinement(self.mode);
        let collaboration = (plans || leaves).then_some((mode, model));
        let settings = TurnSettings { approval_policy, sandbox, collaboration };
        Output::Write(client::start_turn_so(id, thread, text, settings))
    }

    fn prompt(&mut self, text: &str) -> Result<Vec<Output>, Cannot> {
        let thread = self.thread()?;
        match self.phase {
            Phase::Starting => Err(Cannot::NotReady),
            Phase::Running { .. } | Phase::Planned => Err(Cannot::Busy),
            Phase::Idle => Ok(vec![self.turn(&thread, text)]),
        }
    }

    fn interrupt(&mut self) -> Result<Vec<Output>, Cannot> {
        match self.phase {
            Phase::Starting | Phase::Idle => Err(Cannot::Idle),
            Phase::Running { .. } => Ok(self.interrupt_now().into_iter().collect()),
            Phase::Planned => {
                let plan = self.plan.take().map(|(call, _)| Report::RequestWithdrawn { call });
                let mut out: Vec<Output> = plan.map(Output::Report).into_iter().collect();
                self.over(Report::Completed { text: None, cut_off: false }, &mut out);
                Ok(out)
            }
        }
    }
}

/// `quarterdeck/0.169.0 (Debian 12.0.0; x86_64) …`: our own name, and Codex's version.
fn version_in(user_agent: &str) -> Option<&str> {
    let (_, rest) = user_agent.split_once('/')?;
    rest.split_whitespace().next()
}

impl crate::driver::Driver for Driver {
    fn process(&self) -> Process {
        Process::WholeSession
    }

    fn start(&mut self) -> Vec<Output> {
        let id = self.ask(Ask::Initialize);
        let hello = client::initialize(id, "quarterdeck", "Quarterdeck", env!("CARGO_PKG_VERSION"));
        let invocation = Invocation::of(&self.launch, &["app-server"]);
        vec![Output::Start(invocation), Output::Write(hello)]
    }

    fn handle_line(&mut self, now: Timestamp, line: &[u8]) -> Vec<Output> {
        let Ok(message) = serde_json::from_slice::<Value>(&payload::mended(line)) else {
            return vec![unrecognised(line)];
        };
        let mut out = Vec::new();
        match (message["method"].as_str(), message.get("id")) {
            (Some(method), Some(rpc)) => self.asked(method, rpc, &message["params"], &mut out),
            (Some(method), None) => self.notified(now, method, &message["params"], &mut out),
            (None, Some(_)) => self.answered(now, &message, &mut out),
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
            Command::Interrupt => self.interrupt(),
            // From the next turn on: what waits already, waits on.
            Command::SetMode(mode) => {
                self.mode = *mode;
                let mode = mode_name(*mode).into();
                Ok(vec![Output::Report(Report::ModeChanged { mode })])
            }
            Command::Release => Ok(Vec::new()),
            Command::Stop => {
                let mut out: Vec<Output> = self.interrupt_now().into_iter().collect();
                out.push(Output::CloseInput);
                Ok(out)
            }
        }
    }
}

fn piece(params: &Value, delta: impl Fn(Arc<str>) -> Delta) -> Option<Output> {
    let text = params["delta"].as_str().filter(|text| !text.is_empty())?;
    Some(Output::Report(Report::Delta(delta(text.into()))))
}

/// When Codex asks and what it may touch without asking.
fn confinement(mode: Mode) -> (Option<&'static str>, Option<&'static str>) {
    match mode {
        Mode::Own | Mode::Plan => (None, None),
        Mode::Ask => (Some("on-request"), Some("readOnly")),
        Mode::Edit => (Some("on-request"), Some("workspaceWrite")),
        Mode::Yolo => (Some("never"), Some("dangerFullAccess")),
    }
}

fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Own => "configured",
        Mode::Ask => "read-only",
        Mode::Edit => "workspace-write",
        Mode::Plan => "plan",
        Mode::Yolo => "danger-full-access",
    }
}

/// A plan's approval, named like the tool that other agents have for it.
const PLAN_TOOL: &str = "exit_plan_mode";
const NO_SUCH_ANSWER: &str = "Codex takes no such answer to this";
