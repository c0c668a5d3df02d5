//! One frame: the header's fields and the payload as the agent wrote it.

use qd_harness::abridge::Abridged;
use qd_harness::waiting_hook::Heard;
use qd_harness::{Channel, Direction, Signal};
use qd_hook_wire::FrameId;
use qd_session::fnv::{BASIS, fnv};
use qd_session::moment::Timestamp;
use qd_store::Delivery;

use super::caller::Caller;
use super::parser::FrameParser;
use crate::Error;

/// Longest payload of a hook frame. A file of some megabytes is an ordinary one to write, and a
/// rule has to judge all of it; what is longer the forwarder abridges. No more than a megabyte of
/// it is kept, but for those who wait: see [`WHOLE_BYTES_ALL_MAX`].
pub const PAYLOAD_BYTES_MAX: usize = 16 << 20;

/// Longest harness or event name in a header. The longest vendor's name has 20 letters.
const NAME_BYTES_MAX: usize = 64;

/// What one hook said, with the forwarder's stamp.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
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
    /// Not parsed, and abridged where it was too long to be kept: what handlers hear.
    pub payload: Vec<u8>,
    /// What rules judge, where that is more than the payload. Kept only while somebody waits.
    pub whole: Option<Vec<u8>>,
    /// Who handed it in, as far as that was seen.
    pub caller: Caller,
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

impl Frame {
    /// The same, handed in by this caller. The pid of another machine's agent is not kept: once the
    /// frame is the journal's, it would be taken for one of ours.
    pub fn from_caller(self, caller: Caller) -> Self {
        let agent = self.agent.filter(|_| caller != Caller::Forwarded);
        Self { agent, caller, ..self }
    }

    /// As a handler takes it, from this process.
    pub fn signal<'a>(&'a self, process: Option<&'a str>) -> Signal<'a> {
        Signal {
            at: Timestamp(self.at_ms),
            seq: self.seq,
            channel: Channel::Hook,
            direction: Direction::FromAgent,
            file: process,
            payload: &self.payload,
        }
    }

    /// The process that ran it, as a signal names it. Several may have one session open.
    pub fn process(&self) -> Option<String> {
        self.caller.agent(self.agent).map(|process| process.key().to_string())
    }

    /// Whether it says what no other hook does. The Stop hook that waits for the next prompt runs
    /// beside one that sends, in the background, and may be late: it is a way and no news.
    pub fn tells(&self) -> bool {
        self.mode == Mode::Send || self.event.as_deref() != Some("Stop")
    }

    /// As whoever answers it takes it.
    pub fn heard(&self) -> Heard<'_> {
        let payload = &self.payload;
        match &self.whole {
            Some(whole) => Heard { payload, judged: whole, is_cut: false },
            None => Heard { payload, judged: payload, is_cut: self.cut.is_some() },
        }
    }

    /// As the journal keeps it.
    pub fn delivery(&self) -> Delivery {
        let mut body = self.spelled_header().into_bytes();
        body.extend_from_slice(&self.payload);
        Delivery { id: self.id.to_string(), body }
    }

    /// Back from the journal; none where it keeps only the id.
    pub fn delivered(delivery: &Delivery) -> Option<Self> {
        let mut bytes = delivery.body.as_slice();
        FrameParser::default().next_frame(&mut bytes)?.ok()
    }

    /// The header line that this frame would have come with.
    fn spelled_header(&self) -> String {
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
        if let Some(cut) = self.cut {
            line += match cut {
                Cut::Size => " cut=size",
                Cut::Time => " cut=time",
            };
        }
        let (sum, len) = (checksum(&self.payload), self.payload.len());
        line + &format!(" sum={sum:016x} len={len}\n")
    }
}

/// What a header line says: the frame without its payload, and how to know the payload.
#[derive(Debug)]
pub(super) struct Header {
    frame: Frame,
    pub(super) payload_len: usize,
    sum: u64,
}

impl Header {
    /// Reads a line without its newline.
    pub(super) fn parse(line: &[u8]) -> Result<Self, Error> {
        let line = std::str::from_utf8(line).map_err(|_| malformed("text"))?;
        let mut words = line.split(' ');
        if words.next() != Some("qd1") {
            return Err(malformed("version"));
        }
        let mode = match words.next() {
            Some("send") => Mode::Send,
            Some("wait") => Mode::Wait,
            _ => return Err(malformed("mode")),
        };
        Fields::read(words)?.header(mode)
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.frame.mode == Mode::Wait
    }

    /// The payload has come, and this is what is kept of it.
    pub(super) fn with_payload(
        self,
        sum: u64,
        told: Abridged,
        judged: Option<Abridged>,
    ) -> Result<Frame, Error> {
        if sum != self.sum {
            return Err(Error::PayloadDamaged);
        }
        let Frame { cut, .. } = self.frame;
        // A part of something is no better for being longer.
        let whole = judged.filter(|judged| cut.is_none() && told.is_cut() && !judged.is_cut());
        let cut = cut.or_else(|| told.is_cut().then_some(Cut::Size));
        let whole = whole.map(|whole| whole.text);
        Ok(Frame { payload: told.text, whole, cut, ..self.frame })
    }
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
    fn read(words: impl Iterator<Item = &'a str>) -> Result<Self, Error> {
        let mut fields = Self::default();
        for word in words {
            let (key, value) = word.split_once('=').ok_or(malformed("field"))?;
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
                return Err(malformed("field twice"));
            }
        }
        Ok(fields)
    }

    fn header(self, mode: Mode) -> Result<Header, Error> {
        let len = number(self.len).ok_or(malformed("len"))?;
        let payload_len = usize::try_from(len)
            .ok()
            .filter(|len| *len <= PAYLOAD_BYTES_MAX)
            .ok_or(Error::PayloadTooLong { len })?;
        let sum = self.sum.filter(|sum| sum.len() == 16);
        let frame = Frame {
            mode,
            id: self.id.and_then(FrameId::parse).ok_or(malformed("id"))?,
            at_ms: number(self.at).ok_or(malformed("at"))?,
            seq: number(self.seq).and_then(|seq| seq.try_into().ok()).ok_or(malformed("seq"))?,
            harness: self.harness.and_then(name).ok_or(malformed("harness"))?,
            event: optional(self.event, name, "event")?,
            entry: optional(self.entry, name, "entry")?,
            agent: optional(self.agent, agent, "agent")?,
            by: optional(self.by, name, "by")?,
            cut: optional(self.cut, cut, "cut")?,
            payload: Vec::new(),
            whole: None,
            caller: Caller::Spooled,
        };
        let sum = sum.and_then(|sum| u64::from_str_radix(sum, 16).ok()).ok_or(malformed("sum"))?;
        Ok(Header { frame, payload_len, sum })
    }
}

fn checksum(payload: &[u8]) -> u64 {
    fnv(BASIS, payload)
}

fn number(text: Option<&str>) -> Option<u64> {
    text.filter(|text| text.bytes().all(|b| b.is_ascii_digit())).and_then(|text| text.parse().ok())
}

fn name(text: &str) -> Option<String> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    let fits = (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(plain);
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
) -> Result<Option<T>, Error> {
    text.map(|text| read(text).ok_or(malformed(part))).transpose()
}

fn malformed(part: &'static str) -> Error {
    Error::HeaderMalformed { part }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str = "qd1 send id=18d2f3a4b5c6d7e8000000000000002a at=1789000000123 seq=456789 \
                        harness=claude-code event=Stop entry=cli agent=4711:93021 cut=size colour=blue \
                        sum=cbf29ce484222325 len=0";

    fn empty(header: Header) -> Frame {
        let told = Abridged { text: Vec::new(), bytes_cut: 0 };
        header.with_payload(BASIS, told, None).expect("its payload")
    }

    fn refused(line: &str) -> String {
        Header::parse(line.as_bytes()).expect_err("refused").to_string()
    }

    #[test]
    fn a_full_header_is_read_and_an_unknown_field_skipped() {
        let header = Header::parse(FULL.as_bytes()).expect("a header");
        let frame = empty(header);
        assert_eq!(
            frame,
            Frame {
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
                payload: Vec::new(),
                whole: None,
                caller: Caller::Spooled,
            }
        );
    }

    #[test]
    fn a_frame_comes_back_from_the_journal_as_it_was() {
        let header = Header::parse(FULL.as_bytes()).expect("a header");
        let full = empty(header);
        let bare = Frame {
            event: None,
            entry: None,
            agent: Some(Agent { pid: 7, started: None }),
            by: Some("grok_build".into()),
            cut: None,
            payload: b"{}\n".to_vec(),
            ..full.clone()
        };
        for frame in [full, bare] {
            assert_eq!(Frame::delivered(&frame.delivery()), Some(frame));
        }
        assert_eq!(Frame::delivered(&Delivery { id: "0".into(), body: Vec::new() }), None);
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
            assert_eq!(refused(&line), malformed(part).to_string(), "{line}");
        }
    }

    #[test]
    fn a_payload_that_is_too_long_is_refused_before_it_comes() {
        assert_eq!(
            refused(&FULL.replace("len=0", "len=16777217")),
            Error::PayloadTooLong { len: 16_777_217 }.to_string()
        );
    }
}
