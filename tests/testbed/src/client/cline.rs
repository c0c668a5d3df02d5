//! Cline 2.18.0: JavaScript, run by node. Headless: add `task --json -y PROMPT`.

use serde_json::json;

use super::Client;
use crate::error::Result;
use crate::home::Home;
use crate::model::Model;

impl Client {
    pub fn cline(home: &Home, model: &Model) -> Result<Self> {
        let state = json!({
            "welcomeViewCompleted": true,
            "isNewUser": false,
            "telemetrySetting": "disabled",
            "mode": "act",
            "actModeApiProvider": "openai",
            "planModeApiProvider": "openai",
            "actModeOpenAiModelId": "scripted",
            "planModeOpenAiModelId": "scripted",
            "openAiBaseUrl": format!("{}/v1", model.url()),
        });
        if !home.path().join(".cline/data/globalState.json").exists() {
            home.write(".cline/data/globalState.json", &state.to_string())?;
            home.write(
                ".cline/data/secrets.json",
                &json!({"openAiApiKey": "testbed-key"}).to_string(),
            )?;
        }
        let client = Self::installed("Cline", PROGRAM, home, model)?
            .ready_at(READY)
            .variable("CLINE_NO_AUTO_UPDATE", "1")
            .variable("CLINE_TELEMETRY_DISABLED", "1");
        Ok(client)
    }
}

const PROGRAM: &str = "cline/dist/cli.mjs";
const READY: &str = "What can I do for you?";
