//! Server-sent events: bytes in, the data of whole events out.
//!
//! Pure. Only `data` matters here; names, ids and comments are skipped. An event that is too long
//! is an error, because what follows it can no longer be trusted to be in order.

use crate::live::{SERVER_MESSAGE_BYTES_MAX, Trouble};

#[derive(Debug, Default)]
pub struct EventStream {
    line: Vec<u8>,
    data: Vec<u8>,
    /// The last byte was a carriage return: a line feed after it ends no line.
    returned: bool,
}

impl EventStream {
    /// The data of the events that these bytes complete.
    pub fn take(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, Trouble> {
        let mut events = Vec::new();
        let mut rest = bytes;
        while let Some(end) = memchr::memchr2(b'\n', b'\r', rest) {
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            let is_return = rest[end] == b'\r';
            let is_second = !is_return && self.returned && line.is_empty();
            self.returned = is_return;
            rest = after;
            if is_second {
                continue;
            }
            self.keep(line)?;
            events.extend(self.end_line());
        }
        if !rest.is_empty() {
            self.returned = false;
            self.keep(rest)?;
        }
        Ok(events)
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        if self.line.len() + self.data.len() + bytes.len() > SERVER_MESSAGE_BYTES_MAX {
            return Err(Trouble::TooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    /// An empty line ends an event.
    fn end_line(&mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let mut data = std::mem::take(&mut self.data);
            // Each line of data brought its own end.
            return data.pop().map(|_| data);
        }
        if let Some(data) = line.strip_prefix(b"data:") {
            self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
            self.data.push(b'\n');
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(chunks: &[&[u8]]) -> Vec<String> {
        let mut stream = EventStream::default();
        let events = chunks.iter().flat_map(|chunk| stream.take(chunk).expect("short"));
        events.map(|event| String::from_utf8(event).unwrap()).collect()
    }

    #[test]
    fn only_whole_events_with_data_come_out() {
        let bytes = b": hello\n\nid: 1\nevent: message\ndata: {\"a\":1}\n\ndata:x\ndata: y\n\nda";
        assert_eq!(read(&[bytes]), ["{\"a\":1}", "x\ny"]);
    }

    #[test]
    fn an_event_too_long_is_trouble_with_or_without_an_end() {
        let mut stream = EventStream::default();
        let chunk = vec![b'x'; 1 << 20];
        let taken: Vec<bool> = (0..5).map(|_| stream.take(&chunk).is_err()).collect();
        assert_eq!(taken, [false, false, false, false, true]);
        let mut stream = EventStream::default();
        let line = [b"data: ".as_slice(), &chunk, b"\n"].concat();
        assert!((0..5).any(|_| stream.take(&line) == Err(Trouble::TooLong)));
    }

    proptest! {
        #[test]
        fn it_does_not_matter_where_the_bytes_are_cut(
            cuts in prop::collection::vec(0..64usize, 0..8), end in prop::sample::select(vec!["\n", "\r", "\r\n"])
        ) {
            let text = ["data: one", "", ": beat", "", "data: two", "data:", "", "data: 3", ""].join(end) + end;
            let whole = read(&[text.as_bytes()]);
            prop_assert_eq!(&whole, &["one", "two\n", "3"]);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for cut in cuts.into_iter().chain([text.len()]) {
                chunks.push(&text.as_bytes()[from..cut]);
                from = cut;
            }
            prop_assert_eq!(read(&chunks), whole);
        }
    }
}
