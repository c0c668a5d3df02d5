//! What OpenCode and Kilo ≥ 7 says, and how to answer it.

mod handler;

pub use self::handler::Handler;
