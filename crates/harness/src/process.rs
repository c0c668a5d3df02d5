//! What a process watcher saw, whichever agent it watched, and which processes carry a session.

use qd_session::id::ProcessKey;
use serde::Deserialize;
use serde_json::Value;

use crate::excerpt::head;

/// Everything may be missing: a watcher knows a process, not always whose session it held.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ProcessReport {
    pub session_id: Option<String>,
    pub pid: Option<u64>,
    /// Tells two processes with one number apart: text or a number.
    pub proc_start: Option<Value>,
    exited: Option<bool>,
    /// It was looked for and not found.
    missing: Option<bool>,
    /// It took its registry file away before it left.
    pub removed: Option<bool>,
    #[serde(alias = "exit_code", alias = "code")]
    pub exit_code: Option<i32>,
}

impl ProcessReport {
    pub fn sighting(&self) -> Option<ProcessSighting> {
        let key = self.pid.map(|pid| process_key(pid, self.proc_start.as_ref()));
        match key {
            key if self.exited == Some(true) => Some(ProcessSighting::Exited(key)),
            _ if self.missing == Some(true) => Some(ProcessSighting::Missing),
            Some(key) => Some(ProcessSighting::Seen(key)),
            None => None,
        }
    }

    pub fn has_exited(&self) -> bool {
        matches!(self.sighting(), Some(ProcessSighting::Exited(_)))
    }
}

/// What a report says of a session's process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessSighting {
    /// It lives and holds the session.
    Seen(ProcessKey),
    /// It ended or let go of the session: this one, or whichever held it.
    Exited(Option<ProcessKey>),
    /// Nobody holds the session, as far as one can look.
    Missing,
}

/// One process for ever, as all sources spell it.
pub fn process_key(pid: u64, start: Option<&Value>) -> ProcessKey {
    match start {
        Some(Value::String(start)) => ProcessKey::new(format!("{pid}:{}", head(start, 64))),
        Some(Value::Number(start)) => ProcessKey::new(format!("{pid}:{start}")),
        Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => {
            ProcessKey::new(pid.to_string())
        }
    }
}

/// Most processes of one session remembered; a session is seldom open twice.
const CARRIERS_MAX: usize = 8;

/// The processes that were seen to carry a session and have not ended, oldest first.
#[derive(Debug, Default)]
pub struct Carriers(Vec<ProcessKey>);

impl Carriers {
    pub fn seen(&mut self, process: &ProcessKey) {
        if self.0.contains(process) {
            return;
        }
        if self.0.len() == CARRIERS_MAX {
            self.0.remove(0);
        }
        self.0.push(process.clone());
    }

    /// One has ended; all, if it is not said which. True if nobody is left.
    pub fn exited(&mut self, process: Option<&ProcessKey>) -> bool {
        match process {
            Some(process) => self.0.retain(|known| known != process),
            None => self.0.clear(),
        }
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::signal::Channel;
    use crate::story::Story;
    use crate::{Harness, payload};

    const OBSERVED: [Harness; 3] = [Harness::ClaudeCode, Harness::Codex, Harness::GeminiCli];

    /// A session at work.
    fn working(harness: Harness) -> Story {
        let mut story = Story::of(harness);
        let event = if harness == Harness::GeminiCli { "BeforeAgent" } else { "UserPromptSubmit" };
        let hook = json!({"session_id": "s", "hook_event_name": event, "prompt": "go"});
        story.hear(0, Channel::Hook, &hook);
        story.wait(1_000);
        assert_eq!(story.state(), "autonomous/thinking", "{harness:?}");
        story
    }

    fn seen(pid: u32) -> Value {
        json!({"sessionId": "s", "pid": pid, "procStart": 42})
    }

    fn exited(pid: u32) -> Value {
        json!({"sessionId": "s", "pid": pid, "procStart": 42, "exited": true})
    }

    #[test]
    fn a_session_ends_with_its_process_and_lives_with_the_next() {
        for harness in OBSERVED {
            let mut story = working(harness);
            story.hear(2_000, Channel::Process, &seen(7));
            assert_eq!(story.state(), "autonomous/thinking", "{harness:?}");
            story.hear(3_000, Channel::Process, &exited(7));
            assert_eq!(story.state(), "delivered/session_ended", "{harness:?}");
            story.hear(4_000, Channel::Process, &exited(7));
            assert_eq!(story.state(), "delivered/session_ended", "{harness:?}");
        }
        for harness in [Harness::Codex, Harness::GeminiCli] {
            let mut story = working(harness);
            story.hear(2_000, Channel::Process, &exited(7));
            story.hear(3_000, Channel::Process, &seen(8));
            assert_ne!(story.state(), "delivered/session_ended", "{harness:?}");
        }
    }

    #[test]
    fn the_exit_of_one_of_two_processes_leaves_the_other_its_session() {
        for harness in [Harness::Codex, Harness::GeminiCli] {
            let mut story = working(harness);
            story.hear(2_000, Channel::Process, &seen(7));
            story.hear(3_000, Channel::Process, &seen(8));
            story.hear(4_000, Channel::Process, &exited(8));
            assert_eq!(story.state(), "autonomous/thinking", "{harness:?}");
            story.hear(5_000, Channel::Process, &exited(7));
            assert_eq!(story.state(), "delivered/session_ended", "{harness:?}");
        }
    }

    #[test]
    fn a_missing_process_is_believed_after_a_silence() {
        for harness in OBSERVED {
            let mut story = working(harness);
            let missing = json!({"sessionId": "s", "missing": true});
            story.hear(2_000, Channel::Process, &missing);
            assert_eq!(story.state(), "autonomous/thinking", "{harness:?}");
            story.wait(70_000);
            assert_eq!(story.state(), "delivered/session_ended", "{harness:?}");
        }
    }

    #[test]
    fn an_exit_is_read_with_and_without_its_session() {
        let of = |json: &str| payload::read::<ProcessReport>(json.as_bytes()).expect("a report");
        assert!(of(r#"{"sessionId":"s","exited":true}"#).has_exited());
        assert!(!of(r#"{"sessionId":"s","exited":null,"exitCode":0}"#).has_exited());
        assert_eq!(of(r#"{"exited":true,"code":1}"#).exit_code, Some(1));
        assert_eq!(of(r#"{"exited":true,"exit_code":2}"#).exit_code, Some(2));
    }

    #[test]
    fn a_report_says_one_thing() {
        let of = |json: &str| {
            payload::read::<ProcessReport>(json.as_bytes()).expect("a report").sighting()
        };
        let key = ProcessKey::new("7:42");
        let seen = Some(ProcessSighting::Seen(key.clone()));
        assert_eq!(of(r#"{"sessionId":"s","pid":7,"procStart":42}"#), seen);
        assert_eq!(of(r#"{"sessionId":"s","pid":7,"procStart":"42"}"#), seen);
        let exited = Some(ProcessSighting::Exited(Some(key)));
        assert_eq!(of(r#"{"sessionId":"s","pid":7,"procStart":42,"exited":true}"#), exited);
        assert_eq!(of(r#"{"exited":true}"#), Some(ProcessSighting::Exited(None)));
        assert_eq!(of(r#"{"missing":true}"#), Some(ProcessSighting::Missing));
        assert_eq!(of(r#"{"sessionId":"s"}"#), None);
    }

    #[test]
    fn a_session_is_left_when_its_last_carrier_is() {
        let [one, other] = ["1:1", "2:2"].map(ProcessKey::new);
        let mut carriers = Carriers::default();
        carriers.seen(&one);
        carriers.seen(&other);
        carriers.seen(&one);
        assert!(!carriers.exited(Some(&one)));
        assert!(!carriers.exited(Some(&one)), "told twice");
        assert!(carriers.exited(Some(&other)));
        carriers.seen(&one);
        carriers.seen(&other);
        assert!(carriers.exited(None));
        for pid in 0..=CARRIERS_MAX as u64 {
            carriers.seen(&process_key(pid, None));
        }
        assert_eq!(carriers.0.len(), CARRIERS_MAX);
    }
}
