//! One trace for each turn: from the operator's word until the session waits for the next one.
//!
//! Pure: changes in, finished spans out, with the changes' own times. The root is `turn`; below it
//! `llm` is one try of a model request, `tool` and `hook` one run each.
//! Invariant: ids, names, states and codes; never a prompt, an argument, an output or a message.

use std::collections::BTreeMap;

use qd_broker::driving::spawning::DRIVEN_MAX;
use qd_harness::Harness;
use qd_session::id::{SessionId, TurnId};
use qd_session::machine::{
    Change, ErrorCode, HookLifecycle, Kind, Reason, RunStatus, Shown, StateChanged, ToolLifecycle,
};
use qd_session::moment::Timestamp;

use super::meter::is_over;
use super::span::{Attribute, Span, SpanId, TraceId, span_id, trace_id};
use super::word::word;

#[derive(Debug, Default)]
pub struct Tracer {
    turns: BTreeMap<SessionId, OpenTurn>,
}

#[derive(Debug)]
struct OpenTurn {
    trace: TraceId,
    root: SpanId,
    session: SessionId,
    /// Of its first request. Others follow after each batch and each failure.
    stream: TurnId,
    harness: Harness,
    started_at: Timestamp,
    /// Requests to the model, repeated ones included.
    attempts: u32,
    llm: Option<OpenRequest>,
    /// Which try failed last, if nothing has succeeded since.
    failed_attempt: Option<u32>,
    error: Option<ErrorCode>,
    /// Since when it has been paused or has failed: if nothing more comes of it, it ended then.
    rests_since: Option<Timestamp>,
}

#[derive(Debug)]
struct OpenRequest {
    stream: TurnId,
    attempt: u32,
    started_at: Timestamp,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Completed,
    Failed,
    Interrupted,
    Stopped,
}

impl Tracer {
    /// The spans that end with this change, children before their root.
    pub fn fold(&mut self, harness: Harness, shown: &Shown) -> Vec<Span> {
        let (session, at) = (&shown.session_id, shown.timestamp_ms);
        match &shown.change {
            Change::StateChanged(changed) => self.moved(harness, session, at, changed),
            Change::ToolLifecycle(run) => {
                let turn = self.turns.get(session).filter(|_| is_over(run.status));
                turn.map(|turn| turn.tool(run)).into_iter().collect()
            }
            Change::HookLifecycle(run) => {
                let turn = self.turns.get(session).filter(|_| is_over(run.status));
                turn.map(|turn| turn.hook(run)).into_iter().collect()
            }
            Change::SessionError(error) => {
                if let Some(turn) = self.turns.get_mut(session).filter(|_| is_of_turn(error.code)) {
                    turn.error = Some(error.code);
                }
                Vec::new()
            }
        }
    }

    fn moved(
        &mut self,
        harness: Harness,
        session: &SessionId,
        at: Timestamp,
        changed: &StateChanged,
    ) -> Vec<Span> {
        let StateChanged { from, to, reason, stream_id } = changed;
        let mut spans = Vec::new();
        let open = self.turns.get_mut(session).filter(|_| *from == Kind::CallingLlm);
        spans.extend(open.and_then(|turn| turn.answered(at, *to, *reason)));
        let over = match to {
            Kind::Ready | Kind::Starting | Kind::Stopping | Kind::Stopped => true,
            // What failed before is dropped for the next word of the operator.
            Kind::CallingLlm => *reason == Reason::UserInput,
            Kind::Idle
            | Kind::ProcessingResponse
            | Kind::AwaitingApproval
            | Kind::AwaitingInput
            | Kind::ExecutingTools
            | Kind::PostToolsHook
            | Kind::Paused
            | Kind::Error => false,
        };
        if over {
            let ended = self.turns.remove(session);
            spans.extend(ended.map(|turn| turn.ended(at, *to, *reason)));
        }
        if let Some(stream) = stream_id
            && *to != Kind::Error
            && (self.turns.len() < DRIVEN_MAX || self.turns.contains_key(session))
        {
            let fresh = || OpenTurn::begun(harness, session, stream, at);
            let turn = self.turns.entry(session.clone()).or_insert_with(fresh);
            turn.rests_since = None;
            if *to == Kind::CallingLlm {
                turn.ask(stream, at, *reason);
            }
        }
        if let (Kind::Paused | Kind::Error, Some(turn)) = (to, self.turns.get_mut(session)) {
            turn.rests_since = Some(at);
        }
        spans
    }
}

impl OpenTurn {
    fn begun(harness: Harness, session: &SessionId, stream: &TurnId, at: Timestamp) -> Self {
        Self {
            trace: trace_id(stream.as_str()),
            root: span_id(&format!("turn {stream}")),
            session: session.clone(),
            stream: stream.clone(),
            harness,
            started_at: at,
            attempts: 0,
            llm: None,
            failed_attempt: None,
            error: None,
            rests_since: None,
        }
    }

    /// The model is asked.
    fn ask(&mut self, stream: &TurnId, at: Timestamp, reason: Reason) {
        let is_repeated =
            matches!(reason, Reason::RetryDue | Reason::RetryRequested | Reason::Resumed);
        let last = self.failed_attempt.take().filter(|_| is_repeated);
        let attempt = last.unwrap_or(0).saturating_add(1);
        self.attempts = self.attempts.saturating_add(1);
        self.llm = Some(OpenRequest { stream: stream.clone(), attempt, started_at: at });
    }

    /// The request is over, one way or the other.
    fn answered(&mut self, at: Timestamp, to: Kind, reason: Reason) -> Option<Span> {
        let OpenRequest { stream, attempt, started_at } = self.llm.take()?;
        let has_failed = to == Kind::Error || is_failure(reason);
        let is_cut = matches!(to, Kind::Stopping | Kind::Stopped) || reason == Reason::Interrupted;
        let status = match (has_failed, is_cut) {
            (true, _) => RunStatus::Failed,
            (false, true) => RunStatus::Canceled,
            (false, false) => RunStatus::Succeeded,
        };
        let failure = match has_failed {
            true => Some(self.error.map_or_else(|| word(&reason), |code| word(&code))),
            false => None,
        };
        match has_failed {
            true => self.failed_attempt = Some(attempt),
            false => self.error = None,
        }
        // An agent with its own tools goes on with the same stream after each batch.
        let id = span_id(&format!("llm {stream} {}", self.attempts));
        let attributes = vec![
            ("stream_id", stream.as_str().into()),
            ("attempt", attempt.into()),
            ("status", Attribute::Text(word(&status))),
        ];
        Some(self.child("llm", id, (started_at, at), attributes, failure))
    }

    fn tool(&self, run: &ToolLifecycle) -> Span {
        let id = span_id(&format!("tool {}", run.run_id));
        let attributes = vec![
            ("run_id", run.run_id.as_str().into()),
            ("tool_name", run.tool_name.as_str().into()),
            ("attempt", u32::from(run.attempt).into()),
            ("status", Attribute::Text(word(&run.status))),
        ];
        let failed = (run.status == RunStatus::Failed).then_some(ErrorCode::ToolExecutionFailed);
        let times = (run.started_at_ms, run.finished_at_ms.unwrap_or(run.started_at_ms));
        self.child("tool", id, times, attributes, failed.map(|code| word(&code)))
    }

    fn hook(&self, run: &HookLifecycle) -> Span {
        let id = span_id(&format!("hook {}", run.run_id));
        let attributes = vec![
            ("run_id", run.run_id.as_str().into()),
            ("hook_name", (&*run.hook_name).into()),
            ("attempt", u32::from(run.attempt).into()),
            ("status", Attribute::Text(word(&run.status))),
        ];
        let failed = (run.status == RunStatus::Failed).then_some(ErrorCode::HookExecutionFailed);
        let times = (run.started_at_ms, run.finished_at_ms.unwrap_or(run.started_at_ms));
        self.child("hook", id, times, attributes, failed.map(|code| word(&code)))
    }

    fn child(
        &self,
        name: &'static str,
        id: SpanId,
        (started_at, ended_at): (Timestamp, Timestamp),
        mut attributes: Vec<(&'static str, Attribute)>,
        failure: Option<std::sync::Arc<str>>,
    ) -> Span {
        attributes.insert(0, ("session_id", self.session.as_str().into()));
        let (trace, parent) = (self.trace, Some(self.root));
        // A clock may be set back.
        let ended_at = ended_at.max(started_at);
        Span { trace, id, parent, name, started_at, ended_at, attributes, failure }
    }

    fn ended(self, at: Timestamp, to: Kind, reason: Reason) -> Span {
        let outcome = self.outcome(to, reason);
        let failure = match outcome {
            Outcome::Failed => Some(self.error.map_or_else(|| "failed".into(), |code| word(&code))),
            Outcome::Completed | Outcome::Interrupted | Outcome::Stopped => None,
        };
        let attributes = vec![
            ("session_id", self.session.as_str().into()),
            ("stream_id", self.stream.as_str().into()),
            ("harness", self.harness.name().into()),
            ("attempts", self.attempts.into()),
            ("outcome", outcome.name().into()),
        ];
        Span {
            trace: self.trace,
            id: self.root,
            parent: None,
            name: "turn",
            started_at: self.started_at,
            ended_at: self.rests_since.unwrap_or(at).max(self.started_at),
            attributes,
            failure,
        }
    }

    fn outcome(&self, to: Kind, reason: Reason) -> Outcome {
        match (to, reason) {
            (Kind::Stopping | Kind::Stopped, _) => Outcome::Stopped,
            (_, Reason::Interrupted) => Outcome::Interrupted,
            (Kind::Starting, _) => Outcome::Failed,
            (_, reason) if is_failure(reason) || self.error.is_some() => Outcome::Failed,
            (_, _) => Outcome::Completed,
        }
    }
}

impl Outcome {
    fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::Stopped => "stopped",
        }
    }
}

fn is_failure(reason: Reason) -> bool {
    matches!(reason, Reason::Failed | Reason::RetriesExhausted)
}

/// It ends or delays the turn, and is no answer to a command that was not possible.
fn is_of_turn(code: ErrorCode) -> bool {
    match code {
        ErrorCode::HarnessFailed
        | ErrorCode::ToolExecutionFailed
        | ErrorCode::HookExecutionFailed
        | ErrorCode::StreamingFailed
        | ErrorCode::UsageLimit
        | ErrorCode::AuthFailed
        | ErrorCode::ModelNotFound
        | ErrorCode::ContextFull
        | ErrorCode::Interrupted => true,
        ErrorCode::SessionNotFound
        | ErrorCode::StateTransitionInvalid
        | ErrorCode::HookConfigInvalid => false,
    }
}
