//! A program under a warden that is talked to while it runs, from our side.

use std::time::Duration;

use qd_host::processes::Process;
use rustix::process::Pid;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Take};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::job::{Ending, Job, News, Report};
use super::limits::{NEWS_BYTES_MAX, WARDEN_END_WAIT, WARDEN_START_WAIT};
use super::run::{Lost, Warden};
use super::tree::kill_session;

/// A program that was started.
#[derive(Debug)]
pub(crate) struct Charge {
    /// The program itself, not its warden.
    pub process: Process,
    warden: Child,
    reading: Option<JoinHandle<Option<Report>>>,
    report: Option<Report>,
}

/// The program's ends, and our hold on it: whoever drops the first ends it.
#[derive(Debug)]
pub(crate) struct Ends {
    pub lifeline: ChildStdin,
    pub output: ChildStdout,
}

impl Warden {
    /// Starts a program. An error is a sentence.
    pub(crate) async fn charge(&self, job: &Job) -> Result<(Charge, Ends), String> {
        let starting = timeout(WARDEN_START_WAIT, self.charged(job)).await;
        starting.unwrap_or_else(|_| Err(hung(WARDEN_START_WAIT)))
    }

    async fn charged(&self, job: &Job) -> Result<(Charge, Ends), String> {
        let lost = |error| Lost::NoWarden(error).to_string();
        let frame = job.framed().map_err(lost)?;
        let mut warden = self.spawn().map_err(lost)?;
        let pipes = (warden.stdin.take(), warden.stdout.take(), warden.stderr.take());
        let (Some(mut lifeline), Some(output), Some(news)) = pipes else {
            return Err(lost(std::io::Error::other("it has no pipes")));
        };
        // One that does not listen says why, or nothing.
        let _ = lifeline.write_all(&frame).await;
        let mut news = BufReader::new(news.take(NEWS_BYTES_MAX));
        match next(&mut news).await {
            Some(News::Started { pid, start }) => {
                let reading = Some(tokio::spawn(report(news)));
                let charge =
                    Charge { process: Process { pid, start }, warden, reading, report: None };
                Ok((charge, Ends { lifeline, output }))
            }
            Some(News::Ended(report)) => Err(why(&report)),
            None => {
                drop(lifeline);
                let code = warden.wait().await.ok().and_then(|status| status.code());
                Err(Lost::Silent { code }.to_string())
            }
        }
    }
}

impl Charge {
    /// Waits for its end, after which nothing is left of what it started; None if its warden was
    /// killed. Dropping the future changes nothing.
    pub async fn ended(&mut self) -> Option<&Report> {
        if let Some(reading) = &mut self.reading {
            self.report = reading.await.ok().flatten();
            self.reading = None;
            if self.report.is_none() {
                self.end_abandoned();
            }
        }
        // Its word is what counts; this only takes note of its end.
        let _ = self.warden.wait().await;
        self.report.as_ref()
    }

    /// Waits a while for its end, once its lifeline is cut. False: something of it cannot be killed.
    pub async fn end(&mut self) -> bool {
        timeout(WARDEN_END_WAIT, self.ended()).await.is_ok()
    }

    /// Somebody killed its warden. What that watched over is still in its session, unless it left
    /// it; and the warden's number is still its own, since nobody has waited for it.
    fn end_abandoned(&self) {
        let leader = self.warden.id().and_then(|pid| i32::try_from(pid).ok());
        leader.and_then(Pid::from_raw).into_iter().for_each(kill_session);
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if let Some(reading) = &self.reading {
            reading.abort();
        }
    }
}

pub(super) type Telling = BufReader<Take<ChildStderr>>;

pub(super) async fn report(mut news: Telling) -> Option<Report> {
    loop {
        match next(&mut news).await? {
            News::Ended(report) => return Some(report),
            News::Started { .. } => {}
        }
    }
}

async fn next(news: &mut Telling) -> Option<News> {
    let mut line = Vec::new();
    news.read_until(b'\n', &mut line).await.ok()?;
    serde_json::from_slice(&line).ok()
}

/// Why there is no program.
fn why(report: &Report) -> String {
    match &report.ending {
        Ending::NotFound(why) | Ending::NotStarted(why) => why.clone(),
        Ending::Exited(_) | Ending::Killed { .. } | Ending::TimedOut | Ending::Canceled => {
            "its warden did not say that it started".to_owned()
        }
    }
}

fn hung(limit: Duration) -> String {
    format!("its warden did not start it within {} seconds", limit.as_secs())
}
