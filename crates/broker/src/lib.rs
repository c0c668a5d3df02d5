//! All sessions at once: [`Broker`] decides, purely, for all of them.
//!
//! One input in, outputs out: what is written, shown, asked, delivered and run. It has no clock, no
//! file and no socket; the daemon's loop hands things in and carries out what comes back.

mod broker;
mod budgets;
mod card;
pub mod desk;
mod driven_answer;
pub mod driving;
pub mod news;
pub mod packed;
mod rules;
pub mod session_key;
pub mod survey;
pub mod terminal;
pub mod unreadable;
pub mod viewing;
pub mod vital;

pub use broker::{
    Broker, ClientVersion, ClientView, Input, NotFound, Output, Past, REST_AFTER_MS, Staying,
    TERMINALS_MAX, WOKEN_MAX,
};
pub use card::{
    AnswerState, AnswerView, Card, PolicyView, ProcessView, RequestView, SpentView, SubagentView,
    UsageView,
};
pub use unreadable::UnreadableAgent;
