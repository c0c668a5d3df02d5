//! The answer to one event, while it is being put together.

use serde::{Deserialize, Serialize};

use super::action::Action;
use super::change::{AgentError, Change, Reason, RunStatus, StateChanged, ToolLifecycle};
use super::hooks::HookConfig;
use super::state::{Kind, State};
use crate::id::TurnId;
use crate::moment::Timestamp;
use crate::seed::Seed;

/// What one event leads to: the next state, and what is to be shown and done, in that order.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub state: State,
    pub effects: Vec<Effect>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    Show(Change),
    Do(Action),
}

/// Why an event led to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Declined {
    /// Not legal here: `state_transition_invalid`.
    Refused,
    /// Of an old turn, an ended run or a timer that no longer matters: counted, not an error.
    Stale,
}

pub type Answer = Result<Step, Declined>;

/// Who runs the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tools {
    Ours,
    /// The agent does, and we follow its reports.
    Theirs,
    /// The agent does, and its driver can hold it after a batch: post-tool hooks are possible.
    TheirsHeld,
}

/// How long the harness's process lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Process {
    WholeSession,
    /// One process a turn: starting it is a probe, its clean exit ends a turn.
    OneTurn,
}

/// What does not change while a session lives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Setup {
    pub tools: Tools,
    pub process: Process,
    #[serde(default)]
    pub hooks: Vec<HookConfig>,
}

/// A step in the making. It knows where it started, so that no state is entered silently.
pub(super) struct Draft<'a> {
    pub setup: &'a Setup,
    pub at: Timestamp,
    pub seed: Seed,
    from: Kind,
    effects: Vec<Effect>,
}

impl<'a> Draft<'a> {
    pub fn new(setup: &'a Setup, from: Kind, at: Timestamp, seed: Seed) -> Self {
        Self { setup, at, seed, from, effects: Vec::new() }
    }

    /// Whether the step would leave the state's name as it is.
    pub fn is_in(&self, state: &State) -> bool {
        self.from == state.kind()
    }

    pub fn act(mut self, action: Action) -> Self {
        self.effects.push(Effect::Do(action));
        self
    }

    pub fn show(mut self, change: Change) -> Self {
        self.effects.push(Effect::Show(change));
        self
    }

    pub fn fail(self, error: &AgentError) -> Self {
        self.show(Change::SessionError(error.clone()))
    }

    /// Shows how runs ended and tells their runners to let go.
    pub fn cancel_tools(mut self, canceled: Vec<ToolLifecycle>) -> Self {
        for lifecycle in canceled {
            let run = lifecycle.run_id.clone();
            self.effects.push(Effect::Show(Change::ToolLifecycle(lifecycle)));
            self.effects.push(Effect::Do(Action::CancelTool { run }));
        }
        self
    }

    pub fn moved(self, to: Kind, reason: Reason) -> Self {
        let from = self.from;
        self.show_move(StateChanged { from, to, reason, stream_id: None })
    }

    pub fn moved_in_turn(self, to: Kind, reason: Reason, turn: &TurnId) -> Self {
        let from = self.from;
        let stream_id = Some(turn.clone());
        self.show_move(StateChanged { from, to, reason, stream_id })
    }

    /// What ended in the step ended in the old state; what begins in it begins in the new one.
    fn show_move(mut self, moved: StateChanged) -> Self {
        let begins = |effect: &Effect| matches!(effect, Effect::Show(Change::ToolLifecycle(run)) if run.status == RunStatus::Running);
        let at = self.effects.iter().position(begins).unwrap_or(self.effects.len());
        self.effects.insert(at, Effect::Show(Change::StateChanged(moved)));
        self
    }

    /// The state changes: says so, and whatever `act` adds comes after.
    pub fn enter(self, state: State, reason: Reason) -> Entered<'a> {
        let to = state.kind();
        let turn = state.turn().map(|turn| turn.id.clone());
        let draft = match turn {
            Some(turn) => self.moved_in_turn(to, reason, &turn),
            None => self.moved(to, reason),
        };
        Entered { draft, state }
    }

    /// The state keeps its name.
    pub fn stay(self, state: State) -> Answer {
        debug_assert_eq!(state.kind(), self.from, "a state is entered, not slipped into");
        Ok(Step { state, effects: self.effects })
    }
}

/// A state that was entered: only actions may follow.
pub(super) struct Entered<'a> {
    draft: Draft<'a>,
    state: State,
}

impl Entered<'_> {
    pub fn then(mut self, action: Action) -> Self {
        self.draft = self.draft.act(action);
        self
    }

    pub fn then_all(mut self, actions: impl IntoIterator<Item = Action>) -> Self {
        for action in actions {
            self.draft = self.draft.act(action);
        }
        self
    }

    pub fn done(self) -> Answer {
        Ok(Step { state: self.state, effects: self.draft.effects })
    }
}
