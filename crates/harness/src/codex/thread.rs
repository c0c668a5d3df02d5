//! One thread of Codex: its turn, and what of it must be remembered to tell the truth.
//!
//! A thread is a session of its own or a subagent of one. All sources tell about the same turn in
//! their own time and order, so the turn's id decides what still counts: what is over stays over,
//! whatever comes late.

use std::collections::VecDeque;
use std::sync::Arc;

use qd_session::id::{AgentId, CallId, ProcessKey, ToolName};
use qd_session::moment::Timestamp;
use qd_session::monitor::{AgentEvent, Fact};

use super::call;
use super::call::{Call, Calls};
use super::ending::Ending;
use super::mark::Mark;
use super::request::{REFUSED_AFTER_MS, Requests};
use super::settings::Settings;
use super::turn::{Flag, Turn};
use crate::excerpt;
use crate::process::{Carriers, ProcessSighting};

/// A turn that one source began without an id, and another names so soon after, is the same.
const SAME_TURN_MS: u64 = 1_000;

#[derive(Debug)]
pub struct Thread {
    pub id: Arc<str>,
    pub session: Arc<str>,
    pub agent: AgentId,
    pub turn: Turn,
    pub settings: Settings,
    pub calls: Calls,
    pub requests: Requests,
    pub ending: Option<Ending>,
    pub approval_flag: Option<Flag>,
    pub input_flag: Option<Flag>,
    /// When the status last said that it waits for no approval, and for no input.
    pub no_approval_at: Timestamp,
    pub no_input_at: Timestamp,
    pub(super) over: VecDeque<Arc<str>>,
    pub(super) closed_at: Timestamp,
    /// When its last turn was interrupted.
    pub(super) aborted_at: Timestamp,
    /// What its last turn ended with: it stands while the conversation is only compacted.
    pub(super) last_message: Option<String>,
    introduced: bool,
    carriers: Carriers,
    told: Vec<AgentEvent>,
}

impl Thread {
    pub fn new(id: Arc<str>) -> Self {
        Self {
            session: id.clone(),
            id,
            agent: AgentId::MAIN,
            turn: Turn::default(),
            settings: Settings::default(),
            calls: Calls::default(),
            requests: Requests::default(),
            ending: None,
            approval_flag: None,
            input_flag: None,
            no_approval_at: Timestamp::default(),
            no_input_at: Timestamp::default(),
            over: VecDeque::new(),
            closed_at: Timestamp::ZERO,
            aborted_at: Timestamp::ZERO,
            last_message: None,
            introduced: false,
            carriers: Carriers::default(),
            told: Vec::new(),
        }
    }

    pub fn tell(&mut self, mark: Mark, fact: Fact) {
        let is_work =
            matches!(fact, Fact::LlmStarted | Fact::LlmRetrying { .. } | Fact::ToolStarted { .. });
        if is_work && self.turn.worked.is_none_or(|worked| worked.is_before(mark)) {
            self.turn.worked = Some(mark);
        }
        let Mark { at, seq, source, .. } = mark;
        self.told.push(AgentEvent { at, seq, source, agent: self.agent.clone(), fact });
    }

    pub fn take_told(&mut self) -> Vec<AgentEvent> {
        std::mem::take(&mut self.told)
    }

    /// The session exists. Only sessions of their own say so.
    pub fn exists(&mut self, mark: Mark) {
        if self.agent.is_main() {
            self.introduced = true;
            self.tell(mark, Fact::SessionStarted { process: None });
        }
    }

    /// What a process watcher saw. A subagent lives and ends with its session.
    pub fn take_process(&mut self, mark: Mark, seen: ProcessSighting, exit_code: Option<i32>) {
        match seen {
            ProcessSighting::Seen(process) if self.agent.is_main() => {
                self.carriers.seen(&process);
                self.tell(mark, Fact::ProcessSeen { process });
            }
            ProcessSighting::Missing if self.agent.is_main() => {
                self.tell(mark, Fact::ProcessMissing);
            }
            ProcessSighting::Seen(_) | ProcessSighting::Missing => {}
            ProcessSighting::Exited(process) => {
                match (self.carriers.exited(process.as_ref()), process) {
                    (false, Some(process)) => self.tell(mark, Fact::ProcessGone { process }),
                    (_, process) => self.gone(mark, process, exit_code),
                }
            }
        }
    }

    /// The thread is gone: a session with it, or only a subagent.
    pub fn gone(&mut self, mark: Mark, process: Option<ProcessKey>, exit_code: Option<i32>) {
        self.complete_before(mark);
        match self.agent.is_main() {
            true => self.tell(mark, Fact::SessionEnded { process, exit_code }),
            false => self.tell(mark, Fact::SubagentEnded),
        }
    }

    pub fn owns_turn(&self, turn: &str) -> bool {
        self.turn.id.as_deref() == Some(turn) || self.is_over(turn)
    }

    pub fn is_over(&self, turn: &str) -> bool {
        self.over.iter().any(|over| **over == *turn)
    }

    /// A turn begins, or is known to have begun.
    pub fn begin_turn(&mut self, mark: Mark, id: Option<&str>) {
        match id {
            Some(id) if self.is_over(id) || self.turn.id.as_deref() == Some(id) => return,
            Some(id) if self.is_unnamed(mark) => {
                self.turn.id = Some(Arc::from(id));
                return;
            }
            None if self.turn.open => return self.tell(mark, Fact::LlmStarted),
            None if mark.at < self.closed_at => return,
            // Late news of a turn before this one: true, but not where the thread is now.
            Some(_) if mark.at < self.turn.began_at => return self.tell(mark, Fact::TurnStarted),
            Some(_) | None => {}
        }
        self.new_turn(mark, id);
        self.tell(mark, Fact::TurnStarted);
    }

    /// The turn was begun by somebody who knew no id, a moment ago.
    fn is_unnamed(&self, mark: Mark) -> bool {
        self.turn.open
            && self.turn.id.is_none()
            && mark.at.0.abs_diff(self.turn.began_at.0) <= SAME_TURN_MS
    }

    pub fn new_turn(&mut self, mark: Mark, id: Option<&str>) {
        self.complete_before(mark);
        if let Some(old) = self.turn.id.take() {
            self.mark_over(old);
        }
        let heard = self.turn.heard_from(mark);
        self.turn =
            Turn { id: id.map(Arc::from), began_at: mark.at, open: true, heard, ..Turn::default() };
        self.calls.clear();
        self.requests.clear();
        self.ending = None;
        self.approval_flag = None;
        self.input_flag = None;
        self.introduce_subagent(mark);
    }

    fn introduce_subagent(&mut self, mark: Mark) {
        if !self.agent.is_main() && !self.introduced {
            self.introduced = true;
            let kind = self.settings.agent_type.clone();
            self.tell(mark, Fact::SubagentStarted { kind });
        }
    }

    /// Whether a fact of this turn still counts as work; if so the turn is open.
    pub fn at_work(&mut self, mark: Mark, turn: Option<&str>) -> bool {
        if let Some(id) = turn {
            if self.is_over(id) {
                return false;
            }
            if self.turn.id.as_deref() != Some(id) {
                // Its start was lost: this is as good.
                self.begin_turn(mark.before(), Some(id));
            }
        }
        self.complete_before(mark);
        if !self.turn.open && mark.at > self.closed_at {
            let finished = self.turn.id.as_deref().is_none_or(|id| self.is_over(id));
            if finished {
                self.begin_turn(mark.before(), None);
            }
            self.turn.open = true;
        }
        if self.ending.as_ref().is_some_and(|ending| mark.at > ending.mark.at) {
            self.ending = None;
        }
        true
    }

    /// The model is at work.
    pub fn llm(&mut self, mark: Mark, turn: Option<&str>) {
        if self.at_work(mark, turn) {
            self.tell(mark, Fact::LlmStarted);
        }
    }

    pub fn compaction_ended(&mut self, mark: Mark) {
        self.turn.only_compacted |= !self.turn.prompted;
        self.tell(mark, Fact::CompactionEnded);
    }

    pub fn prompted(&mut self, mark: Mark, turn: Option<&str>, text: Option<&str>) {
        if self.at_work(mark, turn) {
            self.turn.prompted = true;
            self.turn.only_compacted = false;
            let text = text.filter(|text| !text.is_empty()).map(excerpt::input);
            self.tell(mark, Fact::UserPrompt { text });
        }
    }

    /// A tool call begins. A call that ended opens nothing; one that is known adds nothing but
    /// its time.
    pub fn start_tool(&mut self, mark: Mark, turn: Option<&str>, call: Call) {
        let stopped = !self.turn.open || self.ending.is_some();
        if self.calls.has_ended(&call.id) || (stopped && self.calls.find(&call.id).is_some()) {
            return;
        }
        if !self.at_work(mark, turn) {
            return;
        }
        self.drop_refused(mark, &call);
        let fact = Fact::ToolStarted {
            call: call.id.clone(),
            tool: call.tool.clone(),
            about: call.command.as_deref().map(excerpt::label),
        };
        self.adopt_request(&call);
        self.calls.start(call);
        self.tell(mark, fact);
    }

    /// Where only hooks are heard, a refusal is seen by what the model does next.
    fn drop_refused(&mut self, mark: Mark, call: &Call) {
        if self.turn.heard.only_hooks() && self.calls.find(&call.id).is_none() {
            let old = |at: Timestamp| mark.at.ms_since(at) >= REFUSED_AFTER_MS;
            let refused = self.requests.take_all(|request| old(request.mark.at));
            refused.iter().for_each(|request| self.tell_resolved(mark, request));
        }
    }

    /// A tool call is over. Unless the turn is, the model takes its result.
    pub fn end_tool(&mut self, mark: Mark, turn: Option<&str>, call: &CallId, ok: bool) {
        self.end_call(mark, call, ok);
        let counts = turn.is_none_or(|id| !self.is_over(id));
        if counts && self.turn.open && self.ending.is_none() {
            self.llm(mark.then(), turn);
        }
    }

    /// The same where the turn is being aborted: nobody takes the result.
    pub fn end_call(&mut self, mark: Mark, call: &CallId, ok: bool) {
        self.calls.end(call);
        for request in self.requests.take_all(|request| request.ask.call.as_ref() == Some(call)) {
            if let Some(answered) = request.settled {
                self.tell_resolved(answered, &request);
            }
        }
        let exit_code = self.calls.find(call).and_then(|call| call.exit_code);
        self.tell(mark, Fact::ToolCompleted { call: call.clone(), ok, exit_code });
    }

    /// The model says something: calls of earlier responses have their results, even where we
    /// missed them.
    pub fn speaks(&mut self, mark: Mark, turn: Option<&str>) {
        if !self.at_work(mark, turn) {
            return;
        }
        for call in self.calls.end_answered() {
            self.end_call(mark, &call, true);
        }
        self.tell(mark, Fact::LlmStarted);
    }

    /// No turn of it was ever heard of.
    pub fn never_worked(&self) -> bool {
        !self.turn.open && self.turn.id.is_none() && self.closed_at == Timestamp::ZERO
    }

    pub fn is_introduced(&self) -> bool {
        self.introduced
    }

    /// A call for memory, without the parts that are rarely known.
    pub fn call(id: &str, tool: &str, command: Option<String>) -> Call {
        Call {
            id: CallId::new(id),
            tool: ToolName::new(tool),
            command: command.as_deref().map(call::command),
            ended: false,
            exit_code: None,
            in_rollout: false,
            exec_item: None,
            response_over: false,
        }
    }
}
