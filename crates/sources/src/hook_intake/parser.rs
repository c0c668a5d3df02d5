//! Bytes in, frames out.
//!
//! Pure. Invariant: what comes out depends on the bytes and not on how they were cut into
//! chunks, and it holds no more than one frame, abridged while it comes. What rules judge is held
//! beside that for those who wait, unless there is no room: see [`FrameParser::hold_no_whole`].

use qd_harness::abridge::{Abridger, Bounds};
use qd_hook_wire::{Checksum, HEADER_BYTES_MAX, Header, Malformed, Mode, PAYLOAD_BYTES_MAX};

use super::frame::Frame;
use crate::Error;

/// Reads the frames of one connection or one file.
#[derive(Debug, Default)]
pub struct FrameParser {
    state: State,
}

#[derive(Debug)]
enum State {
    Header {
        line: Vec<u8>,
    },
    Payload(Box<Coming>),
    /// The bytes made no sense, so nobody knows where the next frame starts.
    Lost,
}

/// A payload on its way.
#[derive(Debug)]
struct Coming {
    header: Header,
    header_len: usize,
    payload_len: usize,
    /// Bytes that have come.
    len: usize,
    sum: Checksum,
    told: Abridger,
    judged: Option<Abridger>,
}

impl Coming {
    fn new(header: Header, header_len: usize) -> Result<Self, Error> {
        let len = header.len;
        let payload_len = usize::try_from(len).ok().filter(|len| *len <= PAYLOAD_BYTES_MAX);
        let payload_len = payload_len.ok_or(Error::PayloadTooLong { len })?;
        let judged = (header.mode == Mode::Wait).then(|| Abridger::new(Bounds::JUDGED));
        let told = Abridger::new(Bounds::TOLD);
        let sum = Checksum::default();
        Ok(Self { header, header_len, payload_len, len: 0, sum, told, judged })
    }
}

impl Default for State {
    fn default() -> Self {
        Self::Header { line: Vec::new() }
    }
}

impl FrameParser {
    /// Takes from the front of `bytes` until a frame is whole or nothing is left. After an error
    /// the connection is of no use: all further bytes are swallowed.
    pub fn next_frame(&mut self, bytes: &mut &[u8]) -> Option<Result<Frame, Error>> {
        loop {
            let step = match std::mem::replace(&mut self.state, State::Lost) {
                State::Header { line } => read_header(line, bytes),
                State::Payload(coming) => read_payload(coming, bytes),
                State::Lost => {
                    *bytes = &[];
                    return None;
                }
            };
            match step {
                Step::GoOn(state) => self.state = state,
                Step::NeedMore(state) => {
                    self.state = state;
                    return None;
                }
                Step::Whole(frame) => {
                    self.state = State::default();
                    return Some(Ok(frame));
                }
                Step::Broken(error) => return Some(Err(error)),
            }
        }
    }

    /// How long the payload is that is on its way and would be held whole.
    pub fn whole_len(&self) -> Option<usize> {
        match &self.state {
            State::Payload(coming) if coming.judged.is_some() => Some(coming.payload_len),
            State::Payload(_) | State::Header { .. } | State::Lost => None,
        }
    }

    /// There is no room to hold all of the payload on its way: its abridged form must do.
    pub fn hold_no_whole(&mut self) {
        if let State::Payload(coming) = &mut self.state {
            coming.judged = None;
        }
    }

    /// The bytes have ended: nothing may be left half read.
    pub fn finish(self) -> Result<(), Error> {
        match self.state {
            State::Header { line } if !line.is_empty() => {
                Err(Error::FrameHalf { bytes: line.len() })
            }
            State::Payload(coming) => {
                Err(Error::FrameHalf { bytes: coming.header_len + coming.len })
            }
            // A lost parser has already said what is wrong.
            State::Header { .. } | State::Lost => Ok(()),
        }
    }
}

enum Step {
    GoOn(State),
    NeedMore(State),
    Whole(Frame),
    Broken(Error),
}

fn read_header(mut line: Vec<u8>, bytes: &mut &[u8]) -> Step {
    let room = HEADER_BYTES_MAX - line.len();
    let window = &bytes[..bytes.len().min(room)];
    let Some(end) = window.iter().position(|byte| *byte == b'\n') else {
        let taken = window.len();
        line.extend_from_slice(window);
        *bytes = &bytes[taken..];
        return match line.len() {
            HEADER_BYTES_MAX => Step::Broken(Error::HeaderTooLong),
            _ => Step::NeedMore(State::Header { line }),
        };
    };
    line.extend_from_slice(&window[..end]);
    *bytes = &bytes[end + 1..];
    let coming = match Header::parse(&line) {
        Ok(header) => Coming::new(header, line.len() + 1),
        Err(Malformed(part)) => Err(Error::HeaderMalformed { part }),
    };
    match coming {
        Ok(coming) => Step::GoOn(State::Payload(Box::new(coming))),
        Err(error) => Step::Broken(error),
    }
}

fn read_payload(mut coming: Box<Coming>, bytes: &mut &[u8]) -> Step {
    let missing = coming.payload_len - coming.len;
    let (taken, rest) = bytes.split_at(bytes.len().min(missing));
    *bytes = rest;
    coming.len += taken.len();
    coming.sum = coming.sum.and(taken);
    coming.told.feed(taken);
    coming.judged.iter_mut().for_each(|judged| judged.feed(taken));
    if coming.len < coming.payload_len {
        return Step::NeedMore(State::Payload(coming));
    }
    let Coming { header, sum, told, judged, .. } = *coming;
    match sum == header.sum {
        true => Step::Whole(Frame::of(header, told.finish(), judged.map(Abridger::finish))),
        false => Step::Broken(Error::PayloadDamaged),
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// What a connection gave: frames, the error that ended it, and whether it broke off.
    type Read = (Vec<Frame>, Option<String>, Option<String>);

    fn read(chunks: &[&[u8]]) -> Read {
        let mut parser = FrameParser::default();
        let (mut frames, mut broken) = (Vec::new(), None);
        for chunk in chunks {
            let mut rest = *chunk;
            while !rest.is_empty() {
                match parser.next_frame(&mut rest) {
                    Some(Ok(frame)) => frames.push(frame),
                    Some(Err(error)) => {
                        assert!(broken.is_none(), "a lost parser says so once");
                        broken = Some(error.to_string());
                    }
                    None => assert!(rest.is_empty(), "it asks for more only when all is read"),
                }
            }
        }
        let half = parser.finish().err().map(|error| error.to_string());
        (frames, broken, half)
    }

    fn frame_bytes(id: u128, payload: &[u8]) -> Vec<u8> {
        let sum = payload.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
            (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
        });
        let mut bytes = format!(
            "qd1 send id={id:032x} at=1 seq=2 harness=codex sum={sum:016x} len={}\n",
            payload.len()
        )
        .into_bytes();
        bytes.extend_from_slice(payload);
        bytes
    }

    /// Cuts bytes at the given places, in any order and beyond the end.
    fn chunks<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
        places.sort_unstable();
        let (mut chunks, mut begun) = (Vec::new(), 0);
        for place in places {
            chunks.push(&bytes[begun..place]);
            begun = place;
        }
        chunks.push(&bytes[begun..]);
        chunks
    }

    /// Frames, then perhaps garbage, then perhaps the bytes end early.
    fn streams() -> impl Strategy<Value = Vec<u8>> {
        let frames = vec((any::<u128>(), vec(any::<u8>(), 0..200)), 0..4);
        let garbage = prop_oneof![
            2 => Just(Vec::new()),
            1 => vec(any::<u8>(), 0..1500),
            1 => "qd1 send( [a-z]{1,5}=[0-9a-z]{0,5}){0,9}\n".prop_map(String::into_bytes),
        ];
        (frames, garbage, any::<prop::sample::Index>(), any::<bool>()).prop_map(
            |(frames, garbage, end, whole)| {
                let mut bytes: Vec<u8> =
                    frames.iter().flat_map(|(id, payload)| frame_bytes(*id, payload)).collect();
                bytes.extend(garbage);
                if !whole && !bytes.is_empty() {
                    bytes.truncate(end.index(bytes.len()));
                }
                bytes
            },
        )
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_frames(bytes in streams(), cuts in vec(any::<usize>(), 0..40)) {
            prop_assert_eq!(read(&chunks(&bytes, &cuts)), read(&[&bytes]));
        }

        #[test]
        fn garbage_never_panics(bytes in vec(any::<u8>(), 0..4000), cuts in vec(any::<usize>(), 0..9)) {
            read(&chunks(&bytes, &cuts));
        }

        #[test]
        fn one_flipped_payload_byte_is_noticed(
            payload in vec(any::<u8>(), 1..200), at in any::<prop::sample::Index>(), flip in 1..=u8::MAX,
        ) {
            let mut bytes = frame_bytes(7, &payload);
            let begun = bytes.len() - payload.len();
            bytes[begun + at.index(payload.len())] ^= flip;
            let damaged = Error::PayloadDamaged.to_string();
            prop_assert_eq!(read(&[&bytes]), (Vec::new(), Some(damaged), None));
        }
    }

    #[test]
    fn a_header_without_an_end_is_given_up_at_its_maximum() {
        let line = vec![b'x'; HEADER_BYTES_MAX];
        assert_eq!(read(&[&line]).1, Some(Error::HeaderTooLong.to_string()));
        assert_eq!(read(&[&line[1..]]).1, None);
    }

    #[test]
    fn frames_follow_each_other_on_one_connection() {
        let bytes =
            [frame_bytes(1, b"{}"), frame_bytes(2, b""), frame_bytes(3, b"\nqd1 ")].concat();
        let (frames, broken, half) = read(&[&bytes]);
        let payloads: Vec<&[u8]> = frames.iter().map(|frame| frame.payload.as_slice()).collect();
        assert_eq!(payloads, [b"{}".as_slice(), b"", b"\nqd1 "]);
        assert_eq!((broken, half), (None, None));
    }
}
