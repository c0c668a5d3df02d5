//! One answer of the scripted model, said without a vendor's words.

use std::time::Duration;

use serde_json::Value;

use crate::gate::Gate;

#[derive(Debug, Clone, Default)]
pub struct Reply {
    pub(crate) blocks: Vec<Block>,
    pub(crate) stop: Option<StopReason>,
    pub(crate) failure: Option<Failure>,
    pub(crate) pace: Pace,
    /// Events sent before the connection is cut.
    pub(crate) cut_after: Option<usize>,
    /// The event in the middle of which the connection is cut.
    pub(crate) cut_within: Option<usize>,
    /// The event in whose place nonsense is sent.
    pub(crate) garbled_at: Option<usize>,
    /// The stream ends in the vendor's error event instead of its end.
    pub(crate) breaks_with: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    Thinking(String),
    Text(String),
    /// A string as input is a free-form call where the wire has one (Codex's `apply_patch`).
    /// A name may have a namespace before it where the wire has one (`collaboration/spawn_agent`).
    Call {
        name: String,
        input: Value,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    EndTurn,
    ToolUse,
    MaxTokens,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) status: u16,
    pub(crate) message: String,
    pub(crate) retry_after_s: Option<u32>,
    pub(crate) headers: Vec<(&'static str, String)>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Pace {
    pub(crate) before_start: Option<Gate>,
    pub(crate) before_end: Option<Gate>,
    pub(crate) before_event: Option<(usize, Gate)>,
    pub(crate) between_events: Duration,
}

impl Reply {
    pub fn says(text: impl Into<String>) -> Self {
        Self::default().and_says(text)
    }

    pub fn thinks(text: impl Into<String>) -> Self {
        Self { blocks: vec![Block::Thinking(text.into())], ..Self::default() }
    }

    pub fn calls(name: impl Into<String>, input: Value) -> Self {
        Self::default().and_calls(name, input)
    }

    /// An HTTP error in place of an answer.
    pub fn fails(status: u16) -> Self {
        let message = match status {
            400 => "The request was refused by the script",
            401 => "invalid x-api-key",
            429 => "Number of requests has exceeded your rate limit",
            529 => "Overloaded",
            _ => "Internal server error",
        };
        let message = message.into();
        let failure = Failure { status, message, retry_after_s: None, headers: Vec::new() };
        Self { failure: Some(failure), ..Self::default() }
    }

    pub fn and_says(mut self, text: impl Into<String>) -> Self {
        self.blocks.push(Block::Text(text.into()));
        self
    }

    pub fn and_calls(mut self, name: impl Into<String>, input: Value) -> Self {
        self.blocks.push(Block::Call { name: name.into(), input });
        self
    }

    /// Without this the reply stops for its calls, or at the end of the turn.
    pub fn stops_for(mut self, reason: StopReason) -> Self {
        self.stop = Some(reason);
        self
    }

    /// The message of a failure; nothing else has one.
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        if let Some(failure) = &mut self.failure {
            failure.message = message.into();
        }
        self
    }

    /// The `retry-after` header of a failure; nothing else has one.
    pub fn retry_after_s(mut self, seconds: u32) -> Self {
        if let Some(failure) = &mut self.failure {
            failure.retry_after_s = Some(seconds);
        }
        self
    }

    /// Another header of a failure; nothing else has one.
    pub fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        if let Some(failure) = &mut self.failure {
            failure.headers.push((name, value.into()));
        }
        self
    }

    /// Nothing is sent, not even a status, until the gate opens.
    pub fn held_before_start(mut self, gate: &Gate) -> Self {
        self.pace.before_start = Some(gate.clone());
        self
    }

    /// Everything but the last event is sent; that one waits for the gate.
    pub fn held_before_end(mut self, gate: &Gate) -> Self {
        self.pace.before_end = Some(gate.clone());
        self
    }

    /// A stall: so many events are sent, and the next one waits for the gate.
    pub fn held_after(mut self, events: usize, gate: &Gate) -> Self {
        self.pace.before_event = Some((events, gate.clone()));
        self
    }

    /// A slow stream: a pause between any two events.
    pub fn slowly(mut self, between_events: Duration) -> Self {
        self.pace.between_events = between_events;
        self
    }

    /// A dropped stream: the connection is closed after so many events.
    pub fn cut_after(mut self, events: usize) -> Self {
        self.cut_after = Some(events);
        self
    }

    /// A dropped stream: so many events are sent, and half of the next.
    pub fn cut_within(mut self, events: usize) -> Self {
        self.cut_within = Some(events);
        self
    }

    /// So many events are sent, then one that nobody can read, then the rest.
    pub fn garbled_after(mut self, events: usize) -> Self {
        self.garbled_at = Some(events);
        self
    }

    /// The blocks are streamed, then the vendor's error event comes in place of the end.
    pub fn breaks_with(mut self, message: impl Into<String>) -> Self {
        self.breaks_with = Some(message.into());
        self
    }

    pub(crate) fn stop_reason(&self) -> StopReason {
        let calls = self.blocks.iter().any(|block| matches!(block, Block::Call { .. }));
        let natural = if calls { StopReason::ToolUse } else { StopReason::EndTurn };
        self.stop.unwrap_or(natural)
    }
}
