//! Who can see and act: HTTP, the stream, ingest, and who is let in.
//!
//! Knows HTTP and nothing of SQL or processes; all it says comes from the broker's loop, all it
//! takes goes there. Two doors lead to one router: a unix socket that only this user can open
//! (where hook forwarders knock as well), and a TCP port that asks for a token
//! (see `guard`). Invariant: no route answers before the guard has looked at the request.

mod acting;
mod auth;
mod browser_key;
mod browsers;
mod budget;
mod chat;
mod connections;
mod driving;
mod error;
mod feed;
mod frames;
mod guard;
mod history;
mod hook_posts;
mod ingest;
pub mod limits;
mod live;
mod metrics;
mod openapi;
mod otlp;
mod page;
mod patience;
mod presence;
mod push;
mod request_log;
mod routes;
mod server;
mod session_page;
mod sign_in;
mod sign_in_file;
mod sign_in_lease;
mod signals;
mod spelled;
mod stream;
mod usage;
mod wire;

pub use auth::{Scope, Tokens};
pub use browser_key::{BROWSER_HEADER, browser_proof, daemon_proof};
pub use browsers::BrowserView;
pub use error::Error;
pub use guard::HEADER;
pub use hook_posts::RefusedHooks;
pub use openapi::document;
pub use page::ROUTES as PAGE_ROUTES;
pub use routes::{Need, ROUTES, Route};
pub use server::{Doors, PORT, Records, Server};
pub use wire::{About, Link, LinkWanted, Problem, SessionList, Summary};
