//! Short stories for tests: signals in, what the operator sees out.
//!
//! Times are milliseconds from the story's begin. The session is `T`, its turn `U`.

use qd_session::monitor::Monitor;

use crate::Harness;
use crate::replay::Scene;
use crate::signal::{Channel, Direction};
use crate::story::{BEGIN_MS, Stage};

/// A telemetry record: when it happened, its name, its other attributes.
pub type Record<'a> = (u64, &'a str, &'a [(&'a str, &'a str)]);

#[allow(missing_debug_implementations)]
pub struct Story {
    stage: Stage,
    seen: Vec<String>,
    last: Vec<(String, String)>,
}

pub fn story() -> Story {
    Story { stage: Stage::new(Harness::Codex, BEGIN_MS), seen: Vec::new(), last: Vec::new() }
}

impl Story {
    /// A hook of turn `U`; `more` are its other fields.
    pub fn hook(self, at: u64, event: &str, more: &str) -> Self {
        let comma = if more.is_empty() { "" } else { "," };
        let payload = format!(
            r#"{{"session_id":"T","turn_id":"U","cwd":"/w","hook_event_name":"{event}"{comma}{more}}}"#
        );
        self.signal(at, Channel::Hook, None, payload.as_bytes())
    }

    /// A line of `T`'s own rollout.
    pub fn line(self, at: u64, kind: &str, payload: &str) -> Self {
        self.line_of("t.jsonl", at, kind, payload)
    }

    pub fn line_of(self, file: &str, at: u64, kind: &str, payload: &str) -> Self {
        let (second, ms) = (at / 1_000, at % 1_000);
        let line = format!(
            r#"{{"timestamp":"2026-11-15T18:40:{second:02}.{ms:03}Z","type":"{kind}","payload":{payload}}}"#
        );
        self.signal(at, Channel::Transcript, Some(file), line.as_bytes())
    }

    /// The first two lines of every rollout.
    pub fn rollout_begins(self, at: u64) -> Self {
        self.line(at, "session_meta", r#"{"id":"T","session_id":"T","cwd":"/w","source":"cli"}"#)
            .line(at, "event_msg", r#"{"type":"task_started","turn_id":"U","root_turn_id":"U"}"#)
            .line(at, "turn_context", r#"{"turn_id":"U","cwd":"/w","approval_policy":"on-request","approvals_reviewer":"user"}"#)
    }

    pub fn server(self, at: u64, message: &str) -> Self {
        self.signal(at, Channel::AppServer, None, message.as_bytes())
    }

    pub fn status(self, at: u64, status: &str) -> Self {
        let message = format!(
            r#"{{"method":"thread/status/changed","params":{{"threadId":"T","status":{status}}}}}"#
        );
        self.server(at, &message)
    }

    pub fn exec(self, at: u64, line: &str) -> Self {
        self.signal(at, Channel::Exec, None, line.as_bytes())
    }

    /// One telemetry body.
    pub fn telemetry(self, at: u64, records: &[Record<'_>]) -> Self {
        let records: Vec<String> = records
            .iter()
            .map(|(happened, name, attributes)| {
                let (second, ms) = (happened / 1_000, happened % 1_000);
                let time = format!("2026-11-15T18:40:{second:02}.{ms:03}Z");
                let fixed = [("event.name", *name), ("event.timestamp", time.as_str())];
                let all: Vec<String> = fixed
                    .iter()
                    .chain(attributes.iter())
                    .map(|(key, value)| {
                        format!(r#"{{"key":"{key}","value":{{"stringValue":"{value}"}}}}"#)
                    })
                    .collect();
                format!(r#"{{"attributes":[{}]}}"#, all.join(","))
            })
            .collect();
        let body = format!(
            r#"{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{}]}}]}}]}}"#,
            records.join(",")
        );
        self.signal(at, Channel::Otel, None, body.as_bytes())
    }

    pub fn signal(mut self, at: u64, channel: Channel, file: Option<&str>, payload: &[u8]) -> Self {
        let scenes = self.stage.play(at, channel, Direction::FromAgent, file, payload);
        self.note(&scenes);
        self
    }

    /// Compares what was seen: a line each time a session's group or sub-state changed.
    pub fn check(self, expected: &[&str]) {
        assert_eq!(self.seen, expected);
    }

    /// The same, after the clock has run on to `until`.
    pub fn check_at(mut self, until: u64, expected: &[&str]) {
        let scenes = self.stage.wait(until);
        self.note(&scenes);
        self.check(expected);
    }

    /// What is believed of the only session.
    pub fn monitor(&self) -> &Monitor {
        self.stage.replay.sessions().next().map(|(_, monitor)| monitor).expect("there is a session")
    }

    fn note(&mut self, scenes: &[Scene]) {
        for scene in scenes {
            let Scene::Changed { at, session, state } = scene else { continue };
            let shown = state.state.as_str().to_owned();
            match self.last.iter_mut().find(|(known, _)| **known == **session) {
                Some((_, last)) if *last == shown => continue,
                Some((_, last)) => last.clone_from(&shown),
                None => self.last.push((session.to_string(), shown.clone())),
            }
            let at = at.0 - BEGIN_MS;
            let of = if &**session == "T" { String::new() } else { format!(" of {session}") };
            self.seen.push(format!("{at} {shown}{of}"));
        }
    }
}
