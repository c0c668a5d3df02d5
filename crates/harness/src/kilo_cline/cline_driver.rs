//! Driving Cline 2 by `task --json`: one process for each turn.
//!
//! It reads no answers. What it asks for is shown, and can only be refused, by ending the turn; to
//! let it work it is started with YOLO. The turn is over when its process is, for the task is on
//! disk only then; the next turn goes on with that task by its id.

use qd_session::decision::Decision;
use qd_session::id::CallId;
use qd_session::machine::Process;
use qd_session::moment::Timestamp;

use super::reply::CLINE_CANNOT;
use super::talk::Talk;
use crate::driver::{Cannot, Command, GO_ON, Invocation, Launch, Mode, Output, Report};

#[derive(Debug)]
pub struct Driver {
    launch: Launch,
    mode: Mode,
    phase: Phase,
    talk: Talk,
    /// What it was told last, and when.
    told: String,
    told_at: Timestamp,
    /// How the turn ended, told when its process has.
    ending: Option<Report>,
    interrupting: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Looking whether it can be started at all.
    Probing,
    Idle,
    Running,
}

impl Driver {
    pub fn new(launch: Launch) -> Self {
        let talk = Talk::default();
        Self {
            mode: launch.mode,
            launch,
            phase: Phase::Probing,
            talk,
            told: String::new(),
            told_at: Timestamp::ZERO,
            ending: None,
            interrupting: false,
        }
    }

    fn invocation(&self, text: &str) -> Invocation {
        let mut invocation = Invocation::of(&self.launch, &["task", "--json"]);
        match self.mode {
            Mode::Yolo => invocation = invocation.and(&["-y"]),
            Mode::Plan => invocation = invocation.and(&["-p"]),
            Mode::Own | Mode::Ask | Mode::Edit => {}
        }
        if let Some(model) = &self.launch.model {
            invocation = invocation.and(&["-m", model]);
        }
        let task = self.talk.stream.id.as_ref().or(self.launch.resume_id());
        if let Some(task) = task {
            invocation = invocation.and(&["-T", task]);
        }
        // A prompt that begins with a dash is a prompt.
        invocation.and(&["--", text])
    }

    fn prompt(&mut self, now: Timestamp, text: &str) -> Result<Vec<Output>, Cannot> {
        match self.phase {
            Phase::Probing => Err(Cannot::NotReady),
            Phase::Running => Err(Cannot::Busy),
            Phase::Idle => {
                let start = Output::Start(self.invocation(text));
                let id = self.talk.stream.id.take();
                // Each process has a stream of its own; the task is the same.
                self.talk = Talk::default();
                self.talk.stream.id = id.or(self.launch.resume_id().cloned());
                let mut out = vec![start];
                out.extend(self.talk.begin(now, text, None));
                (self.phase, self.interrupting) = (Phase::Running, false);
                text.clone_into(&mut self.told);
                self.told_at = now;
                Ok(out)
            }
        }
    }

    /// Without a task there is nothing to go on with.
    fn retry(&mut self, now: Timestamp) -> Result<Vec<Output>, Cannot> {
        let has_task = self.talk.stream.id.is_some() || self.launch.resume_id().is_some();
        let told = self.told.clone();
        let text = if has_task || told.is_empty() { GO_ON } else { told.as_str() };
        self.prompt(now, text)
    }

    /// One that goes on with a task prints what was said in it before.
    fn is_past(&self, line: &[u8]) -> bool {
        let told_at = super::wire::parse(line).and_then(|line| line.ts);
        told_at.is_some_and(|at| at < self.told_at.0)
    }

    /// The end of a turn waits for the end of its process.
    fn held_back(&mut self, out: Vec<Output>) -> Vec<Output> {
        let (endings, rest): (Vec<Output>, Vec<Output>) = out.into_iter().partition(|output| {
            matches!(output, Output::Report(Report::Completed { .. } | Report::Failed(_)))
        });
        for ending in endings {
            if let Output::Report(ending) = ending {
                self.ending = Some(ending);
            }
        }
        rest
    }

    fn decide(&mut self, call: &CallId, decision: &Decision) -> Result<Vec<Output>, Cannot> {
        self.talk.asks(call).ok_or(Cannot::NotAsked)?;
        match decision {
            Decision::Deny { .. } | Decision::RejectPlan { .. } => {
                self.interrupting = true;
                Ok(vec![Output::Terminate])
            }
            Decision::Allow { .. } | Decision::Answer { .. } | Decision::ApprovePlan { .. } => {
                Err(Cannot::NotOffered(CLINE_CANNOT))
            }
        }
    }
}

impl crate::driver::Driver for Driver {
    fn process(&self) -> Process {
        Process::OneTurn
    }

    fn start(&mut self) -> Vec<Output> {
        vec![Output::Start(Invocation::of(&self.launch, &["--version"]))]
    }

    fn handle_line(&mut self, now: Timestamp, line: &[u8]) -> Vec<Output> {
        if self.phase != Phase::Running || self.is_past(line) {
            return Vec::new();
        }
        let out = self.talk.hear(now, line);
        self.held_back(out)
    }

    fn command(&mut self, now: Timestamp, command: &Command) -> Result<Vec<Output>, Cannot> {
        match command {
            Command::Prompt { text } => self.prompt(now, text),
            Command::Retry => self.retry(now),
            Command::Decide { call, decision } => self.decide(call, decision),
            Command::AnswerInWords { call, .. } => {
                self.talk.asks(call).ok_or(Cannot::NotAsked)?;
                Err(Cannot::NotOffered(CLINE_CANNOT))
            }
            Command::Interrupt if self.phase != Phase::Running => Err(Cannot::Idle),
            Command::Interrupt => {
                self.interrupting = true;
                Ok(vec![Output::Terminate])
            }
            // From the next turn on.
            Command::SetMode(mode) => {
                self.mode = *mode;
                let mode = if *mode == Mode::Yolo { "yolo" } else { "ask" };
                Ok(vec![Output::Report(Report::ModeChanged { mode: mode.into() })])
            }
            Command::Release => Ok(Vec::new()),
            Command::Stop => {
                self.interrupting = true;
                Ok(vec![Output::CloseInput, Output::Terminate])
            }
        }
    }

    fn handle_exit(&mut self, code: Option<i32>) -> Vec<Output> {
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Probing if code == Some(0) => vec![Output::Report(Report::Ready)],
            Phase::Probing => vec![Output::GiveUp("Cline cannot be started".into())],
            Phase::Idle => Vec::new(),
            Phase::Running => {
                let told = self.ending.take();
                let interrupted = Report::Completed { text: None, cut_off: false };
                let ending = match (self.interrupting, told) {
                    (true, _) => Some(interrupted),
                    (false, Some(told)) => Some(told),
                    (false, None) if code == Some(0) => {
                        let text = self.talk.stream.said.as_deref().map(Into::into);
                        Some(Report::Completed { text, cut_off: false })
                    }
                    // Its exit says the rest.
                    (false, None) => None,
                };
                ending.map(Output::Report).into_iter().collect()
            }
        }
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        self.talk.stream.next_timeout().filter(|_| self.phase == Phase::Running)
    }

    fn handle_timeout(&mut self, now: Timestamp) -> Vec<Output> {
        let out = self.talk.timeout(now);
        self.held_back(out)
    }
}
