//! Signal in, events out.

use qd_session::moment::Timestamp;

use crate::signal::{Sighting, Signal};

#[derive(Debug, Default)]
pub struct Handler {}

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
