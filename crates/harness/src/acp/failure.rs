//! Why a turn ended badly, from a JSON-RPC error.

use qd_session::monitor::{Failure, FailureKind};

use super::wire::RpcError;
use crate::{excerpt, failure_sign};

/// JSON-RPC: the request was cancelled by whoever sent it.
const REQUEST_CANCELLED: i64 = -32800;
/// ACP: authenticate first.
const AUTH_REQUIRED: i64 = -32000;

/// A person ended it: not a failure.
pub fn is_cancelled(error: &RpcError) -> bool {
    error.code == Some(REQUEST_CANCELLED)
}

/// Agents put the HTTP status into the code, into `data`, or only into the text.
pub fn of_error(error: &RpcError) -> Failure {
    let message = error.message.as_deref().unwrap_or_default();
    let data = error.data.as_ref().map(ToString::to_string).unwrap_or_default();
    let kind = match error.code {
        Some(AUTH_REQUIRED) => FailureKind::Auth,
        code => code
            .and_then(failure_sign::of_status)
            .unwrap_or_else(|| failure_sign::in_text(&format!("{message} {data}"))),
    };
    Failure { kind, message: excerpt::last_message(message), resets_at: None }
}

/// A turn that stopped for a reason that has a name and no error.
pub fn of_reason(reason: &str) -> Failure {
    let message = format!("stopped: {reason}");
    Failure { kind: FailureKind::Other, message: Some(message.into()), resets_at: None }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(error: serde_json::Value, kind: FailureKind) {
        let error: RpcError = serde_json::from_value(error).expect("an error");
        assert_eq!(of_error(&error).kind, kind);
    }

    #[test]
    fn the_status_is_found_wherever_the_agent_put_it() {
        check(json!({"code":400,"message":"{\"error\":{\"code\":400}}"}), FailureKind::Other);
        check(json!({"code":429,"message":"slow down"}), FailureKind::UsageLimit);
        check(json!({"code":-32000,"message":"Authentication required"}), FailureKind::Auth);
        check(
            json!({"code":-32603,"message":"Internal error","data":{"errorKind":"rate_limit"}}),
            FailureKind::UsageLimit,
        );
        check(json!({"code":-32603,"message":"API Error: 529 Overloaded"}), FailureKind::Server);
        check(
            json!({"code":-32603,"message":"API Error: 400 Invalid","data":{"errorKind":"unknown"}}),
            FailureKind::Other,
        );
    }

    #[test]
    fn a_cancelled_request_is_no_failure() {
        assert!(is_cancelled(&RpcError { code: Some(-32800), ..RpcError::default() }));
        assert!(!is_cancelled(&RpcError { code: Some(-32603), ..RpcError::default() }));
    }
}
