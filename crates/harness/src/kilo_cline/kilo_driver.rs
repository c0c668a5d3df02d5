//! Driving Kilo up to 0.26 over `--json-io`.
//!
//! It waits for one thing at a time, and an answer names nothing: the line answers what is open.
//! A permission of its stays under review until its own policy had time to allow it. It keeps no
//! promise to answer a cancel, and ends by a signal.

use qd_session::decision::{Answer, Decision};
use qd_session::id::CallId;
use qd_session::machine::Process;
use qd_session::moment::Timestamp;

use super::reply;
use super::talk::Talk;
use crate::driver::{Cannot, Command, GO_ON, Invocation, Launch, Mode, Output, Report, Resume};

#[derive(Debug)]
pub struct Driver {
    launch: Launch,
    talk: Talk,
    phase: Phase,
    /// What is to be said once the request that failed before it has been answered.
    unsaid: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Starting,
    /// Nothing was asked of it yet: a prompt makes a task.
    Fresh,
    /// It has a task, and a prompt goes on with it.
    InTask,
    /// Its last request failed, and it waits to be told to try again.
    Failed,
}

impl Driver {
    pub fn new(launch: Launch) -> Self {
        Self { launch, talk: Talk::default(), phase: Phase::Starting, unsaid: None }
    }

    fn invocation(&self) -> Invocation {
        let invocation = Invocation::of(&self.launch, &["--json-io", "-w", &self.launch.cwd]);
        let invocation = match self.launch.mode {
            Mode::Yolo => invocation.and(&["--yolo"]),
            Mode::Plan => invocation.and(&["--mode", PLANNING]),
            Mode::Own | Mode::Ask | Mode::Edit => invocation,
        };
        let invocation = match &self.launch.model {
            Some(model) => invocation.and(&["--model", model]),
            None => invocation,
        };
        match &self.launch.resume {
            Some(Resume::Id(id)) => invocation.and(&["--session", id]),
            Some(Resume::Latest) => invocation.and(&["--continue"]),
            None => invocation,
        }
    }

    /// While it comes up, its first words are about that and nothing else.
    fn starting(&mut self, now: Timestamp, line: &[u8]) -> Vec<Output> {
        // A stream that runs tells of its end: that of the task it was resumed with, or of none.
        self.talk.running = true;
        let welcomed = says_welcome(line);
        let mut out = self.talk.hear(now, line);
        self.talk.running = false;
        let mut ready = welcomed && self.launch.resume.is_none();
        let mut refused = None;
        out.retain(|output| {
            if let Output::Report(Report::Failed(trouble)) = output {
                refused = Some(trouble.message.clone());
            }
            ready |= matches!(output, Output::Report(Report::Completed { .. }));
            // What else it tells of work is what it did before it was resumed.
            matches!(
                output,
                Output::Report(
                    Report::VendorSession { .. }
                        | Report::ModeChanged { .. }
                        | Report::Spent(_)
                        | Report::Unrecognised { .. }
                )
            )
        });
        if let Some(why) = refused {
            out.push(Output::GiveUp(format!("Kilo is not set up: {why}").into()));
        } else if ready {
            let resumed = self.launch.resume.is_some();
            self.phase = if resumed { Phase::InTask } else { Phase::Fresh };
            out.push(Output::Report(Report::Ready));
        }
        out
    }

    /// What comes out of a turn: its end is where the next one begins.
    fn noted(&mut self, now: Timestamp, out: Vec<Output>) -> Vec<Output> {
        let mut noted = Vec::new();
        for output in out {
            if matches!(output, Output::Report(Report::Failed(_))) {
                self.phase = Phase::Failed;
            } else if matches!(output, Output::Report(Report::Completed { .. })) {
                self.phase = Phase::InTask;
                // What failed before is answered: the turn is the one that was asked for since.
                if let Some(text) = self.unsaid.take() {
                    noted.extend(self.talk.begin(now, &text, Some(&reply::message(&text))));
                    continue;
                }
            }
            noted.push(output);
        }
        noted
    }

    fn prompt(&mut self, now: Timestamp, text: &str) -> Result<Vec<Output>, Cannot> {
        if self.talk.running {
            return Err(Cannot::Busy);
        }
        let line = match self.phase {
            Phase::Starting => return Err(Cannot::NotReady),
            // It hears nothing but whether to try again what failed.
            Phase::Failed => {
                let before = self.unsaid.take();
                self.unsaid =
                    Some(before.map_or(text.to_owned(), |said| format!("{said}\n\n{text}")));
                return self.retry(now);
            }
            Phase::Fresh => reply::new_task(text),
            Phase::InTask => reply::message(text),
        };
        Ok(self.talk.begin(now, text, Some(&line)))
    }

    fn retry(&mut self, now: Timestamp) -> Result<Vec<Output>, Cannot> {
        match self.phase {
            Phase::Failed => {
                self.phase = Phase::InTask;
                Ok(self.talk.begin(now, "", Some(&reply::go_on())))
            }
            Phase::InTask => self.prompt(now, GO_ON),
            Phase::Starting | Phase::Fresh => {
                Err(Cannot::NotOffered("nothing of Kilo's has failed"))
            }
        }
    }

    fn decide(
        &mut self,
        now: Timestamp,
        call: &CallId,
        decision: &Decision,
    ) -> Result<Vec<Output>, Cannot> {
        let question = self.talk.asks(call).ok_or(Cannot::NotAsked)?;
        let fits = question == matches!(decision, Decision::Answer { .. });
        let lines = reply::kilo(decision).filter(|_| fits);
        let lines = lines.ok_or(Cannot::NotOffered("Kilo takes no such answer to this"))?;
        self.talk.answered();
        Ok(lines.iter().flat_map(|line| self.talk.told(now, line)).collect())
    }
}

impl crate::driver::Driver for Driver {
    fn process(&self) -> Process {
        Process::WholeSession
    }

    fn start(&mut self) -> Vec<Output> {
        vec![Output::Start(self.invocation())]
    }

    fn handle_line(&mut self, now: Timestamp, line: &[u8]) -> Vec<Output> {
        if self.phase == Phase::Starting {
            return self.starting(now, line);
        }
        let out = self.talk.hear(now, line);
        self.noted(now, out)
    }

    fn command(&mut self, now: Timestamp, command: &Command) -> Result<Vec<Output>, Cannot> {
        match command {
            Command::Prompt { text } => self.prompt(now, text),
            Command::Retry => self.retry(now),
            Command::Decide { call, decision } => self.decide(now, call, decision),
            Command::AnswerInWords { call, text } => {
                let answer = Answer { question: String::new(), values: vec![text.to_string()] };
                self.decide(now, call, &Decision::Answer { answers: vec![answer] })
            }
            Command::Interrupt if !self.talk.running => Err(Cannot::Idle),
            Command::Interrupt => {
                self.unsaid = None;
                Ok(vec![Output::Write(reply::cancel_task())])
            }
            Command::SetMode(Mode::Plan) => {
                Ok(vec![Output::Write(reply::set_mode(PLANNING, None))])
            }
            Command::SetMode(Mode::Ask) => Ok(vec![Output::Write(reply::set_mode(CODING, None))]),
            Command::SetMode(Mode::Own | Mode::Edit | Mode::Yolo) => {
                Err(Cannot::NotOffered("Kilo learns what it may do when it is started"))
            }
            Command::Release => Ok(Vec::new()),
            Command::Stop => Ok(vec![Output::CloseInput, Output::Terminate]),
        }
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        self.talk.stream.next_timeout()
    }

    fn handle_timeout(&mut self, now: Timestamp) -> Vec<Output> {
        let out = self.talk.timeout(now);
        self.noted(now, out)
    }
}

fn says_welcome(line: &[u8]) -> bool {
    super::wire::parse(line).is_some_and(|line| line.r#type.as_deref() == Some("welcome"))
}

const PLANNING: &str = "architect";
const CODING: &str = "code";
