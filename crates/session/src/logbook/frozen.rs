//! A complete answer of a model, as it is kept and given back.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::id::{CallId, ToolName};
use crate::json_size::{is_deeper, spelled_len};
use crate::limits::{CALLS_PER_ANSWER_MAX, FROZEN_BYTES_MAX, FROZEN_DEPTH_MAX};

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Frozen {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Called>,
    /// The whole message as its provider wants it back: texts, calls, signed thoughts.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub message: Value,
    /// Who gave it, where we asked a provider ourselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    #[serde(default)]
    pub used: Used,
}

/// A call as the model made it: nobody has classified or judged it yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Called {
    pub call_id: CallId,
    pub name: ToolName,
    pub arguments: Value,
}

/// What answers took: tokens, and money in millionths of a dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Used {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_written_tokens: u64,
    pub micro_usd: u64,
}

/// Why an answer cannot be kept, and so cannot be acted on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unkeepable {
    TooLong,
    TooDeep,
    TooManyCalls,
    /// Two calls with one id: nobody could tell their outputs apart.
    CallsAlike,
}

impl Frozen {
    /// What the journal could not hold, or nobody could answer, must not be acted on.
    pub fn trouble(&self) -> Option<Unkeepable> {
        let Self { calls, message, .. } = self;
        let mut seen = BTreeSet::new();
        if calls.len() > CALLS_PER_ANSWER_MAX {
            return Some(Unkeepable::TooManyCalls);
        }
        if !calls.iter().all(|call| seen.insert(&call.call_id)) {
            return Some(Unkeepable::CallsAlike);
        }
        let values = || std::iter::once(message).chain(calls.iter().map(|call| &call.arguments));
        if values().any(|value| is_deeper(value, FROZEN_DEPTH_MAX)) {
            return Some(Unkeepable::TooDeep);
        }
        (self.bytes() > FROZEN_BYTES_MAX).then_some(Unkeepable::TooLong)
    }

    /// About as long as it is when it is written down.
    pub fn bytes(&self) -> usize {
        let calls = self.calls.iter().map(|call| spelled_len(&call.arguments));
        spelled_len(&self.message) + calls.sum::<usize>()
    }
}

impl Used {
    pub fn add(&mut self, more: &Self) {
        let Self {
            input_tokens,
            output_tokens,
            cache_read_tokens,
            cache_written_tokens,
            micro_usd,
        } = *more;
        self.input_tokens = self.input_tokens.saturating_add(input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(output_tokens);
        self.cache_read_tokens = self.cache_read_tokens.saturating_add(cache_read_tokens);
        self.cache_written_tokens = self.cache_written_tokens.saturating_add(cache_written_tokens);
        self.micro_usd = self.micro_usd.saturating_add(micro_usd);
    }

    /// All that the model had before it, cached or not.
    pub fn context_tokens(&self) -> u64 {
        self.input_tokens
            .saturating_add(self.cache_read_tokens)
            .saturating_add(self.cache_written_tokens)
    }

    pub fn tokens(&self) -> u64 {
        self.context_tokens().saturating_add(self.output_tokens)
    }
}

impl Unkeepable {
    pub fn why(self) -> &'static str {
        match self {
            Self::TooLong => "the answer is too long to be kept",
            Self::TooDeep => "the answer nests too deep to be kept",
            Self::TooManyCalls => "the answer makes too many calls",
            Self::CallsAlike => "the answer gives two calls the same id",
        }
    }
}
