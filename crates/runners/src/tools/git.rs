//! Git's tools: what a model may say, as arguments for `git`.

use serde::Deserialize;

use super::answer::Trouble;
use super::command::Command;
use super::limits::{LOG_ENTRIES, LOG_ENTRIES_MAX};
use crate::warden::Input;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GitStatus {}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GitDiff {
    #[serde(default)]
    staged: bool,
    revision: Option<String>,
    #[serde(default)]
    paths: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GitLog {
    limit: Option<u32>,
    revision: Option<String>,
    #[serde(default)]
    paths: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GitCommit {
    message: String,
    #[serde(default)]
    all: bool,
    #[serde(default)]
    paths: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GitCheckout {
    revision: Option<String>,
    create: Option<String>,
    #[serde(default)]
    paths: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GitApply {
    patch: String,
    #[serde(default)]
    staged: bool,
}

impl GitStatus {
    pub fn command(&self) -> Result<Vec<Command>, Trouble> {
        Ok(vec![git(["status", "--short", "--branch"])])
    }
}

impl GitDiff {
    pub fn command(&self) -> Result<Vec<Command>, Trouble> {
        let mut command = git(["diff", "--no-color", "--no-ext-diff"]);
        command.argv.extend(self.staged.then(|| "--cached".to_owned()));
        command.argv.extend(revision(&self.revision)?);
        Ok(vec![with_paths(command, &self.paths)])
    }
}

impl GitLog {
    pub fn command(&self) -> Result<Vec<Command>, Trouble> {
        let limit = self.limit.unwrap_or(LOG_ENTRIES).clamp(1, LOG_ENTRIES_MAX);
        let mut command = git(["log", "--no-color", "--date=iso", "--stat"]);
        command.argv.push(format!("--max-count={limit}"));
        command.argv.extend(revision(&self.revision)?);
        Ok(vec![with_paths(command, &self.paths)])
    }
}

impl GitCommit {
    /// Files that Git does not know have to be added before they can be named.
    pub fn command(&self) -> Result<Vec<Command>, Trouble> {
        if self.message.trim().is_empty() {
            return Err(Trouble::mistake("a commit needs a message"));
        }
        if self.all && !self.paths.is_empty() {
            return Err(Trouble::mistake("say `all` or `paths`, not both"));
        }
        let mut commit = git(["commit", "--file=-"]);
        commit.input = Input::Text(self.message.clone());
        commit.argv.extend(self.all.then(|| "--all".to_owned()));
        if self.paths.is_empty() {
            return Ok(vec![commit]);
        }
        let added = with_paths(git(["add", "--all"]), &self.paths);
        Ok(vec![added, with_paths(commit, &self.paths)])
    }
}

impl GitCheckout {
    pub fn command(&self) -> Result<Vec<Command>, Trouble> {
        let mut command = git(["checkout", "--no-guess"]);
        if let Some(create) = &self.create {
            command.argv.extend(["-b".to_owned(), plain(create)?]);
        }
        command.argv.extend(revision(&self.revision)?);
        let is_nothing = self.revision.is_none() && self.create.is_none() && self.paths.is_empty();
        match (is_nothing, self.create.is_some() && !self.paths.is_empty()) {
            (true, _) => Err(Trouble::mistake("name a revision, a branch to create, or paths")),
            (_, true) => Err(Trouble::mistake("say `create` or `paths`, not both")),
            (false, false) => Ok(vec![with_paths(command, &self.paths)]),
        }
    }
}

impl GitApply {
    pub fn command(&self) -> Result<Vec<Command>, Trouble> {
        let mut command = git(["apply", "--whitespace=nowarn", "--verbose"]);
        command.argv.extend(self.staged.then(|| "--index".to_owned()));
        command.argv.push("-".to_owned());
        command.input = Input::Text(self.patch.clone());
        Ok(vec![command])
    }
}

fn git<const N: usize>(arguments: [&str; N]) -> Command {
    let argv = ["git", "--no-pager"].into_iter().chain(arguments).map(str::to_owned).collect();
    Command { argv, folder: None, input: Input::Nothing, timeout_ms: None }
}

/// A name that Git cannot take for an option.
fn plain(name: &str) -> Result<String, Trouble> {
    match name.is_empty() || name.starts_with('-') {
        true => Err(Trouble::mistake(format!("`{name}` is no name of a revision"))),
        false => Ok(name.to_owned()),
    }
}

fn revision(name: &Option<String>) -> Result<Option<String>, Trouble> {
    name.as_deref().map(plain).transpose()
}

/// Behind `--` nothing is an option; without paths it keeps a revision from being taken for one.
fn with_paths(mut command: Command, paths: &[String]) -> Command {
    command.argv.push("--".to_owned());
    // A path that begins with a colon would be a pattern of Git's.
    command.argv.extend(paths.iter().map(|path| match path.strip_prefix(':') {
        Some(_) => format!("./{path}"),
        None => path.clone(),
    }));
    command
}
