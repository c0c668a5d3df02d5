//! Carries out the jobs of driven sessions: each by somebody of the crew, beside the loop.
//!
//! Everybody reports through one bounded channel that the loop reads: who is too fast waits.
//! Invariant: a job is begun only after the journal has the entry that ordered it.

use std::collections::BTreeMap;
use std::future::pending;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use qd_broker::Input;
use qd_broker::driving::{HookedRun, Job, Report, Spawning, Start, Unspawned, Work};
use qd_host::now;
use qd_runners::crew::{Crew, Ended, HarnessOffer, HarnessOrder, Muster};
use qd_runners::hooks::HookEnd;
use qd_runners::teller::Teller;
use qd_session::id::{HookRunId, RunId, SessionId};
use qd_session::machine::{HookConfig, ToolOrder, ToolOutcome};
use qd_session::moment::Timestamp;
use qd_session::seed::Seed;
use qd_telemetry::{log_job, log_report};
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::Runtime;
use super::handle::{self, SpawnReply, SpawnWanted};
use crate::runtime::ORDERS_PER_TURN;

/// Reports of runners that the loop has not read. A runner that is faster waits; pieces of answers
/// are joined meanwhile.
const REPORTS_MAX: usize = 256;

/// Orders that a harness has not taken. There is one turn at a time; one that is this far behind
/// does not listen.
const HARNESS_ORDERS_MAX: usize = 64;

/// How long the end of the program waits for runners to end theirs. Process trees are killed at
/// once; what takes longer is a disk or a kernel that hangs.
const CREW_CLEAR_MAX: Duration = Duration::from_secs(10);

/// The crew at work.
pub struct Deck {
    crew: Arc<dyn Crew>,
    harnesses: BTreeMap<SessionId, Harnessed>,
    tools: BTreeMap<RunId, CancellationToken>,
    hooks: BTreeMap<HookRunId, CancellationToken>,
    /// Harnesses that were up, by how often one was brought up.
    started: u64,
    tasks: JoinSet<Settled>,
    reports: mpsc::Receiver<(SessionId, Report)>,
    reporting: mpsc::Sender<(SessionId, Report)>,
}

/// A harness that is up, or about to be.
struct Harnessed {
    nth: u64,
    orders: mpsc::Sender<HarnessOrder>,
    stop: CancellationToken,
}

/// A job whose future has ended.
enum Settled {
    Harness(SessionId, u64),
    Tool(RunId),
    Hook(HookRunId),
    Other,
}

impl Deck {
    pub fn new(crew: Arc<dyn Crew>) -> Self {
        let (reporting, reports) = mpsc::channel(REPORTS_MAX);
        Self {
            crew,
            harnesses: BTreeMap::new(),
            tools: BTreeMap::new(),
            hooks: BTreeMap::new(),
            started: 0,
            tasks: JoinSet::new(),
            reports,
            reporting,
        }
    }

    pub fn crew(&self) -> &dyn Crew {
        &*self.crew
    }

    /// The next report. May be dropped and asked again.
    pub async fn next(&mut self) -> (SessionId, Report) {
        let Some(report) = self.reports.recv().await else {
            // We hold a sender ourselves.
            return pending().await;
        };
        while let Some(ended) = self.tasks.try_join_next() {
            self.forget(ended.ok());
        }
        report
    }

    /// More that has been told meanwhile.
    pub fn next_ready(&mut self) -> Option<(SessionId, Report)> {
        self.reports.try_recv().ok()
    }

    fn forget(&mut self, ended: Option<Settled>) {
        match ended {
            Some(Settled::Harness(session, nth)) => {
                if self.harnesses.get(&session).is_some_and(|it| it.nth == nth) {
                    self.harnesses.remove(&session);
                }
            }
            Some(Settled::Tool(run)) => {
                self.tools.remove(&run);
            }
            Some(Settled::Hook(run)) => {
                self.hooks.remove(&run);
            }
            Some(Settled::Other) | None => {}
        }
    }

    pub fn carry_out(&mut self, job: Job) {
        let Job { session, work } = job;
        match work {
            Work::Start(start) => self.start(session, *start, Announced::Yes),
            Work::Send(sending) => {
                if !self.is_up(&session) {
                    // It ended with the daemon before this one: it goes on where it was.
                    self.start(session.clone(), sending.start.clone(), Announced::No);
                }
                self.order(&session, HarnessOrder::Send(sending));
            }
            Work::Survey { turn, workspace, tools } => {
                let ground = self.crew.survey(workspace, tools);
                self.report(session, Settled::Other, async move {
                    Report::Surveyed { turn, ground: Box::new(ground.await) }
                });
            }
            Work::RunTools { workspace, tools } => {
                for order in tools {
                    self.run_tool(&session, workspace.clone(), order);
                }
            }
            Work::CancelTool { run } => {
                if let Some(stop) = self.tools.get(&run) {
                    stop.cancel();
                }
            }
            Work::RunHook { run, hook, workspace, tool_runs } => {
                self.run_hook(session, run, *hook, workspace, tool_runs);
            }
            Work::CancelHook { run } => {
                if let Some(stop) = self.hooks.get(&run) {
                    stop.cancel();
                }
            }
            Work::Answer { call, answer } => {
                self.order(&session, HarnessOrder::Answer { call, answer });
            }
            Work::Release => self.order(&session, HarnessOrder::Release),
            Work::Interrupt { turn } => self.order(&session, HarnessOrder::Interrupt { turn }),
            Work::Stop if !self.is_up(&session) => {
                // There is none to be stopped.
                let report = Report::Exited { code: Some(0), why: None };
                self.report(session, Settled::Other, async { report });
            }
            Work::Stop => self.order(&session, HarnessOrder::Stop),
            Work::Kill => {
                if let Some(harness) = self.harnesses.get(&session) {
                    harness.stop.cancel();
                }
            }
        }
    }

    /// Somebody takes its orders.
    fn is_up(&self, session: &SessionId) -> bool {
        self.harnesses.get(session).is_some_and(|harness| !harness.orders.is_closed())
    }

    fn start(&mut self, session: SessionId, start: Start, announced: Announced) {
        self.started += 1;
        let nth = self.started;
        let (orders, taken) = mpsc::channel(HARNESS_ORDERS_MAX);
        let stop = CancellationToken::new();
        let teller = Teller::new(session.clone(), self.reporting.clone());
        let teller = match announced {
            Announced::Yes => teller,
            Announced::No => teller.without_ready(),
        };
        let running = self.crew.run_harness(start, taken, teller, stop.clone());
        if let Some(before) =
            self.harnesses.insert(session.clone(), Harnessed { nth, orders, stop })
        {
            // It was given up on, and must not be there twice.
            before.stop.cancel();
        }
        let ended = Settled::Harness(session.clone(), nth);
        let running = Running(tokio::spawn(running));
        self.report(session, ended, async move {
            // One that panicked is one that was killed.
            let Ended { code, why } = running.outcome().await.unwrap_or_else(|_| Ended::killed());
            Report::Exited { code, why }
        });
    }

    /// A harness that does not take its orders any more is killed: its end is told then.
    fn order(&mut self, session: &SessionId, order: HarnessOrder) {
        let Some(harness) = self.harnesses.get(session) else { return };
        if harness.orders.try_send(order).is_err() {
            warn!(session = session.as_str(), "a harness takes no orders; it is killed");
            harness.stop.cancel();
        }
    }

    fn run_tool(&mut self, session: &SessionId, workspace: Arc<str>, order: ToolOrder) {
        let run = order.run.clone();
        let stop = CancellationToken::new();
        self.tools.insert(run.clone(), stop.clone());
        let running = Running(tokio::spawn(self.crew.run_tool(workspace, order, stop)));
        let (session, reporting) = (session.clone(), self.reporting.clone());
        self.tasks.spawn(async move {
            let started = Report::ToolStarted { run: run.clone() };
            let _ = reporting.send((session.clone(), started)).await;
            let outcome = running
                .outcome()
                .await
                .unwrap_or_else(|_| ToolOutcome::Failed { error: "its runner broke down".into() });
            let finished = Report::ToolFinished { run: run.clone(), outcome };
            let _ = reporting.send((session, finished)).await;
            Settled::Tool(run)
        });
    }

    fn run_hook(
        &mut self,
        session: SessionId,
        run: HookRunId,
        hook: HookConfig,
        workspace: Arc<str>,
        tool_runs: Vec<HookedRun>,
    ) {
        let stop = CancellationToken::new();
        self.hooks.insert(run.clone(), stop.clone());
        let hook = self.crew.run_hook(hook, workspace, tool_runs, stop);
        let running = Running(tokio::spawn(hook));
        let reporting = self.reporting.clone();
        self.tasks.spawn(async move {
            let started = Report::HookStarted { run: run.clone() };
            let _ = reporting.send((session.clone(), started)).await;
            let HookEnd { error, output } = running.outcome().await.unwrap_or_else(|_| HookEnd {
                error: Some("its runner broke down".into()),
                output: String::new(),
            });
            let output = (!output.is_empty()).then(|| output.into());
            let finished = Report::HookFinished { run: run.clone(), error, output };
            let _ = reporting.send((session, finished)).await;
            Settled::Hook(run)
        });
    }

    fn report(
        &mut self,
        session: SessionId,
        ended: Settled,
        report: impl Future<Output = Report> + Send + 'static,
    ) {
        let reporting = self.reporting.clone();
        self.tasks.spawn(async move {
            let _ = reporting.send((session, report.await)).await;
            ended
        });
    }

    /// Stops everybody, and waits until nothing of them runs any more.
    pub async fn clear(mut self) {
        self.harnesses.values().for_each(|harness| harness.stop.cancel());
        self.tools.values().chain(self.hooks.values()).for_each(CancellationToken::cancel);
        self.reports.close();
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(CREW_CLEAR_MAX, ended).await.is_err() {
            warn!("some runners did not end in time");
        }
    }
}

/// A runner by itself, so that its panic is an outcome. It is gone when nobody waits for it.
struct Running<T>(JoinHandle<T>);

impl<T> Running<T> {
    async fn outcome(mut self) -> Result<T, JoinError> {
        (&mut self.0).await
    }
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

enum Announced {
    Yes,
    No,
}

impl Runtime {
    /// Lets sessions be driven by this crew. What was driven before the last restart is told so.
    pub fn keep_crew(&mut self, crew: Arc<dyn Crew>) {
        self.deck = Some(Deck::new(crew));
        let outputs = self.broker.restart_driven(now());
        self.take_out(outputs);
        self.commit();
    }

    /// What runners told, and what they have told meanwhile.
    pub(super) fn hear_crew(&mut self, first: (SessionId, Report)) {
        self.broker.set_presence(self.presence.is_somebody());
        self.hear_report(first);
        for _ in 1..ORDERS_PER_TURN {
            if !self.next.has_room() {
                break;
            }
            let Some(more) = self.deck.as_mut().and_then(Deck::next_ready) else { break };
            self.hear_report(more);
        }
    }

    fn hear_report(&mut self, (session, report): (SessionId, Report)) {
        log_report(&session, &report);
        let is_answer = matches!(report, Report::Completed { .. } | Report::Failed { .. });
        self.hand_in(now(), Input::Reported { session, report });
        // What a model of ours took stands in the journal, where no line tells of it.
        if let Some(books) = self.books.as_ref().filter(|_| is_answer) {
            books.keeper.look();
        }
    }

    /// Somebody wants a session.
    pub(super) fn spawn(&mut self, now: Timestamp, wanted: SpawnWanted, reply: SpawnReply) {
        match self.mustered(wanted) {
            Ok(spawning) => {
                self.next.spawns.push((spawning.session.clone(), reply));
                self.hand_in(now, Input::Spawned(Box::new(spawning)));
            }
            Err(why) => handle::answer(reply, Err(why)),
        }
    }

    /// What sessions can be begun with here.
    pub(super) fn offers(&self) -> Vec<HarnessOffer> {
        self.deck.as_ref().map(|deck| deck.crew().offers()).unwrap_or_default()
    }

    fn mustered(&self, wanted: SpawnWanted) -> Result<Spawning, Unspawned> {
        let SpawnWanted { harness, brief } = wanted;
        let deck = self.deck.as_ref().ok_or(Unspawned::NotHere)?;
        let mustered = deck.crew().muster(harness, &brief);
        let Muster { setup, vendor_id, trouble } =
            mustered.map_err(|why| Unspawned::Impossible { why })?;
        let session = fresh_seed().session();
        self.broker.may_spawn(&session)?;
        Ok(Spawning { session, harness, setup, brief, vendor_id, trouble })
    }

    /// The entries that ordered it are on disk: now it may be done.
    pub(super) fn carry_out(&mut self, job: Job) {
        log_job(&job);
        match &mut self.deck {
            Some(deck) => deck.carry_out(job),
            None => warn!(
                session = job.session.as_str(),
                work = job.work.name(),
                "nobody drives sessions here"
            ),
        }
    }
}

/// A number that nobody can guess: each of these is keyed with fresh randomness of the system.
pub(super) fn fresh_seed() -> Seed {
    Seed(RandomState::new().build_hasher().finish())
}

/// The next report of the crew; never, where there is none.
pub(super) async fn reported(deck: &mut Option<Deck>) -> (SessionId, Report) {
    match deck {
        Some(deck) => deck.next().await,
        None => pending().await,
    }
}
