//! What the say/ask clients say, and how to answer them: Kilo's CLI up to 0.26 (`--json-io`, and
//! `--auto --json`) and Cline 2 (`task --json`).
//!
//! Source: the process's JSON stream, one line a message, `in` being what we wrote to its standard
//! input; and what a process watcher saw. Known: Kilo 0.26.1, Cline 2.18.0. Cline 3.0.65 speaks
//! another language on the same stream and is read as far as its messages are known.
//!
//! Oddities, all seen:
//! - Kilo stamps with its own clock. It orders messages and names them, it is never a time of ours.
//! - A message is printed again as it grows, doubled when complete, and reprinted as a whole after
//!   `--continue` and when a subtask returns. It is one message by (timestamp, say or ask, word).
//! - `api_req_started` comes again with its tokens; only the copy without them is a new request.
//! - Kilo prints a complete `ask` also for what its own policy then approves. Cline does not.
//! - `ask:command_output` never waits. After a failed request `api_req_retried` is the way back.
//! - A configuration error is a `welcome` with instructions and exit code 0.
//! - The session's id seldom comes: Kilo's `session_created` needs a login.

mod ask;
mod cline3;
mod cline_driver;
mod command;
mod failure;
mod handler;
mod kilo_driver;
mod manager;
mod policy;
mod reply;
mod say;
mod seen;
mod stream;
mod talk;
#[cfg(test)]
mod tests;
mod wire;

pub use self::cline_driver::Driver as ClineDriver;
pub use self::handler::Handler;
pub use self::kilo_driver::Driver as KiloDriver;
pub use self::manager::manager_input;
pub use self::reply::{
    CLINE_CANNOT, cancel_task, cline, go_on, kilo, message, new_task, retry_mended, set_mode,
};
use crate::version::Tested;

/// Recorded and run live.
pub const KILO_TESTED: Tested = Tested(&[("0.26.1", "0.26.1"), ("7.7.9", "7.7.9")]);
pub const CLINE_TESTED: Tested = Tested(&[("2.18.0", "2.18.0")]);
