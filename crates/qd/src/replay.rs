//! `qd replay`: a capture through the real handlers, monitor and resolver.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use qd_harness::Channel;
use qd_harness::replay::{Replay, Scene};
use serde_json::json;

use crate::capture::Capture;

#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// The capture's folder
    capture: PathBuf,
    /// Use only these sources, as if the others did not exist (hook,transcript,…)
    #[arg(long, value_delimiter = ',', value_name = "SOURCES")]
    only: Vec<String>,
    /// One JSON object a line, each time a session's state changes
    #[arg(long)]
    json: bool,
}

pub fn run(args: &ReplayArgs) -> Result<()> {
    let only = channels(&args.only)?;
    let capture = Capture::open(&args.capture)?;
    let mut replay = Replay::new(capture.harness);
    let mut out = io::BufWriter::new(io::stdout().lock());
    for recorded in capture.signals()? {
        let recorded = recorded?;
        let signal = recorded.signal()?;
        if !only.is_empty() && !only.contains(&signal.channel) {
            continue;
        }
        let scenes = replay.play(&signal);
        tell(&mut out, args.json, &scenes)?;
    }
    let scenes = replay.finish();
    tell(&mut out, args.json, &scenes)?;
    out.flush()?;
    Ok(())
}

fn channels(names: &[String]) -> Result<BTreeSet<Channel>> {
    names
        .iter()
        .map(|name| match Channel::named(name.trim()) {
            Some(channel) => Ok(channel),
            None => bail!(
                "unknown source {name:?}; there are {}",
                Channel::ALL.map(Channel::name).join(", ")
            ),
        })
        .collect()
}

fn tell(out: &mut impl Write, json: bool, scenes: &[Scene]) -> Result<()> {
    for scene in scenes {
        match scene {
            Scene::Changed { at, session, state } if json => {
                let line = json!({
                    "atMs": at.0,
                    "sessionId": session,
                    "group": state.group,
                    "state": state.state,
                    "label": state.label,
                    "confidence": state.confidence,
                    "source": state.source,
                });
                writeln!(out, "{line}")?;
            }
            Scene::Event { .. } if json => {}
            Scene::Event { at, session, event } => {
                writeln!(out, "{} {session} {}", at.0, serde_json::to_string(event)?)?;
            }
            Scene::Changed { at, session, state } => {
                let group = serde_json::to_value(state.group)?;
                writeln!(
                    out,
                    "{} {session}   => {}/{} \"{}\" since {}",
                    at.0,
                    group.as_str().unwrap_or_default(),
                    state.state.as_str(),
                    state.label,
                    state.since.0
                )?;
            }
        }
    }
    Ok(())
}
