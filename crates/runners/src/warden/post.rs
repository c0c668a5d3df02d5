//! The warden itself: a program of its own, without a loop and without memory of others.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, WaitOptions, WaitStatus, getpid, setsid, wait};

use super::job::{Ending, Job, News, Report};
use super::limits::{KILL_AGAIN_AFTER, KILL_AGAIN_AFTER_MAX};
use super::pipes::{LastWords, feed, watch};
use super::program::started;
use super::tree::kill_all_below;
#[cfg(target_os = "linux")]
use qd_host::supervised::WARDEN_NAME;

/// Runs the job that stands on standard input; returns when nothing of it is left.
pub fn keep_watch() -> ExitCode {
    call_itself_warden();
    let mut lifeline = match lifeline() {
        Ok(lifeline) => lifeline,
        Err(_) => return ExitCode::FAILURE,
    };
    // Whoever wanted to ask for something is gone.
    let Ok(job) = Job::received(&mut lifeline) else { return ExitCode::FAILURE };
    let report = match stand_apart() {
        Ok(()) => attend(job, lifeline),
        Err(error) => Report::of_none(Ending::NotStarted(format!("no warden: {error}"))),
    };
    match tell(&News::Ended(report)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Whoever looks for agents among processes knows by this name what is below it.
fn call_itself_warden() {
    #[cfg(target_os = "linux")]
    {
        let name = std::ffi::CString::new(WARDEN_NAME).unwrap_or_default();
        // The kernel takes every name, and cuts one that is too long.
        let _ = rustix::thread::set_name(&name);
    }
}

/// Standard input without a buffer: a job's end is not a read's end.
fn lifeline() -> io::Result<File> {
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

fn tell(news: &News) -> io::Result<()> {
    let mut line = serde_json::to_vec(news)?;
    line.push(b'\n');
    io::stderr().write_all(&line)
}

/// Takes this process out of reach: no terminal, heir of all that it will start, and nothing of its
/// memory or descriptors for those who run as the same user.
fn stand_apart() -> io::Result<()> {
    // It fails for who leads a session already, and that is all that is wanted.
    let _ = setsid();
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_child_subreaper, set_dumpable_behavior};
        set_child_subreaper(Some(getpid()))?;
        set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    }
    Ok(())
}

pub(super) enum Happened {
    Ended(Pid, WaitStatus),
    NobodyLeft,
    /// The lifeline was cut.
    LetGo,
}

fn attend(job: Job, lifeline: File) -> Report {
    let deadline = job.timeout_ms.map(|ms| Instant::now() + Duration::from_millis(ms));
    let input = job.input.clone();
    let (program, enforced) = match thread::spawn(move || started(&job)).join() {
        Ok(Ok(started)) => started,
        Ok(Err(report)) => return report,
        Err(_) => return Report::of_none(Ending::NotStarted("the warden failed".to_owned())),
    };
    // Nobody listens any more if this fails, and then the lifeline is cut, too.
    let _ = tell(&News::Started { pid: program.process.pid, start: program.process.start });
    let (report, happened) = mpsc::channel();
    let reaping = report.clone();
    // From here on the program may be reaped, and its number be another's.
    thread::spawn(move || reap(&reaping));
    let heard = LastWords::of(program.stderr);
    let watched = watch(&lifeline, report);
    feed(input, program.stdin, lifeline);
    let ending = match watched {
        Ok(()) => ending(program.pid, &happened, deadline),
        Err(error) => Ending::NotStarted(format!("its lifeline cannot be watched: {error}")),
    };
    end_all(&happened);
    Report { ending, enforced, last_words: heard.text() }
}

/// Reaps whatever ends, the program's orphans included, until there is nobody.
fn reap(tell: &Sender<Happened>) {
    loop {
        let happened = match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) => Happened::Ended(pid, status),
            Ok(None) | Err(Errno::INTR) => continue,
            Err(_) => Happened::NobodyLeft,
        };
        let is_over = matches!(happened, Happened::NobodyLeft);
        if tell.send(happened).is_err() || is_over {
            return;
        }
    }
}

fn ending(program: Pid, happened: &Receiver<Happened>, deadline: Option<Instant>) -> Ending {
    loop {
        let next = match deadline {
            Some(deadline) => {
                happened.recv_timeout(deadline.saturating_duration_since(Instant::now()))
            }
            None => happened.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match next {
            Ok(Happened::Ended(pid, status)) if pid == program => {
                return match status.exit_status() {
                    Some(code) => Ending::Exited(code),
                    None => Ending::Killed { signal: status.terminating_signal().unwrap_or(0) },
                };
            }
            Ok(Happened::Ended(..)) => {}
            Ok(Happened::LetGo) => return Ending::Canceled,
            Err(RecvTimeoutError::Timeout) => return Ending::TimedOut,
            Ok(Happened::NobodyLeft) | Err(RecvTimeoutError::Disconnected) => {
                return Ending::NotStarted("it was lost".to_owned());
            }
        }
    }
}

/// Kills until there is nobody, however long that takes: whoever asked has a limit of its own.
fn end_all(happened: &Receiver<Happened>) {
    let mut pause = KILL_AGAIN_AFTER;
    loop {
        kill_all_below(getpid());
        let until = Instant::now() + pause;
        loop {
            match happened.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Happened::NobodyLeft) | Err(RecvTimeoutError::Disconnected) => return,
                Ok(Happened::Ended(..) | Happened::LetGo) => {}
                Err(RecvTimeoutError::Timeout) => break,
            }
        }
        pause = (pause * 2).min(KILL_AGAIN_AFTER_MAX);
    }
}
