//! A workspace with things outside it, and a toolbox.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use qd_runners::tools::{Toolbox, ToolboxSettings};
use qd_runners::warden::Warden;
use qd_session::machine::{ToolCall, ToolOrder, ToolOutcome};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// What a model must never see.
pub const SECRET: &str = "the-operators-secret";

/// A folder with the workspace, a home beside it, and what lies outside both.
pub struct World {
    pub base: PathBuf,
}

impl World {
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("qd-tools-{}-{number}", std::process::id());
        let base = std::env::temp_dir().join(name).join("w");
        for folder in ["workspace", "home/.ssh", "outside"] {
            fs::create_dir_all(base.join(folder)).expect("made");
        }
        let world = Self { base: base.canonicalize().expect("it exists") };
        fs::write(world.base.join("home/.ssh/id"), SECRET).expect("written");
        fs::write(world.base.join("outside/secret"), SECRET).expect("written");
        world
    }

    pub fn workspace(&self) -> PathBuf {
        self.base.join("workspace")
    }

    pub fn outside(&self) -> PathBuf {
        self.base.join("outside")
    }

    /// A path in the workspace.
    pub fn path(&self, name: &str) -> PathBuf {
        self.workspace().join(name)
    }

    pub fn with(self, files: &[(&str, &str)]) -> Self {
        for (name, text) in files {
            let path = self.path(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        }
        self
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8(fs::read(self.path(name)).expect("it is there")).expect("text")
    }

    pub fn settings(&self) -> ToolboxSettings {
        let scratch = self.base.join("scratch");
        let mut settings = ToolboxSettings::new(self.workspace(), scratch, warden());
        let home = self.base.join("home").to_string_lossy().into_owned();
        settings.environment = BTreeMap::from(
            [
                ("PATH", std::env::var("PATH").expect("a path").as_str()),
                ("HOME", &home),
                ("USER", "operator"),
                ("LANG", "C.UTF-8"),
                ("QD_TOKEN", SECRET),
                ("AWS_SECRET_ACCESS_KEY", SECRET),
                ("SSH_AUTH_SOCK", SECRET),
                ("WANTED", "yes"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        settings
    }

    pub fn toolbox(&self) -> Toolbox {
        Toolbox::open(self.settings()).expect("it opens")
    }

    pub async fn run(&self, tool: &str, arguments: Value) -> ToolOutcome {
        run(&self.toolbox(), tool, arguments).await
    }

    /// The output of a tool that did what it should.
    pub async fn ok(&self, tool: &str, arguments: Value) -> String {
        match self.run(tool, arguments).await {
            ToolOutcome::Succeeded { output, is_error: false } => output.to_string(),
            other @ (ToolOutcome::Succeeded { .. } | ToolOutcome::Failed { .. }) => {
                panic!("{tool}: {other:?}")
            }
        }
    }

    /// What the model is told of its mistake.
    pub async fn mistake(&self, tool: &str, arguments: Value) -> String {
        match self.run(tool, arguments).await {
            ToolOutcome::Succeeded { output, is_error: true } => output.to_string(),
            other @ (ToolOutcome::Succeeded { .. } | ToolOutcome::Failed { .. }) => {
                panic!("{tool}: {other:?}")
            }
        }
    }

    /// Why there is no result.
    pub async fn failure(&self, tool: &str, arguments: Value) -> String {
        match self.run(tool, arguments).await {
            ToolOutcome::Failed { error } => error.to_string(),
            other @ ToolOutcome::Succeeded { .. } => {
                panic!("{tool}: {other:?}")
            }
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.base.parent().expect("a folder of ours"));
    }
}

pub fn warden() -> Warden {
    Warden::at(Path::new(env!("CARGO_BIN_EXE_qd-warden")), &[])
}

pub async fn run(toolbox: &Toolbox, tool: &str, arguments: Value) -> ToolOutcome {
    toolbox.run(&order(tool, arguments), CancellationToken::new()).await
}

pub fn order(tool: &str, arguments: Value) -> ToolOrder {
    let mutating = true;
    let call = ToolCall { call_id: "call_1".into(), name: tool.into(), arguments, mutating };
    ToolOrder { run: "toolrun_1".into(), attempt: 1, call }
}

/// Processes whose command line holds a mark.
pub fn alive(mark: &str) -> Vec<String> {
    let entries = fs::read_dir("/proc").expect("processes").flatten();
    let pids = entries.filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok());
    pids.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(mark))
        .collect()
}

/// A number that nobody else sleeps for: the mark of a process.
pub fn mark() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("600{:07}{number:03}", std::process::id())
}
