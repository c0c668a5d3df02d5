//! The driven session: model turn, tool batch, post-tool hooks, model again.
//!
//! Pure. Time and ids come in with the event; everything to be done goes out as an [`Action`],
//! everything to be shown as a [`Change`], in order. Timers go out and come back as events.
//! Invariant: at most one model request is in flight, hooks never overlap, and before every model
//! request each call of the conversation has exactly one output.

mod action;
mod batch;
mod change;
mod event;
mod flow;
mod hooks;
mod letting_go;
mod state;
mod step;
mod theirs;
mod timer;
mod transition;
mod trouble;
mod turn;
mod waiting;
mod work;

use serde::{Deserialize, Serialize};

pub use self::action::{Action, HarnessAnswer, ToolOrder};
pub use self::batch::{Batch, CallOutput, Fate, Judged, Run, ToolCall, Verdict};
pub use self::change::{
    AgentError, Change, ErrorCode, ErrorSource, HarnessTrouble, HookLifecycle, Reason, RunStatus,
    Shown, StateChanged, ToolLifecycle, TroubleKind,
};
pub use self::event::{Event, PauseCause, ToolOutcome};
pub use self::hooks::{FailurePolicy, HookConfig, HookPass, ToolFilter};
pub use self::state::{After, Again, Kind, Next, Ready, RetryTimer, Said, State, Turn, WayOn};
pub use self::step::{Answer, Declined, Effect, Process, Setup, Step, Tools};
pub use self::timer::{StopPhase, Timer};
pub use self::transition::transition;
use crate::id::SessionId;
use crate::moment::Timestamp;
use crate::seed::Seed;

/// An event on its way to a session: whose it is, when it happened, and fresh randomness for the
/// ids it makes necessary.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Stimulus {
    pub session: SessionId,
    pub at: Timestamp,
    pub seed: Seed,
    pub event: Event,
}

/// What comes back, in the order in which it is to happen.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    Show(Shown),
    Do(Action),
}

/// A driven session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    id: SessionId,
    setup: Setup,
    state: State,
    /// When the state was entered.
    since: Timestamp,
    /// Events of old turns, ended runs and forgotten timers.
    stale: u32,
    refused: u32,
}

impl Machine {
    pub fn new(id: SessionId, setup: Setup) -> Self {
        Self { id, setup, state: State::Idle, since: Timestamp::ZERO, stale: 0, refused: 0 }
    }

    /// Takes an event in. A refused one leaves the state untouched and gives a `session_error`.
    pub fn handle(&mut self, stimulus: &Stimulus) -> Vec<Output> {
        let Stimulus { session, at, seed, event } = stimulus;
        if *session != self.id {
            let error = refusal(
                ErrorCode::SessionNotFound,
                format!("{} is for {session}, not for {}", event.name(), self.id),
            );
            return self.dressed(*at, *seed, vec![Effect::Show(error)]);
        }
        match transition(&self.setup, &self.state, *at, *seed, event) {
            Ok(step) => {
                if step.state.kind() != self.state.kind() {
                    self.since = *at;
                }
                self.state = step.state;
                self.dressed(*at, *seed, step.effects)
            }
            Err(Declined::Stale) => {
                self.stale = self.stale.saturating_add(1);
                Vec::new()
            }
            Err(Declined::Refused) => {
                self.refused = self.refused.saturating_add(1);
                let error = refusal(
                    ErrorCode::StateTransitionInvalid,
                    format!("{} is not possible in {:?}", event.name(), self.state.kind()),
                );
                self.dressed(*at, *seed, vec![Effect::Show(error)])
            }
        }
    }

    fn dressed(&self, at: Timestamp, seed: Seed, effects: Vec<Effect>) -> Vec<Output> {
        effects
            .into_iter()
            .enumerate()
            .map(|(nth, effect)| match effect {
                Effect::Show(change) => Output::Show(Shown {
                    event_id: seed.change(nth),
                    timestamp_ms: at,
                    session_id: self.id.clone(),
                    change,
                }),
                Effect::Do(action) => Output::Do(action),
            })
            .collect()
    }

    pub fn id(&self) -> &SessionId {
        &self.id
    }

    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    pub fn since(&self) -> Timestamp {
        self.since
    }

    /// The clock was set back by so much.
    pub(crate) fn set_back(&mut self, by_ms: u64) {
        self.since = self.since.minus_ms(by_ms);
    }

    pub fn stale(&self) -> u32 {
        self.stale
    }

    pub fn refused(&self) -> u32 {
        self.refused
    }
}

fn refusal(code: ErrorCode, message: String) -> Change {
    Change::SessionError(AgentError {
        code,
        message: message.into(),
        retryable: false,
        source: ErrorSource::Orchestrator,
        resets_at: None,
    })
}
