//! One Gemini CLI session, put together from hooks, telemetry, chat file, stream and process.

use std::collections::VecDeque;
use std::sync::Arc;

use qd_session::id::{AgentId, ProcessKey, RequestId};
use qd_session::moment::Timestamp;
use qd_session::monitor::{Fact, Place};

use super::agenda::{Agenda, Item, What};
use super::calls::Calls;
use super::hooks::Fired;
use crate::excerpt::{self, LAST_MESSAGE_BYTES_MAX};
use crate::outbox::Outbox;
use crate::process::{Carriers, ProcessSighting};

/// After a batch the client asks the model again, and only some sources tell. A turn that ends on
/// the batch has said so by then.
const MODEL_ASKED_AGAIN_MS: u64 = 250;

/// Most subagents that are at work at once.
const SUBAGENTS_MAX: usize = 64;

#[derive(Debug)]
pub struct Session {
    pub id: Arc<str>,
    pub heard_at: Timestamp,
    pub calls: Calls,
    pub agenda: Agenda,
    pub place: Place,
    /// The hooks that fired last: telemetry repeats them.
    pub fired: VecDeque<Fired>,
    /// A source was seen that will tell when the loop ends.
    pub end_is_told: bool,
    /// It writes a JSON stream: headless, and its `result` ends the loop.
    pub streams: bool,
    /// A hook has sent the agent on when it wanted to stop.
    pub sent_on: bool,
    /// When the hook that ended the last turn fired, by the client's clock.
    pub ended_own: Option<Timestamp>,
    pub compacting: bool,
    open: bool,
    /// The last sign of work: an older start of a turn is not news.
    worked_at: Timestamp,
    ended_at: Timestamp,
    /// What the agent said since its last tool, by the stream and by the chat file.
    streamed: String,
    written: String,
    /// The last piece of the stream with its time: the same again is a doubled signal.
    last_piece: (Option<String>, String),
    llm_told: bool,
    subagents: Vec<AgentId>,
    carriers: Carriers,
    pub(super) loose: Vec<RequestId>,
}

impl Session {
    pub fn new(id: &str) -> Self {
        Self {
            id: id.into(),
            heard_at: Timestamp::ZERO,
            calls: Calls::default(),
            agenda: Agenda::default(),
            place: Place::default(),
            fired: VecDeque::new(),
            end_is_told: false,
            streams: false,
            sent_on: false,
            ended_own: None,
            compacting: false,
            open: false,
            worked_at: Timestamp::ZERO,
            ended_at: Timestamp::ZERO,
            streamed: String::new(),
            written: String::new(),
            last_piece: (None, String::new()),
            llm_told: false,
            subagents: Vec::new(),
            carriers: Carriers::default(),
            loose: Vec::new(),
        }
    }

    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Somebody prompted it. Several sources tell the same start; only the first clears the table.
    pub fn begin_turn(&mut self, text: Option<&str>, out: &mut Outbox) {
        if out.at() > self.worked_at && out.at() > self.ended_at {
            self.tell_end_now(out);
            self.calls.settle();
            self.loose.clear();
            self.streamed.clear();
            self.written.clear();
            self.llm_told = false;
            self.open = true;
            self.end_compaction(out);
        }
        out.tell(Fact::TurnStarted);
        if let Some(text) = text {
            out.tell(Fact::UserPrompt { text: excerpt::last_message(text) });
        }
    }

    /// A sign that the turn goes on, unless it is older than the turn's end.
    pub fn work(&mut self, at: Timestamp) {
        if at > self.ended_at {
            self.open = true;
            self.worked_at = self.worked_at.max(at);
            self.agenda.work_goes_on(at);
        }
    }

    pub fn think(&mut self, out: &mut Outbox) {
        self.work(out.at());
        self.llm_told = true;
        out.tell(Fact::LlmStarted);
    }

    /// Text of the agent, as it comes.
    pub fn stream_text(&mut self, text: &str, stamp: Option<&str>, out: &mut Outbox) {
        let piece = (stamp.map(str::to_owned), text.to_owned());
        if piece.0.is_some() && self.last_piece == piece {
            return;
        }
        self.streamed.push_str(text);
        self.last_piece = piece;
        if self.streamed.len() > 2 * LAST_MESSAGE_BYTES_MAX {
            self.streamed = excerpt::tail(&self.streamed, LAST_MESSAGE_BYTES_MAX).to_owned();
        }
        if !self.llm_told {
            self.think(out);
        }
    }

    /// Text of the agent, as it stands in the chat file.
    pub fn wrote(&mut self, text: &str) {
        self.written = excerpt::tail(text, LAST_MESSAGE_BYTES_MAX).to_owned();
    }

    /// A tool begins: what was said before it was not the last message.
    pub fn act(&mut self, at: Timestamp) {
        self.work(at);
        self.llm_told = false;
        self.streamed.clear();
        self.written.clear();
    }

    /// What was said last, by whoever tells it best.
    pub fn said(&self, otherwise: Option<&str>) -> Option<Arc<str>> {
        [&*self.streamed, &*self.written, otherwise.unwrap_or_default()]
            .into_iter()
            .find_map(excerpt::last_message)
    }

    pub fn completed(&self, otherwise: Option<&str>) -> Fact {
        let last_message = self.said(otherwise);
        Fact::TurnCompleted { last_message, background: None, cut_off: false }
    }

    /// A call is over; when it was the last of its batch the model is next.
    pub fn call_ended(&mut self, delegated: bool, out: &mut Outbox) {
        if delegated && !self.calls.delegates() {
            self.end_subagents(out);
        }
        let ending = !self.open || self.agenda.is_ending();
        if !ending && self.calls.open().next().is_none() {
            let due = out.at().plus_ms(MODEL_ASKED_AGAIN_MS);
            let (at, source) = (due, out.source());
            self.agenda.add(Item { due, at, source, what: What::ModelAsked });
        }
    }

    /// The batch must be over, whether or not its ends were heard.
    pub fn batch_over(&mut self, out: &mut Outbox) {
        // A subagent asks its own model while the call that started it, and others, go on.
        if self.calls.delegates() {
            return;
        }
        for call in self.calls.open() {
            out.tell(call.completed(true));
        }
        self.calls.settle();
        self.resolve_loose(out);
    }

    /// The turn ends by `ending`, now.
    pub fn end_turn(&mut self, ending: Fact, out: &mut Outbox) {
        self.end_subagents(out);
        self.end_compaction(out);
        out.tell(ending);
        self.agenda.turn_over();
        self.calls.settle();
        self.loose.clear();
        self.open = false;
        self.ended_at = self.ended_at.max(out.at());
    }

    /// The turn ends, unless it goes on within `patience_ms`.
    pub fn end_turn_later(&mut self, ending: Fact, patience_ms: u64, out: &Outbox) {
        let (at, source) = (out.at(), out.source());
        self.agenda.work_goes_on(at);
        let due = at.plus_ms(patience_ms);
        self.agenda.add(Item { due, at, source, what: What::TurnEnds(ending) });
    }

    /// An end that waited is confirmed by what comes now.
    pub fn tell_end_now(&mut self, out: &mut Outbox) {
        if let Some(Item { at, source, what: What::TurnEnds(ending), .. }) = self.agenda.take_end()
        {
            let mut earlier = Outbox::new(self.id.clone(), at, 0, source);
            self.end_turn(ending, &mut earlier);
            out.append(earlier);
        }
    }

    pub fn begin_compaction(&mut self, patience_ms: u64, out: &mut Outbox) {
        self.compacting = true;
        out.tell(Fact::CompactionStarted);
        let due = out.at().plus_ms(patience_ms);
        let source = out.source();
        self.agenda.add(Item { due, at: due, source, what: What::CompactionOver });
    }

    pub fn end_compaction(&mut self, out: &mut Outbox) {
        if std::mem::take(&mut self.compacting) {
            self.agenda.compaction_over();
            out.tell(Fact::CompactionEnded);
        }
    }

    pub fn begin_subagent(&mut self, agent: &AgentId, kind: Option<&str>, out: &mut Outbox) {
        if !self.subagents.contains(agent) && self.subagents.len() < SUBAGENTS_MAX {
            self.subagents.push(agent.clone());
            let kind = kind.map(Into::into);
            out.tell_of(agent.clone(), Fact::SubagentStarted { kind });
        }
    }

    pub fn end_subagent(&mut self, agent: &AgentId, out: &mut Outbox) {
        self.subagents.retain(|known| known != agent);
        out.tell_of(agent.clone(), Fact::SubagentEnded);
    }

    pub fn end_subagents(&mut self, out: &mut Outbox) {
        for agent in std::mem::take(&mut self.subagents) {
            out.tell_of(agent, Fact::SubagentEnded);
        }
    }

    /// Where it lives, if that is news.
    pub fn live_in(&mut self, place: Place, out: &mut Outbox) {
        if let Some(place) = self.place.learn(place) {
            out.tell(Fact::PlaceKnown { place });
        }
    }

    /// What a process watcher saw.
    pub fn take_process(
        &mut self,
        seen: ProcessSighting,
        exit_code: Option<i32>,
        out: &mut Outbox,
    ) {
        match seen {
            ProcessSighting::Seen(process) => {
                self.carriers.seen(&process);
                out.tell(Fact::ProcessSeen { process });
            }
            ProcessSighting::Missing => out.tell(Fact::ProcessMissing),
            ProcessSighting::Exited(process) => {
                match (self.carriers.exited(process.as_ref()), process) {
                    (false, Some(process)) => out.tell(Fact::ProcessGone { process }),
                    (_, process) => self.end(process, exit_code, out),
                }
            }
        }
    }

    pub fn end(&mut self, process: Option<ProcessKey>, exit_code: Option<i32>, out: &mut Outbox) {
        self.tell_end_now(out);
        self.agenda = Agenda::default();
        self.calls.settle();
        self.loose.clear();
        self.open = false;
        self.end_subagents(out);
        out.tell(Fact::SessionEnded { process, exit_code });
    }
}
