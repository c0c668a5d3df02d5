//! The runs of a session: tool calls with their beginning and what became of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::{AgentId, CallId, RequestId, ToolName};
use crate::limits::TIMELINE_RUNS_MAX;
use crate::machine::{Change, RunStatus};
use crate::moment::{Source, Timestamp};
use crate::monitor::{AgentEvent, Ask, Fact, Life, Monitor, Stage};

/// How soon after a call's failure an interrupt is told that was its cause. A client writes both
/// in one go.
const ONE_GO_MS: u64 = 1_000;

/// How far apart the answer to a request and the end of its call are told when the answer was no.
/// A call that may run takes longer to fail.
const REFUSAL_MS: u64 = 5;

/// One tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Run {
    pub id: CallId,
    pub name: ToolName,
    /// What it is about: a command, a path, a query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub detail: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "AgentId::is_main")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub agent: AgentId,
    pub started_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// None while it runs, and where nobody told: its turn went on without a word of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum Outcome {
    Ok,
    /// It has a result, and the result is an error: a command that returned non-zero.
    Error,
    Failed,
    /// A person was asked and said no.
    Denied,
    /// A person, or the end of the process, cut it short.
    Interrupted,
}

/// Runs by their calls.
#[derive(Debug, Default)]
pub(super) struct Runs {
    runs: BTreeMap<CallId, Run>,
    /// Calls that a person was asked about.
    asked: BTreeMap<CallId, Option<Timestamp>>,
    /// The calls that requests are about.
    requests: BTreeMap<RequestId, CallId>,
}

impl Runs {
    /// Takes in a fact that the monitor has taken in.
    pub fn observe(&mut self, event: &AgentEvent, monitor: &Monitor) {
        let at = event.at;
        match &event.fact {
            Fact::ToolStarted { call, tool, about } => self.start(event, call, tool, about),
            Fact::ToolCompleted { call, ok, exit_code: _ } => self.end(at, call, *ok),
            Fact::ApprovalRequested { request, stage: Stage::Waiting, ask }
            | Fact::QuestionAsked { request, ask }
            | Fact::PlanProposed { request, ask } => self.ask(request, ask),
            Fact::ApprovalResolved { request }
            | Fact::QuestionAnswered { request }
            | Fact::PlanResolved { request } => {
                // Others learn of the answer by the end of its call.
                if let Some(call) = self.requests.get(request)
                    && event.source == Source::Driver
                {
                    self.asked.insert(call.clone(), Some(at));
                }
            }
            Fact::Interrupted => self.interrupt(at, &event.agent),
            Fact::TurnStarted
            | Fact::TurnCompleted { .. }
            | Fact::TurnFailed { .. }
            | Fact::SubagentEnded => {
                self.settle(at, |run| run.agent == event.agent, None);
            }
            Fact::SessionEnded { .. } | Fact::ProcessGone { .. } => {
                if matches!(monitor.life(), Life::Ended { .. }) {
                    self.settle(at, |_| true, Some(Outcome::Interrupted));
                }
            }
            Fact::ApprovalRequested { stage: Stage::UnderReview, .. }
            | Fact::SessionStarted { .. }
            | Fact::UserPrompt { .. }
            | Fact::LlmStarted
            | Fact::LlmRetrying { .. }
            | Fact::CompactionStarted
            | Fact::CompactionEnded
            | Fact::SubagentStarted { .. }
            | Fact::TaskCompleted { .. }
            | Fact::ProcessSeen { .. }
            | Fact::ProcessMissing
            | Fact::UsageReported { .. }
            | Fact::TitleKnown { .. }
            | Fact::ModeChanged { .. }
            | Fact::PlaceKnown { .. }
            | Fact::Unrecognised { .. } => {}
        }
    }

    /// Takes in what a driven session showed.
    pub fn shown(&mut self, change: &Change) {
        let Change::ToolLifecycle(told) = change else { return };
        let run = self.runs.entry(told.call_id.clone()).or_insert_with(|| Run {
            id: told.call_id.clone(),
            name: told.tool_name.clone(),
            detail: None,
            agent: AgentId::MAIN,
            started_at: told.started_at_ms,
            ended_at: None,
            outcome: None,
        });
        run.ended_at = told.finished_at_ms;
        run.outcome = match told.status {
            RunStatus::Queued | RunStatus::Running => None,
            RunStatus::Succeeded if told.is_error => Some(Outcome::Error),
            RunStatus::Succeeded => Some(Outcome::Ok),
            RunStatus::Failed => Some(Outcome::Failed),
            RunStatus::Canceled => Some(Outcome::Interrupted),
        };
    }

    /// The newest ones, in the order they began.
    pub fn into_newest(self) -> Vec<Run> {
        let mut runs: Vec<Run> = self.runs.into_values().collect();
        runs.sort_by(|one, other| (one.started_at, &one.id).cmp(&(other.started_at, &other.id)));
        let surplus = runs.len().saturating_sub(TIMELINE_RUNS_MAX);
        runs.drain(..surplus);
        runs
    }

    /// Several sources tell of the same call; the first gives it its name.
    fn start(
        &mut self,
        event: &AgentEvent,
        call: &CallId,
        tool: &ToolName,
        about: &Option<Arc<str>>,
    ) {
        let run = self.runs.entry(call.clone()).or_insert_with(|| Run {
            id: call.clone(),
            name: tool.clone(),
            detail: None,
            agent: event.agent.clone(),
            started_at: event.at,
            ended_at: None,
            outcome: None,
        });
        if run.detail.is_none() {
            run.detail.clone_from(about);
        }
        if run.agent.is_main() {
            run.agent = event.agent.clone();
        }
    }

    fn end(&mut self, at: Timestamp, call: &CallId, ok: bool) {
        let refused = self.asked.get(call).copied().flatten();
        let Some(run) = self.runs.get_mut(call) else { return };
        match run.outcome {
            // One source may only know that there was an output.
            None | Some(Outcome::Ok) if !ok => {
                let denied = refused.is_some_and(|answer| at.ms_since(answer) <= REFUSAL_MS);
                run.outcome = Some(if denied { Outcome::Denied } else { Outcome::Failed });
                run.ended_at = run.ended_at.or(Some(at));
            }
            None => {
                run.outcome = Some(Outcome::Ok);
                run.ended_at = Some(at);
            }
            Some(
                Outcome::Ok
                | Outcome::Error
                | Outcome::Failed
                | Outcome::Denied
                | Outcome::Interrupted,
            ) => {}
        }
    }

    fn ask(&mut self, request: &RequestId, ask: &Ask) {
        if let Some(call) = &ask.call {
            self.asked.entry(call.clone()).or_default();
            self.requests.insert(request.clone(), call.clone());
        }
    }

    /// A person ended the turn: what ran is cut short, and what a person was asked about and failed
    /// with it was refused.
    fn interrupt(&mut self, at: Timestamp, agent: &AgentId) {
        for run in self.runs.values_mut().filter(|run| run.agent == *agent) {
            let just_now = run.ended_at.is_some_and(|ended| at.ms_since(ended) <= ONE_GO_MS);
            if run.outcome == Some(Outcome::Failed) && just_now {
                let asked = self.asked.contains_key(&run.id);
                run.outcome = Some(if asked { Outcome::Denied } else { Outcome::Interrupted });
            }
        }
        self.settle(at, |run| run.agent == *agent, Some(Outcome::Interrupted));
    }

    fn settle(&mut self, at: Timestamp, of: impl Fn(&Run) -> bool, outcome: Option<Outcome>) {
        for run in self.runs.values_mut().filter(|run| run.ended_at.is_none() && of(run)) {
            run.ended_at = Some(at);
            run.outcome = outcome;
        }
    }
}
