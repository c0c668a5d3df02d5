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
    match status {
        Some(401 | 403) => return FailureKind::Auth,
        Some(402 | 429) => return FailureKind::UsageLimit,
        Some(500..=599) => return FailureKind::Server,
        Some(_) | None => {}
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

/// `codex exec` gives only the text.
fn kind_of_message(message: &str) -> FailureKind {
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
        };
        assert_eq!(failure(Some(&error), None).kind, expected, "{info}");
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
