//! The real agents, each made ready to run alone: its own home, its settings, no login, no
//! telemetry, no updates, the scripted model as its provider.
//!
//! One file a client says what that takes; this one is what they share.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::headless::Headless;
use crate::home::Home;
use crate::model::Model;
use crate::service::Service;
use crate::terminal::Terminal;

mod claude_code;
mod cline;
mod codex;
mod gemini_cli;
mod grok;
mod opencode;

/// A client about to be started: add arguments and variables, then say how it runs.
#[derive(Debug, Clone)]
pub struct Client {
    launch: Launch,
    /// What its screen shows when it takes input.
    ready: &'static str,
}

#[derive(Debug, Clone)]
pub(crate) struct Launch {
    pub(crate) name: &'static str,
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) folder: PathBuf,
    marker: (String, String),
}

impl Client {
    /// Any other program, `qd` itself for one, in the same isolation. Its screen is ready at
    /// once.
    pub fn program(
        name: &'static str,
        program: impl Into<PathBuf>,
        home: &Home,
        model: &Model,
    ) -> Self {
        let marker = home.next_marker();
        let mut environment = home.environment(model);
        environment.insert(marker.0.clone(), marker.1.clone());
        let (program, arguments, folder) = (program.into(), Vec::new(), home.workspace());
        let launch = Launch { name, program, arguments, environment, folder, marker };
        Self { launch, ready: "" }
    }

    /// `path` is relative to the installed packages; JavaScript is run by node.
    fn installed(name: &'static str, path: &str, home: &Home, model: &Model) -> Result<Self> {
        let path = packages().join(path);
        if !path.exists() {
            return Err(Error::NotInstalled { program: path.display().to_string() });
        }
        let is_script = path.extension().is_some_and(|end| end == "js" || end == "mjs");
        if is_script {
            let script = path.display().to_string();
            return Ok(Self::program(name, "node", home, model).argument(script));
        }
        Ok(Self::program(name, path, home, model))
    }

    /// What its screen shows when it takes input.
    fn ready_at(mut self, text: &'static str) -> Self {
        self.ready = text;
        self
    }

    pub fn argument(mut self, argument: impl Into<String>) -> Self {
        self.launch.arguments.push(argument.into());
        self
    }

    pub fn arguments<'a>(mut self, arguments: impl IntoIterator<Item = &'a str>) -> Self {
        self.launch.arguments.extend(arguments.into_iter().map(str::to_owned));
        self
    }

    pub fn variable(mut self, name: &str, value: impl Into<String>) -> Self {
        self.launch.environment.insert(name.to_owned(), value.into());
        self
    }

    /// What will be run: `node` for a client in JavaScript.
    pub fn program_path(&self) -> &Path {
        &self.launch.program
    }

    /// What it would be started with, for a test that starts it by itself. What it leaves behind
    /// is killed with its home.
    pub fn command_line(&self) -> (&[String], &BTreeMap<String, String>) {
        (&self.launch.arguments, &self.launch.environment)
    }

    /// Another folder than the home's workspace.
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.launch.folder = folder.into();
        self
    }

    /// Starts it in a terminal and waits until it takes input.
    pub fn in_terminal(self) -> Result<Terminal> {
        let ready = self.ready;
        let terminal = self.in_terminal_at_once()?;
        terminal.wait_for_text(ready)?;
        Ok(terminal)
    }

    /// Starts it in a terminal, whatever it shows first.
    pub fn in_terminal_at_once(self) -> Result<Terminal> {
        Terminal::start(self.launch)
    }

    /// Starts it with pipes.
    pub fn headless(self) -> Result<Headless> {
        Headless::start(self.launch)
    }

    /// Starts it with pipes and waits until it says which port it listens on.
    pub fn service(self) -> Result<Service> {
        Service::of(self.headless()?)
    }
}

impl Launch {
    /// What its environment and that of everything it starts carries.
    pub(crate) fn marker(&self) -> String {
        format!("{}={}", self.marker.0, self.marker.1)
    }
}

/// Where `cargo xtask clients` puts them; `QD_TEST_CLIENTS` names another folder of packages.
fn packages() -> PathBuf {
    let pinned = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../clients/node_modules");
    env::var_os("QD_TEST_CLIENTS").map_or_else(pinned, PathBuf::from)
}
