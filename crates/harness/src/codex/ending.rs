//! How a turn ends, and what it leaves for a person.

use std::sync::Arc;

use qd_session::id::RequestId;
use qd_session::moment::Timestamp;
use qd_session::monitor::{Ask, Fact, Failure};

use super::failure::more_specific;
use super::mark::Mark;
use super::thread::Thread;
use crate::excerpt;

/// Ended turns that are remembered by id: late news comes from the last few.
const OVER_TURNS_MAX: usize = 8;

/// After the end of a turn a prompt that was queued begins the next one: 37 ms later, as seen. Until
/// then the session does not look as if it had come to rest.
const QUEUE_GRACE_MS: u64 = 150;

/// After the end of a turn with an active goal Codex starts the next one by itself.
const GOAL_GRACE_MS: u64 = 400;

/// What was so long ago when it was heard is read from a file: nothing is waited for.
const HISTORY_MS: u64 = 2_000;

/// Before the turn's name, in the id of the request that its plan is.
const PLAN: &str = "plan:";

/// The turn that proposed a plan, by its request.
pub fn plan_turn(request: &RequestId) -> Option<&str> {
    request.as_str().strip_prefix(PLAN)
}

/// How a turn ended.
#[derive(Debug)]
pub enum End {
    Completed { last_message: Option<String> },
    Failed(Failure),
    Interrupted,
}

/// A turn that is over unless something follows.
#[derive(Debug)]
pub struct Ending {
    pub due: Timestamp,
    pub mark: Mark,
    pub last_message: Option<String>,
    /// Somebody who knows said so. A `Stop` hook does not: another hook may send the agent on.
    pub definite: bool,
}

impl Thread {
    /// The turn is over, by a source that knows.
    pub fn end(&mut self, mark: Mark, turn: Option<&str>, end: End) {
        let known_over = turn.is_some_and(|id| self.is_over(id));
        let is_current = turn.is_none() || turn == self.turn.id.as_deref();
        // Whoever names a turn and says that it is over has seen all its work.
        let worked = self.turn.worked.filter(|_| turn.is_some() && is_current);
        let mark = mark.not_before(worked);
        match end {
            End::Completed { last_message } if known_over => {
                if let Some(ending) = self.ending.as_mut().filter(|_| is_current) {
                    ending.last_message = ending.last_message.take().or(last_message);
                }
            }
            End::Failed(_) | End::Interrupted if known_over && !is_current => {}
            End::Completed { last_message } => {
                match &self.turn.id {
                    Some(_) if !is_current => self.new_turn(mark, turn),
                    Some(_) => {}
                    None => self.turn.id = turn.map(Arc::from),
                }
                let wait_ms =
                    if self.settings.goal_active { GOAL_GRACE_MS } else { QUEUE_GRACE_MS };
                let ending = Ending { due: mark.due(wait_ms), mark, last_message, definite: true };
                let is_history = mark.arrived.ms_since(mark.at) > HISTORY_MS;
                // A run of `codex exec` has one turn, and nobody queues anything behind a subagent.
                if self.agent.is_main() && !self.turn.heard.exec && !is_history {
                    // What is late of this turn must not keep it open.
                    turn.into_iter().for_each(|turn| self.mark_over(Arc::from(turn)));
                    self.ending = Some(ending);
                } else {
                    self.complete(ending);
                }
            }
            End::Failed(failure) => {
                if !is_current && self.turn.id.is_some() {
                    self.turn.failure = None;
                }
                self.close(mark, turn);
                self.last_message = None;
                self.turn.failed = true;
                self.tell_failure(mark, failure);
            }
            End::Interrupted => {
                self.aborted_at = self.closed_at.max(mark.at);
                self.close(mark, turn);
                self.last_message = None;
                self.tell(mark, Fact::Interrupted);
            }
        }
    }

    /// The failed turn, with the most specific reason that any source has given for it.
    fn tell_failure(&mut self, mark: Mark, failure: Failure) {
        let failure = match self.turn.failure.take() {
            Some(known) => more_specific(known, failure),
            None => failure,
        };
        self.turn.failure = Some(failure.clone());
        self.tell(mark, Fact::TurnFailed { failure });
    }

    /// A model request has failed. The client may try again; where the turn is already known to
    /// have failed, this is why.
    pub fn request_failed(&mut self, mark: Mark, turn: Option<&str>, failure: Failure) {
        let is_current = turn.is_none() || turn == self.turn.id.as_deref();
        if self.turn.failed && is_current {
            return self.tell_failure(mark, failure);
        }
        if self.at_work(mark, turn) {
            let message = failure.message.as_deref().map(excerpt::label);
            self.turn.failure = Some(failure);
            self.tell(mark, Fact::LlmRetrying { message });
        }
    }

    /// Ends the turn, and shows what it leaves for a person.
    pub fn complete(&mut self, ending: Ending) {
        let Ending { mark, last_message, definite, .. } = ending;
        let last_message = last_message.or_else(|| self.turn.said.take());
        let last_message = last_message.filter(|said| !said.is_empty());
        if !self.turn.only_compacted {
            self.last_message = last_message.as_deref().map(excerpt::ending);
        }
        let last_message = last_message.or_else(|| self.last_message.clone());
        let turn = self.turn.id.clone().filter(|_| definite);
        self.close(mark, turn.as_deref());
        self.tell(
            mark,
            Fact::TurnCompleted {
                last_message: last_message.map(|said| excerpt::ending(&said).into()),
                background: None,
                cut_off: false,
            },
        );
        // Told after the end: the end of a turn settles what was asked in it.
        if let Some(plan) = self.turn.plan.clone() {
            let request = RequestId::new(format!("{PLAN}{}", self.turn.name()));
            let ask = Ask { text: Some(plan), ..Ask::default() };
            self.tell(mark.then(), Fact::PlanProposed { request, ask });
        } else if let Some(ask) = self.turn.question.clone() {
            let request = RequestId::new(format!("question:{}", self.turn.name()));
            self.tell(mark.then(), Fact::QuestionAsked { request, ask });
        }
    }

    /// Ends a turn that is known by its name to be over before whatever comes next.
    pub fn complete_before(&mut self, mark: Mark) {
        let is_over = self.turn.id.as_deref().is_some_and(|turn| self.is_over(turn));
        let is_before = |ending: &mut Ending| is_over && ending.mark.at < mark.at;
        if let Some(ending) = self.ending.take_if(is_before) {
            self.complete(ending);
        }
    }

    fn close(&mut self, mark: Mark, turn: Option<&str>) {
        if let Some(turn) = turn {
            self.mark_over(Arc::from(turn));
        }
        self.turn.open = false;
        self.closed_at = self.closed_at.max(mark.at);
        self.ending = None;
        self.requests.clear();
        self.approval_flag = None;
        self.input_flag = None;
    }

    pub fn mark_over(&mut self, turn: Arc<str>) {
        if !self.is_over(&turn) {
            if self.over.len() == OVER_TURNS_MAX {
                self.over.pop_front();
            }
            self.over.push_back(turn);
        }
    }

    /// The turn will be over unless something follows.
    pub fn end_after(
        &mut self,
        mark: Mark,
        wait_ms: u64,
        last_message: Option<String>,
        definite: bool,
    ) {
        let due = mark.due(wait_ms);
        let last_message =
            last_message.or_else(|| self.ending.take().and_then(|ending| ending.last_message));
        self.ending = Some(Ending { due, mark, last_message, definite });
    }
}
