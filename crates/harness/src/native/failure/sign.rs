//! Signs by which a cause is known: the error's type or code, then words, then the status.

use super::Cause;

/// The most telling first: what has a name of its own is often sent with a general status.
pub(super) fn cause(status: Option<u16>, names: &[&str], words: &str) -> Cause {
    let words = words.to_ascii_lowercase();
    let named = |known: &[&str]| names.iter().any(|name| known.contains(name));
    let said = |known: &[&str]| known.iter().any(|known| words.contains(known));
    if named(CREDIT_NAMES) || status == Some(402) || said(CREDIT_WORDS) {
        return Cause::OutOfCredit;
    }
    let may_be_context = !matches!(status, Some(401 | 403 | 429));
    if named(CONTEXT_NAMES) || status == Some(413) || (may_be_context && said(CONTEXT_WORDS)) {
        return Cause::ContextFull;
    }
    if named(&["model_not_found"]) {
        return Cause::UnknownModel;
    }
    match status {
        Some(status) => of_status(status, named(OVERLOADED_NAMES) || said(&["overloaded"])),
        None => of_names(&named).unwrap_or(Cause::ServerError),
    }
}

fn of_status(status: u16, is_overloaded: bool) -> Cause {
    match status {
        429 => Cause::RateLimited,
        529 => Cause::Overloaded,
        500..=599 if is_overloaded => Cause::Overloaded,
        504 => Cause::TimedOut,
        500..=599 => Cause::ServerError,
        401 | 407 => Cause::SignInNeeded,
        403 => Cause::NotAllowed,
        404 => Cause::UnknownModel,
        408 | 425 => Cause::TimedOut,
        // Two requests met; the next one may not.
        409 => Cause::ServerError,
        300..=399 => Cause::Redirected,
        _ => Cause::BadRequest,
    }
}

/// Within a stream the status has been sent long ago.
fn of_names(named: &impl Fn(&[&str]) -> bool) -> Option<Cause> {
    [
        (
            &["rate_limit_error", "rate_limit_exceeded", "tokens", "requests"][..],
            Cause::RateLimited,
        ),
        (OVERLOADED_NAMES, Cause::Overloaded),
        (&["timeout_error"], Cause::TimedOut),
        (&["authentication_error", "invalid_api_key"], Cause::SignInNeeded),
        (&["permission_error"], Cause::NotAllowed),
        (&["not_found_error"], Cause::UnknownModel),
        (&["invalid_request_error"], Cause::BadRequest),
    ]
    .into_iter()
    .find(|(names, _)| named(names))
    .map(|(_, cause)| cause)
}

const CREDIT_NAMES: &[&str] =
    &["billing_error", "insufficient_quota", "billing_hard_limit_reached", "billing_not_active"];

const CREDIT_WORDS: &[&str] =
    &["credit balance is too low", "insufficient balance", "exceeded your current quota"];

const CONTEXT_NAMES: &[&str] =
    &["context_length_exceeded", "request_too_large", "exceed_context_size_error"];

const CONTEXT_WORDS: &[&str] = &[
    "prompt is too long",
    "exceed context limit",
    "maximum context length",
    "context window",
    "context length",
    "context size",
    "input is too long",
    "input token count exceeds",
];

const OVERLOADED_NAMES: &[&str] = &["overloaded_error", "overloaded", "server_is_overloaded"];
