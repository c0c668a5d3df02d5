//! Post-tool hooks for agents that somebody else started, while their own hook holds them.

use std::path::PathBuf;
use std::time::Duration;

use qd_broker::driving::HookedRun;
use qd_harness::tools_ran::ToolsRan;
use qd_session::id::RunId;
use qd_session::machine::{FailurePolicy, HookConfig};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::HookRunner;
use crate::warden::Warden;

/// Which hooks there are, and who watches over them.
#[derive(Debug, Clone)]
pub struct ObservedHooks {
    pub hooks: Vec<HookConfig>,
    pub warden: Warden,
}

impl ObservedHooks {
    /// Some hook is for what ran.
    pub fn wants(&self, ran: &ToolsRan) -> bool {
        self.hooks.iter().any(|hook| !runs(hook, ran).is_empty())
    }

    /// Runs those that are for it, one after the other. Gives back what the agent is to be told:
    /// nothing, unless one failed that fails the session; the others are not run then.
    pub async fn run(&self, ran: &ToolsRan, cancel: &CancellationToken) -> Option<String> {
        let runner = HookRunner::new(PathBuf::from(&*ran.folder), self.warden.clone());
        for hook in &self.hooks {
            let runs = runs(hook, ran);
            if runs.is_empty() {
                continue;
            }
            let Some(why) = finished(&runner, hook, &runs, ran, cancel).await else { continue };
            match hook.failure_policy {
                FailurePolicy::WarnContinue => {}
                FailurePolicy::FailSession | FailurePolicy::Retry { .. } => {
                    return Some(format!("post-tool hook {} failed: {why}", hook.name));
                }
            }
        }
        None
    }
}

/// Why it failed in the end.
async fn finished(
    runner: &HookRunner,
    hook: &HookConfig,
    runs: &[HookedRun],
    ran: &ToolsRan,
    cancel: &CancellationToken,
) -> Option<String> {
    let (attempts, delay_ms) = match hook.failure_policy {
        FailurePolicy::Retry { max_attempts, delay_ms } => (max_attempts.max(1), delay_ms),
        FailurePolicy::FailSession | FailurePolicy::WarnContinue => (1, 0),
    };
    let (vendor_id, hook_name) = (&*ran.session, &*hook.name);
    for attempt in 1..=attempts {
        let end = runner.run(hook, runs, cancel).await;
        let Some(why) = end.error else {
            info!(vendor_id, hook_name, attempt, "hook ended");
            return None;
        };
        let error_code = "hook_execution_failed";
        warn!(vendor_id, hook_name, attempt, error_code, "hook ended");
        if attempt == attempts || cancel.is_cancelled() {
            return Some(why.to_string());
        }
        cancel.run_until_cancelled(sleep(Duration::from_millis(delay_ms))).await;
    }
    None
}

/// The calls that a hook is for, by the agent's own ids.
fn runs(hook: &HookConfig, ran: &ToolsRan) -> Vec<HookedRun> {
    // As for driven sessions: what changed nothing calls for no hook.
    if !ran.calls.iter().any(|ran| ran.is_mutating) {
        return Vec::new();
    }
    let admitted =
        ran.calls.iter().filter(|ran| hook.tool_filter.admits(ran.tool.as_str(), ran.is_mutating));
    admitted
        .map(|ran| HookedRun { run: RunId::new(ran.call.as_str()), tool: ran.tool.clone() })
        .collect()
}
