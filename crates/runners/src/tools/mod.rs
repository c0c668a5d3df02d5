//! Our own tools, in a session's workspace.
//!
//! Those that look at files and change them do it themselves, below the workspace's folder
//! (`workspace.rs`); those that run programs do it under a warden that confines them
//! (`sandbox.rs`). What a model can mend is a result; a failure has none.

pub(super) mod answer;
mod apply_patch;
mod command;
mod definitions;
mod edit_file;
mod git;
mod glob;
mod grep;
pub mod limits;
mod list_files;
mod pace;
mod patch;
mod read_file;
mod sandbox;
mod sandbox_config;
pub(super) mod scratch;
mod search;
mod tool;
mod toolbox;
mod walk;
mod workspace;
mod writing;

pub use sandbox_config::SandboxConfig;
pub use tool::{Manner, Tool, ToolDefinition};
pub use toolbox::{Toolbox, ToolboxSettings};
pub use workspace::{Workspace, private_places_in};
