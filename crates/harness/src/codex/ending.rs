//! How a turn ends, and what it leaves for a person.

use std::sync::Arc;

use qd_session::id::RequestId;
use qd_session::moment::Timestamp;
use qd_session::monitor::{Ask, Fact, Failure};

use super::mark::Mark;
use super::thread::Thread;
use crate::excerpt;

/// Ended turns that are remembered by id: late news comes from the last few.
const OVER_TURNS_MAX: usize = 8;

/// After the end of a turn with an active goal Codex starts the next one by itself.
const GOAL_GRACE_MS: u64 = 400;

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
        match end {
            End::Completed { .. } if known_over => {}
            End::Failed(_) | End::Interrupted if known_over && !is_current => {}
            End::Completed { last_message } => {
                match &self.turn.id {
                    Some(_) if !is_current => self.new_turn(mark, turn),
                    Some(_) => {}
                    None => self.turn.id = turn.map(Arc::from),
                }
                let ending =
                    Ending { due: mark.due(GOAL_GRACE_MS), mark, last_message, definite: true };
                if self.settings.goal_active && self.agent.is_main() {
                    self.ending = Some(ending);
                } else {
                    self.complete(ending);
                }
            }
            End::Failed(failure) => {
                self.close(mark, turn);
                self.last_message = None;
                self.turn.failed = true;
                self.tell(mark, Fact::TurnFailed { failure });
            }
            End::Interrupted => {
                self.close(mark, turn);
                self.last_message = None;
                self.tell(mark, Fact::Interrupted);
            }
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
