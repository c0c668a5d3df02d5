//! What any agent that speaks the Agent Client Protocol says, and how to answer it.

mod handler;

pub use self::handler::Handler;
