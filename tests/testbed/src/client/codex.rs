//! Codex 0.166.0: a native program. In a terminal it starts a daemon of its own and attaches
//! to it; add `--no-daemon` for one process. It refuses a home below the folder for temporary
//! files, so that folder is inside our own.

use crate::client::Client;
use crate::error::Result;
use crate::home::Home;
use crate::model::Model;

impl Client {
    /// Speaks Responses over SSE. Headless: add `exec --json` or `app-server`.
    pub fn codex(home: &Home, model: &Model) -> Result<Self> {
        Self::codex_over(home, model, "false")
    }

    /// Speaks Responses over a WebSocket, as it does to its vendor.
    pub fn codex_over_websocket(home: &Home, model: &Model) -> Result<Self> {
        Self::codex_over(home, model, "true")
    }

    fn codex_over(home: &Home, model: &Model, websockets: &str) -> Result<Self> {
        let url = model.url();
        let folder = home.workspace().display().to_string();
        let config = format!(
            r#"model = "{MODEL}"
model_provider = "testbed"
approval_policy = "on-request"
sandbox_mode = "workspace-write"
check_for_update_on_startup = false
disable_paste_burst = true

[model_providers.testbed]
name = "Testbed"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "TESTBED_API_KEY"
supports_websockets = {websockets}
request_max_retries = 1
stream_max_retries = 1

[projects."{folder}"]
trust_level = "trusted"

[notice.model_migrations]
"{MODEL}" = "gpt-6-sol"

[analytics]
enabled = false

[otel]
metrics_exporter = "none"
"#
        );
        if !home.path().join(".codex/config.toml").exists() {
            home.write(".codex/config.toml", &config)?;
        }
        let client = Self::installed("Codex", PROGRAM, home, model)?
            .ready_at(READY)
            .variable("CODEX_HOME", home.path().join(".codex").display().to_string())
            .variable("TESTBED_API_KEY", "testbed-key");
        Ok(client)
    }
}

const PROGRAM: &str = "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex";
/// The last line, whatever the model.
const READY: &str = "? for shortcuts";

/// The one model of its catalogue that calls tools directly; the others write JavaScript that
/// calls them.
const MODEL: &str = "gpt-5.5";
