//! The file as it was before we first wrote to it. Kept beside it, never overwritten, and gone
//! when an uninstall gives the same bytes again.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::settings_file::{SettingsFile, locked, read_text, write_atomically};

#[derive(Debug)]
pub struct Backup {
    path: PathBuf,
}

impl Backup {
    pub fn of(named: &Path) -> Self {
        let mut name = named.as_os_str().to_owned();
        name.push(".before-quarterdeck");
        Self { path: PathBuf::from(name) }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn text(&self) -> Result<Option<String>> {
        if fs::symlink_metadata(&self.path).is_err() {
            return Ok(None);
        }
        read_text(&self.path).map(Some)
    }

    /// The mode the file had, where a backup tells.
    pub fn mode(&self) -> Option<u32> {
        fs::metadata(&self.path).ok().map(|metadata| metadata.permissions().mode() & 0o7777)
    }

    /// Keeps the file as it is now, unless an earlier state is kept or there is no file.
    pub fn keep(&self, file: &SettingsFile) -> Result<()> {
        let Some(text) = file.text() else { return Ok(()) };
        let folder = self.path.parent().unwrap_or(Path::new("/"));
        let _lock = locked(folder)?;
        if fs::symlink_metadata(&self.path).is_ok() {
            return Ok(());
        }
        write_atomically(&self.path, text, file.mode(), None)
    }

    /// No longer needed: the file has these bytes again.
    pub fn discard(&self) -> Result<()> {
        fs::remove_file(&self.path)
            .with_context(|| format!("cannot remove {}", self.path.display()))?;
        File::open(self.path.parent().unwrap_or(Path::new("/")))?.sync_all()?;
        Ok(())
    }
}
