//! `hooks.json`: which post-tool hooks there are.
//!
//! Strict: a field that is not known is an error, because a filter that was misspelled would
//! otherwise be one that lets everything through. Without a file there are no hooks.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use qd_host::bounded_file::{Links, read_regular_text};
use qd_session::limits::HOOK_TIMEOUT_MS;
use qd_session::machine::{ErrorCode, FailurePolicy, HookConfig, ToolFilter};
use serde_json::Value;

use super::limits::{
    HOOK_ATTEMPTS_MAX, HOOK_DELAY_MS_MAX, HOOK_NAME_BYTES_MAX, HOOK_NAMES_MAX, HOOK_TIMEOUT_MS_MAX,
    HOOKS_FILE_BYTES_MAX, HOOKS_MAX,
};
use crate::strict_json::{Fault, Fields, are_variables, fault};

/// The file that says so, in the config folder.
#[derive(Debug)]
pub struct HooksFile;

/// What in the file cannot be used, and where. No hook of it is run then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {place}{}{what}", path.display(), if place.is_empty() { "" } else { ": " })]
pub struct HookConfigInvalid {
    pub path: PathBuf,
    /// As `hooks[1].timeout_ms`; empty for the file as a whole.
    pub place: String,
    pub what: String,
}

impl HookConfigInvalid {
    /// `hook_config_invalid`.
    pub const CODE: ErrorCode = ErrorCode::HookConfigInvalid;
}

impl HooksFile {
    pub fn read(path: &Path) -> Result<Vec<HookConfig>, HookConfigInvalid> {
        match read_regular_text(path, HOOKS_FILE_BYTES_MAX, Links::Followed) {
            Ok(text) => Self::parsed(&text, path),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(unreadable(path, &error)),
        }
    }

    pub fn parsed(text: &str, path: &Path) -> Result<Vec<HookConfig>, HookConfigInvalid> {
        hooks(text).map_err(|Fault { place, what }| HookConfigInvalid {
            path: path.to_owned(),
            place,
            what,
        })
    }
}

fn unreadable(path: &Path, error: &io::Error) -> HookConfigInvalid {
    HookConfigInvalid { path: path.to_owned(), place: String::new(), what: error.to_string() }
}

fn hooks(text: &str) -> Result<Vec<HookConfig>, Fault> {
    let file: Value = serde_json::from_str(text)
        .map_err(|error| Fault { place: String::new(), what: error.to_string() })?;
    let mut fields = Fields::of(String::new(), file)?;
    let written: Vec<Value> = fields.needed("hooks")?;
    fields.finish()?;
    if written.len() > HOOKS_MAX {
        return fault("hooks", format!("more than {HOOKS_MAX} hooks"));
    }
    let mut names = BTreeSet::new();
    let mut hooks = Vec::new();
    for (at, value) in written.into_iter().enumerate() {
        let hook = hook(format!("hooks[{at}]"), value)?;
        if !names.insert(hook.name.clone()) {
            return fault(
                format!("hooks[{at}].name"),
                format!("another hook is called {}", hook.name),
            );
        }
        hooks.push(hook);
    }
    Ok(hooks)
}

fn hook(place: String, value: Value) -> Result<HookConfig, Fault> {
    let mut fields = Fields::of(place, value)?;
    let name: String = fields.needed("name")?;
    if name.trim().is_empty() || name.len() > HOOK_NAME_BYTES_MAX {
        return fault(fields.at("name"), format!("1 to {HOOK_NAME_BYTES_MAX} bytes"));
    }
    let command: Vec<String> = fields.needed("command")?;
    if command.first().is_none_or(String::is_empty)
        || command.iter().any(|word| word.contains('\0'))
    {
        return fault(fields.at("command"), "a program and its arguments, as a list of texts");
    }
    let timeout_ms = fields.taken("timeout_ms")?.unwrap_or(HOOK_TIMEOUT_MS);
    if !(1..=HOOK_TIMEOUT_MS_MAX).contains(&timeout_ms) {
        return fault(fields.at("timeout_ms"), format!("1 to {HOOK_TIMEOUT_MS_MAX}"));
    }
    let failure_policy = failure_policy(&mut fields)?;
    let tool_filter = tool_filter(&mut fields)?;
    let env_allow: Vec<String> = fields.taken("env_allow")?.unwrap_or_default();
    if !are_variables(&env_allow) {
        return fault(fields.at("env_allow"), "names of variables, as a list of texts");
    }
    fields.finish()?;
    let name = name.into();
    Ok(HookConfig { name, command, timeout_ms, failure_policy, tool_filter, env_allow })
}

fn failure_policy(hook: &mut Fields) -> Result<FailurePolicy, Fault> {
    let Some(mut fields) = hook.inner("failure_policy")? else {
        return Ok(FailurePolicy::default());
    };
    let kind: String = fields.needed("type")?;
    let policy = match kind.as_str() {
        "fail_session" => FailurePolicy::FailSession,
        "warn_continue" => FailurePolicy::WarnContinue,
        "retry" => {
            let max_attempts: u8 = fields.needed("max_attempts")?;
            let delay_ms: u64 = fields.needed("delay_ms")?;
            if !(1..=HOOK_ATTEMPTS_MAX).contains(&max_attempts) {
                return fault(fields.at("max_attempts"), format!("1 to {HOOK_ATTEMPTS_MAX}"));
            }
            if delay_ms > HOOK_DELAY_MS_MAX {
                return fault(fields.at("delay_ms"), format!("0 to {HOOK_DELAY_MS_MAX}"));
            }
            FailurePolicy::Retry { max_attempts, delay_ms }
        }
        _ => return fault(fields.at("type"), "fail_session, warn_continue or retry"),
    };
    fields.finish()?;
    Ok(policy)
}

fn tool_filter(hook: &mut Fields) -> Result<ToolFilter, Fault> {
    let Some(mut fields) = hook.inner("tool_filter")? else { return Ok(ToolFilter::default()) };
    let kind: String = fields.needed("type")?;
    let filter = match kind.as_str() {
        "any_mutating" => ToolFilter::AnyMutating,
        "tool_names" => {
            let names: Vec<String> = fields.needed("names")?;
            if names.is_empty() || names.len() > HOOK_NAMES_MAX || names.contains(&String::new()) {
                return fault(fields.at("names"), "names of tools, as a list of texts");
            }
            ToolFilter::ToolNames { names }
        }
        _ => return fault(fields.at("type"), "any_mutating or tool_names"),
    };
    fields.finish()?;
    Ok(filter)
}
