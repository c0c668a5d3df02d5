//! Responses: what became of a request, of either side.

use std::sync::Arc;

use qd_session::monitor::Fact;
use serde_json::Value;

use super::failure;
use super::handler::{Handler, read};
use super::quirks::Quirks;
use super::rpc::{RpcId, Sent};
use super::wire::{Answer, Outcome, RpcError};
use crate::excerpt;
use crate::signal::{Sighting, Signal};

impl Handler {
    pub(super) fn client_answered(
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

    pub(super) fn agent_answered(
        &mut self,
        signal: &Signal<'_>,
        id: &RpcId,
        result: Option<Value>,
        error: Option<RpcError>,
    ) -> Option<Vec<Sighting>> {
        if self.ledger.is_answered(id) {
            return Some(Vec::new());
        }
        let outcome: Outcome = match result {
            Some(result) => read(&result)?,
            None => Outcome::default(),
        };
        if let Some(info) = &outcome.agent_info {
            self.quirks = Quirks::of(info.name.as_deref().unwrap_or_default());
            self.version = info.version.as_deref().map(excerpt::label);
        }
        let sent = self.ledger.answer(id);
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
                let (quirks, version) = (self.quirks, self.version.clone());
                Some(self.with(signal, &session, |session, out| {
                    session.loaded(out.at(), quirks);
                    if error.is_none() {
                        session.begin(cwd.as_deref(), version, outcome, out);
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
        let version = self.version.clone();
        self.with(signal, &session, |session, out| session.begin(cwd, version, outcome, out))
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
}
