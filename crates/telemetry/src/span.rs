//! A span: something that took time, in the trace of its turn.

use std::sync::Arc;

use qd_session::moment::Timestamp;
use ring::digest::{SHA256, digest};

pub type TraceId = [u8; 16];
pub type SpanId = [u8; 8];

/// Finished, and complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    pub trace: TraceId,
    pub id: SpanId,
    /// None for the root.
    pub parent: Option<SpanId>,
    /// `turn`, `llm`, `tool` or `hook`.
    pub name: &'static str,
    pub started_at: Timestamp,
    pub ended_at: Timestamp,
    pub attributes: Vec<(&'static str, Attribute)>,
    /// Why it failed, as a code; none if it did not.
    pub failure: Option<Arc<str>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attribute {
    Text(Arc<str>),
    Number(u32),
}

impl From<&str> for Attribute {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<u32> for Attribute {
    fn from(number: u32) -> Self {
        Self::Number(number)
    }
}

/// The first half of the SHA-256 of the turn's id, so that whoever has the one finds the other.
pub fn trace_id(turn: &str) -> TraceId {
    hashed(turn)
}

/// Of the thing that it is about, which is named once.
pub fn span_id(about: &str) -> SpanId {
    hashed(about)
}

fn hashed<const N: usize>(text: &str) -> [u8; N] {
    let hash = digest(&SHA256, text.as_bytes());
    hash.as_ref().first_chunk().copied().expect("a hash has 32 bytes")
}
