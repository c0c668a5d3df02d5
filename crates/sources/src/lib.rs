//! What agents leave on this machine without being asked: session files, registries, locks,
//! processes, and what their own servers tell whoever attaches. To those servers go the operator's
//! errands too.
//!
//! Knows paths, bytes and process ids; what a line means is the harness's business, and who
//! listens is the runtime's.

pub mod agent_processes;
pub mod client_folders;
pub mod codex_daemon;
pub mod codex_daemons;
mod codex_locks;
pub mod doorbell;
pub mod errand;
mod error;
pub mod files;
mod gemini_chats;
pub mod holders;
pub mod hook_intake;
pub(crate) mod inotify;
pub mod live;
pub mod opencode_servers;
pub mod places;
pub mod repositories;
pub mod tail;
pub mod terminal;
mod traffic;
pub mod transcript;
pub mod vitals;
pub mod watch;

pub use error::Error;
