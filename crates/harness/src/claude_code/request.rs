//! Requests: what the agents of a session wait for, as far as the handler must remember it.
//!
//! A permission is under review first, with a time after which silence means that a person is
//! asked. Questions and plans are for a person by their nature.

use std::sync::Arc;

use qd_session::id::{AgentId, CallId, RequestId, ToolName};
use qd_session::moment::Timestamp;
use qd_session::monitor::{Ask, Fact, Stage};
use serde_json::Value;

use super::call::input_text;
use super::echo::hash;
use super::notes::Notes;
use crate::excerpt::{self, head};
use crate::signal::Sighting;

/// Silence after which a permission request is known to wait for a person: rules and other hooks
/// answer faster, and a denial "by itself" comes at once.
pub const REVIEW_MS: u64 = 400;

/// Most requests open in one session; the oldest go first.
const REQUESTS_MAX: usize = 64;

/// The id of a request of which only a dialog is known; a subagent's has its name behind it.
const DIALOG: &str = "dialog";

/// The request of an agent of which only a dialog is known.
pub fn dialog_id(notes: &Notes, agent: &AgentId) -> RequestId {
    match agent.is_main() {
        true => notes.request_id(DIALOG.to_owned()),
        false => notes.request_id(format!("{DIALOG}:{}", agent.as_str())),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Permission,
    Question,
    Plan,
}

impl Kind {
    pub fn of_tool(tool: &str) -> Self {
        match tool {
            "AskUserQuestion" => Self::Question,
            "ExitPlanMode" => Self::Plan,
            _ => Self::Permission,
        }
    }

    fn asked(self, request: RequestId, stage: Stage, ask: Ask) -> Fact {
        match self {
            Self::Permission => Fact::ApprovalRequested { request, stage, ask },
            Self::Question => Fact::QuestionAsked { request, ask },
            Self::Plan => Fact::PlanProposed { request, ask },
        }
    }

    fn resolved(self, request: RequestId) -> Fact {
        match self {
            Self::Permission => Fact::ApprovalResolved { request },
            Self::Question => Fact::QuestionAnswered { request },
            Self::Plan => Fact::PlanResolved { request },
        }
    }
}

#[derive(Debug)]
struct Pending {
    id: RequestId,
    kind: Kind,
    agent: AgentId,
    ask: Ask,
    asked_at: Timestamp,
    review: Option<Review>,
}

/// Still under review: what to say when it has taken too long.
#[derive(Debug)]
struct Review {
    due: Timestamp,
    waits: Sighting,
}

impl Pending {
    /// Nothing is known of it but that a person is asked.
    fn is_dialog(&self) -> bool {
        self.ask.call.is_none() && self.ask.tool.is_none()
    }
}

#[derive(Debug, Default)]
pub struct Requests {
    list: Vec<Pending>,
}

impl Requests {
    /// Tells of a request, or that a person is needed for one that is known.
    pub fn ask(
        &mut self,
        notes: &mut Notes,
        agent: &AgentId,
        kind: Kind,
        id: RequestId,
        stage: Stage,
        ask: Ask,
    ) {
        notes.tell(agent, kind.asked(id.clone(), stage, ask.clone()));
        let review = (stage == Stage::UnderReview).then(|| Review {
            due: notes.now.plus_ms(REVIEW_MS),
            waits: notes.sighting(agent, kind.asked(id.clone(), Stage::Waiting, ask.clone())),
        });
        if let Some(known) = self.list.iter_mut().find(|pending| pending.id == id) {
            known.ask = ask;
            // Told again, it is not reviewed for longer.
            known.review = known.review.take().zip(review).map(|(known, _)| known);
            return;
        }
        if self.list.len() == REQUESTS_MAX {
            self.list.remove(0);
        }
        let asked_at = notes.at;
        self.list.push(Pending { id, kind, agent: agent.clone(), ask, asked_at, review });
    }

    /// A person is known to be asked for all that is open.
    pub fn wait(&mut self, notes: &mut Notes) {
        let waits = self.list.iter_mut().filter_map(|pending| pending.review.take());
        notes.add(waits.map(|review| review.waits));
    }

    /// The call of a request that came before it.
    pub fn bind(
        &mut self,
        notes: &mut Notes,
        agent: &AgentId,
        tool: &str,
        input: Option<&Value>,
        call: &CallId,
    ) {
        let input = input.map(input_text);
        let same = |pending: &&mut Pending| {
            let ask = &pending.ask;
            pending.agent == *agent
                && ask.call.is_none()
                && ask.input == input
                && ask.tool.as_ref().is_some_and(|known| known.as_str() == tool)
        };
        let Some(pending) = self.list.iter_mut().find(same) else { return };
        pending.ask.call = Some(call.clone());
        let stage = if pending.review.is_some() { Stage::UnderReview } else { Stage::Waiting };
        // It is asked when it was: a call that began before is told late, and nobody asked then.
        let asked = pending.kind.asked(pending.id.clone(), stage, pending.ask.clone());
        let mut told = notes.sighting(agent, asked);
        told.event.at = told.event.at.max(pending.asked_at);
        notes.add([told]);
    }

    /// When the dialog opened of which nothing else is known, if it did so by then or later. It
    /// is told to be closed: what it is about takes its place.
    pub fn take_dialog(&mut self, notes: &mut Notes, since: Timestamp) -> Option<Timestamp> {
        let pending = self.take(|pending| pending.is_dialog() && pending.asked_at >= since)?;
        let at = std::mem::replace(&mut notes.at, pending.asked_at);
        notes.tell_next(&pending.agent, pending.kind.resolved(pending.id));
        notes.at = at;
        Some(pending.asked_at)
    }

    /// The main agent's turn is over, and yet the dialog is open that was taken for its own: it is
    /// somebody else's, and asked on their behalf.
    pub fn hand_dialog_on(&mut self, notes: &mut Notes, to: &AgentId) {
        let until = notes.at;
        let is_open = |pending: &Pending| {
            pending.agent.is_main() && pending.is_dialog() && pending.asked_at <= until
        };
        let Some(Pending { kind, ask, .. }) = self.take(is_open) else { return };
        notes.afterwards(|notes| {
            let id = dialog_id(notes, to);
            self.ask(notes, to, kind, id, Stage::Waiting, ask);
        });
    }

    pub fn resolve(&mut self, notes: &mut Notes, id: &str) -> Option<CallId> {
        let pending = self.take(|pending| pending.id.as_str() == id)?;
        notes.tell(&pending.agent, pending.kind.resolved(pending.id));
        pending.ask.call
    }

    /// The answer to a request, to be told when it is certain what follows.
    pub fn resolution(&mut self, notes: &Notes, id: &str) -> Option<Sighting> {
        let pending = self.take(|pending| pending.id.as_str() == id)?;
        Some(notes.sighting(&pending.agent, pending.kind.resolved(pending.id)))
    }

    /// The request a call waits for.
    pub fn of_call(&self, call: &str) -> Option<RequestId> {
        let holds = |pending: &&Pending| {
            pending.ask.call.as_ref().is_some_and(|known| known.as_str() == call)
        };
        self.list.iter().find(holds).map(|pending| pending.id.clone())
    }

    /// The call is over, and the monitor knows: its end closes what it waited for.
    pub fn settle_call(&mut self, call: &str) {
        self.list
            .retain(|pending| pending.ask.call.as_ref().is_none_or(|known| known.as_str() != call));
    }

    /// Tells that requests are answered which name no call: something else shows it.
    pub fn resolve_unbound(&mut self, notes: &mut Notes, agent: &AgentId) {
        self.resolve_where(notes, |pending| pending.agent == *agent && pending.ask.call.is_none());
    }

    /// Tells that a permission is decided: that of this call, else what the agent asks for this tool,
    /// else all that it asks.
    pub fn decided(
        &mut self,
        notes: &mut Notes,
        agent: &AgentId,
        call: Option<&str>,
        tool: Option<&str>,
    ) {
        self.resolve_where(notes, |Pending { ask, agent: by, .. }| {
            let of_call = ask.call.as_ref().map(CallId::as_str);
            let of_tool = ask.tool.as_ref().map(|known| known.as_str());
            let is_meant = match (call, tool) {
                (Some(call), _) => of_call.is_none_or(|known| known == call),
                (None, Some(tool)) => of_tool.is_none_or(|known| known == tool),
                (None, None) => true,
            };
            by == agent && is_meant
        });
    }

    /// Tells that a request is answered which names no call: one with its tool and input has run.
    /// So is a dialog of which nothing is known; what else the agent asks may still wait beside it.
    pub fn resolve_run(
        &mut self,
        notes: &mut Notes,
        agent: &AgentId,
        tool: Option<&str>,
        input: Option<&Value>,
    ) {
        let input = input.map(input_text);
        self.resolve_where(notes, |pending| {
            let ask = &pending.ask;
            let has_run =
                ask.input == input && ask.tool.as_ref().map(|known| known.as_str()) == tool;
            pending.agent == *agent && ask.call.is_none() && (has_run || pending.is_dialog())
        });
    }

    /// Tells that all is answered that was asked by then. The calls they held up are returned.
    pub fn resolve_until(&mut self, notes: &mut Notes, until: Timestamp) -> Vec<CallId> {
        self.resolve_where(notes, |pending| pending.asked_at <= until)
    }

    /// The answers to all that was asked by then, to be told when it is certain what follows.
    pub fn resolutions_until(&mut self, notes: &Notes, until: Timestamp) -> Vec<Sighting> {
        let gone = self.list.extract_if(.., |pending| pending.asked_at <= until);
        gone.map(|pending| notes.sighting(&pending.agent, pending.kind.resolved(pending.id)))
            .collect()
    }

    pub fn any_until(&self, until: Timestamp) -> bool {
        self.list.iter().any(|pending| pending.asked_at <= until)
    }

    fn resolve_where(&mut self, notes: &mut Notes, gone: impl Fn(&Pending) -> bool) -> Vec<CallId> {
        let mut calls = Vec::new();
        while let Some(pending) = self.take(&gone) {
            notes.tell(&pending.agent, pending.kind.resolved(pending.id));
            calls.extend(pending.ask.call);
        }
        calls
    }

    /// The agent's turn is over; the monitor closes by itself what was asked by then.
    pub fn forget_until(&mut self, agent: &AgentId, until: Timestamp) {
        self.list.retain(|pending| pending.agent != *agent || pending.asked_at > until);
    }

    pub fn clear(&mut self) {
        self.list.clear();
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn any_of(&self, agent: &AgentId) -> bool {
        self.list.iter().any(|pending| pending.agent == *agent)
    }

    pub fn next_due(&self) -> Option<Timestamp> {
        self.list
            .iter()
            .filter_map(|pending| pending.review.as_ref())
            .map(|review| review.due)
            .min()
    }

    /// Silence has lasted: a person is asked.
    pub fn due(&mut self, now: Timestamp) -> Vec<Sighting> {
        let overdue = |pending: &mut Pending| {
            pending.review.take_if(|review| review.due <= now).map(|review| review.waits)
        };
        self.list.iter_mut().filter_map(overdue).collect()
    }

    fn take(&mut self, wanted: impl Fn(&Pending) -> bool) -> Option<Pending> {
        let at = self.list.iter().position(wanted)?;
        Some(self.list.remove(at))
    }
}

/// What is shown of a request.
pub fn ask(call: Option<CallId>, tool: &str, input: Option<&Value>, text: Option<&str>) -> Ask {
    let told = text.map(str::to_owned).or_else(|| input.and_then(|input| reading(tool, input)));
    Ask {
        call,
        tool: Some(ToolName::new(tool)),
        text: told.as_deref().map(excerpt::input),
        input: input.map(input_text),
    }
}

/// What a person reads of a question or a plan.
fn reading(tool: &str, input: &Value) -> Option<String> {
    match Kind::of_tool(tool) {
        Kind::Permission => None,
        Kind::Plan => input.get("plan").and_then(Value::as_str).map(str::to_owned),
        Kind::Question => {
            let questions = input.get("questions")?.as_array()?;
            let texts: Vec<&str> =
                questions.iter().filter_map(|one| one.get("question")?.as_str()).collect();
            Some(texts.join("\n")).filter(|text| !text.is_empty())
        }
    }
}

/// An id for a request whose call is not known: the same for the same request told twice.
pub fn unbound_id(notes: &Notes, agent: &AgentId, tool: &str, input: Option<&Value>) -> RequestId {
    let text: Arc<str> = input.map_or_else(|| "".into(), input_text);
    let hash = hash(text.as_bytes());
    notes.request_id(format!("{}:{}:{hash:016x}", agent.as_str(), head(tool, 64)))
}
