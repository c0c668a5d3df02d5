//! What was said in a driven session: the operator's words and the outputs of calls on one side,
//! the model's frozen answers on the other.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::frozen::{Called, Frozen};
use crate::id::{CallId, TurnId};
use crate::machine::CallOutput;
use crate::moment::Timestamp;

/// Messages are shared: whoever asks the model holds the same ones.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Conversation {
    messages: Vec<Arc<Message>>,
    /// Of texts and answers, for [`crate::limits::CONVERSATION_BYTES_MAX`].
    bytes: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Message {
    /// What was new when the model was asked: outputs of the calls before it, then words.
    Operator {
        at: Timestamp,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        outputs: Vec<CallOutput>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<Arc<str>>,
    },
    /// An answer, complete.
    Agent {
        at: Timestamp,
        turn: TurnId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<Arc<str>>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<Called>,
        /// As its provider wants it back; nothing from an agent that keeps its own past.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        message: Value,
    },
}

impl Conversation {
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The calls of that turn's answer.
    pub fn calls_of(&self, turn: &TurnId) -> &[Called] {
        let mut answers = self.messages.iter().rev().filter_map(|message| match &**message {
            Message::Agent { turn: of, calls, .. } if of == turn => Some(calls.as_slice()),
            Message::Agent { .. } | Message::Operator { .. } => None,
        });
        answers.next().unwrap_or_default()
    }

    /// Whether the newest answer makes that call: no other one's calls are still worked on.
    pub(super) fn has_call(&self, call: &CallId) -> bool {
        let newest = self.messages.iter().rev().find_map(|message| match &**message {
            Message::Agent { calls, .. } => Some(calls),
            Message::Operator { .. } => None,
        });
        newest.is_some_and(|calls| calls.iter().any(|called| called.call_id == *call))
    }

    /// The last thing that the operator wrote: what an agent with its own past is asked again.
    pub fn last_words(&self) -> Option<&Arc<str>> {
        self.messages.iter().rev().find_map(|message| match &**message {
            Message::Operator { text, .. } => text.as_ref(),
            Message::Agent { .. } => None,
        })
    }

    /// Something new is said to the model. Calls that were never looked at, because their turn was
    /// ended first, are answered here: no provider takes a call without its output.
    pub(super) fn said(&mut self, at: Timestamp, outputs: &[CallOutput], text: Option<&Arc<str>>) {
        let unanswered = self.unanswered(outputs);
        if outputs.is_empty() && text.is_none() && unanswered.is_empty() {
            return;
        }
        let mut outputs = outputs.to_vec();
        outputs.extend(unanswered.into_iter().map(|call_id| CallOutput {
            call_id,
            content: "canceled".into(),
            is_error: true,
        }));
        self.bytes += outputs.iter().map(|output| output.content.len()).sum::<usize>();
        self.bytes += text.map_or(0, |text| text.len());
        self.messages.push(Arc::new(Message::Operator { at, outputs, text: text.cloned() }));
    }

    fn unanswered(&self, outputs: &[CallOutput]) -> Vec<CallId> {
        let answered: BTreeSet<&CallId> = outputs.iter().map(|output| &output.call_id).collect();
        match self.messages.last().map(|last| &**last) {
            Some(Message::Agent { calls, .. }) => {
                let calls = calls.iter().map(|call| &call.call_id);
                calls.filter(|call| !answered.contains(call)).cloned().collect()
            }
            Some(Message::Operator { .. }) | None => Vec::new(),
        }
    }

    pub(super) fn answered(
        &mut self,
        at: Timestamp,
        turn: &TurnId,
        text: Option<&Arc<str>>,
        frozen: Option<&Frozen>,
    ) {
        let (calls, message) = match frozen {
            Some(Frozen { calls, message, .. }) => (calls.clone(), message.clone()),
            None => (Vec::new(), Value::Null),
        };
        self.bytes += text.map_or(0, |text| text.len()) + frozen.map_or(0, Frozen::bytes);
        let (turn, text) = (turn.clone(), text.cloned());
        self.messages.push(Arc::new(Message::Agent { at, turn, text, calls, message }));
    }
}
