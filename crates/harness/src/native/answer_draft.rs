//! An answer while it comes in: blocks that grow, until they are frozen.

use std::collections::BTreeSet;
use std::sync::Arc;

use qd_session::id::{CallId, ToolName, TurnId};
use serde_json::{Map, Value};

use super::failure::{Cause, Failure};
use super::limits::{ANSWER_BLOCKS_MAX, ANSWER_BYTES_MAX, ARGUMENTS_DEPTH_MAX, NAME_BYTES_MAX};
use super::{AssistantMessage, Block, Call, Piece, StopReason};
use crate::excerpt::head;

#[derive(Debug)]
pub(super) struct AnswerDraft {
    turn: TurnId,
    blocks: Vec<Growing>,
    calls: BTreeSet<CallId>,
    bytes: usize,
}

#[derive(Debug)]
enum Growing {
    Text(String),
    Thinking {
        text: String,
        signature: String,
    },
    Redacted(String),
    Call {
        id: CallId,
        tool: ToolName,
        arguments: String,
    },
    /// A kind nobody asked for; what it holds cannot be sent back.
    Unknown,
}

/// A block of a draft, by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place(usize);

impl AnswerDraft {
    pub(super) fn new(turn: TurnId) -> Self {
        Self { turn, blocks: Vec::new(), calls: BTreeSet::new(), bytes: 0 }
    }

    pub(super) fn begin_text(&mut self) -> Result<Place, Failure> {
        self.begin(Growing::Text(String::new()))
    }

    pub(super) fn begin_thinking(&mut self) -> Result<Place, Failure> {
        self.begin(Growing::Thinking { text: String::new(), signature: String::new() })
    }

    pub(super) fn begin_redacted(&mut self, data: &str) -> Result<Place, Failure> {
        self.weigh(data)?;
        self.begin(Growing::Redacted(data.to_owned()))
    }

    pub(super) fn begin_unknown(&mut self) -> Result<Place, Failure> {
        self.begin(Growing::Unknown)
    }

    /// A call that has no id, or one that another call of this answer has, gets one of ours.
    pub(super) fn begin_call(&mut self, id: &str, tool: &str) -> Result<Place, Failure> {
        let (id, tool) = (head(id, NAME_BYTES_MAX), head(tool, NAME_BYTES_MAX));
        if tool.is_empty() {
            return Err(Failure::of(Cause::Garbled).saying("a call without the name of a tool"));
        }
        let given = CallId::new(id);
        let id = if id.is_empty() || self.calls.contains(&given) { self.own_id() } else { given };
        self.calls.insert(id.clone());
        self.begin(Growing::Call { id, tool: tool.into(), arguments: String::new() })
    }

    fn own_id(&self) -> CallId {
        let turn = self.turn.as_str();
        let turn = turn.strip_prefix("turn_").unwrap_or(turn);
        CallId::new(format!("call_{turn}_{}", self.blocks.len()))
    }

    fn begin(&mut self, block: Growing) -> Result<Place, Failure> {
        if self.blocks.len() >= ANSWER_BLOCKS_MAX {
            return Err(Failure::of(Cause::TooLong).saying("too many blocks"));
        }
        self.blocks.push(block);
        Ok(Place(self.blocks.len() - 1))
    }

    fn weigh(&mut self, text: &str) -> Result<(), Failure> {
        self.bytes = self.bytes.saturating_add(text.len());
        if self.bytes > ANSWER_BYTES_MAX {
            return Err(Failure::of(Cause::TooLong));
        }
        Ok(())
    }

    /// More of a block. A piece to be shown, unless nothing came or its kind is not known.
    pub(super) fn grow(&mut self, place: Place, more: &str) -> Result<Option<Piece>, Failure> {
        self.weigh(more)?;
        let part: Arc<str> = more.into();
        Ok(match &mut self.blocks[place.0] {
            Growing::Call { id, tool, arguments } => {
                arguments.push_str(more);
                Some(Piece::CallArguments { call: id.clone(), tool: tool.clone(), part })
            }
            Growing::Text(text) => {
                text.push_str(more);
                (!more.is_empty()).then_some(Piece::Text { text: part })
            }
            Growing::Thinking { text, .. } => {
                text.push_str(more);
                (!more.is_empty()).then_some(Piece::Thinking { text: part })
            }
            Growing::Redacted(_) | Growing::Unknown => None,
        })
    }

    pub(super) fn sign(&mut self, place: Place, more: &str) -> Result<(), Failure> {
        self.weigh(more)?;
        match &mut self.blocks[place.0] {
            Growing::Thinking { signature, .. } => signature.push_str(more),
            Growing::Text(_) | Growing::Redacted(_) | Growing::Call { .. } | Growing::Unknown => {}
        }
        Ok(())
    }

    pub(super) fn has_arguments(&self, place: Place) -> bool {
        match &self.blocks[place.0] {
            Growing::Call { arguments, .. } => !arguments.is_empty(),
            Growing::Text(_)
            | Growing::Thinking { .. }
            | Growing::Redacted(_)
            | Growing::Unknown => false,
        }
    }

    pub(super) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// The answer as it will be kept. Arguments that are no object make the whole answer useless;
    /// where it was cut off, a call that was being written is left out, and where it was refused
    /// all are.
    pub(super) fn freeze(&self, reason: StopReason) -> Result<AssistantMessage, Failure> {
        let mut blocks = Vec::new();
        for block in &self.blocks {
            match block {
                Growing::Text(text) if text.is_empty() => {}
                Growing::Text(text) => blocks.push(Block::Text { text: text.as_str().into() }),
                Growing::Thinking { text, signature } => {
                    let signature = (!signature.is_empty()).then(|| signature.as_str().into());
                    blocks.push(Block::Thinking { text: text.as_str().into(), signature });
                }
                Growing::Redacted(data) => {
                    blocks.push(Block::RedactedThinking { data: data.as_str().into() });
                }
                Growing::Call { .. } if reason == StopReason::Refused => {}
                Growing::Call { id, tool, arguments } => match object(arguments) {
                    Some(arguments) => {
                        let (call_id, name) = (id.clone(), tool.clone());
                        blocks.push(Block::Call(Call { call_id, name, arguments }));
                    }
                    None if reason.is_cut_off() => {}
                    None => return Err(Failure::of(Cause::BadArguments).saying(tool.as_str())),
                },
                Growing::Unknown => {}
            }
        }
        Ok(AssistantMessage { blocks })
    }
}

/// A tool without arguments is called with nothing, with `null` or with an empty object.
fn object(arguments: &str) -> Option<Value> {
    if arguments.trim().is_empty() {
        return Some(Value::Object(Map::new()));
    }
    match serde_json::from_str(arguments).ok()? {
        Value::Null => Some(Value::Object(Map::new())),
        object @ Value::Object(_) => is_shallow(&object, ARGUMENTS_DEPTH_MAX).then_some(object),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
    }
}

fn is_shallow(value: &Value, depth: usize) -> bool {
    match value {
        Value::Object(fields) => depth > 0 && fields.values().all(|at| is_shallow(at, depth - 1)),
        Value::Array(list) => depth > 0 && list.iter().all(|at| is_shallow(at, depth - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}
