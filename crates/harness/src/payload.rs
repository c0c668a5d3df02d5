//! A payload read as JSON: what one signal may cost, in one place.

use serde::Deserialize;

/// Longest payload that is parsed. Agents put whole tool results on one line, so it is generous; a
/// longer one is kept as unrecognised and stops nobody.
pub const PAYLOAD_BYTES_MAX: usize = 4 << 20;

/// The payload as what it should be; none where it is too long, no UTF-8, half, or of other types.
pub fn read<'a, T: Deserialize<'a>>(payload: &'a [u8]) -> Option<T> {
    if payload.len() > PAYLOAD_BYTES_MAX {
        return None;
    }
    // The parser would not look at the bytes of a text that nobody reads.
    serde_json::from_str(std::str::from_utf8(payload).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn what_is_no_json_is_none() {
        for payload in [&b""[..], b"{\"half", b"\"\xff\"", b"{} {}"] {
            assert_eq!(read::<Value>(payload), None);
        }
        assert_eq!(read::<Value>(b" 7\n"), Some(Value::from(7)));
    }

    #[test]
    fn broken_text_is_refused_also_where_nobody_reads_it() {
        #[derive(Deserialize)]
        struct Named {
            name: String,
        }
        let read = |payload| read::<Named>(payload).map(|named| named.name);
        assert_eq!(read(b"{\"name\":\"n\",\"rest\":\"x\"}"), Some("n".to_owned()));
        assert_eq!(read(b"{\"name\":\"n\",\"rest\":\"\xff\"}"), None);
    }

    #[test]
    fn a_payload_is_read_up_to_its_bound() {
        let mut payload = vec![b' '; PAYLOAD_BYTES_MAX];
        payload[0] = b'7';
        assert_eq!(read::<Value>(&payload), Some(Value::from(7)));
        payload.push(b' ');
        assert_eq!(read::<Value>(&payload), None);
    }

    #[test]
    fn nesting_without_an_end_is_refused() {
        assert_eq!(read::<Value>(&vec![b'['; 1 << 20]), None);
        let mut closed = vec![b'['; 10_000];
        closed.extend([b']'; 10_000]);
        assert_eq!(read::<Value>(&closed), None);
    }
}
