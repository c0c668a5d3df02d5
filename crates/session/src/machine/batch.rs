//! A batch: the tool calls of one response, and what became of each.
//!
//! Invariant: a call has exactly one output, whatever happened to it ([`Batch::outputs`]).

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::action::ToolOrder;
use super::change::{RunStatus, ToolLifecycle};
use super::event::ToolOutcome;
use crate::id::{CallId, RunId, ToolName};
use crate::json_size::{is_deeper, spelled_len};
use crate::limits::{FROZEN_BYTES_MAX, FROZEN_DEPTH_MAX, SHOWN_INPUT_BYTES_MAX};
use crate::moment::Timestamp;
use crate::seed::Seed;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    pub call_id: CallId,
    pub name: ToolName,
    pub arguments: Value,
    /// Edits files, runs commands or changes git. Classified by the tool runner.
    pub mutating: bool,
}

impl ToolCall {
    /// The one field of arguments that were too long or too deep to be kept.
    pub const SHORTENED: &str = "shortened";

    /// As the journal can hold it. An agent's own tools may be given anything; of what is too long
    /// or too deep the beginning is kept under a name that no rule looks for, so that a person is
    /// asked about it.
    pub fn kept(self) -> Self {
        let Self { arguments, .. } = &self;
        if spelled_len(arguments) <= FROZEN_BYTES_MAX && !is_deeper(arguments, FROZEN_DEPTH_MAX) {
            return self;
        }
        let mut text = arguments.to_string();
        text.truncate(text.floor_char_boundary(SHOWN_INPUT_BYTES_MAX));
        Self { arguments: json!({ Self::SHORTENED: text }), ..self }
    }
}

/// A call with what policy says about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Judged {
    pub call: ToolCall,
    pub verdict: Verdict,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Allow,
    Ask,
    Deny(Arc<str>),
    /// `ask_user`: nothing runs, the operator's answer is the output.
    Question,
}

/// What the model gets for one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallOutput {
    pub call_id: CallId,
    pub content: Arc<str>,
    pub is_error: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Batch {
    runs: Vec<Run>,
}

/// One call and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    pub call: ToolCall,
    pub fate: Fate,
    /// The run of the last attempt; a call that never ran has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<RunId>,
    pub attempt: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// May run, and has not been ordered yet.
    Allowed,
    /// The operator has not decided.
    Undecided,
    /// The operator, or a rule, said no.
    Rejected(Arc<str>),
    /// A question that has no answer yet.
    Unanswered,
    Answered(Arc<str>),
    Queued,
    Running,
    Succeeded {
        output: Arc<str>,
        is_error: bool,
    },
    /// No result: could not start, was refused by the sandbox, got lost.
    Failed(Arc<str>),
    Canceled,
    /// A crash of ours cut it off.
    Lost,
}

impl Fate {
    /// Nobody knows yet how it ends.
    pub fn is_open(&self) -> bool {
        match self {
            Self::Allowed | Self::Undecided | Self::Unanswered | Self::Queued | Self::Running => {
                true
            }
            Self::Rejected(_)
            | Self::Answered(_)
            | Self::Succeeded { .. }
            | Self::Failed(_)
            | Self::Canceled
            | Self::Lost => false,
        }
    }
}

impl Batch {
    pub fn judged(calls: Vec<Judged>) -> Self {
        let runs = calls
            .into_iter()
            .map(|Judged { call, verdict }| {
                let fate = match verdict {
                    Verdict::Allow => Fate::Allowed,
                    Verdict::Ask => Fate::Undecided,
                    Verdict::Deny(rule) => Fate::Rejected(format!("by policy: {rule}").into()),
                    Verdict::Question => Fate::Unanswered,
                };
                Run::new(call, fate)
            })
            .collect();
        Self { runs }
    }

    /// The calls that an agent with its own tools reports, one by one.
    pub fn of_theirs() -> Self {
        Self { runs: Vec::new() }
    }

    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    pub fn any(&self, is: impl Fn(&Fate) -> bool) -> bool {
        self.runs.iter().any(|run| is(&run.fate))
    }

    /// Something still runs or is ordered to.
    pub fn is_running(&self) -> bool {
        self.any(|fate| matches!(fate, Fate::Queued | Fate::Running))
    }

    pub fn has_failed(&self) -> bool {
        self.any(|fate| matches!(fate, Fate::Failed(_)))
    }

    /// A failed run that may have changed something: only a person repeats it.
    pub fn has_failed_mutating(&self) -> bool {
        self.runs.iter().any(|run| run.call.mutating && matches!(run.fate, Fate::Failed(_)))
    }

    /// Runs that ended with a result: what post-tool hooks are about.
    pub fn completed(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| matches!(run.fate, Fate::Succeeded { .. }))
    }

    pub fn has_mutated(&self) -> bool {
        self.completed().any(|run| run.call.mutating)
    }

    pub fn call_mut(&mut self, call: &CallId) -> Option<&mut Run> {
        self.runs.iter_mut().find(|run| run.call.call_id == *call)
    }

    /// A call of theirs, added if it is new. It is a run from the first word of it; one that has
    /// ended and is told of again is another.
    pub fn report(&mut self, call: &ToolCall, fate: Fate, id: RunId) -> &mut Run {
        let known = self.runs.iter().position(|run| run.call.call_id == call.call_id);
        let at = known.unwrap_or_else(|| {
            self.runs.push(Run::new(call.clone(), Fate::Canceled));
            self.runs.len() - 1
        });
        let run = &mut self.runs[at];
        if !run.fate.is_open() {
            *run = Run { id: Some(id), attempt: 1, ..Run::new(call.clone(), fate.clone()) };
        }
        run.fate = fate;
        run
    }

    pub fn run(&self, id: &RunId) -> Option<&Run> {
        self.runs.iter().find(|run| run.id.as_ref() == Some(id))
    }

    pub fn is_unfinished(&self, id: &RunId) -> bool {
        self.run(id).is_some_and(|run| matches!(run.fate, Fate::Queued | Fate::Running))
    }

    /// The run of that id, if it has not ended.
    pub fn unfinished_mut(&mut self, id: &RunId) -> Option<&mut Run> {
        self.runs.iter_mut().find(|run| {
            run.id.as_ref() == Some(id) && matches!(run.fate, Fate::Queued | Fate::Running)
        })
    }

    /// Orders everything that may run, in the order of the calls.
    pub fn order_allowed(&mut self, seed: Seed) -> Vec<ToolOrder> {
        self.order(seed, |fate| *fate == Fate::Allowed)
    }

    /// Orders every failed run again.
    pub fn order_failed(&mut self, seed: Seed) -> Vec<ToolOrder> {
        self.order(seed, |fate| matches!(fate, Fate::Failed(_)))
    }

    /// A person asked for it: a new series, with its own automatic retries.
    pub fn order_failed_anew(&mut self, seed: Seed) -> Vec<ToolOrder> {
        for run in self.runs.iter_mut().filter(|run| matches!(run.fate, Fate::Failed(_))) {
            run.attempt = 0;
        }
        self.order_failed(seed)
    }

    fn order(&mut self, seed: Seed, which: impl Fn(&Fate) -> bool) -> Vec<ToolOrder> {
        let wanted = self.runs.iter_mut().filter(|run| which(&run.fate)).enumerate();
        wanted
            .map(|(nth, run)| {
                let id = seed.run(nth);
                run.fate = Fate::Queued;
                run.attempt = run.attempt.saturating_add(1);
                run.id = Some(id.clone());
                run.started_at = None;
                run.finished_at = None;
                ToolOrder { run: id, attempt: run.attempt, call: run.call.clone() }
            })
            .collect()
    }

    /// Cancels what has not ended. Gives the runs that were ordered, for their runners.
    pub fn cancel(&mut self, at: Timestamp) -> Vec<ToolLifecycle> {
        self.give_up(at, Fate::Canceled)
    }

    /// What was ordered when we crashed: nobody knows what it did. Also of a run whose start nobody
    /// told yet, because it begins before that is on disk.
    pub fn lose(&mut self, at: Timestamp) -> Vec<ToolLifecycle> {
        self.give_up(at, Fate::Lost)
    }

    /// What ran beside a request that stands.
    pub fn lose_running(&mut self, at: Timestamp) -> Vec<ToolLifecycle> {
        let running = self.runs.iter_mut().filter(|run| run.fate == Fate::Running);
        let lost = running.filter_map(|run| {
            run.fate = Fate::Lost;
            run.finished_at = Some(at);
            run.lifecycle()
        });
        lost.collect()
    }

    fn give_up(&mut self, at: Timestamp, ordered: Fate) -> Vec<ToolLifecycle> {
        let mut shown = Vec::new();
        for run in &mut self.runs {
            match run.fate {
                Fate::Queued | Fate::Running => {
                    run.fate = ordered.clone();
                    run.finished_at = Some(at);
                    shown.extend(run.lifecycle());
                }
                Fate::Allowed | Fate::Undecided | Fate::Unanswered => {
                    run.fate = Fate::Canceled;
                    // Of theirs, which is a run already.
                    run.finished_at = run.id.is_some().then_some(at);
                    shown.extend(run.lifecycle());
                }
                Fate::Rejected(_)
                | Fate::Answered(_)
                | Fate::Succeeded { .. }
                | Fate::Failed(_)
                | Fate::Canceled
                | Fate::Lost => {}
            }
        }
        shown
    }

    /// One output for each call, in the order of the calls: what the model gets.
    pub fn outputs(&self) -> Vec<CallOutput> {
        self.runs.iter().map(Run::output).collect()
    }
}

impl Run {
    fn new(call: ToolCall, fate: Fate) -> Self {
        Self { call, fate, id: None, attempt: 0, started_at: None, finished_at: None }
    }

    pub fn start(&mut self, at: Timestamp) {
        self.fate = Fate::Running;
        self.started_at = Some(at);
    }

    pub fn finish(&mut self, at: Timestamp, outcome: &ToolOutcome) {
        self.started_at.get_or_insert(at);
        self.finished_at = Some(at);
        self.fate = match outcome {
            ToolOutcome::Succeeded { output, is_error } => {
                Fate::Succeeded { output: output.clone(), is_error: *is_error }
            }
            ToolOutcome::Failed { error } => Fate::Failed(error.clone()),
        };
    }

    /// What is shown of the run; nothing of a call that never became one.
    pub fn lifecycle(&self) -> Option<ToolLifecycle> {
        let (status, error) = match &self.fate {
            Fate::Queued => (RunStatus::Queued, None),
            Fate::Running => (RunStatus::Running, None),
            // The answer to a question of theirs is its result; one of ours is no run.
            Fate::Succeeded { .. } | Fate::Answered(_) => (RunStatus::Succeeded, None),
            Fate::Failed(error) => (RunStatus::Failed, Some(error.clone())),
            Fate::Lost => (RunStatus::Failed, Some(LOST.into())),
            Fate::Canceled => (RunStatus::Canceled, None),
            Fate::Allowed | Fate::Undecided | Fate::Rejected(_) | Fate::Unanswered => return None,
        };
        Some(ToolLifecycle {
            run_id: self.id.clone()?,
            call_id: self.call.call_id.clone(),
            tool_name: self.call.name.clone(),
            mutating: self.call.mutating,
            status,
            is_error: matches!(self.fate, Fate::Succeeded { is_error: true, .. }),
            attempt: self.attempt,
            started_at_ms: self.started_at.or(self.finished_at).unwrap_or_default(),
            finished_at_ms: self.finished_at,
            error,
        })
    }

    fn output(&self) -> CallOutput {
        let (content, is_error): (Arc<str>, bool) = match &self.fate {
            Fate::Succeeded { output, is_error } => (output.clone(), *is_error),
            Fate::Answered(text) => (text.clone(), false),
            Fate::Failed(error) => (format!("failed: {error}").into(), true),
            Fate::Rejected(why) => (format!("rejected {why}").into(), true),
            Fate::Lost => (LOST.into(), true),
            Fate::Allowed
            | Fate::Undecided
            | Fate::Unanswered
            | Fate::Queued
            | Fate::Running
            | Fate::Canceled => ("canceled".into(), true),
        };
        CallOutput { call_id: self.call.call_id.clone(), content, is_error }
    }
}

/// What the model is told about a run that a crash cut off.
const LOST: &str = "interrupted, outcome unknown";
