//! A session's calls, and what they wait for: which request belongs to which call.

use qd_session::id::{AgentId, CallId, RequestId, ToolName};
use qd_session::moment::Timestamp;
use qd_session::monitor::{Ask, Fact, Stage};
use serde_json::Value;

use super::super::call::{End, about, starts_agent};
use super::super::notes::Notes;
use super::super::request::{Kind, ask, dialog_id};
use super::{HOLD_MS, Session};
use crate::excerpt::head;

/// Longest text of a dialog that is shown.
const TEXT_BYTES_MAX: usize = 2 << 10;

/// A hook is stamped when it arrives: its call may seem this much younger than its dialog.
const DIALOG_AHEAD_MS: u64 = 1_000;

impl Session {
    pub fn call_started(
        &mut self,
        notes: &mut Notes,
        agent: &AgentId,
        id: &str,
        tool: &str,
        input: Option<&Value>,
    ) {
        if agent.is_main() {
            self.release(notes);
            self.compaction_ended(notes);
            self.idle = false;
        }
        if !self.calls.start(notes.at, agent, id, tool, input) {
            return;
        }
        let call = CallId::new(id);
        let about = input.and_then(about);
        notes.tell(agent, Fact::ToolStarted { call: call.clone(), tool: tool.into(), about });
        if self.stream {
            return;
        }
        self.requests.bind(notes, agent, tool, input, &call);
        if !self.calls.awaits(id) {
            return;
        }
        let kind = Kind::of_tool(tool);
        // What its hook asked before the call was known is the same request.
        let known = self.requests.of_call(id);
        let request = known.clone().unwrap_or_else(|| RequestId::new(id));
        // The registry is ahead of the transcript: this is what its dialog is about. But a
        // subagent's dialog may be ahead of the call that started it.
        let since = Timestamp(notes.at.0.saturating_sub(DIALOG_AHEAD_MS));
        let dialog = match starts_agent(tool) {
            true => None,
            false => self.requests.take_dialog(notes, since),
        };
        if let Some(asked_at) = dialog {
            let ask = ask(Some(call), tool, input, None);
            let at = notes.at;
            notes.at = asked_at.max(at);
            self.requests.ask(notes, agent, kind, request, Stage::Waiting, ask);
            notes.at = at;
        } else if kind != Kind::Permission && known.is_none() {
            let ask = ask(Some(call), tool, input, None);
            self.requests.ask(notes, agent, kind, request, Stage::Waiting, ask);
        }
    }

    pub fn call_ended(&mut self, notes: &mut Notes, agent: &AgentId, id: &str, end: End) {
        self.requests.settle_call(id);
        self.moved_at = self.moved_at.max(notes.at);
        let Some(agent) = self.calls.end(notes.now, agent, id) else { return };
        if agent.is_main() {
            self.release(notes);
        }
        let End { ok, exit_code } = end;
        notes.tell(&agent, Fact::ToolCompleted { call: CallId::new(id), ok, exit_code });
    }

    /// A person refused the call. Mostly the turn is over with that; the next line says so.
    pub fn call_rejected(&mut self, notes: &mut Notes, agent: &AgentId, id: &str) {
        self.requests.settle_call(id);
        let Some(agent) = self.calls.end(notes.now, agent, id) else { return };
        let end = Fact::ToolCompleted { call: CallId::new(id), ok: false, exit_code: None };
        self.hold(notes, HOLD_MS, notes.sighting(&agent, end));
        self.hold(notes, HOLD_MS, notes.sighting(&agent, Fact::LlmStarted));
    }

    /// What a call waited for was answered, and not by a result yet. A refusal may end the turn.
    pub fn call_answered(&mut self, notes: &mut Notes, id: &str, allowed: bool) {
        self.calls.answered(notes.now, &CallId::new(id));
        let Some(request) = self.requests.of_call(id) else { return };
        if allowed {
            self.requests.resolve(notes, request.as_str());
        } else if let Some(resolution) = self.requests.resolution(notes, request.as_str()) {
            self.hold(notes, HOLD_MS, resolution);
        }
    }

    /// The stream's own request takes the place of what was guessed for its call.
    pub fn request_replaced(&mut self, notes: &mut Notes, call: Option<&str>, by: &str) {
        let known = call.and_then(|call| self.requests.of_call(call));
        if let Some(known) = known.filter(|known| known.as_str() != by) {
            self.requests.resolve(notes, known.as_str());
        }
        self.requests.resolve_unbound(notes, &AgentId::MAIN);
    }

    /// A person is asked, but what for is only known as far as `text` and an open call tell.
    pub fn dialog_opened(
        &mut self,
        notes: &mut Notes,
        by: Timestamp,
        kind: Kind,
        text: Option<&str>,
    ) {
        if !self.requests.is_empty() {
            return self.requests.wait(notes);
        }
        let Some(call) = self.calls.newest_open(by) else {
            // Once the main agent's turn is over only a subagent asks.
            let agent = if self.idle { self.last_subagent() } else { AgentId::MAIN };
            let request = dialog_id(notes, &agent);
            let ask =
                Ask { text: text.map(|text| head(text, TEXT_BYTES_MAX).into()), ..Ask::default() };
            return self.requests.ask(notes, &agent, kind, request, Stage::Waiting, ask);
        };
        let (agent, kind) = (call.agent.clone(), Kind::of_tool(&call.tool));
        let ask = Ask {
            call: Some(call.id.clone()),
            tool: Some(ToolName::new(call.tool.clone())),
            text: text.map(|text| head(text, TEXT_BYTES_MAX).into()),
            input: call.input(),
        };
        let request = RequestId::new(call.id.as_str());
        self.requests.ask(notes, &agent, kind, request, Stage::Waiting, ask);
    }

    /// The main agent's turn is over. Where the client says that it still waits, and what for is
    /// not known, that is not settled: a subagent's own words come later than its dialog.
    pub(super) fn hand_dialog_on(&mut self, notes: &mut Notes) {
        if self.registered.waits_since().is_some_and(|since| since <= notes.at) {
            let agent = self.last_subagent();
            self.requests.hand_dialog_on(notes, &agent);
        }
    }

    /// The subagent that began last, of those that work; the main agent where none is known.
    fn last_subagent(&self) -> AgentId {
        let last = self.subagents.last().or_else(|| self.background.last_agent());
        last.map_or(AgentId::MAIN, |id| AgentId::sub(id.clone()))
    }
}
