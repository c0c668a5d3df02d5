//! As much of a long text as is worth keeping. What an agent writes has no bound; what we keep has.

use std::sync::Arc;

/// Most of a last message that is kept. Its end tells whether it asks for something.
const LAST_MESSAGE_BYTES_MAX: usize = 16 << 10;

/// Most of a tool's input that is kept to be shown and sent back.
const INPUT_BYTES_MAX: usize = 64 << 10;

/// The first `chars_max` characters; what was cut is marked.
pub fn head(text: &str, chars_max: usize) -> Arc<str> {
    match text.char_indices().nth(chars_max) {
        None => text.into(),
        Some((at, _)) => format!("{}…", &text[..at]).into(),
    }
}

/// The end of a last message.
pub fn tail(text: &str) -> String {
    let mut from = text.len().saturating_sub(LAST_MESSAGE_BYTES_MAX);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text[from..].to_owned()
}

/// A tool's input as JSON text.
pub fn input(json: &str) -> Arc<str> {
    let mut until = json.len().min(INPUT_BYTES_MAX);
    while !json.is_char_boundary(until) {
        until -= 1;
    }
    json[..until].into()
}

/// What is kept of a signal that nobody understood.
pub fn unrecognised(payload: &[u8]) -> Arc<str> {
    let start = &payload[..payload.len().min(UNRECOGNISED_BYTES_MAX)];
    String::from_utf8_lossy(start).as_ref().into()
}

/// Enough to see what a new kind of signal looks like.
const UNRECOGNISED_BYTES_MAX: usize = 2 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_never_splits_a_character() {
        let long = "ä".repeat(40 << 10);
        assert_eq!(&*head(&long, 3), "äää…");
        assert!(tail(&long).len() <= LAST_MESSAGE_BYTES_MAX);
        assert!(input(&long).len() <= INPUT_BYTES_MAX);
        assert!(unrecognised(long.as_bytes()).len() <= UNRECOGNISED_BYTES_MAX + 3);
    }

    #[test]
    fn a_short_text_stays_as_it_is() {
        assert_eq!(&*head("abc", 3), "abc");
        assert_eq!(tail("abc"), "abc");
        assert_eq!(&*input("{}"), "{}");
    }
}
