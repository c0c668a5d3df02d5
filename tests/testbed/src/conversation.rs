//! A request as every vendor means it: who said what, which calls have results.
//!
//! Pure. The modules of [`crate::wire`] read it off their own JSON.

use std::collections::BTreeSet;

use crate::wire::Wire;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conversation {
    pub wire: Wire,
    pub model: String,
    /// The client wants a stream.
    pub streams: bool,
    /// Names of the tools the client offers.
    pub tools: Vec<String>,
    pub turns: Vec<Turn>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    User(String),
    Assistant(String),
    Call { id: String, name: String },
    Result { id: String, text: String },
}

impl Conversation {
    /// What users and results said since the model last spoke.
    pub fn news(&self) -> &[Turn] {
        let spoken = |turn: &Turn| matches!(turn, Turn::Assistant(_) | Turn::Call { .. });
        let start = self.turns.iter().rposition(spoken).map_or(0, |index| index + 1);
        &self.turns[start..]
    }

    pub fn user_news(&self) -> impl Iterator<Item = &str> {
        self.news().iter().filter_map(|turn| match turn {
            Turn::User(text) => Some(text.as_str()),
            Turn::Assistant(_) | Turn::Call { .. } | Turn::Result { .. } => None,
        })
    }

    pub fn tool_news(&self) -> impl Iterator<Item = &str> {
        self.news().iter().filter_map(|turn| match turn {
            Turn::Result { text, .. } => Some(text.as_str()),
            Turn::User(_) | Turn::Assistant(_) | Turn::Call { .. } => None,
        })
    }

    /// Why a provider would refuse this: a call without its result, or the reverse.
    pub fn fault(&self) -> Option<String> {
        let mut open: BTreeSet<&str> = BTreeSet::new();
        let mut known: BTreeSet<&str> = BTreeSet::new();
        for turn in &self.turns {
            match turn {
                Turn::Call { id, .. } => {
                    if !known.insert(id) {
                        return Some(format!("tool call ids must be unique: {id}"));
                    }
                    open.insert(id);
                }
                Turn::Result { id, .. } => {
                    if !open.remove(id.as_str()) {
                        return Some(format!("unexpected tool result: no open call {id}"));
                    }
                }
                // Responses wants the results somewhere; the others want them at once.
                Turn::User(_) if self.wire != Wire::OpenAiResponses => {
                    if let Some(fault) = missing(&open) {
                        return Some(fault);
                    }
                }
                Turn::User(_) | Turn::Assistant(_) => {}
            }
        }
        missing(&open)
    }

    /// Codex asks for a title in a thread of its own, with the same tools.
    pub(crate) fn is_aside(&self) -> bool {
        self.user_news().any(|text| text.contains("single-line task title"))
    }
}

fn missing(open: &BTreeSet<&str>) -> Option<String> {
    let ids: Vec<&str> = open.iter().copied().collect();
    (!ids.is_empty()).then(|| format!("tool calls without a result: {}", ids.join(", ")))
}
