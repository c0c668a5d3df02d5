//! One agent of an observed session: its turn, its tools, its compaction.
//!
//! Every field is a fact with its stamp, and joining two facts keeps the newer one, so the order
//! in which they arrive does not matter. What a boundary has settled is forgotten, by its own
//! stamp and not by its arrival, so forgetting does not matter either.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::event::Failure;
use super::latest::{Latest, raise};
use crate::finished_turn::Sign;
use crate::id::{AgentId, CallId, ToolName};
use crate::limits::{ABOUT_BYTES_MAX, LOOPING_CALLS_MIN, TOOL_SPANS_MAX};
use crate::moment::Stamp;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Agent {
    pub id: AgentId,
    /// The last start of a turn: settles what was open before it.
    #[serde(skip_serializing_if = "never")]
    pub turn: Stamp,
    /// The last sign of work: a turn, a model request, a tool.
    #[serde(skip_serializing_if = "never")]
    pub work: Stamp,
    /// The last sign that the model answers.
    #[serde(skip_serializing_if = "never")]
    pub llm: Stamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retrying: Option<Box<Latest<Option<Arc<str>>>>>,
    #[serde(skip_serializing_if = "never")]
    pub completed: Stamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_message: Option<Box<Latest<LastMessage>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<Box<Latest<u32>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<Box<Latest<Failure>>>,
    /// The last failure that gave no reason: it never hides the reason that another source gave.
    #[serde(skip_serializing_if = "never")]
    pub failed_unexplained: Stamp,
    #[serde(skip_serializing_if = "never")]
    pub interrupted: Stamp,
    #[serde(skip_serializing_if = "never")]
    pub compaction_started: Stamp,
    #[serde(skip_serializing_if = "never")]
    pub compaction_ended: Stamp,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolSpan>,
    /// Subagents only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagent: Option<Box<Latest<Option<Arc<str>>>>>,
    #[serde(skip_serializing_if = "never")]
    pub ended: Stamp,
}

fn never(stamp: &Stamp) -> bool {
    !stamp.happened()
}

/// What the agent said last in its turn: judged once, when it was heard; its text is not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LastMessage {
    pub sign: Sign,
}

/// One tool call of the current turn. Kept after its end, so that a late start opens nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolSpan {
    pub call: CallId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Latest<ToolStart>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Latest<bool>>,
    /// What its command returned. Kept beside the end: not everybody who tells of that knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<Box<Latest<i32>>>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolStart {
    pub tool: ToolName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<Arc<str>>,
}

/// The same call, failing again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepeatedFailure<'a> {
    pub start: &'a ToolStart,
    pub times: usize,
    /// The first of these failures.
    pub since: Stamp,
}

/// What an agent does now. Derived, never stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Activity<'a> {
    /// It exists and was never prompted.
    Starting,
    Thinking,
    Acting(&'a Latest<ToolStart>),
    Compacting,
    Retrying(Option<&'a str>),
    /// Its turn is over.
    Idle(TurnEnd<'a>),
    Ended,
}

/// How the last turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnEnd<'a> {
    Completed { last_message: Option<LastMessage>, background: u32 },
    Failed(&'a Failure),
    Interrupted,
}

impl Agent {
    pub fn new(id: AgentId) -> Self {
        Self { id, ..Self::default() }
    }

    /// The end of its last turn, however it ended.
    pub fn closed(&self) -> Stamp {
        self.completed.max(self.failed_at()).max(self.interrupted).max(self.ended)
    }

    fn failed_at(&self) -> Stamp {
        let explained = self.failed.as_ref().map_or(Stamp::NEVER, |failed| failed.stamp);
        explained.max(self.failed_unexplained)
    }

    /// The end of its last turn, or of the whole session if that came later.
    fn over(&self, session_end: Stamp) -> Stamp {
        self.closed().max(session_end)
    }

    /// A turn is running: something was begun after the last end.
    pub fn is_working(&self, session_end: Stamp) -> bool {
        self.work > self.over(session_end)
    }

    /// It has ended and not come back: a subagent by working, a main agent also by being there.
    fn has_left(&self) -> bool {
        let back = if self.id.leads() { self.work.max(self.completed) } else { self.work };
        self.ended.happened() && self.ended >= back
    }

    /// What this stamp or an older one says of tools and requests is settled.
    pub fn boundary(&self) -> Stamp {
        self.turn.max(self.closed())
    }

    /// What it does, given when its session last ended.
    pub fn activity(&self, session_end: Stamp) -> Activity<'_> {
        if self.has_left() {
            return Activity::Ended;
        }
        let over = self.over(session_end);
        // Compaction is not idle, also where it was asked for between two turns.
        if self.compaction_started > self.compaction_ended && self.compaction_started > over {
            return Activity::Compacting;
        }
        if self.is_working(session_end) {
            return self.at_work(over);
        }
        match self.turn_end(session_end) {
            Some(end) => Activity::Idle(end),
            None => Activity::Starting,
        }
    }

    fn at_work(&self, over: Stamp) -> Activity<'_> {
        if let Some(retrying) = &self.retrying
            && retrying.stamp > self.llm.max(self.turn).max(over)
        {
            return Activity::Retrying(retrying.value.as_deref());
        }
        match self.open_tool().filter(|open| open.stamp > over) {
            Some(open) => Activity::Acting(open),
            None => Activity::Thinking,
        }
    }

    /// The newest call that has begun and not ended.
    fn open_tool(&self) -> Option<&Latest<ToolStart>> {
        self.tools
            .iter()
            .filter(|span| span.ended.is_none())
            .filter_map(|span| span.started.as_ref())
            .max_by_key(|started| started.stamp)
    }

    pub fn tool_ended(&self, call: &CallId) -> bool {
        self.tools.iter().any(|span| span.call == *call && span.ended.is_some())
    }

    /// The last thing heard of the agent's work is that a tool failed: the model has neither
    /// gone on nor said anything since.
    pub fn stuck_on_failed_tool(&self) -> Option<Stamp> {
        let last = self.tools.iter().filter_map(|span| span.ended.as_ref()).max()?;
        let unanswered = last.stamp >= self.work
            && self.last_message.as_ref().is_none_or(|said| said.stamp < last.stamp);
        (!last.value && unanswered && self.open_tool().is_none()).then_some(last.stamp)
    }

    /// The call of this turn that failed so often that it gets nowhere: its last ends were all
    /// failures of the very same call, and what runs now is nothing else.
    pub fn repeated_failure(&self) -> Option<RepeatedFailure<'_>> {
        let ended = |span: &&ToolSpan| span.started.is_some() && span.ended.is_some();
        let mut spans: Vec<&ToolSpan> = self.tools.iter().filter(ended).collect();
        spans.sort_by_key(|span| std::cmp::Reverse(span.newest()));
        let start = &spans.first()?.started.as_ref()?.value;
        // Of a call that was cut nobody knows whether it is the same.
        let is_whole = start.about.as_ref().is_some_and(|about| about.len() < ABOUT_BYTES_MAX);
        let is_other = self.open_tool().is_some_and(|open| open.value != *start);
        let is_same = |span: &&&ToolSpan| {
            span.has_failed() && span.started.as_ref().is_some_and(|known| known.value == *start)
        };
        let alike: Vec<&&ToolSpan> = spans.iter().take_while(is_same).collect();
        let first = alike.last().filter(|_| is_whole && !is_other)?;
        let (times, since) = (alike.len(), first.newest());
        (times >= LOOPING_CALLS_MIN).then_some(RepeatedFailure { start, times, since })
    }

    /// How the last turn ended. A failure or an interrupt is not washed away by the plain "the
    /// loop ended" that several clients send after it.
    fn turn_end(&self, session_end: Stamp) -> Option<TurnEnd<'_>> {
        let of_this_turn = |stamp: Stamp| stamp.happened() && stamp >= self.turn;
        let failed_at = self.failed_at();
        if of_this_turn(failed_at) && failed_at >= self.work {
            let explained = self.failed.as_ref().filter(|failed| of_this_turn(failed.stamp));
            let failure = explained.map_or(&Failure::UNEXPLAINED, |failed| &failed.value);
            return Some(TurnEnd::Failed(failure));
        }
        if of_this_turn(self.interrupted) && self.interrupted >= self.work {
            return Some(TurnEnd::Interrupted);
        }
        // The session ended in the middle of it.
        if self.work > self.closed() && self.work <= session_end {
            return Some(TurnEnd::Interrupted);
        }
        self.completed.happened().then(|| TurnEnd::Completed {
            last_message: self
                .last_message
                .as_ref()
                .filter(|said| of_this_turn(said.stamp))
                .map(|said| said.value),
            background: self
                .background
                .as_ref()
                .filter(|left| of_this_turn(left.stamp))
                .map_or(0, |left| left.value),
        })
    }

    pub(super) fn start_tool(&mut self, stamp: Stamp, call: &CallId, start: ToolStart) {
        raise(&mut self.work, stamp);
        if stamp > self.boundary() {
            Latest::join(&mut self.span(call).started, stamp, start);
        }
    }

    pub(super) fn end_tool(
        &mut self,
        stamp: Stamp,
        call: &CallId,
        ok: bool,
        exit_code: Option<i32>,
    ) {
        if stamp > self.turn {
            let span = self.span(call);
            Latest::join(&mut span.ended, stamp, ok);
            if let Some(code) = exit_code {
                Latest::join_boxed(&mut span.exit_code, stamp, code);
            }
        }
    }

    /// A call of this turn has done its work.
    pub fn tool_succeeded(&self, call: &CallId) -> bool {
        let ended = self.tools.iter().find(|span| span.call == *call);
        ended.and_then(|span| span.ended.as_ref()).is_some_and(|ended| ended.value)
    }

    /// What the command of a call of this turn returned, if anybody told.
    pub fn exit_code(&self, call: &CallId) -> Option<i32> {
        let span = self.tools.iter().find(|span| span.call == *call)?;
        span.exit_code.as_ref().map(|code| code.value)
    }

    fn span(&mut self, call: &CallId) -> &mut ToolSpan {
        let at = match self.tools.binary_search_by(|span| span.call.cmp(call)) {
            Ok(at) => at,
            Err(at) => {
                // Mostly one at a time; a vector's own growth begins at four.
                self.tools.reserve_exact(1);
                self.tools.insert(at, ToolSpan::new(call));
                at
            }
        };
        &mut self.tools[at]
    }

    pub(super) fn set_back(&mut self, by_ms: u64) {
        let Self {
            id: _,
            turn,
            work,
            llm,
            retrying,
            completed,
            last_message,
            background,
            failed,
            failed_unexplained,
            interrupted,
            compaction_started,
            compaction_ended,
            tools,
            subagent,
            ended,
        } = self;
        let ends = [completed, failed_unexplained, interrupted, compaction_ended, ended];
        let stamps = [turn, work, llm, compaction_started].into_iter().chain(ends);
        stamps.for_each(|stamp| stamp.set_back(by_ms));
        Latest::set_back(retrying, by_ms);
        Latest::set_back(last_message, by_ms);
        Latest::set_back(background, by_ms);
        Latest::set_back(failed, by_ms);
        Latest::set_back(subagent, by_ms);
        for ToolSpan { call: _, started, ended, exit_code } in tools {
            let started = started.iter_mut().map(|started| &mut started.stamp);
            let ended = ended.iter_mut().map(|ended| &mut ended.stamp);
            started.chain(ended).for_each(|stamp| stamp.set_back(by_ms));
            Latest::set_back(exit_code, by_ms);
        }
    }

    /// Drops what a boundary has settled, and the oldest ends when there are too many.
    pub(super) fn forget_settled(&mut self) {
        let boundary = self.boundary();
        for span in &mut self.tools {
            span.started.take_if(|started| started.stamp <= boundary);
            // An end outlives the turn it closed: the next turn asks what the last one ended on.
            span.ended.take_if(|ended| ended.stamp <= self.turn);
            span.exit_code.take_if(|code| code.stamp <= self.turn);
        }
        self.tools.retain(|span| span.started.is_some() || span.ended.is_some());
        while self.tools.len() > TOOL_SPANS_MAX {
            let oldest = (0..self.tools.len())
                .min_by_key(|at| (self.tools[*at].ended.is_none(), self.tools[*at].newest()))
                .expect("there are more than the maximum");
            self.tools.remove(oldest);
        }
    }
}

impl ToolSpan {
    fn new(call: &CallId) -> Self {
        Self { call: call.clone(), started: None, ended: None, exit_code: None }
    }

    /// It did not do its work, or its command returned an error.
    fn has_failed(&self) -> bool {
        let is_error = self.exit_code.as_ref().is_some_and(|code| code.value != 0);
        self.ended.as_ref().is_some_and(|ended| !ended.value) || is_error
    }

    fn newest(&self) -> Stamp {
        let started = self.started.as_ref().map_or(Stamp::NEVER, |started| started.stamp);
        let ended = self.ended.as_ref().map_or(Stamp::NEVER, |ended| ended.stamp);
        started.max(ended)
    }
}
