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
pub struct ResponseKey(pub [u64; 2]);

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
            Some(request) => sums([message.as_bytes(), request.as_bytes()]),
            None => sums([message.as_bytes(), b"", session.as_bytes(), &self.at.0.to_le_bytes()]),
        }))
    }

    /// An aside may repeat a message of its session under a request id of its own.
    pub fn message_key(&self, session: &str) -> Option<MessageKey> {
        let [sum, _] = sums([self.message.as_deref()?.as_bytes(), session.as_bytes()]);
        Some(MessageKey(sum))
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
    is_main: bool,
    tokens: u64,
    has_speed: bool,
}

impl Rank {
    pub fn of(aside: bool, tokens: Tokens, speed: Option<Speed>) -> Self {
        Self { is_main: !aside, tokens: tokens.total(), has_speed: speed.is_some() }
    }
}

/// Two sums of 64 bits: tell ids apart, and promise nothing against malice. Kept in the index, so
/// they must not change.
fn sums<const N: usize>(parts: [&[u8]; N]) -> [u64; 2] {
    let mut sums = [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f];
    for part in parts {
        mix(&mut sums, part.len() as u64);
        let (words, rest) = part.as_chunks::<8>();
        for word in words {
            mix(&mut sums, u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        mix(&mut sums, u64::from_le_bytes(last));
    }
    sums
}

fn mix(sums: &mut [u64; 2], word: u64) {
    for (sum, factor) in sums.iter_mut().zip([0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53]) {
        let product = u128::from(*sum ^ word).wrapping_mul(factor);
        *sum = (product as u64) ^ ((product >> 64) as u64) ^ sum.rotate_left(29);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::sums;

    #[test]
    fn ids_that_differ_in_little_have_other_sums() {
        let mut all = BTreeSet::new();
        let mut count = 0;
        for nth in 0..20_000_u32 {
            for ids in [
                [format!("msg_{nth}"), "req_1".to_owned()],
                ["msg_1".to_owned(), format!("req_{}", nth + 2)],
                [format!("{nth:x}"), String::new()],
            ] {
                all.insert(sums([ids[0].as_bytes(), ids[1].as_bytes()]));
                count += 1;
            }
        }
        for split in 0..=16 {
            let text = b"abcdefghijklmnop";
            all.insert(sums([&text[..split], &text[split..]]));
            count += 1;
        }
        assert_eq!(all.len(), count);
        let first: BTreeSet<u64> = all.iter().map(|[first, _]| *first).collect();
        assert_eq!(first.len(), count);
    }
}
