//! `kill -9` of the daemon: an agent ends with it, and so does whatever the agent started.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use qd_harness::driver::Protocol;

use super::world::Agent;

const MARK: &str = "QD_AGENTS_TEST_MARK";
const DEAF: &str = "QD_AGENTS_TEST_DEAF";

/// Far more than it takes; a machine may be busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// An agent with a command in a session of its own and one that lost its parent. It is ready before
/// it is asked, and reads nothing more.
const AGENT: &str = r#"
setsid sleep MARK &
(setsid sh -c 'sleep MARK & exit' &)
echo '{"type":"control_response","response":{"subtype":"success","request_id":"qd-1","response":{}}}'
exec sleep MARK
"#;

fn check(deaf: bool) {
    let mark = mark();
    let ready = ready_file(&mark);
    let mut daemon = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "killed::daemon_that_runs_an_agent_until_it_is_killed", "--nocapture"])
        .env(MARK, &mark)
        .envs(deaf.then_some((DEAF, "1")))
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    until("the agent runs", || ready.exists() && alive(&mark).len() >= 3);
    daemon.kill().expect("ours");
    daemon.wait().expect("ours");
    until("all are gone", || alive(&mark).is_empty());
    std::fs::remove_file(ready).expect("ours");
}

#[test]
fn the_daemons_kill_ends_an_agent_and_what_it_started() {
    check(false);
}

/// What was written to it fills its pipe, and the warden waits to write more.
#[test]
fn the_daemons_kill_ends_an_agent_that_does_not_read() {
    check(true);
}

/// The daemon of the tests above; by itself it does nothing.
#[test]
fn daemon_that_runs_an_agent_until_it_is_killed() {
    let Ok(mark) = std::env::var(MARK) else { return };
    let script = AGENT.replace("MARK", &mark);
    let mut agent = Agent::of_script(&script, PATIENCE, Protocol::ClaudeCode);
    agent.ready();
    if std::env::var(DEAF).is_ok() {
        agent.prompt(&"x".repeat(1 << 20));
    }
    std::fs::write(ready_file(&mark), "").expect("written");
    let exit = agent.exited();
    panic!("it outlived the daemon: {exit:?}");
}

fn ready_file(mark: &str) -> PathBuf {
    std::env::temp_dir().join(format!("qd-agents-{mark}"))
}

/// A number that nobody else sleeps for.
fn mark() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("700{:07}{number:03}", std::process::id())
}

/// Processes that sleep for it.
fn alive(mark: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").expect("processes").flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.starts_with("sleep") && line.contains(mark)).collect()
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::yield_now();
    }
}
