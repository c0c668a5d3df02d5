//! `qd record`: what the daemon takes in, written down as a capture that can be replayed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use qd_harness::Harness;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep_until, timeout};

use crate::daemon::{Daemon, RawEvent, escaped};
use crate::paths::Paths;
use crate::redact::Redaction;

/// A recording ends here: more than a day of ten busy agents, and still a file one can look at.
const RECORDING_BYTES_MAX: u64 = 256 << 20;

/// Without --for, nobody waits longer than that for Ctrl-C.
const RECORDING_TIME_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// After the end, a pause this long means that nothing more is on its way.
const LATE_PAUSE_MAX: Duration = Duration::from_millis(200);

/// Agents that never pause are cut off here.
const LATE_TIME_MAX: Duration = Duration::from_secs(1);

/// Write what agents say from now on into a capture, until Ctrl-C.
///
/// The capture holds the raw signals (hooks, transcript lines, telemetry) in the order they came,
/// with secrets taken out, your home shown as /home/me and your user name as me. Look through it
/// before you give it to anybody: prompts, file contents and command output are in it. `qd replay
/// DIR` plays it. Several agents make several folders, one each.
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// Only what names this session: its id, or a beginning of it that is unique
    session: Option<String>,
    /// Where the capture goes; made if missing, refused if it holds one already
    #[arg(long, value_name = "DIR", default_value = "capture")]
    out: PathBuf,
    /// Stop after this many seconds
    #[arg(long = "for", value_name = "SECONDS")]
    seconds: Option<u64>,
    /// Keep e-mail addresses
    #[arg(long)]
    keep_emails: bool,
}

pub async fn record(args: &RecordArgs, paths: &Paths) -> Result<()> {
    let daemon = Daemon::at(paths);
    let only = match &args.session {
        Some(word) => Some(vendor_id(&daemon, word).await?),
        None => None,
    };
    let user = std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).ok();
    let user = user.or_else(|| Some(paths.home.file_name()?.to_string_lossy().into_owned()));
    let home = paths.home.to_string_lossy();
    let redaction = Redaction::new(&home, user.as_deref(), !args.keep_emails);
    let mut capture = Recording::begin(&args.out, redaction, only)?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let limit = args.seconds.map_or(RECORDING_TIME_MAX, Duration::from_secs);
    let end = Instant::now() + limit.min(RECORDING_TIME_MAX);
    let mut events = daemon.signals().await?;
    let why = loop {
        let event = tokio::select! {
            event = events.next_raw() => event?,
            _ = interrupted.recv() => break "",
            _ = terminated.recv() => break "",
            () = sleep_until(end) => break "",
        };
        let Some(event) = event else { break "; the daemon stopped" };
        if event.name == "listening" {
            eprintln!("Recording into {}; Ctrl-C ends it.", args.out.display());
        }
        capture.take(&event)?;
        if capture.bytes >= RECORDING_BYTES_MAX {
            break "; it is full";
        }
    };
    // What an agent said before the end may still be on its way to us.
    if why.is_empty() {
        let end = Instant::now() + LATE_TIME_MAX;
        while let Ok(Ok(Some(event))) = timeout(LATE_PAUSE_MAX, events.next_raw()).await {
            capture.take(&event)?;
            if Instant::now() >= end || capture.bytes >= RECORDING_BYTES_MAX {
                break;
            }
        }
    }
    capture.finish(why)
}

/// The agent's own id, which its signals carry.
async fn vendor_id(daemon: &Daemon, word: &str) -> Result<String> {
    let detail = daemon.get(&format!("/api/live/sessions/{}", escaped(word))).await?;
    let id = detail["card"]["vendorId"].as_str().context("the daemon's answer names no session")?;
    Ok(id.to_owned())
}

/// A capture that is being written: one folder for each harness, in the end.
struct Recording {
    out: PathBuf,
    redaction: Redaction,
    only: Option<String>,
    files: BTreeMap<Harness, BufWriter<File>>,
    signals: u64,
    bytes: u64,
    missed: u64,
}

impl Recording {
    fn begin(out: &Path, redaction: Redaction, only: Option<String>) -> Result<Self> {
        let cannot = || format!("cannot make {}", out.display());
        fs::DirBuilder::new().recursive(true).mode(0o700).create(out).with_context(cannot)?;
        let (out, files) = (out.to_owned(), BTreeMap::new());
        let taken = fs::read_dir(&out)?.next().is_some();
        if taken {
            bail!("{} is not empty; choose another folder with --out", out.display());
        }
        Ok(Self { out, redaction, only, files, signals: 0, bytes: 0, missed: 0 })
    }

    fn take(&mut self, event: &RawEvent) -> Result<()> {
        match event.name.as_str() {
            "signal" => self.write(event),
            "missed" => {
                self.missed += event.data.parse::<u64>().unwrap_or(1);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn write(&mut self, event: &RawEvent) -> Result<()> {
        let harness = event.id.as_deref().and_then(Harness::named);
        let harness = harness.context("a signal of an agent that is not known here")?;
        if self.only.as_ref().is_some_and(|only| !event.data.contains(only.as_str())) {
            return Ok(());
        }
        let line = self.redaction.text(&event.data);
        let file = match self.files.entry(harness) {
            std::collections::btree_map::Entry::Occupied(open) => open.into_mut(),
            std::collections::btree_map::Entry::Vacant(fresh) => {
                fresh.insert(open(&self.out.join(harness.name()), harness)?)
            }
        };
        // Written at once: what was recorded survives whatever ends us.
        writeln!(file, "{line}").and_then(|()| file.flush()).context("cannot write the capture")?;
        self.signals += 1;
        self.bytes += line.len() as u64 + 1;
        Ok(())
    }

    /// A capture of one agent needs no folder of its own.
    fn finish(self, why: &str) -> Result<()> {
        let harnesses: Vec<Harness> = self.files.keys().copied().collect();
        drop(self.files);
        let folders = match harnesses[..] {
            [] => {
                eprintln!("No signal came{why}; nothing was written.");
                fs::remove_dir(&self.out).context("cannot remove the empty folder")?;
                return Ok(());
            }
            [one] => {
                let folder = self.out.join(one.name());
                for name in ["scenario.json", "signals.jsonl"] {
                    fs::rename(folder.join(name), self.out.join(name))?;
                }
                fs::remove_dir(folder)?;
                vec![self.out.clone()]
            }
            [..] => harnesses.iter().map(|harness| self.out.join(harness.name())).collect(),
        };
        eprintln!("{} signals recorded{why}.", self.signals);
        if self.missed > 0 {
            eprintln!("{} more were too long or came too fast and are missing.", self.missed);
        }
        for folder in folders {
            println!("qd replay {}", folder.display());
        }
        Ok(())
    }
}

/// Makes the folder of one harness and opens its signals.
fn open(folder: &Path, harness: Harness) -> Result<BufWriter<File>> {
    let cannot = || format!("cannot write {}", folder.display());
    fs::DirBuilder::new().mode(0o700).create(folder).with_context(cannot)?;
    let create = |name: &str| {
        let mut options = File::options();
        options.write(true).create_new(true).mode(0o600).open(folder.join(name))
    };
    let about =
        json!({"harness": harness, "recordedBy": concat!("qd ", env!("CARGO_PKG_VERSION"))});
    let mut scenario = create("scenario.json").with_context(cannot)?;
    writeln!(scenario, "{about:#}").with_context(cannot)?;
    Ok(BufWriter::new(create("signals.jsonl").with_context(cannot)?))
}
