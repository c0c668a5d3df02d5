//! The crew of this machine: our tools and hooks, model endpoints, and the agents that are
//! installed.
//!
//! It knows folders and programs, and no session. A harness is one of two: a model that we ask
//! ourselves (`model_harness.rs`), or somebody else's agent below a runner (`agent_harness.rs`).

mod agent_harness;
mod agent_spending;
mod gemini_minute;
mod ground;
mod instructions;
mod model_harness;
mod programs;
mod workshops;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use qd_broker::driving::{Ground, HookedRun, Start};
use qd_harness::Harness;
use qd_harness::usage::PriceTable;
use qd_host::private_places::PrivatePlaces;
use qd_session::id::ToolName;
use qd_session::logbook::Brief;
use qd_session::machine::{
    AgentError, ErrorCode, ErrorSource, HookConfig, Process, Setup, ToolOrder, ToolOutcome, Tools,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub use self::programs::{AgentProgram, AgentPrograms, AgentProgramsInvalid};
use self::workshops::Workshops;
use super::hooks::{HookEnd, HookRunner, HooksFile};
use super::model::{Line, Models, Patience};
use super::tools::SandboxConfig;
use super::warden::Warden;
use crate::crew::{Crew, Ended, HarnessOffer, HarnessOrder, Muster, Task};
use crate::teller::Teller;

/// Where the crew finds what it works with.
#[derive(Debug, Clone)]
pub struct CrewSettings {
    /// The operator's home: repositories are not looked for above it.
    pub home: PathBuf,
    pub environment: BTreeMap<String, String>,
    /// For temporary files of tools, a folder below it for each workspace.
    pub scratch: PathBuf,
    pub hooks_file: PathBuf,
    pub mcp_file: PathBuf,
    pub models: Models,
    pub programs: AgentPrograms,
    pub prices: PriceTable,
    pub sandbox: SandboxConfig,
    /// What no tool and no command reaches.
    pub private: PrivatePlaces,
    pub warden: Warden,
}

/// Cheap to clone: everybody who works has one.
#[derive(Debug, Clone)]
pub struct LocalCrew(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    settings: CrewSettings,
    workshops: Workshops,
    line: Line,
}

impl LocalCrew {
    /// Fails only where this machine's certificates cannot be used.
    pub fn new(settings: CrewSettings) -> Result<Self, reqwest::Error> {
        let line = Line::new(Patience::default())?;
        let workshops = Workshops::new(&settings);
        Ok(Self(Arc::new(Inner { settings, workshops, line })))
    }

    fn settings(&self) -> &CrewSettings {
        &self.0.settings
    }

    fn variable(&self, name: &str) -> Option<String> {
        self.settings().environment.get(name).cloned()
    }

    /// Why a session of that harness could not be driven.
    fn obstacle(&self, harness: Harness, brief: Option<&Brief>) -> Option<String> {
        let provider = brief.and_then(|brief| brief.provider.as_deref());
        match harness {
            Harness::Native => {
                let model = brief.and_then(|brief| brief.model.as_deref());
                let variable = |name: &str| self.variable(name);
                let endpoint = self.settings().models.endpoint(provider, model, variable);
                endpoint.err().map(|error| said(&error))
            }
            Harness::Acp if brief.is_none() => self.acp_obstacle(),
            Harness::ClaudeCode
            | Harness::Codex
            | Harness::GeminiCli
            | Harness::KiloCode
            | Harness::Cline
            | Harness::Opencode
            | Harness::Acp => self.program(harness, provider).err(),
        }
    }

    /// Why no ACP agent could be driven, whichever is meant.
    fn acp_obstacle(&self) -> Option<String> {
        let names = self.settings().programs.acp_names();
        let mut obstacles = names.iter().map(|name| self.program(Harness::Acp, Some(name)).err());
        let first = obstacles.next().unwrap_or_else(|| self.program(Harness::Acp, None).err())?;
        obstacles.all(|obstacle| obstacle.is_some()).then_some(first)
    }

    fn program(&self, harness: Harness, name: Option<&str>) -> Result<AgentProgram, String> {
        let path = self.settings().environment.get("PATH");
        self.settings().programs.find(harness, name, path.map(OsStr::new))
    }
}

impl Crew for LocalCrew {
    fn muster(&self, harness: Harness, brief: &Brief) -> Result<Muster, String> {
        if let Some(why) = self.obstacle(harness, Some(brief)) {
            return Err(why);
        }
        let (hooks, trouble) = match HooksFile::read(&self.settings().hooks_file) {
            Ok(hooks) => (hooks, None),
            Err(invalid) => (Vec::new(), Some(hook_config_invalid(&invalid))),
        };
        let (tools, process) = match harness {
            Harness::Native => (Tools::Ours, Process::WholeSession),
            // It can be held after a batch; that costs a round trip each time.
            Harness::ClaudeCode if !hooks.is_empty() => (Tools::TheirsHeld, Process::WholeSession),
            Harness::Cline => (Tools::Theirs, Process::OneTurn),
            Harness::ClaudeCode
            | Harness::Codex
            | Harness::GeminiCli
            | Harness::KiloCode
            | Harness::Opencode
            | Harness::Acp => (Tools::Theirs, Process::WholeSession),
        };
        Ok(Muster { setup: Setup { tools, process, hooks }, vendor_id: None, trouble })
    }

    fn offers(&self) -> Vec<HarnessOffer> {
        let offer = |harness| {
            let choices = match harness {
                Harness::Native => self.settings().models.names(|name| self.variable(name)),
                Harness::Acp => self.settings().programs.acp_names(),
                Harness::ClaudeCode
                | Harness::Codex
                | Harness::GeminiCli
                | Harness::KiloCode
                | Harness::Cline
                | Harness::Opencode => Vec::new(),
            };
            HarnessOffer { harness, obstacle: self.obstacle(harness, None), choices }
        };
        OFFERED.into_iter().map(offer).collect()
    }

    fn survey(&self, workspace: Arc<str>, tools: Vec<ToolName>) -> Task<Ground> {
        let crew = self.clone();
        Box::pin(async move { ground::survey(&crew, workspace, tools).await })
    }

    fn run_tool(
        &self,
        workspace: Arc<str>,
        order: ToolOrder,
        stop: CancellationToken,
    ) -> Task<ToolOutcome> {
        let crew = self.clone();
        Box::pin(async move {
            match crew.0.workshops.toolbox(&workspace).await {
                Ok(opened) => opened.toolbox.run(&order, stop).await,
                Err(why) => ToolOutcome::Failed { error: why.into() },
            }
        })
    }

    fn run_hook(
        &self,
        hook: HookConfig,
        workspace: Arc<str>,
        tool_runs: Vec<HookedRun>,
        stop: CancellationToken,
    ) -> Task<HookEnd> {
        let warden = self.settings().warden.clone();
        Box::pin(async move {
            let runner = HookRunner::new(PathBuf::from(&*workspace), warden);
            runner.run(&hook, &tool_runs, &stop).await
        })
    }

    fn run_harness(
        &self,
        start: Start,
        orders: mpsc::Receiver<HarnessOrder>,
        tell: Teller,
        stop: CancellationToken,
    ) -> Task<Ended> {
        let crew = self.clone();
        Box::pin(async move {
            match start.harness {
                Harness::Native => model_harness::run(crew, start, orders, tell, stop).await,
                Harness::ClaudeCode
                | Harness::Codex
                | Harness::GeminiCli
                | Harness::KiloCode
                | Harness::Cline
                | Harness::Opencode
                | Harness::Acp => agent_harness::run(crew, start, orders, tell, stop).await,
            }
        })
    }
}

/// In the order in which they are offered.
const OFFERED: [Harness; 8] = [
    Harness::ClaudeCode,
    Harness::Codex,
    Harness::GeminiCli,
    Harness::Opencode,
    Harness::KiloCode,
    Harness::Cline,
    Harness::Acp,
    Harness::Native,
];

fn hook_config_invalid(invalid: &super::hooks::HookConfigInvalid) -> AgentError {
    AgentError {
        code: ErrorCode::HookConfigInvalid,
        message: format!("no post-tool hook runs: {invalid}").into(),
        retryable: false,
        source: ErrorSource::Orchestrator,
        resets_at: None,
    }
}

/// An error with all that led to it.
fn said(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |error| error.source());
    causes.fold(error.to_string(), |said, cause| format!("{said}: {cause}"))
}

fn folder(workspace: &str) -> &Path {
    Path::new(workspace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::HookConfigInvalid;

    #[test]
    fn hooks_that_cannot_be_read_are_an_error_of_nobodys_run() {
        let (place, what) = ("hooks[0].name".to_owned(), "it is missing".to_owned());
        let invalid = HookConfigInvalid { path: "hooks.json".into(), place, what };
        let told = AgentError {
            code: ErrorCode::HookConfigInvalid,
            message: "no post-tool hook runs: hooks.json: hooks[0].name: it is missing".into(),
            retryable: false,
            source: ErrorSource::Orchestrator,
            resets_at: None,
        };
        assert_eq!(hook_config_invalid(&invalid), told);
    }
}
