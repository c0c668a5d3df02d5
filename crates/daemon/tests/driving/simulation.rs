//! Many sessions in a bad world: tools and hooks that are slow, fail, hang and report twice, models
//! that drop their streams, agents with tools of their own, late reports of old turns, a clock that
//! jumps, an operator who presses everything, and kills between any two writes of the journal. Then
//! calm, and everything settles.
//! A failure prints its seed: `SIM_SEED=42 cargo test -p qd-daemon --test driving simulation`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use qd_broker::desk::{Answering, Commanding};
use qd_broker::driving::{Ground, Job, Report, Sending, Spawning, Work};
use qd_broker::survey::{Followed, Survey, Surveyed};
use qd_broker::{Broker, Input, Output};
use qd_harness::Harness;
use qd_harness::native::{Piece, StopReason, StreamEvent};
use qd_session::Session;
use qd_session::decision::{Answer, By, Command, Decision, Record, Scope};
use qd_session::event::{Entry, Event as JournalEvent};
use qd_session::id::{CallId, DecisionId, HookRunId, RunId, SessionId, TurnId};
use qd_session::logbook::{Brief, Called, Frozen, Message, Used};
use qd_session::machine::{
    CallOutput, Change, Event, FailurePolicy, Fate, HarnessAnswer, HarnessTrouble, HookConfig,
    Kind, Output as Step, Process, RunStatus, Setup, ToolCall, ToolFilter, ToolOrder, ToolOutcome,
    Tools, TroubleKind,
};
use qd_session::moment::Timestamp;
use qd_session::monitor::RequestKind;
use qd_session::policy::{Preset, Tightening};
use qd_session::seed::Seed;
use serde_json::json;

/// Three with our own tools, one whose agent has its own, and one that can be held after a batch.
const SESSIONS: u64 = 5;
const STEPS: u64 = 400;
const CALM_ROUNDS: u64 = 400;
/// Letters of one round of calm; a session that asks for more does not settle.
const CALM_LETTERS: u64 = 10_000;

#[test]
fn whatever_breaks_every_run_ends_once_and_nothing_runs_twice_unasked() {
    let one = std::env::var("SIM_SEED").ok().map(|seed| seed.parse().expect("a number"));
    let seeds = one.map_or(0..200, |seed: u64| seed..seed + 1);
    let mut seen = Seen::default();
    for seed in seeds {
        let run = catch_unwind(AssertUnwindSafe(|| World::new(seed).run()));
        match run {
            Ok(more) => seen.add(&more),
            Err(panic) => {
                eprintln!("SIM_SEED={seed}");
                resume_unwind(panic);
            }
        }
    }
    if one.is_none() {
        let Seen { kinds, statuses, hook_statuses, kills, retried, lost } = &seen;
        let is_seen = |kind: &Kind| *kind == Kind::Idle || kinds.contains(kind);
        assert!(Kind::ALL.iter().all(is_seen), "only {kinds:?} was reached");
        assert_eq!(statuses.len(), 3, "runs ended only as {statuses:?}");
        assert_eq!(hook_statuses.len(), 3, "hooks ended only as {hook_statuses:?}");
        assert!(*kills > 100 && *retried > 10, "{kills} kills, {retried} retries");
        assert!(lost.values().all(|lost| *lost > 10), "lost in a crash: {lost:?}");
        assert_eq!(lost.len(), 3, "lost in a crash: {lost:?}");
    }
}

/// What the seeds have tried.
#[derive(Debug, Default)]
struct Seen {
    kinds: BTreeSet<Kind>,
    statuses: BTreeSet<RunStatus>,
    hook_statuses: BTreeSet<RunStatus>,
    kills: u64,
    retried: u64,
    /// Runs that a crash cut off, by who ran them.
    lost: BTreeMap<&'static str, u64>,
}

impl Seen {
    fn add(&mut self, more: &Self) {
        self.kinds.extend(&more.kinds);
        self.statuses.extend(&more.statuses);
        self.hook_statuses.extend(&more.hook_statuses);
        self.kills += more.kills;
        self.retried += more.retried;
        for (whose, lost) in &more.lost {
            *self.lost.entry(whose).or_default() += lost;
        }
    }
}

/// A line of the journal, or of what lies beside it.
#[derive(Debug, Clone)]
enum Line {
    Entry(Box<Entry>),
    Record(Box<Record>),
    Alias(SessionId, Harness, String),
}

/// A report on its way, and when it arrives.
#[derive(Debug, Clone)]
struct Letter {
    due: u64,
    session: SessionId,
    report: Report,
    /// An agent's reports come by one pipe, each once and in their order.
    by_pipe: bool,
}

/// A call's last execution, as its runner knows it.
#[derive(Debug, Clone)]
struct Execution {
    run: RunId,
    outcome: ToolOutcome,
    /// Somebody was told that there is no result.
    is_known_to_have_failed: bool,
}

/// An agent with its own tools, in a turn.
#[derive(Debug, Clone)]
struct Agent {
    turn: TurnId,
    /// What it waits for a person for.
    asked: BTreeSet<CallId>,
    /// It is held after its batch, if that can be done with it.
    is_held: bool,
}

/// The answer that is being shown of a session.
#[derive(Debug)]
struct Shown {
    stream: TurnId,
    seq: u64,
    is_over: bool,
}

struct World {
    dice: Dice,
    now: u64,
    broker: Broker,
    disk: Vec<Line>,
    /// Not on disk yet, and what is to be done when it is.
    unwritten: Vec<Line>,
    then: Vec<Job>,
    letters: Vec<Letter>,
    is_calm: bool,
    calls_made: u64,
    decisions: u64,
    ordered: BTreeSet<RunId>,
    hooks_ordered: BTreeSet<HookRunId>,
    executed: BTreeMap<CallId, Execution>,
    /// Runs that somebody wanted to end.
    let_go_of: BTreeSet<RunId>,
    agents: BTreeMap<SessionId, Agent>,
    shown: BTreeMap<SessionId, Shown>,
    /// Folders that somebody should look at before requests of theirs are judged.
    folders: Vec<Survey>,
    /// Sessions whose failed tools a person wants again.
    retry_wanted: BTreeSet<SessionId>,
    hooks_running: BTreeMap<SessionId, HookRunId>,
    asking: BTreeSet<SessionId>,
    seen: Seen,
}

impl World {
    fn new(seed: u64) -> Self {
        let mut world = Self {
            dice: Dice(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x5151),
            now: 1_800_000_000_000,
            broker: Broker::default(),
            disk: Vec::new(),
            unwritten: Vec::new(),
            then: Vec::new(),
            letters: Vec::new(),
            is_calm: false,
            calls_made: 0,
            decisions: 0,
            ordered: BTreeSet::new(),
            hooks_ordered: BTreeSet::new(),
            executed: BTreeMap::new(),
            let_go_of: BTreeSet::new(),
            agents: BTreeMap::new(),
            shown: BTreeMap::new(),
            folders: Vec::new(),
            retry_wanted: BTreeSet::new(),
            hooks_running: BTreeMap::new(),
            asking: BTreeSet::new(),
            seen: Seen::default(),
        };
        world.sow();
        for nth in 0..SESSIONS {
            let spawning = spawning(nth, world.dice.below(3) == 0);
            let now = Timestamp(world.now);
            world.broker.may_spawn(&spawning.session).expect("there is room");
            let outputs = world.broker.handle(now, Input::Spawned(Box::new(spawning)));
            world.take(outputs);
        }
        world
    }

    fn sow(&mut self) {
        let seed = Seed(self.dice.next());
        self.broker.sow(seed);
    }

    fn run(mut self) -> Seen {
        for _ in 0..STEPS {
            self.pass_time();
            match self.dice.below(24) {
                0..=3 => self.operator_acts(),
                4..=5 => self.operator_answers(),
                6 if self.dice.below(3) == 0 => self.kill(),
                7..=11 => self.write(),
                12 => self.wake(),
                _ => self.letter_arrives(),
            }
            self.check();
        }
        self.calm()
    }

    /// Everything is well from here on: nobody kills, nothing hangs, the operator is patient.
    fn calm(mut self) -> Seen {
        self.is_calm = true;
        for _ in 0..CALM_ROUNDS {
            self.now += 20_000;
            self.write();
            self.wake();
            self.write();
            for _ in 0..CALM_LETTERS {
                // Those that are sent meanwhile come at once, too.
                self.letters.iter_mut().for_each(|letter| letter.due = 0);
                if self.letters.is_empty() {
                    break;
                }
                self.letter_arrives();
                self.write();
            }
            for nth in 0..SESSIONS {
                self.settle(&session(nth));
                self.write();
            }
            self.check();
            // One that was killed before it was begun is known to nobody.
            let is_over = |kind: Option<Kind>| matches!(kind, Some(Kind::Stopped | Kind::Idle));
            if (0..SESSIONS).all(|nth| is_over(self.kind(nth))) {
                self.check_ends();
                return self.seen;
            }
        }
        let kinds: Vec<_> = (0..SESSIONS).map(|nth| self.kind(nth)).collect();
        panic!("it does not settle: {kinds:?}");
    }

    /// What a patient operator does with a session so that it comes to its end.
    fn settle(&mut self, id: &SessionId) {
        let session = self.broker.session(id).map(Cow::into_owned);
        let Some(machine) = session.as_ref().and_then(Session::machine) else {
            // It was killed before anybody heard of it.
            let spawning = spawning(nth(id), false);
            let now = Timestamp(self.now);
            let outputs = self.broker.handle(now, Input::Spawned(Box::new(spawning)));
            return self.take(outputs);
        };
        match machine.state().kind() {
            Kind::AwaitingApproval | Kind::AwaitingInput => self.answer(id),
            Kind::Ready | Kind::Error => self.command(id, Command::Stop),
            Kind::Paused => self.command(id, Command::Resume),
            Kind::Idle
            | Kind::Starting
            | Kind::CallingLlm
            | Kind::ProcessingResponse
            | Kind::ExecutingTools
            | Kind::PostToolsHook
            | Kind::Stopping
            | Kind::Stopped => {}
        }
    }

    fn pass_time(&mut self) {
        let jump = self.dice.below(60);
        let ms = self.dice.below(400);
        self.now = match jump {
            0 => self.now + 3_600_000,
            1 => self.now - 3_600_000,
            _ => self.now + ms,
        };
    }

    fn kind(&self, nth: u64) -> Option<Kind> {
        Some(self.broker.session(&session(nth))?.machine()?.state().kind())
    }

    fn take(&mut self, outputs: Vec<Output>) {
        for output in outputs {
            match output {
                Output::Append(entry) => self.unwritten.push(Line::Entry(Box::new(entry))),
                Output::Record(record) => self.unwritten.push(Line::Record(record)),
                Output::Found { session, harness, vendor_id } => {
                    self.unwritten.push(Line::Alias(session, harness, vendor_id.to_string()));
                }
                Output::Run(job) => {
                    if let Work::CancelTool { run } = &job.work {
                        self.let_go_of.insert(run.clone());
                    }
                    self.then.push(*job);
                }
                Output::Streamed(event) => self.follow(&event),
                Output::Survey(survey) => self.folders.push(survey),
                Output::Show(_)
                | Output::Locate(_)
                | Output::LookInto { .. }
                | Output::Carry(_)
                | Output::Release(_)
                | Output::Settled(_)
                | Output::Changed(_)
                | Output::Remove(_) => {}
            }
        }
    }

    /// What is shown of an answer is numbered without gaps and ends before the next one begins.
    fn follow(&mut self, event: &StreamEvent) {
        let begun = || Shown { stream: event.stream_id.clone(), seq: 0, is_over: false };
        let shown = self.shown.entry(event.session_id.clone()).or_insert_with(begun);
        if shown.stream != event.stream_id {
            assert!(shown.is_over, "{shown:?} has no end");
            *shown = begun();
        }
        assert!(!shown.is_over, "{event:?} comes after the end");
        assert_eq!(event.seq, shown.seq + 1, "{event:?}");
        shown.seq = event.seq;
        shown.is_over = event.payload.is_last();
    }

    /// All of it gets to the disk, and what waited for that is done.
    fn write(&mut self) {
        self.disk.append(&mut self.unwritten);
        for job in std::mem::take(&mut self.then) {
            self.carry_out(job);
        }
    }

    fn wake(&mut self) {
        for Survey { folder, request } in std::mem::take(&mut self.folders) {
            let followed =
                request.map(|(request, named)| Followed { request, named, led_to: Vec::new() });
            let surveyed = Surveyed { folder, tightening: Tightening::default(), followed };
            let outputs = self.broker.handle(Timestamp(self.now), Input::Surveyed(surveyed));
            self.take(outputs);
        }
        let outputs = self.broker.handle(Timestamp(self.now), Input::Woken);
        self.take(outputs);
    }

    /// The daemon dies somewhere in its writing, and comes back with what the disk has.
    fn kill(&mut self) {
        self.seen.kills += 1;
        let cut = self.dice.below(self.unwritten.len() as u64 + 1) as usize;
        let lines: Vec<Line> = self.unwritten.drain(..cut).collect();
        self.disk.extend(lines);
        self.unwritten.clear();
        self.then.clear();
        // Runners die with it; of what they had sent some may still be read, by mistake.
        let dice = &mut self.dice;
        self.letters.retain(|_| dice.below(3) == 0);
        self.hooks_running.clear();
        self.asking.clear();
        self.agents.clear();
        self.shown.clear();
        self.folders.clear();
        self.broker = restored(&self.disk, Timestamp(self.now));
        self.sow();
        let outputs = self.broker.restart_driven(Timestamp(self.now));
        self.take(outputs);
    }

    fn letter_arrives(&mut self) {
        if self.letters.is_empty() {
            return;
        }
        let due: Vec<usize> =
            (0..self.letters.len()).filter(|at| self.letters[*at].due <= self.now).collect();
        let Some(at) = due.get(self.dice.below(due.len().max(1) as u64) as usize).copied() else {
            return;
        };
        let Letter { session, by_pipe, .. } = &self.letters[at];
        let is_before = |letter: &Letter| letter.by_pipe && letter.session == *session;
        let first = if *by_pipe { self.letters.iter().position(is_before) } else { None };
        let Letter { session, report, .. } = self.letters.remove(first.unwrap_or(at));
        self.note_heard(&session, &report);
        let outputs = self.broker.handle(Timestamp(self.now), Input::Reported { session, report });
        self.take(outputs);
    }

    fn note_heard(&mut self, session: &SessionId, report: &Report) {
        if let Report::HookFinished { run, .. } = report
            && self.hooks_running.get(session) == Some(run)
        {
            self.hooks_running.remove(session);
        }
        if matches!(
            report,
            Report::Completed { .. } | Report::Failed { .. } | Report::Exited { .. }
        ) {
            self.asking.remove(session);
        }
        if let Report::ToolFinished { run, outcome: ToolOutcome::Failed { .. } } = report {
            let mut executed = self.executed.values_mut();
            if let Some(execution) = executed.find(|execution| execution.run == *run) {
                execution.is_known_to_have_failed = true;
            }
        }
    }

    /// Sends a report; sometimes twice.
    fn send(&mut self, session: &SessionId, within_ms: u64, report: Report) {
        let copies = if !self.is_calm && self.dice.below(8) == 0 { 2 } else { 1 };
        for _ in 0..copies {
            let due = self.now + self.dice.below(within_ms.max(1));
            let (session, report) = (session.clone(), report.clone());
            self.letters.push(Letter { due, session, report, by_pipe: false });
        }
    }

    /// An agent writes a line.
    fn tell(&mut self, session: &SessionId, within_ms: u64, report: Report) {
        let due = self.now + self.dice.below(within_ms.max(1));
        self.letters.push(Letter { due, session: session.clone(), report, by_pipe: true });
    }

    fn carry_out(&mut self, job: Job) {
        let Job { session, work } = job;
        let sick = !self.is_calm;
        match work {
            Work::Start(_) if sick && self.dice.below(10) == 0 => {
                self.send(&session, 500, Report::Exited { code: Some(1), why: None });
            }
            Work::Start(_) => self.send(&session, 500, Report::Ready),
            Work::Send(sending) => {
                self.check_asked(&session, &sending);
                match tools(&session) {
                    Tools::Ours => self.model(&session, &sending),
                    Tools::Theirs | Tools::TheirsHeld => self.agent(&session, &sending),
                }
            }
            Work::Survey { turn, .. } => {
                let ground =
                    Box::new(Ground { mutating: vec!["bash".into()], ..Ground::default() });
                self.send(&session, 300, Report::Surveyed { turn, ground });
            }
            Work::RunTools { tools, .. } => {
                for order in tools {
                    self.tool(&session, order);
                }
            }
            Work::RunHook { run, .. } => self.hook(&session, run),
            Work::CancelTool { run } => self.let_go(|report| matches!(
                report,
                Report::ToolStarted { run: of } | Report::ToolFinished { run: of, .. } if *of == run
            )),
            Work::CancelHook { run } => {
                self.hooks_running.remove(&session);
                self.let_go(|report| matches!(
                    report,
                    Report::HookStarted { run: of } | Report::HookFinished { run: of, .. } if *of == run
                ));
            }
            Work::Interrupt { turn } => {
                self.asking.remove(&session);
                let is_its = self.agents.get(&session).is_some_and(|agent| agent.turn == turn);
                let interrupted = is_its && self.agents.remove(&session).is_some();
                // Some do not hear it.
                if interrupted && !(sick && self.dice.below(4) == 0) {
                    self.tell(&session, 500, completed(turn));
                }
            }
            Work::Stop | Work::Kill => {
                self.asking.remove(&session);
                self.agents.remove(&session);
                // Some never say that they have ended.
                if sick && self.dice.below(4) == 0 {
                    return;
                }
                self.send(&session, 500, Report::Exited { code: Some(0), why: None });
            }
            Work::Answer { call, answer } => self.answered(&session, call, &answer),
            Work::Release => self.released(&session),
        }
    }

    fn check_asked(&mut self, session: &SessionId, sending: &Sending) {
        check_conversation(sending);
        self.check_outputs(sending);
        self.retry_wanted.remove(session);
        assert!(self.asking.insert(session.clone()), "two requests at once");
    }

    /// The model is told of each call what the world knows of it.
    fn check_outputs(&self, sending: &Sending) {
        for message in &sending.conversation {
            let Message::Operator { outputs, .. } = &**message else { continue };
            for CallOutput { call_id, content, .. } in outputs {
                let known = self.executed.get(call_id);
                let told = match &**content {
                    "canceled" => known.is_none_or(|it| self.let_go_of.contains(&it.run)),
                    LOST => self.seen.kills > 0,
                    "Blue" => known.is_none(),
                    text if text.starts_with("rejected ") => known.is_none(),
                    text => known.is_some_and(|it| match &it.outcome {
                        ToolOutcome::Succeeded { output, .. } => **output == *text,
                        ToolOutcome::Failed { error } => *text == format!("failed: {error}"),
                    }),
                };
                assert!(told, "{call_id} is told as {content:?}, and was {known:?}");
            }
        }
    }

    /// An agent works on what it is told, and runs its own tools meanwhile.
    fn agent(&mut self, session: &SessionId, sending: &Sending) {
        let turn = sending.turn.clone();
        let is_held = tools(session) == Tools::TheirsHeld;
        let mut agent = Agent { turn: turn.clone(), asked: BTreeSet::new(), is_held };
        let piece = Piece::Text { text: "W".into() };
        self.tell(session, 300, Report::Piece { turn: turn.clone(), piece });
        if !self.is_calm && self.dice.below(6) == 0 {
            let trouble = TroubleKind::Passing;
            let message = "overloaded".into();
            let trouble = HarnessTrouble { trouble, message, retry_after_ms: None };
            return self.tell(
                session,
                2_000,
                Report::Failed { turn, trouble, failure: None, used: Used::default() },
            );
        }
        let most = if self.is_calm { 1 } else { 4 };
        for _ in 0..self.dice.below(most) {
            let call = self.their_call();
            let id = call.call_id.clone();
            match self.dice.below(4) {
                0 => self.tell(session, 300, Report::ToolReported { turn: turn.clone(), call }),
                1 => {
                    // Told of before anybody is asked.
                    let (of, told) = (turn.clone(), call.clone());
                    self.tell(session, 300, Report::ToolReported { turn: of, call: told });
                    self.tell(session, 300, Report::ApprovalAsked { turn: turn.clone(), call });
                    agent.asked.insert(id);
                    continue;
                }
                2 => {
                    self.tell(session, 300, Report::ApprovalAsked { turn: turn.clone(), call });
                    agent.asked.insert(id);
                    continue;
                }
                _ => {
                    self.tell(session, 300, Report::QuestionAsked { turn: turn.clone(), call });
                    agent.asked.insert(id);
                    continue;
                }
            }
            // Some ends are never told.
            if self.dice.below(4) != 0 {
                self.tell(session, 2_000, tool_ended(&turn, id));
            }
        }
        self.agents.insert(session.clone(), agent);
        self.go_on(session);
    }

    fn their_call(&mut self) -> ToolCall {
        self.calls_made += 1;
        ToolCall {
            call_id: CallId::new(format!("call_{}", self.calls_made)),
            name: "Bash".into(),
            arguments: json!({"command": "make"}),
            mutating: self.dice.below(2) == 0,
        }
    }

    /// Once it waits for nobody its batch is over, and after that its turn.
    fn go_on(&mut self, session: &SessionId) {
        let Some(agent) = self.agents.get(session).filter(|agent| agent.asked.is_empty()) else {
            return;
        };
        let turn = agent.turn.clone();
        if agent.is_held {
            return self.tell(session, 1_000, Report::BatchHeld { turn });
        }
        self.agents.remove(session);
        let within_ms = if !self.is_calm && self.dice.below(8) == 0 { 900_000 } else { 2_000 };
        self.tell(session, within_ms, completed(turn));
    }

    fn answered(&mut self, session: &SessionId, call: CallId, answer: &HarnessAnswer) {
        let Some(agent) = self.agents.get_mut(session) else { return };
        if !agent.asked.remove(&call) {
            return;
        }
        let turn = agent.turn.clone();
        if matches!(answer, HarnessAnswer::Approved { .. }) && self.dice.below(2) == 0 {
            let call = ToolCall { call_id: call.clone(), ..self.their_call() };
            self.tell(session, 300, Report::ToolReported { turn: turn.clone(), call });
        }
        self.tell(session, 2_000, tool_ended(&turn, call));
        self.go_on(session);
    }

    fn released(&mut self, session: &SessionId) {
        if let Some(agent) = self.agents.get_mut(session) {
            agent.is_held = false;
            self.go_on(session);
        }
    }

    /// A runner was stopped. What it had sent may be read or not.
    fn let_go(&mut self, is_its: impl Fn(&Report) -> bool) {
        let dice = &mut self.dice;
        self.letters.retain(|letter| !is_its(&letter.report) || dice.below(2) == 0);
    }

    fn model(&mut self, session: &SessionId, sending: &Sending) {
        let turn = sending.turn.clone();
        let piece = Piece::Text { text: "W".into() };
        self.send(session, 300, Report::Piece { turn: turn.clone(), piece });
        match self.dice.below(if self.is_calm { 8 } else { 12 }) {
            8 | 9 => {
                let trouble = match self.dice.below(3) {
                    0 => TroubleKind::Passing,
                    1 => TroubleKind::Lasting,
                    _ => TroubleKind::UsageLimit,
                };
                let trouble =
                    HarnessTrouble { trouble, message: "no".into(), retry_after_ms: None };
                self.send(
                    session,
                    2_000,
                    Report::Failed { turn, trouble, failure: None, used: Used::default() },
                );
            }
            10 => {
                // It falls silent, and answers long after.
                let frozen = Some(Box::new(self.frozen(1)));
                let (text, stop) = (None, StopReason::Done);
                let report = Report::Completed { turn, text, stop, frozen };
                self.send(session, 900_000, report);
            }
            _ => {
                let most = if self.is_calm { 1 } else { 4 };
                let calls = self.dice.below(most);
                let frozen = Some(Box::new(self.frozen(calls)));
                let text = Some("Well.".into());
                let report = Report::Completed { turn, text, stop: StopReason::Done, frozen };
                self.send(session, 2_000, report);
            }
        }
    }

    fn frozen(&mut self, calls: u64) -> Frozen {
        let mut made = Vec::new();
        for _ in 0..calls {
            self.calls_made += 1;
            let name = ["bash", "read_file", "read_file", "ask_user"][self.dice.below(4) as usize];
            made.push(Called {
                call_id: CallId::new(format!("call_{}", self.calls_made)),
                name: name.into(),
                arguments: json!({"path": "/home/u/project/a", "command": "make"}),
            });
        }
        let used = Used { input_tokens: 10, output_tokens: 1, ..Used::default() };
        let message = json!({"calls": made.len()});
        Frozen { message, calls: made, used, ..Frozen::default() }
    }

    fn tool(&mut self, session: &SessionId, order: ToolOrder) {
        let ToolOrder { run, call, attempt } = order;
        assert!(self.ordered.insert(run.clone()), "{run} is ordered twice");
        if let Some(before) = self.executed.get(&call.call_id) {
            assert!(before.is_known_to_have_failed, "{before:?} is run again as {run}");
            let by_hand = self.retry_wanted.contains(session);
            assert!(by_hand || !call.mutating, "{} is repeated unasked", call.call_id);
            assert!(by_hand || attempt == 2, "attempt {attempt} comes by itself");
            self.seen.retried += 1;
        }
        self.send(session, 200, Report::ToolStarted { run: run.clone() });
        let wrote = |what: &str| format!("{what} by {run}").into();
        let (within_ms, outcome) = match self.dice.below(if self.is_calm { 5 } else { 8 }) {
            5 | 6 => (2_000, ToolOutcome::Failed { error: "it cannot start".into() }),
            // It hangs until its time limit.
            7 => (300_000, ToolOutcome::Succeeded { output: wrote("cut"), is_error: true }),
            _ => (2_000, ToolOutcome::Succeeded { output: wrote("ok"), is_error: false }),
        };
        let execution = Execution {
            run: run.clone(),
            outcome: outcome.clone(),
            is_known_to_have_failed: false,
        };
        self.executed.insert(call.call_id, execution);
        self.send(session, within_ms, Report::ToolFinished { run, outcome });
    }

    fn hook(&mut self, session: &SessionId, run: HookRunId) {
        let before = self.hooks_running.insert(session.clone(), run.clone());
        assert_eq!(before, None, "hooks overlap");
        assert!(self.hooks_ordered.insert(run.clone()), "{run} is ordered twice");
        self.send(session, 200, Report::HookStarted { run: run.clone() });
        let fails = !self.is_calm && self.dice.below(4) == 0;
        let error = fails.then(|| "it said no".into());
        self.send(session, 1_000, Report::HookFinished { run, error, output: None });
    }

    fn operator_acts(&mut self) {
        let id = session(self.dice.below(SESSIONS));
        let known = self.broker.card(Timestamp(self.now), &id);
        let Some(drive) = known.and_then(|card| card.drive) else { return };
        let command = match self.dice.below(14) {
            0 => Command::Stop,
            1 => Command::Interrupt,
            2 => Command::Pause,
            3 | 4 => Command::Resume,
            5 => Command::Yolo { on: self.dice.below(2) == 0 },
            6..=8 if drive.retry.is_some() => {
                let target = drive.retry.expect("it was just seen");
                self.retry_wanted.insert(id.clone());
                Command::Retry { target }
            }
            _ => Command::Prompt { text: "Go on".into() },
        };
        self.command(&id, command);
    }

    fn command(&mut self, id: &SessionId, command: Command) {
        let (session, decision) = (id.clone(), self.decision());
        let commanding = Commanding { decision, session, by: by(), command, key: None };
        let (_, outputs) = self.broker.command(Timestamp(self.now), commanding);
        self.take(outputs);
    }

    fn operator_answers(&mut self) {
        let id = session(self.dice.below(SESSIONS));
        self.answer(&id);
    }

    /// Answers the first request that is open, one way or the other.
    fn answer(&mut self, id: &SessionId) {
        let Some(card) = self.broker.card(Timestamp(self.now), id) else { return };
        let Some(request) = card.requests.first() else { return };
        let answer = match (request.kind, self.dice.below(4)) {
            (RequestKind::Question, _) => {
                let values = vec!["Blue".to_owned()];
                Decision::Answer { answers: vec![Answer { question: "?".into(), values }] }
            }
            (RequestKind::Permission | RequestKind::Plan, 0) => {
                Decision::Deny { message: Some("no".into()), interrupt: self.dice.below(2) == 0 }
            }
            (RequestKind::Permission | RequestKind::Plan, _) => {
                Decision::Allow { input: None, scope: Scope::Once }
            }
        };
        let key = request.key.clone().expect("an open request has a key");
        let answering = Answering {
            decision: self.decision(),
            request: key,
            revision: None,
            by: by(),
            rule: None,
            answer,
            key: None,
        };
        let (_, outputs) = self.broker.answer(Timestamp(self.now), answering);
        self.take(outputs);
    }

    fn decision(&mut self) -> DecisionId {
        self.decisions += 1;
        DecisionId::new(format!("dec_{}", self.decisions))
    }

    /// At every moment: what is live is what the journal folds to.
    fn check(&mut self) {
        for nth in 0..SESSIONS {
            self.seen.kinds.extend(self.kind(nth));
        }
        if self.dice.below(16) != 0 {
            return;
        }
        let mut disk = self.disk.clone();
        disk.extend(self.unwritten.iter().cloned());
        for nth in 0..SESSIONS {
            let id = session(nth);
            assert_eq!(folded(&disk, &id).as_ref(), self.broker.session(&id).as_deref());
        }
    }

    /// In the end: every run that was ordered, or told of, has ended once, by what the journal
    /// tells; and what a crash cut off was told as that.
    fn check_ends(&mut self) {
        let mut ends: BTreeMap<RunId, Vec<RunStatus>> =
            self.ordered.iter().map(|run| (run.clone(), Vec::new())).collect();
        let mut hook_ends: BTreeMap<HookRunId, Vec<RunStatus>> =
            self.hooks_ordered.iter().map(|run| (run.clone(), Vec::new())).collect();
        for nth in 0..SESSIONS {
            let mut folding = Session::new(session(nth));
            for line in &self.disk {
                let Line::Entry(entry) = line else { continue };
                if entry.session != *folding.id() {
                    continue;
                }
                let cut_off = cut_off(&folding, entry);
                *self.seen.lost.entry(whose(nth)).or_default() += cut_off.len() as u64;
                for step in folding.apply(entry) {
                    let Step::Show(shown) = step else { continue };
                    match shown.change {
                        Change::ToolLifecycle(run) => {
                            let ends = ends.entry(run.run_id.clone()).or_default();
                            if run.finished_at_ms.is_some() {
                                ends.push(run.status);
                            }
                            let is_told = run.error.as_deref() == Some(LOST);
                            assert!(is_told || !cut_off.contains(&run.run_id), "{run:?}");
                        }
                        Change::HookLifecycle(run) => {
                            let ends = hook_ends.entry(run.run_id.clone()).or_default();
                            if run.finished_at_ms.is_some() {
                                ends.push(run.status);
                            }
                        }
                        Change::StateChanged(_) | Change::SessionError(_) => {}
                    }
                }
            }
        }
        for (run, ended) in &ends {
            assert_eq!(ended.len(), 1, "{run} ended as {ended:?}");
        }
        for (run, ended) in &hook_ends {
            assert_eq!(ended.len(), 1, "{run} ended as {ended:?}");
        }
        self.seen.statuses.extend(ends.into_values().flatten());
        self.seen.hook_statuses.extend(hook_ends.into_values().flatten());
    }
}

/// What a call is told as that a crash cut off.
const LOST: &str = "interrupted, outcome unknown";

/// The runs that were under way when the daemon came back, if it does with this entry.
fn cut_off(session: &Session, entry: &Entry) -> BTreeSet<RunId> {
    if !matches!(&entry.event, JournalEvent::Driven { event: Event::Restarted, .. }) {
        return BTreeSet::new();
    }
    let batch = session.machine().and_then(|machine| machine.state().batch());
    let runs = batch.into_iter().flat_map(|batch| batch.runs());
    let under_way = runs.filter(|run| matches!(run.fate, Fate::Queued | Fate::Running));
    under_way.filter_map(|run| run.id.clone()).collect()
}

fn completed(turn: TurnId) -> Report {
    let text = Some("Well.".into());
    Report::Completed { turn, text, stop: StopReason::Done, frozen: None }
}

fn tool_ended(turn: &TurnId, call: CallId) -> Report {
    let (turn, output) = (turn.clone(), Some("made".into()));
    Report::ToolEnded { turn, call, is_error: false, output }
}

/// Before each request every call has exactly one output.
fn check_conversation(sending: &Sending) {
    let mut open: BTreeSet<CallId> = BTreeSet::new();
    for message in &sending.conversation {
        match &**message {
            Message::Agent { calls, .. } => {
                assert!(open.is_empty(), "{open:?} have no output");
                open.extend(calls.iter().map(|call| call.call_id.clone()));
            }
            Message::Operator { outputs, .. } => {
                for output in outputs {
                    assert!(open.remove(&output.call_id), "{} has two outputs", output.call_id);
                }
                assert!(open.is_empty(), "{open:?} have no output");
            }
        }
    }
    assert!(open.is_empty(), "{open:?} have no output");
    assert!(!sending.conversation.is_empty(), "nothing was said");
}

fn folded(disk: &[Line], id: &SessionId) -> Option<Session> {
    let mut session = None;
    for line in disk {
        let Line::Entry(entry) = line else { continue };
        if entry.session == *id {
            session.get_or_insert_with(|| Session::new(id.clone())).apply(entry);
        }
    }
    session
}

/// What a daemon does that finds this on disk.
fn restored(disk: &[Line], now: Timestamp) -> Broker {
    let mut broker = Broker::default();
    let records = disk.iter().filter_map(|line| match line {
        Line::Record(record) => Some(record),
        Line::Entry(_) | Line::Alias(..) => None,
    });
    let mut last = Default::default();
    for record in records {
        broker.recall_record(record);
        last = record.link();
    }
    broker.follow_records(last);
    for line in disk {
        let Line::Alias(id, harness, vendor_id) = line else { continue };
        let Some(session) = folded(disk, id) else { continue };
        // Cut off between its first two entries there is nothing to restore.
        if session.machine().is_none() {
            continue;
        }
        let (harness, vendor_id) = (*harness, vendor_id.as_str().into());
        broker.handle(now, Input::Restored { harness, vendor_id, session: Box::new(session) });
    }
    broker
}

fn session(nth: u64) -> SessionId {
    SessionId::new(format!("sess_{nth}"))
}

fn nth(session: &SessionId) -> u64 {
    let nth = session.as_str().rsplit('_').next().and_then(|nth| nth.parse().ok());
    nth.expect("a number")
}

fn tools(session: &SessionId) -> Tools {
    match nth(session) {
        3 => Tools::Theirs,
        4 => Tools::TheirsHeld,
        _ => Tools::Ours,
    }
}

fn whose(nth: u64) -> &'static str {
    match tools(&session(nth)) {
        Tools::Ours => "ours",
        Tools::Theirs => "theirs",
        Tools::TheirsHeld => "theirs, held",
    }
}

fn by() -> By {
    By { who: "operator".into(), device: "desk".into() }
}

fn spawning(nth: u64, yolo: bool) -> Spawning {
    let hook = |name: &str, failure_policy| HookConfig {
        name: name.into(),
        command: vec!["true".into()],
        timeout_ms: 1_000,
        failure_policy,
        tool_filter: ToolFilter::AnyMutating,
        env_allow: Vec::new(),
    };
    let retry = FailurePolicy::Retry { max_attempts: 2, delay_ms: 500 };
    let tools = tools(&session(nth));
    Spawning {
        session: session(nth),
        harness: match tools {
            Tools::Ours => Harness::Native,
            Tools::Theirs | Tools::TheirsHeld => Harness::ClaudeCode,
        },
        setup: Setup {
            tools,
            process: Process::WholeSession,
            hooks: vec![
                hook("warns", FailurePolicy::WarnContinue),
                hook("tries", retry),
                hook("fails", FailurePolicy::FailSession),
            ],
        },
        brief: Brief {
            workspace: "/home/u/project".into(),
            model: None,
            provider: None,
            preset: if yolo { Preset::Yolo } else { Preset::Careful },
            prompt: (nth == 0).then(|| "Begin".into()),
            is_chat: false,
        },
        vendor_id: None,
        trouble: None,
    }
}

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn below(&mut self, most: u64) -> u64 {
        self.next() % most
    }
}

#[test]
fn a_session_is_set_up_in_one_entry() {
    let mut broker = Broker::default();
    let spawning = spawning(0, false);
    let outputs = broker.handle(Timestamp(1), Input::Spawned(Box::new(spawning)));
    let set_up = outputs.iter().position(|output| {
        matches!(output, Output::Append(entry) if matches!(entry.event, JournalEvent::SetUp { .. }))
    });
    let job = outputs.iter().position(|output| matches!(output, Output::Run(_)));
    assert!(set_up.expect("an entry") < job.expect("a job"), "the journal is first");
}
