//! The lines that the port's requests leave in the log. A flood leaves a few, and its number.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use axum::http::Method;
use tracing::{debug, info};

use crate::auth::Scope;
use crate::budget::Bucket;
use crate::limits::{
    ANSWERED_LINES_AT_ONCE, ANSWERED_LINES_PER_S, LOGGED_PATH_BYTES_MAX, REFUSED_LINES_AT_ONCE,
    REFUSED_LINES_PER_S,
};
use crate::routes::Need;

/// Refusals have lines of their own: a flood of them must not hide what was answered.
#[derive(Debug)]
pub struct RequestLog {
    answered: Mutex<Lines>,
    refused: Mutex<Lines>,
}

#[derive(Debug)]
struct Lines {
    bucket: Bucket,
    left_out: u64,
}

impl RequestLog {
    pub fn new(now: Instant) -> Self {
        let lines = |at_once, per_s| {
            Mutex::new(Lines { bucket: Bucket::new(at_once, per_s, now), left_out: 0 })
        };
        Self {
            answered: lines(ANSWERED_LINES_AT_ONCE, ANSWERED_LINES_PER_S),
            refused: lines(REFUSED_LINES_AT_ONCE, REFUSED_LINES_PER_S),
        }
    }

    pub fn tell(&self, method: &Method, path: &str, status: u16, need: Option<Need>) {
        if is_quiet(need, status) {
            return tell(method, path, status, need);
        }
        let (lines, sort) = match status < 400 {
            true => (&self.answered, "answered"),
            false => (&self.refused, "refused"),
        };
        let left_out = lines.lock().unwrap_or_else(PoisonError::into_inner).admit(Instant::now());
        let Some(left_out) = left_out else { return };
        if left_out > 0 {
            info!(left_out, sort, "more requests, without a line for each");
        }
        tell(method, path, status, need);
    }
}

impl Lines {
    /// Whether the next one gets a line, and how many before it had none.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        match self.bucket.spend(now) {
            true => Some(std::mem::take(&mut self.left_out)),
            false => {
                self.left_out += 1;
                None
            }
        }
    }
}

/// One line, however many there were.
pub fn tell(method: &Method, path: &str, status: u16, need: Option<Need>) {
    let path = &path[..path.floor_char_boundary(LOGGED_PATH_BYTES_MAX)];
    match is_quiet(need, status) {
        true => debug!(%method, path, status, "request"),
        false => info!(%method, path, status, "request"),
    }
}

/// Reports of agents that were taken: there are many, and each is on the board.
fn is_quiet(need: Option<Need>, status: u16) -> bool {
    need == Some(Need::Scope(Scope::Ingest)) && status < 400
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_flood_leaves_some_lines_and_its_number() {
        let start = Instant::now();
        let mut lines = Lines { bucket: Bucket::new(3, 1.0, start), left_out: 0 };
        let told = (0..100).filter(|_| lines.admit(start) == Some(0)).count();
        assert_eq!((told, lines.left_out), (3, 97));
        assert_eq!(lines.admit(start + Duration::from_secs(1)), Some(97));
        assert_eq!(lines.admit(start + Duration::from_secs(2)), Some(0));
    }
}
