//! Sessions that we drive: what is asked of those who run things, and what they tell.
//!
//! ```text
//!   operator ── command ──► Broker ──► machine ──► journal ──► Job ──► a runner
//!                             ▲                                            │
//!                             └──────────────── Report ◄───────────────────┘
//! ```
//!
//! The machine of `qd_session` decides each step; [`crate::Broker`] holds one for each session and
//! hands out [`Job`]s; the runtime has them carried out and hands [`Report`]s in.
//! Invariant: a job goes out only behind the entry that ordered it; what a crash cuts off is told
//! to the machine as such and never run again by itself.

mod alarms;
mod clip;
mod drives;
mod job;
mod report;
pub mod spawning;
mod view;

pub(crate) use self::clip::clipped;
pub(crate) use self::drives::Drives;
pub use self::job::{HookedRun, Job, Sending, Start, Work};
pub use self::report::{Ground, Report};
pub use self::spawning::{Spawning, Unspawned};
pub use self::view::DriveView;
pub(crate) use self::view::capabilities;
