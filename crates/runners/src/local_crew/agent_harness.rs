//! Somebody else's agent, below its runner: the machine's orders in the words of its driver, and
//! what it tells with the turn that it belongs to.

mod answering;
mod hearing;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use qd_broker::driving::{Report, Sending, Start};
use qd_harness::Harness;
use qd_harness::driver::{Cannot, Command, Launch, Mode, Protocol, Resume};
use qd_harness::native::StopReason;
use qd_host::{now, processes};
use qd_session::id::{CallId, TurnId};
use qd_session::logbook::Used;
use qd_session::machine::{HarnessTrouble, Process, TroubleKind};
use qd_session::policy::Preset;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::debug;

use self::answering::{Asked, command};
use super::agent_spending::Spent;
use super::{LocalCrew, folder, gemini_minute};
use crate::agents::limits::TURN_END_MAX;
use crate::agents::{self, AgentJob, Exit, Order};
use crate::crew::{Ended, HarnessOrder};
use crate::environment::{of_agent, of_names};
use crate::teller::Teller;
use crate::tools::limits::OPEN_WAIT;
use crate::tools::private_places_in;

pub(super) async fn run(
    crew: LocalCrew,
    start: Start,
    mut orders: mpsc::Receiver<HarnessOrder>,
    mut tell: Teller,
    stop: CancellationToken,
) -> Ended {
    let (job, launch, program) = match prepared(&crew, &start) {
        Ok(prepared) => prepared,
        Err(why) => return Ended { code: None, why: Some(why.into()) },
    };
    let wait = match (start.harness, &start.vendor_id) {
        (Harness::GeminiCli, Some(id)) => {
            gemini_minute::left(&crew.settings().environment, id, now())
        }
        _ => Duration::ZERO,
    };
    if let Some(caution) = caution(&crew, &start.brief.workspace).await {
        tell.warn(caution).await;
    }
    let driver = program.driver(launch);
    let process = driver.process();
    let (ordering, order_queue) = mpsc::channel(agents::limits::ORDERS_MAX);
    let (telling, mut told) = mpsc::channel(agents::limits::REPORTS_MAX);
    let ends = stop.clone();
    // Orders are heard meanwhile: who waits may be interrupted.
    let running = tokio::spawn(async move {
        tokio::select! {
            biased;
            () = ends.cancelled() => return,
            () = tokio::time::sleep(wait) => {}
        }
        agents::run(job, driver, order_queue, telling, ends).await;
    });
    let mode = mode(start.harness, start.preset);
    let mut agent = AgentHarness::new(start.harness, mode, tell, ordering, process, stop);
    loop {
        tokio::select! {
            biased;
            Some(settled) = agent.unsettled.next(), if !agent.unsettled.is_empty() => {
                agent.settled(settled).await;
            }
            order = orders.recv(), if !orders.is_closed() || !orders.is_empty() => match order {
                Some(order) => agent.order(order).await,
                // Nobody gives orders any more.
                None => agent.stop.cancel(),
            },
            heard = told.recv() => match heard {
                Some(heard) => agent.hear(heard).await,
                None => break,
            },
            () = until(agent.next_by) => agent.give_up_next().await,
        }
    }
    // It has told its last word; nothing of it is left when it ends.
    let _ = running.await;
    agent.exit.map_or_else(Ended::killed, |Exit { code, error }| Ended { code, why: error })
}

/// What the operator should know of a folder that an agent of a vendor works in.
async fn caution(crew: &LocalCrew, workspace: &str) -> Option<String> {
    let (workspace, private) = (folder(workspace).to_owned(), crew.settings().private.clone());
    let looking = spawn_blocking(move || private_places_in(&workspace, &private));
    let there = timeout(OPEN_WAIT, looking).await.ok()?.ok()??;
    Some(format!(
        "This folder contains settings of Quarterdeck or of agents ({there}). The agent brings its \
         own sandbox: Quarterdeck can't keep it from reading or changing them. Choose a project \
         folder to avoid this."
    ))
}

fn prepared(crew: &LocalCrew, start: &Start) -> Result<(AgentJob, Launch, Protocol), String> {
    let Start { harness, brief, preset, is_held, vendor_id } = start;
    let program = crew.program(*harness, brief.provider.as_deref())?;
    let warden = crew.settings().warden.clone();
    let mut job = AgentJob::new(program.path, folder(&brief.workspace), warden);
    let ours = &crew.settings().environment;
    job.environment = of_agent(*harness, ours);
    job.environment.extend(of_names(ours, program.env.iter().map(String::as_str)));
    let asking = program.protocol.variables(*harness).into_iter();
    job.environment.extend(asking.map(|(name, value)| (name.to_owned(), value)));
    let launch = Launch {
        tested: Some((harness.display_name(), harness.tested())),
        cwd: brief.workspace.to_string(),
        model: brief.model.as_ref().map(ToString::to_string),
        mode: mode(*harness, *preset),
        resume: vendor_id.clone().map(Resume::Id),
        hold_batches: *is_held,
        may_bypass: false,
        arguments: program.arguments,
    };
    Ok((job, launch, program.protocol))
}

/// It asks, and our rules answer: so a rule that denies holds with every preset, and each answer is
/// on record.
fn mode(harness: Harness, preset: Preset) -> Mode {
    match (harness, preset) {
        // Nobody can answer it.
        (Harness::Cline, Preset::Yolo) => Mode::Yolo,
        // Its sandbox refuses to write before anybody is asked.
        (Harness::Codex, Preset::AutoEdit | Preset::Yolo) => Mode::Edit,
        (
            Harness::ClaudeCode
            | Harness::Codex
            | Harness::GeminiCli
            | Harness::KiloCode
            | Harness::Cline
            | Harness::Opencode
            | Harness::Acp
            | Harness::Native,
            Preset::Manual | Preset::Careful | Preset::AutoEdit | Preset::Yolo,
        ) => Mode::Ask,
    }
}

struct AgentHarness {
    harness: Harness,
    mode: Mode,
    tell: Teller,
    ordering: mpsc::Sender<Order>,
    process: Process,
    stop: CancellationToken,
    /// The process that was started.
    main: Option<processes::Process>,
    is_ready: bool,
    /// It has taken a prompt since it was started: what failed after that, it knows about.
    was_told: bool,
    /// A prompt for when it is up, or its turn before is over.
    next: Option<Prompt>,
    /// How long that prompt waits for the end of a turn.
    next_by: Option<Instant>,
    /// The turn that it works on.
    turn: Option<TurnId>,
    /// It has taken the prompt of that turn: an end that it tells sooner is of something else.
    is_taken: bool,
    /// It was told to give that turn up.
    is_interrupted: bool,
    /// The turn that the process was started for, where it has one for each.
    process_turn: Option<TurnId>,
    /// What it asked in its turn.
    asked: VecDeque<Asked>,
    /// Orders whose fate is not known yet.
    unsettled: FuturesUnordered<BoxFuture<'static, Option<Settled>>>,
    spent: Spent,
    /// Lines that nobody understood.
    unrecognised: u32,
    exit: Option<Exit>,
}

/// What begins a turn.
#[derive(Clone)]
struct Prompt {
    turn: TurnId,
    mode: Mode,
    /// What the operator wrote; none where what failed is tried again.
    text: Option<Arc<str>>,
    /// What that was about, for an agent that was not told it.
    again: Option<Arc<str>>,
}

/// What became of an order.
struct Settled {
    what: What,
    taken: Result<(), Cannot>,
}

#[derive(Clone)]
enum What {
    Prompt(Prompt),
    Answer(CallId),
    Other(&'static str),
}

impl AgentHarness {
    fn new(
        harness: Harness,
        mode: Mode,
        tell: Teller,
        ordering: mpsc::Sender<Order>,
        process: Process,
        stop: CancellationToken,
    ) -> Self {
        Self {
            harness,
            mode,
            tell,
            ordering,
            process,
            stop,
            main: None,
            is_ready: false,
            was_told: false,
            next: None,
            next_by: None,
            turn: None,
            is_taken: false,
            is_interrupted: false,
            process_turn: None,
            asked: VecDeque::new(),
            unsettled: FuturesUnordered::new(),
            spent: Spent::default(),
            unrecognised: 0,
            exit: None,
        }
    }

    async fn order(&mut self, order: HarnessOrder) {
        match order {
            HarnessOrder::Send(sending) => self.send(*sending),
            HarnessOrder::Answer { call, answer } => {
                let command = command(&call, answer);
                self.give(command, What::Answer(call));
            }
            HarnessOrder::Release => self.give(Command::Release, What::Other("release")),
            HarnessOrder::Interrupt { turn } if self.turn.as_ref() == Some(&turn) => {
                self.interrupt();
            }
            HarnessOrder::Interrupt { turn } => {
                // It was never told that prompt, and now it never is.
                if let Some(next) = self.next.take_if(|next| next.turn == turn) {
                    self.next_by = None;
                    let ended = Report::Completed {
                        turn: next.turn,
                        text: None,
                        stop: StopReason::Done,
                        frozen: None,
                    };
                    self.tell.tell(ended).await;
                }
            }
            HarnessOrder::Stop => self.give(Command::Stop, What::Other("stop")),
        }
    }

    fn interrupt(&mut self) {
        self.is_interrupted = true;
        self.give(Command::Interrupt, What::Other("interrupt"));
    }

    fn send(&mut self, sending: Sending) {
        let Sending { turn, attempt, start, text, again, .. } = sending;
        // The operator asks for something: what still runs is not what they want.
        let is_asked = text.is_some() || attempt <= 1;
        let prompt = Prompt { turn, mode: mode(self.harness, start.preset), text, again };
        match (self.is_ready, &self.turn) {
            (true, None) => self.prompt(prompt),
            (false, _) => self.next = Some(prompt),
            // It is thought to be lost, and works on: what it does now is the new try.
            (true, Some(_)) if !is_asked && !self.is_interrupted => {
                if self.process_turn == self.turn {
                    self.process_turn = Some(prompt.turn.clone());
                }
                self.turn = Some(prompt.turn);
            }
            (true, Some(_)) => {
                if !self.is_interrupted {
                    self.interrupt();
                }
                self.keep(prompt);
            }
        }
    }

    /// For when the turn before is over.
    fn keep(&mut self, prompt: Prompt) {
        self.next = Some(prompt);
        self.next_by = Some(Instant::now() + TURN_END_MAX);
    }

    /// Nobody promises to end a turn: whoever wrote the next prompt has to know.
    async fn give_up_next(&mut self) {
        self.next_by = None;
        if let Some(next) = self.next.take() {
            self.failed(next.turn, "it is still at its turn before").await;
        }
    }

    async fn failed(&mut self, turn: TurnId, why: &str) {
        let message = format!("the agent did not take the prompt: {why}").into();
        let trouble = TroubleKind::Lasting;
        let trouble = HarnessTrouble { trouble, message, retry_after_ms: None };
        let (failure, used) = (None, Used::default());
        self.tell.tell(Report::Failed { turn, trouble, failure, used }).await;
    }

    fn prompt(&mut self, prompt: Prompt) {
        self.turn = Some(prompt.turn.clone());
        (self.is_taken, self.is_interrupted) = (false, false);
        self.spent.begin();
        if std::mem::replace(&mut self.mode, prompt.mode) != prompt.mode {
            self.give(Command::SetMode(prompt.mode), What::Other("change its mode"));
        }
        // What it was told it keeps, and may have done half of: it goes on from there.
        let again = prompt.again.clone().filter(|_| !self.was_told);
        let text = prompt.text.clone().or(again);
        let command = text.map_or(Command::Retry, |text| Command::Prompt { text });
        self.give(command, What::Prompt(prompt));
    }

    /// Its turn is over, or it is up: the prompt that waits for it is given.
    fn turn_over(&mut self) {
        self.turn = None;
        self.asked.clear();
        self.next_by = None;
        if let Some(next) = self.next.take() {
            self.prompt(next);
        }
    }

    /// Never waits: its runner may wait for us to hear.
    fn give(&mut self, command: Command, what: What) {
        let (order, taken) = Order::new(command);
        if self.ordering.try_send(order).is_err() {
            // It takes nothing more, and its end says why.
            self.stop.cancel();
            return;
        }
        let fate = async move { Some(Settled { what, taken: taken.await.ok()? }) };
        self.unsettled.push(Box::pin(fate));
    }

    async fn settled(&mut self, settled: Option<Settled>) {
        let Some(Settled { what, taken }) = settled else { return };
        let Err(cannot) = taken else {
            if matches!(what, What::Prompt(_)) {
                (self.is_taken, self.was_told) = (true, true);
            }
            return;
        };
        match what {
            What::Prompt(prompt) => {
                self.turn.take_if(|turn| *turn == prompt.turn);
                match cannot {
                    // It began to work by itself.
                    Cannot::Busy => self.keep(prompt),
                    Cannot::NotReady | Cannot::Idle | Cannot::NotAsked | Cannot::NotOffered(_) => {
                        self.failed(prompt.turn, why(cannot)).await
                    }
                }
            }
            What::Answer(call) => self.unanswered(call, cannot).await,
            What::Other(what) => debug!(what, why = why(cannot), "an agent did not take an order"),
        }
    }
}

fn why(cannot: Cannot) -> &'static str {
    match cannot {
        Cannot::NotReady => "it has not come up yet",
        Cannot::Busy => "a turn runs already",
        Cannot::Idle => "no turn runs",
        Cannot::NotAsked => "it asks for nothing under that call any more",
        Cannot::NotOffered(what) => what,
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
