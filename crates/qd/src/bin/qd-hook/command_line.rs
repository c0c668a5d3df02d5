//! What the hook's command asks for. A mistake in it is not the agent's: it asks for nothing.

use std::ffi::OsString;

#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    Send { harness: String, event: Option<String> },
    Version,
    Nothing,
}

/// Reads the words after the program's name. What it does not know it skips, so that a newer
/// installer's command still reports with an older program.
pub fn read(words: impl Iterator<Item = OsString>) -> Request {
    let mut words = words.map(|word| word.to_string_lossy().into_owned());
    match words.next().as_deref() {
        Some("send") => {}
        Some("--version") => return Request::Version,
        _ => return Request::Nothing,
    }
    let (mut harness, mut event) = (None, None);
    while let Some(word) = words.next() {
        let (key, value) = match word.split_once('=') {
            Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
            None => (word, None),
        };
        let field = match key.as_str() {
            "--harness" => &mut harness,
            "--event" => &mut event,
            _ => continue,
        };
        *field = value.or_else(|| words.next());
    }
    Request::Send { harness: harness.unwrap_or_else(|| "unknown".to_owned()), event }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Request) {
        assert_eq!(read(line.split_whitespace().map(OsString::from)), expected, "{line}");
    }

    fn send(harness: &str, event: Option<&str>) -> Request {
        Request::Send { harness: harness.to_owned(), event: event.map(str::to_owned) }
    }

    #[test]
    fn both_spellings_are_read_and_the_rest_skipped() {
        check("send --harness codex --event Stop", send("codex", Some("Stop")));
        check("send --new --event=Stop --harness=codex x", send("codex", Some("Stop")));
        check("send --harness", send("unknown", None));
        check("--version", Request::Version);
        check("wait --harness codex", Request::Nothing);
        check("", Request::Nothing);
    }
}
