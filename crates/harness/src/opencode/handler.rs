//! Signal in, events out: knows the sessions, and whose subagent each of them is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use qd_session::id::{AgentId, ProcessKey};
use qd_session::moment::{Source, Timestamp};
use qd_session::monitor::{Agent, AgentEvent, Fact, Life, Monitor, RequestKind, Stage};

use super::poll::Polled;
use super::session::{Session, WaitKind, Waiting};
use super::wire::{Envelope, Owner};
use crate::process::{ProcessReport, ProcessSighting};
use crate::signal::{Channel, Direction, Sighting, Signal};
use crate::{excerpt, payload};

/// Most sessions that are remembered; the one longest silent goes first.
const SESSIONS_MAX: usize = 512;

/// How deep subagents may delegate further before we stop looking for the top.
const DEPTH_MAX: usize = 8;

/// Most servers whose process is remembered.
const SERVERS_MAX: usize = 64;

#[derive(Debug, Default)]
pub struct Handler {
    sessions: BTreeMap<Arc<str>, Session>,
    /// The server whose signal is being read: its lists say nothing about the others' sessions.
    pub(super) server: Option<Arc<str>>,
    /// The processes of servers that were seen.
    processes: BTreeMap<Option<Arc<str>>, ProcessKey>,
    /// The last request to the server that has no response yet: a response does not say to what.
    pub(super) asked: Option<Polled>,
    unrecognised: u64,
}

/// The facts of one signal, each with the session of the server that it is about.
#[derive(Debug, Default)]
pub struct Told {
    facts: Vec<(Arc<str>, Fact)>,
}

impl Told {
    pub fn push(&mut self, session: &Arc<str>, fact: Fact) {
        self.facts.push((session.clone(), fact));
    }
}

impl Handler {
    pub(super) fn session(&mut self, id: &Arc<str>, at: Timestamp) -> &mut Session {
        if !self.sessions.contains_key(id) && self.sessions.len() >= SESSIONS_MAX {
            let silent = self.sessions.iter().min_by_key(|(_, session)| session.heard);
            if let Some(silent) = silent.map(|(id, _)| id.clone()) {
                self.sessions.remove(&silent);
            }
        }
        let session = self.sessions.entry(id.clone()).or_default();
        session.heard = session.heard.max(at);
        session
    }

    pub(super) fn sessions(&mut self) -> &mut BTreeMap<Arc<str>, Session> {
        &mut self.sessions
    }

    /// The session on the board, and which of its agents the given one is.
    fn place(&self, id: &Arc<str>) -> (Arc<str>, AgentId) {
        let mut top = id;
        for _ in 0..DEPTH_MAX {
            match self.sessions.get(top).and_then(|session| session.parent.as_ref()) {
                Some(parent) => top = parent,
                None => break,
            }
        }
        let agent = if top == id { AgentId::MAIN } else { AgentId::sub(id.clone()) };
        (top.clone(), agent)
    }

    fn sightings(&self, told: Told, at: Timestamp, seq: u32, source: Source) -> Vec<Sighting> {
        let mut sightings = Vec::with_capacity(told.facts.len());
        for (id, fact) in told.facts {
            let (session, agent) = self.place(&id);
            if !agent.is_main() && is_of_the_board(&fact) {
                continue;
            }
            sightings
                .push(Sighting { session, event: AgentEvent { at, seq, source, agent, fact } });
        }
        sightings
    }

    /// `None` if nobody knows what it is.
    fn understand(&mut self, signal: &Signal<'_>) -> Option<Told> {
        let mut told = Told::default();
        match (signal.channel, signal.direction) {
            (Channel::Events, Direction::ToAgent) => {
                let request: Envelope = payload::read(signal.payload)?;
                self.requested(signal.at, request, &mut told)?;
            }
            (Channel::Events, Direction::FromAgent) => {
                let message: Envelope = payload::read(signal.payload)?;
                match message.r#type.is_some() {
                    true => self.event(signal.at, message, &mut told)?,
                    false => self.responded(signal.at, message, &mut told)?,
                }
            }
            (Channel::Process, _) => {
                let report: ProcessReport = payload::read(signal.payload)?;
                self.process(&report, &mut told)?;
            }
            _ => return None,
        }
        Some(told)
    }

    /// What is seen of a server's process; its end is the end of every session in it.
    fn process(&mut self, report: &ProcessReport, told: &mut Told) -> Option<()> {
        let ended = || Fact::SessionEnded { process: None, exit_code: report.exit_code };
        let session = report.session_id.as_deref().map(Arc::<str>::from);
        match (report.sighting()?, session) {
            (ProcessSighting::Exited(_), Some(id)) => told.push(&id, ended()),
            (ProcessSighting::Exited(_), None) => {
                self.processes.remove(&self.server);
                let tops = self.sessions.iter().filter(|(_, session)| {
                    session.parent.is_none() && session.server == self.server
                });
                tops.for_each(|(id, _)| told.push(id, ended()));
            }
            (ProcessSighting::Seen(process), Some(id)) => {
                told.push(&id, Fact::ProcessSeen { process });
            }
            (ProcessSighting::Seen(process), None) => self.server_seen(process),
            (ProcessSighting::Missing, _) => return None,
        }
        Some(())
    }

    /// What was open in that process before a restart of ours is open in this server.
    fn server_seen(&mut self, process: ProcessKey) {
        for session in self.sessions.values_mut() {
            if session.server.is_none() && session.process.as_ref() == Some(&process) {
                session.server.clone_from(&self.server);
            }
        }
        if self.processes.len() < SERVERS_MAX {
            self.processes.insert(self.server.clone(), process);
        }
    }

    /// Whoever was heard of for the first time is carried by its server's process.
    fn tell_processes(&mut self, told: &mut Told) {
        let heard: BTreeSet<Arc<str>> = told.facts.iter().map(|(id, _)| id.clone()).collect();
        for id in heard {
            let Some(session) = self.sessions.get_mut(&id) else { continue };
            let process = self.processes.get(&session.server);
            if let Some(process) =
                process.filter(|process| session.process.as_ref() != Some(process))
            {
                session.process = Some(process.clone());
                told.push(&id, Fact::ProcessSeen { process: process.clone() });
            }
        }
    }
}

impl crate::signal::Handler for Handler {
    fn unrecognised(&self) -> u64 {
        self.unrecognised
    }

    fn handle_signal(&mut self, signal: &Signal<'_>) -> Vec<Sighting> {
        if self.server.as_deref() != signal.file {
            self.server = signal.file.map(Arc::from);
        }
        let mut told = self.understand(signal).unwrap_or_else(|| {
            let mut told = Told::default();
            let owner: Owner = payload::read(signal.payload).unwrap_or_default();
            match owner.properties.session_id.filter(|id| self.sessions.contains_key(&**id)) {
                Some(id) => {
                    let text = excerpt::unrecognised(signal.payload);
                    told.push(&id.into(), Fact::Unrecognised { text });
                }
                None => self.unrecognised += 1,
            }
            told
        });
        self.tell_processes(&mut told);
        self.sightings(told, signal.at, signal.seq, signal.channel.source())
    }

    /// What waits is asked for again when its server is found, and closed if it is not listed.
    fn recall(&mut self, session: &Arc<str>, known: &Monitor) {
        if matches!(known.life(), Life::Ended { .. }) {
            return;
        }
        let process = known.carriers().next().cloned();
        let working = |agent: &Agent| agent.is_working(known.last_end());
        let top = self.session(session, known.last_signal());
        top.process.clone_from(&process);
        top.busy = working(known.main_agent());
        for agent in known.subagents() {
            let child = self.session(&agent.id.as_str().into(), known.last_signal());
            child.parent = Some(session.clone());
            child.process.clone_from(&process);
            child.busy = working(agent);
        }
        for open in known.open_requests() {
            let id =
                if open.agent.is_main() { session.clone() } else { open.agent.as_str().into() };
            let kind = match open.kind {
                RequestKind::Permission => WaitKind::Permission,
                RequestKind::Question => WaitKind::Question,
                RequestKind::Plan => WaitKind::Plan,
            };
            let (ask, asked) = (open.ask.clone(), open.asked.at);
            let due = (open.stage != Stage::Waiting).then_some(asked);
            let waiting = Waiting { kind, ask, asked, due };
            self.session(&id, known.last_signal()).ask(open.id.clone(), waiting);
        }
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        self.sessions.values().filter_map(Session::next_timeout).min()
    }

    fn handle_timeout(&mut self, now: Timestamp) -> Vec<Sighting> {
        let mut told = Told::default();
        for (id, session) in &mut self.sessions {
            let facts = session.handle_timeout(now);
            facts.into_iter().for_each(|fact| told.push(id, fact));
        }
        self.sightings(told, now, 0, Source::Driver)
    }
}

/// What belongs to the card and not to an agent: a subagent's is not the session's.
fn is_of_the_board(fact: &Fact) -> bool {
    matches!(
        fact,
        Fact::TitleKnown { .. }
            | Fact::PlaceKnown { .. }
            | Fact::ModeChanged { .. }
            | Fact::UsageReported { .. }
            | Fact::SessionStarted { .. }
            | Fact::SessionEnded { .. }
            | Fact::ProcessSeen { .. }
    )
}
