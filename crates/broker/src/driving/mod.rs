//! Sessions that we drive: what is asked of those who run things, and what they tell.
//!
//! ```text
//!   operator ── command ──► Broker ──► machine ──► journal ──► Job ──► a runner
//!                             ▲                                            │
//!                             └──────────────── Report ◄───────────────────┘
//! ```
//!
//! The machine of `qd_session` decides each step; [`crate::Broker`] holds one for each session and
//! hands out [`Job`]s; the runtime has them carried out and hands [`Report`]s in. A runner knows
//! one job, a way to be stopped and a way to report; it does not know who asked.
//! [`agents`] runs the processes of vendor agents, [`model`] talks to model endpoints; [`tools`] are
//! ours, in a session's workspace, beside those of [`mcp`] servers, and [`hooks`] run after them, all
//! under a [`warden`]. [`local_crew`] puts them together.
//! Invariant: a job goes out only behind the entry that ordered it; what a crash cuts off is told
//! to the machine as such and never run again by itself.

pub mod agents;
mod alarms;
mod clip;
mod crew;
mod drives;
pub mod environment;
pub mod hooks;
mod job;
mod judging;
pub mod local_crew;
pub mod mcp;
pub mod model;
mod report;
mod spawning;
mod strict_json;
mod teller;
pub mod tools;
mod view;
pub mod warden;

pub(crate) use self::clip::clipped;
pub use self::crew::{Crew, Ended, HarnessOffer, HarnessOrder, Muster, Task};
pub(crate) use self::drives::Drives;
pub use self::job::{Job, Sending, Start, Work};
pub(crate) use self::judging::{Judge, Ruled, answer_events, command_event, unanswerable};
pub use self::report::{Ground, Report};
pub use self::spawning::{Spawning, Unspawned};
pub use self::teller::Teller;
pub use self::view::DriveView;
pub(crate) use self::view::capabilities;
