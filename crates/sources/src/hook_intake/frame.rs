//! One frame: the header's fields and the payload as the agent wrote it.

use qd_harness::abridge::Abridged;
use qd_harness::waiting_hook::Heard;
use qd_harness::{Channel, Direction, Signal};
use qd_hook_wire::{Agent, Checksum, Cut, FrameId, Header, Mode};
use qd_session::moment::Timestamp;
use qd_store::Delivery;

use super::caller::Caller;
use super::parser::FrameParser;

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
        let mut body = self.header().line().into_bytes();
        body.extend_from_slice(&self.payload);
        Delivery { id: self.id.to_string(), body }
    }

    /// Back from the journal; none where it keeps only the id.
    pub fn delivered(delivery: &Delivery) -> Option<Self> {
        let mut bytes = delivery.body.as_slice();
        FrameParser::default().next_frame(&mut bytes)?.ok()
    }

    fn header(&self) -> Header {
        let Self { mode, id, at_ms, seq, agent, cut, .. } = *self;
        Header {
            mode,
            id,
            at_ms,
            seq,
            harness: self.harness.clone(),
            event: self.event.clone(),
            entry: self.entry.clone(),
            agent,
            by: self.by.clone(),
            cut,
            sum: Checksum::of(&self.payload),
            len: self.payload.len() as u64,
        }
    }

    /// The payload that its header announced has come, and this is what is kept of it.
    pub(super) fn of(header: Header, told: Abridged, judged: Option<Abridged>) -> Self {
        let Header { mode, id, at_ms, seq, harness, event, entry, agent, by, cut, .. } = header;
        // A part of something is no better for being longer.
        let whole = judged.filter(|judged| cut.is_none() && told.is_cut() && !judged.is_cut());
        let cut = cut.or_else(|| told.is_cut().then_some(Cut::Size));
        let whole = whole.map(|whole| whole.text);
        let (payload, caller) = (told.text, Caller::Spooled);
        Self { mode, id, at_ms, seq, harness, event, entry, agent, by, cut, payload, whole, caller }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_comes_back_from_the_journal_as_it_was() {
        let full = Frame {
            mode: Mode::Send,
            id: FrameId(42),
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
        };
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
}
