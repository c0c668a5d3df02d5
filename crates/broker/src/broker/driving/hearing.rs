//! What runners report, told to the machine.

use std::sync::Arc;

use qd_harness::Harness;
use qd_harness::native::{
    Cause, CompletedReason, Failure, Payload, Piece, StopReason, StreamErrorCode, StreamEvent,
    StreamEvents, UsageTold,
};
use qd_session::Session;
use qd_session::event::{Entry, Event as JournalEvent};
use qd_session::id::{CallId, ProcessKey, RequestId, RequestKey, SessionId, ToolName, TurnId};
use qd_session::logbook::{Frozen, Used};
use qd_session::machine::{
    Event, HarnessTrouble, Judged, Kind, PauseCause, RetryTimer, State, ToolOutcome, Tools,
    TroubleKind, Turn, Verdict,
};
use qd_session::moment::Timestamp;
use qd_session::monitor::{Fact, Place};
use qd_session::policy::{Preset, Tightening};
use serde_json::json;

use super::{Heard, unknown_ground};
use crate::broker::ruling::answer_by;
use crate::broker::{Broker, Output, Tracked};
use crate::driving::{Ground, Report, clipped};
use crate::rules::{Judge, Ruled};

/// Calls that a session makes without anybody being asked, while nobody looks at the board, before
/// it is held.
const UNWATCHED_CALLS_MAX: u32 = 50;

impl Broker {
    pub(in crate::broker) fn hear(
        &mut self,
        now: Timestamp,
        id: &SessionId,
        report: Report,
        outputs: &mut Vec<Output>,
    ) {
        if self.driven(id).is_none() {
            return;
        }
        let event = match report {
            Report::Ready => {
                self.drive(now, id, Event::HarnessReady, outputs);
                self.begin(now, id, outputs);
                return;
            }
            Report::Exited { code, why } => Event::HarnessExited { code, why: why.map(clipped) },
            Report::VendorSession { id: vendor_id } => {
                self.adopt(now, id, &vendor_id, outputs);
                return;
            }
            Report::Version { version } => {
                let place = Place { version: Some(version), ..Place::default() };
                self.note(now, id, Fact::PlaceKnown { place }, outputs);
                self.show(now, id, outputs);
                return;
            }
            Report::Unrecognised { text } => {
                self.note(now, id, Fact::Unrecognised { text }, outputs);
                self.show(now, id, outputs);
                return;
            }
            Report::Process { process } => {
                self.note(now, id, Fact::ProcessSeen { process: process.clone() }, outputs);
                self.carry(now, id, vec![process], outputs);
                self.show(now, id, outputs);
                return;
            }
            Report::ProcessEnded { process } => {
                self.note(now, id, Fact::ProcessGone { process }, outputs);
                self.show(now, id, outputs);
                return;
            }
            Report::Kin { processes } => {
                self.carry(now, id, processes, outputs);
                return;
            }
            Report::Piece { turn, piece } => {
                self.stream(now, id, &turn, piece, outputs);
                return;
            }
            Report::Alive { turn } => Event::StreamDelta { turn },
            Report::Trouble { error } => {
                self.show_error(now, id, error, outputs);
                return;
            }
            Report::Completed { turn, text, stop, frozen } => {
                self.complete(now, id, turn, text, stop, frozen, outputs);
                return;
            }
            Report::Failed { turn, trouble, failure, used } => {
                self.fail(now, id, turn, trouble, failure, used, outputs);
                return;
            }
            Report::Surveyed { turn, ground } => {
                self.surveyed(now, id, turn, *ground, outputs);
                return;
            }
            Report::ToolReported { turn, call } => {
                let event = Event::ToolReported { turn, call: call.kept() };
                if self.drive(now, id, event, outputs) == Heard::Taken {
                    self.count_unwatched(now, id, 1, outputs);
                }
                return;
            }
            Report::ToolEnded { turn, call, is_error, output } => {
                Event::ToolEnded { turn, call, is_error, output }
            }
            Report::ApprovalAsked { turn, call } => {
                // Some agents tell of a call only when they ask about it.
                let calls = u32::from(!self.has_call(id, &call.call_id));
                let event = Event::ApprovalAsked { turn, call: call.kept() };
                if self.drive(now, id, event, outputs) == Heard::Taken {
                    self.count_unwatched(now, id, calls, outputs);
                }
                return;
            }
            Report::QuestionAsked { turn, call } => {
                Event::QuestionAsked { turn, call: call.kept() }
            }
            Report::Withdrawn { turn, call } => Event::RequestWithdrawn { turn, call },
            Report::BatchHeld { turn } => Event::BatchHeld { turn },
            Report::ToolStarted { run } => Event::ToolStarted { run },
            Report::ToolFinished { run, outcome } => {
                let outcome = match outcome {
                    ToolOutcome::Succeeded { output, is_error } => {
                        ToolOutcome::Succeeded { output: clipped(output), is_error }
                    }
                    ToolOutcome::Failed { error } => ToolOutcome::Failed { error: clipped(error) },
                };
                Event::ToolFinished { run, outcome }
            }
            Report::HookStarted { run } => Event::HookStarted { run },
            Report::HookFinished { run, error, output } => {
                let (error, output) = (error.map(clipped), output.map(clipped));
                Event::HookFinished { run, error, output }
            }
        };
        self.drive(now, id, event, outputs);
    }

    /// It can hear: what it was started for is said, once.
    fn begin(&mut self, now: Timestamp, id: &SessionId, outputs: &mut Vec<Output>) {
        let Some((machine, logbook)) = self.driven(id) else { return };
        let is_new = logbook.conversation().messages().is_empty();
        let prompt = logbook.brief().prompt.clone().filter(|_| is_new);
        if let (Kind::Ready, Some(text)) = (machine.state().kind(), prompt) {
            self.note(now, id, Fact::UserPrompt { text: Some(text.clone()) }, outputs);
            self.drive(now, id, Event::UserInput { text }, outputs);
        }
    }

    /// Shows a piece of the answer that is being given.
    fn stream(
        &mut self,
        now: Timestamp,
        id: &SessionId,
        turn: &TurnId,
        piece: Piece,
        outputs: &mut Vec<Output>,
    ) {
        if !self.is_current(id, turn) {
            if let Some(drive) = self.drives.sessions.get_mut(id) {
                drive.late += 1;
            }
            return;
        }
        if let Some(stream) = self.stream_of(now, id, turn) {
            let shown = stream.take(now, &piece);
            outputs.extend(shown.into_iter().map(Box::new).map(Output::Streamed));
        }
        self.drive(now, id, Event::StreamDelta { turn: turn.clone() }, outputs);
    }

    fn is_current(&self, id: &SessionId, turn: &TurnId) -> bool {
        self.current_turn(id).is_some_and(|current| current.id == *turn)
    }

    /// The operator wants the turn to end, and its agent was asked to.
    fn is_interrupting(&self, id: &SessionId) -> bool {
        self.current_turn(id).is_some_and(|current| current.interrupting)
    }

    fn current_turn(&self, id: &SessionId) -> Option<&Turn> {
        self.driven(id)?.0.state().turn()
    }

    /// The answer of that turn as it is shown; a new one where another was shown before.
    pub(in crate::broker) fn stream_of(
        &mut self,
        now: Timestamp,
        id: &SessionId,
        turn: &TurnId,
    ) -> Option<&mut StreamEvents> {
        let (_, logbook) = self.driven(id)?;
        let provider = logbook.brief().provider.clone();
        let harness = self.roster[id].harness;
        let drive = self.drives.sessions.get_mut(id)?;
        if drive.stream.as_ref().is_none_or(|stream| stream.stream() != turn) {
            let turn = turn.clone();
            drive.stream = Some(StreamEvents::new(id.clone(), harness, provider, turn, now));
        }
        drive.stream.as_mut()
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one report, taken apart")]
    fn complete(
        &mut self,
        now: Timestamp,
        id: &SessionId,
        turn: TurnId,
        text: Option<Arc<str>>,
        stop: StopReason,
        frozen: Option<Box<Frozen>>,
        outputs: &mut Vec<Output>,
    ) {
        let used = frozen.as_ref().map(|frozen| frozen.used).unwrap_or_default();
        if let Some(trouble) = frozen.as_ref().and_then(|frozen| frozen.trouble()) {
            let failure = Failure::of(Cause::Garbled).saying(trouble.why());
            let trouble = failure.trouble();
            return self.fail(now, id, turn, trouble, Some(Box::new(failure)), used, outputs);
        }
        let text = text.map(clipped);
        let cut_off = stop.is_cut_off();
        let reason = match self.is_interrupting(id) {
            true => CompletedReason::UserAbort,
            false => stop.into(),
        };
        // Shown before what follows from it, unless nobody waits for it any more.
        if self.is_current(id, &turn)
            && let Some(stream) = self.stream_of(now, id, &turn)
        {
            let usage = UsageTold {
                input_tokens: used.context_tokens(),
                output_tokens: used.output_tokens,
                ..stream.usage()
            };
            let shown = stream.complete(now, reason, usage);
            outputs.extend(shown.into_iter().map(Box::new).map(Output::Streamed));
        }
        let event = Event::StreamCompleted { turn, text, cut_off };
        let is_taken = self.drive_with(now, id, event, frozen, outputs) == Heard::Taken;
        if is_taken && self.is_budget_spent(now, id) {
            self.hold(now, id, PauseCause::Budget, outputs);
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one report, taken apart")]
    fn fail(
        &mut self,
        now: Timestamp,
        id: &SessionId,
        turn: TurnId,
        trouble: HarnessTrouble,
        failure: Option<Box<Failure>>,
        used: Used,
        outputs: &mut Vec<Output>,
    ) {
        let is_interrupting = self.is_interrupting(id);
        if self.is_current(id, &turn)
            && let Some(stream) = self.stream_of(now, id, &turn)
        {
            let shown: Vec<StreamEvent> = match failure {
                // However it ended: the operator wanted it to.
                _ if is_interrupting => stream.abort(now).into_iter().collect(),
                Some(failure) => stream.take(now, &Piece::Failed(*failure)),
                None => stream.emit(now, unexplained(&trouble)).into_iter().collect(),
            };
            outputs.extend(shown.into_iter().map(Box::new).map(Output::Streamed));
        }
        let event = Event::StreamFailed { turn, trouble };
        let took =
            (used != Used::default()).then(|| Box::new(Frozen { used, ..Frozen::default() }));
        self.drive_with(now, id, event, took, outputs);
        self.mind_budget(now, id, outputs);
    }

    /// The ground is known: the calls of the answer that waits for it are judged.
    fn surveyed(
        &mut self,
        now: Timestamp,
        id: &SessionId,
        turn: Option<TurnId>,
        ground: Ground,
        outputs: &mut Vec<Output>,
    ) {
        let Ground { tightening, mutating } = ground;
        self.know_ground(now, id, tightening, outputs);
        let Some(turn) = turn else { return };
        let is_awaited = self.driven(id).is_some_and(|(machine, _)| {
            let state = machine.state();
            state.kind() == Kind::ProcessingResponse
                && state.turn().is_some_and(|current| current.id == turn)
        });
        if !is_awaited {
            return;
        }
        let ruled = self.ruled(id, &turn, &mutating);
        self.put_on_record(now, id, &ruled, outputs);
        let calls: Vec<Judged> = ruled.into_iter().map(|one| one.judged).collect();
        let allowed = calls.iter().filter(|judged| judged.verdict == Verdict::Allow).count();
        // Before the batch: a pause that is due is taken at its boundary.
        self.count_unwatched(now, id, u32::try_from(allowed).unwrap_or(u32::MAX), outputs);
        self.drive(now, id, Event::ResponseParsed { turn, calls }, outputs);
    }

    /// What the repository forbids is what its card says, too.
    fn know_ground(
        &mut self,
        now: Timestamp,
        id: &SessionId,
        tightening: Tightening,
        outputs: &mut Vec<Output>,
    ) {
        let Some((_, logbook)) = self.driven(id) else { return };
        let workspace = logbook.brief().workspace.clone();
        self.ruling.know(workspace, tightening.clone());
        if let Some(drive) = self.drives.sessions.get_mut(id) {
            drive.tightening = Some(tightening);
        }
        self.let_go(id, outputs);
        self.show(now, id, outputs);
    }

    fn ruled(&self, id: &SessionId, turn: &TurnId, mutating: &[ToolName]) -> Vec<Ruled> {
        let Some((_, logbook)) = self.driven(id) else { return Vec::new() };
        let known = self.drives.sessions.get(id).and_then(|drive| drive.tightening.clone());
        let tightening = &known.unwrap_or_else(unknown_ground);
        let judge = Judge { policy: &self.ruling.policy, logbook, tightening };
        let calls = logbook.conversation().calls_of(turn);
        calls.iter().map(|called| judge.ruled(called, mutating)).collect()
    }

    /// What rules answer here nobody is asked: it is on record in the batch that it takes effect
    /// in.
    fn put_on_record(
        &mut self,
        now: Timestamp,
        id: &SessionId,
        ruled: &[Ruled],
        outputs: &mut Vec<Output>,
    ) {
        let mut desk_outputs = Vec::new();
        for Ruled { judged, said } in ruled {
            let request = RequestId::new(judged.call.call_id.as_str());
            let key = RequestKey::of(id, &request, now);
            if let Some(answering) = said.as_ref().and_then(|said| answer_by(said, &key)) {
                self.desk.put_on_record(now, id, &judged.call, answering, &mut desk_outputs);
            }
        }
        self.pass_on(desk_outputs, outputs);
    }

    /// A session that asks nobody, while nobody looks, is held after some calls.
    fn count_unwatched(
        &mut self,
        now: Timestamp,
        id: &SessionId,
        calls: u32,
        outputs: &mut Vec<Output>,
    ) {
        let is_yolo = self.effective_preset(id) == Preset::Yolo;
        let is_watched = self.is_operator_present;
        let Some(drive) = self.drives.sessions.get_mut(id) else { return };
        if !is_yolo || is_watched {
            drive.unwatched = 0;
            return;
        }
        let before = drive.unwatched;
        drive.unwatched = before.saturating_add(calls);
        if before < UNWATCHED_CALLS_MAX && drive.unwatched >= UNWATCHED_CALLS_MAX {
            self.hold(now, id, PauseCause::Unwatched, outputs);
        }
    }

    /// The batch that is worked on has that call.
    fn has_call(&self, id: &SessionId, call: &CallId) -> bool {
        let batch = self.driven(id).and_then(|(machine, _)| machine.state().batch());
        batch.is_some_and(|batch| batch.runs().iter().any(|run| run.call.call_id == *call))
    }

    /// What is spent is spent: a session that would go on by itself is held until the operator
    /// says otherwise.
    pub(in crate::broker) fn mind_budget(
        &mut self,
        now: Timestamp,
        id: &SessionId,
        outputs: &mut Vec<Output>,
    ) {
        let Some((machine, _)) = self.driven(id) else { return };
        let goes_on = match machine.state() {
            State::Error { way_on, .. } => way_on.timer() != RetryTimer::None,
            State::Idle
            | State::Starting { .. }
            | State::Ready(_)
            | State::Paused { .. }
            | State::Stopping { .. }
            | State::Stopped { .. } => false,
            State::CallingLlm { .. }
            | State::ProcessingResponse { .. }
            | State::AwaitingApproval { .. }
            | State::AwaitingInput { .. }
            | State::ExecutingTools { .. }
            | State::PostToolsHook { .. } => true,
        };
        if goes_on && self.is_budget_spent(now, id) {
            self.hold(now, id, PauseCause::Budget, outputs);
        }
    }

    /// More than the operator has seen to be spent.
    pub(in crate::broker) fn is_budget_spent(&self, now: Timestamp, id: &SessionId) -> bool {
        let Some(tracked) = self.roster.get(id) else { return false };
        let spent = self.spent_by(now, tracked).since(&tracked.session.peek().budget_seen());
        self.ruling.budget_of(&tracked.session).exceeded(&spent).is_some()
    }

    fn hold(
        &mut self,
        now: Timestamp,
        id: &SessionId,
        cause: PauseCause,
        outputs: &mut Vec<Output>,
    ) {
        let Some((machine, _)) = self.driven(id) else { return };
        let turn = machine.state().turn();
        if turn.is_none_or(|turn| turn.pause.is_none()) {
            self.drive(now, id, Event::PauseRequested { cause }, outputs);
        }
        let Some((machine, _)) = self.driven(id) else { return };
        // An agent with its own tools has no boundary of ours before the end of its turn. While it
        // waits for a person it spends nothing, and what it asked stays.
        let kind = machine.state().kind();
        let waits = matches!(kind, Kind::AwaitingApproval | Kind::AwaitingInput);
        let is_theirs = machine.setup().tools != Tools::Ours;
        let runs = machine.state().turn().is_some_and(|turn| !turn.interrupting);
        if is_theirs && runs && (cause == PauseCause::Unwatched || !waits) {
            self.drive(now, id, Event::InterruptRequested, outputs);
        }
    }

    /// The agent has told its own id. Whatever was heard of that id before is the same session.
    pub(in crate::broker) fn adopt(
        &mut self,
        now: Timestamp,
        id: &SessionId,
        vendor_id: &Arc<str>,
        outputs: &mut Vec<Output>,
    ) {
        let Some(tracked) = self.roster.get_mut(id) else { return };
        let key = (tracked.harness, vendor_id.clone());
        if tracked.vendor_id == *vendor_id && self.found.get(&key) == Some(id) {
            return;
        }
        tracked.vendor_id = vendor_id.clone();
        tracked.spent = self.spent.remove(&key).map(Box::new).or(tracked.spent.take());
        let harness = tracked.harness;
        let other = self.found.insert(key, id.clone()).filter(|other| other != id);
        let session = id.clone();
        outputs.push(Output::Found { session, harness, vendor_id: vendor_id.clone() });
        if let Some(other) = other {
            self.take_over(now, id, &other, outputs);
        }
        self.show(now, id, outputs);
    }

    /// These processes carry the session: whatever else was heard of them is the same one.
    fn carry(
        &mut self,
        now: Timestamp,
        id: &SessionId,
        processes: Vec<ProcessKey>,
        outputs: &mut Vec<Output>,
    ) {
        let Some(drive) = self.drives.sessions.get_mut(id) else { return };
        drive.processes.extend(processes);
        let ours = &drive.processes;
        let harness = self.roster[id].harness;
        let is_same = |tracked: &Tracked| {
            may_be(harness, tracked.harness)
                && tracked.session.driven().is_none()
                && tracked.session.is_of(ours)
        };
        let same = self.roster.values().filter(|tracked| is_same(tracked));
        let same: Vec<(Harness, Arc<str>)> =
            same.map(|tracked| (tracked.harness, tracked.vendor_id.clone())).collect();
        for (harness, vendor_id) in same {
            self.join(now, id, harness, &vendor_id, outputs);
        }
    }

    /// The driven session that an event of another one belongs to, because one process carries
    /// both: a client that is driven may write down more than the session that was asked for.
    pub(in crate::broker) fn joined(
        &mut self,
        now: Timestamp,
        harness: Harness,
        vendor_id: &Arc<str>,
        fact: &Fact,
        outputs: &mut Vec<Output>,
    ) {
        let (Fact::ProcessSeen { process } | Fact::SessionStarted { process: Some(process) }) =
            fact
        else {
            return;
        };
        let driven = self.drives.carried_by(process).cloned();
        let driven =
            driven.filter(|id| self.roster.get(id).is_some_and(|it| may_be(it.harness, harness)));
        if let Some(id) = driven {
            self.join(now, &id, harness, vendor_id, outputs);
        }
    }

    fn join(
        &mut self,
        now: Timestamp,
        id: &SessionId,
        harness: Harness,
        vendor_id: &Arc<str>,
        outputs: &mut Vec<Output>,
    ) {
        let key = (harness, vendor_id.clone());
        let before = self.found.insert(key, id.clone());
        if before.as_ref() == Some(id) {
            return;
        }
        let (session, vendor_id) = (id.clone(), vendor_id.clone());
        outputs.push(Output::Found { session, harness, vendor_id });
        if let Some(other) = before {
            self.take_over(now, id, &other, outputs);
        }
        self.show(now, id, outputs);
    }

    /// One session, two cards: what was observed goes to the one that is driven.
    fn take_over(
        &mut self,
        now: Timestamp,
        id: &SessionId,
        other: &SessionId,
        outputs: &mut Vec<Output>,
    ) {
        let is_observed =
            self.roster.get(other).is_some_and(|tracked| tracked.session.driven().is_none());
        if !is_observed {
            return;
        }
        let Some(gone) = self.roster.remove(other) else { return };
        gone.look.map(|look| self.looks.remove(&(look, other.clone())));
        outputs.extend(gone.shown.map(|_| Output::Remove(other.clone())));
        // Whoever waited for an answer there is let go: the driver asks.
        let mut desk_outputs = Vec::new();
        let nothing = Session::new(other.clone());
        self.desk.look(now, gone.harness, &nothing, &mut desk_outputs);
        self.desk.prompted(other, &mut desk_outputs);
        self.pass_on(desk_outputs, outputs);
        let ours = self.roster.get(id).map(|tracked| tracked.session.peek().monitor().clone());
        let monitor = Box::new(gone.session.peek().monitor().clone());
        let entry = Entry::new(id.clone(), now, JournalEvent::Adopted { monitor });
        self.journal(id, entry, outputs);
        let about = ours.as_ref().and_then(|monitor| monitor.about());
        let cwd = about.and_then(|about| about.cwd.as_ref()).map(|cwd| cwd.value.clone());
        let prompt = about.and_then(|about| about.first_prompt.as_ref());
        if let Some(prompt) = prompt.map(|prompt| prompt.value.clone()) {
            self.note(now, id, Fact::UserPrompt { text: Some(prompt) }, outputs);
        }
        self.note(now, id, Fact::PlaceKnown { place: Place { cwd, ..Place::default() } }, outputs);
        if let Some(spent) = gone.spent
            && let Some(tracked) = self.roster.get_mut(id)
        {
            tracked.spent = Some(spent);
        }
    }
}

/// The error of a stream of which only the agent's word is known.
fn unexplained(trouble: &HarnessTrouble) -> Payload {
    Payload::Error {
        code: StreamErrorCode::ProviderError,
        message: trouble.message.clone(),
        recoverable: trouble.trouble == TroubleKind::Passing,
        details: trouble.retry_after_ms.map(|wait| json!({ "retryAfterMs": wait })),
    }
}

/// What is seen of a process may be that harness: Kilo's server speaks as OpenCode's does, and an
/// agent behind ACP may be any.
fn may_be(driven: Harness, seen: Harness) -> bool {
    let is_served = |harness| matches!(harness, Harness::Opencode | Harness::KiloCode);
    driven == seen || driven == Harness::Acp || is_served(driven) && is_served(seen)
}
