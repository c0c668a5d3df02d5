//! `qd replay` and `qd explain`: a capture through the real handler, monitor and resolver.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;
use qd_harness::Channel;
use qd_harness::capture::Recorded;
use qd_harness::replay::{Replay, Scene};
use qd_session::moment::Timestamp;
use qd_session::operator::resolve;
use serde_json::json;

use crate::capture::Capture;
use crate::story::{Story, told};

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

#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// A session (its id or a beginning of it), or a capture's folder
    #[arg(value_name = "SESSION|CAPTURE")]
    pub session_or_capture: PathBuf,
    /// In a capture, when to look: milliseconds since the epoch, or seconds from the beginning
    /// (12.5)
    #[arg(long, value_name = "TIME")]
    pub at: Option<String>,
    /// In a capture, use only these sources
    #[arg(long, value_delimiter = ',', value_name = "SOURCES")]
    only: Vec<String>,
    /// One JSON object for each session
    #[arg(long)]
    pub json: bool,
}

/// The signals of a capture, from the sources that are wanted.
fn signals(capture: &Capture, only: &[String]) -> Result<Vec<Recorded>> {
    let only: BTreeSet<Channel> = channels(only)?;
    let mut wanted = Vec::new();
    for recorded in capture.signals()? {
        let recorded = recorded?;
        let Some(signal) = recorded.signal() else {
            bail!("unknown source {:?}; there are {}", recorded.source(), names());
        };
        if only.is_empty() || only.contains(&signal.channel) {
            wanted.push(recorded);
        }
    }
    Ok(wanted)
}

fn channels(names_given: &[String]) -> Result<BTreeSet<Channel>> {
    let channel = |name: &String| {
        let known = Channel::named(name.trim());
        known.with_context(|| format!("unknown source {name:?}; there are {}", names()))
    };
    names_given.iter().map(channel).collect()
}

fn names() -> String {
    Channel::ALL.map(Channel::name).join(", ")
}

pub fn replay(args: &ReplayArgs) -> Result<()> {
    let capture = Capture::open(&args.capture)?;
    let mut replay = Replay::new(capture.harness);
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut story = Story::default();
    for recorded in signals(&capture, &args.only)? {
        let signal = recorded.signal().expect("it was read as one");
        let due = replay.run_until(signal.at);
        tell(&mut out, args.json, &mut story, &due)?;
        let scenes = replay.play(&signal);
        if !args.json && !scenes.is_empty() {
            writeln!(out, "{}", story.signal(&signal))?;
        }
        tell(&mut out, args.json, &mut story, &scenes)?;
    }
    let scenes = replay.finish();
    tell(&mut out, args.json, &mut story, &scenes)?;
    out.flush()?;
    Ok(())
}

fn tell(out: &mut impl Write, json: bool, story: &mut Story, scenes: &[Scene]) -> Result<()> {
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
            Scene::Event { .. } | Scene::Changed { .. } => {
                writeln!(out, "{}", story.scene(scene))?;
            }
        }
    }
    Ok(())
}

/// The state at a moment, the rule that gave it, the evidence, and how old it is.
pub fn explain(args: &ExplainArgs) -> Result<()> {
    let capture = Capture::open(&args.session_or_capture)?;
    let recorded = signals(&capture, &args.only)?;
    let Some(first) = recorded.first() else { bail!("the capture holds no signal") };
    let Some(at) = &args.at else { bail!("--at says when to look at a capture") };
    let at = moment(at, Timestamp(first.at_ms))?;
    let mut replay = Replay::new(capture.harness);
    for recorded in recorded.iter().filter(|recorded| recorded.at_ms <= at.0) {
        replay.play(&recorded.signal().expect("it was read as one"));
    }
    replay.run_until(at);
    let mut out = io::stdout().lock();
    for (session, monitor) in replay.sessions() {
        let state = resolve(at, monitor);
        if args.json {
            let line = json!({"sessionId": session, "atMs": at.0, "agentState": state});
            writeln!(out, "{line}")?;
            continue;
        }
        writeln!(out, "{session}")?;
        writeln!(out, "  state     {}", told(&state))?;
        writeln!(out, "  rule      {}", state.rule)?;
        writeln!(out, "  since     {:.3} s ago", at.ms_since(state.since) as f64 / 1e3)?;
        for request in monitor.open_requests() {
            writeln!(out, "  waits     {:?} {} {:?}", request.kind, request.id, request.stage)?;
        }
        writeln!(out, "  process   {:?}", monitor.life())?;
        for evidence in &state.evidence {
            let source = serde_json::to_value(evidence.source)?;
            let age = at.ms_since(evidence.at) as f64 / 1e3;
            let name = source.as_str().unwrap_or_default();
            writeln!(out, "  evidence  {name}: {} {age:.3} s ago", evidence.event)?;
        }
        if monitor.unrecognised() > 0 {
            writeln!(out, "  not understood: {} signals", monitor.unrecognised())?;
        }
    }
    Ok(())
}

/// A time on the epoch's clock, or seconds from the capture's beginning.
fn moment(text: &str, began: Timestamp) -> Result<Timestamp> {
    if let Ok(ms) = text.parse::<u64>()
        && ms > 1_000_000_000_000
    {
        return Ok(Timestamp(ms));
    }
    match text.parse::<f64>() {
        Ok(seconds) if seconds >= 0.0 => Ok(began.plus_ms((seconds * 1_000.0) as u64)),
        Ok(_) | Err(_) => bail!("{text:?} is neither milliseconds since the epoch nor seconds"),
    }
}
