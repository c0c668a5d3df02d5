//! The loop of one agent: wait for a line, an order, a timer or its end, and do what the driver says.

use std::sync::Arc;
use std::time::Duration;

use qd_harness::driver::{Driver, Invocation, Output, Report};
use qd_host::now;
use qd_host::processes::Process;
use qd_session::machine;
use qd_session::moment::Timestamp;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::limits::{DRAIN_MAX, TERMINATE_MAX};
use super::lines::Line;
use super::process::{AgentProcess, Heard};
use super::{AgentJob, Exit, Order, Told};

/// Runs one agent until it ends, its orders do, or it is cancelled. The process tree is dead then,
/// and [`Told::Exited`] was the last word, unless nobody listens any more.
pub async fn run(
    job: AgentJob,
    driver: Box<dyn Driver>,
    mut orders: mpsc::Receiver<Order>,
    told: mpsc::Sender<Told>,
    cancel: CancellationToken,
) {
    let mut runner = Runner::new(job, driver, told);
    let begin = runner.driver.start();
    runner.carry_out(begin).await;
    while runner.goes_on() {
        let timeout = runner.driver.next_timeout();
        let next = tokio::select! {
            biased;
            () = cancel.cancelled() => Next::Cancelled,
            next = next_of(&mut runner.process) => next,
            order = orders.recv() => order.map_or(Next::Cancelled, Next::Order),
            () = until(runner.ready_by) => Next::NotReady,
            () = until(runner.end_by) => Next::StillThere,
            () = until_timeout(timeout) => Next::Timeout,
        };
        match next {
            Next::Cancelled => break,
            Next::Line(line) => runner.line(line).await,
            Next::Exited => runner.exited().await,
            Next::Order(order) => runner.order(order).await,
            Next::NotReady => runner.not_ready(),
            Next::StillThere => runner.still_there(),
            Next::Timeout => {
                let outputs = runner.driver.handle_timeout(now());
                runner.carry_out(outputs).await;
            }
        }
    }
    runner.end().await;
}

enum Next {
    Cancelled,
    Line(Line),
    Exited,
    Order(Order),
    NotReady,
    StillThere,
    Timeout,
}

struct Runner {
    job: AgentJob,
    driver: Box<dyn Driver>,
    told: mpsc::Sender<Told>,
    process: Option<AgentProcess>,
    /// When it must have come up.
    ready_by: Option<Instant>,
    /// When its process must have ended, after it was asked to.
    end_by: Option<Instant>,
    came_up: bool,
    /// It was asked to end, politely.
    stopping: bool,
    /// Why it is not to go on.
    gave_up: Option<Arc<str>>,
    exit_told: bool,
}

impl Runner {
    fn new(job: AgentJob, driver: Box<dyn Driver>, told: mpsc::Sender<Told>) -> Self {
        Self {
            job,
            driver,
            told,
            process: None,
            ready_by: None,
            end_by: None,
            came_up: false,
            stopping: false,
            gave_up: None,
            exit_told: false,
        }
    }

    /// An agent with one process for each turn lives on between them.
    fn goes_on(&self) -> bool {
        let idles = self.driver.process() == machine::Process::OneTurn && !self.stopping;
        self.gave_up.is_none() && !self.told.is_closed() && (self.process.is_some() || idles)
    }

    async fn carry_out(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Start(invocation) => self.start(&invocation).await,
                Output::Write(line) => self.write(line),
                Output::CloseInput => {
                    self.stopping = true;
                    self.process.iter_mut().for_each(AgentProcess::close_input);
                }
                Output::Terminate => self.terminate(),
                Output::Report(report) => {
                    if report == Report::Ready {
                        (self.came_up, self.ready_by) = (true, None);
                    }
                    self.tell(Told::Report(report)).await;
                }
                Output::GiveUp(why) => self.gave_up = Some(why),
            }
        }
    }

    fn terminate(&mut self) {
        if let Some(process) = &self.process {
            process.terminate();
            self.end_by = self.end_by.or(Some(Instant::now() + TERMINATE_MAX));
        }
    }

    /// It does not end when it is asked to: its end is told like any other.
    fn still_there(&mut self) {
        self.end_by = None;
        self.process.iter().for_each(AgentProcess::kill);
    }

    async fn start(&mut self, invocation: &Invocation) {
        if let Some(before) = self.process.take() {
            before.end().await;
        }
        match AgentProcess::start(&self.job, invocation).await {
            Ok(mut process) => {
                // It takes nothing but its arguments, and may wait for the end of its input.
                if self.driver.process() == machine::Process::OneTurn {
                    process.close_input();
                }
                let Process { pid, start } = process.process();
                let started = Told::Started { pid, start };
                self.process = Some(process);
                self.exit_told = false;
                self.ready_by = (!self.came_up).then(|| Instant::now() + self.job.start_max);
                self.tell(started).await;
            }
            Err(error) => {
                let program = self.job.program.display();
                self.gave_up = Some(format!("cannot start {program}: {error}").into());
            }
        }
    }

    fn write(&mut self, line: String) {
        let taken = self.process.as_ref().is_none_or(|process| process.write(line));
        if !taken {
            self.gave_up = Some("the agent does not read its input any more".into());
        }
    }

    async fn line(&mut self, line: Line) {
        let outputs = match line {
            Line::Whole(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => Vec::new(),
            Line::Whole(bytes) => self.driver.handle_line(now(), &bytes),
            Line::Overlong { bytes } => {
                let text = format!("a line of {bytes} bytes was too long to read").into();
                vec![Output::Report(Report::Unrecognised { text })]
            }
        };
        self.carry_out(outputs).await;
    }

    async fn order(&mut self, order: Order) {
        let done = match self.driver.command(now(), &order.command) {
            Ok(outputs) => {
                self.carry_out(outputs).await;
                Ok(())
            }
            Err(cannot) => Err(cannot),
        };
        // Whoever asked may have stopped waiting.
        let _ = order.taken.send(done);
    }

    fn not_ready(&mut self) {
        let seconds = self.job.start_max.as_secs_f32();
        self.gave_up = Some(format!("the agent did not come up within {seconds} seconds").into());
    }

    /// Its process has ended by itself: what it wrote before is still heard.
    async fn exited(&mut self) {
        self.drain().await;
        let Some(mut process) = self.process.take() else { return };
        (self.ready_by, self.end_by) = (None, None);
        let code = process.wait().await;
        let outputs = self.driver.handle_exit(code);
        self.carry_out(outputs).await;
        let (code, stderr) = process.end().await;
        let why = self.gave_up.clone();
        self.tell_exit(code, why, &stderr).await;
    }

    async fn drain(&mut self) {
        let until = Instant::now() + DRAIN_MAX;
        while let Some(process) = &mut self.process {
            match tokio::time::timeout_at(until, process.lines.next()).await {
                Ok(Ok(Some(line))) => self.line(line).await,
                Ok(Ok(None) | Err(_)) | Err(_) => return,
            }
        }
    }

    /// Nothing may be left of it when we go.
    async fn end(mut self) {
        let why = self.gave_up.take();
        match self.process.take() {
            Some(process) => {
                let (_, stderr) = process.end().await;
                self.tell_exit(None, why, &stderr).await;
            }
            None if self.exit_told => {}
            // It was between two processes.
            None => self.tell_exit(self.stopping.then_some(0), why, "").await,
        }
    }

    async fn tell_exit(&mut self, code: Option<i32>, why: Option<Arc<str>>, stderr: &str) {
        let error = match (why, stderr) {
            (Some(why), "") => Some(why),
            (Some(why), stderr) => Some(format!("{why}\n{stderr}").into()),
            (None, "") => None,
            (None, _) if code == Some(0) => None,
            (None, stderr) => Some(stderr.into()),
        };
        self.exit_told = true;
        self.tell(Told::Exited(Exit { code, error })).await;
    }

    async fn tell(&mut self, told: Told) {
        // Where nobody listens any more the loop ends at its next turn.
        let _ = self.told.send(told).await;
    }
}

async fn next_of(process: &mut Option<AgentProcess>) -> Next {
    match process {
        Some(process) => match process.next().await {
            Heard::Line(line) => Next::Line(line),
            Heard::End => Next::Exited,
        },
        None => std::future::pending().await,
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

async fn until_timeout(timeout: Option<Timestamp>) {
    match timeout {
        Some(at) => tokio::time::sleep(Duration::from_millis(at.ms_since(now()))).await,
        None => std::future::pending().await,
    }
}
