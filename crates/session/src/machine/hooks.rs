//! Post-tool hooks: which ones a batch calls for, and the one that runs.
//!
//! Invariant: hooks never overlap; a pass holds at most one run.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::batch::Batch;
use super::change::{HookLifecycle, RunStatus};
use crate::id::{HookRunId, RunId};
use crate::limits::HOOK_TIMEOUT_MS;
use crate::moment::Timestamp;
use crate::seed::Seed;

/// One hook of `hooks.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookConfig {
    pub name: Arc<str>,
    /// Argument vector; no shell.
    pub command: Vec<String>,
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
    #[serde(default)]
    pub failure_policy: FailurePolicy,
    #[serde(default)]
    pub tool_filter: ToolFilter,
    /// Variables that it gets of our environment, beside the few that every hook has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_allow: Vec<String>,
}

fn default_timeout_ms() -> u64 {
    HOOK_TIMEOUT_MS
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FailurePolicy {
    #[default]
    FailSession,
    WarnContinue,
    /// `max_attempts` counts every run, the first included.
    Retry {
        max_attempts: u8,
        delay_ms: u64,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolFilter {
    #[default]
    AnyMutating,
    ToolNames {
        names: Vec<String>,
    },
}

/// The hooks of one batch: the one that runs, and those that still have to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookPass {
    /// Places in the session's configuration, in its order; the first is the one that runs.
    left: Vec<usize>,
    pub run: HookRunId,
    pub attempt: u8,
    /// Since when it runs; `None` while it is queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    pub tool_runs: Vec<RunId>,
}

impl HookPass {
    /// The pass that a batch calls for. None if it changed nothing or no hook is for its tools.
    pub fn for_batch(hooks: &[HookConfig], batch: &Batch, seed: Seed) -> Option<Self> {
        if !batch.has_mutated() {
            return None;
        }
        let left = (0..hooks.len()).filter(|at| hooks[*at].tool_filter.wants(batch)).collect();
        let mut pass = Self {
            left,
            run: seed.hook_run(0),
            attempt: 1,
            started_at: None,
            tool_runs: Vec::new(),
        };
        pass.tool_runs = hooks.get(*pass.left.first()?)?.tool_filter.runs(batch);
        Some(pass)
    }

    pub fn hook<'a>(&self, hooks: &'a [HookConfig]) -> Option<&'a HookConfig> {
        hooks.get(*self.left.first()?)
    }

    /// The next hook, or none if this was the last.
    pub fn next(&self, hooks: &[HookConfig], batch: &Batch, seed: Seed) -> Option<Self> {
        let left = self.left.get(1..)?.to_vec();
        let tool_runs = hooks.get(*left.first()?)?.tool_filter.runs(batch);
        Some(Self { left, run: seed.hook_run(0), attempt: 1, started_at: None, tool_runs })
    }

    /// The same hook once more.
    pub fn again(&self, seed: Seed) -> Self {
        let attempt = self.attempt.saturating_add(1);
        Self { run: seed.hook_run(0), attempt, started_at: None, ..self.clone() }
    }

    /// A person asked for it: a new series, with its own automatic retries.
    pub fn anew(&self, seed: Seed) -> Self {
        Self { run: seed.hook_run(0), attempt: 1, started_at: None, ..self.clone() }
    }

    pub fn lifecycle(
        &self,
        hooks: &[HookConfig],
        status: RunStatus,
        now: Timestamp,
        error: Option<Arc<str>>,
    ) -> HookLifecycle {
        let over = matches!(status, RunStatus::Succeeded | RunStatus::Failed | RunStatus::Canceled);
        HookLifecycle {
            run_id: self.run.clone(),
            hook_name: self.hook(hooks).map_or_else(|| "".into(), |hook| hook.name.clone()),
            tool_run_ids: self.tool_runs.clone(),
            status,
            attempt: self.attempt,
            started_at_ms: self.started_at.unwrap_or(now),
            finished_at_ms: over.then_some(now),
            error,
            output: None,
        }
    }
}

impl ToolFilter {
    /// It is about a tool of that name.
    pub fn admits(&self, tool: &str, is_mutating: bool) -> bool {
        match self {
            Self::AnyMutating => is_mutating,
            Self::ToolNames { names } => names.iter().any(|name| name == tool),
        }
    }

    fn wants(&self, batch: &Batch) -> bool {
        !self.runs(batch).is_empty()
    }

    /// The completed runs that this filter is about.
    fn runs(&self, batch: &Batch) -> Vec<RunId> {
        batch
            .completed()
            .filter(|run| self.admits(run.call.name.as_str(), run.call.mutating))
            .filter_map(|run| run.id.clone())
            .collect()
    }
}
