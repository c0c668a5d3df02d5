//! Signal in, events out.
//!
//! Each source has its own file; here they are told apart, strangers are introduced, and timers
//! come due. Everything is keyed by the thread's id: one process runs many threads, hidden ones
//! among them.

use std::collections::BTreeMap;
use std::sync::Arc;

use qd_session::id::RequestId;
use qd_session::moment::Timestamp;
use qd_session::monitor::{AgentEvent, Fact, Monitor};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::hold::{Hold, Stranger};
use super::mark::Mark;
use super::roster::{Introduced, Role, Roster};
use super::thread::Thread;
use crate::process::ProcessReport;
use crate::signal::{Channel, Sighting, Signal};
use crate::{excerpt, payload};

/// Most session files and output streams whose thread is remembered.
const FILES_MAX: usize = 1_024;

#[derive(Debug, Default)]
pub struct Handler {
    pub(super) roster: Roster,
    hold: Hold,
    /// Which thread a session file, or an `exec` stream, belongs to.
    pub(super) files: BTreeMap<Arc<str>, Arc<str>>,
    pub(super) streams: BTreeMap<Arc<str>, Arc<str>>,
    /// When the spent usage window opens again: an account has one, whichever thread hears of it.
    pub(super) limit_resets_at: Option<Timestamp>,
    out: Vec<Sighting>,
    unrecognised: u64,
}

impl crate::signal::Handler for Handler {
    fn unrecognised(&self) -> u64 {
        self.unrecognised
    }

    fn handle_signal(&mut self, signal: &Signal<'_>) -> Vec<Sighting> {
        self.dispatch(signal);
        self.take_out()
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        let threads = self.roster.peek().filter_map(Thread::next_timeout);
        threads.chain(self.hold.next_timeout()).min()
    }

    fn handle_timeout(&mut self, now: Timestamp) -> Vec<Sighting> {
        for id in self.hold.overdue(now) {
            if self.hold.is_only_status(&id) {
                self.hold.release(&Stranger::Thread(id));
                continue;
            }
            self.roster.assume(now, &id, Role::Session);
            self.release(Stranger::Thread(id));
        }
        self.roster.threads().for_each(|thread| thread.handle_timeout(now));
        self.take_out()
    }

    /// A line of a rollout does not say whose it is: only the head of its file did.
    fn recall(&mut self, session: &Arc<str>, known: &Monitor) {
        self.roster.assume(known.last_signal(), session, Role::Session);
        let transcript = known.about().and_then(|about| about.transcript.as_ref());
        if let Some(file) = transcript {
            self.bind_file(&file.value, session);
        }
    }
}

impl Handler {
    /// The server's number of an open request: an answer over the app-server repeats it.
    pub fn rpc_id(&self, thread: &str, request: &RequestId) -> Option<&Value> {
        let thread = self.roster.peek().find(|known| *known.id == *thread)?;
        thread.requests.get(request)?.rpc.as_ref()
    }

    fn dispatch(&mut self, signal: &Signal<'_>) {
        match signal.channel {
            Channel::Hook => self.handle_hook(signal),
            Channel::Notify => self.handle_notify(signal),
            Channel::Transcript => self.handle_line(signal),
            Channel::Otel => self.handle_telemetry(signal),
            Channel::Exec => self.handle_exec(signal),
            Channel::AppServer => self.handle_message(signal),
            Channel::Process => self.handle_process(signal),
            Channel::Registry | Channel::Stream | Channel::Acp | Channel::Events => {
                self.not_understood(signal, None);
            }
        }
    }

    fn handle_process(&mut self, signal: &Signal<'_>) {
        let Some(report) = self.parsed::<ProcessReport>(signal) else { return };
        let (Some(id), Some(seen)) = (report.session_id.as_deref(), report.sighting()) else {
            return self.not_understood(signal, None);
        };
        // Subagents are held like sessions, so it must be introduced. No end may be lost, though.
        if !self.roster.knows(id) {
            if self.hold.keep(Stranger::Thread(Arc::from(id)), signal) {
                return;
            }
            self.roster.assume(signal.at, id, Role::Session);
        }
        let mark = Mark::arrival(signal);
        if let Some(thread) = self.roster.thread(signal.at, id) {
            thread.take_process(mark, seen, report.exit_code);
        }
    }

    /// The payload as what it should be. What is not is counted, and kept for the session if one
    /// can be named.
    pub(super) fn parsed<T: DeserializeOwned>(&mut self, signal: &Signal<'_>) -> Option<T> {
        let parsed = payload::read(signal.payload);
        if parsed.is_none() {
            self.not_understood(signal, None);
        }
        parsed
    }

    /// A signal that says nothing to us: kept for its session, or only counted.
    pub(super) fn not_understood(&mut self, signal: &Signal<'_>, thread: Option<&str>) {
        let of_file = signal.file.and_then(|file| self.files.get(file)).cloned();
        let id = thread.map(Arc::from).or(of_file);
        let mark = Mark::arrival(signal);
        let known = id.and_then(|id| self.roster.thread(signal.at, &id));
        match known {
            Some(thread) => {
                let text = excerpt::unrecognised(signal.payload);
                thread.tell(mark, Fact::Unrecognised { text });
            }
            None => self.unrecognised = self.unrecognised.saturating_add(1),
        }
    }

    /// Learns what a thread is, and takes what it said before we knew.
    pub(super) fn introduce(&mut self, now: Timestamp, id: &str, role: Role) {
        match self.roster.introduce(now, id, role) {
            Introduced::Known => {}
            Introduced::New => self.release(Stranger::Thread(Arc::from(id))),
            Introduced::Corrected => {
                // It was never a session of its own: its card must not stay.
                let source = qd_session::moment::Source::Fallback;
                let fact = Fact::SessionEnded { process: None, exit_code: None };
                let event = AgentEvent::main(now, source, fact);
                self.out.push(Sighting { session: Arc::from(id), event });
            }
        }
    }

    /// Keeps a signal of a thread nobody has introduced. True if it was kept.
    pub(super) fn is_stranger(&mut self, signal: &Signal<'_>, id: &str) -> bool {
        let stranger = !self.roster.knows(id);
        if stranger {
            self.hold.keep(Stranger::Thread(Arc::from(id)), signal);
        }
        stranger
    }

    pub(super) fn keep_for_file(&mut self, signal: &Signal<'_>, file: &str) {
        self.hold.keep(Stranger::File(Arc::from(file)), signal);
    }

    /// A session file is a thread's: its first word about that holds.
    pub(super) fn bind_file(&mut self, file: &str, id: &str) {
        if self.files.contains_key(file) {
            return;
        }
        if self.files.len() == FILES_MAX {
            self.files.pop_first();
        }
        self.files.insert(Arc::from(file), Arc::from(id));
        self.release(Stranger::File(Arc::from(file)));
    }

    fn release(&mut self, stranger: Stranger) {
        for held in self.hold.release(&stranger) {
            self.dispatch(&held.signal());
        }
    }

    fn take_out(&mut self) -> Vec<Sighting> {
        let mut out = std::mem::take(&mut self.out);
        for thread in self.roster.threads() {
            let session = thread.session.clone();
            let told = thread.take_told().into_iter();
            out.extend(told.map(|event| Sighting { session: session.clone(), event }));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use qd_session::moment::Timestamp;

    use super::super::story::story;
    use super::*;
    use crate::signal::{Direction, Handler as _};

    const ALL: [Channel; 7] = [
        Channel::Hook,
        Channel::Notify,
        Channel::Transcript,
        Channel::Otel,
        Channel::Exec,
        Channel::AppServer,
        Channel::Process,
    ];

    fn give(handler: &mut Handler, channel: Channel, payload: &[u8]) -> Vec<Sighting> {
        let direction = Direction::FromAgent;
        let at = Timestamp(1_000);
        handler.handle_signal(&Signal { at, seq: 0, channel, direction, file: None, payload })
    }

    fn check_counted(payload: &[u8]) {
        for channel in ALL {
            let mut handler = Handler::default();
            assert_eq!(give(&mut handler, channel, payload), [], "{channel:?}");
            assert_eq!(handler.unrecognised(), 1, "{channel:?}");
        }
    }

    #[test]
    fn half_a_line_is_counted_and_makes_no_session() {
        check_counted(br#"{"timestamp":"2026-11-15T18:48:13.3"#);
    }

    #[test]
    fn broken_text_is_counted_and_makes_no_session() {
        check_counted(b"\xff\xfe{}");
        check_counted(b"");
        check_counted(br#""not a line""#);
    }

    #[test]
    fn a_huge_signal_is_not_parsed() {
        let mut huge = br#"{"session_id":"T","hook_event_name":"Stop","x":""#.to_vec();
        huge.resize((4 << 20) + 10, b'x');
        huge.extend_from_slice(br#""}"#);
        check_counted(&huge);
    }

    #[test]
    fn wrong_types_are_counted() {
        let mut handler = Handler::default();
        let wrong = br#"{"session_id":7,"hook_event_name":[],"type":{},"thread_id":1,"threadId":2,"sessionId":3,"resourceLogs":4,"method":5,"thread-id":6}"#;
        for channel in ALL {
            assert_eq!(give(&mut handler, channel, wrong), [], "{channel:?}");
        }
        assert_eq!(handler.unrecognised(), 7);
    }

    #[test]
    fn an_unknown_signal_of_a_known_session_changes_nothing() {
        story()
            .rollout_begins(0)
            .line(
                100,
                "event_msg",
                r#"{"type":"task_complete","turn_id":"U","last_agent_message":"Done."}"#,
            )
            .line(200, "a_new_kind", r#"{"turn_id":"U"}"#)
            .line(210, "event_msg", r#"{"type":"a_new_event","turn_id":"V"}"#)
            .hook(220, "ANewHook", "")
            .server(230, r#"{"method":"thread/aNewThing","params":{"threadId":"T"}}"#)
            .signal(240, Channel::Transcript, Some("t.jsonl"), b"{\"half")
            .check_at(5_000, &["0 idle", "0 thinking", "250 task_complete"]);
    }

    #[test]
    fn no_family_of_messages_passes_in_silence() {
        let mut handler = Handler::default();
        give(
            &mut handler,
            Channel::Hook,
            br#"{"session_id":"T","turn_id":"U","hook_event_name":"UserPromptSubmit"}"#,
        );
        for (method, expected) in [
            ("item/agentMessage/delta", None),
            ("item/aNewThing", Some("unrecognised")),
            ("thread/queue/changed", None),
            ("thread/aNewThing", Some("unrecognised")),
            ("turn/aNewThing", Some("unrecognised")),
        ] {
            let message = format!(r#"{{"method":"{method}","params":{{"threadId":"T"}}}}"#);
            let told = give(&mut handler, Channel::AppServer, message.as_bytes());
            let name = told.first().map(|sighting| sighting.event.fact.name());
            assert_eq!(name, expected, "{method}");
        }
        give(&mut handler, Channel::AppServer, br#"{"method":"account/aNewThing","params":{}}"#);
        give(&mut handler, Channel::AppServer, br#"{"method":"fs/changed","params":{}}"#);
        assert_eq!(handler.unrecognised(), 1);
    }

    #[test]
    fn what_is_not_understood_is_kept_for_its_session() {
        let mut handler = Handler::default();
        give(
            &mut handler,
            Channel::Hook,
            br#"{"session_id":"T","hook_event_name":"SessionStart"}"#,
        );
        let told =
            give(&mut handler, Channel::Hook, br#"{"session_id":"T","hook_event_name":"New"}"#);
        let names: Vec<&str> = told.iter().map(|sighting| sighting.event.fact.name()).collect();
        assert_eq!(names, ["unrecognised"]);
        assert_eq!(handler.unrecognised(), 0);
    }

    #[test]
    fn a_session_ends_with_its_process_and_lives_again_when_resumed() {
        story()
            .hook(0, "UserPromptSubmit", r#""prompt":"go""#)
            .signal(500, Channel::Process, None, br#"{"sessionId":"T","exited":true}"#)
            .signal(
                2_000,
                Channel::Hook,
                None,
                br#"{"session_id":"T","turn_id":"V","hook_event_name":"UserPromptSubmit"}"#,
            )
            .check(&["0 thinking", "500 session_ended", "2000 thinking"]);
    }

    #[test]
    fn a_held_thread_is_a_session_unless_it_is_introduced_as_another() {
        let seen = br#"{"sessionId":"T","pid":7,"procStart":42}"#;
        let mut handler = Handler::default();
        assert_eq!(give(&mut handler, Channel::Process, seen), []);
        let due = handler.next_timeout().expect("it waits for an introduction");
        let told = handler.handle_timeout(due);
        let names: Vec<&str> = told.iter().map(|sighting| sighting.event.fact.name()).collect();
        assert_eq!(names, ["process_seen"]);

        let mut handler = Handler::default();
        give(&mut handler, Channel::Process, seen);
        handler.introduce(Timestamp(0), "T", Role::Subagent { session: Arc::from("P") });
        assert_eq!(handler.handle_timeout(due), []);
    }

    #[test]
    fn the_exits_of_many_strangers_are_all_told() {
        let mut handler = Handler::default();
        let mut told = Vec::new();
        for thread in 0..400 {
            let exited = format!(r#"{{"sessionId":"T{thread}","exited":true}}"#);
            told.extend(give(&mut handler, Channel::Process, exited.as_bytes()));
        }
        let due = handler.next_timeout().expect("some wait for an introduction");
        told.extend(handler.handle_timeout(due));
        let ended = told.iter().filter(|told| told.event.fact.name() == "session_ended");
        assert_eq!(ended.count(), 400);
    }

    #[test]
    fn an_answer_finds_the_servers_number() {
        let mut handler = Handler::default();
        give(
            &mut handler,
            Channel::Hook,
            br#"{"session_id":"T","turn_id":"U","hook_event_name":"UserPromptSubmit"}"#,
        );
        give(
            &mut handler,
            Channel::AppServer,
            br#"{"method":"item/fileChange/requestApproval","id":4,"params":{"threadId":"T","turnId":"U","itemId":"c1"}}"#,
        );
        assert_eq!(handler.rpc_id("T", &RequestId::new("c1")), Some(&Value::from(4)));
        assert_eq!(handler.rpc_id("T", &RequestId::new("c2")), None);
    }

    /// Whole messages to be cut and broken.
    const SAMPLES: [(Channel, &str); 8] = [
        (
            Channel::Hook,
            r#"{"session_id":"T","turn_id":"U","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"c1"}"#,
        ),
        (
            Channel::Hook,
            r#"{"session_id":"T","turn_id":"U","hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":"ls"}}"#,
        ),
        (
            Channel::Notify,
            r#"{"type":"agent-turn-complete","thread-id":"T","turn-id":"U","input-messages":["go"]}"#,
        ),
        (
            Channel::Transcript,
            r#"{"timestamp":"2026-11-15T18:40:00.000Z","type":"session_meta","payload":{"id":"T","source":"cli"}}"#,
        ),
        (
            Channel::Transcript,
            r#"{"timestamp":"2026-11-15T18:40:00.000Z","type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"ä\"}","call_id":"c1"}}"#,
        ),
        (
            Channel::AppServer,
            r#"{"method":"thread/status/changed","params":{"threadId":"T","status":{"type":"active","activeFlags":["waitingOnApproval"]}},"emittedAtMs":1}"#,
        ),
        (Channel::Exec, r#"{"type":"thread.started","thread_id":"T"}"#),
        (
            Channel::Otel,
            r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"attributes":[{"key":"event.name","value":{"stringValue":"codex.user_prompt"}},{"key":"conversation.id","value":{"stringValue":"T"}}]}]}]}]}"#,
        ),
    ];

    proptest! {
        #[test]
        fn no_signal_however_broken_panics(
            steps in prop::collection::vec((0..8usize, any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 1..60)
        ) {
            let mut handler = Handler::default();
            for (now, (sample, place, byte, how)) in (0u64..).zip(steps) {
                let (channel, text) = SAMPLES[sample];
                let mut payload = text.as_bytes().to_vec();
                let place = place.index(payload.len());
                match how {
                    0 => payload.truncate(place),
                    1 => payload[place] = byte,
                    _ => {}
                }
                let at = Timestamp(now * 97);
                let direction = Direction::FromAgent;
                let file = Some("t.jsonl");
                handler.handle_signal(&Signal { at, seq: 0, channel, direction, file, payload: &payload });
                if let Some(due) = handler.next_timeout().filter(|due| *due <= at) {
                    handler.handle_timeout(due.max(at));
                }
            }
        }
    }
}
