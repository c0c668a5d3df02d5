//! One hook, run to its end.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use qd_broker::driving::HookedRun;
use qd_session::machine::HookConfig;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::limits::{HOOK_ERROR_BYTES_MAX, HOOK_OUTPUT_HEAD_BYTES_MAX, HOOK_OUTPUT_TAIL_BYTES_MAX};
use crate::environment::{of_program, ours};
use crate::warden::{Captured, Ending, Input, Job, Said, Warden};

/// Where hooks of a session run.
#[derive(Debug, Clone)]
pub struct HookRunner {
    pub workspace: PathBuf,
    pub warden: Warden,
    /// Our environment, of which a hook gets a few variables and those that it names.
    pub environment: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookEnd {
    /// Why it failed; absent if it did not.
    pub error: Option<Arc<str>>,
    /// Both streams together, shortened in the middle.
    pub output: String,
}

impl HookRunner {
    pub fn new(workspace: PathBuf, warden: Warden) -> Self {
        Self { workspace, warden, environment: ours() }
    }

    /// Runs it in the workspace's root. When it is canceled, all that it started is gone when this
    /// returns.
    pub async fn run(
        &self,
        hook: &HookConfig,
        runs: &[HookedRun],
        cancel: &CancellationToken,
    ) -> HookEnd {
        let job = Job {
            argv: hook.command.clone(),
            folder: self.workspace.clone(),
            environment: of_program(&self.environment, &hook.env_allow),
            input: Input::Text(self.told(hook, runs)),
            said: Said::All,
            timeout_ms: Some(hook.timeout_ms),
            confinement: None,
        };
        let output = Captured::new(HOOK_OUTPUT_HEAD_BYTES_MAX, HOOK_OUTPUT_TAIL_BYTES_MAX);
        match self.warden.run(&job, output, cancel).await {
            Ok(ended) => {
                let output = ended.output.text();
                HookEnd { error: error(&ended.ending, &output, hook.timeout_ms), output }
            }
            Err(lost) => HookEnd { error: Some(lost.to_string().into()), output: String::new() },
        }
    }

    /// What a hook reads: which tools ran.
    fn told(&self, hook: &HookConfig, runs: &[HookedRun]) -> String {
        let runs: Vec<_> = runs
            .iter()
            .map(|run| json!({ "runId": run.run.as_str(), "toolName": run.tool.as_str() }))
            .collect();
        let told = json!({
            "hook": &*hook.name,
            "workspace": self.workspace.to_string_lossy(),
            "toolRuns": runs,
        });
        format!("{told}\n")
    }
}

fn error(ending: &Ending, output: &str, timeout_ms: u64) -> Option<Arc<str>> {
    let what = match ending {
        Ending::Exited(0) => return None,
        Ending::Exited(code) => format!("exit code {code}"),
        Ending::Killed { signal } => format!("killed by signal {signal}"),
        Ending::TimedOut => format!("it ran longer than {timeout_ms} ms"),
        Ending::Canceled => "canceled".to_owned(),
        Ending::NotFound(why) | Ending::NotStarted(why) => why.clone(),
    };
    Some(match last_line(output) {
        Some(line) => format!("{what}: {line}").into(),
        None => what.into(),
    })
}

/// Programs say at the end why they fail.
fn last_line(output: &str) -> Option<&str> {
    let line = output.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    Some(&line[..line.floor_char_boundary(HOOK_ERROR_BYTES_MAX)])
}
