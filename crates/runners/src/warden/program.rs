//! The program that a warden starts.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{ChildStderr, ChildStdin, Command, Stdio};

use qd_host::processes::Process;
use rustix::io::Errno;
use rustix::process::Pid;

use super::job::{Ending, Enforced, Input, Job, Report, Said};

pub(super) struct Program {
    pub pid: Pid,
    pub process: Process,
    pub stdin: Option<ChildStdin>,
    pub stderr: Option<ChildStderr>,
}

/// Confines the calling thread and starts the program from it, so that the program inherits what
/// the warden's other threads must not have.
pub(super) fn started(job: &Job) -> Result<(Program, Enforced), Report> {
    let none = |why: String| Report::of_none(Ending::NotStarted(why));
    let mut command = command(job).map_err(|error| none(error.to_string()))?;
    let enforced = match &job.confinement {
        None => Enforced::Unconfined,
        Some(confinement) => {
            confinement.apply_bounds();
            confinement.apply().map_err(none)?
        }
    };
    let started = command.spawn();
    let mut child = started
        .map_err(|error| Report { enforced, ..Report::of_none(not_started(job, &error)) })?;
    let number = child.id();
    let pid = i32::try_from(number).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| none("it has no number".to_owned()))?;
    let ended_at_once = Process { pid: number, start: 0 };
    let process = Process::with_pid(number).unwrap_or(ended_at_once);
    let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
    Ok((Program { pid, process, stdin, stderr }, enforced))
}

fn command(job: &Job) -> io::Result<Command> {
    let said = || -> io::Result<OwnedFd> { io::stdout().as_fd().try_clone_to_owned() };
    let (program, arguments) =
        job.argv.split_first().ok_or_else(|| io::Error::other("no program is named"))?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(&job.folder)
        .env_clear()
        .envs(&job.environment)
        .process_group(0)
        .stdout(said()?)
        .stdin(match job.input {
            Input::Nothing => Stdio::null(),
            Input::Text(_) | Input::Following | Input::Pieces => Stdio::piped(),
        })
        .stderr(match job.said {
            Said::All => Stdio::from(said()?),
            Said::OutputOnly => Stdio::piped(),
        });
    Ok(command)
}

fn not_started(job: &Job, error: &io::Error) -> Ending {
    let program = job.argv.first().map_or("", String::as_str);
    let is_about_it = matches!(
        error.kind(),
        ErrorKind::NotFound
            | ErrorKind::PermissionDenied
            | ErrorKind::NotADirectory
            | ErrorKind::IsADirectory
            | ErrorKind::ArgumentListTooLong
            | ErrorKind::InvalidInput
    ) || error.raw_os_error() == Some(Errno::NOEXEC.raw_os_error());
    match is_about_it && job.folder.is_dir() {
        true => Ending::NotFound(format!("cannot run {program}: {error}")),
        false => Ending::NotStarted(format!("cannot start {program}: {error}")),
    }
}
