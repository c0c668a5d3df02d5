//! One session on the board: driven, observed, or both at once.
//!
//! A session that we drive is often observed as well, because its client's hooks report it too.
//! It stays one session: what we drive we know, what we observe adds to it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::event::{Entry, Event};
use crate::id::{RequestId, RequestKey, SessionId};
use crate::logbook::Logbook;
use crate::machine::{After, Machine, Output, State, Tools};
use crate::moment::Timestamp;
use crate::monitor::{Activity, Monitor, Open};
use crate::operator::{self, AgentState, Group, NEXT_PROMPT, SubState};
use crate::policy::{Preset, Spent};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    id: SessionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    machine: Option<Box<Machine>>,
    /// Of a driven session, beside its machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    logbook: Option<Box<Logbook>>,
    #[serde(default)]
    monitor: Monitor,
    /// Taken out of Needs You by the operator, until something newer happens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dismissed: Option<Timestamp>,
    /// Put into History by the operator, until something newer happens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    archived: Option<Timestamp>,
    /// What it may do without asking, where the operator said so for it alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    preset: Option<Preset>,
    /// What was spent when the operator last let it go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    budget_seen: Option<Box<Spent>>,
    /// How its client asked before it was told to ask nobody, in its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked_before: Option<String>,
    /// When each open request was first asked, as it was known when it was first heard of: a
    /// source may tell later of an earlier time, and the request stays the one that it is.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    first_asked: BTreeMap<RequestId, Timestamp>,
}

impl Session {
    pub fn new(id: SessionId) -> Self {
        Self {
            id,
            machine: None,
            logbook: None,
            monitor: Monitor::default(),
            dismissed: None,
            archived: None,
            preset: None,
            budget_seen: None,
            asked_before: None,
            first_asked: BTreeMap::new(),
        }
    }

    /// Takes a journal entry in: live, and again when the journal is folded. An entry of another
    /// session changes nothing; a driven one says so.
    pub fn apply(&mut self, entry: &Entry) -> Vec<Output> {
        match &entry.event {
            Event::Driven { seed, event, frozen } => {
                let Some(machine) = &mut self.machine else { return Vec::new() };
                let outputs = machine.handle(&entry.stimulus(*seed, event));
                if let Some(logbook) = &mut self.logbook {
                    logbook.note(entry.at, event, frozen.as_deref(), &outputs, machine.state());
                }
                outputs
            }
            Event::SetUp { setup, brief } => {
                if entry.session == self.id && self.machine.is_none() {
                    let machine = Machine::new(self.id.clone(), setup.clone());
                    self.machine = Some(Box::new(machine));
                    self.logbook = brief.clone().map(|brief| Box::new(Logbook::new(*brief)));
                }
                Vec::new()
            }
            Event::Troubled { seed, error } => {
                let Some(logbook) = self.logbook.as_mut().filter(|_| entry.session == self.id)
                else {
                    return Vec::new();
                };
                let shown = entry.trouble(*seed, error);
                logbook.trouble(&shown);
                vec![Output::Show(shown)]
            }
            Event::Adopted { monitor } => {
                if entry.session == self.id {
                    self.monitor = (**monitor).clone();
                    self.keep_first_asked();
                }
                Vec::new()
            }
            Event::Observed { event } => {
                if entry.session == self.id {
                    self.monitor.apply(event);
                    self.keep_first_asked();
                }
                Vec::new()
            }
            Event::Dismissed => {
                if entry.session == self.id {
                    self.dismissed = self.dismissed.max(Some(entry.at));
                }
                Vec::new()
            }
            Event::Archived => {
                if entry.session == self.id {
                    self.archived = self.archived.max(Some(entry.at));
                }
                Vec::new()
            }
            Event::Unarchived => {
                if entry.session == self.id {
                    self.archived = None;
                }
                Vec::new()
            }
            Event::ClockSetBack { by_ms } => {
                if entry.session == self.id {
                    self.monitor.set_back(*by_ms);
                    self.machine.iter_mut().for_each(|machine| machine.set_back(*by_ms));
                    self.dismissed = self.dismissed.map(|at| at.minus_ms(*by_ms));
                    self.archived = self.archived.map(|at| at.minus_ms(*by_ms));
                }
                Vec::new()
            }
            Event::Slept => {
                if entry.session == self.id {
                    self.monitor.slept_until(entry.at);
                }
                Vec::new()
            }
            Event::BudgetSeen { spent } => {
                if entry.session == self.id {
                    self.budget_seen = Some(Box::new(*spent));
                }
                Vec::new()
            }
            Event::PresetChosen { preset } => {
                if entry.session == self.id {
                    self.preset = *preset;
                }
                Vec::new()
            }
            Event::ClientYolo { before } => {
                if entry.session == self.id {
                    self.asked_before = before.clone();
                }
                Vec::new()
            }
        }
    }

    fn keep_first_asked(&mut self) {
        let before = std::mem::take(&mut self.first_asked);
        let first_asked = |open: Open<'_>| {
            let known = before.get(open.id).copied();
            (open.id.clone(), known.unwrap_or(open.first_asked()))
        };
        self.first_asked = self.monitor.open_requests().map(first_asked).collect();
    }

    /// What the operator is told at `now`; none for a session that does not exist yet.
    pub fn resolve(&self, now: Timestamp) -> Option<AgentState> {
        self.resolve_but(now, &BTreeSet::new())
    }

    /// The same for a session of whose requests these need nobody: a rule has answered them.
    pub fn resolve_but(&self, now: Timestamp, ruled: &BTreeSet<RequestId>) -> Option<AgentState> {
        let mut state = match &self.machine {
            None => operator::resolve_but(now, &self.monitor, ruled),
            Some(machine) => {
                let mut state = operator::resolve_driven(machine)?;
                state.evidence = self.monitor.evidence().to_vec();
                self.refine(machine, ruled, &mut state);
                state
            }
        };
        if self.is_dismissed() && state.group == Group::NeedsYou {
            state.group = Group::Delivered;
        }
        Some(state)
    }

    /// What a driven agent's own signals add where the driver cannot see inside it.
    fn refine(&self, machine: &Machine, ruled: &BTreeSet<RequestId>, state: &mut AgentState) {
        let theirs = machine.setup().tools != Tools::Ours;
        let at_work =
            matches!(machine.state(), State::CallingLlm { .. } | State::ExecutingTools { .. });
        if theirs && at_work && !self.monitor.working_subagents().is_empty() {
            state.state = SubState::DELEGATING;
            state.label = "Running a subagent".to_owned();
        }
        let is_fresh =
            matches!(machine.state(), State::Ready(ready) if ready.after == After::Start);
        if is_fresh && self.was_prompted() {
            state.label = NEXT_PROMPT.to_owned();
        }
        let asks = matches!(machine.state(), State::AwaitingApproval { .. });
        let open = self.open_requests();
        if asks && !open.is_empty() && open.iter().all(|open| ruled.contains(open.id)) {
            state.group = Group::Autonomous;
            state.state = SubState::ACTING;
            state.label = "A rule answers".to_owned();
        }
    }

    /// Somebody has asked it for something before its harness came up this time.
    fn was_prompted(&self) -> bool {
        let has_words = |logbook: &Logbook| !logbook.conversation().messages().is_empty();
        self.logbook.as_deref().is_some_and(has_words)
            || !matches!(self.monitor.activity(), Activity::Starting | Activity::Ended)
    }

    /// When `resolve` may answer differently although nothing has happened.
    pub fn next_look(&self, now: Timestamp) -> Option<Timestamp> {
        match &self.machine {
            // Timers of a driven session come back as events.
            Some(_) => None,
            None => operator::next_look(now, &self.monitor),
        }
    }

    /// Dismissed, and nothing has happened since.
    pub fn is_dismissed(&self) -> bool {
        self.dismissed.is_some_and(|at| at >= self.last_heard())
    }

    /// Put into History, and nothing has happened since.
    pub fn is_archived(&self) -> bool {
        self.archived.is_some_and(|at| at >= self.last_heard())
    }

    /// When something of it was last heard, or done by us.
    fn last_heard(&self) -> Timestamp {
        let stepped = self.machine.as_ref().map_or(Timestamp::ZERO, |machine| machine.since());
        self.monitor.last_signal().max(stepped)
    }

    /// The newest time that is known of it.
    pub fn newest(&self) -> Timestamp {
        let [dismissed, archived] = [self.dismissed, self.archived].map(Option::unwrap_or_default);
        self.last_heard().max(dismissed).max(archived)
    }

    pub fn preset(&self) -> Option<Preset> {
        self.preset
    }

    /// How its client asked before it was told to ask nobody; none where it was not told so.
    pub fn asked_before(&self) -> Option<&str> {
        self.asked_before.as_deref()
    }

    /// What was spent when the operator last let it go on; nothing, if that was never asked.
    pub fn budget_seen(&self) -> Spent {
        self.budget_seen.as_deref().copied().unwrap_or_default()
    }

    pub fn id(&self) -> &SessionId {
        &self.id
    }

    pub fn machine(&self) -> Option<&Machine> {
        self.machine.as_deref()
    }

    pub fn logbook(&self) -> Option<&Logbook> {
        self.logbook.as_deref()
    }

    pub fn monitor(&self) -> &Monitor {
        &self.monitor
    }

    /// What the session waits for. Of one that we drive its machine knows; what its client's own
    /// signals say about the same dialog would be a second card for it.
    pub fn open_requests(&self) -> Vec<Open<'_>> {
        match (&self.machine, &self.logbook) {
            (Some(_), Some(logbook)) => logbook.open_requests().collect(),
            (Some(_), None) => Vec::new(),
            (None, _) => self.monitor.open_requests().collect(),
        }
    }

    /// What an open request is called, now and after every restart. What we drive has asked its
    /// driver, once, whatever its client's own signals tell of the same request.
    pub fn key_of(&self, open: &Open<'_>) -> RequestKey {
        let observed = self.machine.is_none().then_some(&self.first_asked);
        let first_asked = observed.and_then(|known| known.get(open.id)).copied();
        RequestKey::of(&self.id, open.id, first_asked.unwrap_or(open.first_asked()))
    }
}
