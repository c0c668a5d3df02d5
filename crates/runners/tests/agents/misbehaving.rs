//! Agents that break every promise: a clear error or a report, and never a hang.

use std::time::Duration;

use qd_harness::driver::{Cannot, Command, Protocol, Report};
use qd_runners::agents::Told;

use super::world::Agent;

/// Longer than any of these takes, so that only what is tested ends it.
const LONG: Duration = Duration::from_secs(60);

const READY: &str = r#"read hello
echo '{"type":"control_response","response":{"subtype":"success","request_id":"qd-1","response":{}}}'
"#;

fn agent(script: &str) -> Agent {
    Agent::of_script(script, LONG, Protocol::ClaudeCode)
}

#[track_caller]
fn unrecognised(agent: &mut Agent) -> String {
    agent.wait_for("something unrecognised", |told| {
        if let Told::Report(Report::Unrecognised { text }) = told {
            Some(text.to_string())
        } else {
            None
        }
    })
}

#[test]
fn garbage_is_a_report_and_the_agent_is_heard_on() {
    let mut agent = agent(&format!(
        r#"echo 'Warning: something'; printf '\377\376\n'; echo '{{"type":"new_thing"}}'
{READY} read more"#
    ));
    assert_eq!(unrecognised(&mut agent), "Warning: something");
    assert_eq!(unrecognised(&mut agent), "\u{fffd}\u{fffd}");
    assert_eq!(unrecognised(&mut agent), r#"{"type":"new_thing"}"#);
    agent.ready();
}

#[test]
fn half_a_line_is_heard_before_the_end() {
    let mut agent = agent(r#"printf '{"type":"system","subty'; exit 3"#);
    assert_eq!(unrecognised(&mut agent), r#"{"type":"system","subty"#);
    assert_eq!(agent.exited().code, Some(3));
}

#[test]
fn a_line_that_is_far_too_long_is_skipped() {
    let mut agent =
        agent(&format!("head -c 9000000 /dev/zero | tr '\\0' x; echo; {READY} read more"));
    assert!(unrecognised(&mut agent).contains("a line of 9000000 bytes"));
    agent.ready();
}

#[test]
fn silence_at_the_start_is_an_error_after_its_time() {
    let short = Duration::from_millis(300);
    let mut agent = Agent::of_script("sleep 1000", short, Protocol::ClaudeCode);
    let exit = agent.exited();
    assert_eq!(exit.code, None);
    let error = exit.error.expect("it says why");
    assert!(error.contains("did not come up within 0.3 seconds"), "{error}");
}

#[test]
fn an_early_exit_is_told_with_its_code_and_its_last_words() {
    let mut agent = agent("echo 'first' >&2; echo 'no such model: opus-9' >&2; exit 7");
    let exit = agent.exited();
    assert_eq!(exit.code, Some(7));
    assert_eq!(exit.error.as_deref(), Some("first\nno such model: opus-9"));
}

#[test]
fn an_agent_that_refuses_to_come_up_is_given_up_with_its_reason() {
    let mut agent = agent(
        r#"read hello
echo '{"type":"control_response","response":{"subtype":"error","request_id":"qd-1","error":"sign in"}}'
sleep 1000"#,
    );
    let error = agent.exited().error.expect("it says why");
    assert!(error.contains("sign in"), "{error}");
}

#[test]
fn a_program_that_is_not_there_is_said_to_be() {
    let mut agent = Agent::of_program("/nowhere/claude".into());
    let error = agent.exited().error.expect("it says why");
    assert!(error.contains("cannot start /nowhere/claude"), "{error}");
}

#[test]
fn an_agent_that_reads_nothing_is_ended() {
    // Ready by guessing the id of our first line, then deaf.
    let mut agent = agent(
        r#"echo '{"type":"control_response","response":{"subtype":"success","request_id":"qd-1","response":{}}}'
exec sleep 1000"#,
    );
    agent.ready();
    let text = "x".repeat(1 << 20);
    agent.prompt(&text);
    let mut taken = 0;
    // More than the pipes to it take; each order is one line more, and the queue takes the rest.
    while agent.order(Command::SetMode(qd_harness::driver::Mode::Ask)).is_ok() && taken < 255 {
        taken += 1;
    }
    let _ = agent.try_order(Command::SetMode(qd_harness::driver::Mode::Ask));
    let error = agent.exited().error.expect("it says why");
    assert!(error.contains("does not read its input"), "{error}");
}

#[test]
fn whatever_it_has_started_dies_with_it() {
    let mut agent = agent(&format!(
        r#"setsid sleep 1000 & echo "child $!"
{READY} exec sleep 1000"#
    ));
    let child = unrecognised(&mut agent);
    let child: u32 = child.strip_prefix("child ").and_then(|pid| pid.parse().ok()).expect("a pid");
    agent.ready();
    let root = agent.pid.expect("it was started");
    let lives = |pid: u32| std::path::Path::new(&format!("/proc/{pid}/status")).exists();
    assert!(lives(child) && lives(root));
    agent.cancel();
    assert!(!is_running(child), "a session of its own did not save it");
    assert!(!is_running(root));
}

/// Asked to end it goes on; it is killed after its time, and that is the turn's end.
#[test]
fn an_agent_that_is_deaf_to_signals_is_ended() {
    let script = r#"[ "$0" = --version ] && exit 0
trap '' TERM
echo '{"type":"task_started","taskId":"t1"}'
while :; do sleep 1; done"#;
    let mut agent = Agent::of_script(script, LONG, Protocol::Cline);
    agent.ready();
    agent.prompt("go");
    agent.wait_for("its task", |told| {
        matches!(told, Told::Report(Report::VendorSession { .. })).then_some(())
    });
    agent.order(Command::Interrupt).expect("a turn runs");
    assert_eq!(agent.completed(), "");
    agent.exited();
    assert!(!is_running(agent.pid.expect("it was started")));
}

/// Ended and not yet taken note of by its new parent is ended.
fn is_running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

#[test]
fn commands_that_make_no_sense_are_refused_and_change_nothing() {
    let mut agent = agent(&format!("{READY} read more; echo got $more; read rest"));
    agent.ready();
    assert_eq!(agent.order(Command::Interrupt), Err(Cannot::Idle));
    let decide = Command::Decide { call: "nothing".into(), decision: super::world::ALLOW };
    assert_eq!(agent.order(decide), Err(Cannot::NotAsked));
    agent.prompt("one");
    assert!(unrecognised(&mut agent).contains("one"), "the prompt is the first line it read");
    assert_eq!(agent.order(Command::Prompt { text: "two".into() }), Err(Cannot::Busy));
}
