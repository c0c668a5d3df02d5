//! Gemini CLI 0.61.0: JavaScript, run by node. Headless: add `-p PROMPT -o stream-json`.

use serde_json::json;

use super::Client;
use crate::error::Result;
use crate::home::Home;
use crate::model::Model;

impl Client {
    pub fn gemini_cli(home: &Home, model: &Model) -> Result<Self> {
        let settings = json!({
            "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": false}},
            "general": {"disableAutoUpdate": true, "enableAutoUpdate": false, "disableUpdateNag": true},
            "privacy": {"usageStatisticsEnabled": false},
            "telemetry": {"enabled": false},
            "ui": {"hideBanner": true, "hideTips": true},
        });
        if !home.path().join(".gemini/settings.json").exists() {
            home.write(".gemini/settings.json", &settings.to_string())?;
        }
        let client = Self::installed("Gemini CLI", PROGRAM, home, model)?
            .ready_at(READY)
            .variable("GEMINI_API_KEY", "testbed-key")
            .variable("GOOGLE_GEMINI_BASE_URL", model.url())
            .variable("GEMINI_CLI_NO_RELAUNCH", "true")
            .arguments(["-m", "gemini-2.5-flash"]);
        Ok(client)
    }
}

const PROGRAM: &str = "@google/gemini-cli/bundle/gemini.js";
const READY: &str = "Type your message";
