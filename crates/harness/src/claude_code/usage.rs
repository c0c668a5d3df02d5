//! What a line of a transcript says about tokens.
//!
//! Two ways that agree: [`walked`] picks the fields it needs out of the bytes and is sure of each,
//! or says nothing; [`parsed`] is for whatever is left.

use std::borrow::Cow;

use memchr::memmem;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::failure::reset_time;
use crate::json_walk::Walk;
use crate::rfc3339;
use crate::usage::{FileReader, Limit, Reading, Response, Speed, Standing, Tokens, spelled};

/// Stands in each line that tells of a response, and seldom in another.
pub const MARK: &[u8] = b"\"usage\"";

/// Reads one transcript. Its lines stand for themselves, but for a plan that is used up.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Transcript {
    session: Option<String>,
    standing: Standing,
}

impl FileReader for Transcript {
    fn mark(&self) -> Option<&'static [u8]> {
        Some(MARK)
    }

    fn read<'a>(&mut self, line: &'a [u8]) -> Reading<'a> {
        let reading = read_marked(line);
        // The client says it in its own words, where no model answered.
        if let Reading::Told(response, _) = &reading
            && response.model.is_none()
            && let Some(limit) = used_up(line)
        {
            self.session = response.session.as_deref().map(str::to_owned);
            self.standing.limited(Some(response.at), vec![limit]);
        }
        reading
    }

    fn memory(&self) -> Option<String> {
        (!self.standing.is_empty()).then(|| spelled(self))
    }

    fn standing(&self) -> Option<(Option<&str>, &Standing)> {
        (!self.standing.is_empty()).then_some((self.session.as_deref(), &self.standing))
    }
}

/// `…usage limit reached|1794770000`.
fn used_up(line: &[u8]) -> Option<Limit> {
    let at = memmem::find(line, b"limit reached|")?;
    let told = String::from_utf8_lossy(&line[at..line.len().min(at + 40)]);
    let resets_at = reset_time(&told)?;
    Some(Limit { used_percent: 100.0, window_minutes: None, resets_at: Some(resets_at.0) })
}

/// One line, without its end.
pub fn read(line: &[u8]) -> Reading<'_> {
    if memmem::find(line, MARK).is_none() {
        return Reading::Nothing;
    }
    read_marked(line)
}

/// The same for a line that is known to hold the [`MARK`].
pub fn read_marked(line: &[u8]) -> Reading<'_> {
    match std::str::from_utf8(line) {
        Ok(line) => walked(line).unwrap_or_else(|| parsed(line)),
        Err(_) => Reading::Unreadable,
    }
}

/// Reads the line without a parser; none where it takes one.
pub fn walked(line: &str) -> Option<Reading<'_>> {
    let mut found = Found::default();
    let mut walk = Walk::over(line)?;
    walk.object(|key, walk| match key {
        "message" => found.message(walk),
        "requestId" => once(&mut found.request, walk),
        "sessionId" => once(&mut found.session, walk),
        "timestamp" => once(&mut found.timestamp, walk),
        "agentId" => once(&mut found.agent, walk),
        "cwd" => once(&mut found.cwd, walk),
        "isSidechain" => found.aside.replace(walk.truth()?).is_none().then_some(()),
        // Rare: what the client says it cost, and what a subagent said within another line.
        "costUSD" | "data" => None,
        _ => walk.skip(),
    })?;
    walk.end()?;
    Some(found.reading())
}

/// What was met on the way. A key that comes twice is for the parser to refuse.
#[derive(Debug, Default)]
struct Found<'a> {
    message: Option<&'a str>,
    model: Option<&'a str>,
    request: Option<&'a str>,
    session: Option<&'a str>,
    timestamp: Option<&'a str>,
    agent: Option<&'a str>,
    cwd: Option<&'a str>,
    aside: Option<bool>,
    usage: Option<(Tokens, Option<Speed>)>,
    has_message: bool,
}

impl<'a> Found<'a> {
    fn message(&mut self, walk: &mut Walk<'a>) -> Option<()> {
        if std::mem::replace(&mut self.has_message, true) {
            return None;
        }
        walk.object(|key, walk| match key {
            "id" => once(&mut self.message, walk),
            "model" => once(&mut self.model, walk),
            "usage" => self.usage.replace(usage(walk)?).is_none().then_some(()),
            _ => walk.skip(),
        })
    }

    fn reading(self) -> Reading<'a> {
        let Some((tokens, speed)) = self.usage else { return Reading::Nothing };
        let Some(at) = self.timestamp.and_then(rfc3339::timestamp) else {
            return Reading::Unreadable;
        };
        let text = |text: Option<&'a str>| text.map(Cow::Borrowed);
        let response = Response {
            session: text(self.session),
            agent: text(self.agent),
            aside: self.aside == Some(true),
            message: text(self.message),
            request: text(self.request),
            model: text(self.model.filter(|model| *model != SYNTHETIC)),
            speed,
            at,
            tokens,
            cost: None,
            cwd: text(self.cwd),
        };
        Reading::Told(Box::new(response), Vec::new())
    }
}

/// Of the wrong type, empty or met before: for the parser.
fn once<'a>(place: &mut Option<&'a str>, walk: &mut Walk<'a>) -> Option<()> {
    let text = walk.plain_string().filter(|text| !text.is_empty())?;
    place.replace(text).is_none().then_some(())
}

fn usage(walk: &mut Walk<'_>) -> Option<(Tokens, Option<Speed>)> {
    let (mut tokens, mut speed) = (Tokens::default(), None);
    let mut seen = 0_u8;
    let mut once = |nth: u8| {
        let is_new = seen & (1 << nth) == 0;
        seen |= 1 << nth;
        is_new.then_some(())
    };
    let mut written = None;
    walk.object(|key, walk| match key {
        "input_tokens" => once(0).and(count(walk)).map(|count| tokens.input = count),
        "output_tokens" => once(1).and(count(walk)).map(|count| tokens.output = count),
        "cache_read_input_tokens" => {
            once(2).and(count(walk)).map(|count| tokens.cache_read = count)
        }
        "cache_creation_input_tokens" => {
            once(3).and(count(walk)).map(|count| written = Some(count))
        }
        "cache_creation" => {
            once(4)?;
            let (short, long) = lifetimes(walk)?;
            (tokens.cache_write, tokens.cache_write_1h) = (short, long);
            Some(())
        }
        "speed" => {
            once(5)?;
            speed = Some(match walk.plain_string()? {
                "standard" => Speed::Standard,
                "fast" => Speed::Fast,
                _ => return None,
            });
            Some(())
        }
        // Responses of other models may be in there.
        "iterations" => {
            once(6)?;
            let iterations = walk.raw()?;
            memmem::find(iterations.as_bytes(), ADVISOR.as_bytes()).is_none().then_some(())
        }
        _ => walk.skip(),
    })?;
    if seen & (1 << 4) == 0 {
        tokens.cache_write = written.unwrap_or(0);
    }
    Some((tokens, speed))
}

fn lifetimes(walk: &mut Walk<'_>) -> Option<(u64, u64)> {
    let (mut short, mut long) = (None, None);
    walk.object(|key, walk| match key {
        "ephemeral_5m_input_tokens" => short.replace(count(walk)?).is_none().then_some(()),
        "ephemeral_1h_input_tokens" => long.replace(count(walk)?).is_none().then_some(()),
        _ => walk.skip(),
    })?;
    Some((short.unwrap_or(0), long.unwrap_or(0)))
}

fn count(walk: &mut Walk<'_>) -> Option<u64> {
    walk.whole_number().filter(|count| *count <= TOKENS_MAX)
}

/// Reads the line with the parser.
pub fn parsed(line: &str) -> Reading<'_> {
    let Ok(line) = serde_json::from_str::<Line<'_>>(line) else { return Reading::Unreadable };
    let within = || serde_json::from_str::<Data>(line.data?.get()).ok()?.message;
    let (message, told) = match line.message.map(|message| serde_json::from_str(message.get())) {
        Some(Ok(Message { usage: Some(usage), id, model })) => ((usage, id, model), line.told()),
        // No usage, or no object at all: as a prompt may be.
        Some(Ok(Message { usage: None, .. })) | None => match within() {
            Some(Within { message: Some(Message { usage: Some(usage), id, model }), told }) => {
                ((usage, id, model), Told { session_id: line.session_id.clone(), ..told })
            }
            _ => return Reading::Nothing,
        },
        Some(Err(_)) if line.message.is_some_and(|message| !message.get().starts_with('{')) => {
            return Reading::Nothing;
        }
        Some(Err(_)) => return Reading::Unreadable,
    };
    let (usage, id, model) = message;
    let Some(at) = told.timestamp.as_deref().and_then(rfc3339::timestamp) else {
        return Reading::Unreadable;
    };
    let Some(tokens) = usage.tokens() else { return Reading::Unreadable };
    let response = Response {
        session: text(told.session_id),
        agent: text(told.agent_id),
        aside: told.is_sidechain == Some(true),
        message: text(id),
        request: text(told.request_id),
        model: text(model.filter(|model| model != SYNTHETIC)),
        speed: usage.speed(),
        at,
        tokens,
        cost: told.cost,
        cwd: text(line.cwd),
    };
    let advisors = advisors(&response, usage.iterations);
    Reading::Told(Box::new(response), advisors)
}

/// Models that were asked for advice in the middle of a response: each is a response of its own.
fn advisors<'a>(response: &Response<'a>, iterations: Option<Value>) -> Vec<Response<'a>> {
    let Some(Value::Array(iterations)) = iterations else { return Vec::new() };
    let asked = iterations
        .into_iter()
        .filter_map(|iteration| serde_json::from_value::<Iteration>(iteration).ok())
        .filter(|iteration| iteration.kind.as_deref() == Some(ADVISOR));
    asked
        .enumerate()
        .filter_map(|(nth, iteration)| {
            let message = response.message.as_deref();
            let model = text(iteration.model.clone())?;
            Some(Response {
                message: message.map(|id| Cow::Owned(format!("{id}:advisor:{nth}"))),
                model: Some(model),
                tokens: iteration.usage().tokens()?,
                speed: None,
                cost: None,
                ..response.clone()
            })
        })
        .collect()
}

fn text<'a>(text: Option<String>) -> Option<Cow<'a, str>> {
    text.filter(|text| !text.is_empty()).map(Cow::Owned)
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    session_id: Option<String>,
    agent_id: Option<String>,
    cwd: Option<String>,
    request_id: Option<String>,
    timestamp: Option<String>,
    is_sidechain: Option<bool>,
    #[serde(rename = "costUSD")]
    cost: Option<f64>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

impl Line<'_> {
    fn told(&self) -> Told {
        Told {
            session_id: self.session_id.clone(),
            agent_id: self.agent_id.clone(),
            request_id: self.request_id.clone(),
            timestamp: self.timestamp.clone(),
            is_sidechain: self.is_sidechain,
            cost: self.cost,
        }
    }
}

/// An older client told of its subagents in lines of the session.
#[derive(Debug, Deserialize)]
struct Data {
    message: Option<Within>,
}

#[derive(Debug, Deserialize)]
struct Within {
    message: Option<Message>,
    #[serde(flatten)]
    told: Told,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    session_id: Option<String>,
    agent_id: Option<String>,
    request_id: Option<String>,
    timestamp: Option<String>,
    is_sidechain: Option<bool>,
    #[serde(rename = "costUSD")]
    cost: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Message {
    id: Option<String>,
    model: Option<String>,
    usage: Option<Usage>,
}

#[derive(Debug, Deserialize)]
struct Usage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_creation: Option<Lifetimes>,
    speed: Option<String>,
    /// Whatever is in there: what cannot be read of it is no reason to lose the rest.
    iterations: Option<Value>,
}

impl Usage {
    /// None where a count is none.
    fn tokens(&self) -> Option<Tokens> {
        let written = match &self.cache_creation {
            Some(lifetimes) => (lifetimes.short, lifetimes.long),
            None => (self.cache_creation_input_tokens, None),
        };
        let count =
            |count: Option<u64>| Some(count.unwrap_or(0)).filter(|count| *count <= TOKENS_MAX);
        Some(Tokens {
            input: count(self.input_tokens)?,
            output: count(self.output_tokens)?,
            cache_write: count(written.0)?,
            cache_write_1h: count(written.1)?,
            cache_read: count(self.cache_read_input_tokens)?,
        })
    }

    fn speed(&self) -> Option<Speed> {
        match self.speed.as_deref() {
            Some("fast") => Some(Speed::Fast),
            Some("standard") => Some(Speed::Standard),
            _ => None,
        }
    }
}

#[derive(Debug, Deserialize)]
struct Lifetimes {
    #[serde(rename = "ephemeral_5m_input_tokens")]
    short: Option<u64>,
    #[serde(rename = "ephemeral_1h_input_tokens")]
    long: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Iteration {
    #[serde(rename = "type")]
    kind: Option<String>,
    model: Option<String>,
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_creation: Option<Lifetimes>,
}

impl Iteration {
    fn usage(self) -> Usage {
        Usage {
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            cache_read_input_tokens: self.cache_read_input_tokens,
            cache_creation_input_tokens: self.cache_creation_input_tokens,
            cache_creation: self.cache_creation,
            speed: None,
            iterations: None,
        }
    }
}

/// The client's own words where no model answered, as an API's error.
const SYNTHETIC: &str = "<synthetic>";

const ADVISOR: &str = "advisor_message";

/// No response has four thousand million tokens; what says so is damaged.
const TOKENS_MAX: u64 = u32::MAX as u64;
