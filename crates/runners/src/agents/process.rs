//! One process of an agent, under its warden: its lines, what is written to it, its end.

use qd_harness::driver::Invocation;
use qd_host::processes::Process;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::AgentJob;
use super::limits::INPUT_LINES_MAX;
use super::lines::{Line, Lines};
use crate::warden::{Charge, Ending, Ends, Input, Job, LAST_PIECE, Report, Said, pieces};

/// Lives until it is told to end; dropped, it ends too, but nobody says when.
#[derive(Debug)]
pub struct AgentProcess {
    pub lines: Lines<ChildStdout>,
    charge: Charge,
    input: Option<mpsc::Sender<String>>,
    /// Holds the lifeline: aborted, it cuts it.
    writing: JoinHandle<()>,
}

/// What comes from a process.
#[derive(Debug)]
pub enum Heard {
    Line(Line),
    End,
}

impl AgentProcess {
    /// An error is a sentence.
    pub async fn start(job: &AgentJob, invocation: &Invocation) -> Result<Self, String> {
        let program = job.program.to_str().ok_or("its path is no text")?;
        let mut environment = job.environment.clone();
        let variables = invocation.variables.iter();
        environment.extend(variables.map(|(name, value)| ((*name).to_owned(), value.clone())));
        let mut argv = vec![program.to_owned()];
        argv.extend(invocation.arguments.iter().cloned());
        let job_of_warden = Job {
            argv,
            folder: job.cwd.clone(),
            environment,
            input: Input::Pieces,
            said: Said::OutputOnly,
            timeout_ms: None,
            confinement: None,
        };
        let (charge, Ends { lifeline, output }) = job.warden.charge(&job_of_warden).await?;
        let (input, writing) = write_lines(lifeline);
        Ok(Self { lines: Lines::of(output), charge, input: Some(input), writing })
    }

    /// The agent itself, not its warden.
    pub fn process(&self) -> Process {
        self.charge.process
    }

    /// Queues a line for the agent. False if it does not read what it was written before.
    pub fn write(&self, line: String) -> bool {
        match self.input.as_ref().map(|input| input.try_send(line)) {
            // An agent whose input is closed is about to end, and its end says why.
            None | Some(Ok(()) | Err(mpsc::error::TrySendError::Closed(_))) => true,
            Some(Err(mpsc::error::TrySendError::Full(_))) => false,
        }
    }

    /// What was queued is still written.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Asks it to end, and what it runs in its group with it.
    pub fn terminate(&self) {
        let agent = self.process();
        // Its number may be another's once its warden has taken note of its end.
        if Process::with_pid(agent.pid) == Some(agent) {
            let group = i32::try_from(agent.pid).ok().and_then(Pid::from_raw);
            // It may have ended by itself, and its end will say so.
            let _ = group.map(|group| kill_process_group(group, Signal::TERM));
        }
    }

    /// Ends it with all that it started; its end is heard like any other.
    pub fn kill(&self) {
        self.writing.abort();
    }

    /// Its next line or its end; lines that it left behind may follow. Dropping the future loses
    /// nothing.
    pub async fn next(&mut self) -> Heard {
        tokio::select! {
            biased;
            line = self.lines.next() => {
                // Without one it said its last, and its end is near.
                if let Ok(Some(line)) = line {
                    return Heard::Line(line);
                }
            }
            _ = self.charge.ended() => return Heard::End,
        }
        self.charge.ended().await;
        Heard::End
    }

    /// Waits for its end, and gives its exit code. Dropping the future changes nothing.
    pub async fn wait(&mut self) -> Option<i32> {
        code(self.charge.ended().await)
    }

    /// Ends whatever is left of it, and gives its exit code and the end of its standard error.
    pub async fn end(mut self) -> (Option<i32>, String) {
        self.writing.abort();
        // Until it is dropped the lifeline holds; it was cancelled, or has ended before.
        let _ = (&mut self.writing).await;
        if !self.charge.end().await {
            tracing::warn!(pid = self.process().pid, "an agent is still there after it was killed");
            return (None, String::new());
        }
        let report = self.charge.ended().await;
        (code(report), report.map_or_else(String::new, |report| report.last_words.clone()))
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        self.writing.abort();
    }
}

fn code(report: Option<&Report>) -> Option<i32> {
    match report?.ending {
        Ending::Exited(code) => Some(code),
        Ending::Killed { .. }
        | Ending::TimedOut
        | Ending::Canceled
        | Ending::NotFound(_)
        | Ending::NotStarted(_) => None,
    }
}

/// Writes what is queued, closes the agent's input behind it, and holds on to the agent.
fn write_lines(mut lifeline: ChildStdin) -> (mpsc::Sender<String>, JoinHandle<()>) {
    let (input, mut lines) = mpsc::channel::<String>(INPUT_LINES_MAX);
    let writing = tokio::spawn(async move {
        while let Some(mut line) = lines.recv().await {
            line.push('\n');
            if lifeline.write_all(&pieces(line.as_bytes())).await.is_err() {
                // Its warden is gone, and the end will say so.
                return;
            }
        }
        let _ = lifeline.write_all(&LAST_PIECE).await;
        std::future::pending::<()>().await;
    });
    (input, writing)
}
