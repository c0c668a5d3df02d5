//! The one loop: it waits for things, hands them to the broker and carries out what comes back.

pub mod detail;
mod error;
pub mod runtime;

pub use error::Error;
