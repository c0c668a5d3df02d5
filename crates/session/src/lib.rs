//! What is true about one session.
//!
//! ```text
//!                 commands, reports, timers                 facts (late, doubled, shuffled)
//!                            │                                          │
//!                   machine::transition                           Monitor::apply
//!                            │                                          │
//!        actions, changes ◄──┴──► State ──────┐          ┌────── what is believed
//!                                             ▼          ▼
//!                                      operator::resolve(now)   view::{manager, monitor}
//!                                             │
//!                              group · sub-state · label · why
//! ```
//!
//! Two kinds of session, one view of both. A **driven** session is ours: [`machine`] decides each
//! step and refuses what is not legal. An **observed** session is somebody else's: [`monitor`]
//! believes what it is told, keeps each fact with the time it happened, and derives status on
//! read. [`operator`] says of either whether it needs you, works by itself or has delivered;
//! [`view`] tells the same truth in two older shapes. [`event`] owns the journal: everything here
//! is a fold over it.
//!
//! What is deliberately absent:
//! - **Clocks, files, processes, randomness, `HashMap`.** Time and ids come in with the event,
//!   everything to be done goes out as an action. `clippy.toml` keeps it so.
//! - **Vendors.** No agent product is named here; its handler has already said what happened.
//! - **Errors.** A refused event is an ordinary answer, an unknown signal an ordinary fact.
//! - **Priorities of sources.** The newest fact wins; a source only breaks ties.
//! - **Stored status.** Group and sub-state are computed when somebody asks, for the time they ask.

pub mod decision;
pub mod deed;
pub mod event;
pub mod finished_turn;
pub mod fnv;
pub mod id;
mod json_size;
pub mod limits;
pub mod logbook;
pub mod machine;
pub mod moment;
pub mod monitor;
pub mod operator;
mod pattern;
pub mod policy;
pub mod seed;
mod session;
pub mod snapshot;
pub mod timeline;
pub mod view;
pub mod visible;

pub use self::session::Session;
