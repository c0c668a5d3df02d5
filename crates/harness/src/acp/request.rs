//! What an agent waits for: permissions, plans, questions, and their answers.

use qd_session::id::{AgentId, CallId, RequestId};
use qd_session::monitor::{Ask, Fact, Stage};
use serde_json::Value;

use super::rpc::RpcId;
use super::session::{Replay, Session};
use super::wire::{Answer, ElicitationParams, PermissionCall, PermissionOption, PermissionParams};
use crate::excerpt;
use crate::outbox::Outbox;

/// Most requests of one session that are open at once.
const REQUESTS_MAX: usize = 64;

/// What a tool call is that leaves the planning mode: its permission is the plan's approval.
const SWITCH_MODE: &str = "switch_mode";

#[derive(Debug)]
pub struct Request {
    /// What the answer will name; none where only a state told that somebody is waited for.
    pub rpc: Option<RpcId>,
    pub elicitation: Option<String>,
    kind: Kind,
    agent: AgentId,
    ask: Ask,
    options: Vec<PermissionOption>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Permission,
    Plan,
    Question,
}

impl Request {
    pub fn unnamed() -> Self {
        Self {
            rpc: None,
            elicitation: None,
            kind: Kind::Permission,
            agent: AgentId::MAIN,
            ask: Ask::default(),
            options: Vec::new(),
        }
    }

    fn id(&self) -> RequestId {
        self.rpc.as_ref().map_or_else(|| "requires_action".into(), RpcId::request)
    }

    fn asked(&self) -> Fact {
        let (request, ask) = (self.id(), self.ask.clone());
        match self.kind {
            Kind::Permission => Fact::ApprovalRequested { request, stage: Stage::Waiting, ask },
            Kind::Plan => Fact::PlanProposed { request, ask },
            Kind::Question => Fact::QuestionAsked { request, ask },
        }
    }

    fn resolved(&self) -> Fact {
        let request = self.id();
        match self.kind {
            Kind::Permission => Fact::ApprovalResolved { request },
            Kind::Plan => Fact::PlanResolved { request },
            Kind::Question => Fact::QuestionAnswered { request },
        }
    }

    /// The answer lets the call go on.
    fn allowed_by(&self, answer: &Answer) -> bool {
        let Some(outcome) = &answer.outcome else { return false };
        let chosen = outcome.option_id.as_deref().unwrap_or_default();
        let kind = self.options.iter().find(|option| option.option_id == chosen);
        outcome.outcome.as_deref() == Some("selected")
            && kind.is_none_or(|option| option.kind.starts_with("allow"))
    }
}

impl Session {
    pub fn asks_permission(&mut self, rpc: RpcId, params: PermissionParams, out: &mut Outbox) {
        let PermissionCall { call: told, content } = params.tool_call.unwrap_or_default();
        let input = told.raw_input.as_ref().or(content.as_ref()).map(Value::to_string);
        let (mut kind, mut agent) = (Kind::Permission, AgentId::MAIN);
        let mut ask = Ask { input: input.as_deref().map(excerpt::input), ..Ask::default() };
        if let Some(call) = self.calls.learn(&told, content.as_ref()) {
            if call.kind() == SWITCH_MODE {
                kind = Kind::Plan;
            }
            agent = call.agent.clone();
            ask.call = Some(call.id.clone());
            ask.tool = Some(call.tool());
            ask.text = match kind {
                Kind::Plan => call.text().or_else(|| call.about()),
                Kind::Permission | Kind::Question => call.about().or_else(|| call.text()),
            };
            ask.input = call.input().or(ask.input);
        }
        let options = params.options;
        self.open(Request { rpc: Some(rpc), elicitation: None, kind, agent, ask, options }, out);
    }

    pub fn asks_question(&mut self, rpc: RpcId, params: ElicitationParams, out: &mut Outbox) {
        let ask = Ask {
            call: params.tool_call_id.as_deref().map(CallId::new),
            tool: None,
            text: params.message.as_deref().and_then(excerpt::last_message),
            input: params.requested_schema.map(|schema| excerpt::input(&schema.to_string())),
        };
        let request = Request {
            rpc: Some(rpc),
            elicitation: params.elicitation_id,
            kind: Kind::Question,
            agent: AgentId::MAIN,
            ask,
            options: Vec::new(),
        };
        self.open(request, out);
    }

    pub fn open(&mut self, request: Request, out: &mut Outbox) {
        // Nothing of the past asks anything.
        self.replay = Replay::Live;
        self.turn.works(out.at());
        if request.agent.is_main() {
            self.turn.act();
        }
        self.resolve_unnamed(out);
        out.tell_of(request.agent.clone(), request.asked());
        self.requests.retain(|open| open.rpc != request.rpc);
        if self.requests.len() == REQUESTS_MAX {
            self.requests.remove(0);
        }
        self.requests.push(request);
    }

    /// The client's answer to one of them. False if it is none of ours.
    pub fn answered(&mut self, rpc: &RpcId, answer: &Answer, out: &mut Outbox) -> bool {
        let Some(request) = self.take(|open| open.rpc.as_ref() == Some(rpc)) else { return false };
        out.tell_of(request.agent.clone(), request.resolved());
        if request.kind == Kind::Question {
            return true;
        }
        let allowed = request.allowed_by(answer);
        if !allowed {
            self.turn.refuse();
        }
        let call = request.ask.call.as_ref().and_then(|id| self.calls.find(id));
        if let Some(call) = call {
            call.refused = !allowed;
            match allowed {
                true => call.start(out),
                // Some agents tell nothing more of a refused call.
                false => call.end(true, out),
            }
        }
        true
    }

    /// The agent takes a request back, or tells that it was settled elsewhere.
    pub fn withdrawn(&mut self, which: impl Fn(&Request) -> bool, out: &mut Outbox) {
        if let Some(request) = self.take(which) {
            out.tell_of(request.agent.clone(), request.resolved());
        }
    }

    pub fn resolve_unnamed(&mut self, out: &mut Outbox) {
        self.withdrawn(|open| open.rpc.is_none(), out);
    }

    fn take(&mut self, which: impl Fn(&Request) -> bool) -> Option<Request> {
        let at = self.requests.iter().position(which)?;
        Some(self.requests.remove(at))
    }
}
