//! Tools of MCP servers that the operator names in `mcp.json`.
//!
//! A server is a program of the operator's: it is not confined, and it ends with all that it starts.
//! Its tools are called `mcp__server__tool`. It is started when a session needs its tools, and again
//! on the next use after it died, hung or spoke nonsense; not for ever.
//!
//! The protocol is spoken by `rmcp`; what a server may send at all is bounded before it
//! (`sluice.rs`): a line, a count of them, a list, an answer, a wait.

mod connection;
mod file;
pub mod limits;
mod rendering;
mod server;
mod sluice;

pub use file::{McpConfigInvalid, McpFile, McpServerConfig};
pub(super) use server::McpServer;
