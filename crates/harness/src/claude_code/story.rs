//! A story for tests: signals at times we choose, through the real monitor and resolver.

use qd_session::monitor::Monitor;
use serde_json::{Value, json};

use crate::Harness;
use crate::replay::Scene;
use crate::signal::{Channel, Direction};
pub use crate::story::BEGIN_MS as START;
use crate::story::Stage;

pub struct Story {
    stage: Stage,
    shown: Vec<(u64, String)>,
}

impl Story {
    pub fn new() -> Self {
        Self { stage: Stage::new(Harness::ClaudeCode, START), shown: Vec::new() }
    }

    /// A session that was opened in a terminal, and prompted.
    pub fn prompted() -> Self {
        let mut story = Self::new();
        story
            .hook(0, json!({"hook_event_name": "SessionStart", "source": "startup", "model": "m"}));
        story.prompt(100, "p1", "go");
        story
    }

    pub fn hook(&mut self, at: u64, mut payload: Value) -> &mut Self {
        payload["session_id"] = "s1".into();
        self.signal(at, Channel::Hook, Direction::FromAgent, None, payload.to_string().as_bytes())
    }

    /// A hook that this process ran.
    pub fn hook_of(&mut self, at: u64, pid: &str, mut payload: Value) -> &mut Self {
        payload["session_id"] = "s1".into();
        let text = payload.to_string();
        self.signal(at, Channel::Hook, Direction::FromAgent, Some(pid), text.as_bytes())
    }

    /// The registry file of this process.
    pub fn registry_of(&mut self, at: u64, pid: u64, status: &str, waiting: &str) -> &mut Self {
        let file = json!({"pid": pid, "sessionId": "s1", "procStart": "99", "entrypoint": "cli",
            "startedAt": START, "status": status, "waitingFor": waiting,
            "statusUpdatedAt": START + at});
        let text = file.to_string();
        self.signal(at, Channel::Registry, Direction::FromAgent, None, text.as_bytes())
    }

    pub fn exited_of(&mut self, at: u64, pid: u64) -> &mut Self {
        let report = json!({"sessionId": "s1", "pid": pid, "procStart": "99", "exited": true});
        let text = report.to_string();
        self.signal(at, Channel::Process, Direction::FromAgent, None, text.as_bytes())
    }

    pub fn prompt(&mut self, at: u64, id: &str, text: &str) -> &mut Self {
        let hook = json!({"hook_event_name": "UserPromptSubmit", "prompt_id": id, "prompt": text});
        self.hook(at, hook)
    }

    /// `PreToolUse` or `PostToolUse` of a shell command.
    pub fn bash(&mut self, at: u64, event: &str, call: &str) -> &mut Self {
        self.hook(
            at,
            json!({"hook_event_name": event, "tool_name": "Bash", "tool_use_id": call,
            "tool_input": {"command": call}}),
        )
    }

    pub fn bash_permission(&mut self, at: u64, call: &str) -> &mut Self {
        self.hook(
            at,
            json!({"hook_event_name": "PermissionRequest", "tool_name": "Bash",
            "tool_input": {"command": call}}),
        )
    }

    pub fn stop(&mut self, at: u64, text: &str) -> &mut Self {
        self.hook(
            at,
            json!({"hook_event_name": "Stop", "last_assistant_message": text,
            "background_tasks": [], "session_crons": []}),
        )
    }

    /// A transcript line, written at `at`.
    pub fn line(&mut self, at: u64, mut payload: Value) -> &mut Self {
        payload["sessionId"] = "s1".into();
        let seconds = at / 1_000;
        let (minute, second, ms) = (seconds / 60, seconds % 60, at % 1_000);
        payload["timestamp"] =
            format!("2026-11-15T18:{:02}:{second:02}.{ms:03}Z", 40 + minute).into();
        let text = payload.to_string();
        self.signal(at, Channel::Transcript, Direction::FromAgent, None, text.as_bytes())
    }

    pub fn said(&mut self, at: u64, stop_reason: &str, text: &str) -> &mut Self {
        self.line(
            at,
            json!({"type": "assistant", "message": {"id": format!("m{at}"), "model": "m",
            "content": [{"type": "text", "text": text}], "stop_reason": stop_reason}}),
        )
    }

    pub fn registry(&mut self, at: u64, changed_at: u64, status: &str, waiting: &str) -> &mut Self {
        let mut file = json!({"pid": 7, "sessionId": "s1", "procStart": "99", "entrypoint": "cli",
            "startedAt": START, "status": status, "statusUpdatedAt": START + changed_at});
        if !waiting.is_empty() {
            file["waitingFor"] = waiting.into();
        }
        let text = file.to_string();
        self.signal(at, Channel::Registry, Direction::FromAgent, None, text.as_bytes())
    }

    pub fn stream(&mut self, at: u64, mut payload: Value) -> &mut Self {
        payload["session_id"] = "s1".into();
        let text = payload.to_string();
        self.signal(at, Channel::Stream, Direction::FromAgent, None, text.as_bytes())
    }

    /// A message that names no session, either way.
    pub fn control(&mut self, at: u64, direction: Direction, payload: &Value) -> &mut Self {
        self.signal(at, Channel::Stream, direction, None, payload.to_string().as_bytes())
    }

    pub fn exited(&mut self, at: u64) -> &mut Self {
        let text = json!({"sessionId": "s1", "exited": true}).to_string();
        self.signal(at, Channel::Process, Direction::FromAgent, None, text.as_bytes())
    }

    pub fn signal(
        &mut self,
        at: u64,
        channel: Channel,
        direction: Direction,
        file: Option<&str>,
        payload: &[u8],
    ) -> &mut Self {
        let scenes = self.stage.play(at, channel, direction, file, payload);
        self.note(scenes);
        self
    }

    pub fn wait_until(&mut self, at: u64) -> &mut Self {
        let scenes = self.stage.wait(at);
        self.note(scenes);
        self
    }

    fn note(&mut self, scenes: Vec<Scene>) {
        for scene in scenes {
            if let Scene::Changed { at, session, state } = scene {
                assert_eq!(&*session, "s1", "no other session appears");
                self.shown.push((at.0 - START, state.state.as_str().to_owned()));
            }
        }
    }

    /// What the operator sees now.
    #[track_caller]
    pub fn shows(&mut self, state: &str) -> &mut Self {
        assert_eq!(
            self.shown.last().map(|(_, shown)| shown.as_str()),
            Some(state),
            "{:?}",
            self.shown
        );
        self
    }

    /// What the operator never saw.
    #[track_caller]
    pub fn never_showed(&mut self, state: &str) -> &mut Self {
        assert!(self.shown.iter().all(|(_, shown)| shown != state), "{:?}", self.shown);
        self
    }

    /// So many requests are open.
    #[track_caller]
    pub fn waits_for(&mut self, count: usize) -> &mut Self {
        assert_eq!(self.monitor().open_requests().count(), count);
        self
    }

    pub fn monitor(&self) -> &Monitor {
        self.stage.replay.sessions().next().map(|(_, monitor)| monitor).expect("there is a session")
    }

    pub fn is_empty(&self) -> bool {
        self.stage.replay.sessions().next().is_none()
    }
}
