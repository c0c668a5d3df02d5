//! The tools of one session.

use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use qd_host::private_places::PrivatePlaces;
use qd_session::id::ToolName;
use qd_session::limits::TOOL_TIMEOUT_MS;
use qd_session::machine::{ToolOrder, ToolOutcome};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::{Mutex, Semaphore};
use tokio_util::sync::CancellationToken;

use super::answer::{Answer, Trouble, outcome};
use super::apply_patch::ApplyPatch;
use super::command::{Bash, Command, RunCommand};
use super::edit_file::{EditFile, WriteFile};
use super::git::{GitApply, GitCheckout, GitCommit, GitDiff, GitLog, GitStatus};
use super::grep::Grep;
use super::limits::{NOTICE_WAIT, RUNNING_MAX};
use super::list_files::ListFiles;
use super::pace::Pace;
use super::read_file::ReadFile;
use super::sandbox::Sandbox;
use super::sandbox_config::SandboxConfig;
use super::scratch::discard;
use super::search::Search;
use super::tool::{Tool, ToolDefinition};
use super::workspace::{Workspace, caution};
use crate::environment::ours;
use crate::mcp::{McpServer, McpServerConfig};
use crate::warden::Warden;

/// Where the tools of a session work, and what its commands may reach beyond the workspace.
#[derive(Debug, Clone)]
pub struct ToolboxSettings {
    pub workspace: PathBuf,
    /// A folder of the session's own for temporary files. Made if it is missing, and removed with
    /// the toolbox.
    pub scratch: PathBuf,
    pub warden: Warden,
    /// Our environment, of which commands get a few variables and those that are opened to them.
    pub environment: BTreeMap<String, String>,
    pub sandbox: SandboxConfig,
    /// What neither tools nor commands reach, also where it lies in the workspace.
    pub private: PrivatePlaces,
}

impl ToolboxSettings {
    pub fn new(workspace: PathBuf, scratch: PathBuf, warden: Warden) -> Self {
        Self {
            workspace,
            scratch,
            warden,
            environment: ours(),
            sandbox: SandboxConfig::default(),
            private: PrivatePlaces::default(),
        }
    }

    /// With what the operator opens to commands, or closes.
    pub fn with(self, sandbox: SandboxConfig) -> Self {
        Self { sandbox, ..self }
    }

    /// With what nobody reaches.
    pub fn without(self, private: PrivatePlaces) -> Self {
        Self { private, ..self }
    }
}

#[derive(Debug)]
pub struct Toolbox {
    workspace: Arc<Workspace>,
    sandbox: Sandbox,
    definitions: Vec<ToolDefinition>,
    /// Files are changed one after the other: two edits of one batch may be of the same file.
    editing: Mutex<()>,
    room: Semaphore,
    servers: Vec<McpServer>,
    settings: ToolboxSettings,
}

impl Toolbox {
    pub fn open(mut settings: ToolboxSettings) -> io::Result<Self> {
        let workspace = Workspace::open_without(&settings.workspace, &settings.private)?;
        DirBuilder::new().recursive(true).mode(0o700).create(&settings.scratch)?;
        settings.scratch = settings.scratch.canonicalize()?;
        Ok(Self {
            sandbox: Sandbox::new(&settings, workspace.path()),
            workspace: Arc::new(workspace),
            definitions: Tool::ALL.map(Tool::definition).to_vec(),
            editing: Mutex::new(()),
            room: Semaphore::new(RUNNING_MAX),
            servers: Vec::new(),
            settings,
        })
    }

    /// Starts MCP servers, all at once, and offers their tools, too. Tells of those that have none
    /// to offer; they are asked again when somebody names a tool of theirs.
    pub async fn connect(&mut self, configs: Vec<McpServerConfig>) -> Vec<String> {
        let started = configs.into_iter().map(|config| async {
            let name = config.name.clone();
            let workspace = self.workspace.path().to_owned();
            let server = McpServer::new(
                config,
                self.settings.warden.clone(),
                workspace,
                &self.settings.environment,
            );
            let tools = server.tools().await;
            (name, server, tools)
        });
        let started = join_all(started).await;
        let mut troubles = Vec::new();
        for (name, server, tools) in started {
            match tools {
                Ok(tools) => self.definitions.extend(tools),
                Err(why) => troubles.push(format!("the MCP server {name}: {why}")),
            }
            self.servers.push(server);
        }
        troubles
    }

    /// What the operator should know of the workspace; none where there is nothing to say.
    pub fn caution(&self) -> Option<String> {
        caution(&self.settings.workspace, &self.settings.private)
    }

    pub fn definitions(&self) -> &[ToolDefinition] {
        &self.definitions
    }

    /// A tool that is not known is taken for one that changes something.
    pub fn is_mutating(&self, name: &ToolName) -> bool {
        let known = self.definitions.iter().find(|tool| tool.name == name.as_str());
        known.is_none_or(|tool| tool.mutating)
    }

    /// Runs a tool to its end. When it is canceled, all that it started is gone when this returns.
    pub async fn run(&self, order: &ToolOrder, cancel: CancellationToken) -> ToolOutcome {
        let room = tokio::select! {
            room = self.room.acquire() => room,
            () = cancel.cancelled() => return outcome(Err(Trouble::lost("canceled"))),
        };
        let answer = match room {
            Ok(_room) => match self.answer(order, &cancel).await {
                // Whatever was left of it says nothing.
                Err(Trouble::NoResult(_)) if cancel.is_cancelled() => {
                    Err(Trouble::lost("canceled"))
                }
                answer => answer,
            },
            Err(_) => Err(Trouble::lost("the session has ended")),
        };
        outcome(answer)
    }

    async fn answer(&self, order: &ToolOrder, cancel: &CancellationToken) -> Answer {
        let name = order.call.name.as_str();
        let arguments = &order.call.arguments;
        let Some(tool) = Tool::named(name) else {
            let theirs =
                self.servers.iter().find_map(|server| Some((server, server.tool_of(name)?)));
            if let Some((server, tool)) = theirs {
                return server.call(tool, arguments, cancel).await;
            }
            let names: Vec<&str> = self.definitions.iter().map(|tool| tool.name.as_str()).collect();
            return Err(Trouble::mistake(format!(
                "there is no tool {name}; there are {}",
                names.join(" ")
            )));
        };
        let patience = &Patience { limit_ms: self.limit_ms(tool), cancel };
        match tool {
            Tool::ReadFile => {
                let asked: ReadFile = read(arguments)?;
                self.look(patience, move |workspace, pace| asked.run(workspace, pace)).await
            }
            Tool::ListFiles => {
                let asked: ListFiles = read(arguments)?;
                self.look(patience, move |workspace, pace| asked.run(workspace, pace)).await
            }
            Tool::Grep => {
                let asked: Grep = read(arguments)?;
                self.look(patience, move |workspace, pace| asked.run(workspace, pace)).await
            }
            Tool::Search => {
                let asked: Search = read(arguments)?;
                self.look(patience, move |workspace, pace| asked.run(workspace, pace)).await
            }
            Tool::EditFile => {
                let asked: EditFile = read(arguments)?;
                self.edit(patience, move |workspace| asked.run(workspace)).await
            }
            Tool::WriteFile => {
                let asked: WriteFile = read(arguments)?;
                self.edit(patience, move |workspace| asked.run(workspace)).await
            }
            Tool::ApplyPatch => {
                let asked: ApplyPatch = read(arguments)?;
                self.edit(patience, move |workspace| asked.run(workspace)).await
            }
            Tool::Bash => self.command(read::<Bash>(arguments)?.into(), patience).await,
            Tool::RunCommand => self.command(read::<RunCommand>(arguments)?.into(), patience).await,
            Tool::GitStatus => {
                self.commands(read::<GitStatus>(arguments)?.command()?, patience).await
            }
            Tool::GitDiff => self.commands(read::<GitDiff>(arguments)?.command()?, patience).await,
            Tool::GitLog => self.commands(read::<GitLog>(arguments)?.command()?, patience).await,
            Tool::GitCommit => {
                self.commands(read::<GitCommit>(arguments)?.command()?, patience).await
            }
            Tool::GitCheckout => {
                self.commands(read::<GitCheckout>(arguments)?.command()?, patience).await
            }
            Tool::GitApply => {
                self.commands(read::<GitApply>(arguments)?.command()?, patience).await
            }
            Tool::AskUser => Err(Trouble::lost("a question is for the operator, and is never run")),
        }
    }

    /// How long a tool may take, unless the model says how long.
    fn limit_ms(&self, tool: Tool) -> u64 {
        let limits = &self.settings.sandbox.timeouts_ms;
        limits.get(tool.name()).copied().unwrap_or(TOOL_TIMEOUT_MS)
    }

    async fn command(&self, command: Command, patience: &Patience<'_>) -> Answer {
        command.run(&self.workspace, &self.sandbox, patience).await
    }

    /// One after the other while they succeed; the last one's answer.
    async fn commands(&self, commands: Vec<Command>, patience: &Patience<'_>) -> Answer {
        let mut answer = Err(Trouble::lost("there is nothing to run"));
        for command in commands {
            answer = Ok(self.command(command, patience).await?);
        }
        answer
    }

    /// Reads files beside the loop, until it is canceled or takes too long.
    async fn look(
        &self,
        patience: &Patience<'_>,
        work: impl FnOnce(&Workspace, &Pace) -> Answer + Send + 'static,
    ) -> Answer {
        let limit = Duration::from_millis(patience.limit_ms);
        let pace = Pace { cancel: patience.cancel.clone(), deadline: Instant::now() + limit };
        let workspace = self.workspace.clone();
        let working = tokio::task::spawn_blocking(move || work(&workspace, &pace));
        // It looks at the clock itself; a disk that does not answer keeps it from doing so.
        match tokio::time::timeout(limit + NOTICE_WAIT, working).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(Trouble::lost("the tool failed")),
            Err(_) => Err(Trouble::lost("the disk does not answer")),
        }
    }

    /// Changes files beside the loop. Once begun it is not canceled: it takes a moment, and half a
    /// change is none.
    async fn edit(
        &self,
        patience: &Patience<'_>,
        work: impl FnOnce(&Workspace) -> Answer + Send + 'static,
    ) -> Answer {
        let _turn = self.editing.lock().await;
        self.look(patience, move |workspace, pace| {
            pace.look()?;
            work(workspace)
        })
        .await
    }
}

/// Until when a run is waited for.
pub(super) struct Patience<'a> {
    pub limit_ms: u64,
    pub cancel: &'a CancellationToken,
}

impl Drop for Toolbox {
    fn drop(&mut self) {
        // What is left there is nobody's.
        discard(&self.settings.scratch);
    }
}

/// What a model gave, or what is wrong with it in words for the model. None is as good as empty.
fn read<T: DeserializeOwned>(arguments: &Value) -> Result<T, Trouble> {
    let empty = Value::Object(serde_json::Map::new());
    let given = if arguments.is_null() { &empty } else { arguments };
    T::deserialize(given).map_err(|error| Trouble::mistake(format!("the arguments: {error}")))
}
