//! Claude Code 2.1.325: a native program, no node needed. Runs as root; only
//! `--dangerously-skip-permissions` is refused there.

use serde_json::json;

use super::Client;
use crate::error::Result;
use crate::home::Home;
use crate::model::Model;

impl Client {
    /// In a terminal it asks before it acts (`manual`): the default mode asks a classifier that
    /// only the vendor has. Headless: add `-p` and the formats.
    pub fn claude_code(home: &Home, model: &Model) -> Result<Self> {
        let folder = home.workspace().display().to_string();
        let approved = &KEY[KEY.len() - 20..];
        let settings = json!({
            "hasCompletedOnboarding": true,
            "theme": "dark",
            "customApiKeyResponses": {"approved": [approved], "rejected": []},
            "projects": {folder: {"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true}},
        });
        if !home.path().join(".claude.json").exists() {
            home.write(".claude.json", &settings.to_string())?;
        }
        let client = Self::installed("Claude Code", PROGRAM, home, model)?
            .ready_at(READY)
            .variable("ANTHROPIC_BASE_URL", model.url())
            .variable("ANTHROPIC_API_KEY", KEY)
            .variable("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .variable("DISABLE_TELEMETRY", "1")
            .variable("DISABLE_ERROR_REPORTING", "1")
            .variable("DISABLE_AUTOUPDATER", "1")
            .variable("CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL", "1")
            .variable("CLAUDE_CODE_MAX_RETRIES", "1")
            .arguments(["--permission-mode", "manual"]);
        Ok(client)
    }
}

const PROGRAM: &str = "@anthropic-ai/claude-code-linux-x64/claude";
const READY: &str = "manual mode on";
const KEY: &str = "sk-ant-api03-testbed-0000000000000000000000";
