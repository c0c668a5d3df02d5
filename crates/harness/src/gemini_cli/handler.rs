//! Signal in, events out: each source is read, and what it tells is given to its session.

use std::collections::BTreeMap;
use std::sync::Arc;

use qd_session::id::AgentId;
use qd_session::moment::Timestamp;
use qd_session::monitor::{Fact, Place};
use serde::Deserialize;
use serde_json::Value;

use super::session::Session;
use super::transcript::ChatFile;
use super::wire::{ChatLine, FileRecord, Hook, StreamLine};
use crate::otlp::{self, Record};
use crate::outbox::Outbox;
use crate::process::ProcessReport;
use crate::signal::{Channel, Sighting, Signal};
use crate::{excerpt, payload, rfc3339};

/// Most sessions remembered; the one not heard of for longest goes first. What is forgotten is put
/// together again from the next signals.
const SESSIONS_MAX: usize = 256;

/// Most chat files whose session is remembered.
const FILES_MAX: usize = 512;

#[derive(Debug, Default)]
pub struct Handler {
    sessions: BTreeMap<Arc<str>, Session>,
    files: BTreeMap<String, ChatFile>,
    /// The session whose stream we read: only its first line names it.
    streaming: Option<Arc<str>>,
    unrecognised: u64,
}

impl crate::signal::Handler for Handler {
    fn unrecognised(&self) -> u64 {
        self.unrecognised
    }

    fn handle_signal(&mut self, signal: &Signal<'_>) -> Vec<Sighting> {
        let read = match signal.channel {
            Channel::Hook => self.hook(signal),
            Channel::Otel => self.telemetry(signal),
            Channel::Transcript => self.transcript(signal),
            Channel::Stream => self.stream(signal),
            Channel::Process => self.process(signal),
            Channel::Notify
            | Channel::Registry
            | Channel::Exec
            | Channel::AppServer
            | Channel::Acp
            | Channel::Events => None,
        };
        read.unwrap_or_else(|| {
            self.unrecognised = self.unrecognised.saturating_add(1);
            Vec::new()
        })
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        self.sessions.values().filter_map(|session| session.agenda.next_due()).min()
    }

    fn handle_timeout(&mut self, now: Timestamp) -> Vec<Sighting> {
        self.sessions.values_mut().flat_map(|session| session.come_due(now)).collect()
    }
}

impl Handler {
    fn hook(&mut self, signal: &Signal<'_>) -> Option<Vec<Sighting>> {
        let Some(hook) = payload::read::<Hook>(signal.payload) else { return self.misread(signal) };
        let id = hook.session_id.clone()?;
        Some(self.with(signal, signal.at, &id, |session, out| session.hook(&hook, out)))
    }

    fn stream(&mut self, signal: &Signal<'_>) -> Option<Vec<Sighting>> {
        let Some(line) = payload::read::<StreamLine>(signal.payload) else {
            let streaming = self.streaming.clone()?;
            return Some(self.with(signal, signal.at, &streaming, |_, _| false));
        };
        if let Some(id) = &line.session_id {
            self.streaming = Some(id.as_str().into());
        }
        let session = self.streaming.clone().or_else(|| self.only_session())?;
        Some(self.with(signal, signal.at, &session, |session, out| session.stream(&line, out)))
    }

    fn process(&mut self, signal: &Signal<'_>) -> Option<Vec<Sighting>> {
        let report: ProcessReport = payload::read(signal.payload)?;
        let id = report.session_id.as_deref()?;
        Some(self.with(signal, signal.at, id, |session, out| {
            if let Some(seen) = report.sighting() {
                session.take_process(seen, report.exit_code, out);
            }
            true
        }))
    }

    /// One reduced record, or an OTLP body of several.
    fn telemetry(&mut self, signal: &Signal<'_>) -> Option<Vec<Sighting>> {
        let Some(body) = payload::read::<Value>(signal.payload) else {
            return self.misread(signal);
        };
        if body.get("resourceLogs").is_none() {
            let record = FileRecord::deserialize(&body).ok()?;
            return self.record(signal, &Record::plain(&record.attributes));
        }
        let records = otlp::records(&body)?;
        let told = records.iter().filter_map(|record| self.record(signal, record));
        Some(told.flatten().collect())
    }

    fn record(&mut self, signal: &Signal<'_>, record: &Record<'_>) -> Option<Vec<Sighting>> {
        let id = record.text("session.id")?;
        let own = record.text("event.timestamp").and_then(rfc3339::timestamp);
        let at = own.map_or(signal.at, |own| own.min(signal.at));
        Some(self.with(signal, at, id, |session, out| session.record(record, out)))
    }

    fn transcript(&mut self, signal: &Signal<'_>) -> Option<Vec<Sighting>> {
        let key = signal.file.unwrap_or_default().to_owned();
        let line = payload::read::<ChatLine>(signal.payload);
        let mut file = self.files.remove(&key).unwrap_or_default();
        if let Some(line) = &line {
            self.open_file(&mut file, line, signal.file);
        }
        if file.session.is_none() {
            file.session = self.session_of(signal.file);
        }
        let told = match (&line, file.session.clone()) {
            (Some(line), Some(session)) => Some(self.chat_line(signal, &mut file, &session, line)),
            // Half a line, or one that is none.
            (None, Some(session)) => Some(self.with(signal, signal.at, &session, |_, _| false)),
            (_, None) => None,
        };
        if self.files.len() == FILES_MAX {
            self.files.pop_first();
        }
        self.files.insert(key, file);
        told
    }

    /// A header says whose file it is.
    fn open_file(&mut self, file: &mut ChatFile, line: &ChatLine, path: Option<&str>) {
        let Some(id) = line.session_id.as_deref() else { return };
        *file = ChatFile::default();
        if line.kind.as_deref() == Some("subagent") {
            file.agent = AgentId::sub(id);
            // It lies in a folder that is named after its parent.
            file.session = path.and_then(folder_of).map(Into::into).or_else(|| self.only_session());
        } else {
            file.session = Some(id.into());
        }
    }

    fn chat_line(
        &mut self,
        signal: &Signal<'_>,
        file: &mut ChatFile,
        session: &Arc<str>,
        line: &ChatLine,
    ) -> Vec<Sighting> {
        if line.session_id.is_some() {
            let begun =
                line.start_time.as_deref().and_then(rfc3339::timestamp).unwrap_or(signal.at);
            let is_main = file.agent.is_main();
            let path = signal.file.filter(|path| path.starts_with('/'));
            return self.with(signal, begun.min(signal.at), session, |session, out| {
                if is_main {
                    out.tell(Fact::SessionStarted { process: None });
                    // A hook's word for it stays: it may spell the folder differently.
                    if session.place.transcript.is_none() {
                        let transcript = path.map(Arc::from);
                        session.live_in(Place { transcript, ..Place::default() }, out);
                    }
                }
                true
            });
        }
        if let Some(patch) = &line.set {
            return self.with(signal, signal.at, session, |session, out| {
                session.patched(file, patch, out);
                true
            });
        }
        let at = file.time_of(&line.message, signal.at);
        self.with(signal, at, session, |session, out| {
            line.rewind_to.is_some() || session.chat(file, &line.message, out)
        })
    }

    /// The session of a file whose header was not seen: hooks name the file, its name holds the
    /// beginning of the id, or there is only one.
    fn session_of(&self, path: Option<&str>) -> Option<Arc<str>> {
        let Some(path) = path else { return self.only_session() };
        let name = path.rsplit('/').next().unwrap_or(path);
        let short = name.strip_suffix(".jsonl").and_then(|name| name.rsplit('-').next());
        let by_hook = self.sessions.values().find(|session| {
            session.place.transcript.as_deref().is_some_and(|known| known.ends_with(name))
        });
        let by_name = || {
            let short = short.filter(|short| short.len() >= 8)?;
            self.sessions.values().find(|session| session.id.starts_with(short))
        };
        by_hook.or_else(by_name).map(|session| session.id.clone()).or_else(|| self.only_session())
    }

    fn only_session(&self) -> Option<Arc<str>> {
        let mut ids = self.sessions.keys();
        ids.next().filter(|_| ids.next().is_none()).cloned()
    }

    /// Not understood, and so not attributed, unless the bytes still name a session we know.
    fn misread(&mut self, signal: &Signal<'_>) -> Option<Vec<Sighting>> {
        let start = &signal.payload[..signal.payload.len().min(4_096)];
        let text = String::from_utf8_lossy(start);
        let named = self.sessions.keys().find(|id| text.contains(&***id)).cloned()?;
        Some(self.with(signal, signal.at, &named, |_, _| false))
    }

    /// Lets a session tell; what it does not know is kept as such.
    fn with(
        &mut self,
        signal: &Signal<'_>,
        at: Timestamp,
        id: &str,
        tell: impl FnOnce(&mut Session, &mut Outbox) -> bool,
    ) -> Vec<Sighting> {
        let session = self.session(id, signal.at);
        let source = signal.channel.source();
        let arrived = Outbox::new(session.id.clone(), signal.at, signal.seq, source);
        let mut out = arrived.at_time(at);
        if !tell(session, &mut out) {
            out.tell(Fact::Unrecognised { text: excerpt::unrecognised(signal.payload) });
        }
        out.into_sightings()
    }

    fn session(&mut self, id: &str, at: Timestamp) -> &mut Session {
        if !self.sessions.contains_key(id) && self.sessions.len() == SESSIONS_MAX {
            let oldest = self.sessions.values().min_by_key(|session| session.heard_at);
            if let Some(oldest) = oldest.map(|session| session.id.clone()) {
                self.sessions.remove(&oldest);
            }
        }
        let session = self.sessions.entry(id.into()).or_insert_with(|| Session::new(id));
        session.heard_at = session.heard_at.max(at);
        session
    }
}

/// The folder right above a file.
fn folder_of(path: &str) -> Option<&str> {
    let folder = path.rsplit('/').nth(1)?;
    (folder != "chats" && !folder.is_empty()).then_some(folder)
}
