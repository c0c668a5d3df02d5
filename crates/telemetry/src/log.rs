//! Lines of the log about driven sessions, with the same fields in all of them:
//! `session_id stream_id run_id tool_name hook_name attempt duration_ms error_code`.
//!
//! Invariant: what an agent or a model wrote is in no line above debug, and there without what can
//! be recognised as a secret. Names of tools are the exception, and they are cut.

use qd_broker::driving::{Job, Report, Work};
use qd_harness::secret::{redacted, redacted_json};
use qd_session::id::{RunId, SessionId, ToolName};
use qd_session::machine::{Change, HookLifecycle, RunStatus, Shown, ToolLifecycle};
use serde_json::Value;
use tracing::{debug, info, warn};

use super::meter::duration;
use super::word::word;
use crate::meter::LABEL_CHARS_MAX;

/// Longest arguments or message in a line of the log, which are there at debug only.
const LOGGED_TEXT_BYTES_MAX: usize = 4 << 10;

/// What was shown.
pub fn change(shown: &Shown) {
    let session_id = shown.session_id.as_str();
    match &shown.change {
        Change::StateChanged(changed) => {
            let stream_id = changed.stream_id.as_ref().map(|stream| stream.as_str());
            let (from, to, reason) = (&changed.from, &changed.to, word(&changed.reason));
            info!(session_id, stream_id, ?from, ?to, reason = &*reason, "state changed");
        }
        Change::ToolLifecycle(run) => tool(session_id, run),
        Change::HookLifecycle(run) => hook(session_id, run),
        Change::SessionError(error) => {
            let (error_code, source) = (word(&error.code), word(&error.source));
            let (error_code, source, retryable) = (&*error_code, &*source, error.retryable);
            warn!(session_id, error_code, source, retryable, "session error");
            debug!(session_id, error_code, message = shortened(redacted(&error.message)), "why");
        }
    }
}

fn tool(session_id: &str, run: &ToolLifecycle) {
    let (run_id, attempt) = (run.run_id.as_str(), run.attempt);
    let tool_name = name(&run.tool_name);
    match run.status {
        RunStatus::Queued => debug!(session_id, run_id, tool_name, attempt, "tool queued"),
        RunStatus::Running => info!(session_id, run_id, tool_name, attempt, "tool started"),
        RunStatus::Succeeded | RunStatus::Failed | RunStatus::Canceled => {
            let duration_ms = duration(run.started_at_ms, run.finished_at_ms);
            let error_code = error_code(run.status, "tool_execution_failed");
            let status = &*word(&run.status);
            info!(
                session_id,
                run_id, tool_name, attempt, status, duration_ms, error_code, "tool ended"
            );
            if let Some(error) = &run.error {
                debug!(session_id, run_id, message = shortened(redacted(error)), "why");
            }
        }
    }
}

fn hook(session_id: &str, run: &HookLifecycle) {
    let (run_id, hook_name, attempt) = (run.run_id.as_str(), &*run.hook_name, run.attempt);
    match run.status {
        RunStatus::Queued => debug!(session_id, run_id, hook_name, attempt, "hook queued"),
        RunStatus::Running => info!(session_id, run_id, hook_name, attempt, "hook started"),
        RunStatus::Succeeded | RunStatus::Failed | RunStatus::Canceled => {
            let duration_ms = duration(run.started_at_ms, run.finished_at_ms);
            let error_code = error_code(run.status, "hook_execution_failed");
            let status = &*word(&run.status);
            info!(
                session_id,
                run_id, hook_name, attempt, status, duration_ms, error_code, "hook ended"
            );
            if let Some(error) = &run.error {
                debug!(session_id, run_id, message = shortened(redacted(error)), "why");
            }
        }
    }
}

/// What a runner is given: arguments of tools, for whoever looks for a mistake.
pub fn job(job: &Job) {
    if let Work::RunTools { tools, .. } = &job.work {
        for order in tools {
            let run = Some(&order.run);
            arguments(&job.session, run, &order.call.name, &order.call.arguments);
        }
    }
}

/// What a runner told, as far as no change tells it.
pub fn report(session: &SessionId, report: &Report) {
    let session_id = session.as_str();
    if let Report::Exited { code, .. } = report {
        let reason = match code {
            Some(0) => "ended",
            Some(_) => "failed",
            None => "killed",
        };
        info!(session_id, exit_code = code, reason, "harness exited");
    }
    if let Report::ToolReported { call, .. } = report {
        arguments(session, None, &call.name, &call.arguments);
    }
}

fn arguments(session: &SessionId, run: Option<&RunId>, tool: &ToolName, arguments: &Value) {
    debug!(
        session_id = session.as_str(),
        run_id = run.map(|run| run.as_str()),
        tool_name = name(tool),
        arguments = shortened(redacted_json(arguments).to_string()),
        "tool called"
    );
}

fn error_code(status: RunStatus, code: &'static str) -> Option<&'static str> {
    (status == RunStatus::Failed).then_some(code)
}

/// A model may call any name, however long.
fn name(tool: &ToolName) -> &str {
    let name = tool.as_str();
    name.char_indices().nth(LABEL_CHARS_MAX).map_or(name, |(end, _)| &name[..end])
}

/// After what is secret was taken out: a half of it would not be recognised.
fn shortened(mut text: String) -> String {
    if text.len() > LOGGED_TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(LOGGED_TEXT_BYTES_MAX));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use qd_session::moment::Timestamp;
    use serde_json::json;

    use super::*;

    #[derive(Clone, Default)]
    struct Paper(Arc<Mutex<Vec<u8>>>);

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("no panic").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn logged(tell: impl FnOnce()) -> String {
        let paper = Paper::default();
        let writer = paper.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .without_time()
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::with_default(subscriber, tell);
        String::from_utf8(paper.0.lock().expect("no panic").clone()).expect("text")
    }

    fn shown(told: Value) -> Shown {
        let change = serde_json::from_value(told).expect("a change");
        let timestamp_ms = Timestamp(9);
        Shown { event_id: "evt_1".into(), timestamp_ms, session_id: "sess_1".into(), change }
    }

    fn check(log: &str, fields: &[&str]) {
        for field in fields {
            assert!(log.contains(field), "no {field} in {log}");
        }
    }

    #[test]
    fn failures_and_ends_are_told_with_their_codes() {
        let error = json!({"type": "session_error", "code": "streaming_failed",
            "message": "moonraker", "retryable": true, "source": "harness"});
        let log = logged(|| change(&shown(error)));
        let fields = ["session error", "session_id=\"sess_1\"", "error_code=\"streaming_failed\""];
        check(&log, &fields);
        assert!(!log.contains("moonraker"), "{log}");

        let run = json!({"type": "tool_lifecycle", "runId": "toolrun_1", "callId": "c",
            "toolName": "bash", "mutating": true, "status": "failed", "attempt": 2,
            "startedAtMs": 1, "finishedAtMs": 8, "error": "moonraker"});
        let log = logged(|| change(&shown(run)));
        let fields = ["tool ended", "error_code=\"tool_execution_failed\"", "duration_ms=7"];
        check(&log, &fields);
        assert!(!log.contains("moonraker"), "{log}");

        let ended = Report::Exited { code: Some(3), why: Some("moonraker".into()) };
        let log = logged(|| report(&"sess_1".into(), &ended));
        check(&log, &["harness exited", "exit_code=3", "reason=\"failed\""]);
        assert!(!log.contains("moonraker"), "{log}");
    }
}
