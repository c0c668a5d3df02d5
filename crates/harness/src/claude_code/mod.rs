//! What Claude Code says, and how to answer it. Known: 2.1.325 to 2.1.327 (terminal, `-p`, stdio control).
//!
//! Sources, most telling first: the live registry `sessions/<pid>.json`, hooks, stdio control
//! messages, transcripts (each subagent has its own file), telemetry logs, the end of a process.
//! Of background sessions their supervisor says in `jobs/<id>/state.json` whether they go on; its
//! other files hold secrets, and nobody reads them.
//! All name the session by the same id. Stdio messages that name none belong to their stream:
//! where several streams share a handler, `Signal::file` tells them apart.
//!
//! Oddities this folder settles:
//! - `PermissionRequest` names no call and also fires where nobody will be asked. It is joined to
//!   its call, and is under review until the registry waits, a notification comes, or nothing
//!   happens for a moment. Where a stream is seen, only `can_use_tool` asks a person.
//! - `Stop` may be vetoed by somebody else's Stop hook, and a rejected dialog is told as a failed
//!   tool just before the interrupt. Both are held back for a moment, so that nothing flashes.
//! - Esc and a rejected dialog fire no hook; the transcript and the registry tell.
//! - `Stop` with background tasks is no end; `SubagentStop` of no type is a compaction's.
//! - A prompt typed while a tool runs is queued and starts no turn.
//! - A background session has a worker, which is replaced when it is killed: the same session.
//! - A panel that the person opened is a `waiting` registry, and needs nobody.
//! - One session may be open in several processes at once: each has its own requests, calls and
//!   turn (`terminals`). Where hooks tell no process, `holders` counts kinds of them.

mod background;
mod call;
mod control;
mod conversation;
mod driver;
mod echo;
mod failure;
mod handler;
mod holders;
mod hooks;
mod notes;
mod registry;
pub mod reply;
mod request;
mod said;
mod session;
#[cfg(test)]
mod story;
mod stream;
mod telemetry;
mod terminals;
mod transcript;
pub mod usage;
mod wire;

pub(crate) use self::call::input_text;
pub use self::conversation::conversation;
pub use self::driver::Driver;
pub use self::handler::Handler;
pub(crate) use self::said::said_in;
use crate::version::Tested;

/// Recorded and run live.
pub const TESTED: Tested = Tested(&[("2.1.325", "2.1.327")]);
