//! All sessions, decided in one place: an input and its time in, outputs in order out.
//!
//! Pure. It owns a handler for each harness and the sessions they tell of; reading, writing and
//! waiting are its caller's.
//! Invariant: what must not be lost comes out as [`Output::Append`] before anything is shown
//! because of it, and what tells nothing new is not journaled, so hearing a thing twice is free.

mod acting;
mod budgets;
mod clients;
mod clock;
mod driving;
mod resting;
mod ruling;
mod vitals;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use qd_harness::native::StreamEvent;
use qd_harness::usage::Sum;
use qd_harness::{Channel, Handler, Harness, Sighting, Signal};
use qd_hook_wire::FrameId;
use qd_session::Session;
use qd_session::decision::Record;
use qd_session::event::{Entry, Event};
use qd_session::id::{AgentId, ProcessKey, SessionId};
use qd_session::machine::Shown;
use qd_session::moment::Timestamp;
use qd_session::monitor::Fact;
use qd_session::operator::layer::Layers;
use qd_session::operator::{Group, SubState};
use qd_session::policy::Policy;

pub use self::acting::Staying;
use self::clients::ClientHeard;
pub use self::clients::{ClientVersion, ClientView};
use self::driving::is_alive;
use self::resting::SessionCell;
use crate::budgets::Work;
use crate::card::{Card, Fingerprint, Known, Surroundings};
use crate::desk::{Capabilities, Desk, Errand, Reach, Taken};
use crate::driving::{Drives, Job, Report, Spawning};
use crate::rules::Ruling;
use crate::session_key::{SessionKey, session_id};
use crate::survey::{Survey, Surveyed};
use crate::terminal::Terminal;
use crate::viewing::Viewing;
use crate::vital::{Vital, VitalSigns};

/// Sessions kept in memory: as many as the journal keeps. At rest one takes less than 2 KiB.
const SESSIONS_MAX: usize = 20_000;

/// How long a session stays awake that nothing is heard of, and at most twice as long. An agent at
/// work says something every few seconds; packing and unpacking takes some ten microseconds.
pub const REST_AFTER_MS: u64 = 30_000;

/// Sessions that may wake, or begin, before others are sent to rest early. One awake takes some ten
/// kilobytes, and a restart brings thousands at once.
pub const WOKEN_MAX: usize = 256;

/// How long an ended session stays on the board; then it is history.
const ENDED_SHOWN_MS: u64 = 24 * 60 * 60 * 1_000;

/// Sessions of which only their cost is known: files of years.
const SPENT_MAX: usize = 100_000;

/// Terminals that are remembered: of every process that may carry a session.
pub const TERMINALS_MAX: usize = 4_096;

/// Something that happened outside.
#[derive(Debug)]
pub enum Input<'a> {
    /// An agent said something.
    Signal { harness: Harness, signal: Signal<'a> },
    /// An agent said something that may have been taken in before the last restart. Its handler
    /// has to hear it again; timers that ran out before it run out first.
    Recalled { harness: Harness, signal: Signal<'a> },
    /// An agent said something before the clock was set back. Its handler has to hear it again;
    /// what came of it is known.
    Reheard { harness: Harness, signal: Signal<'a> },
    /// A recording said something. It is as if an agent had, but nobody is there to be told.
    Played { harness: Harness, signal: Signal<'a> },
    /// The time that was asked for has come.
    Woken,
    /// The clock was set back by so much.
    ClockSetBack { by_ms: u64 },
    /// The machine slept for so long, or its clock was set forward.
    Slept { ms: u64 },
    /// A session that the journal knew when we started.
    Restored { harness: Harness, vendor_id: Arc<str>, session: Box<Session> },
    /// The operator wants it out of Needs You until its next event.
    Dismissed { session: SessionId },
    /// The operator wants it in History, if nothing of it is known to live.
    Archived { session: SessionId },
    /// The operator wants it back on the board.
    Unarchived { session: SessionId },
    /// What sessions have cost so far, on the board or not.
    Spent(Vec<(SessionKey, Sum)>),
    /// What all of them have cost on the operator's day.
    Today(Sum),
    /// How long a session had worked before we were started.
    Worked { session: SessionId, ms: u64 },
    /// Processes that carry sessions were looked at.
    Vitals(Vec<Vital>),
    /// A process shows itself there, or nobody can tell where.
    Located { process: ProcessKey, terminal: Terminal },
    /// The operator's layers are these from now on.
    Layers(Layers),
    /// The operator's rules are these from now on.
    Policy(Policy),
    /// The files around a folder say this.
    Surveyed(Surveyed),
    /// Somebody wants a session that we drive. Asked before: [`Broker::may_spawn`].
    Spawned(Box<Spawning>),
    /// A runner tells something of a session that we drive.
    Reported { session: SessionId, report: Report },
}

/// Something to be done, in the order given.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// A session was heard of for the first time.
    Found { session: SessionId, harness: Harness, vendor_id: Arc<str> },
    /// To the journal, before what follows is shown.
    Append(Entry),
    /// A card is new or looks different.
    Show(Box<Card>),
    /// Somebody should look where this process shows itself.
    Locate(ProcessKey),
    /// Somebody should read what the files around a folder forbid.
    Survey(Survey),
    /// Somebody should ask its server what this agent of a session waits for.
    LookInto { session: SessionId, agent: AgentId },
    /// To the decisions, before what follows is carried.
    Record(Box<Record>),
    /// To be carried to an agent.
    Carry(Box<Errand>),
    /// Nobody needs this forwarder any more.
    Release(FrameId),
    /// What became of a decision.
    Settled(Taken),
    /// For a runner.
    Run(Box<Job>),
    /// A driven session took a step: to be shown.
    Changed(Box<Shown>),
    /// A piece of an answer: to be shown.
    Streamed(Box<StreamEvent>),
    /// A card has left the board: it ended long ago, it ended and was dismissed, or it was put into
    /// History.
    Remove(SessionId),
}

/// What a card shows of what is around its session; by fields, so that others stay free.
macro_rules! surroundings {
    ($broker:expr) => {
        Surroundings {
            layers: &$broker.layers,
            terminals: &$broker.terminals,
            desk: &$broker.desk,
            ruling: &$broker.ruling,
            vitals: &$broker.vitals,
            today: $broker.today.as_ref(),
        }
    };
}

/// Every session on this machine.
#[allow(missing_debug_implementations, reason = "handlers are behind a trait")]
#[derive(Default)]
pub struct Broker {
    handlers: BTreeMap<Harness, Box<dyn Handler + Send>>,
    roster: BTreeMap<SessionId, Tracked>,
    found: BTreeMap<(Harness, Arc<str>), SessionId>,
    /// When each session may look different although nothing happens.
    looks: BTreeSet<(Timestamp, SessionId)>,
    /// Of sessions that nothing else is known of yet.
    spent: BTreeMap<(Harness, Arc<str>), Sum>,
    /// Other words for what the core says, put on when a card is made.
    layers: Layers,
    /// Of processes that carry a session; empty while one is looked for.
    terminals: Terminals,
    desk: Desk,
    ruling: Ruling,
    vitals: VitalSigns,
    /// What all sessions have cost on the operator's day.
    today: Option<Sum>,
    /// A page or a phone shows the board.
    is_operator_present: bool,
    /// What the operator looks at.
    viewing: Viewing,
    /// Sessions that we drive.
    drives: Drives,
    /// Sessions that were woken, or are new, since resting was last thought of.
    woken: usize,
    /// When to think of it next; none while all that can rest does.
    rest_at: Option<Timestamp>,
    /// What was heard of each client.
    clients: BTreeMap<Harness, ClientHeard>,
}

pub type Terminals = BTreeMap<ProcessKey, Terminal>;

/// Whether a signal can be heard again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Telling {
    /// It is journaled whatever it changes: nobody brings it again.
    Once,
    /// It is journaled where it changes something: the rest is known.
    PerhapsAgain,
}

struct Tracked {
    session: SessionCell,
    harness: Harness,
    vendor_id: Arc<str>,
    spent: Option<Box<Sum>>,
    reach: Reach,
    work: Work,
    /// As it was shown last; none while it is not on the board.
    shown: Option<LastShown>,
    /// Its entry in `looks`.
    look: Option<Timestamp>,
}

/// What is remembered of a card once it was shown.
struct LastShown {
    fingerprint: Fingerprint,
    ended: Option<Timestamp>,
    is_over_budget: bool,
    works: bool,
    is_stalled: bool,
}

impl Broker {
    pub fn handle(&mut self, now: Timestamp, input: Input<'_>) -> Vec<Output> {
        let mut outputs = Vec::new();
        match input {
            Input::Signal { harness, signal } => {
                let signal = not_ahead(now, signal);
                let handler = self.handlers.entry(harness).or_insert_with(|| harness.handler());
                let sightings = handler.handle_signal(&signal);
                let on_server = matches!(signal.channel, Channel::AppServer | Channel::Events);
                let told: Vec<Arc<str>> = match on_server {
                    true => sightings.iter().map(|one| one.session.clone()).collect(),
                    false => Vec::new(),
                };
                // A hook's frame is taken once. Lines of files are read again after a restart.
                let telling = match signal.channel == Channel::Hook {
                    true => Telling::Once,
                    false => Telling::PerhapsAgain,
                };
                self.take_in(now, harness, telling, sightings, &mut outputs);
                self.note_reach(now, harness, &told, Reach::Server, &mut outputs);
            }
            Input::Played { harness, signal } => {
                let handler = self.handlers.entry(harness).or_insert_with(|| harness.handler());
                let sightings = handler.handle_signal(&signal);
                let told: Vec<Arc<str>> = sightings.iter().map(|one| one.session.clone()).collect();
                self.take_in(now, harness, Telling::PerhapsAgain, sightings, &mut outputs);
                self.note_reach(now, harness, &told, Reach::Recording, &mut outputs);
            }
            Input::Recalled { harness, signal } => {
                let signal = not_ahead(now, signal);
                let handler = self.handlers.entry(harness).or_insert_with(|| harness.handler());
                let mut sightings = Vec::new();
                while handler.next_timeout().is_some_and(|due| due <= signal.at) {
                    let due = handler.next_timeout().expect("it was just seen");
                    sightings.extend(handler.handle_timeout(due));
                    if handler.next_timeout().is_some_and(|next| next <= due) {
                        break;
                    }
                }
                sightings.extend(handler.handle_signal(&signal));
                // What was not understood was counted then.
                sightings.retain(|one| !matches!(one.event.fact, Fact::Unrecognised { .. }));
                self.take_in(now, harness, Telling::PerhapsAgain, sightings, &mut outputs);
            }
            Input::Reheard { harness, signal } => {
                let handler = self.handlers.entry(harness).or_insert_with(|| harness.handler());
                handler.handle_signal(&signal);
            }
            Input::Woken => self.wake(now, &mut outputs),
            Input::ClockSetBack { by_ms } => self.clock_set_back(now, by_ms, &mut outputs),
            Input::Slept { ms } => self.slept(now, ms, &mut outputs),
            Input::Restored { harness, vendor_id, session } => {
                let id = session.id().clone();
                let handler = self.handlers.entry(harness).or_insert_with(|| harness.handler());
                handler.recall(&vendor_id, session.monitor());
                self.clients.entry(harness).or_default().recall(session.monitor());
                self.found.insert((harness, vendor_id.clone()), id.clone());
                self.track(*session, harness, vendor_id);
                self.look_at_requests(now, &id, &mut outputs);
                self.show(now, &id, &mut outputs);
            }
            Input::Dismissed { session } => {
                if self.roster.contains_key(&session) {
                    let entry = Entry::new(session.clone(), now, self.dismissal(now, &session));
                    self.journal(&session, entry, &mut outputs);
                    self.show(now, &session, &mut outputs);
                }
            }
            Input::Archived { session } => {
                let tracked = self.roster.get(&session);
                if tracked.is_some_and(|tracked| self.capabilities(tracked).can_archive) {
                    let entry = Entry::new(session.clone(), now, Event::Archived);
                    self.journal(&session, entry, &mut outputs);
                    self.show(now, &session, &mut outputs);
                }
            }
            Input::Unarchived { session } => {
                if self.roster.contains_key(&session) {
                    let entry = Entry::new(session.clone(), now, Event::Unarchived);
                    self.journal(&session, entry, &mut outputs);
                    self.show(now, &session, &mut outputs);
                }
            }
            Input::Spent(spent) => self.take_spent(now, spent, &mut outputs),
            Input::Today(sum) => self.take_today(now, sum, &mut outputs),
            Input::Worked { session, ms } => {
                if let Some(tracked) = self.roster.get_mut(&session) {
                    tracked.work.add(ms);
                    self.show(now, &session, &mut outputs);
                }
            }
            Input::Vitals(seen) => self.take_vitals(now, &seen, &mut outputs),
            Input::Located { process, terminal } => {
                self.terminals.insert(process.clone(), terminal);
                let carried = self.roster.iter().filter(|(_, tracked)| {
                    tracked.session.carriers().any(|carrier| *carrier == process)
                });
                let carried: Vec<SessionId> = carried.map(|(id, _)| id.clone()).collect();
                carried.iter().for_each(|id| self.show(now, id, &mut outputs));
            }
            Input::Spawned(spawning) => self.spawn(now, *spawning, &mut outputs),
            Input::Reported { session, report } => {
                self.hear(now, &session, report, &mut outputs);
            }
            Input::Layers(layers) => {
                self.layers = layers;
                self.show_all(now, &mut outputs);
            }
            Input::Policy(policy) => self.take_policy(now, policy, &mut outputs),
            Input::Surveyed(surveyed) => self.take_survey(now, surveyed, &mut outputs),
        }
        self.mind_rest(now);
        outputs
    }

    /// Lets every session rest that can: nobody works with those of a journal that was just read.
    pub fn rest_all(&mut self) {
        let mut press = resting::press();
        for tracked in self.roster.values_mut() {
            tracked.session.tire();
            tracked.session.rest(&mut press);
        }
    }

    /// Lets sessions rest that nothing was heard of for a while, or at once where many were woken.
    fn mind_rest(&mut self, now: Timestamp) {
        let is_due = self.rest_at.is_some_and(|at| at <= now);
        if is_due || self.woken >= WOKEN_MAX {
            let mut press = resting::press();
            self.roster.values_mut().for_each(|tracked| tracked.session.rest(&mut press));
            let is_anybody_up = self.roster.values().any(|tracked| tracked.session.will_rest());
            self.rest_at = is_anybody_up.then(|| now.plus_ms(REST_AFTER_MS));
            self.woken = 0;
        } else if self.woken > 0 && self.rest_at.is_none() {
            self.rest_at = Some(now.plus_ms(REST_AFTER_MS));
        }
    }

    fn take_spent(
        &mut self,
        now: Timestamp,
        spent: Vec<(SessionKey, Sum)>,
        outputs: &mut Vec<Output>,
    ) {
        // A session of ours has its own answers, sooner than they are counted.
        let counted = spent.into_iter().filter(|(key, _)| key.harness != Harness::Native);
        for (SessionKey { harness, session }, sum) in counted {
            let key = (harness, session);
            match self.found.get(&key).cloned() {
                Some(id) => {
                    if let Some(tracked) = self.roster.get_mut(&id) {
                        tracked.spent = Some(Box::new(sum));
                    }
                    self.show(now, &id, outputs);
                    self.mind_budget(now, &id, outputs);
                }
                None if self.spent.len() < SPENT_MAX => {
                    self.spent.insert(key, sum);
                }
                None => {}
            }
        }
    }

    /// When it wants to be woken if nothing comes.
    pub fn next_wake(&self) -> Option<Timestamp> {
        let timeouts = self.handlers.values().filter_map(|handler| handler.next_timeout());
        let look = self.looks.first().map(|(at, _)| *at);
        let desk = self.desk.next_release().into_iter().chain(self.desk.next_again());
        let rest = self.rest_at.into_iter();
        timeouts.chain(look).chain(desk).chain(self.drives.alarms.next()).chain(rest).min()
    }

    /// Every card on the board as of `now`, in its order.
    pub fn cards(&self, now: Timestamp) -> Vec<Card> {
        let mut cards: Vec<Card> = self.each_card(now).collect();
        cards.sort_by_key(|card| card.agent_state.place());
        cards
    }

    /// The same one after the other, in no order that means anything: a board of thousands is many
    /// megabytes of cards.
    pub fn each_card(&self, now: Timestamp) -> impl Iterator<Item = Card> {
        self.roster.values().filter_map(move |tracked| {
            tracked.card_on_board(now, &tracked.session.peek(), &surroundings!(self))
        })
    }

    /// Sessions that were heard of before a moment, the latest first, on the board or not.
    pub fn past(&self, now: Timestamp, wanted: &Past) -> Vec<Card> {
        let is_wanted = |tracked: &&Tracked| {
            let cwd = || tracked.session.folder();
            let in_project = |project: &str| cwd().is_some_and(|cwd| cwd.contains(project));
            wanted.before.is_none_or(|before| tracked.session.heard() < before)
                && wanted.harness.is_none_or(|harness| tracked.harness == harness)
                && wanted.project.as_deref().is_none_or(in_project)
        };
        let mut found: Vec<&Tracked> = self.roster.values().filter(is_wanted).collect();
        found.sort_by_key(|tracked| std::cmp::Reverse(tracked.session.heard()));
        let card =
            |tracked: &Tracked| tracked.card(now, &tracked.session.peek(), &surroundings!(self));
        let cards = found.into_iter().filter_map(card);
        cards.take(wanted.count_max).collect()
    }

    /// The sessions on the board that were silent for so long, and of which nothing is known to
    /// live.
    pub fn archivable(&self, now: Timestamp, silent_ms: u64) -> Vec<SessionId> {
        let old = self.each_card(now).filter(|card| {
            card.capabilities.can_archive && now.ms_since(card.last_signal) >= silent_ms
        });
        old.map(|card| card.session_id).collect()
    }

    /// The cards of these, where they are known.
    pub fn cards_of(&self, now: Timestamp, keys: &[SessionKey]) -> Vec<Option<Card>> {
        let card = |SessionKey { harness, session }: &SessionKey| {
            self.card(now, self.found.get(&(*harness, session.clone()))?)
        };
        keys.iter().map(card).collect()
    }

    /// The card of one session, on the board or not.
    pub fn card(&self, now: Timestamp, id: &SessionId) -> Option<Card> {
        let tracked = self.roster.get(id)?;
        tracked.card(now, &tracked.session.peek(), &surroundings!(self))
    }

    /// The session that an operator's word means: an id of ours, an agent's own id, or a prefix
    /// of either that is unique.
    pub fn find(&self, word: &str) -> Result<&SessionId, NotFound> {
        let ids =
            |tracked: &Tracked, id: &SessionId| [id.to_string(), tracked.vendor_id.to_string()];
        let exact = self
            .roster
            .iter()
            .find(|(id, tracked)| ids(tracked, id).iter().any(|known| known == word));
        if let Some((id, _)) = exact {
            return Ok(id);
        }
        let mut alike = self.roster.iter().filter(|(id, tracked)| {
            ids(tracked, id).iter().any(|known| {
                known.starts_with(word)
                    || known.strip_prefix("sess_").is_some_and(|id| id.starts_with(word))
            })
        });
        match (alike.next(), alike.next()) {
            (Some((id, _)), None) => Ok(id),
            (None, _) => Err(NotFound::Nobody),
            (Some(_), Some(_)) => Err(NotFound::Several),
        }
    }

    /// The processes that carry a session, as far as anybody saw: agent, its own id for the
    /// session, and the process as signals spell it.
    pub fn carriers(&self) -> impl Iterator<Item = (Harness, &Arc<str>, &ProcessKey)> {
        self.roster.values().flat_map(|tracked| {
            let carriers = tracked.session.carriers();
            carriers.map(|process| (tracked.harness, &tracked.vendor_id, process))
        })
    }

    /// The processes that carry the session that its agent calls so.
    pub fn carriers_of(&self, key: &(Harness, Arc<str>)) -> impl Iterator<Item = &ProcessKey> {
        let tracked = self.found.get(key).and_then(|id| self.roster.get(id));
        tracked.into_iter().flat_map(|tracked| tracked.session.carriers())
    }

    /// Whether a session of this product that is on the board and has not ended is about a folder.
    pub(crate) fn lives_in(&self, harness: Harness, folder: Option<&str>) -> bool {
        let shown = self.roster.values().filter(|tracked| {
            let lives = tracked.shown.as_ref().is_some_and(|shown| shown.ended.is_none());
            lives && tracked.harness == harness
        });
        folder.is_some()
            && shown.map(|tracked| tracked.session.folder()).any(|it| it.as_deref() == folder)
    }

    /// How many sessions are known, on the board or not.
    pub fn len(&self) -> usize {
        self.roster.len()
    }

    pub fn is_empty(&self) -> bool {
        self.roster.is_empty()
    }

    /// The agent's own id for a session.
    pub fn vendor_id(&self, id: &SessionId) -> Option<&Arc<str>> {
        self.roster.get(id).map(|tracked| &tracked.vendor_id)
    }

    /// The session that its agent calls so, if it is one that we drive.
    pub fn driven_session(&self, harness: Harness, vendor_id: &Arc<str>) -> Option<&SessionId> {
        let id = self.found.get(&(harness, vendor_id.clone()))?;
        self.roster.get(id)?.session.driven().map(|_| id)
    }

    pub fn harness(&self, id: &SessionId) -> Option<Harness> {
        self.roster.get(id).map(|tracked| tracked.harness)
    }

    /// A session as it is; of one at rest, a copy.
    pub fn session(&self, id: &SessionId) -> Option<Cow<'_, Session>> {
        self.roster.get(id).map(|tracked| tracked.session.peek())
    }

    /// How many sessions are at rest.
    pub fn resting(&self) -> usize {
        self.roster.values().filter(|tracked| tracked.session.is_resting()).count()
    }

    fn wake(&mut self, now: Timestamp, outputs: &mut Vec<Output>) {
        self.release_due(now, outputs);
        self.send_again(now, outputs);
        self.ring(now, outputs);
        let due: Vec<Harness> = self
            .handlers
            .iter()
            .filter(|(_, handler)| handler.next_timeout().is_some_and(|due| due <= now))
            .map(|(harness, _)| *harness)
            .collect();
        for harness in due {
            let handler = self.handlers.get_mut(&harness).expect("it was just seen to be due");
            let sightings = handler.handle_timeout(now);
            self.take_in(now, harness, Telling::PerhapsAgain, sightings, outputs);
        }
        while self.looks.first().is_some_and(|(at, _)| *at <= now) {
            let (_, id) = self.looks.pop_first().expect("it was just seen");
            if let Some(tracked) = self.roster.get_mut(&id) {
                tracked.look = None;
            }
            self.show(now, &id, outputs);
            self.mind_budget(now, &id, outputs);
        }
    }

    fn take_in(
        &mut self,
        now: Timestamp,
        harness: Harness,
        telling: Telling,
        sightings: Vec<Sighting>,
        outputs: &mut Vec<Output>,
    ) {
        let mut touched: Vec<SessionId> = Vec::new();
        for Sighting { session: vendor_id, event } in sightings {
            self.joined(now, harness, &vendor_id, &event.fact, outputs);
            let id = self.session_of(harness, &vendor_id, outputs);
            self.note_prompt(&id, &event, outputs);
            let entry = Entry::new(id.clone(), now, Event::Observed { event });
            let is_new = self.apply(&id, &entry);
            // A hook that comes behind a newer one changes nothing, and yet it happened.
            if is_new || telling == Telling::Once {
                outputs.push(Output::Append(entry));
            }
            if is_new && !touched.contains(&id) {
                touched.push(id);
            }
        }
        for id in touched {
            self.look_at_requests(now, &id, outputs);
            self.show(now, &id, outputs);
        }
    }

    fn session_of(
        &mut self,
        harness: Harness,
        vendor_id: &Arc<str>,
        outputs: &mut Vec<Output>,
    ) -> SessionId {
        let key = (harness, vendor_id.clone());
        if let Some(id) = self.found.get(&key) {
            return id.clone();
        }
        let id = session_id(harness, vendor_id);
        self.found.insert(key, id.clone());
        self.make_room();
        let session = Session::new(id.clone());
        let vendor_id = vendor_id.clone();
        outputs.push(Output::Found { session: id.clone(), harness, vendor_id: vendor_id.clone() });
        self.track(session, harness, vendor_id);
        id
    }

    fn track(&mut self, session: Session, harness: Harness, vendor_id: Arc<str>) {
        let spent = self.spent.remove(&(harness, vendor_id.clone())).map(Box::new);
        let is_driven = session.machine().is_some();
        let work = Work::default();
        let reach = if is_driven { Reach::Driver } else { Reach::Nowhere };
        if is_driven {
            self.drives.sessions.entry(session.id().clone()).or_default();
        }
        let (id, session) = (session.id().clone(), SessionCell::new(session));
        let tracked =
            Tracked { session, harness, vendor_id, spent, reach, work, shown: None, look: None };
        self.roster.insert(id, tracked);
        self.woken += 1;
    }

    /// Forgets the session that was silent for longest, if there are too many. Those on the board
    /// stay.
    fn make_room(&mut self) {
        if self.roster.len() < SESSIONS_MAX {
            return;
        }
        let silent = self.roster.iter().filter(|(_, tracked)| {
            let machine = tracked.session.driven().and_then(Session::machine);
            tracked.shown.is_none() && !machine.is_some_and(is_alive)
        });
        let stalest = silent.min_by_key(|(_, tracked)| tracked.session.heard());
        let Some((id, _)) = stalest else { return };
        let id = id.clone();
        if let Some(gone) = self.roster.remove(&id) {
            self.found.remove(&(gone.harness, gone.vendor_id));
            self.drives.forget(&id);
            gone.look.map(|look| self.looks.remove(&(look, id)));
        }
    }

    /// Whether it told anything new.
    fn journal(&mut self, id: &SessionId, entry: Entry, outputs: &mut Vec<Output>) -> bool {
        let is_new = self.apply(id, &entry);
        if is_new {
            outputs.push(Output::Append(entry));
        }
        is_new
    }

    /// Whether the session is another one after it.
    fn apply(&mut self, id: &SessionId, entry: &Entry) -> bool {
        let tracked = self.roster.get_mut(id).expect("a session is known before it is told of");
        self.woken += usize::from(tracked.session.is_resting());
        if let Event::Observed { event } = &entry.event {
            self.clients.entry(tracked.harness).or_default().hear(&event.fact);
        }
        let session = tracked.session.wake();
        let before = session.clone();
        session.apply(entry);
        *session != before
    }

    fn show(&mut self, now: Timestamp, id: &SessionId, outputs: &mut Vec<Output>) {
        let Some(tracked) = self.roster.get_mut(id) else { return };
        let session = tracked.session.peek();
        let mut stalls_at = None;
        match tracked.card_on_board(now, &session, &surroundings!(self)) {
            Some(card) => {
                let (signs, state) = (&self.vitals, &card.agent_state);
                stalls_at = signs.of(&session).stalls_at(state, signs.stalled_after_ms);
                tracked.work.note(now, &card.agent_state);
                let shown = LastShown::of(&card);
                let before = tracked.shown.replace(shown).map(|before| before.fingerprint);
                if before.is_none_or(|before| before != card.fingerprint()) {
                    outputs.push(Output::Show(Box::new(card)));
                }
            }
            None => {
                let was_shown = tracked.shown.take();
                outputs.extend(was_shown.map(|_| Output::Remove(id.clone())));
            }
        }
        let unlocated: Vec<ProcessKey> = match &tracked.shown {
            Some(_) => session.monitor().carriers().cloned().collect(),
            None => Vec::new(),
        };
        let look = tracked.next_look(now, &session, &self.desk, &self.ruling);
        let look = look.into_iter().chain(stalls_at.filter(|at| *at > now)).min();
        if look != tracked.look {
            tracked.look.map(|old| self.looks.remove(&(old, id.clone())));
            look.map(|new| self.looks.insert((new, id.clone())));
            tracked.look = look;
        }
        for process in unlocated {
            self.locate(process, outputs);
        }
        self.survey_unknown(id, outputs);
    }

    /// Sessions that a client's own server tells of, or a recording, can be acted on through it.
    fn note_reach(
        &mut self,
        now: Timestamp,
        harness: Harness,
        told: &[Arc<str>],
        reach: Reach,
        outputs: &mut Vec<Output>,
    ) {
        for vendor_id in told {
            let Some(id) = self.found.get(&(harness, vendor_id.clone())).cloned() else { continue };
            let Some(tracked) = self.roster.get_mut(&id) else { continue };
            // What we drive is driven, whatever server its agent has besides.
            if tracked.reach != reach && tracked.reach != Reach::Driver {
                tracked.reach = reach;
                self.take_up(now, &id, reach, outputs);
                self.look_into(&id, outputs);
                self.rule_on(now, &id, outputs);
                self.show(now, &id, outputs);
            }
        }
    }

    fn capabilities(&self, tracked: &Tracked) -> Capabilities {
        let around = surroundings!(self);
        let ended = tracked.shown.as_ref().is_some_and(|shown| shown.ended.is_some());
        let Tracked { session, harness, vendor_id, reach, .. } = tracked;
        around.capabilities(&session.peek(), *harness, vendor_id, *reach, ended)
    }

    /// Each process once: it does not move.
    fn locate(&mut self, process: ProcessKey, outputs: &mut Vec<Output>) {
        if self.terminals.contains_key(&process) {
            return;
        }
        if self.terminals.len() >= TERMINALS_MAX {
            let carried: BTreeSet<ProcessKey> =
                self.carriers().map(|(_, _, process)| process.clone()).collect();
            self.terminals.retain(|process, _| carried.contains(process));
        }
        if self.terminals.len() < TERMINALS_MAX {
            self.terminals.insert(process.clone(), Terminal::default());
            outputs.push(Output::Locate(process));
        }
    }
}

/// A signal that was stamped before the clock was set back, and waited in the spool, say.
fn not_ahead(now: Timestamp, signal: Signal<'_>) -> Signal<'_> {
    Signal { at: signal.at.min(now), ..signal }
}

impl Tracked {
    /// `session` is its own.
    fn card(&self, now: Timestamp, session: &Session, around: &Surroundings<'_>) -> Option<Card> {
        let known = Known {
            session,
            harness: self.harness,
            vendor_id: &self.vendor_id,
            spent: self.spent.as_deref(),
            reach: self.reach,
            work: &self.work,
        };
        Card::of(now, &known, around)
    }

    /// The board shows what lives, and what ended lately and was not dismissed or put into History.
    fn card_on_board(
        &self,
        now: Timestamp,
        session: &Session,
        around: &Surroundings<'_>,
    ) -> Option<Card> {
        let card = self.card(now, session, around)?;
        let leaves = card
            .ended()
            .is_some_and(|ended| session.is_dismissed() || now.ms_since(ended) >= ENDED_SHOWN_MS);
        (!leaves && !card.archived).then_some(card)
    }

    fn next_look(
        &self,
        now: Timestamp,
        session: &Session,
        desk: &Desk,
        ruling: &Ruling,
    ) -> Option<Timestamp> {
        let ended = self.shown.as_ref().and_then(|shown| shown.ended);
        let leaves = ended.map(|ended| ended.plus_ms(ENDED_SHOWN_MS));
        let rules = ruling.may_answer(session);
        let (_, ruled_until) = desk.ruled(now, session.id(), rules);
        let looks = session.next_look(now).into_iter().chain(leaves).chain(ruled_until);
        let looks = looks.chain(self.work.next_look(now, &ruling.budget(session)));
        looks.filter(|look| *look > now).min()
    }
}

impl LastShown {
    fn of(card: &Card) -> Self {
        Self {
            fingerprint: card.fingerprint(),
            ended: card.ended(),
            is_over_budget: card.agent_state.state == SubState::BUDGET_EXCEEDED,
            works: card.agent_state.group == Group::Autonomous,
            is_stalled: card.agent_state.state == SubState::STALLED,
        }
    }
}

/// Which sessions of the past are asked for.
#[derive(Debug, Clone, Default)]
pub struct Past {
    pub before: Option<Timestamp>,
    pub harness: Option<Harness>,
    /// A part of the folder's path.
    pub project: Option<String>,
    pub count_max: usize,
}

/// Why a word names no session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotFound {
    Nobody,
    Several,
}
