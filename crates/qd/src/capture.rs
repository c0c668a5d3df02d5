//! A capture on disk: `scenario.json` says which harness, `signals.jsonl` what it said.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use qd_harness::{Channel, Direction, Harness, Signal};
use qd_session::moment::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

/// A recorded session, read line by line.
#[derive(Debug)]
pub struct Capture {
    pub harness: Harness,
    signals: PathBuf,
}

#[derive(Deserialize)]
struct Scenario {
    harness: Harness,
}

/// One line of `signals.jsonl`.
#[derive(Debug, Deserialize)]
pub struct Recorded {
    at_ms: u64,
    #[serde(default)]
    seq: u32,
    source: String,
    #[serde(default)]
    dir: Option<String>,
    #[serde(default)]
    file: Option<String>,
    payload: Box<RawValue>,
}

impl Capture {
    pub fn open(folder: &Path) -> Result<Self> {
        let about = folder.join("scenario.json");
        let text = std::fs::read_to_string(&about)
            .with_context(|| format!("{} is not a capture", folder.display()))?;
        let scenario: Scenario = serde_json::from_str(&text)
            .with_context(|| format!("{} names no harness we know", about.display()))?;
        Ok(Self { harness: scenario.harness, signals: folder.join("signals.jsonl") })
    }

    pub fn signals(&self) -> Result<impl Iterator<Item = Result<Recorded>>> {
        let file = File::open(&self.signals)
            .with_context(|| format!("cannot read {}", self.signals.display()))?;
        let lines = BufReader::new(file).lines().enumerate();
        Ok(lines.filter(|(_, line)| !line.as_ref().is_ok_and(|line| line.trim().is_empty())).map(
            |(at, line)| {
                serde_json::from_str(&line?)
                    .with_context(|| format!("line {} of signals.jsonl", at + 1))
            },
        ))
    }
}

impl Recorded {
    /// The signal; fails on a source that no capture has.
    pub fn signal(&self) -> Result<Signal<'_>> {
        let Some(channel) = Channel::named(&self.source) else {
            bail!("unknown source {:?}", self.source);
        };
        // A line that was not JSON is kept as a JSON string of what it was.
        let text = self.payload.get();
        Ok(Signal {
            at: Timestamp(self.at_ms),
            seq: self.seq,
            channel,
            direction: match self.dir.as_deref() {
                Some("in" | "client->server" | "client->agent" | "request" | "signal") => {
                    Direction::ToAgent
                }
                _ => Direction::FromAgent,
            },
            file: self.file.as_deref(),
            payload: text.as_bytes(),
        })
    }
}
