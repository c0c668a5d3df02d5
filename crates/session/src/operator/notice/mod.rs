//! When the operator is told that a session needs them.
//!
//! Pure: sessions as they are come in with the time, what is to be told goes out. [`Herald`] decides
//! by the operator's [`Rules`]; who carries a [`Notice`] to which device is no business of this room.
//! Invariant: of one matter the operator is told once at most, and of none that closed before its
//! dwell was over.

mod herald;
mod kind;
mod matter;
mod phase;
mod remembered;
mod rules;

pub use self::herald::{Herald, Input, Moment, Notice};
pub use self::kind::Kind;
pub use self::matter::{Answering, Asker, Ground, Matter, Situation, plain};
pub use self::phase::Phase;
pub use self::remembered::{Remembered, Told};
pub use self::rules::{Quiet, Rules};
