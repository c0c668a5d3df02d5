//! What Codex says, and how to answer it.
//!
//! Seen and measured: 0.166.0 and 0.169.0. Sources, the best first: messages of the app-server (the shared
//! daemon's socket or a server of our own), hooks and the notify program, rollouts (session
//! files), the output of `codex exec --json`, OpenTelemetry logs over SSE and WebSocket
//! transports. A process watcher tells who has a thread's lock.
//!
//! Oddities:
//! - Title, guardian and review threads look like sessions everywhere; subagents are announced by
//!   their parent only, or by their own rollout.
//! - The permission hook fires also when nobody will be asked, and names no call.
//! - A failed turn fires no hook and no notify, only each of its model requests does; before 0.166 an
//!   interrupt fired none either. Telemetry is silent at the end of a turn, and while a person is
//!   asked.
//! - A `Stop` hook may send the agent on; a turn is over when the rollout or the server says so.
//! - A command may be written as completed seconds after its turn was aborted.
//! - In code mode the model's only call is a script, `exec`; what the script calls has ids of its
//!   own that the rollout's messages never name.

mod app_server;
mod attention;
mod call;
pub mod client;
mod conversation;
mod driver;
mod driver_items;
mod ending;
mod exec;
mod failure;
mod handler;
mod hold;
mod hooks;
mod mark;
pub mod methods;
pub mod reply;
mod request;
mod response_item;
mod rollout_line;
mod roster;
mod said;
mod server_item;
mod server_request;
mod settings;
#[cfg(test)]
mod story;
mod telemetry;
mod thread;
mod transcript;
mod turn;
pub mod usage;
pub(crate) mod wire;

pub use self::call::SCRIPT_TOOL;
pub use self::conversation::conversation;
pub use self::driver::Driver;
pub use self::ending::plan_turn;
pub use self::handler::Handler;
pub(crate) use self::said::said_in;
use crate::version::Tested;

/// Recorded and run live.
pub const TESTED: Tested = Tested(&[("0.166.0", "0.169.0")]);
