//! How to run things, for many sessions.
//!
//! [`Broker`] decides, purely, for all of them; [`hook_intake`] takes what hook forwarders send and
//! what they left on disk while nobody listened; [`sources`] read session files and registries,
//! listen to the servers that clients run, and tell when processes end. What is not here yet: the
//! one loop that waits for things and hands them in.

mod broker;
mod card;
pub mod error;
pub mod hook_intake;
pub mod limits;
pub mod sources;

pub use broker::{Broker, Input, NotFound, Output};
pub use card::{Card, RequestView, SubagentView, UsageView};
pub use error::Error;
