//! Why a request to a model brought no answer: one cause of a closed list, in the provider's own
//! words where it has some. `spec/model-failures.md` is the table.

mod cause;
mod retry_after;
mod sign;

use std::sync::Arc;

use qd_session::machine::HarnessTrouble;
use qd_session::moment::Timestamp;
use serde_json::Value;

pub use self::cause::Cause;
use super::limits::{FAILURE_MESSAGE_BYTES_MAX, NAME_BYTES_MAX};
use crate::excerpt::head;
use crate::secret;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub cause: Cause,
    pub status: Option<u16>,
    /// What the provider, or the connection, said about it; without secrets.
    pub detail: Option<Arc<str>>,
    pub request_id: Option<Arc<str>>,
    /// How long the provider asks to wait.
    pub retry_after_ms: Option<u64>,
}

/// The beginning of a response: its status, and its headers with their names in small letters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResponseHead {
    pub status: u16,
    pub headers: Vec<(String, String)>,
}

impl ResponseHead {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// What the provider calls this request, for whoever asks it why.
    pub fn request_id(&self) -> Option<Arc<str>> {
        let id = ["request-id", "x-request-id"].iter().find_map(|name| self.header(name))?;
        Some(head(id, NAME_BYTES_MAX).into())
    }
}

impl Failure {
    pub fn of(cause: Cause) -> Self {
        Self { cause, status: None, detail: None, request_id: None, retry_after_ms: None }
    }

    /// A response that is no answer. `body` may be cut, and anything.
    pub fn of_response(now: Timestamp, response: &ResponseHead, body: &[u8]) -> Self {
        let failure = match serde_json::from_slice::<Value>(body) {
            Ok(body) => of_error(Some(response.status), &body),
            Err(_) => {
                let words = String::from_utf8_lossy(body);
                let cause = sign::cause(Some(response.status), &[], &words);
                Self { status: Some(response.status), ..Self::of(cause) }.saying(words.trim())
            }
        };
        let asked_to_wait = retry_after::wait_ms(now, response);
        let retry_after_ms = failure.cause.may_wait().then_some(asked_to_wait).flatten();
        Self { retry_after_ms, ..failure }.in_request(response.request_id())
    }

    /// With what was said about it.
    pub fn saying(self, words: &str) -> Self {
        if words.is_empty() {
            return self;
        }
        // Providers repeat keys that they refuse.
        let words = secret::redacted(head(words, FAILURE_MESSAGE_BYTES_MAX));
        Self { detail: Some(words.into()), ..self }
    }

    pub fn in_request(self, id: Option<Arc<str>>) -> Self {
        Self { request_id: self.request_id.or(id), ..self }
    }

    /// In words for the operator.
    pub fn message(&self) -> String {
        let mut message = self.cause.words().to_owned();
        if let Some(detail) = &self.detail {
            message.push_str(": ");
            message.push_str(detail);
        }
        let status = self.status.map(|status| format!("HTTP {status}"));
        let request = self.request_id.as_ref().map(|id| format!("request {id}"));
        let marks: Vec<String> = status.into_iter().chain(request).collect();
        if !marks.is_empty() {
            message.push_str(&format!(" ({})", marks.join(", ")));
        }
        message
    }

    /// In the machine's words.
    pub fn trouble(&self) -> HarnessTrouble {
        HarnessTrouble {
            trouble: self.cause.trouble(),
            message: self.message().into(),
            retry_after_ms: self.retry_after_ms,
        }
    }
}

/// An error as either provider writes it, in a response or within a stream.
pub(super) fn of_error(status: Option<u16>, body: &Value) -> Failure {
    // Some give a list of one.
    let body = body.get(0).unwrap_or(body);
    let error = if body["error"].is_null() { body } else { &body["error"] };
    let text = |field: &str| error[field].as_str().unwrap_or_default();
    let words = match error.as_str() {
        Some(words) => words,
        None if text("message").is_empty() => text("detail"),
        None => text("message"),
    };
    // In a stream there is no status; some gateways give it as the error's code.
    let code = error["code"].as_u64().and_then(|code| u16::try_from(code).ok());
    let status = status.or(code.filter(|code| (400..600).contains(code)));
    let cause = sign::cause(status, &[text("type"), text("code"), text("status")], words);
    Failure { status, ..Failure::of(cause) }.saying(words)
}
