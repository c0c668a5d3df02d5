//! What confines the commands of driven sessions on this machine.

use std::path::PathBuf;

use anyhow::Result;
use qd_runners::warden::{Enforced, Warden};

use super::finding::Finding;
use crate::config::Config;
use crate::paths::Paths;

/// A program is confined as commands are, and what the kernel makes of it is told.
pub async fn sandbox(paths: &Paths) -> Finding {
    const CHECK: &str = "sandbox";
    let advice = "docs/tools.md says what a command may reach";
    match tried(paths).await {
        Err(error) => Finding::bad(CHECK, format!("{error:#}")).advise(advice),
        Ok((enforced, absent)) => match (enforced.missing(), absent) {
            (Some(missing), _) => Finding::warn(CHECK, missing).advise(advice),
            (None, Some(absent)) => {
                let reason = format!("{} is opened to commands, but not there", absent.display());
                Finding::warn(CHECK, reason).advise("mend [sandbox] in config.toml")
            }
            (None, None) => {
                Finding::ok(CHECK, "commands are confined: files, processes, signals, sockets")
            }
        },
    }
}

async fn tried(paths: &Paths) -> Result<(Enforced, Option<PathBuf>)> {
    let config = Config::read(&paths.config)?.sandbox;
    let enforced = config.enforced(&Warden::of_this_program()?).await?;
    let absent = config.read.iter().chain(&config.write).find(|path| !path.exists()).cloned();
    Ok((enforced, absent))
}
