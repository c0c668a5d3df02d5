//! A client without a terminal: lines in, lines out.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;

use serde_json::Value;

use crate::client::Launch;
use crate::error::{Doing, Error, Result};
use crate::input::Input;
use crate::limits::WAIT_MAX;
use crate::output::{Output, read_lines};
use crate::process_tree;
use crate::watched::Watched;

/// Dropping it kills the client and everything it started.
#[derive(Debug)]
pub struct Headless {
    launch: Launch,
    pid: u32,
    input: Option<Input>,
    heard: Arc<Watched<Heard>>,
}

#[derive(Debug, Default)]
struct Heard {
    out: Output,
    err: Output,
    ended: Option<ExitStatus>,
}

impl Headless {
    pub(crate) fn start(launch: Launch) -> Result<Self> {
        let mut child = Command::new(&launch.program)
            .args(&launch.arguments)
            .current_dir(&launch.folder)
            .env_clear()
            .envs(&launch.environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .doing(format!("start {}", launch.program.display()))?;
        let heard = Arc::new(Watched::<Heard>::default());
        let pid = child.id();
        let input = child.stdin.take().map(Input::to).transpose()?;
        listen(child.stdout.take(), &heard, |heard| &mut heard.out)?;
        listen(child.stderr.take(), &heard, |heard| &mut heard.err)?;
        let started = Self { launch, pid, input, heard: Arc::clone(&heard) };
        spawn(move || await_end(child, &heard))?;
        Ok(started)
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Standard output so far.
    pub fn lines(&self) -> Vec<String> {
        self.heard.read(|heard| heard.out.lines().to_vec())
    }

    /// Standard error so far.
    pub fn errors(&self) -> Vec<String> {
        self.heard.read(|heard| heard.err.lines().to_vec())
    }

    pub fn send(&self, message: &Value) -> Result<()> {
        self.send_line(&message.to_string())
    }

    pub fn send_line(&self, line: &str) -> Result<()> {
        match &self.input {
            Some(input) => input.send(format!("{line}\n").into_bytes()),
            None => Err(std::io::Error::from(std::io::ErrorKind::BrokenPipe))
                .doing("write: input is closed"),
        }
    }

    /// The end of its input, which many clients take as "that was all".
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Waits for a line of standard output, past or future; the first such one is returned.
    pub fn wait_for_line(&self, what: &str, wanted: impl Fn(&str) -> bool) -> Result<String> {
        self.wait(what, |heard| heard.out.lines().iter().find(|line| wanted(line)).cloned())
    }

    /// The same for lines that are JSON.
    pub fn wait_for_json(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
        self.wait(what, |heard| {
            let values =
                heard.out.lines().iter().filter_map(|line| serde_json::from_str(line).ok());
            values.into_iter().find(|value| wanted(value))
        })
    }

    /// Waits for the client's end, and its output's.
    pub fn wait_for_exit(&self) -> Result<ExitStatus> {
        let ended = self.heard.wait(WAIT_MAX, |heard| heard.ended.filter(|_| heard.is_over()));
        ended.ok_or_else(|| self.timed_out("the client's end"))
    }

    /// kill -9 of the client alone: what it started lives on, as it would.
    pub fn kill(&self) -> Result<()> {
        if self.is_alive() {
            process_tree::kill_one(self.pid).doing(format!("kill {}", self.pid))?;
        }
        let ended = self.heard.wait(WAIT_MAX, |heard| heard.ended);
        ended.map(drop).ok_or_else(|| self.timed_out("the client's end"))
    }

    fn is_alive(&self) -> bool {
        self.heard.read(|heard| heard.ended.is_none())
    }

    fn wait<R>(&self, what: &str, look: impl Fn(&Heard) -> Option<R>) -> Result<R> {
        let found = self.heard.wait(WAIT_MAX, |heard| match (look(heard), heard.ended) {
            (Some(found), _) => Some(Ok(found)),
            (None, Some(status)) if heard.is_over() => Some(Err(Error::Ended {
                client: self.launch.name.to_owned(),
                ending: status.to_string(),
                what: what.to_owned(),
                seen: heard.tail(),
            })),
            (None, _) => None,
        });
        found.unwrap_or_else(|| Err(self.timed_out(what)))
    }

    fn timed_out(&self, what: &str) -> Error {
        let seen = self.heard.read(Heard::tail);
        Error::TimedOut { what: what.to_owned(), waited: WAIT_MAX, seen }
    }
}

impl Drop for Headless {
    fn drop(&mut self) {
        let root = self.is_alive().then_some(self.pid);
        process_tree::kill(&self.launch.marker(), root);
    }
}

impl Heard {
    fn is_over(&self) -> bool {
        self.ended.is_some() && self.out.is_closed() && self.err.is_closed()
    }

    fn tail(&self) -> String {
        format!("{}\n--- standard error ---\n{}", self.out.tail(), self.err.tail())
    }
}

fn listen(
    pipe: Option<impl Read + Send + 'static>,
    heard: &Arc<Watched<Heard>>,
    output: fn(&mut Heard) -> &mut Output,
) -> Result<()> {
    let pipe = pipe.ok_or_else(|| Error::Terminal("a client without pipes".into()))?;
    let heard = Arc::clone(heard);
    spawn(move || {
        read_lines(pipe, |line| heard.change(|heard| output(heard).add(line)));
        heard.change(|heard| output(heard).close());
    })
}

fn await_end(mut child: Child, heard: &Watched<Heard>) {
    match child.wait() {
        Ok(status) => heard.change(|heard| heard.ended = Some(status)),
        Err(error) => eprintln!("testbed: cannot wait for a client: {error}"),
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> Result<()> {
    let thread = std::thread::Builder::new().name("client".into()).spawn(work);
    thread.map(drop).doing("start a thread for a client")
}
