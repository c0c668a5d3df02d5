//! What each agent product says, and how to answer it.
//!
//! Pure: a signal and its time come in, events go out; a decision comes in, the vendor's answer
//! goes out. One folder for each product, all with the same files, so knowing one is knowing all:
//! `mod.rs` (sources, versions, oddities), `wire.rs` (the fields we use, as the vendor spells
//! them), `handler.rs` (signal in, events out), `reply.rs` (decision in, answer out), and where it can
//! be driven `driver.rs` (its lines and our commands in, what is written and told out). What the
//! folders share lies below them; `dispatch.rs` above them picks the folder that a product has.
//! Invariant: a handler knows no other product, no session of ours, no disk.

pub mod abridge;
pub mod acp;
pub mod capture;
pub mod claude_code;
pub mod codex;
pub mod conversation;
mod dispatch;
pub mod driver;
mod excerpt;
mod failure_sign;
#[doc(hidden)]
pub mod fuzzing;
pub mod gemini_cli;
mod json_walk;
pub mod kilo_cline;
pub mod native;
pub mod opencode;
pub mod other_client;
mod otlp;
mod outbox;
mod payload;
mod process;
pub mod product;
pub mod replay;
mod resume;
mod rfc3339;
pub mod said;
pub mod secret;
mod signal;
#[cfg(test)]
mod story;
mod threshold;
pub mod tools_ran;
pub mod usage;
pub mod version;
pub mod waiting_hook;

use serde::{Deserialize, Serialize};

pub use self::excerpt::may_be_cut;
pub use self::signal::{Channel, Direction, Handler, Sighting, Signal};

/// An agent product, as captures and the wire spell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum Harness {
    ClaudeCode,
    Codex,
    GeminiCli,
    KiloCode,
    Cline,
    Opencode,
    Acp,
    /// Ours: a model's own endpoint, with our tools.
    Native,
}

impl Harness {
    pub const ALL: [Self; 8] = [
        Self::ClaudeCode,
        Self::Codex,
        Self::GeminiCli,
        Self::KiloCode,
        Self::Cline,
        Self::Opencode,
        Self::Acp,
        Self::Native,
    ];

    /// Its name on the wire and in captures.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude_code",
            Self::Codex => "codex",
            Self::GeminiCli => "gemini_cli",
            Self::KiloCode => "kilo_code",
            Self::Cline => "cline",
            Self::Opencode => "opencode",
            Self::Acp => "acp",
            Self::Native => "native",
        }
    }

    /// What the ids of its sessions are made of. It stays as it is, whatever the product is called:
    /// people and scripts have written those ids down.
    pub fn id_seed(self) -> &'static str {
        match self {
            Self::ClaudeCode => "ClaudeCode",
            Self::Codex => "Codex",
            Self::GeminiCli => "GeminiCli",
            Self::KiloCode => "KiloCode",
            Self::Cline => "Cline",
            Self::Opencode => "Opencode",
            Self::Acp => "Acp",
            Self::Native => "Native",
        }
    }

    /// By its name; people and command lines write it with a hyphen.
    pub fn named(name: &str) -> Option<Self> {
        let name = name.replace('-', "_");
        Self::ALL.into_iter().find(|harness| harness.name() == name)
    }

    /// By the `service.name` that its telemetry carries.
    pub fn of_service(service: &str) -> Option<Self> {
        match service {
            "claude-code" => Some(Self::ClaudeCode),
            "gemini-cli" => Some(Self::GeminiCli),
            // Its front ends have a name each: codex_cli_rs, codex_exec, codex-app-server, …
            codex if codex.starts_with("codex") => Some(Self::Codex),
            _ => None,
        }
    }

    /// Whether a file of its own names the process of each session; for the others one is looked
    /// for.
    pub fn names_its_process(self) -> bool {
        self == Self::ClaudeCode
    }

    /// As its makers write it.
    pub fn display_name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex",
            Self::GeminiCli => "Gemini CLI",
            Self::KiloCode => "Kilo",
            Self::Cline => "Cline",
            Self::Opencode => "OpenCode",
            Self::Acp => "ACP agent",
            Self::Native => "Quarterdeck",
        }
    }
}
