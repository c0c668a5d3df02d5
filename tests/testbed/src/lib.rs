//! The testbed: scripted models on loopback, and the real agents run against them.
//!
//! Test support, not a crate of the product: nothing here is linked into `qd`. A test makes a
//! [`Home`], a [`Model`] that answers by a [`Script`], starts a [`Client`] in a [`Terminal`] or
//! [`Headless`], and waits for what is to happen.
//! Invariant: every wait is for an event and has a bound ([`limits::WAIT_MAX`]); what a client
//! leaves behind is killed and removed when its value is dropped, or by the next run.
//!
//! ```no_run
//! # use qd_testbed::{Client, Home, Key, Model, Script};
//! # use serde_json::json;
//! # fn main() -> qd_testbed::Result<()> {
//! let home = Home::new()?;
//! let model = Model::start(Script::new().calls("Bash", json!({"command": "ls"})).says("Done."))?;
//! let mut claude = Client::claude_code(&home, &model)?.in_terminal()?;
//! claude.submit("list the files")?;
//! claude.wait_for_text("Do you want to proceed?")?;
//! claude.press(Key::Enter)?;
//! claude.wait_for_text("Done.")?;
//! # Ok(())
//! # }
//! ```

mod client;
mod conversation;
mod error;
mod gate;
mod headless;
mod home;
mod http;
mod input;
pub mod limits;
mod model;
mod output;
mod process_tree;
mod reply;
mod request_log;
mod screen;
mod script;
mod service;
mod serving;
mod terminal;
mod watched;
mod websocket;
mod wire;

pub use client::Client;
pub use conversation::{Conversation, Turn};
pub use error::{Error, Result};
pub use gate::Gate;
pub use headless::Headless;
pub use home::Home;
pub use model::Model;
pub use reply::{Block, Reply, StopReason};
pub use request_log::{Answer, Delivery, Request};
pub use script::Script;
pub use service::{EventFeed, Service};
pub use terminal::{Key, Terminal};
pub use wire::Wire;
