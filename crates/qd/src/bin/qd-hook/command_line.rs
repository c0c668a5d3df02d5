//! What the hook's command asks for. A mistake in it is not the agent's: it asks for nothing.

use std::ffi::OsString;
use std::time::Duration;

use crate::limits::{WAIT_DEFAULT, WAIT_MAX};

#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    Send(Hook),
    Wait { hook: Hook, within: Duration, holding: Holding },
    Version,
    Nothing,
}

/// Whose hook this is.
#[derive(Debug, PartialEq, Eq)]
pub struct Hook {
    pub harness: String,
    pub event: Option<String>,
}

/// What the agent does while its hook waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holding {
    /// It shows its own dialog, or sits idle: waiting is free.
    Nothing,
    /// It stands still: without a daemon there is nothing to stand still for.
    TheAgent,
}

/// Reads the words after the program's name. What it does not know it skips, so that a newer
/// installer's command still reports with an older program.
pub fn read(words: impl Iterator<Item = OsString>) -> Request {
    let mut words = words.map(|word| word.to_string_lossy().into_owned());
    let waits = match words.next().as_deref() {
        Some("send") => false,
        Some("wait") => true,
        Some("--version") => return Request::Version,
        _ => return Request::Nothing,
    };
    let (mut harness, mut event, mut within) = (None, None, None);
    let mut holding = Holding::Nothing;
    while let Some(word) = words.next() {
        let (key, value) = match word.split_once('=') {
            Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
            None => (word, None),
        };
        let field = match key.as_str() {
            "--harness" => &mut harness,
            "--event" => &mut event,
            "--within" => &mut within,
            "--holds-agent" => {
                holding = Holding::TheAgent;
                continue;
            }
            _ => continue,
        };
        *field = value.or_else(|| words.next());
    }
    let hook = Hook { harness: harness.unwrap_or_else(|| "unknown".to_owned()), event };
    if !waits {
        return Request::Send(hook);
    }
    let within = within.and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
    Request::Wait { hook, within: within.unwrap_or(WAIT_DEFAULT).min(WAIT_MAX), holding }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Request) {
        assert_eq!(read(line.split_whitespace().map(OsString::from)), expected, "{line}");
    }

    fn hook(harness: &str, event: Option<&str>) -> Hook {
        Hook { harness: harness.to_owned(), event: event.map(str::to_owned) }
    }

    fn send(harness: &str, event: Option<&str>) -> Request {
        Request::Send(hook(harness, event))
    }

    fn wait(within: Duration, holding: Holding) -> Request {
        Request::Wait { hook: hook("codex", None), within, holding }
    }

    #[test]
    fn both_spellings_are_read_and_the_rest_skipped() {
        check("send --harness codex --event Stop", send("codex", Some("Stop")));
        check("send --new --event=Stop --harness=codex x", send("codex", Some("Stop")));
        check("send --harness", send("unknown", None));
        check("--version", Request::Version);
        check("stay --harness codex", Request::Nothing);
        check("", Request::Nothing);
    }

    #[test]
    fn how_long_to_wait_is_a_number_of_seconds_and_bounded() {
        let half_a_minute = Duration::from_secs(30);
        check("wait --harness codex", wait(WAIT_DEFAULT, Holding::Nothing));
        check("wait --harness codex --within 30", wait(half_a_minute, Holding::Nothing));
        check(
            "wait --holds-agent --within=30 --harness=codex",
            wait(half_a_minute, Holding::TheAgent),
        );
        check("wait --harness codex --within soon", wait(WAIT_DEFAULT, Holding::Nothing));
        check("wait --harness codex --within 99999999999", wait(WAIT_MAX, Holding::Nothing));
    }
}
