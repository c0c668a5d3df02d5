//! A JSON text walked from its beginning to its end, with nothing built: what is passed over
//! costs little more than looking for its quotes.
//!
//! Every answer is either right or none. None means "ask the full parser": the text is no JSON,
//! or has something rare in it, as an escape in a key.

use memchr::memchr2;

/// Where the walk stands. Made of text, so what it passes over is UTF-8.
#[derive(Debug, Clone, Copy)]
pub struct Walk<'a> {
    text: &'a str,
    at: usize,
    depth: u8,
}

impl<'a> Walk<'a> {
    /// None where the text has control characters, which may not stand in a string: looked for
    /// once here, and not again in each string.
    pub fn over(text: &'a str) -> Option<Self> {
        // Without a branch for each byte this is done sixteen at a time.
        let controls = text.as_bytes().iter().fold(0, |found, byte| found | u8::from(*byte < 0x20));
        (controls == 0).then_some(Self { text, at: 0, depth: 0 })
    }

    /// An object: each key in turn, with the walk before its value. Whoever is called passes over
    /// the value, and answers none to give up.
    pub fn object(
        &mut self,
        mut member: impl FnMut(&'a str, &mut Self) -> Option<()>,
    ) -> Option<()> {
        self.enter(b'{')?;
        if self.take(b'}') {
            return self.leave();
        }
        loop {
            self.spaces();
            let key = self.plain_string()?;
            self.expect(b':')?;
            self.spaces();
            member(key, self)?;
            if self.take(b',') {
                continue;
            }
            self.expect(b'}')?;
            return self.leave();
        }
    }

    /// An array: the walk before each of its items.
    pub fn array(&mut self, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.enter(b'[')?;
        if self.take(b']') {
            return self.leave();
        }
        loop {
            self.spaces();
            item(self)?;
            if self.take(b',') {
                continue;
            }
            self.expect(b']')?;
            return self.leave();
        }
    }

    /// A string that has no escape in it.
    pub fn plain_string(&mut self) -> Option<&'a str> {
        let begin = self.at + 1;
        if self.peek() != Some(b'"') {
            return None;
        }
        let len = memchr2(b'"', b'\\', &self.bytes()[begin..])?;
        self.at = begin + len + 1;
        (self.bytes()[begin + len] == b'"').then(|| &self.text[begin..begin + len])
    }

    /// A whole number that is not negative.
    pub fn whole_number(&mut self) -> Option<u64> {
        let digits =
            self.bytes()[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let text = &self.text[self.at..self.at + digits];
        self.at += digits;
        // 007 is no number, and what goes on after the digits is another kind of one.
        let is_whole = !matches!(self.peek(), Some(b'.' | b'e' | b'E'));
        let is_plain = digits == 1 || !text.starts_with('0');
        (is_whole && is_plain).then(|| text.parse().ok()).flatten()
    }

    /// `true` or `false`.
    pub fn truth(&mut self) -> Option<bool> {
        if self.peek()? == b't' {
            self.word("true").map(|()| true)
        } else {
            self.word("false").map(|()| false)
        }
    }

    /// Passes over any value.
    pub fn skip(&mut self) -> Option<()> {
        match self.peek()? {
            b'"' => self.skip_string(),
            b'{' => self.object_skipped(),
            b'[' => self.array(Self::skip),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'n' => self.word("null"),
            _ => self.skip_number(),
        }
    }

    /// What a value's text is, passed over.
    pub fn raw(&mut self) -> Option<&'a str> {
        let begin = self.at;
        self.skip()?;
        Some(&self.text[begin..self.at])
    }

    /// The next byte of a value.
    pub fn peek(&self) -> Option<u8> {
        self.bytes().get(self.at).copied()
    }

    /// Nothing follows.
    pub fn end(&mut self) -> Option<()> {
        self.spaces();
        (self.at == self.text.len()).then_some(())
    }

    fn object_skipped(&mut self) -> Option<()> {
        self.enter(b'{')?;
        if self.take(b'}') {
            return self.leave();
        }
        loop {
            self.spaces();
            self.skip_string()?;
            self.expect(b':')?;
            self.spaces();
            self.skip()?;
            if self.take(b',') {
                continue;
            }
            self.expect(b'}')?;
            return self.leave();
        }
    }

    fn skip_string(&mut self) -> Option<()> {
        if self.peek() != Some(b'"') {
            return None;
        }
        let bytes = self.bytes();
        let mut at = self.at + 1;
        loop {
            at += memchr2(b'"', b'\\', &bytes[at..])?;
            if bytes[at] == b'"' {
                self.at = at + 1;
                return Some(());
            }
            match bytes.get(at + 1)? {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => at += 2,
                b'u' if bytes.get(at + 2..at + 6)?.iter().all(u8::is_ascii_hexdigit) => at += 6,
                _ => return None,
            }
        }
    }

    fn skip_number(&mut self) -> Option<()> {
        let _ = self.take_here(b'-');
        let begin = self.at;
        self.digits()?;
        if self.at > begin + 1 && self.bytes()[begin] == b'0' {
            return None;
        }
        if self.take_here(b'.') {
            self.digits()?;
        }
        // The full parser refuses what no float can hold.
        (!matches!(self.peek(), Some(b'e' | b'E'))).then_some(())
    }

    fn digits(&mut self) -> Option<()> {
        let begin = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > begin).then_some(())
    }

    fn word(&mut self, word: &str) -> Option<()> {
        let is_there = self.bytes()[self.at..].starts_with(word.as_bytes());
        self.at += word.len();
        is_there.then_some(())
    }

    fn enter(&mut self, bracket: u8) -> Option<()> {
        self.depth += 1;
        (self.depth <= DEPTH_MAX && self.take_here(bracket)).then_some(())
    }

    fn leave(&mut self) -> Option<()> {
        self.depth -= 1;
        Some(())
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.take(byte).then_some(())
    }

    fn take(&mut self, byte: u8) -> bool {
        self.spaces();
        self.take_here(byte)
    }

    fn take_here(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    /// The other kinds of white space are control characters.
    fn spaces(&mut self) {
        while self.peek() == Some(b' ') {
            self.at += 1;
        }
    }

    fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }
}

/// Deepest nesting that is walked: less than the full parser's own limit.
const DEPTH_MAX: u8 = 100;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn walked(text: &str) -> Option<()> {
        let mut walk = Walk::over(text)?;
        walk.spaces();
        walk.skip()?;
        walk.end()
    }

    #[test]
    fn what_is_walked_is_json() {
        for text in ["{}", "[ ]", r#"{"a":[1,-2.5,"x\n\u00e9"], "b" : null}"#, "true", "0", "-0.5"]
        {
            assert_eq!(walked(text), Some(()), "{text}");
        }
        for text in [
            "",
            "{",
            "{]",
            "{a:1}",
            "[1,]",
            "{\"a\":1,}",
            "01",
            "1.",
            "-",
            "nul",
            "\"a",
            "\"\\x\"",
            "\"\\u12g4\"",
            "{} {}",
            "\"a\tb\"",
            "1e999",
            "{\"a\" 1}",
            "[1 2]",
        ] {
            assert_eq!(walked(text), None, "{text}");
        }
    }

    #[test]
    fn nesting_without_an_end_is_given_up() {
        assert_eq!(walked(&"[".repeat(100_000)), None);
        assert_eq!(walked(&("[".repeat(101) + &"]".repeat(101))), None);
        assert_eq!(walked(&("[".repeat(100) + &"]".repeat(100))), Some(()));
    }

    proptest! {
        #[test]
        fn the_full_parser_agrees(text in "[\\[\\]{}:,\"\\\\0-9eE.nultrfasé -]{0,24}") {
            if walked(&text).is_some() {
                prop_assert!(serde_json::from_str::<Value>(&text).is_ok(), "{text}");
            }
        }
    }
}
