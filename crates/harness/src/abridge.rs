//! A payload made short enough to be kept, and still JSON: what is too long is left out where it
//! stands, with a mark, and everything around it stays.
//!
//! Pure. Bytes go in piece by piece and no more than the bound is held. A payload that is cut at
//! its end loses the keys behind a long value, and nobody can read the rest; here a call of any
//! length still says which event, session and tool it is about. What a strict parser refuses and
//! clients send all the same is mended on the way: bytes that are no UTF-8, half of a surrogate
//! pair, nesting without an end, numbers that nobody can hold.
//!
//! Invariant: the text is at most [`Bounds::text_bytes`] long, and a string of it is abridged once:
//! the same bounds leave it as it is.

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    pub text_bytes: usize,
    /// Of one string, as it is spelled.
    pub string_bytes: usize,
    /// Numbers, strings, lists and objects together: a parsed one takes far more memory than its
    /// letters.
    pub values: usize,
}

impl Bounds {
    /// What a handler hears and the journal keeps. A string keeps more than a request shows.
    pub const TOLD: Self = Self { text_bytes: 1 << 20, string_bytes: 128 << 10, values: 128 << 10 };

    /// What a rule judges: a file of some megabytes is written whole.
    pub const JUDGED: Self =
        Self { text_bytes: 16 << 20, string_bytes: 16 << 20, values: 512 << 10 };
}

/// What became of a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abridged {
    pub text: Vec<u8>,
    /// Bytes that are not in the text; also more than none where it broke off.
    pub bytes_cut: u64,
}

impl Abridged {
    pub fn of(payload: &[u8], bounds: Bounds) -> Self {
        let mut abridger = Abridger::new(bounds);
        abridger.feed(payload);
        abridger.finish()
    }

    pub fn is_cut(&self) -> bool {
        self.bytes_cut > 0
    }
}

/// Whether a text has the mark of something that was left out of it.
pub fn is_marked(text: &str) -> bool {
    text.contains(MARK)
}

#[derive(Debug)]
pub struct Abridger {
    bounds: Bounds,
    out: Vec<u8>,
    place: Place,
    /// Lists and objects that are open in the text.
    open: Vec<Open>,
    values: usize,
    bytes_cut: u64,
    /// The beginning of a character whose end has not come yet.
    half: Vec<u8>,
}

#[derive(Debug)]
struct Open {
    is_object: bool,
    has_items: bool,
    /// What comes next begins an item: a key of an object, a value of a list.
    item_due: bool,
    key: Key,
}

/// How far an object is with its member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    None,
    Alone,
    Colon,
}

#[derive(Debug)]
enum Place {
    /// Before the first byte that says anything.
    Start,
    /// It is no list and no object: kept as it came, as far as there is room.
    Verbatim,
    Between,
    Scalar(Vec<u8>),
    Text(Text),
    /// The rest of the innermost open list or object is left out.
    Dropping {
        depth: usize,
        in_string: bool,
        escaped: bool,
        bytes: u64,
    },
    /// What follows the one value.
    After,
}

/// A string that is being read.
#[derive(Debug)]
struct Text {
    begun: usize,
    bytes_max: usize,
    /// Where it is cut if it turns out to be too long: there is room for the mark then.
    safe_end: usize,
    bytes_cut: u64,
    escape: Escape,
    /// The first half of a pair, not written yet.
    high: Option<[u8; 4]>,
}

#[derive(Debug)]
enum Escape {
    None,
    Begun,
    Unicode(Vec<u8>),
}

impl Abridger {
    pub fn new(bounds: Bounds) -> Self {
        Self {
            bounds,
            out: Vec::new(),
            place: Place::Start,
            open: Vec::new(),
            values: 0,
            bytes_cut: 0,
            half: Vec::new(),
        }
    }

    pub fn feed(&mut self, bytes: &[u8]) {
        let joined;
        let mut bytes = bytes;
        if !self.half.is_empty() {
            let mut half = std::mem::take(&mut self.half);
            half.extend_from_slice(bytes);
            joined = half;
            bytes = &joined;
        }
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.take(chunk.valid().as_bytes());
            let invalid = chunk.invalid();
            let is_half = chunks.peek().is_none()
                && std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
            if is_half {
                self.half = invalid.to_vec();
            } else if !invalid.is_empty() {
                self.take("\u{fffd}".as_bytes());
            }
        }
    }

    pub fn finish(mut self) -> Abridged {
        if !std::mem::take(&mut self.half).is_empty() {
            self.take("\u{fffd}".as_bytes());
        }
        match std::mem::replace(&mut self.place, Place::After) {
            Place::Scalar(_) => {
                self.out.extend_from_slice(b"null");
                self.broke_off();
            }
            Place::Text(mut text) => {
                text.cut(&mut self.out, 1);
                self.end_text(text);
                self.broke_off();
            }
            Place::Dropping { bytes, .. } => {
                self.mark(bytes);
                self.close();
            }
            Place::Between => self.broke_off(),
            Place::Start | Place::Verbatim | Place::After => {}
        }
        Abridged { text: self.out, bytes_cut: self.bytes_cut }
    }

    fn take(&mut self, mut bytes: &[u8]) {
        while let Some(&byte) = bytes.first() {
            let taken = match &self.place {
                Place::Text(_) => self.take_text(bytes),
                Place::Verbatim => {
                    let room = self.bounds.text_bytes.saturating_sub(self.out.len());
                    let kept = bytes.len().min(room);
                    self.out.extend_from_slice(&bytes[..kept]);
                    self.bytes_cut += (bytes.len() - kept) as u64;
                    bytes.len()
                }
                Place::Dropping { .. } => {
                    self.drop_byte(byte);
                    1
                }
                Place::Start | Place::Between | Place::Scalar(_) | Place::After => {
                    self.take_plain(byte);
                    1
                }
            };
            bytes = &bytes[taken..];
        }
    }

    /// A byte outside of any string.
    fn take_plain(&mut self, byte: u8) {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => {
                self.end_scalar();
                if self.room() > 0 {
                    self.out.push(byte)
                } else {
                    self.bytes_cut += 1
                }
                return;
            }
            b'{' | b'[' => {}
            _ if matches!(self.place, Place::Start) => {
                self.place = Place::Verbatim;
                self.out.push(byte);
                return;
            }
            _ => {}
        }
        match byte {
            _ if matches!(self.place, Place::After) => {
                if self.room() > 0 {
                    self.out.push(byte)
                } else {
                    self.bytes_cut += 1
                }
            }
            b'{' | b'[' => {
                self.end_scalar();
                if self.begin_value(byte) {
                    self.out.push(byte);
                    let is_object = byte == b'{';
                    let (has_items, item_due, key) = (false, true, Key::None);
                    self.open.push(Open { is_object, has_items, item_due, key });
                    self.place = Place::Between;
                }
            }
            b'}' | b']' => {
                self.end_scalar();
                self.close_one(byte);
            }
            b',' => {
                self.end_scalar();
                match self.open.last_mut().filter(|open| !open.item_due) {
                    Some(open) => {
                        (open.item_due, open.key) = (true, Key::None);
                        self.out.push(byte);
                    }
                    None => self.bytes_cut += 1,
                }
            }
            b':' => {
                self.end_scalar();
                match self.open.last_mut().filter(|open| open.key == Key::Alone) {
                    Some(open) => {
                        open.key = Key::Colon;
                        self.out.push(byte);
                    }
                    None => self.bytes_cut += 1,
                }
            }
            b'"' => {
                self.end_scalar();
                if self.begin_value(byte) {
                    self.begin_text();
                }
            }
            _ => match &mut self.place {
                Place::Scalar(token) => match token.len() > SCALAR_BYTES_MAX {
                    true => self.bytes_cut += 1,
                    false => token.push(byte),
                },
                Place::Start
                | Place::Verbatim
                | Place::Between
                | Place::Text(_)
                | Place::Dropping { .. }
                | Place::After => {
                    if self.begin_value(byte) {
                        self.place = Place::Scalar(vec![byte]);
                    }
                }
            },
        }
    }

    /// Whether there is room for a value; else all that follows in its list or object is left out.
    fn begin_value(&mut self, first: u8) -> bool {
        self.values += 1;
        let depth = self.open.len();
        let is_full = match depth {
            0 => false,
            // The client's own keys stand here: what they hold gives way to them.
            1 => self.out.len() + KEYS_RESERVE > self.bounds.text_bytes,
            _ => self.room() == 0 || self.values > self.bounds.values || depth > DEPTH_MAX,
        };
        let Some(open) = self.open.last_mut() else { return true };
        if !open.item_due {
            open.key = Key::None;
            return true;
        }
        if is_full {
            let opens = usize::from(matches!(first, b'{' | b'['));
            let in_string = first == b'"';
            self.place = Place::Dropping { depth: opens, in_string, escaped: false, bytes: 1 };
            return false;
        }
        (open.has_items, open.item_due) = (true, false);
        open.key = if open.is_object { Key::Alone } else { Key::None };
        true
    }

    fn begin_text(&mut self) {
        self.out.push(b'"');
        let is_key = self.open.last().is_some_and(|open| open.key == Key::Alone);
        let most = if is_key { KEY_BYTES_MAX } else { self.bounds.string_bytes };
        let bytes_max = most.min(self.room().max(KEY_BYTES_MAX));
        let begun = self.out.len();
        let (safe_end, bytes_cut, escape, high) = (begun, 0, Escape::None, None);
        self.place = Place::Text(Text { begun, bytes_max, safe_end, bytes_cut, escape, high });
    }

    /// Bytes of a string; says how many it took.
    fn take_text(&mut self, bytes: &[u8]) -> usize {
        let Place::Text(text) = &mut self.place else { return 0 };
        let byte = bytes[0];
        match &mut text.escape {
            Escape::None => {}
            Escape::Begun => {
                text.escape = Escape::None;
                if byte == b'u' {
                    text.escape = Escape::Unicode(Vec::with_capacity(4));
                } else {
                    text.flush(&mut self.out);
                    text.write(&mut self.out, &[b'\\', byte]);
                }
                return 1;
            }
            Escape::Unicode(digits) => {
                digits.push(byte);
                if digits.len() == 4 {
                    let digits = [digits[0], digits[1], digits[2], digits[3]];
                    text.escape = Escape::None;
                    text.unicode(&mut self.out, digits);
                }
                return 1;
            }
        }
        match byte {
            b'\\' => {
                text.escape = Escape::Begun;
                1
            }
            b'"' => {
                let Place::Text(text) = std::mem::replace(&mut self.place, Place::Between) else {
                    return 1;
                };
                self.end_text(text);
                1
            }
            0..0x20 => {
                text.flush(&mut self.out);
                text.write(&mut self.out, format!("\\u{byte:04x}").as_bytes());
                1
            }
            _ => {
                let is_plain = |byte: &u8| *byte >= 0x20 && !matches!(byte, b'"' | b'\\');
                let len = bytes.iter().position(|byte| !is_plain(byte)).unwrap_or(bytes.len());
                text.flush(&mut self.out);
                text.write_plain(&mut self.out, &bytes[..len]);
                len
            }
        }
    }

    fn end_text(&mut self, mut text: Text) {
        text.flush(&mut self.out);
        if text.bytes_cut > 0 {
            self.bytes_cut += text.bytes_cut;
            self.out.extend_from_slice(marked(text.bytes_cut).as_bytes());
        }
        self.out.push(b'"');
        self.place = if self.open.is_empty() { Place::After } else { Place::Between };
    }

    fn end_scalar(&mut self) {
        if !matches!(self.place, Place::Scalar(_)) {
            return;
        }
        if let Place::Scalar(token) = std::mem::replace(&mut self.place, Place::Between) {
            self.write_scalar(&token);
        }
    }

    fn write_scalar(&mut self, token: &[u8]) {
        let number = std::str::from_utf8(token).ok().and_then(|text| text.parse::<f64>().ok());
        let fits = token.len() <= SCALAR_BYTES_MAX && number.is_none_or(f64::is_finite);
        match fits {
            true => self.out.extend_from_slice(token),
            false => {
                self.bytes_cut += token.len() as u64;
                self.out.extend_from_slice(b"null");
            }
        }
    }

    fn drop_byte(&mut self, byte: u8) {
        let Place::Dropping { depth, in_string, escaped, bytes } = &mut self.place else { return };
        if *in_string {
            *bytes += 1;
            match (byte, *escaped) {
                (_, true) => *escaped = false,
                (b'\\', false) => *escaped = true,
                (b'"', false) => *in_string = false,
                (_, false) => {}
            }
            return;
        }
        match byte {
            b'"' => *in_string = true,
            b'{' | b'[' => *depth += 1,
            b'}' | b']' if *depth == 0 => {
                let bytes = *bytes;
                self.mark(bytes);
                self.place = Place::Between;
                return self.close_one(byte);
            }
            b'}' | b']' => *depth -= 1,
            _ => {}
        }
        *bytes += 1;
    }

    /// Says in the innermost open list or object how much of it is left out.
    fn mark(&mut self, bytes: u64) {
        self.bytes_cut += bytes;
        let Some(open) = self.open.last_mut() else { return };
        if open.has_items && !open.item_due {
            self.out.push(b',');
        }
        (open.has_items, open.item_due) = (true, false);
        // An object in a list: whoever expects objects there finds one without what it looks for.
        let mark = format!("\"{MARK}]\":\"{bytes} bytes\"");
        let mark = if open.is_object { mark } else { format!("{{{mark}}}") };
        self.out.extend_from_slice(mark.as_bytes());
    }

    fn close_one(&mut self, bracket: u8) {
        self.out.push(bracket);
        self.open.pop();
        self.place = if self.open.is_empty() { Place::After } else { Place::Between };
    }

    /// The input ended in the middle.
    fn broke_off(&mut self) {
        if let Some(open) = self.open.last_mut() {
            match std::mem::replace(&mut open.key, Key::None) {
                Key::None => {}
                Key::Alone => self.out.extend_from_slice(b":null"),
                Key::Colon => self.out.extend_from_slice(b"null"),
            }
            self.mark(1);
        }
        self.close();
    }

    fn close(&mut self) {
        while let Some(open) = self.open.pop() {
            self.out.push(if open.is_object { b'}' } else { b']' });
        }
    }

    /// How much more what stands inside of the client's own keys may take.
    fn room(&self) -> usize {
        let most = self.bounds.text_bytes - self.bounds.text_bytes / 8;
        most.saturating_sub(self.out.len())
    }
}

impl Text {
    /// Writes what belongs together, if there is room.
    fn write(&mut self, out: &mut Vec<u8>, piece: &[u8]) {
        if self.bytes_cut > 0 || out.len() - self.begun + piece.len() > self.bytes_max {
            return self.cut(out, piece.len());
        }
        out.extend_from_slice(piece);
        if out.len() - self.begun + MARK_BYTES_MAX <= self.bytes_max {
            self.safe_end = out.len();
        }
    }

    /// Characters that stand for themselves.
    fn write_plain(&mut self, out: &mut Vec<u8>, piece: &[u8]) {
        let used = out.len() - self.begun;
        let mut safe = self.bytes_max.saturating_sub(MARK_BYTES_MAX + used).min(piece.len());
        while safe > 0 && safe < piece.len() && (piece[safe] & 0xc0) == 0x80 {
            safe -= 1;
        }
        if self.bytes_cut > 0 {
            return self.cut(out, piece.len());
        }
        if safe > 0 {
            self.safe_end = out.len() + safe;
        }
        let kept = piece.len().min(self.bytes_max.saturating_sub(used));
        out.extend_from_slice(&piece[..kept]);
        if kept < piece.len() {
            self.cut(out, piece.len() - kept);
        }
    }

    /// So many bytes do not fit, and what stands behind the safe end makes room for the mark.
    fn cut(&mut self, out: &mut Vec<u8>, bytes: usize) {
        if self.bytes_cut == 0 && out.len() - self.begun + MARK_BYTES_MAX > self.bytes_max {
            self.bytes_cut += (out.len() - self.safe_end) as u64;
            out.truncate(self.safe_end);
        }
        self.bytes_cut += bytes as u64;
    }

    /// A `\uXXXX`. Half of a pair stands for no character: strict parsers refuse the whole text.
    fn unicode(&mut self, out: &mut Vec<u8>, digits: [u8; 4]) {
        let code = std::str::from_utf8(&digits).ok();
        let code = code.and_then(|text| u16::from_str_radix(text, 16).ok());
        match code {
            Some(0xd800..0xdc00) => {
                self.flush(out);
                self.high = Some(digits);
            }
            Some(0xdc00..0xe000) => match self.high.take() {
                Some(high) => self.write(out, &[b"\\u", &high[..], b"\\u", &digits].concat()),
                None => self.write(out, NO_CHARACTER),
            },
            _ => {
                self.flush(out);
                self.write(out, &[b"\\u", &digits[..]].concat());
            }
        }
    }

    fn flush(&mut self, out: &mut Vec<u8>) {
        if self.high.take().is_some() {
            self.write(out, NO_CHARACTER);
        }
    }
}

fn marked(bytes: u64) -> String {
    format!("{MARK}: {bytes} bytes]")
}

/// What stands where something was left out, and how much that was behind it.
const MARK: &str = "\u{2026}[cut";

/// A mark with the longest number.
const MARK_BYTES_MAX: usize = 64;

const NO_CHARACTER: &[u8] = b"\\ufffd";

/// Deepest nesting that is kept: less than what a parser takes.
const DEPTH_MAX: usize = 64;

/// Longest key, and longest string where there is no more room for long ones.
const KEY_BYTES_MAX: usize = 4 << 10;

/// What one more key and its value may take, with the marks around them.
const KEYS_RESERVE: usize = 16 << 10;

/// Longest number: what a client prints has 25 letters.
const SCALAR_BYTES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    const SMALL: Bounds = Bounds { text_bytes: 256 << 10, string_bytes: 1 << 10, values: 10_000 };

    fn abridged(payload: &str) -> (Value, bool) {
        let abridged = Abridged::of(payload.as_bytes(), SMALL);
        assert!(abridged.text.len() <= SMALL.text_bytes, "{}", abridged.text.len());
        let again = Abridged::of(&abridged.text, SMALL).text;
        assert!(again.len() <= SMALL.text_bytes);
        serde_json::from_slice::<Value>(&again).expect("JSON a second time");
        let value = serde_json::from_slice(&abridged.text);
        let text = String::from_utf8_lossy(&abridged.text);
        (value.unwrap_or_else(|error| panic!("{error}: {text}")), abridged.is_cut())
    }

    #[test]
    fn what_is_short_stays_as_it_was() {
        for payload in [
            "{\"a\": [1, -2.5, \"x\\n\\u00e9\"], \"b\" : null }\n",
            "[]",
            "{}",
            "\"text\"",
            "half a sen",
            "",
            "{\"pair\":\"\\ud83d\\udc4d\"}",
            "{\"a\":{\"b\":{}},\"c\":[[],[{}]]}",
        ] {
            let kept = Abridged::of(payload.as_bytes(), SMALL);
            assert_eq!(
                (String::from_utf8_lossy(&kept.text).as_ref(), kept.bytes_cut),
                (payload, 0)
            );
        }
    }

    #[test]
    fn a_long_string_loses_its_end_and_the_keys_behind_it_stay() {
        let long = "ä".repeat(100_000);
        let payload = json!({"tool_input": {"content": long, "path": "/x"}, "session_id": "s"});
        let (value, is_cut) = abridged(&payload.to_string());
        assert!(is_cut);
        assert_eq!(
            (&value["session_id"], &value["tool_input"]["path"]),
            (&json!("s"), &json!("/x"))
        );
        let content = value["tool_input"]["content"].as_str().expect("text");
        assert!(content.starts_with("ää") && is_marked(content), "{content}");
        assert!(content.ends_with(" bytes]") && content.len() <= SMALL.string_bytes);
        let once = Abridged::of(payload.to_string().as_bytes(), SMALL);
        let twice = Abridged::of(&once.text, SMALL);
        assert_eq!((twice.is_cut(), &twice.text), (false, &once.text), "a second time is free");
    }

    #[test]
    fn a_long_list_of_small_values_loses_its_end_and_the_keys_behind_it_stay() {
        for item in [json!(1), json!({"a": [true]}), json!("x"), json!([[], {}])] {
            let items: Vec<_> = std::iter::repeat_n(item, 50_000).collect();
            let payload = json!({"tool_calls": items, "tool_input": {"list": items, "n": items},
                "session_id": "s", "z_tool_name": "Bash"});
            let (value, is_cut) = abridged(&payload.to_string());
            assert!(is_cut);
            assert_eq!(
                (&value["session_id"], &value["z_tool_name"]),
                (&json!("s"), &json!("Bash"))
            );
            let calls = value["tool_calls"].as_array().expect("a list");
            assert!(
                calls.last().is_some_and(|last| last.is_object() && is_marked(&last.to_string()))
            );
        }
    }

    #[test]
    fn what_a_strict_parser_refuses_is_mended() {
        let deep = format!("{{\"a\":{}{},\"b\":7}}", "[".repeat(300), "]".repeat(300));
        let (value, is_cut) = abridged(&deep);
        assert_eq!((&value["b"], is_cut), (&json!(7), true));
        let (value, is_cut) = abridged("{\"a\":\"x\\ud83d y\\udc4d\",\"b\":\"\\ud83d\"}");
        assert_eq!((value, is_cut), (json!({"a": "x\u{fffd} y\u{fffd}", "b": "\u{fffd}"}), false));
        let (value, _) = abridged("{\"a\":\"tab\there\",\"n\":1e999,\"b\":1}");
        assert_eq!(value, json!({"a": "tab\there", "n": null, "b": 1}));
        let broken = Abridged::of(b"{\"a\":\"\xff\xfe\xc3\",\"b\":1}", SMALL);
        let value: Value = serde_json::from_slice(&broken.text).expect("JSON");
        assert_eq!(value["b"], 1);
    }

    #[test]
    fn what_breaks_off_is_closed_and_marked() {
        let whole = r#"{"session_id":"s","tool_input":{"list":[1,{"k":"v\n"}],"x":true}}"#;
        for end in 1..whole.len() {
            let (value, is_cut) = abridged(&whole[..end]);
            assert!(is_cut && value.is_object(), "{end}: {value}");
        }
    }

    #[test]
    fn no_key_and_no_number_of_keys_goes_beyond_the_bound() {
        abridged(&format!("{{\"{}\":1,\"b\":2}}", "k".repeat(100_000)));
        let many: String = (0..50_000).map(|n| format!("\"k{n}\":\"{n}\",")).collect();
        abridged(&format!("{{{many}\"last\":1}}"));
        abridged(&format!("{{\"a\":{}1,\"b\":2}}", " ".repeat(200_000)));
        abridged(&format!("{{\"a\":{},\"b\":2}}", "1".repeat(200_000)));
        let garbage = format!("{{\"a\"{}", ":,".repeat(200_000));
        assert!(Abridged::of(garbage.as_bytes(), SMALL).text.len() < 1_000);
        let verbatim = Abridged::of(&vec![b'x'; 300_000], SMALL);
        assert_eq!((verbatim.text.len(), verbatim.is_cut()), (SMALL.text_bytes, true));
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(text in "[\\[\\]{}:,\"\\\\0-9eEu.dcnultrfasé\n-]{0,80}", at in 0usize..80) {
            let bytes = text.as_bytes();
            let whole = Abridged::of(bytes, SMALL);
            let (first, second) = bytes.split_at(at.min(bytes.len()));
            let mut abridger = Abridger::new(SMALL);
            abridger.feed(first);
            abridger.feed(second);
            prop_assert_eq!(abridger.finish(), whole);
        }

        #[test]
        fn any_json_stays_json(depth in 0usize..5, seed in any::<u64>(), size in 0usize..4_000) {
            let mut value = json!({"n": seed, "s": "ü\"\\".repeat(size)});
            for level in 0..depth {
                value = if (seed >> level) & 1 == 0 {
                    json!([value.clone(), value, level])
                } else {
                    json!({"a": value.clone(), "z": value})
                };
            }
            abridged(&json!({"input": value, "session_id": "s"}).to_string());
        }
    }
}
