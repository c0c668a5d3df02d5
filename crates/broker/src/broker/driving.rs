//! Sessions that we drive: the broker's half that speaks to their machines.
//!
//! Every event takes the same way ([`Broker::drive`]): the machine is asked, the entry goes to the
//! journal, and only then comes what it wants done. What the machine refuses or does not await is
//! not journaled: it changed nothing.

mod acting;
mod hearing;
mod recovery;
mod streaming;

use std::collections::VecDeque;

use qd_session::Session;
use qd_session::event::{Entry, Event as JournalEvent};
use qd_session::id::{RunId, SessionId};
use qd_session::limits::CONVERSATION_BYTES_MAX;
use qd_session::logbook::{Frozen, Logbook};
use qd_session::machine::{
    Action, AgentError, Batch, Declined, Effect, Event, HarnessTrouble, Machine, Output as Step,
    State, Stimulus, Tools, TroubleKind, transition,
};
use qd_session::moment::{Source, Timestamp};
use qd_session::monitor::{AgentEvent, Fact, Place};
use qd_session::policy::{Preset, Tightening};

use self::streaming::{Cut, TheirCalls};
use super::{Broker, Output};
use crate::driving::HookedRun;
use crate::driving::spawning::DRIVEN_MAX;
use crate::driving::{Job, Sending, Spawning, Start, Unspawned, Work, clipped};
use crate::rules::Judge;

/// What became of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    Taken,
    /// Of an old turn, an ended run or a timer that no longer matters.
    Late,
    /// Not possible where the session is.
    Refused,
}

impl Broker {
    /// Whether there is room for that session.
    pub fn may_spawn(&self, session: &SessionId) -> Result<(), Unspawned> {
        if self.roster.contains_key(session) {
            return Err(Unspawned::Exists);
        }
        let machines =
            self.roster.values().filter_map(|tracked| tracked.session.driven()?.machine());
        match machines.filter(|machine| is_alive(machine)).count() < DRIVEN_MAX {
            true => Ok(()),
            false => Err(Unspawned::TooMany),
        }
    }

    pub(super) fn spawn(&mut self, now: Timestamp, spawning: Spawning, outputs: &mut Vec<Output>) {
        let Spawning { session: id, harness, setup, brief, vendor_id, trouble } = spawning;
        if self.may_spawn(&id).is_err() {
            return;
        }
        self.make_room();
        let cwd = Some(brief.workspace.clone());
        let known = vendor_id.unwrap_or_else(|| id.as_str().into());
        let mut session = Session::new(id.clone());
        let brief = Some(Box::new(brief));
        let entry = Entry::new(id.clone(), now, JournalEvent::SetUp { setup, brief });
        session.apply(&entry);
        self.found.insert((harness, known.clone()), id.clone());
        self.track(session, harness, known.clone());
        outputs.push(Output::Found { session: id.clone(), harness, vendor_id: known });
        outputs.push(Output::Append(entry));
        self.note(now, &id, Fact::SessionStarted { process: None }, outputs);
        let place = Place { cwd, ..Place::default() };
        self.note(now, &id, Fact::PlaceKnown { place }, outputs);
        self.drive(now, &id, Event::Spawned, outputs);
        if let Some(error) = trouble {
            self.show_error(now, &id, error, outputs);
        }
    }

    /// The conversation that is led about a folder: the one that lives, or the latest.
    pub fn chat(&self, folder: &str) -> Option<&SessionId> {
        let led = self.roster.iter().filter_map(|(id, tracked)| {
            let session = tracked.session.driven()?;
            let (machine, brief) = (session.machine()?, session.logbook()?.brief());
            let is_it = brief.is_chat && *brief.workspace == *folder;
            is_it.then_some(((is_alive(machine), machine.since()), id))
        });
        led.max().map(|(_, id)| id)
    }

    /// Something that the operator should read, now or when they look; it changes no state.
    fn show_error(
        &mut self,
        now: Timestamp,
        id: &SessionId,
        error: AgentError,
        outputs: &mut Vec<Output>,
    ) {
        let Some(tracked) = self.roster.get_mut(id) else { return };
        let seed = self.drives.seed();
        let error = AgentError { message: clipped(error.message), ..error };
        let entry = Entry::new(id.clone(), now, JournalEvent::Troubled { seed, error });
        let steps = tracked.session.wake().apply(&entry);
        outputs.push(Output::Append(entry));
        outputs.extend(steps.into_iter().filter_map(shown));
    }

    /// Something that we know of a session because we drive it, for all that is not its state.
    fn note(&mut self, now: Timestamp, id: &SessionId, fact: Fact, outputs: &mut Vec<Output>) {
        let event = AgentEvent::main(now, Source::Driver, fact);
        let entry = Entry::new(id.clone(), now, JournalEvent::Observed { event });
        self.journal(id, entry, outputs);
    }

    /// Timers that are due.
    pub(super) fn ring(&mut self, now: Timestamp, outputs: &mut Vec<Output>) {
        for (session, timer) in self.drives.alarms.rung(now) {
            self.drive(now, &session, Event::TimerFired { timer }, outputs);
        }
    }

    /// One event, and all that follows from it at once.
    pub(super) fn drive(
        &mut self,
        now: Timestamp,
        id: &SessionId,
        event: Event,
        outputs: &mut Vec<Output>,
    ) -> Heard {
        self.drive_with(now, id, event, None, outputs)
    }

    /// The same with the answer that is complete with it.
    pub(super) fn drive_with(
        &mut self,
        now: Timestamp,
        id: &SessionId,
        event: Event,
        frozen: Option<Box<Frozen>>,
        outputs: &mut Vec<Output>,
    ) -> Heard {
        let mut next = VecDeque::new();
        let is_piece = matches!(event, Event::StreamDelta { .. });
        let cut = Cut::by(&event);
        let heard = self.step(now, id, event, frozen, &mut next, outputs);
        while let Some(event) = next.pop_front() {
            self.step(now, id, event, None, &mut next, outputs);
        }
        if heard == Heard::Taken && !is_piece {
            self.end_stream(now, id, cut, outputs);
            self.look_at_requests(now, id, outputs);
            self.show(now, id, outputs);
        }
        heard
    }

    fn step(
        &mut self,
        now: Timestamp,
        id: &SessionId,
        event: Event,
        frozen: Option<Box<Frozen>>,
        next: &mut VecDeque<Event>,
        outputs: &mut Vec<Output>,
    ) -> Heard {
        let seed = self.drives.seed();
        let Some(tracked) = self.roster.get_mut(id) else { return Heard::Late };
        let Some(machine) = tracked.session.driven().and_then(Session::machine) else {
            return Heard::Late;
        };
        let drive = self.drives.sessions.entry(id.clone()).or_default();
        let step = match transition(machine.setup(), machine.state(), now, seed, &event) {
            Ok(step) => step,
            Err(Declined::Stale) => {
                drive.late += 1;
                return Heard::Late;
            }
            Err(Declined::Refused) => {
                let stimulus = Stimulus { session: id.clone(), at: now, seed, event };
                outputs.extend(machine.clone().handle(&stimulus).into_iter().filter_map(shown));
                return Heard::Refused;
            }
        };
        // A piece of an answer only shows that the stream lives.
        if let Event::StreamDelta { .. } = event {
            for effect in step.effects {
                if let Effect::Do(Action::StartTimer { timer, after_ms }) = effect {
                    self.drives.alarms.start(now, id, timer, after_ms);
                }
            }
            return Heard::Taken;
        }
        drive.has_acted |= matches!(event, Event::ToolReported { .. });
        let is_idle = step.effects.is_empty() && step.state == *machine.state();
        if is_idle && !matches!(event, Event::YoloSwitched { .. }) {
            return Heard::Taken;
        }
        let their_calls = TheirCalls::before(machine, &event);
        let entry = Entry::new(id.clone(), now, JournalEvent::Driven { seed, event, frozen });
        let steps = tracked.session.wake().apply(&entry);
        outputs.push(Output::Append(entry));
        for step in steps {
            match step {
                Step::Show(shown) => {
                    let ended = their_calls.ended(&shown.change);
                    outputs.push(Output::Changed(Box::new(shown)));
                    self.stream_result(now, id, ended, outputs);
                }
                Step::Do(action) => self.act(now, id, action, next, outputs),
            }
        }
        Heard::Taken
    }

    /// Hands out what the machine wants done.
    fn act(
        &mut self,
        now: Timestamp,
        id: &SessionId,
        action: Action,
        next: &mut VecDeque<Event>,
        outputs: &mut Vec<Output>,
    ) {
        let Some((machine, logbook)) = self.driven(id) else { return };
        let workspace = logbook.brief().workspace.clone();
        let work = match action {
            Action::StartHarness => Work::Start(Box::new(self.start(id, logbook))),
            Action::SendToHarness { turn, attempt, text, .. } => {
                if logbook.conversation().bytes() > CONVERSATION_BYTES_MAX {
                    let trouble = HarnessTrouble {
                        trouble: TroubleKind::Lasting,
                        message: "the conversation is too long; begin a new session".into(),
                        retry_after_ms: None,
                    };
                    next.push_back(Event::StreamFailed { turn, trouble });
                    return;
                }
                let conversation = logbook.conversation();
                let has_acted = self.drives.sessions.get(id).is_some_and(|drive| drive.has_acted);
                let is_again = text.is_none() && machine.setup().tools != Tools::Ours;
                let again = conversation.last_words().filter(|_| is_again && !has_acted).cloned();
                let conversation = conversation.messages().to_vec();
                let start = self.start(id, logbook);
                if let Some(drive) = self.drives.sessions.get_mut(id).filter(|_| text.is_some()) {
                    drive.has_acted = false;
                }
                // Whatever was said before this was asked is over.
                self.end_stream(now, id, Cut::Operator, outputs);
                self.stream_of(now, id, &turn);
                Work::Send(Box::new(Sending { turn, attempt, start, text, again, conversation }))
            }
            Action::ParseResponse { turn } => {
                let calls = logbook.conversation().calls_of(&turn);
                let tools = calls.iter().map(|call| call.name.clone()).collect();
                Work::Survey { turn: Some(turn), workspace, tools }
            }
            // The desk looks for itself what is open, and has it judged.
            Action::RequestApproval { .. } | Action::RequestInput { .. } => return,
            Action::ExecuteTools { tools } => Work::RunTools { workspace, tools },
            Action::CancelTool { run } => Work::CancelTool { run },
            Action::RunPostToolHook { run, hook, tool_runs } => {
                let hooks = &machine.setup().hooks;
                let Some(config) = hooks.iter().find(|known| known.name == hook) else {
                    let error = Some("no hook of that name is set up".into());
                    next.push_back(Event::HookFinished { run, error, output: None });
                    return;
                };
                let hook = Box::new(config.clone());
                let tool_runs = hooked(machine, &tool_runs);
                Work::RunHook { run, hook, workspace, tool_runs }
            }
            Action::CancelHook { run } => Work::CancelHook { run },
            Action::AnswerHarness { call, answer } => Work::Answer { call, answer },
            Action::ReleaseHarness => Work::Release,
            Action::InterruptHarness { turn } => Work::Interrupt { turn },
            Action::StopHarness => Work::Stop,
            Action::KillHarness => Work::Kill,
            Action::StartTimer { timer, after_ms } => {
                self.drives.alarms.start(now, id, timer, after_ms);
                return;
            }
            Action::CancelTimer { timer } => {
                self.drives.alarms.cancel(id, &timer);
                return;
            }
        };
        self.hand_out(id, work, outputs);
    }

    /// An agent is started, and one that runs its own tools is told to work, only after the files
    /// of its repository were read again: they say how much it may do by itself. Whatever else is
    /// wanted of it meanwhile comes behind.
    fn hand_out(&mut self, id: &SessionId, work: Work, outputs: &mut Vec<Output>) {
        let is_ours = self.driven(id).is_some_and(|(it, _)| it.setup().tools == Tools::Ours);
        let asks_first = match &work {
            Work::Start(_) => true,
            Work::Send(_) => !is_ours,
            Work::Survey { .. }
            | Work::RunTools { .. }
            | Work::CancelTool { .. }
            | Work::RunHook { .. }
            | Work::CancelHook { .. }
            | Work::Answer { .. }
            | Work::Release
            | Work::Interrupt { .. }
            | Work::Stop
            | Work::Kill => false,
        };
        let held = &mut self.drives.sessions.entry(id.clone()).or_default().held;
        if !held.is_empty() {
            held.push(work);
        } else if asks_first {
            held.push(work);
            self.survey(id, outputs);
        } else {
            outputs.push(Output::Run(Box::new(Job { session: id.clone(), work })));
        }
    }

    /// It is known what the repository forbids: those that waited for it go out.
    fn let_go(&mut self, id: &SessionId, outputs: &mut Vec<Output>) {
        let Some(drive) = self.drives.sessions.get_mut(id) else { return };
        for mut work in std::mem::take(&mut drive.held) {
            let preset = self.effective_preset(id);
            if let Work::Start(start) = &mut work {
                start.preset = preset;
            } else if let Work::Send(sending) = &mut work {
                sending.start.preset = preset;
            }
            outputs.push(Output::Run(Box::new(Job { session: id.clone(), work })));
        }
    }

    /// How much a session does without asking, as its repository lets it.
    fn effective_preset(&self, id: &SessionId) -> Preset {
        let Some((_, logbook)) = self.driven(id) else { return Preset::Manual };
        let known = self.drives.sessions.get(id).and_then(|drive| drive.tightening.clone());
        let tightening = &known.unwrap_or_else(unknown_ground);
        Judge { policy: &self.ruling.policy, logbook, tightening }.preset()
    }

    /// Who is started for a session, and how it goes on with itself.
    fn start(&self, id: &SessionId, logbook: &Logbook) -> Start {
        let tracked = &self.roster[id];
        let vendor_id = Some(tracked.vendor_id.clone()).filter(|known| **known != *id.as_str());
        let (harness, brief) = (tracked.harness, logbook.brief().clone());
        let machine = tracked.session.driven().and_then(Session::machine);
        let is_held = machine.is_some_and(|it| it.setup().tools == Tools::TheirsHeld);
        Start { harness, brief, preset: self.effective_preset(id), is_held, vendor_id }
    }

    fn driven(&self, id: &SessionId) -> Option<(&Machine, &Logbook)> {
        let session = self.roster.get(id)?.session.driven()?;
        Some((session.machine()?, session.logbook()?))
    }

    /// Somebody should look what the repository forbids.
    fn survey(&self, id: &SessionId, outputs: &mut Vec<Output>) {
        let Some((_, logbook)) = self.driven(id) else { return };
        let workspace = logbook.brief().workspace.clone();
        let work = Work::Survey { turn: None, workspace, tools: Vec::new() };
        outputs.push(Output::Run(Box::new(Job { session: id.clone(), work })));
    }
}

/// It has not ended.
pub(super) fn is_alive(machine: &Machine) -> bool {
    !matches!(machine.state(), State::Idle | State::Stopped { .. })
}

/// The runs that a hook is for, with what ran.
fn hooked(machine: &Machine, runs: &[RunId]) -> Vec<HookedRun> {
    let batch = machine.state().batch().map(Batch::runs).unwrap_or_default();
    let named = batch.iter().filter_map(|run| {
        let tool = run.call.name.clone();
        Some(HookedRun { run: run.id.clone().filter(|id| runs.contains(id))?, tool })
    });
    named.collect()
}

fn shown(step: Step) -> Option<Output> {
    match step {
        Step::Show(shown) => Some(Output::Changed(Box::new(shown))),
        Step::Do(_) => None,
    }
}

/// Nothing is known of the repository yet: it may forbid anything.
fn unknown_ground() -> Tightening {
    Tightening::unreadable()
}
