//! One session of the server, as far as a translator must know it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use qd_session::id::{CallId, ProcessKey, RequestId};
use qd_session::moment::Timestamp;
use qd_session::monitor::{Ask, Fact, Stage};

use crate::excerpt::{brief, ending};

/// Most requests of a session that wait at once: one for each call of a batch.
const REQUESTS_MAX: usize = 64;

/// Most prompts of a session whose messages are known. They are reported again when the turn ends,
/// so only the last few matter.
const PROMPTS_MAX: usize = 64;

/// Events this near may have changed places on their way.
const OVERTAKING_MS: u64 = 200;

#[derive(Debug, Default)]
pub struct Session {
    /// The session that delegated to this one.
    pub parent: Option<Arc<str>>,
    pub kind: Option<Arc<str>>,
    /// Where it was last heard of.
    pub server: Option<Arc<str>>,
    /// The process that carries it, once it was told.
    pub process: Option<ProcessKey>,
    pub heard: Timestamp,
    pub busy: bool,
    /// The operator turned a request down; if nothing follows, that ended the turn.
    pub turned_down: bool,
    /// The operator asked to end the turn.
    pub aborted: bool,
    /// The turn was prompted and the model has not begun to answer.
    pub unanswered: bool,
    /// When the last turn ended.
    closed_at: Timestamp,
    /// How that was told.
    ended: Ended,
    pub requests: BTreeMap<RequestId, Waiting>,
    /// Messages of the operator's. True once the text is known.
    prompts: BTreeMap<String, bool>,
    /// The answer that is being written, or was last.
    pub answer: Option<String>,
    /// The answer that the last end of a turn has settled: late news of it begins nothing.
    pub settled: Option<String>,
    text: Option<(Option<String>, String)>,
    pub cut_off: bool,
    pub title: Option<Arc<str>>,
    pub cwd: Option<String>,
    pub mode: Option<String>,
    pub done_todos: BTreeSet<String>,
    /// When a session that nobody has prompted is known to wait for its first prompt.
    pub idle_due: Option<Timestamp>,
}

/// How the end of a turn was told: news that come late may know better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Ended {
    /// As a failure or an abort, or not at all.
    #[default]
    Otherwise,
    Silently,
    WithWords,
}

/// A request that may wait for a person.
#[derive(Debug)]
pub struct Waiting {
    pub kind: WaitKind,
    pub ask: Ask,
    pub asked: Timestamp,
    pub due: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitKind {
    Permission,
    Question,
    Plan,
}

impl Session {
    /// Notes a message of the operator's. True if it is new.
    pub fn note_prompt(&mut self, message: &str) -> bool {
        if self.prompts.contains_key(message) {
            return false;
        }
        if self.prompts.len() >= PROMPTS_MAX {
            // Ids grow with time.
            self.prompts.pop_first();
        }
        self.prompts.insert(message.to_owned(), false);
        true
    }

    pub fn is_prompt(&self, message: &str) -> bool {
        self.prompts.contains_key(message)
    }

    /// The text of a prompt, the first time it is told.
    pub fn prompt_text(&mut self, message: &str, text: &str) -> Option<Fact> {
        let known = self.prompts.get_mut(message).filter(|known| !**known)?;
        *known = true;
        Some(Fact::UserPrompt { text: Some(brief(text, 2_000)) })
    }

    pub fn says(&mut self, message: Option<&str>, text: &str) {
        if !text.is_empty() {
            self.unanswered = false;
            self.text = Some((message.map(str::to_owned), ending(text)));
        }
    }

    /// The end of the turn. What it waited for is closed with it. An abort before the first answer
    /// is not told of: the server only rests.
    pub fn end(&mut self, at: Timestamp) -> Fact {
        let (unanswered, was_busy, ended) = (self.unanswered, self.busy, self.ended);
        self.close(at);
        if self.turned_down || self.aborted || unanswered {
            return Fact::Interrupted;
        }
        // The last answer may be known by its text only.
        let said = self.text.as_ref().filter(|(message, _)| *message >= self.answer);
        // It says twice that it rests: the first one ended the turn.
        self.ended = match said {
            _ if !was_busy => ended,
            Some(_) => Ended::WithWords,
            None => Ended::Silently,
        };
        Fact::TurnCompleted {
            last_message: said.map(|(_, text)| text.as_str().into()),
            background: None,
            cut_off: self.cut_off,
        }
    }

    /// The turn that is over was given up: told once, where its end was told as any other.
    pub fn was_aborted(&mut self) -> Option<Fact> {
        let was = std::mem::take(&mut self.ended);
        (!self.busy && was != Ended::Otherwise).then_some(Fact::Interrupted)
    }

    /// Somebody asked the server to give up whatever runs. That may have been nothing: what was
    /// delivered before stays delivered.
    pub fn was_drained(&mut self) -> Option<Fact> {
        if self.ended == Ended::Silently { self.was_aborted() } else { None }
    }

    pub fn close(&mut self, at: Timestamp) {
        self.busy = false;
        self.ended = Ended::Otherwise;
        self.closed_at = self.closed_at.max(at);
        self.settled.clone_from(&self.answer);
        self.unanswered = false;
        self.requests.clear();
        self.idle_due = None;
    }

    pub fn begin(&mut self) {
        self.busy = true;
        self.ended = Ended::Otherwise;
        self.unanswered = true;
        self.turned_down = false;
        self.aborted = false;
        self.cut_off = false;
        self.requests.clear();
        self.idle_due = None;
    }

    /// The model goes on: what was turned down did not end the turn.
    pub fn go_on(&mut self) -> Fact {
        self.busy = true;
        self.unanswered = false;
        self.turned_down = false;
        self.idle_due = None;
        Fact::LlmStarted
    }

    /// The status says busy. It says so once more while the server ends a turn, and the two may
    /// overtake each other: what follows at once on an end begins nothing.
    pub fn is_busy(&mut self, at: Timestamp) -> Option<Fact> {
        if !self.busy && at.ms_since(self.closed_at) < OVERTAKING_MS {
            return None;
        }
        self.busy = true;
        self.idle_due = None;
        Some(Fact::LlmStarted)
    }

    pub fn is_settled(&self, message: Option<&str>) -> bool {
        !self.busy && message.is_some() && self.settled.as_deref() == message
    }

    pub fn ask(&mut self, id: RequestId, waiting: Waiting) {
        if self.requests.len() >= REQUESTS_MAX {
            self.requests.pop_first();
        }
        self.busy = true;
        self.unanswered = false;
        self.idle_due = None;
        self.requests.insert(id, waiting);
    }

    /// The question tool runs. Its request has its own event; if that is lost, the tool stands in
    /// for it, so that the session is seen to wait.
    pub fn stand_in(&mut self, call: &CallId, waiting: Waiting) {
        let known = self.requests.values().any(|known| known.ask.call.as_ref() == Some(call));
        if !known {
            self.ask(stand_in_id(call), waiting);
        }
    }

    /// The call is over, or its own request has come. What the stand-in has opened is closed.
    pub fn drop_stand_in(&mut self, call: &CallId) -> Option<Fact> {
        let id = stand_in_id(call);
        let waiting = self.requests.remove(&id)?;
        waiting.due.is_none().then(|| waiting.kind.settled(id))
    }

    pub fn next_timeout(&self) -> Option<Timestamp> {
        self.requests.values().filter_map(|waiting| waiting.due).chain(self.idle_due).min()
    }

    pub fn handle_timeout(&mut self, now: Timestamp) -> Vec<Fact> {
        let mut facts = Vec::new();
        for (id, waiting) in &mut self.requests {
            if waiting.due.take_if(|due| *due <= now).is_some() {
                facts.push(waiting.fact(id, Stage::Waiting));
            }
        }
        if self.idle_due.take_if(|due| *due <= now).is_some() && self.parent.is_none() {
            facts.push(Fact::SessionStarted { process: None });
        }
        facts
    }
}

fn stand_in_id(call: &CallId) -> RequestId {
    RequestId::new(format!("call:{call}"))
}

impl Waiting {
    pub fn fact(&self, id: &RequestId, stage: Stage) -> Fact {
        let (request, ask) = (id.clone(), self.ask.clone());
        match self.kind {
            WaitKind::Permission => Fact::ApprovalRequested { request, stage, ask },
            WaitKind::Question => Fact::QuestionAsked { request, ask },
            WaitKind::Plan => Fact::PlanProposed { request, ask },
        }
    }
}

impl WaitKind {
    pub fn settled(self, request: RequestId) -> Fact {
        match self {
            Self::Permission => Fact::ApprovalResolved { request },
            Self::Question => Fact::QuestionAnswered { request },
            Self::Plan => Fact::PlanResolved { request },
        }
    }
}
