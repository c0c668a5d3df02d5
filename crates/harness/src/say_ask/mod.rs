//! What the say/ask clients (Kilo ≤ 0.26, Cline 2) says, and how to answer it.

mod handler;

pub use self::handler::Handler;
