//! Signs of why a model could not be used, in an HTTP status or in what a client wrote about it.

use qd_session::monitor::FailureKind;

/// What an HTTP status says, if it says more than "error".
pub fn of_status(status: i64) -> Option<FailureKind> {
    match status {
        401 | 403 => Some(FailureKind::Auth),
        402 | 429 => Some(FailureKind::UsageLimit),
        500..=599 => Some(FailureKind::Server),
        _ => None,
    }
}

/// What a text says: by its words, else by a status that stands in it.
pub fn in_text(text: &str) -> FailureKind {
    let of_status = || status_in(text).and_then(of_status);
    in_words(text).or_else(of_status).unwrap_or(FailureKind::Other)
}

/// What a text says by its words alone.
pub fn in_words(text: &str) -> Option<FailureKind> {
    let text = text.to_ascii_lowercase();
    let said = WORDS.iter().find(|(_, words)| words.iter().any(|word| text.contains(word)));
    said.map(|(kind, _)| *kind)
}

/// The first three-digit number between 400 and 599.
pub fn status_in(text: &str) -> Option<i64> {
    text.split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter(|word| word.len() == 3)
        .filter_map(|word| word.parse().ok())
        .find(|status| (400..600).contains(status))
}

/// The most telling first: a limit is often reported as a refusal too.
const WORDS: [(FailureKind, &[&str]); 3] = [
    (
        FailureKind::UsageLimit,
        &[
            "rate_limit",
            "rate limit",
            "usage limit",
            "usage_limit",
            "quota",
            "billing",
            "resource_exhausted",
            "credit balance",
        ],
    ),
    (
        FailureKind::Auth,
        &[
            "authentication",
            "unauthorized",
            "unauthenticated",
            "permission_denied",
            "api key not valid",
            "invalid api key",
            "auth_required",
            "/login",
        ],
    ),
    (FailureKind::Server, &["server_error", "overloaded", "unavailable", "internal server error"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_tell_more_than_a_number() {
        assert_eq!(in_text("403: quota exceeded"), FailureKind::UsageLimit);
        assert_eq!(in_text("The model is overloaded."), FailureKind::Server);
        assert_eq!(in_text("API key not valid. Please pass a valid API key."), FailureKind::Auth);
    }

    #[test]
    fn a_status_is_a_word_of_its_own() {
        assert_eq!(in_text("API Error: 529"), FailureKind::Server);
        assert_eq!(in_text("{\"code\":400}"), FailureKind::Other);
        assert_eq!(in_text("14290 tokens in a503"), FailureKind::Other);
        assert_eq!(status_in("line 12, then 401."), Some(401));
    }
}
