//! The stream of one client process: what it has printed so far, and what that means.
//!
//! Invariant: at most one ask is open, for the client waits for one thing at a time. Whatever the
//! client does next that is younger than the ask, by its own clock, settles it.

use std::sync::Arc;

use qd_session::id::{AgentId, CallId, RequestId, ToolName};
use qd_session::moment::Timestamp;
use qd_session::monitor::{Ask, Fact, Failure, FailureKind, Stage, Usage};

use super::failure::failure_of;
use super::policy::{Outcome, Policy};
use super::seen::{Seen, Sight};
use super::wire::{Line, Message, Word};
use crate::excerpt::{brief, ending};

/// Longest time between Kilo's "this is the result" and the ask that hands it over. When that ask
/// is lost the result stands alone and the turn is over all the same.
pub const RESULT_GRACE_MS: u64 = 400;

/// The same for a subtask, whose result goes to the task above and ends nothing.
pub const SUBTASK_RESULT_GRACE_MS: u64 = 10_000;

/// A client that was started with a prompt echoes it within this time; after it, it waits for one.
const PROMPT_GRACE_MS: u64 = 5_000;

/// What a line says, for the session the stream belongs to.
pub type Facts = Vec<(AgentId, Fact)>;

#[derive(Debug, Default)]
pub struct Stream {
    /// The session's id by the vendor, where it was told before anything else was.
    pub id: Option<Arc<str>>,
    /// When the process began, by its own clock: an older message is a reprint of an old task.
    born: Option<u64>,
    pub(super) seen: Seen,
    pub(super) policy: Policy,
    pub(super) phase: Phase,
    /// The youngest thing it has done, by its own clock.
    pub(super) newest: u64,
    pub(super) open: Option<OpenAsk>,
    /// The tool that runs.
    pub(super) running: Option<CallId>,
    pub(super) subtask: Option<AgentId>,
    /// What it said last: the result, once it has given one.
    pub(super) said: Option<String>,
    /// Our prompt, which the client will print as if the model had said it.
    pub(super) echo: Option<String>,
    pub(super) done_todos: usize,
    pub(super) result_due: Option<Timestamp>,
    idle_due: Option<Timestamp>,
    misconfigured: bool,
    mode: Option<Arc<str>>,
    model: Option<Arc<str>>,
}

/// Where the stream's turn stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    /// Nothing has been asked of it.
    #[default]
    Fresh,
    Working,
    Completed,
    Failed,
    Paused,
}

/// An ask that may wait for somebody.
#[derive(Debug)]
pub struct OpenAsk {
    pub stamp: u64,
    pub request: RequestId,
    pub kind: AskKind,
    pub ask: Ask,
    /// What the policy remembers it under.
    pub alike: String,
    /// When a person is needed, if nothing settles it before.
    pub due: Option<Timestamp>,
    /// It asks to hand a subtask to an agent of this kind.
    pub delegates: Option<Arc<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskKind {
    Approval,
    Question,
    Plan,
}

impl Stream {
    /// A line the client printed. `None` if nobody knows what it is.
    pub fn hear(&mut self, at: Timestamp, line: Line) -> Option<Facts> {
        let mut facts = Facts::new();
        match (line.event_name(), line.r#type.as_deref()) {
            (Some("session_created"), _) => self.name(line.session_id),
            (Some("session_title_generated"), _) => {
                let title = line.title.as_deref().map(|title| brief(title, 200));
                facts.extend(title.map(|title| main(Fact::TitleKnown { title, custom: false })));
            }
            (_, Some("task_started")) => {
                self.name(line.task_id);
                self.idle_due = Some(at.plus_ms(PROMPT_GRACE_MS));
            }
            (_, Some("welcome")) => self.welcome(at, &line, &mut facts),
            (_, Some("modeChanged")) => self.mode_is(line.mode, &mut facts),
            (_, Some("error")) => {
                let text = line.message.unwrap_or_default();
                if self.phase != Phase::Failed {
                    self.fail(failure_of(&text), &mut facts);
                }
            }
            (_, Some("image_load_error")) => {}
            (_, Some("hook_event")) => self.hook_event(at, &line, &mut facts)?,
            (_, Some("agent_event")) => self.agent_event(&line, &mut facts),
            (_, Some("run_result")) => self.run_result(&line, &mut facts),
            (_, Some("say" | "ask")) => self.message(at, &line.into_message()?, &mut facts),
            _ => return None,
        }
        Some(facts)
    }

    /// Keeps the first name it is given; a stream that was already told about keeps what it had.
    pub(super) fn name(&mut self, id: Option<String>) {
        if self.id.is_none() {
            self.id = id.filter(|id| !id.is_empty()).map(Arc::from);
        }
    }

    fn welcome(&mut self, at: Timestamp, line: &Line, facts: &mut Facts) {
        self.born = self.born.or(line.born());
        let welcome = line.welcome().unwrap_or_default();
        self.policy.unattended =
            welcome.clear_screen == Some(false) && welcome.show_instructions == Some(false);
        if !welcome.instructions.is_empty() {
            self.misconfigured = true;
            let message = Some(brief(&welcome.instructions.join("\n"), 2_000));
            let failure = Failure { kind: FailureKind::Other, message, resets_at: None };
            self.fail(failure, facts);
        } else if self.phase == Phase::Fresh {
            self.idle_due = Some(at.plus_ms(PROMPT_GRACE_MS));
        }
    }

    fn mode_is(&mut self, mode: Option<String>, facts: &mut Facts) {
        let mode = mode.map(|mode| brief(&mode, 100));
        if let Some(mode) = mode.filter(|mode| self.mode.as_ref() != Some(mode)) {
            facts.push(main(Fact::ModeChanged { mode: mode.clone() }));
            self.mode = Some(mode);
        }
    }

    fn message(&mut self, at: Timestamp, message: &Message, facts: &mut Facts) {
        let sight = self.seen.note(message.stamp, &message.word, message.partial);
        if let Some(model) = &message.model {
            self.mode_is(model.mode.clone(), facts);
            let known = self.model.take();
            self.model = model.model_id.as_deref().map(|model| brief(model, 100)).or(known);
        }
        if self.born.is_some_and(|born| message.stamp < born) {
            self.remember(message);
            return;
        }
        self.idle_due = None;
        match &message.word {
            Word::Say(word) => self.say(at, word, message, sight, facts),
            Word::Ask(word) => self.ask(at, word, message, sight, facts),
        }
    }

    /// A reprint of a task from before this process: it tells what was said, nothing else.
    fn remember(&mut self, message: &Message) {
        let Word::Say(word) = &message.word else { return };
        if matches!(word.as_str(), "text" | "completion_result") && !message.partial {
            self.said = message.text.as_deref().map(ending);
        }
    }

    /// It goes on: whatever it waited for is settled. False if it is older than what it has done
    /// since, and so says nothing new.
    pub(super) fn progress(&mut self, stamp: u64, facts: &mut Facts) -> bool {
        self.result_due = None;
        if self.open.as_ref().is_some_and(|open| stamp > open.stamp) {
            self.begin_subtask(facts);
            self.settle(Outcome::Allowed, facts);
        }
        let new = stamp >= self.newest;
        self.newest = self.newest.max(stamp);
        new
    }

    /// Closes the open ask. What was asked is remembered by its outcome.
    pub(super) fn settle(&mut self, outcome: Outcome, facts: &mut Facts) {
        let Some(open) = self.open.take() else { return };
        let request = open.request;
        facts.push(main(match open.kind {
            AskKind::Approval => {
                self.policy.learn(open.alike, outcome);
                Fact::ApprovalResolved { request }
            }
            AskKind::Question => Fact::QuestionAnswered { request },
            AskKind::Plan => Fact::PlanResolved { request },
        }));
    }

    /// The model is at work, in a new turn if the last one had ended.
    pub(super) fn thinks(&mut self, facts: &mut Facts) {
        self.end_running(true, facts);
        if matches!(self.phase, Phase::Fresh | Phase::Completed | Phase::Paused) {
            self.begin(None, facts);
        }
        self.phase = Phase::Working;
        facts.push(main(Fact::LlmStarted));
    }

    pub(super) fn begin(&mut self, prompt: Option<&str>, facts: &mut Facts) {
        self.close_all(facts);
        self.phase = Phase::Working;
        self.said = None;
        facts.push(main(Fact::TurnStarted));
        if let Some(prompt) = prompt {
            facts.push(main(Fact::UserPrompt { text: Some(brief(prompt, 2_000)) }));
        }
    }

    pub(super) fn end(&mut self, phase: Phase, fact: Fact, facts: &mut Facts) {
        self.close_all(facts);
        self.phase = phase;
        facts.push(main(fact));
    }

    pub(super) fn complete(&mut self, facts: &mut Facts) {
        let last_message = self.said.as_deref().map(Arc::from);
        let fact = Fact::TurnCompleted { last_message, background: None, cut_off: false };
        self.end(Phase::Completed, fact, facts);
    }

    pub(super) fn fail(&mut self, failure: Failure, facts: &mut Facts) {
        self.end(Phase::Failed, Fact::TurnFailed { failure }, facts);
    }

    fn close_all(&mut self, facts: &mut Facts) {
        self.result_due = None;
        self.idle_due = None;
        self.end_running(true, facts);
        self.end_subtask(facts);
        self.open = None;
    }

    pub(super) fn run(&mut self, call: CallId, tool: ToolName, about: Option<Arc<str>>) -> Facts {
        let mut facts = Facts::new();
        if self.running.as_ref() != Some(&call) {
            self.end_running(true, &mut facts);
            self.running = Some(call.clone());
            facts.push(main(Fact::ToolStarted { call, tool, about }));
        }
        facts
    }

    pub(super) fn end_running(&mut self, ok: bool, facts: &mut Facts) {
        let ended = self.running.take();
        facts.extend(ended.map(|call| main(Fact::ToolCompleted { call, ok, exit_code: None })));
    }

    /// The subtask's messages come in the same stream, so only its beginning and end are its own.
    pub(super) fn begin_subtask(&mut self, facts: &mut Facts) {
        let Some(open) = &self.open else { return };
        let Some(kind) = open.delegates.clone() else { return };
        let agent = AgentId::sub(open.stamp.to_string());
        self.end_subtask(facts);
        let kind = Some(kind).filter(|kind| !kind.is_empty());
        facts.push((agent.clone(), Fact::SubagentStarted { kind }));
        self.subtask = Some(agent);
    }

    pub(super) fn end_subtask(&mut self, facts: &mut Facts) {
        facts.extend(self.subtask.take().map(|agent| (agent, Fact::SubagentEnded)));
    }

    pub(super) fn usage(&self, context_tokens: Option<u64>) -> Fact {
        let model = self.model.clone();
        Fact::UsageReported { usage: Usage { model, context_tokens, context_window: None } }
    }

    /// The process was sent a signal that ends it: Kilo says nothing any more.
    pub fn killed(&mut self) -> Facts {
        self.exited(None)
    }

    /// The process was seen to end. A client that refused its configuration exits as if all were
    /// well: what failed is what the operator must see.
    pub fn exited(&mut self, exit_code: Option<i32>) -> Facts {
        if self.misconfigured {
            return Facts::new();
        }
        self.open = None;
        self.idle_due = None;
        self.result_due = None;
        vec![main(Fact::SessionEnded { process: None, exit_code })]
    }

    pub fn next_timeout(&self) -> Option<Timestamp> {
        let open = self.open.as_ref().and_then(|open| open.due);
        [open, self.result_due, self.idle_due].into_iter().flatten().min()
    }

    pub fn handle_timeout(&mut self, now: Timestamp) -> Facts {
        let mut facts = Facts::new();
        let due = |timer: Option<Timestamp>| timer.is_some_and(|timer| timer <= now);
        if let Some(open) = self.open.as_mut().filter(|open| due(open.due)) {
            open.due = None;
            facts.push(main(open.fact(Stage::Waiting)));
        }
        if due(self.result_due) {
            self.complete(&mut facts);
        }
        if due(self.idle_due) {
            self.idle_due = None;
            facts.push(main(Fact::SessionStarted { process: None }));
        }
        facts
    }
}

impl OpenAsk {
    pub fn fact(&self, stage: Stage) -> Fact {
        let (request, ask) = (self.request.clone(), self.ask.clone());
        match self.kind {
            AskKind::Approval => Fact::ApprovalRequested { request, stage, ask },
            AskKind::Question => Fact::QuestionAsked { request, ask },
            AskKind::Plan => Fact::PlanProposed { request, ask },
        }
    }
}

pub fn main(fact: Fact) -> (AgentId, Fact) {
    (AgentId::MAIN, fact)
}

/// Whether the line is the first that says it, or the one that completes it.
pub fn is_news(sight: Sight) -> bool {
    match sight {
        Sight::First | Sight::Completed => true,
        Sight::Again => false,
    }
}
