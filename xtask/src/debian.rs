//! Programs that tests need and Debian has.

use std::path::Path;

use anyhow::{Context, Result};

use crate::run;

/// Installs a package whose program is not there.
pub fn install(package: &str, program: &str) -> Result<()> {
    if Path::new(program).exists() {
        return Ok(());
    }
    // A machine that is new knows of no packages yet.
    run("apt-get", &["update"])
        .and_then(|()| run("apt-get", &["install", "--yes", "--no-install-recommends", package]))
        .with_context(|| format!("the tests need Debian's {package}"))
}
