//! Everything of MCP servers that can grow, with its maximum and the reason for it, and every wait.

use std::time::Duration;

/// Longest `mcp.json`.
pub const MCP_FILE_BYTES_MAX: u64 = 256 << 10;

/// Servers of one session: each is a process that stays.
pub const MCP_SERVERS_MAX: usize = 32;

/// Longest name of a server; a tool's whole name has to fit what model providers take.
pub const MCP_SERVER_NAME_BYTES_MAX: usize = 32;
pub const MCP_TOOL_NAME_BYTES_MAX: usize = 64;

/// Tools of one server, and pages in which it may list them.
pub const MCP_TOOLS_MAX: usize = 256;
pub const MCP_PAGES_MAX: usize = 32;

/// Longest description of a tool, and longest schema: every model request carries them.
pub const MCP_DESCRIPTION_BYTES_MAX: usize = 4 << 10;
pub const MCP_SCHEMA_BYTES_MAX: usize = 32 << 10;

/// Longest line of a server: an answer with a picture in it.
pub const MCP_LINE_BYTES_MAX: usize = 16 << 20;

/// Lines of a server that are passed over while its answer is waited for: logs and progress.
pub const MCP_PASSED_LINES_MAX: usize = 10_000;

/// What is on its way between a server and who talks to it, in each direction.
pub const MCP_PIPE_BYTES: usize = 64 << 10;

/// How long a server may take to start and to list its tools. Many are fetched by `npx` first.
pub const MCP_START_WAIT: Duration = Duration::from_secs(60);

/// Starts of a server without one answer in between, before it is given up.
pub const MCP_STARTS_MAX: u8 = 3;
