//! The rules of the server, each with the events it was learnt from.

use qd_session::moment::Timestamp;
use qd_session::monitor::{Fact, Monitor};
use qd_session::operator::resolve;

use super::Handler as Opencode;
use crate::Harness;
use crate::replay::{Replay, Scene};
use crate::signal::{Channel, Direction, Handler, Signal};

const CREATED: &str = r#"{"id":"e","type":"session.created","properties":{"sessionID":"ses_1","info":{"id":"ses_1","directory":"/home/dev/webapp","title":"greet"}}}"#;
const PROMPT: &str = r#"{"type":"message.updated","properties":{"sessionID":"ses_1","info":{"id":"msg_1","role":"user","sessionID":"ses_1"}}}"#;
const TEXT: &str = r#"{"type":"message.part.updated","properties":{"sessionID":"ses_1","part":{"type":"text","text":"add a greeting","messageID":"msg_1"}}}"#;
const BUSY: &str =
    r#"{"type":"session.status","properties":{"sessionID":"ses_1","status":{"type":"busy"}}}"#;
const RETRY: &str = r#"{"type":"session.status","properties":{"sessionID":"ses_1","status":{"type":"retry","attempt":1,"message":"Provider is overloaded","next":9}}}"#;
const ANSWER: &str = r#"{"type":"message.updated","properties":{"sessionID":"ses_1","info":{"id":"msg_2","role":"assistant","mode":"build","time":{"created":1}}}}"#;
const SAID: &str = r#"{"type":"message.part.updated","properties":{"sessionID":"ses_1","part":{"type":"text","text":"Done.","messageID":"msg_2"}}}"#;
const RUNNING: &str = r#"{"type":"message.part.updated","properties":{"sessionID":"ses_1","part":{"type":"tool","tool":"bash","callID":"call_1","messageID":"msg_2","state":{"status":"running","input":{"command":"touch a"}}}}}"#;
const TOOL_FAILED: &str = r#"{"type":"message.part.updated","properties":{"sessionID":"ses_1","part":{"type":"tool","tool":"bash","callID":"call_1","messageID":"msg_2","state":{"status":"error","input":{},"error":"rejected"}}}}"#;
const ASKED: &str = r#"{"type":"permission.asked","properties":{"id":"per_1","sessionID":"ses_1","permission":"bash","patterns":["touch a"],"metadata":{"command":"touch a"},"always":["touch *"],"tool":{"messageID":"msg_2","callID":"call_1"}}}"#;
const STEP: &str = r#"{"type":"message.part.updated","properties":{"sessionID":"ses_1","part":{"type":"step-start","messageID":"msg_3"}}}"#;
const IDLE: &str = r#"{"type":"session.idle","properties":{"sessionID":"ses_1"}}"#;
const ABORTED: &str = r#"{"type":"session.error","properties":{"sessionID":"ses_1","error":{"name":"MessageAbortedError","data":{"message":"Aborted"}}}}"#;
const WORKING: [&str; 5] = [CREATED, PROMPT, TEXT, BUSY, ANSWER];

fn replied(reply: &str) -> String {
    format!(
        r#"{{"type":"permission.replied","properties":{{"sessionID":"ses_1","requestID":"per_1","reply":"{reply}"}}}}"#
    )
}

/// Plays a story: `+N` lets N ms pass, `> …` is a request to the server; the rest it sends, a
/// millisecond apart. Returns every state that was shown, by session.
fn play(lines: &[&str]) -> Vec<(String, String)> {
    let mut replay = Replay::new(Harness::Opencode);
    let mut now = Timestamp(50_000);
    let mut seen = Vec::new();
    for line in lines {
        let scenes = if let Some(ms) = line.strip_prefix('+') {
            now = now.plus_ms(ms.parse().expect("a number"));
            replay.run_until(now)
        } else {
            now = now.plus_ms(1);
            let (direction, payload) = match line.strip_prefix("> ") {
                Some(request) => (Direction::ToAgent, request),
                None => (Direction::FromAgent, *line),
            };
            replay.play(&signal(now, direction, payload.as_bytes()))
        };
        seen.extend(scenes.iter().filter_map(|scene| match scene {
            Scene::Changed { session, state, .. } => {
                Some((session.to_string(), state.state.as_str().to_owned()))
            }
            Scene::Event { .. } => None,
        }));
    }
    seen
}

fn signal(at: Timestamp, direction: Direction, payload: &[u8]) -> Signal<'_> {
    Signal { at, seq: 0, channel: Channel::Events, direction, file: None, payload }
}

fn check(start: &[&str], then: &[&str], expected: &str) {
    let lines = [start, then].concat();
    let seen = play(&lines);
    let last = seen.last().map_or("nothing", |(_, state)| state.as_str());
    assert_eq!(last, expected, "{seen:?} after {lines:?}");
}

#[test]
fn a_prompt_is_work_and_idle_is_its_end() {
    check(&WORKING, &[], "thinking");
    check(&WORKING, &[SAID, IDLE], "task_complete");
    check(&WORKING, &[IDLE], "idle");
    check(&WORKING, &[SAID, IDLE, IDLE, PROMPT], "task_complete");
}

#[test]
fn a_request_to_prompt_is_work_before_the_server_says_anything() {
    let prompt = r#"> {"method":"POST","path":"/session/ses_1/prompt_async","body":{"parts":[{"type":"text","text":"hi"}]}}"#;
    check(&[CREATED], &[prompt], "thinking");
    check(&[CREATED], &[prompt, r#"{"status":400,"body":{"name":"BadRequest"}}"#], "error");
}

#[test]
fn a_session_nobody_has_prompted_waits_for_it() {
    check(&[CREATED], &["+900"], "unknown");
    check(&[CREATED], &["+1001"], "idle");
}

#[test]
fn a_permission_waits_although_the_status_is_busy_and_the_tool_runs() {
    check(&WORKING, &[ASKED, RUNNING, BUSY, "+251"], "needs_permission");
    check(&WORKING, &[RUNNING, ASKED, "+251", &replied("once")], "acting");
}

#[test]
fn a_permission_that_a_clients_own_rule_answers_never_shows() {
    let seen = play(&[&WORKING[..], &[RUNNING, ASKED, "+100", &replied("once"), "+900"]].concat());
    assert!(!seen.iter().any(|(_, state)| state == "needs_permission"), "{seen:?}");
}

#[test]
fn our_answer_closes_the_request_when_the_server_has_taken_it() {
    let reply = r#"> {"method":"POST","path":"/permission/per_1/reply","body":{"reply":"once"}}"#;
    let start = [&WORKING[..], &[RUNNING, ASKED, "+300"]].concat();
    check(&start, &[reply], "needs_permission");
    check(&start, &[reply, r#"{"status":200,"body":true}"#], "acting");
    check(
        &start,
        &[reply, r#"{"status":404,"body":{"name":"PermissionNotFoundError"}}"#],
        "acting",
    );
    check(&start, &[reply, r#"{"status":500,"body":""}"#], "needs_permission");
}

#[test]
fn rejecting_without_a_message_ends_the_turn_by_the_operators_hand() {
    let start = [&WORKING[..], &[RUNNING, ASKED, "+300"]].concat();
    check(&start, &[&replied("reject"), TOOL_FAILED, IDLE], "interrupted");
}

#[test]
fn rejecting_with_a_message_lets_the_turn_go_on() {
    let start = [&WORKING[..], &[RUNNING, ASKED, "+300"]].concat();
    let answer = ANSWER.replace("msg_2", "msg_3");
    let said = SAID.replace("msg_2", "msg_3");
    check(&start, &[&replied("reject"), TOOL_FAILED, &answer, STEP, "+15000"], "thinking");
    check(&start, &[&replied("reject"), TOOL_FAILED, &answer, STEP, &said, IDLE], "task_complete");
}

#[test]
fn an_abort_closes_what_was_open_and_late_news_reopen_nothing() {
    let start = [&WORKING[..], &[RUNNING, ASKED, "+300"]].concat();
    let late = r#"{"type":"message.updated","properties":{"sessionID":"ses_1","info":{"id":"msg_2","role":"assistant","time":{"created":1,"completed":2},"error":{"name":"MessageAbortedError","data":{}}}}}"#;
    check(&start, &[ABORTED, IDLE], "interrupted");
    check(&start, &[ABORTED, IDLE, "+400", RUNNING, TOOL_FAILED, late, IDLE], "interrupted");
    let abort = r#"> {"method":"POST","path":"/session/ses_1/abort","body":null}"#;
    check(&start, &[abort, IDLE], "interrupted");
}

#[test]
fn a_turn_that_ends_before_any_answer_was_interrupted() {
    let prompted = [CREATED, PROMPT, TEXT, BUSY];
    check(&prompted, &[IDLE, IDLE], "interrupted");
    // Who came in the middle has seen no prompt.
    check(&[CREATED, BUSY], &[IDLE], "idle");
    let failed = r#"{"type":"session.error","properties":{"sessionID":"ses_1","error":{"name":"ProviderAuthError","data":{}}}}"#;
    check(&prompted, &[failed, IDLE], "auth_error");
}

#[test]
fn failures_are_told_apart_by_their_status() {
    for (error, expected) in [
        (
            r#"{"name":"APIError","data":{"message":"no","statusCode":401,"isRetryable":false}}"#,
            "auth_error",
        ),
        (r#"{"name":"ProviderAuthError","data":{"message":"no"}}"#, "auth_error"),
        (r#"{"name":"APIError","data":{"message":"no","statusCode":429}}"#, "usage_limit"),
        (r#"{"name":"APIError","data":{"message":"no","statusCode":503}}"#, "server_error"),
        (r#"{"name":"UnknownError","data":{"message":"no"}}"#, "error"),
    ] {
        let line = format!(
            r#"{{"type":"session.error","properties":{{"sessionID":"ses_1","error":{error}}}}}"#
        );
        check(&WORKING, &[&line, IDLE], expected);
        let message = format!(
            r#"{{"type":"message.updated","properties":{{"sessionID":"ses_1","info":{{"id":"msg_2","role":"assistant","error":{error}}}}}}}"#
        );
        check(&WORKING, &[&message, IDLE], expected);
    }
}

#[test]
fn a_retry_is_not_a_failure() {
    check(&WORKING, &[RETRY], "retrying");
    check(&WORKING, &[RETRY, BUSY], "thinking");
}

#[test]
fn a_call_that_was_turned_down_does_not_run() {
    let running = r#"{"type":"message.part.updated","properties":{"sessionID":"ses_1","part":{"type":"tool","tool":"bash","callID":"call_1","messageID":"msg_2","state":{"status":"running","input":{"command":"touch a"}}}}}"#;
    let replied = |reply: &str| {
        format!(
            r#"{{"type":"permission.replied","properties":{{"sessionID":"ses_1","requestID":"per_1","reply":"{reply}"}}}}"#
        )
    };
    check(&WORKING, &[running, ASKED, "+251", &replied("once")], "acting");
    check(&WORKING, &[running, ASKED, "+251", &replied("reject")], "thinking");
}

#[test]
fn a_question_waits_until_it_is_answered() {
    let asked = r#"{"type":"question.asked","properties":{"id":"que_1","sessionID":"ses_1","questions":[{"question":"Which?","header":"G","options":[]}],"tool":{"messageID":"msg_2","callID":"call_1"}}}"#;
    let replied = r#"{"type":"question.replied","properties":{"sessionID":"ses_1","requestID":"que_1","answers":[["Hello"]]}}"#;
    let rejected =
        r#"{"type":"question.rejected","properties":{"sessionID":"ses_1","requestID":"que_1"}}"#;
    check(&WORKING, &[asked], "awaiting_input");
    check(&WORKING, &[asked, replied], "thinking");
    check(&WORKING, &[asked, rejected, IDLE], "interrupted");
}

#[test]
fn a_question_whose_event_was_lost_is_known_by_its_tool() {
    let tool = |status: &str| {
        format!(
            r#"{{"type":"message.part.updated","properties":{{"sessionID":"ses_1","part":{{"type":"tool","tool":"question","callID":"call_9","messageID":"msg_2","state":{{"status":"{status}","input":{{"questions":[{{"question":"Which?"}}]}}}}}}}}}}"#
        )
    };
    check(&WORKING, &[&tool("running"), "+251"], "awaiting_input");
    check(&WORKING, &[&tool("running"), "+251", &tool("completed")], "thinking");
}

#[test]
fn late_news_of_an_older_answer_change_nothing() {
    let older = ANSWER.replace("msg_2", "msg_1b");
    check(&WORKING, &[SAID, &older, IDLE], "task_complete");
    check(&WORKING, &[SAID, IDLE, "+1000", &older], "task_complete");
    // Nobody told that it began, only what it says.
    let newer = SAID.replace("msg_2", "msg_3");
    check(&WORKING, &[&newer, IDLE], "task_complete");
    // One that says nothing is no delivery.
    let silent = ANSWER.replace("msg_2", "msg_3");
    check(&WORKING, &[SAID, &silent, IDLE], "idle");
}

#[test]
fn pending_lists_rebuild_what_a_restart_has_lost() {
    let permissions = r#"> {"method":"GET","path":"/permission","body":null}"#;
    let one = r#"{"status":200,"body":[{"id":"per_1","sessionID":"ses_1","permission":"bash","patterns":["touch a"],"metadata":{},"always":[]}]}"#;
    let none = r#"{"status":200,"body":[]}"#;
    let questions = r#"> {"method":"GET","path":"/question","body":null}"#;
    let question = r#"{"status":200,"body":[{"id":"que_1","sessionID":"ses_1","questions":[{"question":"Which?"}]}]}"#;
    let statuses = r#"> {"method":"GET","path":"/session/status","body":null}"#;
    let busy = r#"{"status":200,"body":{"ses_1":{"type":"busy"}}}"#;
    let idle = r#"{"status":200,"body":{}}"#;
    check(&[permissions, one], &[], "needs_permission");
    check(&[permissions, one, permissions, none], &[], "thinking");
    check(&[questions, question], &[], "awaiting_input");
    check(&[permissions, one, questions, none], &[], "needs_permission");
    check(&[statuses, busy], &[], "thinking");
    check(&[statuses, busy, statuses, idle], &[], "idle");
    check(&[permissions, one, statuses, busy], &[], "needs_permission");
}

#[test]
fn a_child_session_is_a_subagent_of_its_parents_card() {
    let child = r#"{"type":"session.created","properties":{"sessionID":"ses_2","info":{"id":"ses_2","parentID":"ses_1","title":"Child session - x","agent":"explore"}}}"#;
    let of_child = |line: &str| line.replace("ses_1", "ses_2").replace("msg_2", "msg_9");
    let busy = of_child(BUSY);
    let asked = of_child(ASKED);
    let idle = of_child(IDLE);
    check(&WORKING, &[child, &busy], "delegating");
    check(&WORKING, &[child, &busy, &asked, "+251"], "needs_permission");
    check(&WORKING, &[child, &busy, &idle], "thinking");
    let seen = play(&[&WORKING[..], &[child, &busy, &asked, "+251", &idle, SAID, IDLE]].concat());
    assert!(seen.iter().all(|(session, _)| session == "ses_1"), "{seen:?}");
    assert_eq!(seen.last().map(|(_, state)| state.as_str()), Some("task_complete"));
}

#[test]
fn a_sync_copy_is_the_event_once_more() {
    let sync = r#"{"type":"sync","syncEvent":{"id":"e","type":"message.updated.1","seq":2,"aggregateID":"ses_1","data":{"sessionID":"ses_1","info":{"id":"msg_1","role":"user"}}}}"#;
    check(&[CREATED], &[sync], "thinking");
}

#[test]
fn kilos_turns_open_and_close() {
    let open = r#"{"type":"session.turn.open","properties":{"sessionID":"ses_1"}}"#;
    let close = |reason: &str| {
        format!(
            r#"{{"type":"session.turn.close","properties":{{"sessionID":"ses_1","reason":"{reason}"}}}}"#
        )
    };
    check(&[CREATED], &[open], "thinking");
    check(&[CREATED], &[open, &close("interrupted")], "interrupted");
    check(&[CREATED], &[open, &close("error")], "error");
    check(&WORKING, &[SAID, &close("completed")], "task_complete");
}

/// A server that was asked for its state in between rests before it says why.
#[test]
fn an_abort_that_is_told_after_the_end_is_an_abort() {
    let close = r#"{"type":"session.turn.close","properties":{"sessionID":"ses_1","reason":"interrupted"}}"#;
    let drained = r#"{"type":"session.drain.interrupted","properties":{"sessionID":"ses_1"}}"#;
    check(&WORKING, &[IDLE], "idle");
    check(&WORKING, &[IDLE, close, IDLE, drained], "interrupted");
    check(&WORKING, &[IDLE, drained], "interrupted");
    check(&WORKING, &[SAID, IDLE, close, IDLE, drained], "interrupted");
    // Nothing ran any more.
    check(&WORKING, &[SAID, IDLE, drained], "task_complete");
}

#[test]
fn a_deleted_session_has_ended() {
    let deleted =
        r#"{"type":"session.deleted","properties":{"sessionID":"ses_1","info":{"id":"ses_1"}}}"#;
    check(&WORKING, &[SAID, IDLE, deleted], "session_ended");
}

#[test]
fn compaction_is_not_idle() {
    let began = r#"{"type":"message.part.updated","properties":{"sessionID":"ses_1","part":{"type":"compaction","messageID":"msg_4"}}}"#;
    let ended = r#"{"type":"session.compacted","properties":{"sessionID":"ses_1"}}"#;
    check(&WORKING, &[began], "compacting");
    check(&WORKING, &[began, ended], "thinking");
}

#[test]
fn what_nobody_understands_is_kept_and_creates_no_session() {
    let huge = format!(r#"{{"type":"x","body":"{}"}}"#, "x".repeat(5 << 20));
    let broken: [&[u8]; 7] = [
        b"{\"type\":\"session.id",
        b"{\"type\":\"session.status\",\"properties\":{\"sessionID\":\"ses_1\",\"status\":7}}",
        b"\xff\xfe{",
        b"{\"type\":\"session.brand.new\",\"properties\":{\"sessionID\":\"ses_1\"}}",
        b"[]",
        b"",
        huge.as_bytes(),
    ];
    let mut handler = Opencode::default();
    for (nth, payload) in broken.iter().enumerate() {
        assert_eq!(handler.handle_signal(&signal(Timestamp(1), Direction::FromAgent, payload)), []);
        assert_eq!(handler.unrecognised(), nth as u64 + 1);
    }
    handler.handle_signal(&signal(Timestamp(2), Direction::FromAgent, BUSY.as_bytes()));
    let named = handler.handle_signal(&signal(Timestamp(3), Direction::FromAgent, broken[1]));
    assert_eq!(named.len(), 1);
    assert!(matches!(named[0].event.fact, Fact::Unrecognised { .. }));
}

#[test]
fn events_about_no_session_are_no_news() {
    let mut handler = Opencode::default();
    for line in [
        r#"{"type":"server.heartbeat","properties":{}}"#,
        r#"{"type":"file.watcher.updated","properties":{"file":"a","event":"add"}}"#,
        r#"{"type":"plugin.added","properties":{"id":"agent"}}"#,
    ] {
        let heard = signal(Timestamp(1), Direction::FromAgent, line.as_bytes());
        assert_eq!(handler.handle_signal(&heard), []);
    }
    assert_eq!(handler.unrecognised(), 0);
}

#[test]
fn no_cut_of_an_event_panics_or_says_anything() {
    let mut handler = Opencode::default();
    for line in [CREATED, PROMPT, TEXT, BUSY, ANSWER, SAID, RUNNING, ASKED, IDLE, ABORTED] {
        for cut in 0..line.len() {
            for direction in [Direction::FromAgent, Direction::ToAgent] {
                let heard = signal(Timestamp(1), direction, &line.as_bytes()[..cut]);
                assert_eq!(handler.handle_signal(&heard), [], "{}", &line[..cut]);
            }
        }
    }
}

/// The names of the facts that signals of two servers give, with their sessions.
fn of_servers(lines: &[(&str, &str)]) -> Vec<String> {
    let mut handler = Opencode::default();
    let mut told = Vec::new();
    for (at, (server, line)) in (50_000..).step_by(1_000).zip(lines) {
        let (direction, payload) = match line.strip_prefix("> ") {
            Some(request) => (Direction::ToAgent, request),
            None => (Direction::FromAgent, *line),
        };
        let channel = match line.contains("exited") {
            true => Channel::Process,
            false => Channel::Events,
        };
        let signal = signal(Timestamp(at), direction, payload.as_bytes());
        let signal = Signal { channel, file: Some(server), ..signal };
        let facts = handler.handle_signal(&signal).into_iter();
        told.extend(facts.map(|fact| format!("{} {}", fact.session, fact.event.fact.name())));
    }
    told
}

#[test]
fn what_one_server_does_not_list_may_be_anothers() {
    let elsewhere = BUSY.replace("ses_1", "ses_2");
    let told = of_servers(&[
        ("a", BUSY),
        ("a", ASKED),
        ("b", &elsewhere),
        ("b", r#"> {"method":"GET","path":"/permission","body":null}"#),
        ("b", r#"{"status":200,"body":[]}"#),
        ("b", r#"> {"method":"GET","path":"/session/status","body":null}"#),
        // Another server's word is no answer to it.
        ("a", r#"{"status":200,"body":{}}"#),
        ("b", r#"{"status":200,"body":{}}"#),
        ("b", r#"{"pid":7,"exited":true}"#),
    ]);
    let expected = [
        "ses_1 llm_started",
        "ses_1 approval_requested",
        "ses_2 llm_started",
        "ses_2 turn_completed",
        "ses_2 session_ended",
    ];
    assert_eq!(told, expected);
}

/// What a daemon knew when it was stopped, and its successor's handler.
struct Restarted {
    known: Monitor,
    handler: Box<dyn Handler + Send>,
    now: Timestamp,
}

impl Restarted {
    /// Both of them listen to the same server, process 7.
    fn after(lines: &[&str]) -> Self {
        let mut before = Self {
            known: Monitor::default(),
            handler: Harness::Opencode.handler(),
            now: Timestamp(50_000),
        };
        before.hear(SERVER);
        lines.iter().for_each(|line| before.hear(line));
        let mut handler = Harness::Opencode.handler();
        handler.recall(&"ses_1".into(), &before.known);
        Self { handler, ..before }
    }

    fn hear(&mut self, line: &str) {
        self.now = self.now.plus_ms(1_000);
        let (direction, payload) = match line.strip_prefix("> ") {
            Some(request) => (Direction::ToAgent, request),
            None => (Direction::FromAgent, line),
        };
        let channel = if line.contains("pid") { Channel::Process } else { Channel::Events };
        let file = Some("http://127.0.0.1:4096");
        let payload = payload.as_bytes();
        let signal = Signal { at: self.now, seq: 0, channel, direction, file, payload };
        let mut sightings = self.handler.handle_signal(&signal);
        self.now = self.now.plus_ms(1_000);
        sightings.extend(self.handler.handle_timeout(self.now));
        for sighting in sightings {
            assert_eq!(&*sighting.session, "ses_1");
            self.known.apply(&sighting.event);
        }
    }

    fn shows(mut self, lines: &[&str]) -> String {
        lines.iter().for_each(|line| self.hear(line));
        resolve(self.now, &self.known).state.as_str().to_owned()
    }
}

const SERVER: &str = r#"{"pid":7,"procStart":42}"#;
const PERMISSIONS: &str = r#"> {"method":"GET","path":"/permission","body":null}"#;
const STATUSES: &str = r#"> {"method":"GET","path":"/session/status","body":null}"#;
const NO_STATUS: &str = r#"{"status":200,"body":{}}"#;
const NOTHING: &str = r#"{"status":200,"body":[]}"#;

#[test]
fn what_was_answered_while_nobody_listened_is_closed_by_the_list() {
    let waiting = [&WORKING[..], &[RUNNING, ASKED]].concat();
    let restarted = || Restarted::after(&waiting);
    assert_eq!(restarted().shows(&[]), "needs_permission");
    assert_eq!(restarted().shows(&[SERVER, PERMISSIONS, NOTHING]), "acting");
    assert_eq!(restarted().shows(&[SERVER, STATUSES, NO_STATUS]), "idle");
    // Another server's list says nothing of it.
    let other = r#"{"pid":8,"procStart":42}"#;
    assert_eq!(restarted().shows(&[other, PERMISSIONS, NOTHING]), "needs_permission");
}

#[test]
fn a_session_is_carried_by_its_servers_process() {
    let restarted = Restarted::after(&WORKING);
    let carriers: Vec<&str> = restarted.known.carriers().map(|process| process.as_str()).collect();
    assert_eq!(carriers, ["7:42"]);
    let gone = r#"{"sessionId":"ses_1","pid":7,"procStart":42,"exited":true}"#;
    assert_eq!(restarted.shows(&[gone]), "session_ended");
}
