//! Why a turn failed, out of Codex's error info.
//!
//! The info is a name or a map with one name (`{"httpConnectionFailed":{"httpStatusCode":401}}`),
//! in camel case from the app-server and in snake case in a rollout.

use qd_session::moment::Timestamp;
use qd_session::monitor::{Failure, FailureKind};
use serde_json::Value;

use super::wire::{RateLimits, TurnError};
use crate::excerpt::brief;

/// Longest error message kept: it is shown on a card.
const MESSAGE_CHARS_MAX: usize = 2_000;

/// A window this full is the one that ended the turn.
const SPENT_PERCENT: f64 = 99.5;

pub fn failure(error: Option<&TurnError>, limit_resets_at: Option<Timestamp>) -> Failure {
    let message = error.and_then(|error| error.message.as_deref());
    let kind = error
        .and_then(|error| error.codex_error_info.as_ref())
        .map_or_else(|| kind_of_message(message.unwrap_or_default()), kind_of_info);
    Failure {
        kind,
        message: message.map(|text| brief(text, MESSAGE_CHARS_MAX)),
        resets_at: limit_resets_at.filter(|_| kind == FailureKind::UsageLimit),
    }
}

/// What says more about one failed turn: a known kind beats mere words, words beat nothing. Of two
/// that say as much the newer one.
pub fn more_specific(known: Failure, new: Failure) -> Failure {
    let rank = |failure: &Failure| match failure.kind {
        FailureKind::Other if failure.message.is_none() => 0,
        FailureKind::Other => 1,
        FailureKind::Server | FailureKind::Auth | FailureKind::UsageLimit => 2,
    };
    if rank(&known) > rank(&new) { known } else { new }
}

/// When the spent window opens again, if one is spent.
pub fn resets_at(limits: &RateLimits) -> Option<Timestamp> {
    [&limits.primary, &limits.secondary]
        .into_iter()
        .flatten()
        .filter(|window| window.used_percent.is_some_and(|used| used >= SPENT_PERCENT))
        .filter_map(|window| window.resets_at)
        .max()
        .map(|seconds| Timestamp(seconds.saturating_mul(1_000)))
}

fn kind_of_info(info: &Value) -> FailureKind {
    let (name, detail) = match info {
        Value::String(name) => (name.as_str(), None),
        Value::Object(map) => match map.iter().next() {
            Some((name, detail)) => (name.as_str(), Some(detail)),
            None => return FailureKind::Other,
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            return FailureKind::Other;
        }
    };
    let status = detail.and_then(|detail| {
        detail.get("httpStatusCode").or_else(|| detail.get("http_status_code"))?.as_u64()
    });
    if let Some(kind) = status.and_then(kind_of_status) {
        return kind;
    }
    match name.replace('_', "").to_ascii_lowercase().as_str() {
        "usagelimitexceeded" | "sessionbudgetexceeded" => FailureKind::UsageLimit,
        "unauthorized" => FailureKind::Auth,
        "internalservererror"
        | "serveroverloaded"
        | "httpconnectionfailed"
        | "responsestreamconnectionfailed"
        | "responsestreamdisconnected"
        | "responsetoomanyfailedattempts" => FailureKind::Server,
        _ => FailureKind::Other,
    }
}

fn kind_of_status(status: u64) -> Option<FailureKind> {
    match status {
        401 | 403 => Some(FailureKind::Auth),
        402 | 429 => Some(FailureKind::UsageLimit),
        500..=599 => Some(FailureKind::Server),
        _ => None,
    }
}

/// `unexpected status 529 <unknown status code>: …`
fn status_in(message: &str) -> Option<u64> {
    let (_, rest) = message.split_once("unexpected status ")?;
    rest.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

/// `codex exec` and the hook after a model request give only the text.
fn kind_of_message(message: &str) -> FailureKind {
    if let Some(kind) = status_in(message).and_then(kind_of_status) {
        return kind;
    }
    let message = message.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    if says(&["usage limit", "429", "quota"]) {
        FailureKind::UsageLimit
    } else if says(&["401", "403", "unauthorized", "sign in", "log in"]) {
        FailureKind::Auth
    } else if says(&["high demand", "stream disconnected", "500 ", "502", "503", "connection"]) {
        FailureKind::Server
    } else {
        FailureKind::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(info: &str, expected: FailureKind) {
        let error = TurnError {
            message: Some("it broke".into()),
            codex_error_info: Some(serde_json::from_str(info).expect("the test writes JSON")),
            additional_details: None,
        };
        assert_eq!(failure(Some(&error), None).kind, expected, "{info}");
    }

    fn words(message: &str) -> Failure {
        failure(Some(&TurnError { message: Some(message.into()), ..TurnError::default() }), None)
    }

    #[test]
    fn both_spellings_of_an_error_mean_the_same() {
        check(r#""usageLimitExceeded""#, FailureKind::UsageLimit);
        check(r#""usage_limit_exceeded""#, FailureKind::UsageLimit);
        check(r#""internalServerError""#, FailureKind::Server);
        check(r#""internal_server_error""#, FailureKind::Server);
        check(r#""contextWindowExceeded""#, FailureKind::Other);
    }

    #[test]
    fn the_http_status_says_more_than_the_name() {
        check(r#"{"httpConnectionFailed":{"httpStatusCode":401}}"#, FailureKind::Auth);
        check(
            r#"{"responseTooManyFailedAttempts":{"httpStatusCode":429}}"#,
            FailureKind::UsageLimit,
        );
        check(
            r#"{"response_too_many_failed_attempts":{"http_status_code":503}}"#,
            FailureKind::Server,
        );
        check(r#"{"responseStreamDisconnected":{"httpStatusCode":null}}"#, FailureKind::Server);
        check("7", FailureKind::Other);
    }

    #[test]
    fn words_tell_the_http_status() {
        let check = |message: &str, expected: FailureKind| {
            assert_eq!(words(message).kind, expected, "{message}");
        };
        check("unexpected status 401 Unauthorized: Invalid API key, url: x", FailureKind::Auth);
        check("unexpected status 529 <unknown status code>: busy, url: x", FailureKind::Server);
        check("unexpected status 429 Too Many Requests: slow down", FailureKind::UsageLimit);
        check("unexpected status 404 Not Found: no such model", FailureKind::Other);
        check("unexpected status", FailureKind::Other);
    }

    #[test]
    fn the_more_specific_reason_stands_whichever_comes_last() {
        let (auth, odd, none) =
            (words("unexpected status 401 Unauthorized"), words("it broke"), failure(None, None));
        for (known, new, expected) in [
            (&none, &auth, &auth),
            (&auth, &none, &auth),
            (&odd, &auth, &auth),
            (&auth, &odd, &auth),
            (&odd, &none, &odd),
        ] {
            assert_eq!(more_specific(known.clone(), new.clone()), *expected);
        }
    }

    #[test]
    fn a_usage_limit_says_when_the_spent_window_opens_again() {
        let limits: RateLimits = serde_json::from_str(
            r#"{"primary":{"used_percent":100.0,"window_minutes":300,"resets_at":1794800000},
                "secondary":{"used_percent":20.0,"resets_at":1794900000}}"#,
        )
        .expect("the test writes JSON");
        assert_eq!(resets_at(&limits), Some(Timestamp(1_794_800_000_000)));
        assert_eq!(resets_at(&RateLimits::default()), None);
    }
}
