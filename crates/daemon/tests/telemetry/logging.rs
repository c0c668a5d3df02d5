//! The log of a session, with a secret in the arguments of its call.

use super::log::Log;
use super::world::{Daemon, PRIVATE, SECRET};

/// What a session writes at a level.
async fn logged(level: &str) -> String {
    let log = Log::listen(level);
    let daemon = Daemon::start(&format!("log-{level}"), None);
    let session = daemon.drive().await;
    daemon.end(session).await;
    daemon.stop().await;
    log.text()
}

const FAILED: &str = "error_code=\"hook_execution_failed\"";

/// The line with these words has these fields.
fn check(log: &str, words: &str, fields: &[&str]) {
    let mut lines = log.lines().filter(|line| line.contains(words));
    let has = |line: &str| fields.iter().all(|field| line.contains(field));
    assert!(lines.any(has), "no {words:?} with {fields:?} in\n{log}");
}

#[tokio::test]
async fn a_session_is_told_step_by_step_and_no_argument_is_in_it() {
    let log = logged("info").await;
    check(
        &log,
        "state changed",
        &[
            "session_id=\"sess_",
            "stream_id=\"turn_",
            "from=Ready to=CallingLlm reason=\"user_input\"",
        ],
    );
    check(
        &log,
        "tool started",
        &["session_id=\"sess_", "run_id=\"toolrun_", "tool_name=\"bash\"", "attempt=1"],
    );
    check(&log, "tool ended", &["run_id=\"toolrun_", "status=\"succeeded\"", "duration_ms="]);
    check(&log, "hook started", &["run_id=\"hookrun_", "hook_name=\"format\"", "attempt=1"]);
    let failed = ["hook_name=\"format\"", "status=\"failed\"", "duration_ms=", FAILED];
    check(&log, "hook ended", &failed);
    check(&log, "session error", &["session_id=\"sess_", FAILED, "source=\"hook\""]);
    check(&log, "harness exited", &["session_id=\"sess_", "exit_code=0", "reason=\"ended\""]);
    for private in [SECRET, PRIVATE, "hunter2", "API_KEY", "arguments"] {
        assert!(!log.contains(private), "{private} in\n{log}");
    }
}

#[tokio::test]
async fn arguments_are_told_at_debug_without_what_is_secret() {
    let log = logged("debug").await;
    check(&log, "why", &["run_id=\"hookrun_", PRIVATE, "REDACTED"]);
    check(&log, "tool called", &["tool_name=\"bash\"", "run_id=\"toolrun_", PRIVATE, "REDACTED"]);
    for secret in [SECRET, "hunter2"] {
        assert!(!log.contains(secret), "{secret} in\n{log}");
    }
}
