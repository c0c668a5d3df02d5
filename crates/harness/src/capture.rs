//! A captured session, line by line: what was recorded, back into the signals it was.

use qd_session::moment::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Harness;
use crate::signal::{Channel, Direction, Signal};

/// What `scenario.json` says that a replay needs.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Scenario {
    pub harness: Harness,
}

/// One line of `signals.jsonl`.
#[derive(Debug, Clone, Deserialize)]
pub struct Recorded {
    pub at_ms: u64,
    #[serde(default)]
    seq: u32,
    source: String,
    #[serde(default)]
    dir: Option<String>,
    #[serde(default)]
    file: Option<String>,
    payload: Box<RawValue>,
}

impl Recorded {
    /// The signal it was; none for a source that no client has.
    pub fn signal(&self) -> Option<Signal<'_>> {
        Some(Signal {
            at: Timestamp(self.at_ms),
            seq: self.seq,
            channel: Channel::named(&self.source)?,
            direction: match self.dir.as_deref() {
                Some("in" | "client->server" | "client->agent" | "request" | "signal") => {
                    Direction::ToAgent
                }
                Some(_) | None => Direction::FromAgent,
            },
            file: self.file.as_deref(),
            payload: self.payload.get().as_bytes(),
        })
    }

    pub fn source(&self) -> &str {
        &self.source
    }
}
