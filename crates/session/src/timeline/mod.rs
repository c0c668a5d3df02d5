//! What a session did over time: its runs, and the stretches of time it spent in each state.
//!
//! Pure, a fold over the session's journal. Facts are taken in the order in which they happened
//! and not in which they were heard of, so a timeline says what is known now, not what was shown.

mod run;

use serde::{Deserialize, Serialize};

use self::run::Runs;
pub use self::run::{Outcome, Run};
use crate::Session;
use crate::event::{Entry, Event};
use crate::id::SessionId;
use crate::limits::TIMELINE_SPANS_MAX;
use crate::machine::Output;
use crate::moment::Timestamp;
use crate::operator::{Group, SubState};

/// The newest runs and spans of a session, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Timeline {
    pub runs: Vec<Run>,
    pub spans: Vec<Span>,
}

/// A stretch of time in one state. Without an end it lasts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Span {
    pub group: Group,
    pub state: SubState,
    pub from: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Timestamp>,
}

impl Timeline {
    /// The story of a session up to `now`, as far as its entries reach back.
    pub fn of(session: &SessionId, entries: &[Entry], now: Timestamp) -> Self {
        let mut telling = Telling::new(session);
        let own = entries.iter().filter(|entry| entry.session == *session);
        for (at, entry) in as_it_happened(own) {
            telling.wait_until(at);
            telling.take(at, entry);
        }
        telling.wait_until(now);
        Self { runs: telling.runs.into_newest(), spans: telling.spans }
    }
}

/// Entries with the time of what they tell. Those of a driven session keep their order even where
/// the clock went back: one step follows from the other.
fn as_it_happened<'a>(entries: impl Iterator<Item = &'a Entry>) -> Vec<(Timestamp, &'a Entry)> {
    let mut latest = Timestamp::ZERO;
    let mut timed: Vec<(Timestamp, u32, &Entry)> = Vec::new();
    for entry in entries {
        match &entry.event {
            Event::Observed { event } => timed.push((event.at, event.seq, entry)),
            Event::ClockSetBack { by_ms } => {
                // What the clock said before has moved with it.
                timed.iter_mut().for_each(|(at, _, _)| *at = at.minus_ms(*by_ms));
                latest = latest.minus_ms(*by_ms).max(entry.at);
                timed.push((latest, 0, entry));
            }
            Event::SetUp { .. }
            | Event::Driven { .. }
            | Event::Troubled { .. }
            | Event::Adopted { .. }
            | Event::Dismissed
            | Event::Archived
            | Event::Unarchived
            | Event::Slept
            | Event::BudgetSeen { .. }
            | Event::PresetChosen { .. }
            | Event::ClientYolo { .. } => {
                latest = latest.max(entry.at);
                timed.push((latest, 0, entry));
            }
        }
    }
    timed.sort_by_key(|(at, seq, _)| (*at, *seq));
    timed.into_iter().map(|(at, _, entry)| (at, entry)).collect()
}

struct Telling {
    session: Session,
    clock: Timestamp,
    runs: Runs,
    spans: Vec<Span>,
}

impl Telling {
    fn new(session: &SessionId) -> Self {
        Self {
            session: Session::new(session.clone()),
            clock: Timestamp::ZERO,
            runs: Runs::default(),
            spans: Vec::new(),
        }
    }

    /// Lets silence speak: the state may change although nothing happens.
    fn wait_until(&mut self, until: Timestamp) {
        if self.spans.is_empty() {
            // Nothing was heard of it yet.
            return;
        }
        while let Some(look) = self.session.next_look(self.clock).filter(|look| *look < until) {
            self.clock = look;
            self.note_state(look);
        }
    }

    fn take(&mut self, at: Timestamp, entry: &Entry) {
        self.clock = self.clock.max(at);
        let outputs = self.session.apply(entry);
        match &entry.event {
            Event::Observed { event } => self.runs.observe(event, self.session.monitor()),
            Event::SetUp { .. }
            | Event::Troubled { .. }
            | Event::Adopted { .. }
            | Event::Dismissed
            | Event::Archived
            | Event::Unarchived
            | Event::ClockSetBack { .. }
            | Event::Slept
            | Event::BudgetSeen { .. }
            | Event::PresetChosen { .. }
            | Event::ClientYolo { .. } => {}
            Event::Driven { .. } => {
                for output in &outputs {
                    if let Output::Show(shown) = output {
                        self.runs.shown(&shown.change);
                    }
                }
            }
        }
        self.note_state(self.clock);
    }

    /// `at` never goes back. What is past since nobody knows when has no place in a timeline.
    fn note_state(&mut self, at: Timestamp) {
        if at <= Timestamp::LONG_AGO {
            return;
        }
        let Some(state) = self.session.resolve(at) else { return };
        let is_same = |span: &Span| span.group == state.group && span.state == state.state;
        if self.spans.last().is_some_and(is_same) {
            return;
        }
        // What lasted no time at all was nowhere to be seen.
        self.spans.pop_if(|last| last.from >= at);
        match self.spans.last_mut() {
            Some(last) if is_same(last) => last.to = None,
            Some(last) => {
                last.to = Some(at);
                self.begin(Span { group: state.group, state: state.state, from: at, to: None });
            }
            None => {
                self.begin(Span { group: state.group, state: state.state, from: at, to: None });
            }
        }
    }

    fn begin(&mut self, span: Span) {
        if self.spans.len() == TIMELINE_SPANS_MAX {
            self.spans.remove(0);
        }
        self.spans.push(span);
    }
}
