//! What any agent says over the Agent Client Protocol, and how to answer it.
//!
//! Source: `acp`, both directions of one connection over stdio (one handler for each connection,
//! because JSON-RPC ids are the connection's), and `process` for its end. Knows protocol version 1
//! and the words of the version 2 draft; seen with Gemini CLI 0.61 `--acp`, codex-acp 0.16,
//! claude-agent-acp 0.99 and OpenCode 1.18 `acp`.
//!
//! Oddities, the ones that differ from agent to agent as flags in `quirks.rs`:
//! - `end_turn` also ends a turn whose last act was our refusal; some agents say `cancelled`.
//! - The permission may be the first that is heard of a tool call, and after a refusal nothing more
//!   may be heard of it.
//! - A loaded session replays its past as if it happened now; one agent goes on after the response.
//! - A mode change may come as text in the agent's own voice.
//! - A cancel with an open request is not answered until the request is: answer it `cancelled`.
//! - JSON-RPC ids are numbers or strings, and several messages fall into one millisecond.

mod call;
mod driver;
mod driver_turn;
mod error_notice;
mod failure;
mod handler;
mod model_choice;
mod quirks;
pub mod reply;
mod request;
mod responses;
mod rpc;
mod session;
mod turn;
mod update;
mod wire;

pub use self::driver::Driver;
pub use self::handler::Handler;
