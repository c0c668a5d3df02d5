//! Signal in, events out: JSON-RPC messages are paired with what they answer and handed to their
//! session.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use qd_session::id::RequestId;
use qd_session::moment::{Source, Timestamp};
use qd_session::monitor::Fact;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::failure;
use super::quirks::Quirks;
use super::session::{Replay, Session};
use super::wire::{Answer, Message, Outcome, ProcessSeen, RpcError, SessionParams, UpdateParams};
use crate::excerpt::{self, PAYLOAD_BYTES_MAX};
use crate::outbox::Outbox;
use crate::signal::{Channel, Direction, Sighting, Signal};

/// Most sessions remembered of one connection; the one not heard of for longest goes first.
const SESSIONS_MAX: usize = 64;

/// Most requests of the client that wait for their response, and most ids of answered ones that
/// are kept so that a doubled response answers nothing.
const SENT_MAX: usize = 64;

/// The id of a JSON-RPC request: the JSON text of a number or a string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcId(String);

impl RpcId {
    fn of(id: Option<&Value>) -> Option<Self> {
        id.map(|id| Self(id.to_string()))
    }

    /// As the request is called on the board.
    pub fn request(&self) -> RequestId {
        RequestId::new(self.0.trim_matches('"'))
    }
}

/// What the client asked the agent for.
#[derive(Debug, Clone)]
enum Sent {
    New { cwd: Option<String> },
    Load { session: Arc<str>, cwd: Option<String> },
    Prompt { session: Arc<str> },
    SetMode { session: Arc<str>, mode: String },
    Close { session: Arc<str> },
    Other,
}

#[derive(Debug, Default)]
pub struct Handler {
    quirks: Quirks,
    sessions: BTreeMap<Arc<str>, Session>,
    /// The session that was prompted last: what names none is most likely its.
    current: Option<Arc<str>>,
    sent: VecDeque<(RpcId, Sent)>,
    answered: VecDeque<RpcId>,
    /// Orders the messages of one millisecond.
    clock: (Timestamp, u32),
    unrecognised: u64,
}

impl crate::signal::Handler for Handler {
    fn handle_signal(&mut self, signal: &Signal<'_>) -> Vec<Sighting> {
        match signal.channel {
            Channel::Acp => self.message(signal),
            Channel::Process => self.process(signal),
            Channel::Hook
            | Channel::Notify
            | Channel::Transcript
            | Channel::Registry
            | Channel::Otel
            | Channel::Stream
            | Channel::Exec
            | Channel::AppServer
            | Channel::Events => self.unknown(signal, None),
        }
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        self.sessions.values().filter_map(|session| session.turn.model_due()).min()
    }

    fn handle_timeout(&mut self, now: Timestamp) -> Vec<Sighting> {
        let mut sightings = Vec::new();
        for session in self.sessions.values_mut() {
            if session.turn.model_asked(now) {
                let mut out = Outbox::new(session.id.clone(), now, 0, Source::Driver);
                out.tell(Fact::LlmStarted);
                sightings.extend(out.into_sightings());
            }
        }
        sightings
    }
}

impl Handler {
    /// Signals that were not understood and could not be given to any session.
    pub fn unrecognised(&self) -> u64 {
        self.unrecognised
    }

    fn message(&mut self, signal: &Signal<'_>) -> Vec<Sighting> {
        if signal.payload.len() > PAYLOAD_BYTES_MAX {
            return self.unknown(signal, None);
        }
        let Ok(message) = serde_json::from_slice::<Message>(signal.payload) else {
            return self.unknown(signal, None);
        };
        let id = RpcId::of(message.id.as_ref());
        let params = message.params.unwrap_or_default();
        let handled = match (message.method.as_deref(), id) {
            (Some(method), id) => self.called(signal, method, id, &params),
            (None, Some(id)) if signal.direction == Direction::ToAgent => {
                self.client_answered(signal, &id, message.result)
            }
            (None, Some(id)) => self.agent_answered(signal, &id, message.result, message.error),
            (None, None) => None,
        };
        handled.unwrap_or_else(|| self.unknown(signal, params.get("sessionId")))
    }

    /// A request or a notification, of either side: the method says whose.
    fn called(
        &mut self,
        signal: &Signal<'_>,
        method: &str,
        id: Option<RpcId>,
        params: &Value,
    ) -> Option<Vec<Sighting>> {
        match method {
            "initialize" => {
                self.begin_connection();
                Some(Vec::new())
            }
            "session/new" | "session/load" | "session/resume" | "session/fork"
            | "session/prompt" | "session/set_mode" | "session/close" | "session/delete" => {
                self.client_asked(signal, method, id?, read(params)?)
            }
            "session/update" => self.updated(signal, params),
            "session/request_permission" | "elicitation/create" => {
                self.agent_asked(signal, method, id?, params)
            }
            "elicitation/complete" => self.completed(signal, params),
            "$/cancel_request" => self.request_cancelled(signal, params),
            // They ask for a service, or tell what a later message tells better.
            "authenticate" | "logout" => Some(Vec::new()),
            other => {
                let known = ["session/", "fs/", "terminal/", "providers/", "_"];
                let is_known = known.iter().any(|prefix| other.starts_with(prefix));
                // Each side counts its own requests: only the client's are paired here.
                if let Some(id) = id.filter(|_| signal.direction == Direction::ToAgent) {
                    self.remember(id, Sent::Other);
                }
                is_known.then(Vec::new)
            }
        }
    }

    /// The ids of a new connection begin anew.
    fn begin_connection(&mut self) {
        self.sent.clear();
        self.answered.clear();
    }

    fn client_asked(
        &mut self,
        signal: &Signal<'_>,
        method: &str,
        id: RpcId,
        params: SessionParams,
    ) -> Option<Vec<Sighting>> {
        if self.answered.contains(&id) || self.sent.iter().any(|(sent, _)| *sent == id) {
            // The same message, heard twice.
            return Some(Vec::new());
        }
        let session = params.session_id.as_deref().map(Arc::<str>::from);
        let (sent, sightings) = match (method, session) {
            ("session/new", _) => (Sent::New { cwd: params.cwd }, Vec::new()),
            ("session/load" | "session/resume", Some(session)) => {
                self.session(&session, signal.at).replay = Replay::Loading;
                (Sent::Load { session, cwd: params.cwd }, Vec::new())
            }
            ("session/fork", _) => (Sent::New { cwd: params.cwd }, Vec::new()),
            ("session/prompt", Some(session)) => {
                let text: Vec<&str> = params.prompt.iter().map(|block| &*block.text).collect();
                let sightings = self.prompted(signal, &session, id.clone(), &text.join("\n"));
                (Sent::Prompt { session }, sightings)
            }
            ("session/set_mode", Some(session)) => {
                (Sent::SetMode { session, mode: params.mode_id? }, Vec::new())
            }
            ("session/close" | "session/delete", Some(session)) => {
                (Sent::Close { session }, Vec::new())
            }
            (_, _) => return None,
        };
        self.remember(id, sent);
        Some(sightings)
    }

    fn prompted(
        &mut self,
        signal: &Signal<'_>,
        session: &Arc<str>,
        id: RpcId,
        text: &str,
    ) -> Vec<Sighting> {
        let quirks = self.quirks;
        self.current = Some(session.clone());
        self.with(signal, session, |session, out| {
            session.loaded(out.at(), quirks);
            let begins = session.turn.prompted(id);
            session.prompted(begins, text, out);
        })
    }

    fn updated(&mut self, signal: &Signal<'_>, params: &Value) -> Option<Vec<Sighting>> {
        let session = Arc::<str>::from(params.get("sessionId")?.as_str()?);
        let update = read::<UpdateParams>(params)?.update?;
        let quirks = self.quirks;
        let mut known = false;
        let sightings = self.with(signal, &session, |session, out| {
            known = session.update(&update, quirks, out);
        });
        known.then_some(sightings)
    }

    fn agent_asked(
        &mut self,
        signal: &Signal<'_>,
        method: &str,
        id: RpcId,
        params: &Value,
    ) -> Option<Vec<Sighting>> {
        let named = params.get("sessionId").and_then(Value::as_str).map(Arc::<str>::from);
        let session = named.or_else(|| self.current.clone())?;
        if method == "elicitation/create" {
            let params = read(params)?;
            return Some(self.with(signal, &session, |session, out| {
                session.asks_question(id, params, out);
            }));
        }
        let params = read(params)?;
        Some(self.with(signal, &session, |session, out| {
            session.asks_permission(id, params, out);
        }))
    }

    fn completed(&mut self, signal: &Signal<'_>, params: &Value) -> Option<Vec<Sighting>> {
        let elicitation = params.get("elicitationId")?.as_str()?;
        Some(self.with_all(signal, |session, out| {
            session.withdrawn(|open| open.elicitation.as_deref() == Some(elicitation), out);
        }))
    }

    /// Either side takes back what it asked. The client's own prompt answers for itself.
    fn request_cancelled(&mut self, signal: &Signal<'_>, params: &Value) -> Option<Vec<Sighting>> {
        let id = RpcId::of(params.get("requestId"))?;
        if signal.direction == Direction::ToAgent {
            return Some(Vec::new());
        }
        Some(self.with_all(signal, |session, out| {
            session.withdrawn(|open| open.rpc.as_ref() == Some(&id), out);
        }))
    }

    fn client_answered(
        &mut self,
        signal: &Signal<'_>,
        id: &RpcId,
        result: Option<Value>,
    ) -> Option<Vec<Sighting>> {
        let answer: Answer = result.and_then(|result| read(&result)).unwrap_or_default();
        Some(self.with_all(signal, |session, out| {
            session.answered(id, &answer, out);
        }))
    }

    fn agent_answered(
        &mut self,
        signal: &Signal<'_>,
        id: &RpcId,
        result: Option<Value>,
        error: Option<RpcError>,
    ) -> Option<Vec<Sighting>> {
        if self.answered.contains(id) {
            return Some(Vec::new());
        }
        let outcome: Outcome = match result {
            Some(result) => read(&result)?,
            None => Outcome::default(),
        };
        if let Some(info) = &outcome.agent_info {
            self.quirks = Quirks::of(info.name.as_deref().unwrap_or_default());
        }
        let sent = self.sent.iter().position(|(sent, _)| sent == id);
        let sent = sent.and_then(|at| self.sent.remove(at)).map(|(_, sent)| sent);
        self.answered.push_back(id.clone());
        if self.answered.len() > SENT_MAX {
            self.answered.pop_front();
        }
        self.paired(signal, id, sent, &outcome, error)
    }

    /// A response and what it answers. Where the request was lost, its shape tells.
    fn paired(
        &mut self,
        signal: &Signal<'_>,
        id: &RpcId,
        sent: Option<Sent>,
        outcome: &Outcome,
        error: Option<RpcError>,
    ) -> Option<Vec<Sighting>> {
        match sent {
            Some(Sent::Prompt { session }) => {
                Some(self.prompt_answered(signal, &session, id, outcome, error))
            }
            Some(Sent::Load { session, cwd }) => {
                let quirks = self.quirks;
                Some(self.with(signal, &session, |session, out| {
                    session.loaded(out.at(), quirks);
                    if error.is_none() {
                        session.begin(cwd.as_deref(), outcome, out);
                    }
                }))
            }
            Some(Sent::SetMode { session, mode }) if error.is_none() => {
                Some(self.with(signal, &session, |_, out| {
                    out.tell(Fact::ModeChanged { mode: mode.into() });
                }))
            }
            Some(Sent::Close { session }) if error.is_none() => {
                Some(self.with(signal, &session, |_, out| {
                    out.tell(Fact::SessionEnded { process: None, exit_code: None });
                }))
            }
            Some(Sent::SetMode { .. } | Sent::Close { .. }) => Some(Vec::new()),
            Some(Sent::New { cwd }) => Some(self.begun(signal, cwd.as_deref(), outcome)),
            Some(Sent::Other) | None => Some(self.unpaired(signal, id, outcome)),
        }
    }

    fn begun(
        &mut self,
        signal: &Signal<'_>,
        cwd: Option<&str>,
        outcome: &Outcome,
    ) -> Vec<Sighting> {
        let Some(session) = outcome.session_id.as_deref().map(Arc::<str>::from) else {
            return Vec::new();
        };
        self.with(signal, &session, |session, out| session.begin(cwd, outcome, out))
    }

    fn unpaired(&mut self, signal: &Signal<'_>, id: &RpcId, outcome: &Outcome) -> Vec<Sighting> {
        if outcome.protocol_version.is_some() {
            self.begin_connection();
            return Vec::new();
        }
        if outcome.stop_reason.is_some()
            && let Some(session) = self.current.clone()
        {
            return self.prompt_answered(signal, &session, id, outcome, None);
        }
        let mut sightings = self.begun(signal, None, outcome);
        for listed in outcome.sessions.iter().flatten() {
            // A list is of the past: it names sessions that are known, and begins none.
            let known = listed.session_id.as_deref().filter(|id| self.sessions.contains_key(*id));
            let title = listed.title.as_deref().and_then(excerpt::about);
            if let (Some(session), Some(title)) = (known.map(Arc::<str>::from), title) {
                sightings.extend(self.with(signal, &session, |_, out| {
                    out.tell(Fact::TitleKnown { title, custom: false });
                }));
            }
        }
        sightings
    }

    fn prompt_answered(
        &mut self,
        signal: &Signal<'_>,
        session: &Arc<str>,
        id: &RpcId,
        outcome: &Outcome,
        error: Option<RpcError>,
    ) -> Vec<Sighting> {
        self.with(signal, session, |session, out| {
            let ending = match (error, outcome.stop_reason.as_deref()) {
                (Some(error), _) if failure::is_cancelled(&error) => Fact::Interrupted,
                (Some(error), _) => Fact::TurnFailed { failure: failure::of_error(&error) },
                (None, Some(reason)) => session.turn.end(Some(reason)),
                // Version 2 only takes the prompt; a state update ends the turn.
                (None, None) => return,
            };
            if session.turn.answered(id) {
                session.end_turn(ending, out);
            }
        })
    }

    fn process(&mut self, signal: &Signal<'_>) -> Vec<Sighting> {
        let Some(seen) = from_bytes::<ProcessSeen>(signal.payload) else {
            return self.unknown(signal, None);
        };
        let (Some(session), Some(true)) = (seen.session_id.map(Arc::<str>::from), seen.exited)
        else {
            return Vec::new();
        };
        self.with(signal, &session, |session, out| {
            session.turn.close(out.at());
            session.requests.clear();
            out.tell(Fact::SessionEnded { process: None, exit_code: seen.exit_code });
        })
    }

    /// Nobody understood it: kept for the session it names, counted where it names none.
    fn unknown(&mut self, signal: &Signal<'_>, session: Option<&Value>) -> Vec<Sighting> {
        let named = session.and_then(Value::as_str).filter(|id| self.sessions.contains_key(*id));
        let Some(session) = named.map(Arc::<str>::from) else {
            self.unrecognised = self.unrecognised.saturating_add(1);
            return Vec::new();
        };
        let text = excerpt::unrecognised(signal.payload);
        self.with(signal, &session, |_, out| out.tell(Fact::Unrecognised { text }))
    }

    fn remember(&mut self, id: RpcId, sent: Sent) {
        self.sent.push_back((id, sent));
        if self.sent.len() > SENT_MAX {
            self.sent.pop_front();
        }
    }

    fn session(&mut self, id: &Arc<str>, at: Timestamp) -> &mut Session {
        if !self.sessions.contains_key(id) && self.sessions.len() == SESSIONS_MAX {
            let oldest = self.sessions.values().min_by_key(|session| session.heard_at);
            if let Some(oldest) = oldest.map(|session| session.id.clone()) {
                self.sessions.remove(&oldest);
            }
        }
        let session = self.sessions.entry(id.clone()).or_insert_with(|| Session::new(id));
        session.heard_at = at;
        session
    }

    fn with(
        &mut self,
        signal: &Signal<'_>,
        session: &Arc<str>,
        tell: impl FnOnce(&mut Session, &mut Outbox),
    ) -> Vec<Sighting> {
        let mut out = self.outbox(signal, session);
        tell(self.session(session, signal.at), &mut out);
        out.into_sightings()
    }

    fn with_all(
        &mut self,
        signal: &Signal<'_>,
        tell: impl Fn(&mut Session, &mut Outbox),
    ) -> Vec<Sighting> {
        let sessions: Vec<Arc<str>> = self.sessions.keys().cloned().collect();
        sessions.iter().flat_map(|session| self.with(signal, session, &tell)).collect()
    }

    /// Messages of one stream happen in their order, also within a millisecond.
    fn outbox(&mut self, signal: &Signal<'_>, session: &Arc<str>) -> Outbox {
        let seq = match self.clock {
            (at, seq) if at == signal.at => seq.saturating_add(1),
            (_, _) => 0,
        };
        self.clock = (signal.at, seq);
        let seq = if signal.seq == 0 { seq } else { signal.seq };
        Outbox::new(session.clone(), signal.at, seq, signal.channel.source())
    }
}

fn read<T: DeserializeOwned>(value: &Value) -> Option<T> {
    T::deserialize(value).ok()
}

fn from_bytes<T: DeserializeOwned>(payload: &[u8]) -> Option<T> {
    (payload.len() <= PAYLOAD_BYTES_MAX).then(|| serde_json::from_slice(payload).ok())?
}
