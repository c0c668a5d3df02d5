//! What Claude Code says, and how to answer it.

mod handler;

pub use self::handler::Handler;
