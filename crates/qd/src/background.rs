//! `qd` alone: a daemon in the background, if none runs, and a link to its page.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::time::{Instant, sleep};

use crate::daemon::Daemon;
use crate::log_file::LogFile;
use crate::open;
use crate::paths::Paths;

/// How long a daemon may take to answer. It opens a journal, which may be long.
const START_WAIT_MAX: Duration = Duration::from_secs(30);

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Of a log, when a daemon did not start: its last words.
const LAST_WORDS_BYTES: u64 = 2 << 10;

pub async fn open(paths: &Paths) -> Result<()> {
    started(&Daemon::at(paths), paths).await?;
    let (link, shown) = open::invite_and_show(paths).await?;
    println!("The board: {link}");
    let opened = if shown { "It opens in your browser." } else { "Open it in a browser." };
    println!(
        "{opened} The link works once; `qd open` makes another, `qd watch` shows the board here."
    );
    if shown {
        eprintln!("{}", open::IF_NOT_SHOWN);
    }
    Ok(())
}

/// A daemon runs when this returns.
pub async fn started(daemon: &Daemon, paths: &Paths) -> Result<()> {
    match daemon.about().await? {
        Some(_) => Ok(()),
        None => start(daemon, paths).await,
    }
}

/// Starts a daemon and waits until it answers.
async fn start(daemon: &Daemon, paths: &Paths) -> Result<()> {
    let path = paths.log();
    let log = LogFile::at(path.clone())
        .open()
        .with_context(|| format!("cannot write {}", path.display()))?;
    let program = std::env::current_exe().context("cannot tell where this program is")?;
    let mut child = Command::new(program)
        .args(["serve", "--detached"])
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .spawn()
        .context("the daemon cannot be started")?;
    let begun = Instant::now();
    loop {
        let ended = child.try_wait()?;
        // Another one may have been quicker. One that is about to fail may break off.
        if let Ok(Some(about)) = daemon.about().await {
            eprintln!("A daemon was started: process {}, log {}", about.pid, path.display());
            return Ok(());
        }
        if ended.is_some() {
            bail!("the daemon did not start:\n{}", last_words(&path).unwrap_or_default());
        }
        if begun.elapsed() > START_WAIT_MAX {
            bail!("the daemon does not answer; see {}", path.display());
        }
        sleep(LOOK_EVERY).await;
    }
}

fn last_words(path: &Path) -> io::Result<String> {
    let mut log = File::open(path)?;
    let len = log.metadata()?.len();
    log.seek(SeekFrom::Start(len.saturating_sub(LAST_WORDS_BYTES)))?;
    let mut words = Vec::new();
    log.take(LAST_WORDS_BYTES).read_to_end(&mut words)?;
    let words = String::from_utf8_lossy(&words).into_owned();
    let lines: Vec<&str> = words.trim_end().lines().collect();
    Ok(lines[lines.len().saturating_sub(5)..].join("\n"))
}
