//! Who can see and act: HTTP, the stream, ingest, and who is let in.
//!
//! Knows HTTP and nothing of SQL or processes; all it says comes from the broker's loop, all it
//! takes goes there. Two doors lead to one router: a unix socket that only this user can open
//! (where hook forwarders knock as well), and a TCP port that asks for a token
//! (see `guard`). Invariant: no route answers before the guard has looked at the request.

mod auth;
mod error;
mod frames;
mod guard;
mod ingest;
pub mod limits;
mod live;
mod otlp;
mod routes;
mod server;
mod session_page;
mod signals;
mod stream;
mod wire;

pub use auth::{Scope, Tokens};
pub use error::Error;
pub use guard::HEADER;
pub use routes::{Need, ROUTES, Route};
pub use server::{PORT, Server};
pub use wire::{About, Problem, SessionList, Summary};
