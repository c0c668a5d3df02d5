//! What the lines of a chat file say about tokens.
//!
//! A reply is written again as it grows, under the same id. When the client writes its past again
//! under new ids, that has no tokens.

use std::borrow::Cow;

use memchr::memmem;
use serde::{Deserialize, Serialize};

use crate::usage::{FileReader, Reading, Response, Tokens, spelled};
use crate::{payload, rfc3339};

/// Reads one chat file, whose first line says whose it is.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ChatFile {
    session: Option<String>,
    is_subagent: bool,
}

impl FileReader for ChatFile {
    fn read<'a>(&mut self, line: &'a [u8]) -> Reading<'a> {
        let has = |word: &str| memmem::find(line, word.as_bytes()).is_some();
        if has("\"startTime\"") && self.session.is_none() {
            if let Some(header) = payload::read::<Header>(line) {
                self.session = header.session_id;
                self.is_subagent = header.kind.as_deref() == Some("subagent");
            }
            return Reading::Nothing;
        }
        if !has("\"tokens\"") {
            return Reading::Nothing;
        }
        let Some(message) = payload::read::<Message>(line) else { return Reading::Unreadable };
        let (Some("gemini"), Some(used)) = (message.kind.as_deref(), message.tokens) else {
            return Reading::Nothing;
        };
        let at = message.timestamp.as_deref().and_then(rfc3339::timestamp);
        let (Some(at), Some(tokens)) = (at, used.tokens()) else { return Reading::Unreadable };
        let text = |text: Option<String>| text.filter(|text| !text.is_empty()).map(Cow::Owned);
        let session = text(self.session.clone());
        let response = Response {
            session: session.clone(),
            agent: None,
            aside: self.is_subagent,
            message: text(message.id),
            request: session,
            model: text(message.model),
            speed: None,
            at,
            tokens,
            cost: None,
            cwd: None,
        };
        Reading::Told(Box::new(response), Vec::new())
    }

    fn memory(&self) -> Option<String> {
        Some(spelled(self))
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    session_id: Option<String>,
    kind: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Message {
    id: Option<String>,
    timestamp: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    model: Option<String>,
    tokens: Option<Used>,
}

/// Input includes what was read from a cache; thoughts and what tools put in are counted beside.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Used {
    input: u64,
    output: u64,
    cached: u64,
    thoughts: u64,
    tool: u64,
}

impl Used {
    fn tokens(&self) -> Option<Tokens> {
        let count = |count: u64| Some(count).filter(|count| *count <= u64::from(u32::MAX));
        let input = count(self.input.checked_add(self.tool)?)?;
        Some(Tokens {
            input: input.saturating_sub(self.cached),
            output: count(self.output.checked_add(self.thoughts)?)?,
            cache_write: 0,
            cache_write_1h: 0,
            cache_read: count(self.cached)?,
        })
    }
}
