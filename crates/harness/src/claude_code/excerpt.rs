//! Parts of long texts: agents write whole files into one field, and we keep what is shown.

use std::sync::Arc;

/// The beginning, at most `bytes_max` long.
pub fn head(text: &str, bytes_max: usize) -> Arc<str> {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].into()
}

/// The end, at most `bytes_max` long: what an agent asks for stands in its last sentences.
pub fn tail(text: &str, bytes_max: usize) -> Arc<str> {
    let mut start = text.len().saturating_sub(bytes_max);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    text[start..].into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_never_cuts_a_character() {
        assert_eq!(&*head("aé", 2), "a");
        assert_eq!(&*tail("éa", 2), "a");
        assert_eq!(&*head("short", 99), "short");
        assert_eq!(&*tail("short", 99), "short");
    }
}
