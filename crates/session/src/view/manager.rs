//! The manager view: one session in the words of the seed's Agent Manager, and what its page shows.
//!
//! Pure. Driven by the client's messages and the operator's commands; `spec/manager-view.md` is the
//! table. Partial messages never move it. Sessions of other harnesses are shown by [`of`].

#[cfg(test)]
mod tests;
mod transition;

use serde::{Deserialize, Serialize};

use self::transition::{
    Sense, completed, error, idle, paused, sense, stopped, streaming, waiting_approval,
    waiting_input,
};
use crate::limits::SESSION_CREATED_GRACE_MS;
use crate::moment::Timestamp;
use crate::operator::{AgentState, Group};

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum ManagerState {
    #[default]
    Idle,
    Creating,
    Streaming,
    WaitingApproval,
    WaitingInput,
    Completed,
    Paused,
    Error,
    Stopped,
}

/// What the page shows in a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Flags {
    pub show_spinner: bool,
    pub show_cancel_button: bool,
    pub show_resume_button: bool,
    pub show_auto_mode_warning: bool,
    pub input_enabled: bool,
    pub is_active: bool,
}

impl ManagerState {
    pub const ALL: [Self; 9] = [
        Self::Idle,
        Self::Creating,
        Self::Streaming,
        Self::WaitingApproval,
        Self::WaitingInput,
        Self::Completed,
        Self::Paused,
        Self::Error,
        Self::Stopped,
    ];

    pub fn flags(self, auto_approve: bool) -> Flags {
        use ManagerState::{
            Completed, Creating, Paused, Stopped, Streaming, WaitingApproval, WaitingInput,
        };
        let at_work = matches!(self, Creating | Streaming);
        let is_active = at_work || matches!(self, WaitingApproval | WaitingInput);
        Flags {
            show_spinner: at_work,
            show_cancel_button: is_active,
            show_resume_button: matches!(self, Paused | Stopped | Completed),
            show_auto_mode_warning: at_work && auto_approve,
            input_enabled: matches!(self, WaitingInput | Completed | Paused | Stopped),
            is_active,
        }
    }
}

/// What moves the view: the client's messages, the operator's commands, the end of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    SessionCreated,
    ApiReqStarted,
    ApiReqRetried,
    SayText {
        partial: bool,
    },
    SayCompletionResult {
        partial: bool,
    },
    SayCheckpointSaved,
    AskTool {
        partial: bool,
    },
    AskCommand {
        partial: bool,
    },
    AskFollowup {
        partial: bool,
    },
    AskCompletionResult {
        partial: bool,
    },
    AskApiReqFailed {
        partial: bool,
    },
    AskResumeTask {
        partial: bool,
    },
    AskResumeCompletedTask {
        partial: bool,
    },
    AskMistakeLimitReached {
        partial: bool,
    },
    AskPaymentRequiredPrompt {
        partial: bool,
    },
    AskInvalidModel {
        partial: bool,
    },
    AskBrowserActionLaunch {
        partial: bool,
    },
    AskUseMcpServer {
        partial: bool,
    },
    /// The client refuses its configuration, and says how to mend it.
    WelcomeWithInstructions,
    ProcessExit {
        code: i32,
    },
    ProcessError,
    StartSession,
    SendMessage,
    ApproveAction,
    RejectAction,
    CancelSession,
    ResumeSession,
    Retry,
    /// Nothing happened but time.
    Timer,
}

/// One session, as the manager sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ManagerView {
    state: ManagerState,
    /// When the first request to the model was heard of, while creating.
    requested: Option<Timestamp>,
    /// The session's id was heard, while creating.
    created: bool,
    /// The client asked and has no answer.
    asked: bool,
    misconfigured: bool,
}

impl ManagerView {
    /// The state at `now`: `creating` ends by itself when the session's id stays away.
    pub fn state(&self, now: Timestamp) -> ManagerState {
        match (self.state, self.requested) {
            (ManagerState::Creating, Some(requested))
                if now.ms_since(requested) >= SESSION_CREATED_GRACE_MS =>
            {
                ManagerState::Streaming
            }
            (state, _) => state,
        }
    }

    /// When `state` may answer differently although nothing has happened.
    pub fn next_look(&self) -> Option<Timestamp> {
        let requested = self.requested.filter(|_| self.state == ManagerState::Creating)?;
        Some(requested.plus_ms(SESSION_CREATED_GRACE_MS))
    }

    /// Takes an input in. What the state has no use for changes nothing.
    pub fn apply(&mut self, at: Timestamp, input: Input) {
        self.state = self.state(at);
        self.note(at, input);
        let Some(next) = self.next(input) else { return };
        if next != self.state && next == ManagerState::Creating {
            *self = Self::default();
        }
        self.asked = matches!(
            sense(input),
            Sense::AsksLeave | Sense::AsksQuestion | Sense::AsksToResume | Sense::Fails
        );
        self.state = next;
    }

    /// What is remembered besides the state.
    fn note(&mut self, at: Timestamp, input: Input) {
        let creating = self.state == ManagerState::Creating;
        self.misconfigured |= input == Input::WelcomeWithInstructions;
        self.created |= creating && input == Input::SessionCreated;
        if creating && input == Input::ApiReqStarted {
            self.requested = self.requested.or(Some(at));
        }
    }

    fn next(&self, input: Input) -> Option<ManagerState> {
        if let Input::ProcessExit { code } = input {
            return self.exited(code);
        }
        let sense = sense(input);
        match self.state {
            ManagerState::Idle => idle(sense),
            ManagerState::Creating => self.creating(sense),
            ManagerState::Streaming => streaming(sense),
            ManagerState::WaitingApproval => waiting_approval(sense),
            ManagerState::WaitingInput => waiting_input(sense),
            ManagerState::Completed => completed(sense),
            ManagerState::Paused => paused(sense),
            ManagerState::Error => error(sense),
            ManagerState::Stopped => stopped(sense),
        }
    }

    /// An exit code says that the loop ended, not that the work succeeded: what was asked is still
    /// unanswered, and a refused configuration is no result.
    fn exited(&self, code: i32) -> Option<ManagerState> {
        if code != 0 || self.misconfigured {
            return Some(ManagerState::Error);
        }
        if !self.asked {
            return Some(ManagerState::Completed);
        }
        let waits =
            matches!(self.state, ManagerState::WaitingApproval | ManagerState::WaitingInput);
        waits.then_some(ManagerState::Stopped)
    }

    fn creating(&self, sense: Sense) -> Option<ManagerState> {
        match sense {
            Sense::Created | Sense::Requested => Some(match self.requested {
                Some(_) if self.created => ManagerState::Streaming,
                Some(_) | None => ManagerState::Creating,
            }),
            Sense::Broke => Some(ManagerState::Error),
            Sense::AsksToResume | Sense::Cancel => streaming(sense),
            // An ask proves that the session is up.
            Sense::AsksLeave | Sense::AsksQuestion | Sense::HandsOver | Sense::Fails => {
                self.requested.and_then(|_| streaming(sense))
            }
            Sense::Retried
            | Sense::Start
            | Sense::Send
            | Sense::Decide
            | Sense::Resume
            | Sense::Retry
            | Sense::Nothing => None,
        }
    }
}

/// A session of any harness in the manager's words. Sub-states are an open set: an unknown one is
/// shown as its group.
pub fn of(state: &AgentState) -> ManagerState {
    match (state.group, state.state.as_str()) {
        (Group::NeedsYou, "needs_permission" | "awaiting_approval") => {
            ManagerState::WaitingApproval
        }
        (Group::NeedsYou, "error" | "usage_limit" | "auth_error" | "server_error") => {
            ManagerState::Error
        }
        (Group::NeedsYou, "paused" | "budget_exceeded" | "interrupted") => ManagerState::Paused,
        (Group::NeedsYou, _) => ManagerState::WaitingInput,
        (Group::Autonomous, "starting") => ManagerState::Creating,
        (Group::Autonomous, "unknown") => ManagerState::Idle,
        (Group::Autonomous, _) => ManagerState::Streaming,
        (Group::Delivered, "session_ended") => ManagerState::Stopped,
        (Group::Delivered, _) => ManagerState::Completed,
    }
}
