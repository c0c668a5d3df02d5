//! `mcp.json`: which servers there are. As strict as `hooks.json`, and for the same reason.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use qd_host::bounded_file::{Links, read_regular_text};
use qd_session::limits::TOOL_TIMEOUT_MS;
use serde_json::{Map, Value};

use super::limits::{MCP_FILE_BYTES_MAX, MCP_SERVER_NAME_BYTES_MAX, MCP_SERVERS_MAX};
use crate::strict_json::{Fault, Fields, are_variables, fault};
use crate::tools::limits::TIMEOUT_MS_MAX;

/// The file that says so, in the config folder.
#[derive(Debug)]
pub struct McpFile;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServerConfig {
    pub name: String,
    /// Argument vector; no shell.
    pub command: Vec<String>,
    /// Variables that it gets of our environment, beside the few that every program has.
    pub env_allow: Vec<String>,
    /// How long one call may take.
    pub timeout_ms: u64,
}

/// What in the file cannot be used, and where. No server of it is started then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {place}{}{what}", path.display(), if place.is_empty() { "" } else { ": " })]
pub struct McpConfigInvalid {
    pub path: PathBuf,
    /// As `servers.files.command`; empty for the file as a whole.
    pub place: String,
    pub what: String,
}

impl McpFile {
    pub fn read(path: &Path) -> Result<Vec<McpServerConfig>, McpConfigInvalid> {
        match read_regular_text(path, MCP_FILE_BYTES_MAX, Links::Followed) {
            Ok(text) => Self::parsed(&text, path),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => {
                let place = String::new();
                Err(McpConfigInvalid { path: path.to_owned(), place, what: error.to_string() })
            }
        }
    }

    pub fn parsed(text: &str, path: &Path) -> Result<Vec<McpServerConfig>, McpConfigInvalid> {
        servers(text).map_err(|Fault { place, what }| McpConfigInvalid {
            path: path.to_owned(),
            place,
            what,
        })
    }
}

fn servers(text: &str) -> Result<Vec<McpServerConfig>, Fault> {
    let file: Value = serde_json::from_str(text).or_else(|error| fault("", error.to_string()))?;
    let mut fields = Fields::of(String::new(), file)?;
    let servers: Map<String, Value> = fields.needed("servers")?;
    fields.finish()?;
    if servers.len() > MCP_SERVERS_MAX {
        return fault("servers", format!("more than {MCP_SERVERS_MAX} servers"));
    }
    servers.into_iter().map(|(name, value)| server(name, value)).collect()
}

fn server(name: String, value: Value) -> Result<McpServerConfig, Fault> {
    let place = format!("servers.{name}");
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let is_plain = name.bytes().all(is_letter) && !name.contains("__");
    if name.is_empty() || name.len() > MCP_SERVER_NAME_BYTES_MAX || !is_plain {
        return fault(
            place,
            format!("a name has 1 to {MCP_SERVER_NAME_BYTES_MAX} letters, digits, - or single _"),
        );
    }
    let mut fields = Fields::of(place, value)?;
    let command: Vec<String> = fields.needed("command")?;
    if command.first().is_none_or(String::is_empty)
        || command.iter().any(|word| word.contains('\0'))
    {
        return fault(fields.at("command"), "a program and its arguments, as a list of texts");
    }
    let env_allow: Vec<String> = fields.taken("env_allow")?.unwrap_or_default();
    if !are_variables(&env_allow) {
        return fault(fields.at("env_allow"), "names of variables, as a list of texts");
    }
    let timeout_ms = fields.taken("timeout_ms")?.unwrap_or(TOOL_TIMEOUT_MS);
    if !(1..=TIMEOUT_MS_MAX).contains(&timeout_ms) {
        return fault(fields.at("timeout_ms"), format!("1 to {TIMEOUT_MS_MAX}"));
    }
    fields.finish()?;
    Ok(McpServerConfig { name, command, env_allow, timeout_ms })
}
