//! `bash`, `run_command`, and what Git's tools share with them: a confined program and its result.

use std::path::Path;

use serde::Deserialize;

use super::answer::{Answer, Trouble};
use super::limits::{ARGUMENTS_MAX, OUTPUT_HEAD_BYTES_MAX, OUTPUT_TAIL_BYTES_MAX, TIMEOUT_MS_MAX};
use super::sandbox::Sandbox;
use super::toolbox::Patience;
use super::workspace::Workspace;
use crate::warden::{Captured, Ended, Ending, Input, Job, Said};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bash {
    command: String,
    folder: Option<String>,
    timeout_ms: Option<u64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunCommand {
    command: Vec<String>,
    folder: Option<String>,
    timeout_ms: Option<u64>,
}

/// A program to be run in the workspace.
#[derive(Debug)]
pub(super) struct Command {
    pub argv: Vec<String>,
    pub folder: Option<String>,
    pub input: Input,
    pub timeout_ms: Option<u64>,
}

impl From<Bash> for Command {
    fn from(Bash { command, folder, timeout_ms }: Bash) -> Self {
        // Neither the operator's start files nor an option hidden in the line.
        let argv = ["bash", "--noprofile", "--norc", "-c", &command].map(str::to_owned).to_vec();
        Self { argv, folder, input: Input::Nothing, timeout_ms }
    }
}

impl From<RunCommand> for Command {
    fn from(RunCommand { command, folder, timeout_ms }: RunCommand) -> Self {
        Self { argv: command, folder, input: Input::Nothing, timeout_ms }
    }
}

impl Command {
    pub async fn run(
        self,
        workspace: &Workspace,
        sandbox: &Sandbox,
        patience: &Patience<'_>,
    ) -> Answer {
        let is_empty = self.argv.first().is_none_or(String::is_empty);
        if is_empty || self.argv.len() > ARGUMENTS_MAX {
            return Err(Trouble::mistake("name a program, and not too many arguments"));
        }
        if self.argv.iter().any(|argument| argument.contains('\0')) {
            return Err(Trouble::mistake("an argument holds a zero byte"));
        }
        let timeout_ms = self.timeout_ms.unwrap_or(patience.limit_ms).clamp(1, TIMEOUT_MS_MAX);
        let folder = workspace.relative(self.folder.as_deref().unwrap_or("."))?;
        workspace.folder(&folder)?;
        let job = Job {
            argv: self.argv,
            folder: workspace
                .path()
                .join(workspace.resolved(&folder).as_deref().unwrap_or(Path::new(""))),
            environment: sandbox.environment.clone(),
            input: self.input,
            said: Said::All,
            timeout_ms: Some(timeout_ms),
            confinement: Some(sandbox.confinement.clone()),
        };
        let output = Captured::new(OUTPUT_HEAD_BYTES_MAX, OUTPUT_TAIL_BYTES_MAX);
        let ended = sandbox.warden.run(&job, output, patience.cancel).await;
        let ended = ended.map_err(|lost| Trouble::lost(lost.to_string()))?;
        sandbox.notice(ended.enforced);
        told(&ended, timeout_ms)
    }
}

fn told(ended: &Ended, timeout_ms: u64) -> Answer {
    let mut text = ended.output.text();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let with = |note: String| Trouble::mistake(format!("{text}[{note}]\n"));
    match &ended.ending {
        Ending::Exited(0) if text.is_empty() => Ok("[no output]\n".to_owned()),
        Ending::Exited(0) => Ok(text),
        Ending::Exited(code) => Err(with(format!("exit code {code}"))),
        Ending::Killed { signal } => Err(with(format!("killed by signal {signal}"))),
        Ending::TimedOut => Err(with(format!("stopped: it ran longer than {timeout_ms} ms"))),
        Ending::NotFound(why) => Err(with(why.clone())),
        Ending::Canceled => Err(Trouble::lost("canceled")),
        Ending::NotStarted(why) => Err(Trouble::lost(why.clone())),
    }
}
