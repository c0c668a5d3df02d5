//! One model response, as a line of a client's file tells it.

use std::borrow::Cow;

use qd_session::moment::Timestamp;

use super::Tokens;

#[derive(Debug, Clone, PartialEq)]
pub struct Response<'a> {
    /// The client's id of the session; none where the line does not say.
    pub session: Option<Cow<'a, str>>,
    /// The subagent that asked; none for the main agent.
    pub agent: Option<Cow<'a, str>>,
    /// Told beside the main conversation: by a subagent, or as an aside.
    pub aside: bool,
    pub message: Option<Cow<'a, str>>,
    pub request: Option<Cow<'a, str>>,
    /// None where no model answered.
    pub model: Option<Cow<'a, str>>,
    pub speed: Option<Speed>,
    pub at: Timestamp,
    pub tokens: Tokens,
    /// What the client says it cost, in dollars.
    pub cost: Option<f64>,
    /// The folder the agent worked in.
    pub cwd: Option<Cow<'a, str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speed {
    Standard,
    Fast,
}

/// What a line tells about usage.
#[derive(Debug, Clone, PartialEq)]
pub enum Reading<'a> {
    /// It is of another kind.
    Nothing,
    /// A response; and those that were asked for within it, of other models.
    Told(Box<Response<'a>>, Vec<Response<'a>>),
    /// It should tell of a response and cannot be read.
    Unreadable,
}

/// Tells whether two lines tell of the same response: in one file, and across files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResponseKey(pub u128);

/// Tells whether two responses are of one message of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageKey(pub u64);

impl Response<'_> {
    /// None for a response without a message's id: nobody can say whether it was seen before.
    ///
    /// A request's id is unique, so a resumed or forked session repeats both ids. Without one,
    /// gateways are known to give the same message id again and again; then the session and the
    /// time must be the same, too.
    pub fn key(&self, session: &str) -> Option<ResponseKey> {
        let message = self.message.as_deref()?;
        Some(ResponseKey(match self.request.as_deref() {
            Some(request) => fnv([message.as_bytes(), b"\0", request.as_bytes()]),
            None => {
                let at = self.at.0.to_le_bytes();
                fnv([message.as_bytes(), b"\0\0", session.as_bytes(), b"\0", &at])
            }
        }))
    }

    /// An aside may repeat a message of its session under a request id of its own.
    pub fn message_key(&self, session: &str) -> Option<MessageKey> {
        let sum = fnv([self.message.as_deref()?.as_bytes(), b"\0", session.as_bytes()]);
        Some(MessageKey((sum >> 64) as u64 ^ sum as u64))
    }

    /// Which of several tellings is counted.
    pub fn rank(&self) -> Rank {
        Rank { is_main: !self.aside, tokens: self.tokens.total(), has_speed: self.speed.is_some() }
    }
}

/// Of several tellings of one response the highest is counted, of equals the first. A line may be
/// written before its response is complete, so the larger one is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    pub is_main: bool,
    pub tokens: u64,
    pub has_speed: bool,
}

/// FNV-1a, 128 bits: tells ids apart, and promises nothing against malice.
fn fnv<const N: usize>(parts: [&[u8]; N]) -> u128 {
    parts.into_iter().flatten().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |sum, byte| {
        (sum ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}
