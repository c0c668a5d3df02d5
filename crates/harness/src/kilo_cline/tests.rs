//! The rules of the say/ask clients, each with the messages it was learnt from.

use qd_session::moment::Timestamp;
use qd_session::monitor::Fact;

use super::Handler as SayAsk;
use crate::Harness;
use crate::replay::{Replay, Scene};
use crate::signal::{Channel, Direction, Handler, Signal};

const WELCOME: &str = r#"{"timestamp":1,"source":"cli","id":"msg-1000-7","type":"welcome","metadata":{"welcomeOptions":{"clearScreen":true,"showInstructions":true,"instructions":[]}}}"#;
const AUTO: &str = r#"{"timestamp":1,"source":"cli","id":"msg-1000-7","type":"welcome","metadata":{"welcomeOptions":{"clearScreen":false,"showInstructions":false,"instructions":[]}}}"#;
const PROMPT: &str = r#"{"timestamp":1001,"source":"extension","type":"say","say":"text","content":"add a greeting"}"#;
const REQUEST: &str = r#"{"timestamp":1002,"source":"extension","type":"say","say":"api_req_started","metadata":{"apiProtocol":"openai"}}"#;
const USAGE: &str = r#"{"timestamp":1002,"source":"extension","type":"say","say":"api_req_started","metadata":{"apiProtocol":"openai","tokensIn":1200,"tokensOut":40}}"#;
const READ: &str =
    r#"{"timestamp":1003,"type":"ask","ask":"tool","metadata":{"tool":"readFile","path":"a.js"}}"#;
const WRITE: &str = r#"{"timestamp":1003,"type":"ask","ask":"tool","partial":false,"metadata":{"tool":"editedExistingFile","path":"a.js"}}"#;
const COMMAND: &str =
    r#"{"timestamp":1003,"type":"ask","ask":"command","partial":false,"content":"sleep 40"}"#;
const NEXT: &str = r#"{"timestamp":1010,"type":"say","say":"api_req_started","metadata":{"apiProtocol":"openai"}}"#;
const RESULT: &str = r#"{"timestamp":1020,"type":"say","say":"completion_result","partial":false,"content":"Done."}"#;
const DONE: &str = r#"{"timestamp":1021,"type":"ask","ask":"completion_result"}"#;
const APPROVE: &str = r#"> {"type":"respondToApproval","approved":true}"#;

/// One process's story: `+N` lets N ms pass, `> …` is written to it, `exit N` is its end, the rest
/// it prints, a millisecond apart.
struct Story {
    replay: Replay,
    now: Timestamp,
    seen: Vec<String>,
}

impl Story {
    fn new() -> Self {
        Self { replay: Replay::new(Harness::KiloCode), now: Timestamp(50_000), seen: Vec::new() }
    }

    fn tell(mut self, lines: &[&str]) -> Self {
        for line in lines {
            if let Some(ms) = line.strip_prefix('+') {
                self.now = self.now.plus_ms(ms.parse().expect("a number"));
                let scenes = self.replay.run_until(self.now);
                self.note(&scenes);
                continue;
            }
            self.now = self.now.plus_ms(1);
            let exit = line.strip_prefix("exit ");
            let exited = exit.map(|code| format!(r#"{{"exited":true,"exitCode":{code}}}"#));
            let (direction, payload) = match line.strip_prefix("> ") {
                Some(told) => (Direction::ToAgent, told),
                None => (Direction::FromAgent, exited.as_deref().unwrap_or(line)),
            };
            let channel = if exit.is_some() { Channel::Process } else { Channel::Stream };
            let signal = signal(self.now, channel, direction, payload.as_bytes());
            let scenes = self.replay.play(&signal);
            self.note(&scenes);
        }
        self
    }

    fn note(&mut self, scenes: &[Scene]) {
        for scene in scenes {
            if let Scene::Changed { state, .. } = scene {
                self.seen.push(state.state.as_str().to_owned());
            }
        }
    }

    fn state(&self) -> &str {
        self.seen.last().map_or("nothing", String::as_str)
    }
}

fn signal(at: Timestamp, channel: Channel, direction: Direction, payload: &[u8]) -> Signal<'_> {
    Signal { at, seq: 0, channel, direction, file: None, payload }
}

fn check(lines: &[&str], expected: &str) {
    let story = Story::new().tell(lines);
    assert_eq!(story.state(), expected, "{:?} after {lines:?}", story.seen);
}

#[test]
fn a_prompt_and_a_request_are_work_and_the_handed_over_result_ends_it() {
    check(&[WELCOME, PROMPT], "thinking");
    check(&[WELCOME, PROMPT, REQUEST, USAGE], "thinking");
    check(&[WELCOME, PROMPT, REQUEST, USAGE, RESULT], "thinking");
    check(&[WELCOME, PROMPT, REQUEST, USAGE, RESULT, DONE], "task_complete");
}

#[test]
fn a_result_whose_handing_over_was_lost_ends_the_turn_after_a_while() {
    check(&[WELCOME, PROMPT, REQUEST, RESULT, "+399"], "thinking");
    check(&[WELCOME, PROMPT, REQUEST, RESULT, "+400"], "task_complete");
}

#[test]
fn a_client_without_a_prompt_waits_for_one() {
    check(&[WELCOME, "+4000"], "nothing");
    check(&[WELCOME, "+5001"], "idle");
}

#[test]
fn an_allowed_read_never_shows_as_a_permission() {
    let story = Story::new().tell(&[WELCOME, PROMPT, REQUEST, READ, "+2300", NEXT]);
    assert!(!story.seen.iter().any(|state| state == "needs_permission"), "{:?}", story.seen);
    check(&[WELCOME, PROMPT, REQUEST, READ, "+2501"], "needs_permission");
}

#[test]
fn a_write_or_a_command_needs_somebody_after_a_short_silence() {
    check(&[WELCOME, PROMPT, REQUEST, WRITE, "+399"], "thinking");
    check(&[WELCOME, PROMPT, REQUEST, WRITE, "+401"], "needs_permission");
    check(&[WELCOME, PROMPT, REQUEST, COMMAND, "+401"], "needs_permission");
    check(&[WELCOME, PROMPT, REQUEST, WRITE, "+401", APPROVE], "acting");
    let reject = r#"> {"type":"respondToApproval","approved":false,"text":"no"}"#;
    check(&[WELCOME, PROMPT, REQUEST, WRITE, "+401", reject], "thinking");
}

#[test]
fn what_was_answered_once_is_asked_about_at_once_and_what_was_allowed_is_waited_for() {
    let again = WRITE.replace("1003", "1011");
    let answered = [WELCOME, PROMPT, REQUEST, WRITE, "+401", APPROVE, NEXT, again.as_str()];
    check(&answered, "needs_permission");
    let allowed = [WELCOME, PROMPT, REQUEST, WRITE, "+100", NEXT, again.as_str(), "+1000"];
    check(&allowed, "thinking");
}

#[test]
fn with_auto_nobody_is_ever_asked() {
    check(&[AUTO, PROMPT, REQUEST, WRITE, "+60000"], "thinking");
    let followup =
        r#"{"timestamp":1003,"type":"ask","ask":"followup","metadata":{"question":"Which?"}}"#;
    check(&[AUTO, PROMPT, REQUEST, followup, "+60000"], "thinking");
}

#[test]
fn the_second_copy_of_an_ask_after_its_answer_opens_nothing() {
    check(&[WELCOME, PROMPT, REQUEST, WRITE, "+401", APPROVE, WRITE, "+3000"], "acting");
}

#[test]
fn an_ask_that_is_printed_complete_after_its_output_opens_nothing() {
    let partial = r#"{"timestamp":1003,"type":"ask","ask":"command","partial":true}"#;
    let output = r#"{"timestamp":1004,"type":"ask","ask":"command_output","partial":true,"isAnswered":false,"metadata":{"executionId":"1003","command":"sleep 40","output":""}}"#;
    check(&[WELCOME, PROMPT, REQUEST, partial, output, COMMAND, "+3000"], "acting");
}

#[test]
fn the_output_of_a_command_never_waits() {
    let running = r#"{"timestamp":1004,"type":"ask","ask":"command_output","partial":true,"isAnswered":false,"metadata":{"executionId":"1003","command":"sleep 40","output":""}}"#;
    let ended = r#"{"timestamp":1004,"type":"ask","ask":"command_output","partial":false,"isAnswered":false,"metadata":{"executionId":"1003","command":"sleep 40","output":"","exitCode":0}}"#;
    check(&[WELCOME, PROMPT, REQUEST, COMMAND, running, "+30000"], "acting");
    check(&[WELCOME, PROMPT, REQUEST, COMMAND, running, ended, "+3000"], "thinking");
}

#[test]
fn a_question_waits_until_it_is_answered() {
    let followup = r#"{"timestamp":1003,"type":"ask","ask":"followup","metadata":{"question":"Which?","suggest":[]}}"#;
    let partial = r#"{"timestamp":1003,"type":"ask","ask":"followup","partial":true,"metadata":{"question":"Wh"}}"#;
    let answer = r#"> {"type":"askResponse","askResponse":"messageResponse","text":"Hello"}"#;
    let feedback = r#"{"timestamp":1004,"type":"say","say":"user_feedback","content":"Hello"}"#;
    check(&[WELCOME, PROMPT, REQUEST, partial, "+9000"], "thinking");
    check(&[WELCOME, PROMPT, REQUEST, partial, followup], "awaiting_input");
    check(&[WELCOME, PROMPT, REQUEST, followup, answer], "thinking");
    check(&[WELCOME, PROMPT, REQUEST, followup, feedback], "thinking");
    check(&[WELCOME, PROMPT, REQUEST, followup, NEXT], "thinking");
}

#[test]
fn a_failed_request_needs_somebody_until_it_is_retried() {
    let failed = r#"{"timestamp":1003,"type":"ask","ask":"api_req_failed","content":"OpenAI completion error: 401 Invalid API key"}"#;
    let retried = r#"{"timestamp":1004,"type":"say","say":"api_req_retried"}"#;
    let retry = r#"> {"type":"askResponse","askResponse":"yesButtonClicked"}"#;
    check(&[WELCOME, PROMPT, REQUEST, failed], "auth_error");
    check(&[WELCOME, PROMPT, REQUEST, failed, retry], "thinking");
    check(&[WELCOME, PROMPT, REQUEST, failed, retried], "thinking");
    check(&[WELCOME, PROMPT, REQUEST, failed, USAGE], "thinking");
}

#[test]
fn every_ask_that_is_a_failure_shows_as_one() {
    for (ask, expected) in [
        (r#""mistake_limit_reached","content":"no tools used""#, "error"),
        (
            r#""payment_required_prompt","metadata":{"title":"Low","message":"Add credits"}"#,
            "usage_limit",
        ),
        (r#""invalid_model","metadata":{"modelId":"m","error":{"status":401}}"#, "error"),
        (r#""api_req_failed","content":"429 Too many requests""#, "usage_limit"),
        (r#""api_req_failed","content":"503 Overloaded""#, "server_error"),
    ] {
        let line = format!(r#"{{"timestamp":1003,"type":"ask","ask":{ask}}}"#);
        check(&[WELCOME, PROMPT, REQUEST, &line], expected);
    }
}

#[test]
fn a_countdown_is_a_retry_and_not_a_failure() {
    let delayed = r#"{"timestamp":1003,"type":"say","say":"api_req_retry_delayed","partial":true,"content":"401\n<retry_timer>5</retry_timer>"}"#;
    let over = r#"{"timestamp":1003,"type":"say","say":"api_req_retry_delayed","partial":false,"content":"401"}"#;
    check(&[WELCOME, PROMPT, REQUEST, delayed], "retrying");
    check(&[WELCOME, PROMPT, REQUEST, delayed, over], "thinking");
    check(&[WELCOME, PROMPT, REQUEST, delayed, USAGE], "thinking");
}

#[test]
fn a_canceled_task_is_interrupted_when_the_client_says_so() {
    let cancel = r#"> {"type":"cancelTask"}"#;
    let resume = r#"{"timestamp":1004,"type":"ask","ask":"resume_task"}"#;
    let go_on = r#"> {"type":"askResponse","askResponse":"messageResponse","text":"go on"}"#;
    check(&[WELCOME, PROMPT, REQUEST, cancel, "+30000"], "thinking");
    check(&[WELCOME, PROMPT, REQUEST, cancel, resume], "interrupted");
    check(&[WELCOME, PROMPT, REQUEST, cancel, resume, go_on], "thinking");
}

#[test]
fn a_continued_task_is_not_worked_through_again() {
    let old: Vec<String> =
        [PROMPT, USAGE, READ, RESULT, DONE].iter().map(|line| line.replace(":10", ":9")).collect();
    let mut lines = vec![WELCOME];
    lines.extend(old.iter().map(String::as_str));
    let resume = r#"{"timestamp":1005,"type":"ask","ask":"resume_completed_task"}"#;
    lines.push(resume);
    let story = Story::new().tell(&lines);
    assert_eq!(story.seen, ["task_complete"]);
}

#[test]
fn a_subtask_delegates_and_its_parents_reprint_changes_nothing() {
    let new_task = r#"{"timestamp":1003,"type":"ask","ask":"tool","partial":false,"metadata":{"tool":"newTask","mode":"Ask","content":"explain"}}"#;
    let echo = r#"{"timestamp":1004,"type":"say","say":"text","content":"explain"}"#;
    let child_result = r#"{"timestamp":1011,"type":"say","say":"completion_result","partial":false,"content":"Nothing."}"#;
    let finish = r#"{"timestamp":1012,"type":"ask","ask":"tool","metadata":{"tool":"finishTask"}}"#;
    let back = r#"{"timestamp":1013,"type":"say","say":"subtask_result","content":"Nothing."}"#;
    let delegated = [WELCOME, PROMPT, REQUEST, USAGE, new_task, "+200", echo, NEXT];
    check(&delegated, "delegating");
    let mut lines = delegated.to_vec();
    lines.extend([child_result, "+1000", finish, "+900", PROMPT, USAGE, new_task]);
    check(&lines, "delegating");
    lines.push(back);
    check(&lines, "thinking");
    lines.extend([RESULT, DONE]);
    check(&lines, "task_complete");
}

#[test]
fn a_refused_configuration_is_a_failure_although_it_exits_with_0() {
    let refused = r#"{"timestamp":1,"type":"welcome","metadata":{"welcomeOptions":{"clearScreen":false,"showInstructions":true,"instructions":["Configure a provider"]}}}"#;
    check(&[refused], "error");
    check(&[refused, "exit 0"], "error");
}

#[test]
fn an_exit_or_a_deadly_signal_ends_the_session() {
    check(&[WELCOME, PROMPT, REQUEST, "exit 143"], "session_ended");
    check(&[WELCOME, PROMPT, REQUEST, WRITE, "+401", "exit 0"], "session_ended");
    check(&[WELCOME, PROMPT, REQUEST, "> \"SIGTERM\""], "session_ended");
}

#[test]
fn cline_says_what_it_does_itself_and_asks_only_a_person() {
    let task = r#"{"ts":1001,"type":"say","say":"task","text":"add a greeting"}"#;
    let request =
        r#"{"ts":1002,"type":"say","say":"api_req_started","text":"{\"request\":\"…\"}"}"#;
    let read =
        r#"{"ts":1003,"type":"say","say":"tool","text":"{\"tool\":\"readFile\",\"path\":\"a\"}"}"#;
    let write = r#"{"ts":1004,"type":"ask","ask":"tool","partial":false,"text":"{\"tool\":\"editedExistingFile\",\"path\":\"a\"}"}"#;
    let started = r#"{"type":"task_started","taskId":"17"}"#;
    check(&[started, task, request], "thinking");
    check(&[started, task, request, read], "acting");
    check(&[started, task, request, read, write], "needs_permission");
    let result = r#"{"ts":1005,"type":"say","say":"completion_result","text":"Done."}"#;
    check(&[started, task, request, result], "task_complete");
    let failed = r#"{"ts":1003,"type":"ask","ask":"api_req_failed","text":"{\"message\":\"401 Invalid API key\",\"status\":401}"}"#;
    let error =
        r#"{"type":"error","message":"{\"message\":\"401 Invalid API key\",\"status\":401}"}"#;
    check(&[started, task, request, failed], "auth_error");
    check(&[started, task, request, error], "auth_error");
}

#[test]
fn cline_3_works_delegates_and_delivers_in_its_own_words() {
    let hook = |name: &str, more: &str| {
        format!(
            r#"{{"ts":1,"type":"hook_event","hookEventName":"{name}","agentId":"a","taskId":"t"{more}}}"#
        )
    };
    let start = hook("agent_start", "");
    let think = r#"{"ts":2,"type":"agent_event","event":{"type":"iteration_start"}}"#;
    let call = hook("tool_call", r#","toolName":"read"}"#.trim_end_matches('}'));
    let back = hook("tool_result", "");
    let child = hook("agent_start", r#","parentAgentId":"p""#);
    let end = hook("agent_end", "");
    let result = r#"{"type":"run_result","finishReason":"completed","durationMs":5,"text":"Done.","model":{}}"#;
    check(&[&start, think], "thinking");
    check(&[&start, think, &call], "acting");
    check(&[&start, think, &call, &back], "thinking");
    check(&[&start, think, &child], "delegating");
    check(&[&start, think, &end, result], "task_complete");
    check(&[&start, think, &end, "+401"], "idle");
    let failed = result.replace("completed", "error");
    check(&[&start, think, &failed], "error");
}

#[test]
fn the_session_is_named_by_the_first_name_and_keeps_it() {
    let mut handler = SayAsk::default();
    let hear = |handler: &mut SayAsk, line: &str| {
        handler.handle_signal(&signal(
            Timestamp(1),
            Channel::Stream,
            Direction::FromAgent,
            line.as_bytes(),
        ))
    };
    let started = r#"{"type":"task_started","taskId":"17"}"#;
    hear(&mut handler, started);
    assert_eq!(&*hear(&mut handler, PROMPT)[0].session, "17");

    let mut handler = SayAsk::default();
    assert_eq!(&*hear(&mut handler, PROMPT)[0].session, "stream");
    hear(&mut handler, r#"{"event":"session_created","sessionId":"late","timestamp":3}"#);
    assert_eq!(&*hear(&mut handler, REQUEST)[0].session, "stream");
}

#[test]
fn a_process_that_told_nothing_leaves_no_session() {
    let mut handler = SayAsk::default();
    let exited = br#"{"sessionId":"sess_ours","pid":7,"procStart":42,"exited":true}"#;
    let end = signal(Timestamp(1), Channel::Process, Direction::FromAgent, exited);
    assert_eq!(handler.handle_signal(&end), []);
    assert_eq!(handler.unrecognised(), 0);
}

#[test]
fn what_nobody_understands_is_kept_and_creates_no_session() {
    let huge = format!(r#"{{"type":"say","say":"text","content":"{}"}}"#, "x".repeat(5 << 20));
    let broken: [&[u8]; 7] = [
        b"{\"timestamp\":1,\"type\":\"sa",
        b"{\"timestamp\":\"x\",\"type\":\"say\",\"say\":1}",
        b"\xff\xfe{",
        b"{\"type\":\"something_new\"}",
        b"null",
        b"",
        huge.as_bytes(),
    ];
    let mut handler = SayAsk::default();
    for (nth, payload) in broken.iter().enumerate() {
        let signal = signal(Timestamp(1), Channel::Stream, Direction::FromAgent, payload);
        assert_eq!(handler.handle_signal(&signal), []);
        assert_eq!(handler.unrecognised(), nth as u64 + 1);
    }
    let known = signal(Timestamp(2), Channel::Stream, Direction::FromAgent, PROMPT.as_bytes());
    assert!(!handler.handle_signal(&known).is_empty());
    for payload in broken {
        let signal = signal(Timestamp(3), Channel::Stream, Direction::FromAgent, payload);
        let sightings = handler.handle_signal(&signal);
        assert_eq!(sightings.len(), 1);
        assert!(
            matches!(&sightings[0].event.fact, Fact::Unrecognised { text } if text.len() <= 2 << 10)
        );
    }
}

#[test]
fn an_ask_nobody_knows_changes_nothing() {
    let unknown = r#"{"timestamp":1003,"type":"ask","ask":"brand_new","content":"?"}"#;
    check(&[WELCOME, PROMPT, REQUEST, unknown, "+9000"], "thinking");
}

#[test]
fn no_cut_of_a_line_panics_or_says_anything() {
    let mut handler = SayAsk::default();
    for line in [WELCOME, PROMPT, REQUEST, USAGE, READ, WRITE, COMMAND, RESULT, DONE] {
        for cut in 0..line.len() {
            for direction in [Direction::FromAgent, Direction::ToAgent] {
                let heard =
                    signal(Timestamp(1), Channel::Stream, direction, &line.as_bytes()[..cut]);
                assert_eq!(handler.handle_signal(&heard), [], "{}", &line[..cut]);
            }
        }
    }
}
