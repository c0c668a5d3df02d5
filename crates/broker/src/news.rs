//! What changes on the board.

use std::sync::Arc;

use qd_harness::native::StreamEvent;
use qd_harness::usage::Sum;
use qd_session::id::SessionId;
use qd_session::machine::Shown;

use crate::card::Card;
use crate::unreadable::UnreadableAgent;

/// Something on the board is new. The ids rise by one.
#[derive(Debug, Clone, PartialEq)]
pub struct BoardChange {
    pub id: u64,
    pub news: BoardNews,
}

#[derive(Debug, Clone, PartialEq)]
pub enum BoardNews {
    /// A card that is new or looks different.
    Shown(Box<Card>),
    Removed(SessionId),
    /// What all sessions have cost on the operator's day.
    Today(Sum),
    /// All agents that run and cannot be read.
    Unreadable(Arc<[UnreadableAgent]>),
    /// A driven session took a step.
    Changed(Box<Shown>),
    /// A piece of an answer that a driven session is being given.
    Streamed(Box<StreamEvent>),
}
