//! How much of a text is kept. Agents write megabytes; a card shows a line.

use std::sync::Arc;

/// The last part of a final message: endings decide what a finished turn means.
const LAST_MESSAGE_BYTES_MAX: usize = 16 << 10;

/// What a tool call is about: a line on a card.
const ABOUT_CHARS_MAX: usize = 200;

/// A request's input, shown in full before somebody allows it.
const INPUT_BYTES_MAX: usize = 64 << 10;

/// A command or patch, as far as two tellings of it are compared.
const COMMAND_BYTES_MAX: usize = 4 << 10;

/// A signal nobody understood: enough to see what it was.
const UNRECOGNISED_BYTES_MAX: usize = 2 << 10;

pub fn last_message(text: &str) -> Arc<str> {
    let mut from = text.len().saturating_sub(LAST_MESSAGE_BYTES_MAX);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    Arc::from(&text[from..])
}

pub fn about(text: &str) -> Arc<str> {
    Arc::from(shortened(text, ABOUT_CHARS_MAX))
}

pub fn input(text: &str) -> Arc<str> {
    Arc::from(cut(text, INPUT_BYTES_MAX))
}

pub fn command(text: &str) -> String {
    cut(text, COMMAND_BYTES_MAX).to_owned()
}

pub fn unrecognised(payload: &[u8]) -> Arc<str> {
    let head = &payload[..payload.len().min(UNRECOGNISED_BYTES_MAX)];
    // A broken byte becomes three: cut again, so that the bound holds.
    Arc::from(cut(&String::from_utf8_lossy(head), UNRECOGNISED_BYTES_MAX))
}

/// At most so many characters; what was cut off shows as `…`.
pub fn shortened(text: &str, chars_max: usize) -> String {
    let mut chars = text.chars();
    let mut short: String = chars.by_ref().take(chars_max).collect();
    if chars.next().is_some() {
        short.pop();
        short.push('…');
    }
    short
}

fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_keeps_its_end_and_whole_letters() {
        let text = "ä".repeat(20_000) + "?";
        let kept = last_message(&text);
        assert!(kept.ends_with("ä?") && kept.len() <= 16 << 10);
        assert_eq!(&*last_message("Done."), "Done.");
    }

    #[test]
    fn every_bound_holds_for_broken_and_huge_text() {
        assert_eq!(about(&"x".repeat(500)).chars().count(), 200);
        assert!(input(&"ö".repeat(90_000)).len() <= 64 << 10);
        assert!(unrecognised(&[0xff; 9_000]).len() <= 2 << 10);
    }
}
