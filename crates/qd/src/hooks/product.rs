//! The agents whose settings we edit: where their files are and what goes into them.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::ValueEnum;

use super::wanted::{AfterTools, FORWARDER, Wanted};
use super::{claude_code, codex, gemini_cli};
use crate::config::Config;
use crate::paths::Paths;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Product {
    #[value(alias = "claude")]
    ClaudeCode,
    Codex,
    #[value(alias = "gemini")]
    GeminiCli,
}

impl Product {
    pub const ALL: [Self; 3] = [Self::ClaudeCode, Self::Codex, Self::GeminiCli];

    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => claude_code::NAME,
            Self::Codex => codex::NAME,
            Self::GeminiCli => gemini_cli::NAME,
        }
    }

    /// The folder of its settings.
    pub fn folder(self) -> Result<PathBuf> {
        let (variable, below, default) = match self {
            Self::ClaudeCode => ("CLAUDE_CONFIG_DIR", "", ".claude"),
            Self::Codex => ("CODEX_HOME", "", ".codex"),
            Self::GeminiCli => ("GEMINI_CLI_HOME", ".gemini", ".gemini"),
        };
        let relocated = env::var_os(variable).filter(|value| !value.is_empty());
        let folder = match relocated {
            Some(folder) => Path::new(&folder).join(below),
            None => {
                let home = env::home_dir().filter(|home| home.is_absolute());
                home.context("HOME is not set; where are the settings?")?.join(default)
            }
        };
        std::path::absolute(&folder).with_context(|| format!("bad folder {}", folder.display()))
    }

    /// The file that holds its hooks.
    pub fn hooks_file(self, folder: &Path) -> PathBuf {
        folder.join(match self {
            Self::ClaudeCode | Self::GeminiCli => "settings.json",
            Self::Codex => "hooks.json",
        })
    }

    /// Hooks, and telemetry where it is in the same file.
    pub fn wanted(self, forwarder: &str, token: Option<&str>, after_tools: AfterTools) -> Wanted {
        match self {
            Self::ClaudeCode => Wanted {
                telemetry: Some(claude_code::telemetry(token)),
                ..claude_code::wanted(forwarder, after_tools)
            },
            Self::Codex => codex::wanted(forwarder, after_tools),
            Self::GeminiCli => {
                Wanted { telemetry: Some(gemini_cli::telemetry()), ..gemini_cli::wanted(forwarder) }
            }
        }
    }

    /// A switch of the client's own that turns all hooks off: where it is, and the value that does.
    pub fn off_switch(self) -> Option<(&'static str, bool)> {
        match self {
            Self::ClaudeCode => Some(("/disableAllHooks", true)),
            Self::Codex => None,
            Self::GeminiCli => Some(("/hooksConfig/enabled", false)),
        }
    }
}

/// What the operator has set for what follows tools.
pub fn after_tools() -> Result<AfterTools> {
    let config = Config::read(&Paths::from_environment()?.config)?;
    Ok(match config.runs_observed_hooks {
        true => AfterTools::Waits,
        false => AfterTools::GoesOn,
    })
}

/// The forwarder lies beside the program that runs now.
pub fn forwarder() -> Result<String> {
    let qd = env::current_exe().context("cannot tell where this program is")?;
    let path = qd.with_file_name(FORWARDER);
    let text = path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))?;
    Ok(text.to_owned())
}
