//! A payload read as JSON: what one signal may cost, in one place.

use std::borrow::Cow;

use memchr::memmem;
use serde::Deserialize;

/// Longest payload that is parsed. Agents put whole tool results on one line, so it is generous; a
/// longer one is kept as unrecognised and stops nobody.
pub const PAYLOAD_BYTES_MAX: usize = 4 << 20;

/// The payload with U+FFFD for each half of a UTF-16 pair that stands alone. Clients cut texts in
/// the middle of an emoji and write the half as its escape: JSON by its letters, and yet refused
/// by the parser with the whole line around it. An escape takes the place of another, so nothing
/// moves; all else is left as it is.
pub fn mended(payload: &[u8]) -> Cow<'_, [u8]> {
    let mut mended = Cow::Borrowed(payload);
    let mut from = 0;
    while let Some(found) = memmem::find(&payload[from..], b"\\u") {
        let at = from + found;
        from = at + 2;
        let backslashes = payload[..at].iter().rev().take_while(|byte| **byte == b'\\').count();
        if backslashes % 2 == 1 {
            // The backslash itself is escaped: what follows are letters.
            continue;
        }
        match half_at(payload, at) {
            Some(Half::First) if half_at(payload, at + 6) == Some(Half::Second) => from = at + 12,
            Some(Half::First | Half::Second) => {
                mended.to_mut()[at..at + 6].copy_from_slice(b"\\ufffd");
                from = at + 6;
            }
            None => {}
        }
    }
    mended
}

/// Half of a pair in UTF-16.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Half {
    First,
    Second,
}

/// The half whose escape stands there.
fn half_at(payload: &[u8], at: usize) -> Option<Half> {
    let escape = payload.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let [first, second, rest @ ..] = escape else { return None };
    if !rest.iter().all(u8::is_ascii_hexdigit) || !first.eq_ignore_ascii_case(&b'd') {
        return None;
    }
    match second.to_ascii_lowercase() {
        b'8' | b'9' | b'a' | b'b' => Some(Half::First),
        b'c'..=b'f' => Some(Half::Second),
        _ => None,
    }
}

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
    fn half_of_a_pair_is_replaced_and_nothing_else() {
        let check = |payload: &str, expected: &str| {
            let mended = mended(payload.as_bytes());
            assert_eq!(std::str::from_utf8(&mended), Ok(expected));
            assert!(read::<Value>(&mended).is_some(), "{expected}");
        };
        check(r#""x\ud83d""#, r#""x\ufffd""#);
        check(r#""\uDC4D\ud83d y""#, r#""\ufffd\ufffd y""#);
        check(r#""\ud83d\ud83d\udc4d""#, r#""\ufffd\ud83d\udc4d""#);
        check(r#""\ud83d\udc4d""#, r#""\ud83d\udc4d""#);
        check(r#""\ud83d\n\udc4d""#, r#""\ufffd\n\ufffd""#);
        check(r#""\\ud83d""#, r#""\\ud83d""#);
        check(r#""\\\ud83d""#, r#""\\\ufffd""#);
        check(r#""\u00e9\ud7ff""#, r#""\u00e9\ud7ff""#);
        assert_eq!(&*mended(br#""\ud83"#), br#""\ud83"#, "half of an escape");
        let backslashes = vec![b'\\'; 100_000];
        assert_eq!(mended(&backslashes).len(), 100_000);
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
