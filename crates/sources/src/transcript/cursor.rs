//! Where a page begins or ends, as an opaque text.
//!
//! A place and a check of what stood there: a file that was rotated, cut or written anew is known
//! by it. It names no file.

use std::fmt;

use super::Unread;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// A byte of the file, or an entry of a chat.
    pub place: u64,
    /// Of what makes the place the same one.
    pub check: u64,
    /// Of what stood before it and may grow.
    pub grown: u64,
}

/// Hexadecimal digits of the three numbers and two dots.
const LEN_MAX: usize = 3 * 16 + 2;

impl Cursor {
    pub fn parse(text: &str) -> Result<Self, Unread> {
        if text.len() > LEN_MAX {
            return Err(Unread::NoCursor);
        }
        let number = |digits: &str| {
            let plain = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            plain.then(|| u64::from_str_radix(digits, 16).ok()).flatten().ok_or(Unread::NoCursor)
        };
        let mut parts = text.split('.');
        let mut next = || parts.next().ok_or(Unread::NoCursor).and_then(number);
        let cursor = Self { place: next()?, check: next()?, grown: next()? };
        match parts.next() {
            None => Ok(cursor),
            Some(_) => Err(Unread::NoCursor),
        }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}.{:x}.{:x}", self.place, self.check, self.grown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        for cursor in [
            Cursor { place: 0, check: 0, grown: 0 },
            Cursor { place: u64::MAX, check: u64::MAX, grown: u64::MAX },
        ] {
            assert_eq!(Cursor::parse(&cursor.to_string()), Ok(cursor));
        }
    }

    #[test]
    fn anything_else_is_no_cursor() {
        let long = "1".repeat(17);
        for text in ["", "1", "1.2", "1.2.3.4", "-1.2.3", "+1.2.3", "../../etc/passwd", "x.y.z"]
            .into_iter()
            .chain([format!("{long}.1.1").as_str()])
        {
            assert_eq!(Cursor::parse(text), Err(Unread::NoCursor), "{text}");
        }
    }
}
