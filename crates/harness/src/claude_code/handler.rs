//! Signal in, events out: which session a signal is about, and what is due when nothing comes.
//!
//! Invariant: what is not understood changes nothing. It is noted with its session where that is
//! known, and counted where it is not; it never makes a session.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use qd_session::id::AgentId;
use qd_session::moment::Timestamp;
use qd_session::monitor::{Fact, Monitor};
use serde_json::Value;

use super::echo::Echoes;
use super::notes::Notes;
use super::session::{Leaving, Prompt, Session};
use super::stream::{self, Stream};
use super::terminals::{Terminal, Terminals, Whose};
use super::{control, hooks, registry, telemetry, transcript, wire};
use crate::excerpt::{head, unrecognised};
use crate::process::{ProcessReport, ProcessSighting, process_key};
use crate::signal::{Channel, Direction, Sighting, Signal};
use crate::{otlp, payload};

/// Lines of a conversation; the others tell about it.
const SPOKEN: [&str; 3] = ["user", "assistant", "system"];

/// Most sessions remembered. Nobody runs more at once; a forgotten one loses only what was in
/// the middle of being joined. The one not heard of for longest goes first.
const SESSIONS_MAX: usize = 256;

/// Most streams remembered: the sessions we drive.
const STREAMS_MAX: usize = 64;

/// Most processes whose session is remembered, to notice that one has gone over to another.
const PIDS_MAX: usize = 256;

/// Most stopped background sessions remembered.
const STOPPED_MAX: usize = 256;

/// Longest id that is believed to be one.
const ID_BYTES_MAX: usize = 256;

#[derive(Debug, Default)]
pub struct Handler {
    sessions: BTreeMap<Arc<str>, Terminals>,
    streams: BTreeMap<Arc<str>, Stream>,
    pids: BTreeMap<u64, Arc<str>>,
    /// Background sessions that their supervisor has stopped: a lost worker is not replaced.
    stopped: BTreeSet<Arc<str>>,
    echoes: Echoes,
    unrecognised: u64,
}

impl crate::signal::Handler for Handler {
    fn unrecognised(&self) -> u64 {
        self.unrecognised
    }

    fn handle_signal(&mut self, signal: &Signal<'_>) -> Vec<Sighting> {
        if self.echoes.is_echo(signal) {
            return Vec::new();
        }
        let mut sightings = match signal.channel {
            Channel::Hook => self.hook(signal),
            Channel::Transcript => self.transcript(signal),
            Channel::Registry => self.registry(signal),
            Channel::Otel => self.telemetry(signal),
            Channel::Stream => self.stream(signal),
            Channel::Process => self.process(signal),
            Channel::Notify
            | Channel::Exec
            | Channel::AppServer
            | Channel::Acp
            | Channel::Events => self.not_understood(signal, None),
        };
        self.forget_oldest(&mut sightings);
        sightings
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        self.sessions.values().filter_map(Terminals::next_due).min()
    }

    fn recall(&mut self, session: &Arc<str>, known: &Monitor) {
        if known.terminals().next().is_some() || !known.working_subagents().is_empty() {
            self.sessions.entry(session.clone()).or_default().recall(known);
        }
    }

    fn handle_timeout(&mut self, now: Timestamp) -> Vec<Sighting> {
        self.sessions
            .values_mut()
            .flat_map(Terminals::all)
            .flat_map(|session| session.due(now))
            .collect()
    }
}

impl Handler {
    fn hook(&mut self, signal: &Signal<'_>) -> Vec<Sighting> {
        let Some(hook) = payload::read::<wire::Hook>(signal.payload) else {
            return self.not_understood(signal, None);
        };
        let Some(id) = id(hook.session_id.as_deref()) else {
            return self.not_understood(signal, None);
        };
        if hook.is_of_another_client() {
            // There is no such session of Claude Code.
            return self.not_understood(signal, None);
        }
        let mut notes = Notes::of(signal, id.clone());
        if hook.hook_event_name.as_deref() == Some("SessionEnd")
            && let Some(known) = self.sessions.get_mut(&id)
        {
            // It was no loss: its process has said goodbye.
            known.all().for_each(|session| session.release_end(&mut notes));
        }
        let opens =
            matches!(hook.hook_event_name.as_deref(), Some("SessionStart" | "UserPromptSubmit"));
        let whose = match signal.pid() {
            Some(pid) if opens => Whose::Opened(pid),
            Some(pid) => Whose::Process(pid),
            None => Whose::Prompt(hook.prompt_id.as_deref()),
        };
        let understood = self.with_terminal(signal, &mut notes, whose, |terminal, notes, first| {
            terminal.prompted(hook.prompt_id.as_deref());
            terminal.session.hooks_known |= signal.pid().is_some();
            hooks::take(&mut terminal.session, notes, &hook, first)
        });
        match understood {
            true => notes.into_sightings(),
            false => self.not_understood(signal, hook.session_id.as_deref()),
        }
    }

    fn transcript(&mut self, signal: &Signal<'_>) -> Vec<Sighting> {
        let Some(line) = payload::read::<wire::Line<'_>>(signal.payload) else {
            return self.not_understood(signal, None);
        };
        let Some(id) = id(line.session_id.as_deref()) else {
            // Checkpoints of files name no session, and need none.
            let silent = line.kind.as_deref().is_some_and(|kind| kind.starts_with("file-history"));
            return if silent { Vec::new() } else { self.not_understood(signal, None) };
        };
        let happened = transcript::happened(&line);
        let known = self.sessions.get(&id).and_then(Terminals::untimed_line);
        let notes = Notes::of(signal, id.clone());
        let mut notes = match (happened, known) {
            (None, Some((at, nth))) => notes.after(at, nth),
            // Titles and modes before the first line with a time. The file may be a copy, so its
            // own time says nothing of when they were written.
            (None, _) if !line.kind.as_deref().is_some_and(|kind| SPOKEN.contains(&kind)) => {
                notes.after(Timestamp::LONG_AGO, 0)
            }
            (happened, _) => notes.stamped(happened),
        };
        let whose = Whose::Line(&line);
        let understood = self.with_terminal(signal, &mut notes, whose, |terminal, notes, _| {
            transcript::take(&mut terminal.session, notes, &line, signal.file)
        });
        if let Some(known) = self.sessions.get_mut(&id) {
            known.note_line_at(happened.map(|happened| happened.min(signal.at)));
        }
        match understood {
            true => notes.into_sightings(),
            false => self.not_understood(signal, line.session_id.as_deref()),
        }
    }

    fn registry(&mut self, signal: &Signal<'_>) -> Vec<Sighting> {
        let file = payload::read::<wire::Registry>(signal.payload);
        let Some(file) = file else { return self.not_understood(signal, None) };
        if file.pid.is_none() && signal.file.is_some_and(is_job) {
            return self.job(signal);
        }
        let Some(id) = id(file.session_id.as_deref()) else {
            return self.not_understood(signal, None);
        };
        if file.is_unassigned() {
            return Vec::new();
        }
        let mut notes = Notes::of(signal, id.clone()).stamped(registry::changed_at(&file));
        let whose = file.pid.map_or(Whose::Prompt(None), Whose::Process);
        self.with_terminal(signal, &mut notes, whose, |terminal, notes, _| {
            terminal.key = file.pid.map(|pid| process_key(pid, file.proc_start.as_ref()));
            terminal.is_job |= file.job_id.is_some();
            registry::take(&mut terminal.session, notes, &file);
            true
        });
        let mut sightings = notes.into_sightings();
        if let Some(left) = file.pid.and_then(|pid| self.moved_on(pid, &id)) {
            // `/clear` and `/resume` end a session's id, not its process.
            let mut notes = Notes::of(signal, left.clone()).stamped(registry::changed_at(&file));
            if let Some(terminal) = self
                .sessions
                .get_mut(&left)
                .zip(file.pid)
                .and_then(|(known, pid)| known.open_with(pid))
            {
                terminal.session.leaving = Some(Leaving::default());
            }
            if let Some(terminals) = self.sessions.get_mut(&left) {
                terminals.let_go(&mut notes);
            }
            sightings.extend(notes.into_sightings());
        }
        sightings
    }

    /// A background session whose worker was lost is over when its supervisor says so, and not
    /// while that one says that another is on its way. What it says makes no session.
    fn job(&mut self, signal: &Signal<'_>) -> Vec<Sighting> {
        let job = payload::read::<wire::Job>(signal.payload).unwrap_or_default();
        let Some(id) = id(job.session_id.as_deref()) else { return Vec::new() };
        let is_stopped = job.state.as_deref() == Some("stopped");
        match is_stopped {
            true => {
                while self.stopped.len() >= STOPPED_MAX && !self.stopped.contains(&id) {
                    self.stopped.pop_first();
                }
                self.stopped.insert(id.clone())
            }
            false => self.stopped.remove(&id),
        };
        let mut notes = Notes::of(signal, id.clone());
        let sessions = self.sessions.get_mut(&id).into_iter().flat_map(Terminals::all);
        for session in sessions {
            match job.state.as_deref() {
                Some("stopped") => session.release_end(&mut notes),
                Some("crashed" | "resuming") => session.worker_announced(notes.now),
                Some(_) | None => {}
            }
        }
        notes.into_sightings()
    }

    /// The session that process had before, if it has another now.
    fn moved_on(&mut self, pid: u64, id: &Arc<str>) -> Option<Arc<str>> {
        while self.pids.len() >= PIDS_MAX && !self.pids.contains_key(&pid) {
            self.pids.pop_first();
        }
        self.pids.insert(pid, id.clone()).filter(|before| before != id)
    }

    fn telemetry(&mut self, signal: &Signal<'_>) -> Vec<Sighting> {
        let body = payload::read::<Value>(signal.payload);
        let Some(records) = body.as_ref().and_then(otlp::records) else {
            return self.not_understood(signal, None);
        };
        let mut sightings = Vec::new();
        for record in records {
            let Some(id) = id(record.text("session.id")) else { continue };
            let mut notes = Notes::of(signal, id).stamped(telemetry::happened(&record));
            let whose = Whose::Prompt(record.text("prompt.id"));
            self.with_terminal(signal, &mut notes, whose, |terminal, notes, _| {
                telemetry::take(&mut terminal.session, notes, &record)
            });
            sightings.extend(notes.into_sightings());
            // One at a time: a body that names thousands would else be searched once for each.
            self.forget_oldest(&mut sightings);
        }
        sightings
    }

    fn stream(&mut self, signal: &Signal<'_>) -> Vec<Sighting> {
        let Some(line) = payload::read::<wire::StreamLine<'_>>(signal.payload) else {
            return self.not_understood(signal, None);
        };
        let key: Arc<str> = head(signal.file.unwrap_or_default(), ID_BYTES_MAX).into();
        while self.streams.len() >= STREAMS_MAX && !self.streams.contains_key(&key) {
            self.streams.pop_first();
        }
        let mut stream = self.streams.remove(&key).unwrap_or_default();
        let sightings = self.stream_line(signal, &mut stream, &line);
        self.streams.insert(key, stream);
        sightings
    }

    fn stream_line(
        &mut self,
        signal: &Signal<'_>,
        stream: &mut Stream,
        line: &wire::StreamLine<'_>,
    ) -> Vec<Sighting> {
        if let Some(id) = id(line.session_id.as_deref()) {
            stream.session = Some(id);
        }
        let to_agent = signal.direction == Direction::ToAgent;
        let prompt = to_agent && line.kind.as_deref() == Some("user");
        let Some(id) = stream.session.clone() else {
            if prompt {
                let text = stream::text_of(line).unwrap_or_default();
                stream.early_prompt = Some((signal.at, head(&text, 2 << 10).into()));
            }
            return Vec::new();
        };
        let mut notes = Notes::of(signal, id.clone());
        let whose = Whose::Prompt(None);
        let understood = self.with_terminal(signal, &mut notes, whose, |terminal, notes, _| {
            let session = &mut terminal.session;
            session.stream = true;
            early_prompt(stream, session, notes);
            if prompt {
                stream::prompt(stream, session, notes, stream::text_of(line).as_deref());
                return true;
            }
            control::take(session, notes, line, signal.direction)
                || (!to_agent && stream::take(stream, session, notes, line))
        });
        match understood {
            true => notes.into_sightings(),
            false => self.not_understood(signal, Some(&id)),
        }
    }

    fn process(&mut self, signal: &Signal<'_>) -> Vec<Sighting> {
        let report = payload::read::<ProcessReport>(signal.payload);
        let Some((report, seen)) = report.and_then(|report| {
            let seen = report.sighting()?;
            Some((report, seen))
        }) else {
            return self.not_understood(signal, None);
        };
        let by_pid = report.pid.and_then(|pid| self.pids.get(&pid).cloned());
        let Some(id) = id(report.session_id.as_deref()).or(by_pid) else {
            return self.not_understood(signal, None);
        };
        let mut notes = Notes::of(signal, id.clone());
        let exited = matches!(seen, ProcessSighting::Exited(_));
        let known = self.sessions.get_mut(&id);
        let is_another = exited
            && report
                .pid
                .zip(known)
                .is_some_and(|(pid, known)| known.any_known() && known.open_with(pid).is_none());
        if is_another {
            // Whoever it was, others are known to have the session open, or it left before.
            if let ProcessSighting::Exited(Some(process)) = seen {
                notes.tell_main(Fact::ProcessGone { process });
            }
            return notes.into_sightings();
        }
        let whose = match report.pid {
            Some(pid) if !matches!(seen, ProcessSighting::Missing) => Whose::Process(pid),
            Some(_) | None => Whose::Prompt(None),
        };
        // Whoever takes its file away leaves for good; a lost worker's stays.
        let is_lost = report.removed != Some(true) && !self.stopped.contains(&id);
        self.with_terminal(signal, &mut notes, whose, |terminal, notes, _| {
            process(terminal, notes, seen, report.exit_code, is_lost);
            true
        });
        notes.into_sightings()
    }

    /// Lets `take` at the process that the signal is of, in a new session if need be, and keeps
    /// that one only if it was understood. `take` is told whether the session is new.
    fn with_terminal(
        &mut self,
        signal: &Signal<'_>,
        notes: &mut Notes,
        whose: Whose<'_>,
        take: impl FnOnce(&mut Terminal, &mut Notes, bool) -> bool,
    ) -> bool {
        let known = self.sessions.remove(&notes.session());
        let first = known.is_none();
        let mut terminals = known.unwrap_or_default();
        let understood = match terminals.of(signal.at, whose) {
            Some(terminal) => {
                notes.lead = terminal.lead.clone();
                let understood = take(terminal, notes, first);
                terminal.session.heard_at = terminal.session.heard_at.max(signal.at);
                understood
            }
            // It is news of a process that has left, or nobody's: it changes nothing.
            None => true,
        };
        terminals.let_go(notes);
        if understood || !first {
            self.sessions.insert(notes.session(), terminals);
        }
        understood
    }

    fn not_understood(&mut self, signal: &Signal<'_>, session: Option<&str>) -> Vec<Sighting> {
        let named = match session {
            Some(session) => Some(session.to_owned()),
            None => payload::read::<wire::Named>(signal.payload)
                .and_then(|named| named.session_id.or(named.session_id_of_file)),
        };
        let Some(id) = id(named.as_deref()).filter(|id| self.sessions.contains_key(id)) else {
            self.unrecognised = self.unrecognised.saturating_add(1);
            return Vec::new();
        };
        let text = unrecognised(signal.payload);
        let mut notes = Notes::of(signal, id);
        notes.tell(&AgentId::MAIN, Fact::Unrecognised { text });
        notes.into_sightings()
    }

    fn forget_oldest(&mut self, sightings: &mut Vec<Sighting>) {
        while self.sessions.len() > SESSIONS_MAX {
            let oldest = self.sessions.iter().min_by_key(|(_, known)| known.heard_at());
            let Some(id) = oldest.map(|(id, _)| id.clone()) else { return };
            let forgotten = self.sessions.remove(&id).into_iter();
            let sessions = forgotten.flat_map(Terminals::into_sessions);
            sightings.extend(sessions.flat_map(Session::last_words));
        }
    }
}

/// What a watcher saw of a session's process.
fn process(
    terminal: &mut Terminal,
    notes: &mut Notes,
    seen: ProcessSighting,
    exit_code: Option<i32>,
    is_lost: bool,
) {
    match seen {
        ProcessSighting::Seen(process) => {
            terminal.key.get_or_insert_with(|| process.clone());
            notes.tell_main(Fact::ProcessSeen { process });
        }
        ProcessSighting::Missing => notes.tell_main(Fact::ProcessMissing),
        ProcessSighting::Exited(process) => {
            let session = &mut terminal.session;
            let was_last = session.holders.exited(notes.now, process.as_ref());
            let leaves = was_last || (session.process_known && process.is_some());
            if let Some(process) = process {
                notes.tell_main(Fact::ProcessGone { process });
            }
            if leaves {
                // Its supervisor starts another for the same session.
                let respawns = terminal.is_job && is_lost;
                session.leaving = Some(Leaving { exit_code, respawns });
            }
        }
    }
}

/// A prompt that was written before the stream said whose it is.
fn early_prompt(stream: &mut Stream, session: &mut Session, notes: &mut Notes) {
    let Some((at, text)) = stream.early_prompt.take() else { return };
    let now = std::mem::replace(&mut notes.at, at);
    session.turn_started(notes, Prompt { id: None, text: Some(&text), by_machine: false });
    stream.running = true;
    notes.at = now;
}

/// `jobs/<id>/state.json`, wherever the client's folder is.
fn is_job(file: &str) -> bool {
    file.ends_with("/state.json") && file.contains("jobs/")
}

fn id(text: Option<&str>) -> Option<Arc<str>> {
    text.filter(|id| !id.is_empty() && id.len() <= ID_BYTES_MAX).map(Into::into)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::story::Story;
    use super::*;
    use crate::signal::Handler as _;

    const BROKEN: [&[u8]; 9] = [
        b"",
        b"{\"session_id\":\"s1\",\"hook_event_na",
        b"\"a line that was no JSON\"",
        b"[1,2,3]",
        b"null",
        b"{\"session_id\":7,\"sessionId\":{},\"type\":[]}",
        b"{\"session_id\":\"s1\",\"sessionId\":\"s1\",\"hook_event_name\":\"Tomorrow\",\"type\":\"tomorrow\"}",
        b"{\"session_id\":\"s1\",\"tool_input\":\xff\xfe}",
        b"{\"session_id\":\"s1\",\"sessionId\":\"s1\",\"prompt\":[],\"message\":5,\"status\":3}",
    ];

    fn signal(channel: Channel, payload: &[u8]) -> Signal<'_> {
        let at = Timestamp(5_000);
        Signal { at, seq: 0, channel, direction: Direction::FromAgent, file: None, payload }
    }

    #[test]
    fn what_is_not_understood_makes_no_session() {
        for channel in Channel::ALL {
            for payload in BROKEN {
                let mut handler = Handler::default();
                let sightings = handler.handle_signal(&signal(channel, payload));
                let facts: Vec<_> = sightings.iter().map(|told| told.event.fact.name()).collect();
                assert_eq!(facts, Vec::<&str>::new(), "{channel:?} {payload:?}");
            }
        }
    }

    #[test]
    fn what_is_not_understood_is_kept_with_its_session_and_changes_nothing() {
        let mut story = Story::prompted();
        for payload in BROKEN {
            story.signal(900, Channel::Hook, Direction::FromAgent, None, payload);
        }
        story.shows("thinking");
        assert_eq!(story.monitor().unrecognised(), 2, "the unknown event, the wrong type");
    }

    #[test]
    fn a_body_that_names_thousands_of_sessions_keeps_the_bound() {
        let text = |key: &str, value: &str| json!({"key": key, "value": {"stringValue": value}});
        let record = |number: usize| {
            let name = text("event.name", "user_prompt");
            json!({"attributes": [text("session.id", &format!("s{number}")), name]})
        };
        let records: Vec<_> = (0..10 * SESSIONS_MAX).map(record).collect();
        let body = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}).to_string();
        let mut handler = Handler::default();
        let told = handler.handle_signal(&signal(Channel::Otel, body.as_bytes()));
        assert!(told.len() >= 10 * SESSIONS_MAX, "everybody is told of");
        assert_eq!(handler.sessions.len(), SESSIONS_MAX);
    }

    #[test]
    fn a_huge_line_is_not_parsed() {
        let mut handler = Handler::default();
        let mut line = br#"{"session_id":"s1","hook_event_name":"Stop","prompt":""#.to_vec();
        line.resize(payload::PAYLOAD_BYTES_MAX + 1, b'x');
        assert_eq!(handler.handle_signal(&signal(Channel::Hook, &line)), Vec::new());
        assert_eq!(handler.unrecognised(), 1);
    }

    #[test]
    fn lines_without_a_state_make_no_session() {
        let mut story = Story::new();
        story.line(0, json!({"type": "api-request", "params": {}}));
        story.line(1, json!({"type": "last-prompt", "lastPrompt": "go"}));
        assert!(story.is_empty());
    }

    #[test]
    fn sessions_are_bounded_and_forgotten_ones_have_their_last_word() {
        let mut handler = Handler::default();
        let mut ends = 0;
        for number in 0..SESSIONS_MAX + 10 {
            let hook = json!({"session_id": format!("s{number}"), "hook_event_name": "Stop",
                "last_assistant_message": "Done."});
            let payload = hook.to_string();
            let sightings = handler.handle_signal(&signal(Channel::Hook, payload.as_bytes()));
            let end = |told: &&Sighting| told.event.fact.name() == "turn_completed";
            ends += sightings.iter().filter(end).count();
        }
        assert_eq!(handler.sessions.len(), SESSIONS_MAX);
        assert_eq!(ends, 10);
    }

    #[test]
    fn a_process_that_goes_over_to_another_session_ends_the_first() {
        let mut handler = Handler::default();
        let file = |session: &str, at: u64| {
            json!({"pid": 7, "sessionId": session, "status": "idle", "statusUpdatedAt": at})
                .to_string()
        };
        handler.handle_signal(&signal(Channel::Registry, file("s1", 1_000).as_bytes()));
        let sightings =
            handler.handle_signal(&signal(Channel::Registry, file("s2", 2_000).as_bytes()));
        let ended = |told: &&Sighting| told.event.fact.name() == "session_ended";
        let ended: Vec<&str> = sightings.iter().filter(ended).map(|told| &*told.session).collect();
        assert_eq!(ended, ["s1"]);
    }

    #[test]
    fn a_doubled_signal_is_heard_once() {
        let mut handler = Handler::default();
        let hook = br#"{"session_id":"s1","hook_event_name":"UserPromptSubmit","prompt":"go"}"#;
        assert!(!handler.handle_signal(&signal(Channel::Hook, hook)).is_empty());
        assert!(handler.handle_signal(&signal(Channel::Hook, hook)).is_empty());
    }

    #[test]
    fn a_prompt_written_before_the_stream_has_a_name_is_told_when_it_has() {
        let mut story = Story::new();
        let prompt = json!({"type": "user", "message": {"role": "user", "content": "go"}});
        story.control(0, Direction::ToAgent, &prompt);
        assert!(story.is_empty());
        story.stream(500, json!({"type": "system", "subtype": "init"})).shows("thinking");
        assert_eq!(story.monitor().title(), Some("go"));
    }
}
