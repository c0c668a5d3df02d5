//! The tool calls of one session, as far as its messages have told of them.

use std::sync::Arc;

use qd_session::id::{AgentId, CallId, ToolName};
use qd_session::monitor::Fact;
use serde_json::Value;

use super::wire::ToolCall;
use crate::excerpt;
use crate::outbox::Outbox;

/// Most calls remembered of one session. They are needed until their end; a batch seldom has more
/// than a dozen, and the oldest goes first.
const CALLS_MAX: usize = 128;

#[derive(Debug, Default)]
pub struct Calls {
    list: Vec<Call>,
}

#[derive(Debug)]
pub struct Call {
    pub id: CallId,
    pub agent: AgentId,
    tool: Option<ToolName>,
    kind: Option<String>,
    about: Option<Arc<str>>,
    /// The last input that had anything in it: the permission's own may be empty.
    input: Option<Arc<str>>,
    /// The plan or other text that the call carries.
    text: Option<Arc<str>>,
    /// It was heard of as running, not only asked about.
    pub started: bool,
    pub ended: bool,
    /// The operator said no: its failure is not the tool's.
    pub refused: bool,
}

impl Calls {
    /// What a message tells of a call joins what is known of it.
    pub fn learn(&mut self, told: &ToolCall, content: Option<&Value>) -> Option<&mut Call> {
        let id = told.tool_call_id.as_deref()?;
        let at = self.list.iter().position(|call| call.id.as_str() == id).unwrap_or_else(|| {
            if self.list.len() == CALLS_MAX {
                self.list.remove(0);
            }
            self.list.push(Call::new(id));
            self.list.len() - 1
        });
        self.list[at].learn(told, content);
        Some(&mut self.list[at])
    }

    pub fn find(&mut self, id: &CallId) -> Option<&mut Call> {
        self.list.iter_mut().find(|call| call.id == *id)
    }

    /// Some call of this agent still runs.
    pub fn running(&self, agent: &AgentId) -> bool {
        self.list.iter().any(|call| call.agent == *agent && call.started && !call.ended)
    }

    /// A turn is over: nothing of it runs any more.
    pub fn settle(&mut self) {
        self.list.iter_mut().for_each(|call| call.ended = true);
    }
}

impl Call {
    fn new(id: &str) -> Self {
        Self {
            id: CallId::new(id),
            agent: AgentId::MAIN,
            tool: None,
            kind: None,
            about: None,
            input: None,
            text: None,
            started: false,
            ended: false,
            refused: false,
        }
    }

    fn learn(&mut self, told: &ToolCall, content: Option<&Value>) {
        let meta = told.meta.as_ref().and_then(|meta| meta.claude_code.as_ref());
        if let Some(parent) = meta.and_then(|meta| meta.parent_tool_use_id.as_deref()) {
            self.agent = AgentId::sub(parent);
        }
        let name = told.name.as_deref().or(meta.and_then(|meta| meta.tool_name.as_deref()));
        if let Some(name) = name {
            self.tool = Some(ToolName::new(name));
        }
        if told.kind.is_some() {
            self.kind.clone_from(&told.kind);
        }
        if let Some(about) = told.title.as_deref().and_then(excerpt::about) {
            self.about = Some(about);
        }
        if let Some(input) = told.raw_input.as_ref().filter(|input| has_content(input)) {
            self.input = Some(excerpt::input(&input.to_string()));
        }
        let plan = told.raw_input.as_ref().and_then(|input| input.get("plan")?.as_str());
        if let Some(text) = plan.map(str::to_owned).or_else(|| content.and_then(text_in)) {
            self.text = excerpt::last_message(&text);
        }
    }

    /// The name of its tool; where the agent gives none, what kind of tool it is.
    pub fn tool(&self) -> ToolName {
        let kind = || ToolName::new(self.kind.as_deref().unwrap_or("tool"));
        self.tool.clone().unwrap_or_else(kind)
    }

    pub fn kind(&self) -> &str {
        self.kind.as_deref().unwrap_or_default()
    }

    pub fn about(&self) -> Option<Arc<str>> {
        self.about.clone()
    }

    pub fn text(&self) -> Option<Arc<str>> {
        self.text.clone()
    }

    pub fn input(&self) -> Option<Arc<str>> {
        self.input.clone()
    }

    pub fn start(&mut self, out: &mut Outbox) {
        if self.ended {
            return;
        }
        self.started = true;
        let (call, tool) = (self.id.clone(), self.tool());
        let fact = Fact::ToolStarted { call, tool, about: self.about() };
        out.tell_of(self.agent.clone(), fact);
    }

    pub fn end(&mut self, ok: bool, out: &mut Outbox) {
        self.ended = true;
        let fact =
            Fact::ToolCompleted { call: self.id.clone(), ok: ok || self.refused, exit_code: None };
        out.tell_of(self.agent.clone(), fact);
    }
}

fn has_content(input: &Value) -> bool {
    match input {
        Value::Null => false,
        Value::Object(fields) => !fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => true,
    }
}

/// The text blocks of a call's content.
pub(super) fn text_in(content: &Value) -> Option<String> {
    let blocks = content.as_array()?;
    let texts: Vec<&str> =
        blocks.iter().filter_map(|block| block.get("content")?.get("text")?.as_str()).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}
