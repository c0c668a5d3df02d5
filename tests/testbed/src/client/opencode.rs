//! OpenCode 1.18.33 and Kilo 7.7.9, which is built on it: native programs with the same
//! settings under different names. Started with `serve` on a free port.

use serde_json::json;

use super::Client;
use crate::error::Result;
use crate::home::Home;
use crate::model::Model;

impl Client {
    pub fn opencode(home: &Home, model: &Model) -> Result<Self> {
        let client = Self::installed("OpenCode", "opencode-linux-x64/bin/opencode", home, model)?;
        client.with_settings(home, model, "opencode")
    }

    pub fn kilo(home: &Home, model: &Model) -> Result<Self> {
        let client = Self::installed("Kilo", "@kilocode/cli-linux-x64/bin/kilo", home, model)?;
        let client = client.variable("KILO_TELEMETRY_LEVEL", "off");
        client.with_settings(home, model, "kilo")
    }

    /// The server on a free port of loopback: `.served().service()`.
    pub fn served(self) -> Self {
        self.arguments(["serve", "--hostname", "127.0.0.1", "--port", "0"])
    }

    fn with_settings(self, home: &Home, model: &Model, name: &str) -> Result<Self> {
        let settings = json!({
            "autoupdate": false,
            "share": "disabled",
            "model": "testbed/scripted",
            "small_model": "testbed/scripted",
            "enabled_providers": ["testbed"],
            "permission": {"edit": "ask", "bash": "ask"},
            "provider": {"testbed": {
                "npm": "@ai-sdk/openai-compatible",
                "name": "Testbed",
                "options": {"baseURL": format!("{}/v1", model.url()), "apiKey": "testbed-key"},
                "models": {"scripted": {
                    "name": "Scripted", "tool_call": true,
                    "limit": {"context": 128_000, "output": 8_000},
                }},
            }},
        });
        let file = format!(".config/{name}/{name}.json");
        if !home.path().join(&file).exists() {
            home.write(file, &settings.to_string())?;
        }
        let prefix = name.to_uppercase();
        let off =
            ["DISABLE_AUTOUPDATE", "DISABLE_MODELS_FETCH", "DISABLE_LSP_DOWNLOAD", "DISABLE_SHARE"];
        let set = |client: Self, what: &&str| client.variable(&format!("{prefix}_{what}"), "1");
        Ok(off.iter().fold(self.ready_at(READY), set))
    }
}

const READY: &str = "Ask anything";
