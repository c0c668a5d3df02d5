//! What the daemon says to a hook that waits: what to print and how to exit.
//!
//! `qd1 reply exit=<0|2> out=<n> err=<m>\n`, then n bytes for the standard output and m for the
//! standard error. Nothing in both and an exit of 0 means that nobody will answer.

use std::io::Write;

use crate::limits::{REPLY_HEADER_BYTES_MAX, REPLY_TEXT_BYTES_MAX};

#[derive(Debug, PartialEq, Eq)]
pub struct Reply {
    exit: i32,
    out: Vec<u8>,
    err: Vec<u8>,
}

/// What the bytes so far are.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    Whole(Reply),
    Half,
    /// No reply, whatever follows.
    Broken,
}

impl Reply {
    /// Says it. An agent that does not listen any more is not told, and that is all right.
    pub fn say(self) -> ! {
        let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr().lock());
        let _ = out.write_all(&self.out).and_then(|()| out.flush());
        let _ = err.write_all(&self.err);
        std::process::exit(self.exit)
    }

    pub fn parse(bytes: &[u8]) -> Parsed {
        let Some(end) = bytes.iter().take(REPLY_HEADER_BYTES_MAX).position(|b| *b == b'\n') else {
            let hopeless = bytes.len() >= REPLY_HEADER_BYTES_MAX;
            return if hopeless { Parsed::Broken } else { Parsed::Half };
        };
        let Some(Header { exit, out, err }) = Header::parse(&bytes[..end]) else {
            return Parsed::Broken;
        };
        let text = &bytes[end + 1..];
        if text.len() < out + err {
            return Parsed::Half;
        }
        let (out, err) = (text[..out].to_vec(), text[out..out + err].to_vec());
        Parsed::Whole(Self { exit, out, err })
    }
}

struct Header {
    exit: i32,
    out: usize,
    err: usize,
}

impl Header {
    /// A newer daemon may say more than we know.
    fn parse(line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?;
        let (mut exit, mut out, mut err) = (None, None, None);
        for word in line.strip_prefix("qd1 reply ")?.split(' ') {
            match word.split_once('=')? {
                ("exit", "0") => exit = Some(0),
                ("exit", "2") => exit = Some(2),
                ("exit", _) => return None,
                ("out", len) => out = length(len),
                ("err", len) => err = length(len),
                _ => {}
            }
        }
        Some(Self { exit: exit?, out: out?, err: err? })
    }
}

fn length(text: &str) -> Option<usize> {
    text.parse().ok().filter(|len| *len <= REPLY_TEXT_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(exit: i32, out: &[u8], err: &[u8]) -> Parsed {
        Parsed::Whole(Reply { exit, out: out.to_vec(), err: err.to_vec() })
    }

    #[test]
    fn a_reply_is_whole_when_both_texts_are() {
        let bytes = b"qd1 reply exit=2 out=3 new=x err=2\n{}\nno";
        for cut in 0..bytes.len() {
            assert_eq!(Reply::parse(&bytes[..cut]), Parsed::Half, "{cut} bytes");
        }
        assert_eq!(Reply::parse(bytes), whole(2, b"{}\n", b"no"));
        assert_eq!(Reply::parse(b"qd1 reply exit=0 out=0 err=0\n"), whole(0, b"", b""));
    }

    #[test]
    fn what_is_no_reply_is_broken_and_does_not_grow() {
        for line in [
            "qd2 reply exit=0 out=0 err=0\n",
            "qd1 reply exit=1 out=0 err=0\n",
            "qd1 reply exit=0 out=0\n",
            "qd1 reply exit=0 out=-1 err=0\n",
            "qd1 reply exit=0 out=2097153 err=0\n",
            "qd1 reply exit\n",
            "\n",
        ] {
            assert_eq!(Reply::parse(line.as_bytes()), Parsed::Broken, "{line}");
        }
        assert_eq!(Reply::parse(&[b'q'; REPLY_HEADER_BYTES_MAX]), Parsed::Broken);
    }
}
