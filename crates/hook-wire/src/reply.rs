//! What a waiting forwarder is told: what to print and how to exit.

/// Longest text that a waiting forwarder prints; it takes no longer one. It may be a tool's whole
/// input with the operator's changes, which came in a payload, spelled with more escapes.
const REPLY_TEXT_BYTES_MAX: usize = 2 << 20;

/// The end of a wait. The format's owner: the forwarder has the reading half.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookReply {
    exit: u8,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
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
}
