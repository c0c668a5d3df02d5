//! Whose hook a payload is: a number for its session, found without parsing the payload.

use qd_hook_wire::{Agent, Checksum};

/// The same for hooks of one session. Where a payload names none, the agent's process stands for it.
pub fn session_key(harness: &str, agent: Option<Agent>, payload: &[u8]) -> u64 {
    let harness = Checksum::of(harness.as_bytes()).and(b"\0");
    let key = match (text_member(payload, b"session_id"), agent) {
        (Some(id), _) => harness.and(id),
        (None, Some(Agent { pid, started })) => {
            harness.and(format!("{pid}:{started:?}").as_bytes())
        }
        (None, None) => harness,
    };
    key.0
}

/// A text of the outermost object by its name, as it is spelled there. One further in is something
/// that the agent reads or writes, and says nothing about whose hook this is.
pub fn text_member<'a>(payload: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (mut depth, mut at, mut key) = (0_usize, 0, None);
    while let Some(byte) = payload.get(at) {
        at += 1;
        match byte {
            b'"' => {
                let end = at + string_len(&payload[at..])?;
                let text = &payload[at..end];
                at = end + 1;
                if depth != 1 {
                    continue;
                }
                let next = payload[at..].iter().find(|byte| !byte.is_ascii_whitespace());
                match next {
                    Some(b':') => key = Some(text),
                    _ if key == Some(name) && !text.is_empty() => return Some(text),
                    _ => {}
                }
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' if depth == 1 => key = None,
            _ => {}
        }
    }
    None
}

/// Bytes up to the quote that ends a string.
fn string_len(text: &[u8]) -> Option<usize> {
    let mut escaped = false;
    text.iter().position(|byte| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(payload: &str, expected: Option<&str>) {
        let found = text_member(payload.as_bytes(), b"session_id");
        assert_eq!(found, expected.map(str::as_bytes), "{payload}");
    }

    #[test]
    fn only_the_payloads_own_member_counts() {
        check(r#"{"session_id":"a","x":1}"#, Some("a"));
        check(r#"{ "x" : [ "session_id" , {"session_id":"b"} ], "session_id" : "a" }"#, Some("a"));
        check(
            r#"{"tool_input":{"session_id":"b"},"x":"session_id\":\"c","session_id":"a\"b"}"#,
            Some(r#"a\"b"#),
        );
        check(r#"{"prompt":"session_id","x":"b"}"#, None);
        check(r#"{"session_id":7,"x":"b"}"#, None);
        check(r#"{"session_id":"#, None);
        check(r#"[{"session_id":"b"}]"#, None);
        check("", None);
    }
}
