//! Signal in, events out: finds the stream a line belongs to and gives its facts their time.

use std::collections::BTreeMap;
use std::sync::Arc;

use qd_session::id::AgentId;
use qd_session::moment::{Source, Timestamp};
use qd_session::monitor::{AgentEvent, Fact};

use super::stream::{Facts, Stream};
use super::wire::{is_deadly, parse};
use crate::process::ProcessReport;
use crate::signal::{Channel, Direction, Sighting, Signal};
use crate::{excerpt, payload};

/// Most streams that are followed at once; the one longest silent goes first.
const STREAMS_MAX: usize = 64;

/// The name of a session whose client never tells one, where nobody named its stream either.
const UNNAMED: &str = "stream";

#[derive(Debug, Default)]
pub struct Handler {
    /// By the name of the stream. One process has one stream.
    streams: BTreeMap<Arc<str>, Followed>,
    unrecognised: u64,
}

#[derive(Debug, Default)]
struct Followed {
    stream: Stream,
    /// Decided when the first fact goes out, and kept: a session does not change its name.
    session: Option<Arc<str>>,
    heard: Timestamp,
}

impl Handler {
    fn followed(&mut self, name: &str, at: Timestamp) -> &mut Followed {
        if !self.streams.contains_key(name) && self.streams.len() >= STREAMS_MAX {
            let silent = self.streams.iter().min_by_key(|(_, followed)| followed.heard);
            if let Some(silent) = silent.map(|(name, _)| name.clone()) {
                self.streams.remove(&silent);
            }
        }
        let followed = self.streams.entry(name.into()).or_default();
        followed.heard = followed.heard.max(at);
        followed
    }
}

impl crate::signal::Handler for Handler {
    fn unrecognised(&self) -> u64 {
        self.unrecognised
    }

    fn handle_signal(&mut self, signal: &Signal<'_>) -> Vec<Sighting> {
        let name = signal.file.unwrap_or(UNNAMED);
        let followed = self.followed(name, signal.at);
        match followed.facts(signal) {
            Some(facts) => followed.sightings(name, signal.at, signal.seq, signal.channel, facts),
            None if followed.session.is_some() => {
                let text = excerpt::unrecognised(signal.payload);
                let facts = vec![(AgentId::MAIN, Fact::Unrecognised { text })];
                followed.sightings(name, signal.at, signal.seq, signal.channel, facts)
            }
            None => {
                self.unrecognised += 1;
                Vec::new()
            }
        }
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        self.streams.values().filter_map(|followed| followed.stream.next_timeout()).min()
    }

    fn handle_timeout(&mut self, now: Timestamp) -> Vec<Sighting> {
        let mut sightings = Vec::new();
        for (name, followed) in &mut self.streams {
            let facts = followed.stream.handle_timeout(now);
            sightings.extend(followed.sightings(name, now, 0, Channel::Stream, facts));
        }
        sightings
    }
}

impl Followed {
    fn facts(&mut self, signal: &Signal<'_>) -> Option<Facts> {
        if signal.payload.len() > payload::PAYLOAD_BYTES_MAX {
            return None;
        }
        match (signal.channel, signal.direction) {
            (Channel::Stream, Direction::FromAgent) => {
                self.stream.hear(signal.at, parse(signal.payload)?)
            }
            (Channel::Stream, Direction::ToAgent) if is_deadly(signal.payload) => {
                Some(self.stream.killed())
            }
            (Channel::Stream, Direction::ToAgent) => self.stream.told(parse(signal.payload)?),
            (Channel::Process, _) => {
                let report: ProcessReport = payload::read(signal.payload)?;
                report.has_exited().then(|| match self.session {
                    Some(_) => self.stream.exited(report.exit_code),
                    // A process that has told nothing leaves nothing.
                    None => Facts::new(),
                })
            }
            _ => None,
        }
    }

    fn sightings(
        &mut self,
        name: &str,
        at: Timestamp,
        seq: u32,
        channel: Channel,
        facts: Facts,
    ) -> Vec<Sighting> {
        if facts.is_empty() {
            return Vec::new();
        }
        let named = self.stream.id.clone().unwrap_or_else(|| name.into());
        let session = self.session.get_or_insert(named);
        let source: Source = channel.source();
        facts
            .into_iter()
            .map(|(agent, fact)| Sighting {
                session: session.clone(),
                event: AgentEvent { at, seq, source, agent, fact },
            })
            .collect()
    }
}
