//! The header line of a frame.

use crate::{Checksum, FrameId};

/// Longest header line of a hook frame. Ours have about 200 bytes; the rest is room for fields
/// that a newer forwarder adds.
pub const HEADER_BYTES_MAX: usize = 1 << 10;

/// Longest harness or event name in a header. The longest vendor's name has 20 letters.
pub const NAME_BYTES_MAX: usize = 64;

/// Longest payload of a hook frame. A file of some megabytes is an ordinary one to write, and a
/// rule has to judge all of it; what is longer the forwarder abridges. No more than a megabyte of
/// it is kept, but for those who wait: see [`WHOLE_BYTES_ALL_MAX`].
pub const PAYLOAD_BYTES_MAX: usize = 16 << 20;

/// What a header line says: the frame without its payload, and how to know the payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub mode: Mode,
    pub id: FrameId,
    /// When the hook started, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Orders hooks of the same millisecond: the nanoseconds in it, by the same clock.
    pub seq: u32,
    pub harness: String,
    /// The event's name, where the hook's command line said it.
    pub event: Option<String>,
    /// How the session was started, in the client's word, where the forwarder waits: `cli` is a
    /// person at a terminal.
    pub entry: Option<String>,
    pub agent: Option<Agent>,
    /// The program that ran the hook, where it is not the client that the hook was installed for.
    pub by: Option<String>,
    /// The payload is not all that the agent wrote.
    pub cut: Option<Cut>,
    pub sum: Checksum,
    pub len: u64,
}

/// Whether the forwarder goes on at once or stays for a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Send,
    Wait,
}

/// The process that ran the hook, as far as the forwarder could tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agent {
    pub pid: u32,
    /// In clock ticks since boot, as `/proc/<pid>/stat` has it.
    pub started: Option<u64>,
}

/// Why the payload is shorter than what the agent wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// It was longer than what is kept.
    Size,
    /// The agent did not close the hook's input in time.
    Time,
}

/// Which part of a line is none of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed(pub &'static str);

impl Header {
    /// Reads a line without its newline.
    pub fn parse(line: &[u8]) -> Result<Self, Malformed> {
        let line = std::str::from_utf8(line).map_err(|_| Malformed("text"))?;
        let mut words = line.split(' ');
        if words.next() != Some("qd1") {
            return Err(Malformed("version"));
        }
        let mode = match words.next() {
            Some("send") => Mode::Send,
            Some("wait") => Mode::Wait,
            _ => return Err(Malformed("mode")),
        };
        Fields::read(words)?.header(mode)
    }

    /// The line, with its newline. Names must be [`plain_name`]s.
    pub fn line(&self) -> String {
        let mode = match self.mode {
            Mode::Send => "send",
            Mode::Wait => "wait",
        };
        let Self { id, at_ms, seq, harness, .. } = self;
        let mut line = format!("qd1 {mode} id={id} at={at_ms} seq={seq} harness={harness}");
        if let Some(event) = &self.event {
            line += &format!(" event={event}");
        }
        if let Some(entry) = &self.entry {
            line += &format!(" entry={entry}");
        }
        if let Some(by) = &self.by {
            line += &format!(" by={by}");
        }
        if let Some(Agent { pid, started }) = self.agent {
            line += &format!(" agent={pid}");
            line += &started.map_or_else(String::new, |started| format!(":{started}"));
        }
        line += match self.cut {
            Some(Cut::Size) => " cut=size",
            Some(Cut::Time) => " cut=time",
            None => "",
        };
        line + &format!(" sum={:016x} len={}\n", self.sum.0, self.len)
    }
}

/// What may stand in a header: everything else becomes `_`, and what is too long is cut.
pub fn plain_name(text: &str) -> String {
    let plain = |c: char| if is_plain(c) { c } else { '_' };
    let name: String = text.chars().take(NAME_BYTES_MAX).map(plain).collect();
    if name.is_empty() { "_".to_owned() } else { name }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

/// The fields of a line as they stand there; each at most once.
#[derive(Default)]
struct Fields<'a> {
    id: Option<&'a str>,
    at: Option<&'a str>,
    seq: Option<&'a str>,
    harness: Option<&'a str>,
    event: Option<&'a str>,
    entry: Option<&'a str>,
    agent: Option<&'a str>,
    by: Option<&'a str>,
    cut: Option<&'a str>,
    sum: Option<&'a str>,
    len: Option<&'a str>,
}

impl<'a> Fields<'a> {
    fn read(words: impl Iterator<Item = &'a str>) -> Result<Self, Malformed> {
        let mut fields = Self::default();
        for word in words {
            let (key, value) = word.split_once('=').ok_or(Malformed("field"))?;
            let field = match key {
                "id" => &mut fields.id,
                "at" => &mut fields.at,
                "seq" => &mut fields.seq,
                "harness" => &mut fields.harness,
                "event" => &mut fields.event,
                "entry" => &mut fields.entry,
                "agent" => &mut fields.agent,
                "by" => &mut fields.by,
                "cut" => &mut fields.cut,
                "sum" => &mut fields.sum,
                "len" => &mut fields.len,
                // A newer forwarder says more than we know.
                _ => continue,
            };
            if field.replace(value).is_some() {
                return Err(Malformed("field twice"));
            }
        }
        Ok(fields)
    }

    fn header(self, mode: Mode) -> Result<Header, Malformed> {
        let sum = self.sum.filter(|sum| sum.len() == 16);
        let sum = sum.and_then(|sum| u64::from_str_radix(sum, 16).ok());
        Ok(Header {
            mode,
            id: self.id.and_then(FrameId::parse).ok_or(Malformed("id"))?,
            at_ms: number(self.at).ok_or(Malformed("at"))?,
            seq: number(self.seq).and_then(|seq| seq.try_into().ok()).ok_or(Malformed("seq"))?,
            harness: self.harness.and_then(name).ok_or(Malformed("harness"))?,
            event: optional(self.event, name, "event")?,
            entry: optional(self.entry, name, "entry")?,
            agent: optional(self.agent, agent, "agent")?,
            by: optional(self.by, name, "by")?,
            cut: optional(self.cut, cut, "cut")?,
            sum: Checksum(sum.ok_or(Malformed("sum"))?),
            len: number(self.len).ok_or(Malformed("len"))?,
        })
    }
}

fn number(text: Option<&str>) -> Option<u64> {
    text.filter(|text| text.bytes().all(|b| b.is_ascii_digit())).and_then(|text| text.parse().ok())
}

fn name(text: &str) -> Option<String> {
    let fits = (1..=NAME_BYTES_MAX).contains(&text.len()) && text.chars().all(is_plain);
    fits.then(|| text.to_owned())
}

fn agent(text: &str) -> Option<Agent> {
    let (pid, started) = match text.split_once(':') {
        Some((pid, started)) => (pid, Some(number(Some(started))?)),
        None => (text, None),
    };
    Some(Agent { pid: number(Some(pid))?.try_into().ok()?, started })
}

/// Any word is a cut; one we do not know is about time or something like it.
fn cut(text: &str) -> Option<Cut> {
    Some(if text == "size" { Cut::Size } else { Cut::Time })
}

fn optional<T>(
    text: Option<&str>,
    read: impl Fn(&str) -> Option<T>,
    part: &'static str,
) -> Result<Option<T>, Malformed> {
    text.map(|text| read(text).ok_or(Malformed(part))).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str = "qd1 send id=18d2f3a4b5c6d7e8000000000000002a at=1789000000123 seq=456789 \
                        harness=claude-code event=Stop entry=cli agent=4711:93021 cut=size colour=blue \
                        sum=cbf29ce484222325 len=0";

    fn full() -> Header {
        Header::parse(FULL.as_bytes()).expect("a header")
    }

    #[test]
    fn a_full_header_is_read_and_an_unknown_field_skipped() {
        assert_eq!(
            full(),
            Header {
                mode: Mode::Send,
                id: FrameId(0x18d2_f3a4_b5c6_d7e8_0000_0000_0000_002a),
                at_ms: 1_789_000_000_123,
                seq: 456_789,
                harness: "claude-code".into(),
                event: Some("Stop".into()),
                entry: Some("cli".into()),
                agent: Some(Agent { pid: 4711, started: Some(93021) }),
                by: None,
                cut: Some(Cut::Size),
                sum: Checksum::default(),
                len: 0,
            }
        );
    }

    #[test]
    fn what_is_written_is_read_as_it_was() {
        let bare = Header {
            mode: Mode::Wait,
            event: None,
            entry: None,
            agent: Some(Agent { pid: 7, started: None }),
            by: Some(plain_name("grok build")),
            cut: None,
            sum: Checksum::of(b"{}"),
            len: 2,
            ..full()
        };
        for header in [full(), bare] {
            let line = header.line();
            assert_eq!(Header::parse(line.trim_end().as_bytes()), Ok(header), "{line}");
        }
    }

    #[test]
    fn each_bad_part_is_named() {
        let broken = [
            ("qd1", "qd2", "version"),
            ("send", "ask", "mode"),
            ("id=18", "id=1", "id"),
            ("at=1789", "at=+789", "at"),
            ("seq=456789", "seq=4294967296", "seq"),
            ("claude-code", "claude/code", "harness"),
            ("event=Stop", "event=", "event"),
            ("entry=cli", "entry=c/i", "entry"),
            ("4711:", "x:", "agent"),
            ("colour=blue", "colour", "field"),
            ("colour=blue", "cut=size", "field twice"),
            ("len=0", "len=", "len"),
            ("sum=c", "sum=", "sum"),
        ];
        for (old, new, part) in broken {
            let line = FULL.replacen(old, new, 1);
            assert_eq!(Header::parse(line.as_bytes()), Err(Malformed(part)), "{line}");
        }
    }
}
