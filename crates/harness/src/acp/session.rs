//! One ACP session: its turn, its calls, what it waits for, and whether it is telling its past.

use std::sync::Arc;

use qd_session::id::AgentId;
use qd_session::moment::Timestamp;
use qd_session::monitor::{Fact, Place, Usage};

use super::call::Calls;
use super::quirks::Quirks;
use super::request::Request;
use super::turn::Turn;
use super::wire::{ConfigOption, Outcome};
use crate::excerpt;
use crate::outbox::Outbox;

/// A replay that goes on after its response comes in one burst. Whatever comes later is live.
const REPLAY_PAUSE_MS: u64 = 400;

/// Most subagents of one session that are at work at once.
const SUBAGENTS_MAX: usize = 64;

#[derive(Debug)]
pub struct Session {
    pub id: Arc<str>,
    pub heard_at: Timestamp,
    pub turn: Turn,
    pub calls: Calls,
    pub requests: Vec<Request>,
    pub replay: Replay,
    /// Subagents at work, each by the call that started it.
    subagents: Vec<AgentId>,
    /// To-do items that were reported as done.
    pub tasks_done: Vec<String>,
}

/// Whether updates tell of the past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replay {
    Live,
    /// Between `session/load` and its response.
    Loading,
    /// After the response, until there is a pause.
    Trailing {
        until: Timestamp,
    },
}

impl Session {
    pub fn new(id: &str) -> Self {
        Self {
            id: id.into(),
            heard_at: Timestamp::ZERO,
            turn: Turn::default(),
            calls: Calls::default(),
            requests: Vec::new(),
            replay: Replay::Live,
            subagents: Vec::new(),
            tasks_done: Vec::new(),
        }
    }

    /// True if an update that comes now tells of the past.
    pub fn replays(&mut self, at: Timestamp) -> bool {
        match self.replay {
            Replay::Live => false,
            Replay::Loading => true,
            Replay::Trailing { until } if at <= until => {
                self.replay = Replay::Trailing { until: at.plus_ms(REPLAY_PAUSE_MS) };
                true
            }
            Replay::Trailing { .. } => {
                self.replay = Replay::Live;
                false
            }
        }
    }

    /// The session was loaded, or is used as if it were.
    pub fn loaded(&mut self, at: Timestamp, quirks: Quirks) {
        if self.replay == Replay::Loading {
            self.replay = match quirks.replays_after_load {
                true => Replay::Trailing { until: at.plus_ms(REPLAY_PAUSE_MS) },
                false => Replay::Live,
            };
        }
    }

    /// It exists and can be prompted.
    pub fn begin(
        &mut self,
        cwd: Option<&str>,
        version: Option<Arc<str>>,
        outcome: &Outcome,
        out: &mut Outbox,
    ) {
        out.tell(Fact::SessionStarted { process: None });
        let place = Place { cwd: cwd.map(Into::into), version, ..Place::default() };
        if place != Place::default() {
            out.tell(Fact::PlaceKnown { place });
        }
        if let Some(mode) = outcome.modes.as_ref().and_then(|modes| modes.current_mode_id.as_ref())
        {
            out.tell(Fact::ModeChanged { mode: mode.as_str().into() });
        }
        let model = outcome.models.as_ref().and_then(|models| models.current_model_id.as_ref());
        if let Some(model) = model {
            tell_model(model, out);
        }
        configured(outcome.config_options.as_deref().unwrap_or_default(), out);
    }

    /// A prompt was sent to it.
    pub fn prompted(&mut self, begins: bool, text: &str, out: &mut Outbox) {
        if begins {
            out.tell(Fact::TurnStarted);
            self.calls.settle();
        }
        out.tell(Fact::UserPrompt { text: excerpt::last_message(text) });
    }

    /// The turn is over. What it waited for is closed by that.
    pub fn end_turn(&mut self, ending: Fact, out: &mut Outbox) {
        for agent in std::mem::take(&mut self.subagents) {
            out.tell_of(agent, Fact::SubagentEnded);
        }
        out.tell(ending);
        self.turn.close(out.at());
        self.calls.settle();
        self.requests.clear();
    }

    pub fn begin_subagent(&mut self, agent: &AgentId, out: &mut Outbox) {
        let known = agent.is_main() || self.subagents.contains(agent);
        if !known && self.subagents.len() < SUBAGENTS_MAX {
            self.subagents.push(agent.clone());
            out.tell_of(agent.clone(), Fact::SubagentStarted { kind: None });
        }
    }

    pub fn end_subagent(&mut self, agent: &AgentId, out: &mut Outbox) {
        if let Some(at) = self.subagents.iter().position(|known| known == agent) {
            out.tell_of(self.subagents.remove(at), Fact::SubagentEnded);
        }
    }
}

/// The mode and the model, where they are options among others.
pub fn configured(options: &[ConfigOption], out: &mut Outbox) {
    for option in options {
        let Some(value) = option.current_value.as_ref().and_then(|value| value.as_str()) else {
            continue;
        };
        match option.category.as_deref().or(option.id.as_deref()) {
            Some("mode") => out.tell(Fact::ModeChanged { mode: value.into() }),
            Some("model") => tell_model(value, out),
            Some(_) | None => {}
        }
    }
}

fn tell_model(model: &str, out: &mut Outbox) {
    let usage = Usage { model: Some(model.into()), ..Usage::default() };
    out.tell(Fact::UsageReported { usage });
}
