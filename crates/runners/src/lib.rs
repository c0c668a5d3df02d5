//! Those who run things for driven sessions: one job each, run to its end.
//!
//! A runner knows one job, a way to be stopped and a way to report; it does not know who asked.
//! [`agents`] runs the processes of vendor agents, [`model`] talks to model endpoints; [`tools`] are
//! ours, in a session's workspace, beside those of [`mcp`] servers, and [`hooks`] run after them, all
//! under a [`warden`]. [`local_crew`] puts them together.

pub mod agents;
pub mod crew;
pub mod environment;
pub mod hooks;
pub mod local_crew;
pub mod mcp;
pub mod model;
mod strict_json;
pub mod teller;
pub mod tools;
pub mod warden;
