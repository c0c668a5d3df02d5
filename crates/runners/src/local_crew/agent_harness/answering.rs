//! What an agent asks, and what it is answered. What it asked is remembered for its turn: an answer
//! that it does not take is asked for once more.

use qd_broker::driving::Report;
use qd_harness::driver::{Cannot, Command};
use qd_session::decision::{Decision, Scope};
use qd_session::id::CallId;
use qd_session::machine::{HarnessAnswer, ToolCall};

use super::{AgentHarness, why};
use crate::agents::limits::ASKED_MAX;

/// Something that it asked for.
#[derive(Clone)]
pub(super) enum Asked {
    Approval(ToolCall),
    Question(ToolCall),
}

impl Asked {
    fn call(&self) -> &ToolCall {
        match self {
            Self::Approval(call) | Self::Question(call) => call,
        }
    }
}

impl AgentHarness {
    /// An answer did not arrive. What the agent still waits for is asked once more.
    pub(super) async fn unanswered(&mut self, call: CallId, cannot: Cannot) {
        self.tell.warn(format!("the answer was not taken: {}", why(cannot))).await;
        let Some(turn) = self.turn.clone() else { return };
        let asked = self.asked.iter().find(|asked| asked.call().call_id == call);
        let report = match (cannot, asked.cloned()) {
            (Cannot::NotOffered(_), Some(Asked::Approval(call))) => {
                Report::ApprovalAsked { turn, call }
            }
            (Cannot::NotOffered(_), Some(Asked::Question(call))) => {
                Report::QuestionAsked { turn, call }
            }
            (
                Cannot::NotReady
                | Cannot::Busy
                | Cannot::Idle
                | Cannot::NotAsked
                | Cannot::NotOffered(_),
                _,
            ) => Report::Withdrawn { turn, call },
        };
        self.tell.tell(report).await;
    }

    /// Remembers what is asked, for an answer that does not arrive.
    pub(super) fn note_asked(&mut self, asked: Asked) {
        self.asked.retain(|known| known.call().call_id != asked.call().call_id);
        if self.asked.len() == ASKED_MAX {
            self.asked.pop_front();
        }
        self.asked.push_back(asked);
    }
}

/// The machine's answer in a driver's words.
pub(super) fn command(call: &CallId, answer: HarnessAnswer) -> Command {
    let call = call.clone();
    match answer {
        HarnessAnswer::Approved { mode: None } => {
            Command::Decide { call, decision: Decision::Allow { input: None, scope: Scope::Once } }
        }
        HarnessAnswer::Approved { mode: Some(mode) } => {
            let mode = Some(mode.to_string());
            Command::Decide { call, decision: Decision::ApprovePlan { mode } }
        }
        HarnessAnswer::Rejected { message } => {
            let message = message.map(|message| message.to_string());
            Command::Decide { call, decision: Decision::Deny { message, interrupt: false } }
        }
        HarnessAnswer::Input { text, answers } if answers.is_empty() => {
            Command::AnswerInWords { call, text }
        }
        HarnessAnswer::Input { answers, .. } => {
            Command::Decide { call, decision: Decision::Answer { answers } }
        }
    }
}
