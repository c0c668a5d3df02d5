//! How an answer ends that nobody tells the end of, and what comes out of calls meanwhile.

use std::sync::Arc;

use qd_harness::native::{
    Cause, CompletedReason, Failure, Payload, Piece, StreamErrorCode, StreamEvent, StreamEvents,
    ToolStatus,
};
use qd_session::id::{CallId, SessionId};
use qd_session::logbook::shortened;
use qd_session::machine::{
    After, Batch, Change, Event, Machine, Ready, RunStatus, State, Timer, ToolCall, ToolLifecycle,
    Tools, WayOn,
};
use qd_session::moment::Timestamp;

use crate::broker::{Broker, Output};

/// What put an end to an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    Operator,
    Silence,
    Exit,
}

impl Cut {
    pub fn by(event: &Event) -> Self {
        if matches!(event, Event::TimerFired { timer: Timer::LlmSilence { .. } }) {
            Self::Silence
        } else if matches!(event, Event::HarnessExited { .. }) {
            Self::Exit
        } else {
            Self::Operator
        }
    }
}

/// The calls of an agent that runs its own tools, as they were before an event, and what the event
/// says came out of one.
#[derive(Debug, Default)]
pub(super) struct TheirCalls {
    calls: Vec<ToolCall>,
    came_out: Option<(CallId, Arc<str>)>,
}

impl TheirCalls {
    pub fn before(machine: &Machine, event: &Event) -> Self {
        if machine.setup().tools == Tools::Ours {
            return Self::default();
        }
        let runs = machine.state().batch().map(Batch::runs).unwrap_or_default();
        Self {
            calls: runs.iter().map(|run| run.call.clone()).collect(),
            came_out: event.came_out().map(|(call, output)| (call.clone(), output.clone())),
        }
    }

    /// The result of a call that ended with this change.
    pub fn ended(&self, change: &Change) -> Option<Payload> {
        let Change::ToolLifecycle(told) = change else { return None };
        let call = self.calls.iter().find(|call| call.call_id == told.call_id)?;
        let output = self.came_out.as_ref().filter(|(of, _)| *of == told.call_id);
        Some(Payload::ToolCallCompleted {
            call_id: call.call_id.clone(),
            tool_name: call.name.clone(),
            arguments: shortened(&call.arguments),
            output: output.map(|(_, output)| output.clone()).unwrap_or_default(),
            status: status(told)?,
            error_message: told.error.clone(),
        })
    }
}

fn status(told: &ToolLifecycle) -> Option<ToolStatus> {
    match told.status {
        RunStatus::Succeeded if told.is_error => Some(ToolStatus::Failed),
        RunStatus::Succeeded => Some(ToolStatus::Completed),
        RunStatus::Failed => Some(ToolStatus::Failed),
        RunStatus::Canceled => Some(ToolStatus::Canceled),
        RunStatus::Queued | RunStatus::Running => None,
    }
}

impl Broker {
    /// What came out of a call, within the answer that made it.
    pub(super) fn stream_result(
        &mut self,
        now: Timestamp,
        id: &SessionId,
        result: Option<Payload>,
        outputs: &mut Vec<Output>,
    ) {
        let Some(result) = result else { return };
        let drive = self.drives.sessions.get_mut(id);
        let Some(stream) = drive.and_then(|drive| drive.stream.as_mut()) else { return };
        outputs.extend(stream.emit(now, result).map(Box::new).map(Output::Streamed));
    }

    /// An answer whose turn is over ends, if nobody has told its end.
    pub(super) fn end_stream(
        &mut self,
        now: Timestamp,
        id: &SessionId,
        cut: Cut,
        outputs: &mut Vec<Output>,
    ) {
        let Some(machine) =
            self.roster.get(id).and_then(|tracked| tracked.session.driven()?.machine())
        else {
            return;
        };
        let state = machine.state();
        let Some(drive) = self.drives.sessions.get_mut(id) else { return };
        let Some(stream) = drive.stream.as_mut().filter(|stream| !goes_on(state, stream)) else {
            return;
        };
        let shown = ended(now, stream, state, cut);
        outputs.extend(shown.into_iter().map(Box::new).map(Output::Streamed));
    }
}

/// A turn that failed is asked again under another id.
fn goes_on(state: &State, stream: &StreamEvents) -> bool {
    let has_failed = matches!(state, State::Error { way_on: WayOn::Llm { .. }, .. });
    !has_failed && state.turn().is_some_and(|turn| turn.id == *stream.stream())
}

fn ended(now: Timestamp, stream: &mut StreamEvents, state: &State, cut: Cut) -> Vec<StreamEvent> {
    match cut {
        Cut::Operator => stream.abort(now).into_iter().collect(),
        Cut::Silence => stream.take(now, &Piece::Failed(Failure::of(Cause::TimedOut))),
        Cut::Exit => {
            let aborted = if let State::Error { error, .. } = state {
                aborted(error.message.clone(), error.retryable)
            } else if let State::Stopped { .. } = state {
                aborted("the harness has ended".into(), false)
            } else if let State::Ready(Ready { after: After::Interrupted, .. }) = state {
                return stream.abort(now).into_iter().collect();
            } else {
                // One process a turn: it was done, and said so by ending.
                return stream.complete(now, CompletedReason::Stop, stream.usage());
            };
            stream.emit(now, aborted).into_iter().collect()
        }
    }
}

fn aborted(message: Arc<str>, recoverable: bool) -> Payload {
    let code = StreamErrorCode::SessionAborted;
    Payload::Error { code, message, recoverable, details: None }
}
