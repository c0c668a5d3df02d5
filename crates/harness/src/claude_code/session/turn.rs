//! A session's turns: what begins one, what ends it, and what only seems to.

use qd_session::id::AgentId;
use qd_session::moment::Timestamp;
use qd_session::monitor::{Fact, Failure};

use super::super::notes::Notes;
use super::{HOLD_MS, Session};
use crate::excerpt::{LAST_MESSAGE_BYTES_MAX, head, tail};

/// Longest prompt kept: it is a title at most.
const PROMPT_BYTES_MAX: usize = 2 << 10;

/// A prompt, as hook and transcript tell it.
#[derive(Debug, Clone, Copy)]
pub struct Prompt<'a> {
    pub id: Option<&'a str>,
    pub text: Option<&'a str>,
    /// The client wrote it itself: background work is done.
    pub by_machine: bool,
}

/// What the assistant has said in one message, block by block.
#[derive(Debug)]
pub(super) struct Said {
    message: Option<String>,
    text: String,
}

impl Session {
    /// A prompt was typed. While a tool runs it is queued, and the turn goes on.
    pub fn prompt_typed(&mut self, notes: &mut Notes, prompt: Prompt<'_>) {
        let main = AgentId::MAIN;
        let queued = self.calls.any_open(&main) && !self.requests.any_of(&main);
        if queued && !self.is_turn(prompt.id) {
            self.tell_prompt(notes, prompt);
        } else {
            self.turn_started(notes, prompt);
        }
    }

    /// A prompt was taken up: a new turn.
    pub fn turn_started(&mut self, notes: &mut Notes, prompt: Prompt<'_>) {
        self.release(notes);
        self.stays();
        if let (true, Some(text)) = (prompt.by_machine, prompt.text) {
            self.background.note_notification(text);
        }
        if self.is_turn(prompt.id) {
            // Told by another source before.
            return notes.tell_main(Fact::LlmStarted);
        }
        notes.tell_main(Fact::TurnStarted);
        self.tell_prompt(notes, prompt);
        if notes.at < self.turn_at {
            // Telemetry comes late: the turn after it has begun already.
            return;
        }
        self.taken_up = false;
        self.turn = prompt.id.map(|id| head(id, 128).into());
        self.turn_at = notes.at;
        self.said = None;
        // The prompt's line may come after what the turn runs and asks already.
        self.calls.close_until(notes.now, &AgentId::MAIN, notes.at);
        self.requests.forget_until(&AgentId::MAIN, notes.at);
        self.moved_at = self.moved_at.max(notes.at);
        self.idle = false;
    }

    /// Something was taken from the queue: a prompt, or a command such as `/compact`.
    pub fn prompt_taken_up(&mut self, notes: &mut Notes) {
        self.taken_up = true;
        self.llm_started(notes, &AgentId::MAIN);
    }

    /// A command of the client itself is done. If it came from the queue, that was all.
    pub fn command_ended(&mut self, notes: &mut Notes) {
        if std::mem::take(&mut self.taken_up) {
            self.turn_ended(notes, None, false);
        }
    }

    fn is_turn(&self, prompt: Option<&str>) -> bool {
        prompt.is_some() && prompt == self.turn.as_deref()
    }

    fn tell_prompt(&self, notes: &mut Notes, prompt: Prompt<'_>) {
        if let (false, Some(text)) = (prompt.by_machine, prompt.text) {
            notes.tell_main(Fact::UserPrompt { text: Some(head(text, PROMPT_BYTES_MAX).into()) });
        }
    }

    /// The loop ended, if nobody objects.
    pub fn turn_ending(&mut self, notes: &mut Notes, last_message: Option<&str>, cut_off: bool) {
        let end = notes.sighting(&AgentId::MAIN, self.end(last_message, cut_off));
        match self.is_registered_idle_since(notes.at) {
            true => notes.add([end]),
            false => self.hold(notes, HOLD_MS, end),
        }
        self.hand_dialog_on(notes);
        self.settle(notes, &AgentId::MAIN);
    }

    /// The loop ended: the client itself is done with it.
    pub fn turn_ended(&mut self, notes: &mut Notes, last_message: Option<&str>, cut_off: bool) {
        self.release(notes);
        let end = self.end(last_message, cut_off);
        notes.tell_main(end);
        self.hand_dialog_on(notes);
        self.settle(notes, &AgentId::MAIN);
    }

    fn end(&self, last_message: Option<&str>, cut_off: bool) -> Fact {
        let text = last_message.filter(|text| !text.trim().is_empty());
        Fact::TurnCompleted {
            last_message: text.map(|text| tail(text, LAST_MESSAGE_BYTES_MAX).into()),
            background: self.background.left(),
            cut_off,
        }
    }

    pub fn turn_failed(&mut self, notes: &mut Notes, agent: &AgentId, failure: Failure) {
        self.release(notes);
        notes.tell(agent, Fact::TurnFailed { failure });
        if agent.is_main() {
            self.hand_dialog_on(notes);
        }
        self.settle(notes, agent);
    }

    pub fn interrupted(&mut self, notes: &mut Notes, agent: &AgentId) {
        self.release(notes);
        notes.tell(agent, Fact::Interrupted);
        self.settle(notes, agent);
    }

    /// The model is at work, now or next.
    pub fn llm_started(&mut self, notes: &mut Notes, agent: &AgentId) {
        if agent.is_main() {
            self.release(notes);
            self.idle = false;
        }
        notes.tell_next(agent, Fact::LlmStarted);
    }

    /// The agent is at work, should that not be known: a tool of its has run.
    pub fn works(&mut self, notes: &mut Notes, agent: &AgentId) {
        let is_known = match agent.is_main() {
            true => !self.is_at_rest(),
            false => !self.is_done(agent),
        };
        if is_known {
            return;
        }
        match agent.is_main() {
            true => self.idle = false,
            false => self.subagent_started(notes, agent.as_str(), None),
        }
        notes.tell(agent, Fact::LlmStarted);
    }

    /// The turn is over, for all that is known.
    pub fn is_idle(&self) -> bool {
        self.idle
    }

    /// No turn is under way: the last is over, or none was ever seen.
    pub fn is_at_rest(&self) -> bool {
        self.idle || (self.turn_at == Timestamp::ZERO && !self.calls.any_open(&AgentId::MAIN))
    }

    /// The client said at that time that it is at its prompt.
    pub fn rest(&mut self, at: Timestamp) {
        self.idle |= self.turn_at <= at;
    }

    /// Something that it started runs on without it, or did a moment ago.
    pub fn delegates(&self) -> bool {
        self.background.count() > 0 || !self.subagents.is_empty()
    }

    /// The agent has ended its turn, or itself.
    pub fn is_done(&self, agent: &AgentId) -> bool {
        match agent.is_main() {
            true => self.idle,
            false => !self.subagents.iter().any(|known| **known == *agent.as_str()),
        }
    }

    /// The turn is over and background work goes on.
    pub fn is_delegating(&self) -> bool {
        self.idle && self.background.count() > 0
    }

    pub(super) fn settle(&mut self, notes: &Notes, agent: &AgentId) {
        self.idle |= agent.is_main();
        self.calls.close_all(notes.now, agent);
        self.requests.forget_until(agent, notes.at);
        self.moved_at = self.moved_at.max(notes.at);
    }

    /// Collects what the assistant says; a message comes block by block.
    pub fn say(&mut self, message: Option<&str>, text: &str) -> &str {
        let said = self.said.get_or_insert_with(|| Said { message: None, text: String::new() });
        if said.message.as_deref() != message || message.is_none() {
            said.text.clear();
        }
        said.message = message.map(str::to_owned);
        if !said.text.is_empty() {
            said.text.push_str("\n\n");
        }
        said.text.push_str(tail(text, LAST_MESSAGE_BYTES_MAX));
        let excess = said.text.len().saturating_sub(4 * LAST_MESSAGE_BYTES_MAX);
        if excess > 0 {
            said.text = tail(&said.text, LAST_MESSAGE_BYTES_MAX).to_owned();
        }
        &said.text
    }

    /// The turn is over, and with this message.
    pub fn was_last(&self, message: Option<&str>) -> bool {
        self.idle && message.is_some() && self.said_in(message).is_some()
    }

    /// What it has said in that message so far.
    pub fn said_in(&self, message: Option<&str>) -> Option<String> {
        let said = self.said.as_ref()?;
        (said.message.as_deref() == message).then(|| said.text.clone())
    }
}
