//! One session as its handler remembers it: just enough to settle races and join what belongs
//! together. What is true about the session is the monitor's business.

use std::sync::Arc;

use qd_session::id::{AgentId, CallId, RequestId, ToolName};
use qd_session::moment::Timestamp;
use qd_session::monitor::{Ask, Fact, Failure, Place, Stage, Usage};
use serde_json::Value;

use super::background::Background;
use super::call::{Calls, about};
use super::excerpt::{head, tail};
use super::holders::Holders;
use super::notes::Notes;
use super::registry::Registered;
use super::request::{Kind, Requests, ask};
use crate::signal::Sighting;

/// How long the end of a turn, or a rejection, is held back. Another Stop hook's veto and the
/// interrupt after a rejected dialog follow within a few dozen milliseconds.
const HOLD_MS: u64 = 300;

/// Most events held back at once; more than an end from each source never are.
const HELD_MAX: usize = 16;

/// Most subagents whose start was told.
const SUBAGENTS_MAX: usize = 64;

/// Longest last message kept: what an agent asks for stands at the end of it.
const LAST_MESSAGE_BYTES_MAX: usize = 16 << 10;

/// Longest prompt kept: it is a title at most.
const PROMPT_BYTES_MAX: usize = 2 << 10;

/// Longest title kept.
const TITLE_BYTES_MAX: usize = 200;

#[derive(Debug, Default)]
pub struct Session {
    pub heard_at: Timestamp,
    pub calls: Calls,
    pub requests: Requests,
    pub background: Background,
    pub holders: Holders,
    pub registered: Registered,
    /// Its JSON stream is seen: there, `can_use_tool` tells who is asked, and nothing else does.
    pub stream: bool,
    /// The time of the last transcript line that had one, and how many without came after it.
    pub line_at: Timestamp,
    pub untimed: u32,
    /// When something last went forward: a dialog from before it is not open any more.
    pub moved_at: Timestamp,
    /// Something was taken from the queue, and no turn has shown yet: it may be a command.
    taken_up: bool,
    /// The prompt that began the current turn, and when.
    turn: Option<Arc<str>>,
    turn_at: Timestamp,
    /// The turn is over, for all that is known.
    idle: bool,
    compacting: bool,
    said: Option<Said>,
    held: Vec<Held>,
    subagents: Vec<Arc<str>>,
    place: Place,
    mode: Option<Arc<str>>,
    title: Option<Arc<str>>,
    custom_title: Option<Arc<str>>,
}

/// What the assistant has said in one message, block by block.
#[derive(Debug)]
struct Said {
    message: Option<String>,
    text: String,
}

#[derive(Debug)]
struct Held {
    due: Timestamp,
    sighting: Sighting,
}

/// A prompt, as hook and transcript tell it.
#[derive(Debug, Clone, Copy)]
pub struct Prompt<'a> {
    pub id: Option<&'a str>,
    pub text: Option<&'a str>,
    /// The client wrote it itself: background work is done.
    pub by_machine: bool,
}

/// Turns.
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
        self.turn = prompt.id.map(|id| head(id, 128));
        self.turn_at = notes.at;
        self.said = None;
        self.settle(notes, &AgentId::MAIN);
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
            notes.tell_main(Fact::UserPrompt { text: Some(head(text, PROMPT_BYTES_MAX)) });
        }
    }

    /// The loop ended, if nobody objects.
    pub fn turn_ending(&mut self, notes: &mut Notes, last_message: Option<&str>, cut_off: bool) {
        let end = self.end(last_message, cut_off);
        self.hold(notes, notes.sighting(&AgentId::MAIN, end));
        self.settle(notes, &AgentId::MAIN);
    }

    /// The loop ended: the client itself is done with it.
    pub fn turn_ended(&mut self, notes: &mut Notes, last_message: Option<&str>, cut_off: bool) {
        self.release(notes);
        let end = self.end(last_message, cut_off);
        notes.tell_main(end);
        self.settle(notes, &AgentId::MAIN);
    }

    fn end(&self, last_message: Option<&str>, cut_off: bool) -> Fact {
        let text = last_message.filter(|text| !text.trim().is_empty());
        Fact::TurnCompleted {
            last_message: text.map(|text| tail(text, LAST_MESSAGE_BYTES_MAX)),
            background: self.background.left(),
            cut_off,
        }
    }

    pub fn turn_failed(&mut self, notes: &mut Notes, agent: &AgentId, failure: Failure) {
        self.release(notes);
        notes.tell(agent, Fact::TurnFailed { failure });
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

    /// The turn is over and background work goes on.
    pub fn is_delegating(&self) -> bool {
        self.idle && self.background.count() > 0
    }

    fn settle(&mut self, notes: &Notes, agent: &AgentId) {
        self.idle |= agent.is_main();
        self.calls.close_all(notes.now, agent);
        self.requests.forget(agent);
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
        said.text.push_str(&tail(text, LAST_MESSAGE_BYTES_MAX));
        let excess = said.text.len().saturating_sub(4 * LAST_MESSAGE_BYTES_MAX);
        if excess > 0 {
            said.text = (*tail(&said.text, LAST_MESSAGE_BYTES_MAX)).to_owned();
        }
        &said.text
    }

    /// What it has said in that message so far.
    pub fn said_in(&self, message: Option<&str>) -> Option<String> {
        let said = self.said.as_ref()?;
        (said.message.as_deref() == message).then(|| said.text.clone())
    }
}

/// Calls and requests.
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
        let kind = Kind::of_tool(tool);
        if kind != Kind::Permission && self.calls.awaits(id) {
            let ask = ask(Some(call), tool, input, None);
            self.requests.ask(notes, agent, kind, RequestId::new(id), Stage::Waiting, ask);
        }
    }

    pub fn call_ended(&mut self, notes: &mut Notes, agent: &AgentId, id: &str, ok: bool) {
        self.requests.settle_call(id);
        self.moved_at = self.moved_at.max(notes.at);
        let Some(agent) = self.calls.end(notes.now, agent, id) else { return };
        if agent.is_main() {
            self.release(notes);
        }
        notes.tell(&agent, Fact::ToolCompleted { call: CallId::new(id), ok });
    }

    /// A person refused the call. Mostly the turn is over with that; the next line says so.
    pub fn call_rejected(&mut self, notes: &mut Notes, agent: &AgentId, id: &str) {
        self.requests.settle_call(id);
        let Some(agent) = self.calls.end(notes.now, agent, id) else { return };
        let end = Fact::ToolCompleted { call: CallId::new(id), ok: false };
        self.hold(notes, notes.sighting(&agent, end));
        self.hold(notes, notes.sighting(&agent, Fact::LlmStarted));
    }

    /// What a call waited for was answered, and not by a result yet. A refusal may end the turn.
    pub fn call_answered(&mut self, notes: &mut Notes, id: &str, allowed: bool) {
        self.calls.answered(notes.now, &CallId::new(id));
        let Some(request) = self.requests.of_call(id) else { return };
        if allowed {
            self.requests.resolve(notes, request.as_str());
        } else if let Some(resolution) = self.requests.resolution(notes, request.as_str()) {
            self.hold(notes, resolution);
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
            let request = RequestId::new("dialog");
            let ask = Ask { text: text.map(|text| head(text, 2 << 10)), ..Ask::default() };
            return self.requests.ask(notes, &AgentId::MAIN, kind, request, Stage::Waiting, ask);
        };
        let (agent, kind) = (call.agent.clone(), Kind::of_tool(&call.tool));
        let ask = Ask {
            call: Some(call.id.clone()),
            tool: Some(ToolName::new(call.tool.clone())),
            text: text.map(|text| head(text, 2 << 10)),
            input: call.input(),
        };
        let request = RequestId::new(call.id.as_str());
        self.requests.ask(notes, &agent, kind, request, Stage::Waiting, ask);
    }
}

/// The rest.
impl Session {
    pub fn compaction_started(&mut self, notes: &mut Notes) {
        self.release(notes);
        self.compacting = true;
        notes.tell_main(Fact::CompactionStarted);
    }

    /// Tells it only where one is open: a failed compaction has no end of its own.
    pub fn compaction_ended(&mut self, notes: &mut Notes) {
        if std::mem::take(&mut self.compacting) {
            notes.tell_main(Fact::CompactionEnded);
        }
    }

    pub fn subagent_started(&mut self, notes: &mut Notes, id: &str, kind: Option<&str>) {
        let known = self.subagents.iter().any(|known| **known == *id);
        if known && kind.is_none() {
            return;
        }
        if !known {
            if self.subagents.len() == SUBAGENTS_MAX {
                self.subagents.remove(0);
            }
            self.subagents.push(head(id, 128));
        }
        let kind = kind.map(|kind| head(kind, 128));
        notes.tell(&AgentId::sub(id), Fact::SubagentStarted { kind });
    }

    pub fn subagent_ended(&mut self, notes: &mut Notes, id: &str) {
        let agent = AgentId::sub(id);
        self.subagents.retain(|known| **known != *id);
        notes.tell(&agent, Fact::SubagentEnded);
        self.settle(notes, &agent);
    }

    /// A stream may know a subagent only by the call that started it.
    pub fn subagent_of_call_ended(&mut self, notes: &mut Notes, call: &str) {
        if self.subagents.iter().any(|known| **known == *call) {
            self.subagent_ended(notes, call);
        }
    }

    /// A process opened it again: it is at its prompt, whatever the last one left unfinished.
    /// Where another may still hold it, what that one waits for is left alone.
    pub fn resumed(&mut self, notes: &mut Notes, alone: bool) {
        if !alone && !self.requests.is_empty() {
            return;
        }
        self.release(notes);
        let background = alone.then_some(0);
        notes.tell_main(Fact::TurnCompleted { last_message: None, background, cut_off: false });
        if alone {
            self.subagents_lost(notes);
        }
        self.settle(notes, &AgentId::MAIN);
    }

    fn subagents_lost(&mut self, notes: &mut Notes) {
        for id in std::mem::take(&mut self.subagents) {
            notes.tell(&AgentId::sub(id), Fact::SubagentEnded);
        }
    }

    /// The session is over; what was held back is told with it.
    pub fn ended(&mut self, notes: &mut Notes, exit_code: Option<i32>) {
        self.release(notes);
        notes.tell_main(Fact::SessionEnded { process: None, exit_code });
        self.subagents_lost(notes);
        self.calls.clear();
        self.requests.clear();
        self.background.clear();
        self.compacting = false;
        self.stream = false;
        self.turn = None;
    }

    pub fn place_known(&mut self, notes: &mut Notes, place: Place) {
        let news = Place {
            cwd: place.cwd.filter(|new| self.place.cwd.as_ref() != Some(new)),
            branch: place.branch.filter(|new| self.place.branch.as_ref() != Some(new)),
            transcript: place.transcript.filter(|new| self.place.transcript.as_ref() != Some(new)),
        };
        if news == Place::default() {
            return;
        }
        let Place { cwd, branch, transcript } = news.clone();
        self.place.cwd = cwd.or(self.place.cwd.take());
        self.place.branch = branch.or(self.place.branch.take());
        self.place.transcript = transcript.or(self.place.transcript.take());
        notes.tell_main(Fact::PlaceKnown { place: news });
    }

    pub fn mode_known(&mut self, notes: &mut Notes, mode: Option<&str>) {
        if let Some(mode) = mode.filter(|mode| self.mode.as_deref() != Some(mode)) {
            self.mode = Some(head(mode, 64));
            notes.tell_main(Fact::ModeChanged { mode: head(mode, 64) });
        }
    }

    pub fn title_known(&mut self, notes: &mut Notes, title: &str, custom: bool) {
        let title = head(title, TITLE_BYTES_MAX);
        let known = if custom { &mut self.custom_title } else { &mut self.title };
        if known.as_ref() != Some(&title) {
            *known = Some(title.clone());
            notes.tell_main(Fact::TitleKnown { title, custom });
        }
    }

    pub fn usage_known(&self, notes: &mut Notes, model: Option<&str>, tokens: Option<u64>) {
        if model.is_some() || tokens.is_some() {
            let usage = Usage {
                model: model.map(|model| head(model, 128)),
                context_tokens: tokens,
                context_window: None,
            };
            notes.tell_main(Fact::UsageReported { usage });
        }
    }

    pub fn hold(&mut self, notes: &Notes, sighting: Sighting) {
        if self.held.len() < HELD_MAX {
            self.held.push(Held { due: notes.now.plus_ms(HOLD_MS), sighting });
        }
    }

    /// What was held back is certain, or does not matter any more.
    pub fn release(&mut self, notes: &mut Notes) {
        notes.add(self.held.drain(..).map(|held| held.sighting));
    }

    pub fn next_due(&self) -> Option<Timestamp> {
        let held = self.held.iter().map(|held| held.due).min();
        held.into_iter().chain(self.requests.next_due()).min()
    }

    pub fn due(&mut self, now: Timestamp) -> Vec<Sighting> {
        let mut sightings = self.requests.due(now);
        sightings
            .extend(self.held.extract_if(.., |held| held.due <= now).map(|held| held.sighting));
        sightings
    }

    /// All that is held back, for a session that is to be forgotten.
    pub fn last_words(self) -> impl Iterator<Item = Sighting> {
        self.held.into_iter().map(|held| held.sighting)
    }
}
