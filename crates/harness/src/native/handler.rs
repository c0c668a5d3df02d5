//! Nobody sends us signals of a session that we drive ourselves.

use qd_session::moment::Timestamp;

use crate::signal::{Sighting, Signal};

/// Hears nothing: what is known of a native session comes from the machine that drives it. A
/// frame that claims to be of one makes no session.
#[derive(Debug, Clone, Copy, Default)]
pub struct Handler;

impl crate::signal::Handler for Handler {
    fn handle_signal(&mut self, _signal: &Signal<'_>) -> Vec<Sighting> {
        Vec::new()
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        None
    }

    fn handle_timeout(&mut self, _now: Timestamp) -> Vec<Sighting> {
        Vec::new()
    }
}
