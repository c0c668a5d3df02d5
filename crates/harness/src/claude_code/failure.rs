//! Why the model could not be used, in the client's words and in ours.

use qd_session::moment::Timestamp;
use qd_session::monitor::{Failure, FailureKind};

use crate::excerpt::head;

/// Longest message of a failure that is shown.
const MESSAGE_BYTES_MAX: usize = 2 << 10;

/// `error` is the client's name for it, where it gives one; `status` is HTTP's.
pub fn failure(error: Option<&str>, status: Option<u64>, message: Option<&str>) -> Failure {
    Failure {
        kind: kind(error, status),
        message: message.map(|text| head(text, MESSAGE_BYTES_MAX).into()),
        resets_at: message.and_then(reset_time),
    }
}

fn kind(error: Option<&str>, status: Option<u64>) -> FailureKind {
    match error {
        Some("rate_limit" | "rate_limit_error") => FailureKind::UsageLimit,
        Some(
            "authentication_failed"
            | "authentication_error"
            | "oauth_org_not_allowed"
            | "account_on_hold"
            | "verification_required"
            | "billing_error"
            | "permission_error"
            | "cloud_credential_error",
        ) => FailureKind::Auth,
        Some("server_error" | "overloaded" | "overloaded_error" | "api_error") => {
            FailureKind::Server
        }
        Some("invalid_request" | "model_not_found" | "max_output_tokens") => FailureKind::Other,
        Some(_) | None => match status {
            Some(429) => FailureKind::UsageLimit,
            Some(401..=403) => FailureKind::Auth,
            Some(500..=599) => FailureKind::Server,
            Some(_) | None => FailureKind::Other,
        },
    }
}

/// A used-up plan is told as `…usage limit reached|<seconds since 1970>`.
pub(super) fn reset_time(message: &str) -> Option<Timestamp> {
    let (_, seconds) = message.rsplit_once('|')?;
    let digits: String = seconds.trim().chars().take_while(char::is_ascii_digit).collect();
    let seconds: u64 = digits.parse().ok().filter(|seconds| *seconds > 1_000_000_000)?;
    Some(Timestamp(seconds.checked_mul(1_000)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(error: Option<&str>, status: Option<u64>, kind: FailureKind) {
        assert_eq!(failure(error, status, None).kind, kind, "{error:?} {status:?}");
    }

    #[test]
    fn every_error_the_client_names_has_a_kind() {
        check(Some("rate_limit"), None, FailureKind::UsageLimit);
        check(Some("authentication_failed"), None, FailureKind::Auth);
        check(Some("oauth_org_not_allowed"), None, FailureKind::Auth);
        check(Some("billing_error"), None, FailureKind::Auth);
        check(Some("server_error"), None, FailureKind::Server);
        check(Some("overloaded"), None, FailureKind::Server);
        check(Some("max_output_tokens"), None, FailureKind::Other);
        check(Some("unknown"), Some(400), FailureKind::Other);
    }

    #[test]
    fn where_the_name_is_unknown_the_status_tells() {
        check(Some("Overloaded"), Some(529), FailureKind::Server);
        check(None, Some(429), FailureKind::UsageLimit);
        check(None, Some(401), FailureKind::Auth);
        check(None, None, FailureKind::Other);
    }

    #[test]
    fn a_used_up_plan_says_when_it_is_back() {
        let told = failure(None, Some(429), Some("Claude AI usage limit reached|1794770000"));
        assert_eq!(told.resets_at, Some(Timestamp(1_794_770_000_000)));
        assert_eq!(failure(None, None, Some("a | b")).resets_at, None);
    }
}
