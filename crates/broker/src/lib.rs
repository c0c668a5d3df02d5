//! How to run things, for many sessions.
//!
//! [`Broker`] decides, purely, for all of them; [`runtime`] is the one loop that waits for things,
//! hands them in and carries out what comes back. [`hook_intake`] takes what hook forwarders send
//! and what they left on disk while nobody listened; [`sources`] read session files and registries,
//! listen to clients' own servers, find out who holds which session, and tell when processes end.
//! [`driving`] carries out what sessions of our own ask for.
//! [`history`] adds up what all that was ever written cost.
//! [`driving`] says what is asked of those who run the sessions that are our own.
//! [`policy_file`] reads what agents may do without asking; [`past_requests`] what they asked for.
//! [`notices`] tells the operator on their devices what needs them.
//! [`telemetry`] counts what driven sessions do, and tells others of it.
//! [`transcript`] reads a session's conversation in pages, for whoever looks at it.
//! [`private_places`] are folders that no command reaches.
//! Files that an agent or a repository may have made are read by the store's [`bounded_file`].

mod broker;
mod card;
pub mod desk;
mod detail;
pub mod driving;
pub mod error;
mod fnv;
pub mod history;
pub mod hook_intake;
pub mod layers_file;
pub mod limits;
pub mod notices;
pub mod packed;
pub mod past_requests;
pub mod policy_file;
pub mod private_places;
pub mod runtime;
pub mod sources;
pub mod telemetry;
pub mod transcript;
mod unreadable;
pub mod viewing;

pub use broker::{Broker, ClientVersion, ClientView, Input, NotFound, Output, Past, Staying};
pub use card::{
    AnswerView, Card, PolicyView, ProcessView, RequestView, SpentView, SubagentView, UsageView,
};
pub use detail::{Attached, Detail, EvidenceLine, NoDetail};
pub use error::Error;
pub use qd_store::bounded_file;
pub use unreadable::UnreadableAgent;
