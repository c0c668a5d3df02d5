//! Programs that tests need and Debian has.

use std::path::Path;

use anyhow::{Context, Result};

use crate::run;

/// Installs a program that is not there, by its package of the same name.
pub fn install(program: &str) -> Result<()> {
    if Path::new("/usr/bin").join(program).exists() {
        return Ok(());
    }
    // A machine that is new knows of no packages yet.
    run("apt-get", &["update"])
        .and_then(|()| run("apt-get", &["install", "--yes", "--no-install-recommends", program]))
        .with_context(|| format!("the tests need Debian's {program}"))
}
