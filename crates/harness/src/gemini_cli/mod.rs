//! What Gemini CLI says, and how to answer it.
//!
//! Sources: `hook` (stdin of its hooks), `otel` (records of its telemetry file, or OTLP bodies),
//! `transcript` (chat files), `stream` (`--output-format stream-json`, one handler for each stream)
//! and `process`. Seen: 0.61.0.
//!
//! Oddities:
//! - `result.status: success` says that the loop ended, also when a hook stopped it.
//! - Headless it never asks; a tool that would ask is not there. SIGINT exits 0 without a `result`.
//! - Order in a terminal: BeforeTool, Notification(ToolPermission), the dialog. Nothing tells that
//!   the dialog was answered until the tool has run.
//! - Esc at the dialog fires no hook: telemetry's `reject` and the chat file tell.
//! - PreCompress fires before every model request and means that the batch before it is over.
//! - Hooks and telemetry carry no call id; `prompt_response` repeats pieces of itself.
//! - A hook can deny, never approve.
//! - It keeps no registry and no lock: who holds a chat is told by folders and times alone.

mod agenda;
mod calls;
mod conversation;
mod dialog;
mod handler;
mod hooks;
pub mod reply;
mod said;
mod session;
mod stream;
mod telemetry;
mod transcript;
pub mod usage;
mod wire;

pub use self::conversation::Chat;
pub use self::handler::Handler;
pub(crate) use self::said::said_in;
pub use self::transcript::ChatHeader;
use crate::version::Tested;

/// Recorded and run live.
pub const TESTED: Tested = Tested(&[("0.61.0", "0.61.0")]);
