//! Grok Build 1.0.41: a native program, which `cargo xtask clients` unpacks. Headless: add
//! `-p PROMPT`.

use super::Client;
use crate::error::Result;
use crate::home::Home;
use crate::model::Model;

impl Client {
    pub fn grok(home: &Home, model: &Model) -> Result<Self> {
        let url = model.url();
        let config = format!(
            r#"[models]
default = "scripted"

[model.scripted]
model = "scripted"
name = "Scripted"
base_url = "{url}/v1"
env_key = "TESTBED_API_KEY"
context_window = 200000
"#
        );
        if !home.path().join(".grok/config.toml").exists() {
            home.write(".grok/config.toml", &config)?;
        }
        let client = Self::installed("Grok Build", PROGRAM, home, model)?
            .variable("GROK_DISABLE_AUTOUPDATER", "1")
            .variable("TESTBED_API_KEY", "testbed-key");
        Ok(client)
    }
}

const PROGRAM: &str = "@xai-official/grok-linux-x64/bin/grok";
