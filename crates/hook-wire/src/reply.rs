//! What a waiting forwarder is told: what to print and how to exit.
//!
//! `qd1 reply exit=<0|2> out=<n> err=<m>\n`, then n bytes for the standard output and m for the
//! standard error. Nothing in both and an exit of 0 means that nobody will answer.

/// Longest text that a waiting forwarder prints; it takes no longer one. It may be a tool's whole
/// input with the operator's changes, which came in a payload, spelled with more escapes.
pub const REPLY_TEXT_BYTES_MAX: usize = 2 << 20;

/// Longest first line of a reply.
pub const REPLY_HEADER_BYTES_MAX: usize = 256;

/// The end of a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookReply {
    exit: u8,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

/// What the bytes so far are.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    Whole(HookReply),
    Half,
    /// No reply, whatever follows.
    Broken,
}

impl HookReply {
    /// Nobody will answer: the forwarder goes in silence and the agent asks as if it had no hook.
    pub fn release() -> Self {
        Self { exit: 0, stdout: Vec::new(), stderr: Vec::new() }
    }

    /// What the hook prints. None if it is too long to be sent.
    pub fn print(text: impl Into<Vec<u8>>) -> Option<Self> {
        let stdout = fitting(text.into())?;
        Some(Self { stdout, ..Self::release() })
    }

    /// Exits with 2 and this on its standard error: a prompt for a session that sleeps.
    pub fn rewake(text: impl Into<Vec<u8>>) -> Option<Self> {
        let stderr = fitting(text.into())?;
        Some(Self { exit: 2, stdout: Vec::new(), stderr })
    }

    /// As it goes over the wire.
    pub fn bytes(&self) -> Vec<u8> {
        let Self { exit, stdout, stderr } = self;
        let header = format!("qd1 reply exit={exit} out={} err={}\n", stdout.len(), stderr.len());
        [header.as_bytes(), stdout, stderr].concat()
    }

    pub fn parse(bytes: &[u8]) -> Parsed {
        let Some(end) = bytes.iter().take(REPLY_HEADER_BYTES_MAX).position(|b| *b == b'\n') else {
            let hopeless = bytes.len() >= REPLY_HEADER_BYTES_MAX;
            return if hopeless { Parsed::Broken } else { Parsed::Half };
        };
        let Some((exit, out, err)) = parse_header(&bytes[..end]) else {
            return Parsed::Broken;
        };
        let text = &bytes[end + 1..];
        if text.len() < out + err {
            return Parsed::Half;
        }
        let (stdout, stderr) = (text[..out].to_vec(), text[out..out + err].to_vec());
        Parsed::Whole(Self { exit, stdout, stderr })
    }

    /// What it exits with, and what it prints on its standard output and its standard error.
    pub fn into_parts(self) -> (u8, Vec<u8>, Vec<u8>) {
        (self.exit, self.stdout, self.stderr)
    }
}

/// The exit code and both lengths. A newer daemon may say more than we know.
fn parse_header(line: &[u8]) -> Option<(u8, usize, usize)> {
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
    Some((exit?, out?, err?))
}

fn length(text: &str) -> Option<usize> {
    text.parse().ok().filter(|len| *len <= REPLY_TEXT_BYTES_MAX)
}

fn fitting(text: Vec<u8>) -> Option<Vec<u8>> {
    (text.len() <= REPLY_TEXT_BYTES_MAX).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_spelled_with_the_lengths_of_its_texts() {
        let bytes = |reply: Option<HookReply>| reply.map(|reply| reply.bytes());
        let print = bytes(HookReply::print("{}\n")).expect("short");
        assert_eq!(print, b"qd1 reply exit=0 out=3 err=0\n{}\n");
        let rewake = bytes(HookReply::rewake("go on")).expect("short");
        assert_eq!(rewake, b"qd1 reply exit=2 out=0 err=5\ngo on");
        assert_eq!(HookReply::release().bytes(), b"qd1 reply exit=0 out=0 err=0\n");
        assert_eq!(HookReply::print(vec![b' '; REPLY_TEXT_BYTES_MAX + 1]), None);
    }

    #[test]
    fn a_reply_is_whole_when_both_texts_are() {
        let bytes = b"qd1 reply exit=2 out=3 new=x err=2\n{}\nno";
        for cut in 0..bytes.len() {
            assert_eq!(HookReply::parse(&bytes[..cut]), Parsed::Half, "{cut} bytes");
        }
        let (stdout, stderr) = (b"{}\n".to_vec(), b"no".to_vec());
        assert_eq!(HookReply::parse(bytes), Parsed::Whole(HookReply { exit: 2, stdout, stderr }));
        for reply in [HookReply::print("{}"), HookReply::rewake("on"), Some(HookReply::release())] {
            let reply = reply.expect("short");
            assert_eq!(HookReply::parse(&reply.bytes()), Parsed::Whole(reply));
        }
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
            assert_eq!(HookReply::parse(line.as_bytes()), Parsed::Broken, "{line}");
        }
        assert_eq!(HookReply::parse(&[b'q'; REPLY_HEADER_BYTES_MAX]), Parsed::Broken);
    }
}
