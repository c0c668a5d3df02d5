//! What was said between an operator, a model and its tools, in no provider's language.
//!
//! Invariant: behind each answer with calls stand their outputs, one for each call, in the order
//! of the calls, before anything else; only the last answer may still wait for them.

use std::collections::BTreeSet;
use std::sync::Arc;

use qd_session::id::{CallId, ToolName};
use qd_session::machine::CallOutput;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(into = "Vec<Message>", try_from = "Vec<Message>")]
pub struct Conversation {
    messages: Vec<Message>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    User { text: Arc<str> },
    Assistant(AssistantMessage),
    Outputs { outputs: Vec<CallOutput> },
}

/// A model's whole answer, frozen: what is journaled, and what goes back with the next request.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AssistantMessage {
    pub blocks: Vec<Block>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    Text {
        text: Arc<str>,
    },
    /// Goes back unchanged to the provider that signed it, and to nobody else.
    Thinking {
        text: Arc<str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<Arc<str>>,
    },
    /// Thoughts that only their provider can read.
    RedactedThinking {
        data: Arc<str>,
    },
    Call(Call),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Call {
    pub call_id: CallId,
    pub name: ToolName,
    /// An object, always.
    pub arguments: Value,
}

/// An answer came where nothing was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unasked;

/// Messages that are no conversation; the text says why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsound(pub String);

impl Conversation {
    /// What is new before a request: outputs of the last answer's calls, then the operator's text.
    /// A call whose output is missing is told as lost; an output without its call is left out.
    pub fn ask(&mut self, outputs: &[CallOutput], text: Option<Arc<str>>) {
        let outputs: Vec<CallOutput> = self
            .owed()
            .map(|call| {
                let given = outputs.iter().find(|output| output.call_id == call.call_id);
                given.cloned().unwrap_or_else(|| lost(call))
            })
            .collect();
        if !outputs.is_empty() {
            self.messages.push(Message::Outputs { outputs });
        }
        if let Some(text) = text {
            self.messages.push(Message::User { text });
        }
    }

    /// The model's answer to what was asked last.
    pub fn answer(&mut self, message: AssistantMessage) -> Result<(), Unasked> {
        if !self.awaits_answer() {
            return Err(Unasked);
        }
        self.messages.push(Message::Assistant(message));
        Ok(())
    }

    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Calls that have no output yet.
    pub fn owed(&self) -> impl Iterator<Item = &Call> {
        let last = match self.messages.last() {
            Some(Message::Assistant(message)) => Some(message),
            Some(Message::User { .. } | Message::Outputs { .. }) | None => None,
        };
        last.into_iter().flat_map(AssistantMessage::calls)
    }

    /// The last word is not the model's: a request can be made.
    pub fn awaits_answer(&self) -> bool {
        match self.messages.last() {
            Some(Message::User { .. } | Message::Outputs { .. }) => true,
            Some(Message::Assistant(_)) | None => false,
        }
    }
}

impl AssistantMessage {
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Call(call) => Some(call),
            Block::Text { .. } | Block::Thinking { .. } | Block::RedactedThinking { .. } => None,
        })
    }

    /// What it says to the operator; none where it says nothing.
    pub fn text(&self) -> Option<Arc<str>> {
        let texts: Vec<&str> = self
            .blocks
            .iter()
            .filter_map(|block| match block {
                Block::Text { text } => Some(&**text),
                Block::Thinking { .. } | Block::RedactedThinking { .. } | Block::Call(_) => None,
            })
            .filter(|text| !text.trim().is_empty())
            .collect();
        (!texts.is_empty()).then(|| texts.join("\n\n").into())
    }
}

impl From<Conversation> for Vec<Message> {
    fn from(conversation: Conversation) -> Self {
        conversation.messages
    }
}

impl TryFrom<Vec<Message>> for Conversation {
    type Error = Unsound;

    fn try_from(messages: Vec<Message>) -> Result<Self, Unsound> {
        let mut before: Option<&Message> = None;
        for message in &messages {
            follows(before, message)?;
            before = Some(message);
        }
        Ok(Self { messages })
    }
}

fn follows(before: Option<&Message>, message: &Message) -> Result<(), Unsound> {
    let open: Vec<&CallId> = match before {
        Some(Message::Assistant(answer)) => answer.calls().map(|call| &call.call_id).collect(),
        Some(Message::User { .. } | Message::Outputs { .. }) | None => Vec::new(),
    };
    match message {
        Message::Outputs { outputs } => {
            let given: Vec<&CallId> = outputs.iter().map(|output| &output.call_id).collect();
            if given != open || given.is_empty() {
                return Err(Unsound(format!("outputs of {given:?} behind calls of {open:?}")));
            }
        }
        Message::User { .. } if !open.is_empty() => {
            return Err(Unsound(format!("no outputs of {open:?}")));
        }
        Message::User { .. } => {}
        Message::Assistant(answer) => {
            if matches!(before, Some(Message::Assistant(_)) | None) {
                return Err(Unsound("an answer to nothing".into()));
            }
            check_calls(answer)?;
        }
    }
    Ok(())
}

fn check_calls(answer: &AssistantMessage) -> Result<(), Unsound> {
    let mut known = BTreeSet::new();
    for call in answer.calls() {
        if !known.insert(&call.call_id) {
            return Err(Unsound(format!("two calls {}", call.call_id)));
        }
        if !call.arguments.is_object() {
            return Err(Unsound(format!("the arguments of {} are no object", call.call_id)));
        }
    }
    Ok(())
}

impl std::fmt::Display for Unsound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

fn lost(call: &Call) -> CallOutput {
    CallOutput { call_id: call.call_id.clone(), content: LOST.into(), is_error: true }
}

/// As the machine says it of a run that a crash cut off.
const LOST: &str = "interrupted, outcome unknown";
