//! Server-sent events: bytes in, whole events out, however the bytes were cut.
//!
//! Lines end in LF, CRLF or CR; comments, ids and unknown fields are skipped; an event without
//! data is none. An event that is too long ends the reading: what follows could not be trusted.

use std::mem::take;

use super::limits::SSE_EVENT_BYTES_MAX;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerSentEvent {
    /// Empty where the event has no name.
    pub name: String,
    pub data: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventTooLong;

#[derive(Debug, Default)]
pub struct SseDecoder {
    line: Vec<u8>,
    name: String,
    /// The data so far; each of its lines has brought its own end.
    data: Vec<u8>,
    /// The last byte was a carriage return: a line feed after it ends no line.
    returned: bool,
    /// The first line is over; a byte order mark can only stand before it.
    began: bool,
}

impl SseDecoder {
    /// Adds the events that these bytes complete.
    pub fn take(
        &mut self,
        bytes: &[u8],
        events: &mut Vec<ServerSentEvent>,
    ) -> Result<(), EventTooLong> {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr2(b'\n', b'\r', rest) {
            let (line, is_return) = (&rest[..end], rest[end] == b'\r');
            rest = &rest[end + 1..];
            let is_second = !is_return && line.is_empty() && self.returned;
            self.returned = is_return;
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
        Ok(())
    }

    /// What was begun when the stream ended. Some providers leave out the last empty line.
    pub fn finish(&mut self) -> Option<ServerSentEvent> {
        if !self.line.is_empty() {
            self.end_line();
        }
        self.end_event()
    }

    fn keep(&mut self, bytes: &[u8]) -> Result<(), EventTooLong> {
        if self.line.len() + self.data.len() + bytes.len() > SSE_EVENT_BYTES_MAX {
            return Err(EventTooLong);
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self) -> Option<ServerSentEvent> {
        let line = take(&mut self.line);
        let first = !std::mem::replace(&mut self.began, true);
        let line = if first { line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&line) } else { &line };
        if line.is_empty() {
            return self.end_event();
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"event" => self.name = String::from_utf8_lossy(value).into_owned(),
            // A comment (no field), an id, a time to reconnect, or something new.
            _ => {}
        }
        None
    }

    fn end_event(&mut self) -> Option<ServerSentEvent> {
        let (name, mut data) = (take(&mut self.name), take(&mut self.data));
        data.pop()?;
        Some(ServerSentEvent { name, data: String::from_utf8_lossy(&data).into_owned() })
    }
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
