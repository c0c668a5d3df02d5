//! A capture on disk: `scenario.json` says which harness, `signals.jsonl` what it said.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use qd_harness::Harness;
use qd_harness::capture::{Recorded, Scenario};
use qd_host::bounded_file::{Links, open_regular, read_regular_text};

/// What a capture says about itself: a few hundred bytes.
const SCENARIO_BYTES_MAX: u64 = 1 << 20;

/// A recorded session, read line by line.
#[derive(Debug)]
pub struct Capture {
    pub harness: Harness,
    signals: PathBuf,
}

impl Capture {
    pub fn open(folder: &Path) -> Result<Self> {
        let about = folder.join("scenario.json");
        let text = read_regular_text(&about, SCENARIO_BYTES_MAX, Links::Followed)
            .with_context(|| format!("{} is not a capture", folder.display()))?;
        let scenario: Scenario = serde_json::from_str(&text)
            .with_context(|| format!("{} names no harness we know", about.display()))?;
        Ok(Self { harness: scenario.harness, signals: folder.join("signals.jsonl") })
    }

    pub fn signals(&self) -> Result<impl Iterator<Item = Result<Recorded>>> {
        let (file, _) = open_regular(&self.signals, Links::Followed)
            .with_context(|| format!("cannot read {}", self.signals.display()))?;
        let lines = BufReader::new(file).lines().enumerate();
        let filled =
            lines.filter(|(_, line)| !line.as_ref().is_ok_and(|line| line.trim().is_empty()));
        Ok(filled.map(|(at, line)| {
            let place = || format!("line {} of {}", at + 1, self.signals.display());
            serde_json::from_str(&line.with_context(place)?).with_context(place)
        }))
    }
}
