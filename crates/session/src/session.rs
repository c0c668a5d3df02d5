//! One session on the board: driven, observed, or both at once.
//!
//! A session that we drive is often observed as well, because its client's hooks report it too.
//! It stays one session: what we drive we know, what we observe adds to it.

use serde::{Deserialize, Serialize};

use crate::event::{Entry, Event};
use crate::id::SessionId;
use crate::machine::{Machine, Output, State, Tools};
use crate::moment::Timestamp;
use crate::monitor::Monitor;
use crate::operator::{self, AgentState, Group, SubState};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    id: SessionId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    machine: Option<Box<Machine>>,
    #[serde(default)]
    monitor: Monitor,
    /// Taken out of Needs You by the operator, until something newer happens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dismissed: Option<Timestamp>,
}

impl Session {
    pub fn new(id: SessionId) -> Self {
        Self { id, machine: None, monitor: Monitor::default(), dismissed: None }
    }

    /// Takes a journal entry in: live, and again when the journal is folded. An entry of another
    /// session changes nothing; a driven one says so.
    pub fn apply(&mut self, entry: &Entry) -> Vec<Output> {
        match &entry.event {
            Event::Driven { seed, event } => match &mut self.machine {
                Some(machine) => machine.handle(&entry.stimulus(*seed, event)),
                None => Vec::new(),
            },
            Event::SetUp { setup } => {
                if entry.session == self.id && self.machine.is_none() {
                    let machine = Machine::new(self.id.clone(), setup.clone());
                    self.machine = Some(Box::new(machine));
                }
                Vec::new()
            }
            Event::Observed { event } => {
                if entry.session == self.id {
                    self.monitor.apply(event);
                }
                Vec::new()
            }
            Event::Dismissed => {
                if entry.session == self.id {
                    self.dismissed = self.dismissed.max(Some(entry.at));
                }
                Vec::new()
            }
        }
    }

    /// What the operator is told at `now`; none for a session that does not exist yet.
    pub fn resolve(&self, now: Timestamp) -> Option<AgentState> {
        let mut state = match &self.machine {
            None => operator::resolve(now, &self.monitor),
            Some(machine) => {
                let mut state = operator::resolve_driven(machine)?;
                state.evidence = self.monitor.evidence().to_vec();
                self.refine(machine, &mut state);
                state
            }
        };
        if self.is_dismissed() && state.group == Group::NeedsYou {
            state.group = Group::Delivered;
        }
        Some(state)
    }

    /// What a driven agent's own signals add where the driver cannot see inside it.
    fn refine(&self, machine: &Machine, state: &mut AgentState) {
        let theirs = machine.setup().tools != Tools::Ours;
        let at_work =
            matches!(machine.state(), State::CallingLlm { .. } | State::ExecutingTools { .. });
        if theirs && at_work && !self.monitor.working_subagents().is_empty() {
            state.state = SubState::DELEGATING;
            state.label = "Running a subagent".to_owned();
        }
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
        let heard = self.machine.as_ref().map_or(Timestamp::ZERO, |machine| machine.since());
        self.dismissed.is_some_and(|at| at >= self.monitor.last_signal().max(heard))
    }

    pub fn id(&self) -> &SessionId {
        &self.id
    }

    pub fn machine(&self) -> Option<&Machine> {
        self.machine.as_deref()
    }

    pub fn monitor(&self) -> &Monitor {
        &self.monitor
    }
}
