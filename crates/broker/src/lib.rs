//! How to run things, for many sessions.
//!
//! So far: what a hook forwarder sends, and what it left on disk while nobody listened.

pub mod error;
pub mod hook_intake;
pub mod limits;

pub use error::Error;
