//! One agent under its runner, as a test sees it: orders in, what was told out.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use qd_harness::driver::{Cannot, Command, Launch, Protocol, Report};
use qd_runners::agents::{AgentJob, Exit, Order, Told, limits, run};
use qd_runners::warden::Warden;
use qd_session::decision::{Decision, Scope};
use qd_session::machine::{Process, ToolCall, TroubleKind};
use qd_testbed::{Client, Home};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How long a test waits for a report, and a real client may take to come up on a machine that
/// others load; a wait that succeeds costs nothing.
const WAIT_MAX: Duration = Duration::from_secs(240);

pub struct Agent {
    runtime: Runtime,
    orders: Option<mpsc::Sender<Order>>,
    told: mpsc::Receiver<Told>,
    cancel: CancellationToken,
    running: Option<JoinHandle<()>>,
    /// Everything told so far, for a failure's message.
    heard: VecDeque<String>,
    process: Process,
    pub pid: Option<u32>,
    pub vendor_session: Option<Arc<str>>,
}

pub const ALLOW: Decision = Decision::Allow { input: None, scope: Scope::Once };

pub fn deny(message: &str) -> Decision {
    Decision::Deny { message: Some(message.to_owned()), interrupt: false }
}

pub fn warden() -> Warden {
    Warden::at(Path::new(env!("CARGO_BIN_EXE_qd-warden")), &[])
}

impl Agent {
    /// A real client: its program, environment and arguments are the testbed's.
    pub fn of_client(client: &Client, home: &Home, protocol: Protocol, launch: Launch) -> Self {
        let (arguments, environment) = client.command_line();
        let mut job = AgentJob::new(client.program_path(), home.workspace(), warden());
        job.start_max = WAIT_MAX;
        job.environment =
            environment.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let cwd = home.workspace().display().to_string();
        let arguments = arguments.iter().cloned().chain(launch.arguments.clone()).collect();
        Self::start(job, protocol, Launch { cwd, arguments, ..launch })
    }

    /// A shell script in the role of an agent.
    pub fn of_script(script: &str, start_max: Duration, protocol: Protocol) -> Self {
        let mut job = AgentJob::new("/bin/sh", std::env::temp_dir(), warden());
        job.start_max = start_max;
        job.environment.extend(std::env::var("PATH").map(|path| ("PATH".to_owned(), path)));
        let arguments = vec!["-c".to_owned(), script.to_owned()];
        Self::start(job, protocol, Launch { arguments, ..Launch::default() })
    }

    pub fn of_program(program: PathBuf) -> Self {
        let job = AgentJob::new(program, std::env::temp_dir(), warden());
        Self::start(job, Protocol::ClaudeCode, Launch::default())
    }

    fn start(job: AgentJob, protocol: Protocol, launch: Launch) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let (orders, order_queue) = mpsc::channel(limits::ORDERS_MAX);
        let (tell, told) = mpsc::channel(limits::REPORTS_MAX);
        let cancel = CancellationToken::new();
        let driver = protocol.driver(launch);
        let process = driver.process();
        let running = runtime.spawn(run(job, driver, order_queue, tell, cancel.clone()));
        Self {
            runtime,
            orders: Some(orders),
            told,
            cancel,
            running: Some(running),
            heard: VecDeque::new(),
            process,
            pid: None,
            vendor_session: None,
        }
    }

    pub fn order(&mut self, command: Command) -> Result<(), Cannot> {
        let (order, taken) = Order::new(command);
        let orders = self.orders.as_ref().expect("the agent takes orders");
        self.runtime.block_on(async {
            orders.send(order).await.expect("the runner lives");
            tokio::time::timeout(WAIT_MAX, taken).await.expect("in time").expect("an answer")
        })
    }

    /// The runner may be gone before it is asked.
    pub fn try_order(&mut self, command: Command) -> bool {
        let orders = self.orders.as_ref().expect("the agent takes orders");
        orders.try_send(Order::new(command).0).is_ok()
    }

    pub fn prompt(&mut self, text: &str) {
        self.order(Command::Prompt { text: text.into() }).expect("it takes a prompt");
    }

    pub fn decide(&mut self, call: &ToolCall, decision: Decision) {
        let call = call.call_id.clone();
        self.order(Command::Decide { call, decision }).expect("it takes the decision");
    }

    /// Takes in what is told until something is as wanted.
    #[track_caller]
    pub fn wait_for<T>(&mut self, what: &str, wanted: impl Fn(&Told) -> Option<T>) -> T {
        loop {
            let told = self.next(what);
            if let Some(found) = wanted(&told) {
                return found;
            }
            // An agent with one process for each turn outlives them.
            if let (Told::Exited(exit), Process::WholeSession) = (&told, self.process) {
                panic!("it ended before {what}: {exit:?}; {:#?}", self.heard);
            }
        }
    }

    #[track_caller]
    fn next(&mut self, what: &str) -> Told {
        let told = &mut self.told;
        let told =
            self.runtime.block_on(async { tokio::time::timeout(WAIT_MAX, told.recv()).await });
        let Ok(Some(told)) = told else { panic!("no {what}: {told:?}; {:#?}", self.heard) };
        match &told {
            Told::Started { pid, .. } => self.pid = Some(*pid),
            Told::Report(Report::VendorSession { id }) => self.vendor_session = Some(id.clone()),
            Told::Report(_) | Told::Exited(_) => {}
        }
        if !matches!(told, Told::Report(Report::Alive | Report::Delta(_))) {
            let text: String = format!("{told:?}").chars().take(600).collect();
            self.heard.push_back(text);
        }
        if self.heard.len() > 60 {
            self.heard.pop_front();
        }
        told
    }

    #[track_caller]
    pub fn ready(&mut self) {
        self.wait_for("readiness", |told| (*told == Told::Report(Report::Ready)).then_some(()));
    }

    #[track_caller]
    pub fn asked(&mut self) -> ToolCall {
        self.wait_for("a permission", |told| {
            if let Told::Report(Report::ApprovalAsked(call)) = told {
                Some(call.clone())
            } else {
                None
            }
        })
    }

    #[track_caller]
    pub fn questioned(&mut self) -> ToolCall {
        self.wait_for("a question", |told| {
            if let Told::Report(Report::QuestionAsked(call)) = told {
                Some(call.clone())
            } else {
                None
            }
        })
    }

    /// The end of a call, and whether it went well.
    #[track_caller]
    pub fn tool_ended(&mut self) -> bool {
        self.wait_for("the end of a tool", |told| {
            if let Told::Report(Report::ToolEnded { is_error, .. }) = told {
                Some(!*is_error)
            } else {
                None
            }
        })
    }

    /// Why the turn failed.
    #[track_caller]
    pub fn failed(&mut self) -> TroubleKind {
        self.wait_for("a failure", |told| {
            let Told::Report(Report::Failed(trouble)) = told else { return None };
            Some(trouble.trouble)
        })
    }

    /// The turn's last text.
    #[track_caller]
    pub fn completed(&mut self) -> String {
        self.wait_for("the turn's end", |told| {
            if let Told::Report(Report::Failed(trouble)) = told {
                panic!("the turn failed: {trouble:?}");
            }
            let Told::Report(Report::Completed { text, .. }) = told else { return None };
            Some(text.as_deref().unwrap_or_default().to_owned())
        })
    }

    #[track_caller]
    pub fn exited(&mut self) -> Exit {
        self.wait_for("the end", |told| {
            if let Told::Exited(exit) = told { Some(exit.clone()) } else { None }
        })
    }

    /// Stops it politely and waits for its end.
    #[track_caller]
    pub fn stop(&mut self) -> Exit {
        self.order(Command::Stop).expect("a stop is always taken");
        self.exited()
    }

    /// Cancels it; when this returns, the runner is gone.
    pub fn cancel(&mut self) {
        self.cancel.cancel();
        // A runner that tells something to nobody does not wait for them.
        self.told.close();
        if let Some(running) = self.running.take() {
            let ended =
                self.runtime.block_on(async { tokio::time::timeout(WAIT_MAX, running).await });
            ended.expect("it ends when it is told to").expect("it does not panic");
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.cancel();
    }
}
