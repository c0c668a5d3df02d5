//! The operator's view: group, sub-state, label, and why.
//!
//! Pure functions of what the machine or the monitor holds, and of the time that comes in.

mod driven;
pub mod layer;
pub mod notice;
mod observed;
mod state;
mod vitals;

pub use self::driven::resolve as resolve_driven;
pub use self::observed::{NEXT_PROMPT, next_look, resolve, resolve_but};
pub use self::state::{AgentState, Group, SubState, Urgency};
pub use self::vitals::Vitals;
