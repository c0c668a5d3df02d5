//! All sessions, decided in one place: an input and its time in, outputs in order out.
//!
//! Pure. It owns a handler for each harness and the sessions they tell of; reading, writing and
//! waiting are its caller's. Invariant: what must not be lost comes out as [`Output::Append`]
//! before anything is shown because of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use qd_harness::{Handler, Harness, Sighting, Signal};
use qd_session::Session;
use qd_session::event::{Entry, Event};
use qd_session::id::SessionId;
use qd_session::moment::Timestamp;

use crate::card::Card;

/// Something that happened outside.
#[derive(Debug)]
pub enum Input<'a> {
    /// An agent said something.
    Signal { harness: Harness, signal: Signal<'a> },
    /// The time that was asked for has come.
    Woken,
    /// A session that the journal knew when we started.
    Restored { harness: Harness, vendor_id: Arc<str>, session: Box<Session> },
    /// The operator wants it out of Needs You until its next event.
    Dismissed { session: SessionId },
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
}

/// Every session on this machine.
#[allow(missing_debug_implementations, reason = "handlers are behind a trait")]
#[derive(Default)]
pub struct Broker {
    handlers: BTreeMap<Harness, Box<dyn Handler + Send>>,
    roster: BTreeMap<SessionId, Tracked>,
    found: BTreeMap<(Harness, Arc<str>), SessionId>,
}

struct Tracked {
    session: Session,
    harness: Harness,
    vendor_id: Arc<str>,
    shown: Option<Card>,
}

impl Broker {
    pub fn handle(&mut self, now: Timestamp, input: Input<'_>) -> Vec<Output> {
        let mut outputs = Vec::new();
        match input {
            Input::Signal { harness, signal } => {
                let handler = self.handlers.entry(harness).or_insert_with(|| harness.handler());
                let sightings = handler.handle_signal(&signal);
                self.take_in(now, harness, sightings, &mut outputs);
            }
            Input::Woken => self.wake(now, &mut outputs),
            Input::Restored { harness, vendor_id, session } => {
                let id = session.id().clone();
                self.found.insert((harness, vendor_id.clone()), id.clone());
                let tracked = Tracked { session: *session, harness, vendor_id, shown: None };
                self.roster.insert(id.clone(), tracked);
                self.show(now, &id, &mut outputs);
            }
            Input::Dismissed { session } => {
                if self.roster.contains_key(&session) {
                    let entry = Entry::new(session.clone(), now, Event::Dismissed);
                    self.journal(&session, entry, &mut outputs);
                    self.show(now, &session, &mut outputs);
                }
            }
        }
        outputs
    }

    /// When it wants to be woken if nothing comes.
    pub fn next_wake(&self, now: Timestamp) -> Option<Timestamp> {
        let timeouts = self.handlers.values().filter_map(|handler| handler.next_timeout());
        let looks = self.roster.values().filter_map(|tracked| tracked.session.next_look(now));
        timeouts.chain(looks).min()
    }

    /// Every card as of `now`, in the board's order.
    pub fn cards(&self, now: Timestamp) -> Vec<Card> {
        let mut cards: Vec<Card> =
            self.roster.values().filter_map(|tracked| tracked.card(now)).collect();
        cards.sort_by_key(|card| card.agent_state.urgency());
        cards
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

    pub fn session(&self, id: &SessionId) -> Option<&Session> {
        self.roster.get(id).map(|tracked| &tracked.session)
    }

    fn wake(&mut self, now: Timestamp, outputs: &mut Vec<Output>) {
        let due: Vec<Harness> = self
            .handlers
            .iter()
            .filter(|(_, handler)| handler.next_timeout().is_some_and(|due| due <= now))
            .map(|(harness, _)| *harness)
            .collect();
        for harness in due {
            let handler = self.handlers.get_mut(&harness).expect("it was just seen to be due");
            let sightings = handler.handle_timeout(now);
            self.take_in(now, harness, sightings, outputs);
        }
        let all: Vec<SessionId> = self.roster.keys().cloned().collect();
        for id in all {
            self.show(now, &id, outputs);
        }
    }

    fn take_in(
        &mut self,
        now: Timestamp,
        harness: Harness,
        sightings: Vec<Sighting>,
        outputs: &mut Vec<Output>,
    ) {
        let mut touched: Vec<SessionId> = Vec::new();
        for Sighting { session: vendor_id, event } in sightings {
            let id = self.session_of(harness, &vendor_id, outputs);
            let entry = Entry::new(id.clone(), now, Event::Observed { event });
            self.journal(&id, entry, outputs);
            if !touched.contains(&id) {
                touched.push(id);
            }
        }
        for id in touched {
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
        let id = spelled(harness, vendor_id);
        self.found.insert(key, id.clone());
        let session = Session::new(id.clone());
        let vendor_id = vendor_id.clone();
        outputs.push(Output::Found { session: id.clone(), harness, vendor_id: vendor_id.clone() });
        self.roster.insert(id.clone(), Tracked { session, harness, vendor_id, shown: None });
        id
    }

    fn journal(&mut self, id: &SessionId, entry: Entry, outputs: &mut Vec<Output>) {
        let tracked = self.roster.get_mut(id).expect("a session is known before it is told of");
        tracked.session.apply(&entry);
        outputs.push(Output::Append(entry));
    }

    fn show(&mut self, now: Timestamp, id: &SessionId, outputs: &mut Vec<Output>) {
        let Some(tracked) = self.roster.get_mut(id) else { return };
        let Some(card) = tracked.card(now) else { return };
        if tracked.shown.as_ref().is_none_or(|shown| !shown.looks_like(&card)) {
            outputs.push(Output::Show(Box::new(card.clone())));
            tracked.shown = Some(card);
        }
    }
}

impl Tracked {
    fn card(&self, now: Timestamp) -> Option<Card> {
        Card::of(now, &self.session, self.harness, &self.vendor_id)
    }
}

/// Why a word names no session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotFound {
    Nobody,
    Several,
}

/// Our id for a session that an agent named: the same whenever it is heard of again, also by a
/// daemon that lost its journal.
fn spelled(harness: Harness, vendor_id: &str) -> SessionId {
    let text = format!("{harness:?}/{vendor_id}");
    let (high, low) = (fnv(&text, 0xcbf2_9ce4_8422_2325), fnv(&text, 0x9ae1_6a3b_2f90_404f));
    SessionId::new(format!(
        "sess_{:08x}-{:04x}-8{:03x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        (low >> 48) & 0x3fff | 0x8000,
        low & 0xffff_ffff_ffff
    ))
}

/// FNV-1a from a basis.
fn fnv(text: &str, basis: u64) -> u64 {
    text.bytes()
        .fold(basis, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}
