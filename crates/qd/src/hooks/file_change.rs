//! One file of an agent: what it was, what it becomes, and the writing of it.

use anyhow::Result;
use serde_json::{Value, json};

use super::backup::Backup;
use super::diff::{self, Paint};
use super::plan::Plan;
use super::settings_file::SettingsFile;

#[derive(Debug)]
pub struct FileChange {
    file: SettingsFile,
    backup: Backup,
    before: Option<String>,
    plan: Plan,
    /// Not shown: a token.
    secret: Option<String>,
}

impl FileChange {
    pub fn new(file: SettingsFile, plan: Plan, secret: Option<&str>) -> Result<Self> {
        if !plan.changes.is_empty() {
            file.check_writable()?;
        }
        let backup = Backup::of(file.named());
        let before = backup.text()?;
        Ok(Self { file, backup, before, plan, secret: secret.map(str::to_owned) })
    }

    pub fn is_pending(&self) -> bool {
        !self.plan.changes.is_empty()
    }

    pub fn write(&self) -> Result<()> {
        if !self.is_pending() {
            return Ok(());
        }
        let new_text = self.plan.new_text.as_deref();
        let is_restored = self.before.is_some() && self.before.as_deref() == new_text;
        if is_restored {
            self.file.replace(new_text, self.backup.mode().unwrap_or(self.file.mode()))?;
            return self.backup.discard();
        }
        if self.before.is_none() && new_text.is_some() {
            self.backup.keep(&self.file)?;
        }
        self.file.replace(new_text, self.file.mode())
    }

    pub fn diff(&self, paint: Paint) -> String {
        let name = self.file.named().display().to_string();
        let new_text = self.plan.new_text.as_deref();
        let diff = diff::unified(&name, self.file.text(), new_text, paint);
        match &self.secret {
            Some(secret) => diff.replace(secret.as_str(), "********"),
            None => diff,
        }
    }

    pub fn json(&self) -> Value {
        json!({"path": self.file.named().display().to_string(), "changes": self.plan.changes,
            "diff": self.diff(Paint::Plain), "backup": self.backup.path().display().to_string()})
    }

    pub fn done(&self) -> String {
        let did = if self.plan.new_text.is_some() { "wrote" } else { "removed" };
        format!("{did} {}", self.file.named().display())
    }
}
