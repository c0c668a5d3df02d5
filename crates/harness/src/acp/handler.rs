//! Signal in, events out: JSON-RPC messages are paired with what they answer and handed to their
//! session.

use std::collections::BTreeMap;
use std::sync::Arc;

use qd_session::moment::{Source, Timestamp};
use qd_session::monitor::Fact;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::quirks::Quirks;
use super::rpc::{Ledger, RpcId, Sent};
use super::session::{Replay, Session};
use super::wire::{Message, SessionParams, UpdateParams};
use crate::outbox::Outbox;
use crate::process::ProcessReport;
use crate::signal::{Channel, Direction, Sighting, Signal};
use crate::{excerpt, payload};

/// Most sessions remembered of one connection; the one not heard of for longest goes first.
const SESSIONS_MAX: usize = 64;

#[derive(Debug, Default)]
pub struct Handler {
    pub(super) quirks: Quirks,
    /// The agent's, as it said when the connection began.
    pub(super) version: Option<Arc<str>>,
    pub(super) sessions: BTreeMap<Arc<str>, Session>,
    /// The session that was prompted last: what names none is most likely its.
    pub(super) current: Option<Arc<str>>,
    pub(super) ledger: Ledger,
    /// Orders the messages of one millisecond.
    clock: (Timestamp, u32),
    unrecognised: u64,
}

impl crate::signal::Handler for Handler {
    fn unrecognised(&self) -> u64 {
        self.unrecognised
    }

    fn handle_signal(&mut self, signal: &Signal<'_>) -> Vec<Sighting> {
        match signal.channel {
            Channel::Acp => self.message(signal),
            Channel::Process => self.process(signal),
            Channel::Hook
            | Channel::Notify
            | Channel::Transcript
            | Channel::Registry
            | Channel::Otel
            | Channel::Stream
            | Channel::Exec
            | Channel::AppServer
            | Channel::Events => self.unknown(signal, None),
        }
    }

    fn next_timeout(&self) -> Option<Timestamp> {
        self.sessions.values().filter_map(|session| session.turn.model_due()).min()
    }

    fn handle_timeout(&mut self, now: Timestamp) -> Vec<Sighting> {
        let mut sightings = Vec::new();
        for session in self.sessions.values_mut() {
            if session.turn.model_asked(now) {
                let mut out = Outbox::new(session.id.clone(), now, 0, Source::Driver);
                out.tell(Fact::LlmStarted);
                sightings.extend(out.into_sightings());
            }
        }
        sightings
    }
}

impl Handler {
    fn message(&mut self, signal: &Signal<'_>) -> Vec<Sighting> {
        let Some(message) = payload::read::<Message>(signal.payload) else {
            return self.unknown(signal, None);
        };
        let id = RpcId::of(message.id.as_ref());
        let params = message.params.unwrap_or_default();
        let handled = match (message.method.as_deref(), id) {
            (Some(method), id) => self.called(signal, method, id, &params),
            (None, Some(id)) if signal.direction == Direction::ToAgent => {
                self.client_answered(signal, &id, message.result)
            }
            (None, Some(id)) => self.agent_answered(signal, &id, message.result, message.error),
            (None, None) => None,
        };
        handled.unwrap_or_else(|| self.unknown(signal, params.get("sessionId")))
    }

    /// A request or a notification, of either side: the method says whose.
    fn called(
        &mut self,
        signal: &Signal<'_>,
        method: &str,
        id: Option<RpcId>,
        params: &Value,
    ) -> Option<Vec<Sighting>> {
        match method {
            "initialize" => {
                self.begin_connection();
                Some(Vec::new())
            }
            "session/new" | "session/load" | "session/resume" | "session/fork"
            | "session/prompt" | "session/set_mode" | "session/close" | "session/delete" => {
                self.client_asked(signal, method, id?, read(params)?)
            }
            "session/update" => self.updated(signal, params),
            "session/request_permission" | "elicitation/create" => {
                self.agent_asked(signal, method, id?, params)
            }
            "elicitation/complete" => self.completed(signal, params),
            "$/cancel_request" => self.request_cancelled(signal, params),
            // They ask for a service, or tell what a later message tells better.
            "authenticate" | "logout" => Some(Vec::new()),
            other => {
                let known = ["session/", "fs/", "terminal/", "providers/", "_"];
                let is_known = known.iter().any(|prefix| other.starts_with(prefix));
                // Each side counts its own requests: only the client's are paired here.
                if let Some(id) = id.filter(|_| signal.direction == Direction::ToAgent) {
                    self.ledger.remember(id, Sent::Other);
                }
                is_known.then(Vec::new)
            }
        }
    }

    /// The ids of a new connection begin anew.
    pub(super) fn begin_connection(&mut self) {
        self.ledger = Ledger::default();
    }

    fn client_asked(
        &mut self,
        signal: &Signal<'_>,
        method: &str,
        id: RpcId,
        params: SessionParams,
    ) -> Option<Vec<Sighting>> {
        if self.ledger.knows(&id) {
            // The same message, heard twice.
            return Some(Vec::new());
        }
        let session = params.session_id.as_deref().map(Arc::<str>::from);
        let (sent, sightings) = match (method, session) {
            ("session/new", _) => (Sent::New { cwd: params.cwd }, Vec::new()),
            ("session/load" | "session/resume", Some(session)) => {
                self.session(&session, signal.at).replay = Replay::Loading;
                (Sent::Load { session, cwd: params.cwd }, Vec::new())
            }
            ("session/fork", _) => (Sent::New { cwd: params.cwd }, Vec::new()),
            ("session/prompt", Some(session)) => {
                let text: Vec<&str> = params.prompt.iter().map(|block| &*block.text).collect();
                let sightings = self.prompted(signal, &session, id.clone(), &text.join("\n"));
                (Sent::Prompt { session }, sightings)
            }
            ("session/set_mode", Some(session)) => {
                (Sent::SetMode { session, mode: params.mode_id? }, Vec::new())
            }
            ("session/close" | "session/delete", Some(session)) => {
                (Sent::Close { session }, Vec::new())
            }
            (_, _) => return None,
        };
        self.ledger.remember(id, sent);
        Some(sightings)
    }

    fn prompted(
        &mut self,
        signal: &Signal<'_>,
        session: &Arc<str>,
        id: RpcId,
        text: &str,
    ) -> Vec<Sighting> {
        let quirks = self.quirks;
        self.current = Some(session.clone());
        self.with(signal, session, |session, out| {
            session.loaded(out.at(), quirks);
            let begins = session.turn.prompted(id);
            session.prompted(begins, text, out);
        })
    }

    fn updated(&mut self, signal: &Signal<'_>, params: &Value) -> Option<Vec<Sighting>> {
        let session = Arc::<str>::from(params.get("sessionId")?.as_str()?);
        let update = read::<UpdateParams>(params)?.update?;
        let quirks = self.quirks;
        let mut known = false;
        let sightings = self.with(signal, &session, |session, out| {
            known = session.update(&update, quirks, out);
        });
        known.then_some(sightings)
    }

    fn agent_asked(
        &mut self,
        signal: &Signal<'_>,
        method: &str,
        id: RpcId,
        params: &Value,
    ) -> Option<Vec<Sighting>> {
        let named = params.get("sessionId").and_then(Value::as_str).map(Arc::<str>::from);
        let session = named.or_else(|| self.current.clone())?;
        if method == "elicitation/create" {
            let params = read(params)?;
            return Some(self.with(signal, &session, |session, out| {
                session.asks_question(id, params, out);
            }));
        }
        let params = read(params)?;
        Some(self.with(signal, &session, |session, out| {
            session.asks_permission(id, params, out);
        }))
    }

    fn completed(&mut self, signal: &Signal<'_>, params: &Value) -> Option<Vec<Sighting>> {
        let elicitation = params.get("elicitationId")?.as_str()?;
        Some(self.with_all(signal, |session, out| {
            session.withdrawn(|open| open.elicitation.as_deref() == Some(elicitation), out);
        }))
    }

    /// Either side takes back what it asked. The client's own prompt answers for itself.
    fn request_cancelled(&mut self, signal: &Signal<'_>, params: &Value) -> Option<Vec<Sighting>> {
        let id = RpcId::of(params.get("requestId"))?;
        if signal.direction == Direction::ToAgent {
            return Some(Vec::new());
        }
        Some(self.with_all(signal, |session, out| {
            session.withdrawn(|open| open.rpc.as_ref() == Some(&id), out);
        }))
    }

    fn process(&mut self, signal: &Signal<'_>) -> Vec<Sighting> {
        let Some(seen) = payload::read::<ProcessReport>(signal.payload) else {
            return self.unknown(signal, None);
        };
        let exited = seen.has_exited();
        let Some(session) = seen.session_id.filter(|_| exited).map(Arc::<str>::from) else {
            return Vec::new();
        };
        self.with(signal, &session, |session, out| {
            session.turn.close(out.at());
            session.requests.clear();
            out.tell(Fact::SessionEnded { process: None, exit_code: seen.exit_code });
        })
    }

    /// Nobody understood it: kept for the session it names, counted where it names none.
    fn unknown(&mut self, signal: &Signal<'_>, session: Option<&Value>) -> Vec<Sighting> {
        let named = session.and_then(Value::as_str).filter(|id| self.sessions.contains_key(*id));
        let Some(session) = named.map(Arc::<str>::from) else {
            self.unrecognised = self.unrecognised.saturating_add(1);
            return Vec::new();
        };
        let text = excerpt::unrecognised(signal.payload);
        self.with(signal, &session, |_, out| out.tell(Fact::Unrecognised { text }))
    }

    fn session(&mut self, id: &Arc<str>, at: Timestamp) -> &mut Session {
        if !self.sessions.contains_key(id) && self.sessions.len() == SESSIONS_MAX {
            let oldest = self.sessions.values().min_by_key(|session| session.heard_at);
            if let Some(oldest) = oldest.map(|session| session.id.clone()) {
                self.sessions.remove(&oldest);
            }
        }
        let session = self.sessions.entry(id.clone()).or_insert_with(|| Session::new(id));
        session.heard_at = at;
        session
    }

    pub(super) fn with(
        &mut self,
        signal: &Signal<'_>,
        session: &Arc<str>,
        tell: impl FnOnce(&mut Session, &mut Outbox),
    ) -> Vec<Sighting> {
        let mut out = self.outbox(signal, session);
        tell(self.session(session, signal.at), &mut out);
        out.into_sightings()
    }

    pub(super) fn with_all(
        &mut self,
        signal: &Signal<'_>,
        tell: impl Fn(&mut Session, &mut Outbox),
    ) -> Vec<Sighting> {
        let sessions: Vec<Arc<str>> = self.sessions.keys().cloned().collect();
        sessions.iter().flat_map(|session| self.with(signal, session, &tell)).collect()
    }

    /// Messages of one stream happen in their order, also within a millisecond.
    fn outbox(&mut self, signal: &Signal<'_>, session: &Arc<str>) -> Outbox {
        let seq = match self.clock {
            (at, seq) if at == signal.at => seq.saturating_add(1),
            (_, _) => 0,
        };
        self.clock = (signal.at, seq);
        let seq = if signal.seq == 0 { seq } else { signal.seq };
        Outbox::new(session.clone(), signal.at, seq, signal.channel.source())
    }
}

pub(super) fn read<T: DeserializeOwned>(value: &Value) -> Option<T> {
    T::deserialize(value).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::Harness;
    use crate::signal::{Channel, Direction};
    use crate::story::Story;

    /// An agent of that name with a session `s` and a prompt sent at 1 s.
    fn prompted(agent: &str) -> Story {
        let mut story = Story::of(Harness::Acp);
        let info = json!({"protocolVersion": 1, "agentInfo": {"name": agent}});
        ask(&mut story, 0, 1, "initialize", json!({"protocolVersion": 1}));
        respond(&mut story, 10, 1, info);
        ask(&mut story, 20, 2, "session/new", json!({"cwd": "/w", "mcpServers": []}));
        respond(&mut story, 30, 2, json!({"sessionId": "s"}));
        assert_eq!(story.state(), "needs_you/idle");
        prompt(&mut story, 1_000, 3);
        story
    }

    fn ask(story: &mut Story, at: u64, id: u64, method: &str, params: Value) {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        story.say(at, Channel::Acp, &message);
    }

    fn respond(story: &mut Story, at: u64, id: u64, result: Value) {
        story.hear(at, Channel::Acp, &json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn prompt(story: &mut Story, at: u64, id: u64) {
        let params = json!({"sessionId": "s", "prompt": [{"type": "text", "text": "go"}]});
        ask(story, at, id, "session/prompt", params);
    }

    fn update(story: &mut Story, at: u64, update: Value) {
        let params = json!({"sessionId": "s", "update": update});
        let message = json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
        story.hear(at, Channel::Acp, &message);
    }

    fn say(story: &mut Story, at: u64, text: &str) {
        let content = json!({"type": "text", "text": text});
        update(story, at, json!({"sessionUpdate": "agent_message_chunk", "content": content}));
    }

    fn tool(story: &mut Story, at: u64, status: &str) {
        let kind = if status == "in_progress" { "tool_call" } else { "tool_call_update" };
        let told = json!({"sessionUpdate": kind, "toolCallId": "t", "status": status,
            "title": "touch x", "kind": "execute"});
        update(story, at, told);
    }

    fn permission(story: &mut Story, at: u64, kind: &str) {
        let options = json!([{"optionId": "yes", "name": "Allow", "kind": "allow_once"},
            {"optionId": "no", "name": "Reject", "kind": "reject_once"}]);
        let call = json!({"toolCallId": "t", "status": "pending", "title": "touch x",
            "kind": kind, "rawInput": {}});
        let params = json!({"sessionId": "s", "options": options, "toolCall": call});
        let message = json!({"jsonrpc": "2.0", "id": "u-7", "method": "session/request_permission",
            "params": params});
        story.hear(at, Channel::Acp, &message);
    }

    fn choose(story: &mut Story, at: u64, option: &str) {
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": option}});
        let answer = json!({"jsonrpc": "2.0", "id": "u-7", "result": outcome});
        story.say(at, Channel::Acp, &answer);
    }

    #[test]
    fn an_allowed_call_is_at_work_until_it_ends_and_then_the_model_is() {
        let mut story = prompted("codex-acp");
        permission(&mut story, 2_000, "execute");
        assert_eq!(story.state(), "needs_you/needs_permission");
        choose(&mut story, 60_000, "yes");
        assert_eq!(story.state(), "autonomous/acting");
        tool(&mut story, 61_000, "completed");
        assert_eq!(story.state(), "autonomous/thinking");
        say(&mut story, 62_000, "The file is in place.");
        respond(&mut story, 62_100, 3, json!({"stopReason": "end_turn"}));
        assert_eq!(story.state(), "delivered/task_complete");
    }

    #[test]
    fn a_turn_that_ends_on_our_refusal_was_interrupted_not_delivered() {
        let mut story = prompted("OpenCode");
        say(&mut story, 1_500, "I will make a file.");
        tool(&mut story, 1_900, "in_progress");
        permission(&mut story, 2_000, "execute");
        choose(&mut story, 3_000, "no");
        tool(&mut story, 3_100, "failed");
        respond(&mut story, 3_200, 3, json!({"stopReason": "end_turn"}));
        assert_eq!(story.state(), "needs_you/interrupted");
    }

    #[test]
    fn an_agent_that_goes_on_after_a_refusal_delivers_what_it_says_then() {
        let mut story = prompted("gemini-cli");
        permission(&mut story, 2_000, "execute");
        choose(&mut story, 3_000, "no");
        assert_eq!(story.state(), "autonomous/thinking");
        say(&mut story, 3_400, "Finished without the file.");
        respond(&mut story, 3_500, 3, json!({"stopReason": "end_turn"}));
        assert_eq!(story.state(), "delivered/task_complete");
    }

    #[test]
    fn leaving_the_planning_mode_is_a_plan_to_approve() {
        let mut story = prompted("claude-agent-acp");
        permission(&mut story, 2_000, "switch_mode");
        assert_eq!(story.state(), "needs_you/awaiting_approval");
        choose(&mut story, 3_000, "no");
        respond(&mut story, 3_500, 3, json!({"stopReason": "cancelled"}));
        assert_eq!(story.state(), "needs_you/interrupted");
    }

    #[test]
    fn an_elicitation_is_a_question_until_it_is_answered() {
        let mut story = prompted("claude-agent-acp");
        let params = json!({"sessionId": "s", "mode": "form", "message": "Which?",
            "requestedSchema": {"type": "object", "properties": {"a": {"type": "string"}}}});
        let asked =
            json!({"jsonrpc": "2.0", "id": 0, "method": "elicitation/create", "params": params});
        story.hear(2_000, Channel::Acp, &asked);
        assert_eq!(story.state(), "needs_you/awaiting_input");
        let answer = json!({"jsonrpc": "2.0", "id": 0, "result": {"action": "accept", "content": {"a": "b"}}});
        story.say(9_000, Channel::Acp, &answer);
        assert_eq!(story.state(), "autonomous/thinking");
    }

    #[test]
    fn a_replay_changes_nothing_even_when_it_outlasts_the_response() {
        let mut story = Story::of(Harness::Acp);
        let info = json!({"protocolVersion": 1, "agentInfo": {"name": "gemini-cli"}});
        ask(&mut story, 0, 1, "initialize", json!({}));
        respond(&mut story, 10, 1, info);
        ask(&mut story, 20, 2, "session/load", json!({"sessionId": "s", "cwd": "/w"}));
        say(&mut story, 30, "I will read the file first.");
        assert_eq!(story.state(), "nothing");
        respond(&mut story, 40, 2, json!({}));
        say(&mut story, 50, "Now I will write it.");
        tool(&mut story, 60, "in_progress");
        story.wait(5_000);
        assert_eq!(story.shown, ["needs_you/idle"]);
        prompt(&mut story, 6_000, 3);
        tool(&mut story, 6_500, "in_progress");
        assert_eq!(story.state(), "autonomous/acting");
    }

    #[test]
    fn a_response_and_the_next_prompt_in_one_millisecond_are_two_turns() {
        let mut story = prompted("gemini-cli");
        say(&mut story, 1_500, "Done.");
        respond(&mut story, 2_000, 3, json!({"stopReason": "end_turn"}));
        prompt(&mut story, 2_000, 4);
        assert_eq!(story.state(), "autonomous/thinking");
        // The first response, heard again, ends nothing.
        respond(&mut story, 2_050, 3, json!({"stopReason": "end_turn"}));
        assert_eq!(story.state(), "autonomous/thinking");
    }

    #[test]
    fn a_queued_prompt_keeps_the_turn_open_until_it_is_answered_too() {
        let mut story = prompted("claude-agent-acp");
        prompt(&mut story, 2_000, 4);
        respond(&mut story, 3_000, 3, json!({"stopReason": "end_turn"}));
        assert_eq!(story.state(), "autonomous/thinking");
        respond(&mut story, 4_000, 4, json!({"stopReason": "cancelled"}));
        assert_eq!(story.state(), "needs_you/interrupted");
    }

    #[test]
    fn an_api_error_needs_the_operator_and_says_which() {
        let mut story = prompted("gemini-cli");
        let error = json!({"code": 429, "message": "quota"});
        story.hear(2_000, Channel::Acp, &json!({"jsonrpc": "2.0", "id": 3, "error": error}));
        assert_eq!(story.state(), "needs_you/usage_limit");
    }

    #[test]
    fn an_error_in_words_is_one_although_the_turn_ends_as_usual() {
        let mut story = prompted("copilot");
        say(&mut story, 1_500, "Info: Request failed due to a transient API error. Retrying...");
        say(&mut story, 2_500, "Error: Authentication failed with provider at x (HTTP 401).");
        respond(&mut story, 3_000, 3, json!({"stopReason": "end_turn"}));
        assert_eq!(story.state(), "needs_you/auth_error");
        prompt(&mut story, 4_000, 4);
        say(&mut story, 5_000, "Error: 400 Bad thing");
        respond(&mut story, 6_000, 4, json!({"stopReason": "end_turn"}));
        assert_eq!(story.state(), "needs_you/error");
    }

    #[test]
    fn a_failed_tool_is_the_models_business_while_the_turn_goes_on() {
        let mut story = prompted("codex-acp");
        tool(&mut story, 2_000, "in_progress");
        tool(&mut story, 3_000, "failed");
        story.wait(60_000);
        assert_eq!(story.state(), "autonomous/thinking");
        respond(&mut story, 60_500, 3, json!({"stopReason": "max_turn_requests"}));
        assert_eq!(story.state(), "needs_you/error");
    }

    #[test]
    fn the_states_of_the_second_version_are_taken_at_their_word() {
        let mut story = prompted("somebody-new");
        respond(&mut story, 1_100, 3, json!({}));
        assert_eq!(story.state(), "autonomous/thinking");
        let state = |state: &str| json!({"sessionUpdate": "state_update", "state": state});
        update(&mut story, 2_000, state("requires_action"));
        assert_eq!(story.state(), "needs_you/needs_permission");
        update(&mut story, 3_000, state("running"));
        assert_eq!(story.state(), "autonomous/thinking");
        update(&mut story, 4_000, state("idle"));
        assert_eq!(story.state(), "needs_you/idle");
    }

    #[test]
    fn modes_usage_titles_and_compaction_are_told_and_are_no_work() {
        let mut story = prompted("gemini-cli");
        respond(&mut story, 2_000, 3, json!({"stopReason": "end_turn"}));
        story.told.clear();
        say(&mut story, 3_000, "[MODE_UPDATE] yolo");
        update(&mut story, 3_100, json!({"sessionUpdate": "usage_update", "used": 9, "size": 10}));
        update(&mut story, 3_200, json!({"sessionUpdate": "session_info_update", "title": "T"}));
        assert_eq!(story.state(), "needs_you/idle");
        assert_eq!(story.told, ["mode_changed", "usage_reported", "title_known"]);
        let compaction = |status: &str| json!({"sessionUpdate": "compaction_update", "compactionId": "c", "status": status});
        update(&mut story, 4_000, compaction("in_progress"));
        assert_eq!(story.state(), "autonomous/compacting");
        update(&mut story, 5_000, compaction("completed"));
        assert_eq!(story.state(), "needs_you/idle");
    }

    #[test]
    fn a_subagents_calls_are_its_own() {
        let mut story = prompted("claude-agent-acp");
        let child = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "status": "in_progress",
            "_meta": {"claudeCode": {"toolName": "Read", "parentToolUseId": "t"}}});
        tool(&mut story, 2_000, "in_progress");
        update(&mut story, 2_100, child);
        assert_eq!(story.state(), "autonomous/delegating");
        tool(&mut story, 3_000, "completed");
        assert_eq!(story.state(), "autonomous/thinking");
    }

    #[test]
    fn what_nobody_understands_changes_nothing_and_makes_no_session() {
        let mut story = Story::of(Harness::Acp);
        let huge = vec![b'['; (4 << 20) + 1];
        let broken: [&[u8]; 8] = [
            b"",
            b"{\"jsonrpc\":\"2.0\",\"meth",
            b"\xff\xfe",
            b"[1,2]",
            b"{\"method\":7}",
            b"{\"method\":\"session/update\",\"params\":{\"sessionId\":5,\"update\":[]}}",
            b"{\"method\":\"unheard/of\",\"params\":{\"sessionId\":\"new\"}}",
            &huge,
        ];
        for payload in broken {
            story.play(5, Channel::Acp, Direction::FromAgent, None, payload);
        }
        assert_eq!(story.sessions(), 0);
        let mut story = prompted("gemini-cli");
        update(&mut story, 2_000, json!({"sessionUpdate": "never_seen", "used": 1}));
        update(&mut story, 2_100, json!({"sessionUpdate": "tool_call", "toolCallId": 7}));
        assert_eq!(story.state(), "autonomous/thinking");
        assert_eq!(story.told.iter().filter(|name| *name == "unrecognised").count(), 2);
    }

    #[test]
    fn the_end_of_the_process_ends_the_session_whatever_it_waited_for() {
        let mut story = prompted("gemini-cli");
        permission(&mut story, 2_000, "execute");
        story.hear(3_000, Channel::Process, &json!({"sessionId": "s", "exited": true}));
        assert_eq!(story.state(), "delivered/session_ended");
    }
}
