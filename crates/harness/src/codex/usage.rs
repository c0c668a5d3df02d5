//! What the lines of a rollout say about tokens.
//!
//! A `token_usage_record` is one response. Clients before it wrote only running totals, again and
//! again; for their files a response is what a total has grown by.

use std::borrow::Cow;

use memchr::memmem;
use qd_session::moment::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::usage::{FileReader, Limit, Reading, Response, Standing, Tokens, spelled};
use crate::{payload, rfc3339};

/// Reads one rollout, whose earlier lines say of whom the later ones are.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Rollout {
    /// The session it belongs to: a subagent's is its parent's.
    session: Option<String>,
    thread: Option<String>,
    cwd: Option<String>,
    model: Option<String>,
    /// It has records, so totals are not looked at.
    has_records: bool,
    total: Option<Usage>,
    totals_seen: u64,
    standing: Standing,
}

impl FileReader for Rollout {
    fn read<'a>(&mut self, line: &'a [u8]) -> Reading<'a> {
        let begin = &line[..line.len().min(KIND_WITHIN)];
        if !KINDS.iter().any(|kind| memmem::find(begin, kind.as_bytes()).is_some()) {
            return Reading::Nothing;
        }
        let Some(line) = payload::read::<Line<'_>>(line) else { return Reading::Unreadable };
        let Some(payload) = line.payload else { return Reading::Nothing };
        let at = line.timestamp.as_deref().and_then(rfc3339::timestamp);
        let told = match line.kind.as_deref() {
            Some("session_meta") => self.began(payload),
            Some("turn_context") => self.turned(payload),
            Some("token_usage_record") => self.recorded(payload),
            Some("event_msg") => self.counted(at, payload),
            _ => return Reading::Nothing,
        };
        let Some(told) = told else { return Reading::Nothing };
        let (Some(at), Some(tokens)) = (at, told.usage.tokens()) else {
            return Reading::Unreadable;
        };
        let text = |text: &Option<String>| text.clone().map(Cow::Owned);
        let thread = told.thread.or_else(|| self.thread.clone());
        let session = told.session.or_else(|| self.session.clone());
        let aside = thread != session;
        let response = Response {
            agent: if aside { text(&thread) } else { None },
            aside,
            message: Some(Cow::Owned(told.response)),
            request: told.turn.or_else(|| thread.clone()).map(Cow::Owned),
            session: session.map(Cow::Owned),
            model: text(&self.model),
            speed: None,
            at,
            tokens,
            cost: None,
            cwd: text(&self.cwd),
        };
        Reading::Told(Box::new(response), Vec::new())
    }

    fn memory(&self) -> Option<String> {
        Some(spelled(self))
    }

    /// A subagent's context is not its session's; the limits are.
    fn standing(&self) -> Option<(Option<&str>, &Standing)> {
        (!self.standing.is_empty()).then_some((self.session.as_deref(), &self.standing))
    }
}

impl Rollout {
    fn began(&mut self, payload: &RawValue) -> Option<Told> {
        let meta: Meta = serde_json::from_str(payload.get()).ok()?;
        self.session = meta.session_id.or_else(|| meta.id.clone());
        (self.thread, self.cwd) = (meta.id, meta.cwd);
        None
    }

    fn turned(&mut self, payload: &RawValue) -> Option<Told> {
        let context: Context = serde_json::from_str(payload.get()).ok()?;
        self.model = context.model.or(self.model.take());
        None
    }

    fn recorded(&mut self, payload: &RawValue) -> Option<Told> {
        self.has_records = true;
        let record: Record = serde_json::from_str(payload.get()).ok()?;
        Some(Told {
            response: record.response_id?,
            thread: record.thread_id,
            session: record.session_id,
            turn: record.turn_id,
            usage: record.usage?,
        })
    }

    /// What the total has grown by, in a file without records.
    fn counted(&mut self, at: Option<Timestamp>, payload: &RawValue) -> Option<Told> {
        let event: Event = serde_json::from_str(payload.get()).ok()?;
        if event.kind.as_deref() != Some("token_count") {
            return None;
        }
        if let Some(limits) = event.rate_limits {
            self.standing.limited(at, limits.told());
        }
        let info = event.info?;
        if self.session == self.thread {
            self.standing.context_window = info.model_context_window;
        }
        let total = info.total_token_usage?;
        let before = self.total.replace(total).unwrap_or_default();
        let usage = total.since(&before)?;
        if self.has_records {
            return None;
        }
        self.totals_seen += 1;
        let response = format!("total-{}", self.totals_seen);
        Some(Told { response, thread: None, session: None, turn: None, usage })
    }
}

/// What a line tells of a response.
#[derive(Debug)]
struct Told {
    response: String,
    thread: Option<String>,
    session: Option<String>,
    turn: Option<String>,
    usage: Usage,
}

#[derive(Debug, Deserialize)]
struct Line<'a> {
    timestamp: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct Meta {
    session_id: Option<String>,
    id: Option<String>,
    cwd: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Context {
    model: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Record {
    thread_id: Option<String>,
    session_id: Option<String>,
    turn_id: Option<String>,
    response_id: Option<String>,
    usage: Option<Usage>,
}

#[derive(Debug, Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: Option<String>,
    info: Option<Info>,
    rate_limits: Option<RateLimits>,
}

#[derive(Debug, Deserialize)]
struct Info {
    model_context_window: Option<u64>,
    total_token_usage: Option<Usage>,
}

#[derive(Debug, Deserialize)]
struct RateLimits {
    primary: Option<RateLimit>,
    secondary: Option<RateLimit>,
}

#[derive(Debug, Deserialize)]
struct RateLimit {
    used_percent: Option<f64>,
    window_minutes: Option<u64>,
    resets_at: Option<u64>,
}

impl RateLimits {
    fn told(self) -> Vec<Limit> {
        let limit = |limit: RateLimit| {
            Some(Limit {
                used_percent: limit.used_percent?,
                window_minutes: limit.window_minutes,
                resets_at: limit.resets_at.map(|seconds| seconds.saturating_mul(1_000)),
            })
        };
        [self.primary, self.secondary].into_iter().flatten().filter_map(limit).collect()
    }
}

/// Input includes what was read from a cache; output includes reasoning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
struct Usage {
    input_tokens: u64,
    cached_input_tokens: u64,
    cache_write_input_tokens: u64,
    output_tokens: u64,
}

impl Usage {
    fn tokens(&self) -> Option<Tokens> {
        let counts = [self.input_tokens, self.output_tokens, self.cached_input_tokens];
        if counts.iter().any(|count| *count > u64::from(u32::MAX)) {
            return None;
        }
        let (read, written) = (self.cached_input_tokens, self.cache_write_input_tokens);
        Some(Tokens {
            input: self.input_tokens.saturating_sub(read).saturating_sub(written),
            output: self.output_tokens,
            cache_write: written.min(self.input_tokens),
            cache_write_1h: 0,
            cache_read: read,
        })
    }

    /// None if it has not grown. A total that fell began anew.
    fn since(&self, before: &Self) -> Option<Self> {
        if self == before {
            return None;
        }
        let has_grown = self.input_tokens >= before.input_tokens
            && self.cached_input_tokens >= before.cached_input_tokens
            && self.cache_write_input_tokens >= before.cache_write_input_tokens
            && self.output_tokens >= before.output_tokens;
        let before = if has_grown { *before } else { Self::default() };
        Some(Self {
            input_tokens: self.input_tokens - before.input_tokens,
            cached_input_tokens: self.cached_input_tokens - before.cached_input_tokens,
            cache_write_input_tokens: self.cache_write_input_tokens
                - before.cache_write_input_tokens,
            output_tokens: self.output_tokens - before.output_tokens,
        })
    }
}

/// The kinds of lines that are read. The rest, whole tool outputs, is passed over.
const KINDS: [&str; 4] =
    ["\"session_meta\"", "\"turn_context\"", "\"token_usage_record\"", "\"token_count\""];

/// A line says its kind in its first bytes: after a time and a number.
const KIND_WITHIN: usize = 256;
