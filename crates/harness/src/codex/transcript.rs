//! Rollouts: `sessions/YYYY/MM/DD/rollout-<time>-<thread>.jsonl`.
//!
//! The one source that tells of every end, interrupts and failures too. It never says that
//! something began but a turn: a running tool is a call without its output, and so is one that
//! waits for a person. A call that asks to leave the sandbox is therefore only a hint.

use std::sync::Arc;

use qd_session::moment::Timestamp;
use qd_session::monitor::{Fact, Place};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::failure::resets_at;
use super::handler::Handler;
use super::mark::Mark;
use super::roster::Role;
use super::wire;
use crate::signal::Signal;
use crate::{excerpt, rfc3339};

impl Handler {
    pub(super) fn handle_line(&mut self, signal: &Signal<'_>) {
        let Some(line) = self.parsed::<wire::Line>(signal) else { return };
        let mark = Mark::told(signal, line.timestamp.as_deref().and_then(rfc3339::timestamp));
        let (Some(kind), Some(payload)) = (line.r#type.as_deref(), line.payload.as_deref()) else {
            return self.not_understood(signal, None);
        };
        let file = signal.file.unwrap_or_default();
        if kind == "session_meta" {
            return self.handle_meta(signal, mark, file, payload);
        }
        let Ok(whose) = serde_json::from_str::<Whose>(payload.get()) else {
            return self.not_understood(signal, None);
        };
        let Some(id) = self.thread_of_line(signal.at, file, &whose) else {
            return self.keep_for_file(signal, file);
        };
        if self.is_stranger(signal, &id) {
            return;
        }
        self.meet_subagent(signal.at, mark, &id, payload);
        if let Some(resets_at) = self.limits_told(payload) {
            self.limit_resets_at = Some(resets_at);
        }
        let resets_at = self.limit_resets_at;
        let understood = match self.roster.thread(signal.at, &id) {
            Some(thread) => {
                thread.turn.heard.rollout = true;
                let understood = thread.take_line(mark, kind, payload, resets_at);
                thread.turn.heard.rollout = true;
                understood
            }
            None => true,
        };
        if !understood {
            self.not_understood(signal, Some(&id));
        }
    }

    fn handle_meta(&mut self, signal: &Signal<'_>, mark: Mark, file: &str, payload: &RawValue) {
        let meta = serde_json::from_str::<wire::SessionMeta>(payload.get()).unwrap_or_default();
        let Some(id) = meta.id.as_deref() else {
            return self.not_understood(signal, None);
        };
        // A fork may repeat the beginning of its parent: the first line names the file's own.
        if self.files.get(file).is_some_and(|known| **known != *id) {
            return;
        }
        self.introduce(signal.at, id, meta.role());
        self.bind_file(file, id);
        if let Some(thread) = self.roster.thread(signal.at, id) {
            thread.exists(mark);
            let place = Place {
                cwd: meta.cwd.as_deref().map(Arc::from),
                branch: meta.git.and_then(|git| git.branch).as_deref().map(Arc::from),
                transcript: (!file.is_empty()).then(|| Arc::from(file)),
                forked_from: meta.forked_from_id.as_deref().map(Arc::from),
                version: meta.cli_version.as_deref().map(excerpt::label),
            };
            thread.lives_in(mark, place);
        }
    }

    /// The thread a line belongs to: its file's, else what the line or the file's name says.
    fn thread_of_line(&mut self, now: Timestamp, file: &str, whose: &Whose) -> Option<Arc<str>> {
        if let Some(known) = self.files.get(file) {
            let id = known.clone();
            self.note_root(now, &id, whose);
            return Some(id);
        }
        let id: Arc<str> = Arc::from(whose.thread_id.as_deref().or_else(|| id_in_name(file))?);
        self.note_root(now, &id, whose);
        self.bind_file(file, &id);
        Some(id)
    }

    /// A turn that hangs below another thread's turn is a subagent's.
    fn note_root(&mut self, now: Timestamp, id: &str, whose: &Whose) {
        if self.roster.is_certain(id) {
            return;
        }
        if let Some(session) = whose.session_id.as_deref().filter(|session| *session != id) {
            return self.introduce(now, id, Role::Subagent { session: Arc::from(session) });
        }
        if let (Some(turn), Some(root)) = (&whose.turn_id, &whose.root_turn_id)
            && turn != root
        {
            self.meet_by_root(now, id, root);
        }
    }

    pub(super) fn meet_by_root(&mut self, now: Timestamp, id: &str, root: &str) {
        match self.roster.session_of_turn(root) {
            Some(session) if *session != *id => {
                self.introduce(now, id, Role::Subagent { session });
            }
            Some(_) => {}
            // Somebody's subagent, but whose nobody has said: no session of its own.
            None => {
                self.roster.assume(now, id, Role::Hidden);
            }
        }
    }

    /// The parent tells of its subagents.
    fn meet_subagent(&mut self, now: Timestamp, mark: Mark, parent: &str, payload: &RawValue) {
        if !payload.get().contains("SubAgentActivity") {
            return;
        }
        let Some(item) = parse::<wire::EventMsg>(payload).and_then(|event| event.item) else {
            return;
        };
        self.subagent_acts(now, mark, parent, &item);
    }

    pub(super) fn subagent_acts(
        &mut self,
        now: Timestamp,
        mark: Mark,
        parent: &str,
        item: &wire::Item,
    ) {
        let Some(child) = item.agent_thread_id.as_deref() else { return };
        let Some(session) = self.roster.thread(now, parent).map(|p| p.session.clone()) else {
            return;
        };
        self.introduce(now, child, Role::Subagent { session });
        let Some(thread) = self.roster.thread(now, child) else { return };
        let name = item.agent_path.as_deref().and_then(|path| path.rsplit('/').next());
        if thread.settings.agent_type.is_none() {
            thread.settings.agent_type = name.map(excerpt::label);
        }
        match item.kind.as_ref().and_then(Value::as_str) {
            Some("started") if !thread.is_introduced() => {
                let kind = thread.settings.agent_type.clone();
                thread.tell(mark, Fact::SubagentStarted { kind });
            }
            Some("completed" | "interrupted" | "closed" | "shutdown" | "failed") => {
                thread.tell(mark, Fact::SubagentEnded);
            }
            Some(_) | None => {}
        }
    }

    fn limits_told(&self, payload: &RawValue) -> Option<Timestamp> {
        if !payload.get().contains("\"resets_at\"") {
            return None;
        }
        resets_at(&parse::<wire::EventMsg>(payload)?.rate_limits?)
    }
}

/// The ids that several kinds of lines carry.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct Whose {
    thread_id: Option<String>,
    session_id: Option<String>,
    turn_id: Option<String>,
    root_turn_id: Option<String>,
}

/// `rollout-2026-11-15T18-48-13-<uuid>.jsonl`
fn id_in_name(file: &str) -> Option<&str> {
    let name = file.rsplit('/').next()?.strip_suffix(".jsonl")?;
    let id = name.get(name.len().checked_sub(36)?..)?;
    let is_uuid = id.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    is_uuid.then_some(id)
}

pub fn parse<T: DeserializeOwned>(payload: &RawValue) -> Option<T> {
    serde_json::from_str(payload.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::super::story::story;
    use super::*;

    const CHILD: &str = r#"{"id":"C","session_id":"T","parent_thread_id":"T","thread_source":"subagent","source":{"subagent":{"thread_spawn":{"parent_thread_id":"T","depth":1}}}}"#;
    const GUARDIAN: &str = r#"{"id":"G","session_id":"T","parent_thread_id":"T","thread_source":"guardian_review","source":{"subagent":{"other":"guardian"}}}"#;

    #[test]
    fn a_subagent_works_in_its_parents_session_and_a_guardian_in_none() {
        story()
            .rollout_begins(0)
            .line_of("c.jsonl", 100, "session_meta", CHILD)
            .line_of(
                "c.jsonl",
                110,
                "event_msg",
                r#"{"type":"task_started","turn_id":"V","root_turn_id":"U"}"#,
            )
            .line_of("g.jsonl", 120, "session_meta", GUARDIAN)
            .line_of("g.jsonl", 130, "event_msg", r#"{"type":"task_started","turn_id":"W"}"#)
            .line_of("c.jsonl", 900, "event_msg", r#"{"type":"task_complete","turn_id":"V"}"#)
            .check_at(5_000, &["0 idle", "0 thinking", "110 delegating", "900 thinking"]);
    }

    #[test]
    fn a_subagents_file_without_its_first_line_is_still_a_subagents() {
        story()
            .rollout_begins(0)
            .line_of(
                "c.jsonl",
                110,
                "event_msg",
                r#"{"type":"task_started","turn_id":"V","root_turn_id":"U"}"#,
            )
            .line_of(
                "c.jsonl",
                150,
                "event_msg",
                r#"{"type":"thread_settings_applied","thread_id":"C"}"#,
            )
            .line_of(
                "c.jsonl",
                300,
                "token_usage_record",
                r#"{"thread_id":"C","session_id":"T","turn_id":"V"}"#,
            )
            .check_at(5_000, &["0 idle", "0 thinking", "150 delegating"]);
    }

    #[test]
    fn a_file_without_its_first_line_is_known_by_what_follows() {
        story()
            .line(0, "event_msg", r#"{"type":"task_started","turn_id":"U","root_turn_id":"U"}"#)
            .line(
                100,
                "event_msg",
                r#"{"type":"thread_settings_applied","thread_id":"T","thread_settings":{}}"#,
            )
            .check_at(1_000, &["250 thinking"]);
    }

    #[test]
    fn a_files_name_ends_in_its_thread() {
        let id = "01a1e089-da9d-7e41-80e9-efccc9f16341";
        let name = format!("/h/sessions/2026/11/15/rollout-2026-11-15T18-48-13-{id}.jsonl");
        assert_eq!(id_in_name(&name), Some(id));
        assert_eq!(id_in_name("rollout.jsonl"), None);
        assert_eq!(id_in_name("ä.jsonl"), None);
    }

    #[test]
    fn a_subagent_that_was_taken_for_a_session_gives_its_card_back() {
        story()
            .rollout_begins(0)
            .line_of(
                "c.jsonl",
                100,
                "event_msg",
                r#"{"type":"thread_settings_applied","thread_id":"C"}"#,
            )
            .line_of("c.jsonl", 110, "response_item", r#"{"type":"message","role":"assistant"}"#)
            .line_of(
                "c.jsonl",
                900,
                "token_usage_record",
                r#"{"thread_id":"C","session_id":"T","turn_id":"V"}"#,
            )
            .check_at(
                5_000,
                &["0 idle", "0 thinking", "350 thinking of C", "900 session_ended of C"],
            );
    }
}
