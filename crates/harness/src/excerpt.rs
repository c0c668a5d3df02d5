//! Excerpts: how much of what an agent wrote is kept.
//!
//! Agents put whole files and tool results on one line; a fact carries what a person reads.

use std::sync::Arc;

use qd_session::limits::THEIR_OUTPUT_BYTES_MAX;

/// Most of a turn's last message that is kept. Its end says what the agent wants, so the end stays.
pub const LAST_MESSAGE_BYTES_MAX: usize = 16 << 10;

/// What a call is about: one line on a card.
pub const ABOUT_BYTES_MAX: usize = qd_session::limits::ABOUT_BYTES_MAX;

/// The same in characters, where the cut is shown.
pub const LABEL_CHARS_MAX: usize = 200;

/// A request's input is shown in full and sent back when changed; beyond this nobody reads it.
pub const INPUT_BYTES_MAX: usize = 64 << 10;

/// A signal nobody understood, as evidence.
pub const UNRECOGNISED_BYTES_MAX: usize = 2 << 10;

/// The beginning of a text, cut between two characters.
pub fn head(text: &str, bytes_max: usize) -> &str {
    if text.len() <= bytes_max {
        return text;
    }
    let mut end = bytes_max;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The first `chars_max` characters, with a mark where something was cut.
pub fn brief(text: &str, chars_max: usize) -> Arc<str> {
    match text.char_indices().nth(chars_max) {
        None => text.into(),
        Some((at, _)) => format!("{}…", &text[..at]).into(),
    }
}

/// The end of a text, cut between two characters.
pub fn tail(text: &str, bytes_max: usize) -> &str {
    let mut start = text.len().saturating_sub(bytes_max);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// The end of a message that may turn out to be the last.
pub fn ending(text: &str) -> String {
    tail(text, LAST_MESSAGE_BYTES_MAX).to_owned()
}

/// What a turn said last, if it said anything.
pub fn last_message(text: &str) -> Option<Arc<str>> {
    let said = text.trim();
    (!said.is_empty()).then(|| tail(said, LAST_MESSAGE_BYTES_MAX).into())
}

/// What a call is about, if that can be said in a line.
pub fn about(text: &str) -> Option<Arc<str>> {
    let line = text.trim();
    (!line.is_empty()).then(|| head(line, ABOUT_BYTES_MAX).into())
}

/// A title, a model, a command: one line on a card, with a mark where it was cut.
pub fn label(text: &str) -> Arc<str> {
    brief(text, LABEL_CHARS_MAX)
}

/// A request's input as it is shown.
pub fn input(json: &str) -> Arc<str> {
    head(json, INPUT_BYTES_MAX).into()
}

/// Whether a request's input or text fills all that is kept of one.
pub fn may_be_cut(kept: &str) -> bool {
    // A cut stays before the character that it would split.
    kept.len() + char::MAX.len_utf8() > INPUT_BYTES_MAX
}

/// What came out of a call, if anything did: its beginning and its end.
pub fn output(text: &str) -> Option<Arc<str>> {
    let text = text.trim_end();
    if text.len() <= THEIR_OUTPUT_BYTES_MAX {
        return (!text.is_empty()).then(|| text.into());
    }
    let (first, last) =
        (head(text, THEIR_OUTPUT_BYTES_MAX / 2), tail(text, THEIR_OUTPUT_BYTES_MAX / 2));
    let left_out = text.len() - first.len() - last.len();
    Some(format!("{first}\n[{left_out} bytes left out]\n{last}").into())
}

/// What is kept of bytes nobody understood.
pub fn unrecognised(payload: &[u8]) -> Arc<str> {
    let start = &payload[..payload.len().min(UNRECOGNISED_BYTES_MAX)];
    head(&String::from_utf8_lossy(start), UNRECOGNISED_BYTES_MAX).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_never_splits_a_character() {
        assert_eq!(head("aé", 2), "a");
        assert_eq!(tail("éa", 2), "a");
        assert_eq!(tail("éa", 3), "éa");
        assert_eq!(head("", 0), "");
        assert_eq!(&*brief("äbc", 2), "äb…");
        assert_eq!(&*brief("äb", 2), "äb");
    }

    #[test]
    fn the_end_of_a_long_message_is_kept_and_silence_is_no_message() {
        let long = format!("{}shall I go on?", "x".repeat(LAST_MESSAGE_BYTES_MAX));
        let kept = last_message(&long).expect("it said something");
        assert!(kept.len() <= LAST_MESSAGE_BYTES_MAX && kept.ends_with("shall I go on?"));
        assert_eq!(last_message(" \n"), None);
    }

    #[test]
    fn a_long_output_keeps_its_ends() {
        let long = format!("first{}last", "ü".repeat(THEIR_OUTPUT_BYTES_MAX));
        let kept = output(&long).expect("something came out");
        assert!(kept.len() < THEIR_OUTPUT_BYTES_MAX + 100);
        assert!(kept.starts_with("first") && kept.ends_with("last"));
        assert_eq!(output("ok\n").as_deref(), Some("ok"));
        assert_eq!(output("\n"), None);
    }

    #[test]
    fn bytes_that_are_no_text_are_kept_as_far_as_they_can_be_read() {
        assert_eq!(&*unrecognised(b"ok \xff"), "ok \u{fffd}");
        assert!(unrecognised(&[0xff; 9_000]).len() <= UNRECOGNISED_BYTES_MAX);
    }
}
