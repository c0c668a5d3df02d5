//! What each state makes of an input. `creating` is in the view itself: it remembers things.

use super::{Input, ManagerState};

/// What an input means, whatever the state: the table's events, those alike taken together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sense {
    Created,
    Requested,
    Retried,
    AsksLeave,
    AsksQuestion,
    HandsOver,
    Fails,
    AsksToResume,
    Broke,
    Start,
    Send,
    Decide,
    Cancel,
    Resume,
    Retry,
    Nothing,
}

pub(super) fn sense(input: Input) -> Sense {
    match input {
        Input::SessionCreated => Sense::Created,
        Input::ApiReqStarted => Sense::Requested,
        Input::ApiReqRetried => Sense::Retried,
        Input::AskTool { partial: false }
        | Input::AskCommand { partial: false }
        | Input::AskBrowserActionLaunch { partial: false }
        | Input::AskUseMcpServer { partial: false } => Sense::AsksLeave,
        Input::AskFollowup { partial: false } => Sense::AsksQuestion,
        Input::AskCompletionResult { partial: false } => Sense::HandsOver,
        Input::AskApiReqFailed { partial: false }
        | Input::AskMistakeLimitReached { partial: false }
        | Input::AskPaymentRequiredPrompt { partial: false }
        | Input::AskInvalidModel { partial: false } => Sense::Fails,
        Input::AskResumeTask { partial: false }
        | Input::AskResumeCompletedTask { partial: false } => Sense::AsksToResume,
        Input::ProcessError => Sense::Broke,
        Input::StartSession => Sense::Start,
        Input::SendMessage => Sense::Send,
        Input::ApproveAction | Input::RejectAction => Sense::Decide,
        Input::CancelSession => Sense::Cancel,
        Input::ResumeSession => Sense::Resume,
        Input::Retry => Sense::Retry,
        // Still being written.
        Input::AskTool { partial: true }
        | Input::AskCommand { partial: true }
        | Input::AskBrowserActionLaunch { partial: true }
        | Input::AskUseMcpServer { partial: true }
        | Input::AskFollowup { partial: true }
        | Input::AskCompletionResult { partial: true }
        | Input::AskApiReqFailed { partial: true }
        | Input::AskMistakeLimitReached { partial: true }
        | Input::AskPaymentRequiredPrompt { partial: true }
        | Input::AskInvalidModel { partial: true }
        | Input::AskResumeTask { partial: true }
        | Input::AskResumeCompletedTask { partial: true } => Sense::Nothing,
        Input::SayText { .. } | Input::SayCompletionResult { .. } | Input::SayCheckpointSaved => {
            Sense::Nothing
        }
        Input::WelcomeWithInstructions | Input::ProcessExit { .. } | Input::Timer => Sense::Nothing,
    }
}

pub(super) fn idle(sense: Sense) -> Option<ManagerState> {
    match sense {
        Sense::Start => Some(ManagerState::Creating),
        Sense::Created
        | Sense::Requested
        | Sense::Retried
        | Sense::AsksLeave
        | Sense::AsksQuestion
        | Sense::HandsOver
        | Sense::Fails
        | Sense::AsksToResume
        | Sense::Broke
        | Sense::Send
        | Sense::Decide
        | Sense::Cancel
        | Sense::Resume
        | Sense::Retry
        | Sense::Nothing => None,
    }
}

pub(super) fn streaming(sense: Sense) -> Option<ManagerState> {
    match sense {
        Sense::AsksLeave => Some(ManagerState::WaitingApproval),
        Sense::AsksQuestion => Some(ManagerState::WaitingInput),
        Sense::HandsOver => Some(ManagerState::Completed),
        Sense::Fails => Some(ManagerState::Error),
        Sense::AsksToResume => Some(ManagerState::Paused),
        Sense::Cancel => Some(ManagerState::Stopped),
        Sense::Created
        | Sense::Requested
        | Sense::Retried
        | Sense::Broke
        | Sense::Start
        | Sense::Send
        | Sense::Decide
        | Sense::Resume
        | Sense::Retry
        | Sense::Nothing => None,
    }
}

pub(super) fn waiting_approval(sense: Sense) -> Option<ManagerState> {
    match sense {
        Sense::Decide | Sense::Requested => Some(ManagerState::Streaming),
        Sense::Cancel => Some(ManagerState::Stopped),
        Sense::Created
        | Sense::Retried
        | Sense::AsksLeave
        | Sense::AsksQuestion
        | Sense::HandsOver
        | Sense::Fails
        | Sense::AsksToResume
        | Sense::Broke
        | Sense::Start
        | Sense::Send
        | Sense::Resume
        | Sense::Retry
        | Sense::Nothing => None,
    }
}

pub(super) fn waiting_input(sense: Sense) -> Option<ManagerState> {
    match sense {
        Sense::Send => Some(ManagerState::Streaming),
        Sense::Cancel => Some(ManagerState::Stopped),
        Sense::Created
        | Sense::Requested
        | Sense::Retried
        | Sense::AsksLeave
        | Sense::AsksQuestion
        | Sense::HandsOver
        | Sense::Fails
        | Sense::AsksToResume
        | Sense::Broke
        | Sense::Start
        | Sense::Decide
        | Sense::Resume
        | Sense::Retry
        | Sense::Nothing => None,
    }
}

pub(super) fn completed(sense: Sense) -> Option<ManagerState> {
    match sense {
        Sense::Send => Some(ManagerState::Streaming),
        Sense::Start => Some(ManagerState::Creating),
        Sense::Created
        | Sense::Requested
        | Sense::Retried
        | Sense::AsksLeave
        | Sense::AsksQuestion
        | Sense::HandsOver
        | Sense::Fails
        | Sense::AsksToResume
        | Sense::Broke
        | Sense::Decide
        | Sense::Cancel
        | Sense::Resume
        | Sense::Retry
        | Sense::Nothing => None,
    }
}

pub(super) fn paused(sense: Sense) -> Option<ManagerState> {
    match sense {
        Sense::Resume => Some(ManagerState::Streaming),
        Sense::Cancel => Some(ManagerState::Stopped),
        Sense::Created
        | Sense::Requested
        | Sense::Retried
        | Sense::AsksLeave
        | Sense::AsksQuestion
        | Sense::HandsOver
        | Sense::Fails
        | Sense::AsksToResume
        | Sense::Broke
        | Sense::Start
        | Sense::Send
        | Sense::Decide
        | Sense::Retry
        | Sense::Nothing => None,
    }
}

pub(super) fn error(sense: Sense) -> Option<ManagerState> {
    match sense {
        Sense::Retry | Sense::Retried => Some(ManagerState::Streaming),
        Sense::Cancel => Some(ManagerState::Stopped),
        Sense::Created
        | Sense::Requested
        | Sense::AsksLeave
        | Sense::AsksQuestion
        | Sense::HandsOver
        | Sense::Fails
        | Sense::AsksToResume
        | Sense::Broke
        | Sense::Start
        | Sense::Send
        | Sense::Decide
        | Sense::Resume
        | Sense::Nothing => None,
    }
}

pub(super) fn stopped(sense: Sense) -> Option<ManagerState> {
    match sense {
        Sense::Resume => Some(ManagerState::Streaming),
        Sense::Start => Some(ManagerState::Creating),
        Sense::Created
        | Sense::Requested
        | Sense::Retried
        | Sense::AsksLeave
        | Sense::AsksQuestion
        | Sense::HandsOver
        | Sense::Fails
        | Sense::AsksToResume
        | Sense::Broke
        | Sense::Send
        | Sense::Decide
        | Sense::Cancel
        | Sense::Retry
        | Sense::Nothing => None,
    }
}
