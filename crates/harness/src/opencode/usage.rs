//! What the rows of the client's database say about tokens.
//!
//! A `step-finish` part is one model response, written once. A message's own numbers are passed
//! over: its tokens are those of its last step only, and Kilo adds to its cost what its subagents
//! cost, who tell it themselves.

use std::borrow::Cow;

use qd_session::moment::Timestamp;
use serde::Deserialize;

use crate::payload;
use crate::usage::{Reading, Response, Tokens};

/// Stands in each part that tells of a response, and seldom in another.
pub const MARK: &str = "\"step-finish\"";

/// A part of a message, with what the other tables say about it.
#[derive(Debug, Clone, Copy)]
pub struct PartRow<'a> {
    pub id: &'a str,
    /// The session that the operator began: a subagent's is its parent's.
    pub session: &'a str,
    pub is_subagent: bool,
    pub directory: Option<&'a str>,
    pub at: Timestamp,
    pub part: &'a [u8],
    pub message: &'a [u8],
}

pub fn read<'a>(row: &PartRow<'a>) -> Reading<'a> {
    let Some(part) = payload::read::<Part>(row.part) else { return Reading::Unreadable };
    let (Some("step-finish"), Some(used)) = (part.kind.as_deref(), part.tokens) else {
        return Reading::Nothing;
    };
    let Some(tokens) = used.tokens() else { return Reading::Unreadable };
    let message: Message = payload::read(row.message).unwrap_or_default();
    let response = Response {
        session: Some(Cow::Borrowed(row.session)),
        agent: None,
        aside: row.is_subagent,
        message: Some(Cow::Borrowed(row.id)),
        request: Some(Cow::Borrowed(row.session)),
        model: message.model.map(Cow::Owned),
        speed: None,
        at: row.at,
        tokens,
        // Where it knows no price it says zero; our table may know one.
        cost: part.cost.filter(|dollars| *dollars > 0.0 && dollars.is_finite()),
        cwd: row.directory.map(Cow::Borrowed),
    };
    Reading::Told(Box::new(response), Vec::new())
}

#[derive(Debug, Deserialize)]
struct Part {
    #[serde(rename = "type")]
    kind: Option<String>,
    cost: Option<f64>,
    tokens: Option<Used>,
}

#[derive(Debug, Default, Deserialize)]
struct Message {
    #[serde(rename = "modelID")]
    model: Option<String>,
}

/// All disjoint; some providers give fractions or nothing where they do not count.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Used {
    input: f64,
    output: f64,
    reasoning: f64,
    cache: Cache,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Cache {
    read: f64,
    write: f64,
}

impl Used {
    /// None where a count is none.
    fn tokens(&self) -> Option<Tokens> {
        let count =
            |count: f64| (0.0..=f64::from(u32::MAX)).contains(&count).then_some(count as u64);
        Some(Tokens {
            input: count(self.input)?,
            output: count(self.output + self.reasoning)?,
            cache_write: count(self.cache.write)?,
            cache_write_1h: 0,
            cache_read: count(self.cache.read)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row<'a>(part: &'a str, message: &'a str) -> PartRow<'a> {
        PartRow {
            id: "prt_1",
            session: "ses_1",
            is_subagent: false,
            directory: Some("/home/ann/acme"),
            at: Timestamp(1),
            part: part.as_bytes(),
            message: message.as_bytes(),
        }
    }

    #[test]
    fn a_step_is_a_response() {
        // As OpenCode 1.18.33 wrote them.
        let part = r#"{"reason":"tool-calls","snapshot":"4b82","type":"step-finish","tokens":{"total":1052,"input":702,"output":30,"reasoning":20,"cache":{"write":0,"read":300}},"cost":0.002946}"#;
        let message =
            r#"{"role":"assistant","cost":0.005,"modelID":"scripted","tokens":{"input":1}}"#;
        let Reading::Told(response, others) = read(&row(part, message)) else { panic!("told") };
        let expected = Tokens { input: 702, output: 50, cache_read: 300, ..Tokens::default() };
        assert_eq!((response.tokens, response.cost), (expected, Some(0.002946)));
        assert_eq!((response.model.as_deref(), others.len()), (Some("scripted"), 0));
        // A price nobody told it is no price.
        let free = part.replace("0.002946", "0");
        let Reading::Told(response, _) = read(&row(&free, "no JSON")) else { panic!("told") };
        assert_eq!((response.cost, response.model), (None, None));
    }

    #[test]
    fn other_parts_tell_nothing_and_damaged_ones_say_so() {
        for text in [r#"{"type":"text","text":"a \"step-finish\""}"#, r#"{"type":"step-finish"}"#] {
            assert_eq!(read(&row(text, "{}")), Reading::Nothing, "{text}");
        }
        for text in [
            "{\"type\":\"step-fi",
            r#"{"type":"step-finish","tokens":{"input":-1}}"#,
            r#"{"type":"step-finish","tokens":{"input":1e99}}"#,
            r#"{"type":"step-finish","tokens":{"input":"many"}}"#,
        ] {
            assert_eq!(read(&row(text, "{}")), Reading::Unreadable, "{text}");
        }
    }
}
