//! Why a request to the model failed, as far as the client's words tell.

use qd_session::monitor::{Failure, FailureKind};

use super::wire::Details;
use crate::excerpt::brief;

/// What a failed request was about, by its text: both clients put the HTTP status in it.
pub fn failure_of(text: &str) -> Failure {
    let said: String = serde_json::from_str::<Details>(text)
        .ok()
        .and_then(|details| details.message)
        .unwrap_or_else(|| text.to_owned());
    let status = said
        .split(|c: char| !c.is_ascii_digit())
        .filter(|digits| digits.len() == 3)
        .find_map(|digits| digits.parse().ok().filter(|status| (400..600).contains(status)));
    let lower = said.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let kind = match status {
        Some(401 | 403) => FailureKind::Auth,
        Some(402 | 429) => FailureKind::UsageLimit,
        Some(408 | 500..) => FailureKind::Server,
        _ if has(&["api key", "unauthorized", "authentication"]) => FailureKind::Auth,
        _ if has(&["rate limit", "quota", "credit", "billing", "insufficient balance"]) => {
            FailureKind::UsageLimit
        }
        _ if has(&["overloaded", "timed out", "timeout", "econn", "network"]) => {
            FailureKind::Server
        }
        _ => FailureKind::Other,
    };
    Failure { kind, message: Some(brief(&said, 2_000)), resets_at: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_told_apart_by_status_then_by_words() {
        for (text, kind) in [
            ("OpenAI completion error: 401 Invalid API key", FailureKind::Auth),
            (r#"{"message":"402 Payment required","status":402}"#, FailureKind::UsageLimit),
            ("429\nToo many requests", FailureKind::UsageLimit),
            ("503 Service unavailable", FailureKind::Server),
            ("Insufficient balance, add credits", FailureKind::UsageLimit),
            ("connect ECONNREFUSED 127.0.0.1:443", FailureKind::Server),
            ("something else", FailureKind::Other),
            ("", FailureKind::Other),
        ] {
            assert_eq!(failure_of(text).kind, kind, "{text}");
        }
    }
}
