//! A captured session, line by line: a signal as it is recorded, and back into what it was.

use qd_session::moment::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::Harness;
use crate::signal::{Channel, Direction, Signal};

/// What `scenario.json` says that a replay needs.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Scenario {
    pub harness: Harness,
}

/// One line of `signals.jsonl`.
#[derive(Debug, Clone, Deserialize)]
pub struct Recorded {
    pub at_ms: u64,
    #[serde(default)]
    seq: u32,
    source: String,
    #[serde(default)]
    dir: Option<String>,
    #[serde(default)]
    file: Option<String>,
    /// The process that ran a hook.
    #[serde(default, deserialize_with = "spelled")]
    pid: Option<String>,
    payload: Box<RawValue>,
}

fn spelled<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<u64>::deserialize(from)?.map(|pid| pid.to_string()))
}

impl Recorded {
    /// The signal it was; none for a source that no client has.
    pub fn signal(&self) -> Option<Signal<'_>> {
        Some(Signal {
            at: Timestamp(self.at_ms),
            seq: self.seq,
            channel: Channel::named(&self.source)?,
            direction: match self.dir.as_deref() {
                // Whoever is connected to an app-server recorded it, and says what came in there.
                Some("in") if self.source == Channel::AppServer.name() => Direction::FromAgent,
                Some("out") if self.source == Channel::AppServer.name() => Direction::ToAgent,
                Some("in" | "client->server" | "client->agent" | "request" | "signal") => {
                    Direction::ToAgent
                }
                Some(_) | None => Direction::FromAgent,
            },
            file: self.pid.as_deref().or(self.file.as_deref()),
            payload: self.payload.get().as_bytes(),
        })
    }

    pub fn source(&self) -> &str {
        &self.source
    }
}

/// A signal as a line of `signals.jsonl`, without its end. What is no JSON becomes a JSON text,
/// which no handler understands either.
pub fn line(signal: &Signal<'_>) -> String {
    #[derive(Serialize)]
    struct Line<'a> {
        at_ms: u64,
        #[serde(skip_serializing_if = "is_zero")]
        seq: u32,
        source: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        dir: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        file: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        pid: Option<u64>,
        payload: Box<RawValue>,
    }
    let pid = signal.pid();
    let line = Line {
        at_ms: signal.at.0,
        seq: signal.seq,
        source: signal.channel.name(),
        dir: match signal.direction {
            Direction::FromAgent => None,
            Direction::ToAgent if signal.channel == Channel::AppServer => Some("out"),
            Direction::ToAgent => Some("in"),
        },
        file: signal.file.filter(|_| pid.is_none()),
        pid,
        payload: on_one_line(signal.payload),
    };
    serde_json::to_string(&line).expect("texts and numbers are JSON")
}

fn is_zero(seq: &u32) -> bool {
    *seq == 0
}

/// A line break in JSON is only ever between its parts.
fn on_one_line(payload: &[u8]) -> Box<RawValue> {
    let text = String::from_utf8_lossy(payload);
    let line = text.replace(['\n', '\r'], " ");
    RawValue::from_string(line).unwrap_or_else(|_| {
        let text = serde_json::to_string(&text).expect("a text is JSON");
        RawValue::from_string(text).expect("it was just written")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signal(payload: &[u8]) -> Signal<'_> {
        Signal {
            at: Timestamp(1_794_768_930_152),
            seq: 7,
            channel: Channel::Transcript,
            direction: Direction::ToAgent,
            file: Some("a \"b\".jsonl"),
            payload,
        }
    }

    #[track_caller]
    fn check(payload: &[u8], expected: &str) {
        let line = line(&signal(payload));
        assert!(!line.contains('\n'), "{line}");
        let recorded: Recorded = serde_json::from_str(&line).expect("a line of a capture");
        let back = recorded.signal().expect("a known source");
        let before = signal(expected.as_bytes());
        assert_eq!(format!("{back:?}"), format!("{before:?}"));
    }

    #[test]
    fn a_signal_is_read_back_as_it_was() {
        check(br#"{"b":1.50,"a":"x\ny"}"#, r#"{"b":1.50,"a":"x\ny"}"#);
        check(b"{\n  \"pid\": 4711\r\n}", "{   \"pid\": 4711  }");
    }

    #[test]
    fn what_is_no_json_becomes_a_text() {
        check(b"{\"half", r#""{\"half""#);
        check(b"two\nlines", r#""two\nlines""#);
        check(b"\xff", "\"\u{fffd}\"");
        check(b"", r#""""#);
    }
}
