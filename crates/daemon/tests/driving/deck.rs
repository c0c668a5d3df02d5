//! A broker with one driven session, a journal of what it wrote, and its runners by hand.

use qd_broker::desk::{Answering, Commanding, Declined};
use qd_broker::driving::{Ground, Job, Report, Sending, Spawning, Work};
use qd_broker::survey::{Followed, Survey, Surveyed};
use qd_broker::{Broker, Card, Input, Output};
use qd_harness::native::{StopReason, StreamEvent};
use qd_harness::{Channel, Direction, Harness, Signal};
use qd_session::decision::{By, Command, Decision, Record, Standing};
use qd_session::event::Entry;
use qd_session::id::{CallId, DecisionId, SessionId, TurnId};
use qd_session::logbook::{Brief, Called, Frozen, Used};
use qd_session::machine::{
    Change, HookConfig, Kind, Process, Setup, Shown, ToolOrder, ToolOutcome, Tools,
};
use qd_session::moment::Timestamp;
use qd_session::policy::{Preset, Tightening};
use qd_session::seed::Seed;
use serde_json::{Value, json};

pub const WORKSPACE: &str = "/home/u/project";

#[derive(Default)]
pub struct Deck {
    pub broker: Broker,
    pub now_ms: u64,
    pub entries: Vec<Entry>,
    pub records: Vec<Record>,
    pub aliases: Vec<(SessionId, Harness, String)>,
    pub jobs: Vec<Job>,
    pub changes: Vec<Shown>,
    pub pieces: Vec<StreamEvent>,
    pub removed: Vec<SessionId>,
    /// In the order in which it came out.
    pub order: Vec<&'static str>,
    decisions: u64,
    /// What its files say.
    pub repository: Tightening,
}

pub fn id() -> SessionId {
    SessionId::from("sess_ours")
}

pub fn brief(preset: Preset) -> Brief {
    let (workspace, model, provider) = (WORKSPACE.into(), None, None);
    Brief { workspace, model, provider, preset, prompt: None, is_chat: false }
}

impl Deck {
    /// A session with our own tools that waits for its first prompt.
    pub fn native(preset: Preset, hooks: Vec<HookConfig>) -> Self {
        let setup = Setup { tools: Tools::Ours, process: Process::WholeSession, hooks };
        Self::with(Harness::Native, setup, brief(preset))
    }

    /// A session of Claude Code that waits for its first prompt.
    pub fn of_claude_code() -> Self {
        let setup =
            Setup { tools: Tools::Theirs, process: Process::WholeSession, hooks: Vec::new() };
        Self::with(Harness::ClaudeCode, setup, brief(Preset::Careful))
    }

    pub fn with(harness: Harness, setup: Setup, brief: Brief) -> Self {
        let mut deck = Self { now_ms: 1_800_000_000_000, ..Self::default() };
        deck.broker.sow(Seed(7));
        let (session, vendor_id, trouble) = (id(), None, None);
        let spawning = Spawning { session, harness, setup, brief, vendor_id, trouble };
        deck.hands_in(Input::Spawned(Box::new(spawning)));
        deck.surveys();
        deck.reports(Report::Ready);
        deck
    }

    pub fn now(&mut self) -> Timestamp {
        self.now_ms += 10;
        Timestamp(self.now_ms)
    }

    pub fn take(&mut self, outputs: Vec<Output>) {
        let mut surveys = Vec::new();
        for output in outputs {
            match output {
                Output::Append(entry) => {
                    self.order.push("entry");
                    self.entries.push(entry);
                }
                Output::Record(record) => {
                    self.order.push("record");
                    self.records.push(*record);
                }
                Output::Found { session, harness, vendor_id } => {
                    // The last one written wins.
                    self.aliases.retain(|(_, of, id)| *of != harness || **id != *vendor_id);
                    self.aliases.push((session, harness, vendor_id.to_string()));
                }
                Output::Run(job) => {
                    self.order.push("job");
                    self.jobs.push(*job);
                }
                Output::Changed(shown) => {
                    self.order.push("change");
                    self.changes.push(*shown);
                }
                Output::Streamed(event) => self.pieces.push(*event),
                Output::Survey(survey) => surveys.push(survey),
                Output::Remove(session) => self.removed.push(session),
                Output::Show(_)
                | Output::Locate(_)
                | Output::LookInto { .. }
                | Output::Carry(_)
                | Output::Release(_)
                | Output::Settled(_) => {}
            }
        }
        for Survey { folder, request } in surveys {
            let followed = request.map(|(request, named)| {
                let led_to = named.iter().map(|_| None).collect();
                Followed { request, named, led_to }
            });
            let tightening = self.repository.clone();
            self.hands_in(Input::Surveyed(Surveyed { folder, tightening, followed }));
        }
    }

    pub fn hands_in(&mut self, input: Input<'_>) {
        let now = self.now();
        let outputs = self.broker.handle(now, input);
        self.take(outputs);
    }

    pub fn reports(&mut self, report: Report) {
        self.hands_in(Input::Reported { session: id(), report });
    }

    pub fn waits(&mut self, ms: u64) {
        self.now_ms += ms;
        self.hands_in(Input::Woken);
    }

    pub fn hook(&mut self, payload: &Value) {
        self.signal(Harness::ClaudeCode, Channel::Hook, payload);
    }

    pub fn signal(&mut self, harness: Harness, channel: Channel, payload: &Value) {
        let (now, payload) = (self.now(), payload.to_string().into_bytes());
        let signal = Signal {
            at: now,
            seq: 0,
            channel,
            direction: Direction::FromAgent,
            file: None,
            payload: &payload,
        };
        let outputs = self.broker.handle(now, Input::Signal { harness, signal });
        self.take(outputs);
    }

    pub fn card(&self) -> Card {
        self.broker.card(Timestamp(self.now_ms), &id()).expect("a card")
    }

    pub fn kind(&self) -> Kind {
        self.card().drive.expect("it is driven").state
    }

    /// The next job, by what it is.
    pub fn job<T>(&mut self, wanted: impl Fn(&Work) -> Option<T>) -> T {
        let found = self.jobs.iter().position(|job| wanted(&job.work).is_some());
        let names: Vec<&str> = self.jobs.iter().map(|job| job.work.name()).collect();
        let job = self.jobs.remove(found.unwrap_or_else(|| panic!("only {names:?}")));
        wanted(&job.work).expect("it was just found")
    }

    pub fn sending(&mut self) -> Sending {
        self.job(|work| {
            let Work::Send(sending) = work else { return None };
            Some((**sending).clone())
        })
    }

    pub fn orders(&mut self) -> Vec<ToolOrder> {
        self.job(|work| {
            let Work::RunTools { tools, .. } = work else { return None };
            Some(tools.clone())
        })
    }

    pub fn command(&mut self, command: Command) -> Result<Standing, Declined> {
        self.decisions += 1;
        let decision = DecisionId::new(format!("dec_{}", self.decisions));
        let commanding = Commanding { decision, session: id(), by: by(), command, key: None };
        let now = self.now();
        let (taken, outputs) = self.broker.command(now, commanding);
        self.take(outputs);
        taken.map(|taken| taken.standing)
    }

    pub fn prompt(&mut self, text: &str) -> TurnId {
        self.command(Command::Prompt { text: text.to_owned() }).expect("taken");
        let is_held = |job: &Job| matches!(job.work, Work::Survey { turn: None, .. });
        if self.jobs.iter().any(is_held) {
            self.surveys();
        }
        self.sending().turn
    }

    /// Answers the first request on the card.
    pub fn answer(&mut self, answer: Decision) -> Result<Standing, Declined> {
        self.decisions += 1;
        let request = self.card().requests[0].key.clone().expect("a key");
        let decision = DecisionId::new(format!("dec_{}", self.decisions));
        let answering = Answering {
            decision,
            request,
            by: by(),
            rule: None,
            answer,
            revision: None,
            key: None,
        };
        let now = self.now();
        let (taken, outputs) = self.broker.answer(now, answering);
        self.take(outputs);
        taken.map(|taken| taken.standing)
    }

    /// The model answers with these calls, and they are looked at.
    pub fn answers(&mut self, turn: &TurnId, calls: &[(&str, &str, Value)]) {
        self.completes(turn, calls);
        self.surveys();
    }

    pub fn completes(&mut self, turn: &TurnId, calls: &[(&str, &str, Value)]) {
        let called = |(call, name, arguments): &(&str, &str, Value)| Called {
            call_id: CallId::from(*call),
            name: (*name).into(),
            arguments: arguments.clone(),
        };
        let frozen = Frozen {
            calls: calls.iter().map(called).collect(),
            message: json!({"blocks": calls.len()}),
            used: Used { input_tokens: 100, output_tokens: 10, ..Used::default() },
            ..Frozen::default()
        };
        let (turn, text) = (turn.clone(), Some("All done.".into()));
        let frozen = Some(Box::new(frozen));
        self.reports(Report::Completed { turn, text, stop: StopReason::Done, frozen });
    }

    /// Whoever was sent to look at the ground comes back.
    pub fn surveys(&mut self) {
        let turn = self.job(|work| {
            let Work::Survey { turn, .. } = work else { return None };
            Some(turn.clone())
        });
        let mutating = vec!["bash".into(), "write_file".into()];
        let tightening = self.repository.clone();
        let ground = Box::new(Ground { mutating, tightening });
        self.reports(Report::Surveyed { turn, ground });
    }

    pub fn runs(&mut self, order: &ToolOrder, outcome: ToolOutcome) {
        self.reports(Report::ToolStarted { run: order.run.clone() });
        self.reports(Report::ToolFinished { run: order.run.clone(), outcome });
    }

    /// The daemon is killed: everything is rebuilt from what was written.
    pub fn restart(&mut self) {
        let mut broker = Broker::default();
        broker.sow(Seed(self.now_ms));
        let mut last = Default::default();
        for record in &self.records {
            broker.recall_record(record);
            last = record.link();
        }
        broker.follow_records(last);
        let now = self.now();
        for (session, harness, vendor_id) in &self.aliases {
            if broker.session(session).is_some() {
                broker.also_known(*harness, vendor_id.as_str().into(), session);
                continue;
            }
            let mut folded = qd_session::Session::new(session.clone());
            for entry in self.entries.iter().filter(|entry| entry.session == *session) {
                folded.apply(entry);
            }
            let (vendor_id, session) = (vendor_id.as_str().into(), Box::new(folded));
            broker.handle(now, Input::Restored { harness: *harness, vendor_id, session });
        }
        self.broker = broker;
        self.jobs.clear();
        let outputs = self.broker.restart_driven(now);
        self.take(outputs);
    }

    pub fn errors(&self) -> Vec<String> {
        let errors = self.changes.iter().filter_map(|shown| match &shown.change {
            Change::SessionError(error) => {
                let code = serde_json::to_value(error.code).expect("JSON");
                Some(format!("{}: {}", code.as_str().unwrap_or_default(), error.message))
            }
            Change::StateChanged(_) | Change::ToolLifecycle(_) | Change::HookLifecycle(_) => None,
        });
        errors.collect()
    }

    pub fn written(&self) -> Vec<&'static str> {
        self.records.iter().map(|record| record.body.name()).collect()
    }
}

pub fn by() -> By {
    By { who: "operator".into(), device: "desk".into() }
}

pub fn bash(call: &'static str) -> (&'static str, &'static str, Value) {
    (call, "bash", json!({"command": "make"}))
}

pub fn read(call: &'static str) -> (&'static str, &'static str, Value) {
    (call, "read_file", json!({"path": format!("{WORKSPACE}/README.md")}))
}

pub fn ok(output: &str) -> ToolOutcome {
    ToolOutcome::Succeeded { output: output.into(), is_error: false }
}
