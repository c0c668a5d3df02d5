//! How to run things, for many sessions.
//!
//! [`Broker`] decides, purely, for all of them; [`runtime`] is the one loop that waits for things,
//! hands them in and carries out what comes back. [`hook_intake`] takes what hook forwarders send
//! and what they left on disk while nobody listened; [`sources`] read session files and registries,
//! listen to clients' own servers, find out who holds which session, and tell when processes end.
//! [`history`] adds up what all that was ever written cost.
//! [`policy_file`] reads what agents may do without asking; [`past_requests`] what they asked for.
//! [`transcript`] reads a session's conversation in pages, for whoever looks at it.

mod broker;
mod card;
pub mod desk;
mod detail;
pub mod error;
mod fnv;
pub mod history;
pub mod hook_intake;
pub mod layers_file;
pub mod limits;
pub mod past_requests;
pub mod policy_file;
pub mod runtime;
pub mod sources;
pub mod transcript;

pub use broker::{Broker, Input, NotFound, Output, Past, Staying};
pub use card::{AnswerView, Card, ProcessView, RequestView, SpentView, SubagentView, UsageView};
pub use detail::{Detail, EvidenceLine, NoDetail};
pub use error::Error;
