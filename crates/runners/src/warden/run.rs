//! A program run under a warden, from our side.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Pid;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, Command};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::captured::Captured;
use super::charge::report;
use super::job::{Ending, Enforced, Job, Report};
use super::limits::{NEWS_BYTES_MAX, OUTPUT_END_WAIT, WARDEN_END_WAIT};
use super::tree::kill_session;

/// How a warden is started.
#[derive(Debug, Clone)]
pub struct Warden {
    program: PathBuf,
    arguments: Arc<[String]>,
}

/// A program that ran, and is gone with all that it started.
#[derive(Debug)]
pub struct Ended {
    pub ending: Ending,
    pub enforced: Enforced,
    pub output: Captured,
}

/// Nothing is known of how it ended.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    #[error("cannot start a warden for it: {0}")]
    NoWarden(#[source] io::Error),
    #[error("its warden ended without a word{}", code.map_or_else(String::new, |code| format!(" (exit code {code})")))]
    Silent { code: Option<i32> },
    #[error("its processes cannot be killed")]
    Unkillable,
}

impl Warden {
    /// Our own executable as it was when we started, even if there is a newer one at its place.
    #[cfg(target_os = "linux")]
    pub fn of_this_program() -> io::Result<Self> {
        Ok(Self::at(Path::new("/proc/self/exe"), &["warden"]))
    }

    #[cfg(not(target_os = "linux"))]
    pub fn of_this_program() -> io::Result<Self> {
        Ok(Self::at(&std::env::current_exe()?, &["warden"]))
    }

    pub fn at(program: &Path, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        Self { program: program.to_owned(), arguments }
    }

    /// Runs a program to its end, its time limit or our cancelling. Dropping this ends the program,
    /// too, but says nothing about when.
    pub async fn run(
        &self,
        job: &Job,
        output: Captured,
        cancel: &CancellationToken,
    ) -> Result<Ended, Lost> {
        let frame = job.framed().map_err(Lost::NoWarden)?;
        let mut child = self.spawn().map_err(Lost::NoWarden)?;
        let pid = child.id();
        let lifeline = child.stdin.take();
        let attending = attend(child, output);
        tokio::pin!(attending);
        let hold = hold(lifeline, &frame);
        let limit = job.timeout_ms.map(|ms| Duration::from_millis(ms) + WARDEN_END_WAIT);
        // Each way but the first lets go of the lifeline, and the warden ends everything.
        let ended = tokio::select! {
            ended = &mut attending => Some(ended),
            () = hold => None,
            () = cancel.cancelled() => None,
            () = past(limit) => None,
        };
        let ended = match ended {
            Some(ended) => ended,
            None => timeout(WARDEN_END_WAIT, attending).await.map_err(|_| Lost::Unkillable)?,
        };
        if matches!(ended, Err(Lost::Silent { .. })) {
            // Somebody killed it. What it watched over is still in its session, unless it left it.
            let leader = pid.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
            leader.into_iter().for_each(kill_session);
        }
        ended
    }

    /// A warden with its pipes; it waits for its job.
    pub(super) fn spawn(&self) -> io::Result<Child> {
        Command::new(&self.program)
            .args(&self.arguments[..])
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
    }
}

/// Hands the job over and holds the lifeline; ends only if the warden reads no more.
async fn hold(lifeline: Option<ChildStdin>, frame: &[u8]) {
    let Some(mut lifeline) = lifeline else { return };
    if lifeline.write_all(frame).await.is_ok() {
        std::future::pending::<()>().await;
    }
}

async fn past(limit: Option<Duration>) {
    match limit {
        Some(limit) => sleep(limit).await,
        None => std::future::pending().await,
    }
}

async fn attend(mut child: Child, mut output: Captured) -> Result<Ended, Lost> {
    let (tell_end, end) = oneshot::channel();
    let said = child.stdout.take();
    let reported = child.stderr.take();
    let waiting = async {
        let status = child.wait().await;
        // The reader may have come to its end before.
        let _ = tell_end.send(());
        status
    };
    let (status, (), report) =
        tokio::join!(waiting, read_all(said, &mut output, end), read_report(reported));
    let silent = || Lost::Silent { code: status.ok().and_then(|status| status.code()) };
    let Report { ending, enforced, last_words: _ } = report.ok_or_else(silent)?;
    Ok(Ended { ending, enforced, output })
}

/// Reads until the end, or until a moment after the warden's.
async fn read_all(
    said: Option<impl AsyncRead + Unpin>,
    output: &mut Captured,
    end: oneshot::Receiver<()>,
) {
    let Some(mut said) = said else { return };
    let over = async {
        let _ = end.await;
        sleep(OUTPUT_END_WAIT).await;
    };
    tokio::pin!(over);
    let mut bytes = vec![0; 64 << 10];
    loop {
        let len = tokio::select! {
            len = said.read(&mut bytes) => len.unwrap_or(0),
            () = &mut over => 0,
        };
        match len {
            0 => return,
            len => output.take(&bytes[..len]),
        }
    }
}

async fn read_report(reported: Option<ChildStderr>) -> Option<Report> {
    report(BufReader::new(reported?.take(NEWS_BYTES_MAX))).await
}
