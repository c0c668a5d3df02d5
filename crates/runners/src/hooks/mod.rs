//! Post-tool hooks: the operator's programs, after a batch that changed something.
//!
//! [`HooksFile`] reads which there are, [`HookRunner`] runs one. They are the operator's own, so
//! nothing is kept from them but our environment; like a tool, a hook ends with all that it starts.
//! Which hooks a batch calls for, in which order, and what a failed one means is the machine's;
//! for agents that we only observe, [`ObservedHooks`] says the same.

mod file;
pub mod limits;
mod observed;
mod runner;

pub use file::{HookConfigInvalid, HooksFile};
pub use observed::ObservedHooks;
pub use runner::{HookEnd, HookRunner};
