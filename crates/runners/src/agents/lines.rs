//! An agent's standard output, line by line. A line that is too long is skipped and said to be.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

use super::limits::{LINE_BYTES_MAX, READ_BYTES};

#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// Without its end. The last one of a stream may be half a line.
    Whole(Vec<u8>),
    /// Longer than we read: so many bytes were skipped.
    Overlong { bytes: u64 },
}

/// Dropping the future of [`Lines::next`] loses nothing.
#[derive(Debug)]
pub struct Lines<R> {
    reader: BufReader<R>,
    begun: Vec<u8>,
    /// Bytes of a line that is too long, so far.
    skipped: Option<u64>,
    line_bytes_max: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub fn of(reader: R) -> Self {
        Self::with_max(reader, LINE_BYTES_MAX)
    }

    fn with_max(reader: R, line_bytes_max: usize) -> Self {
        let reader = BufReader::with_capacity(READ_BYTES, reader);
        Self { reader, begun: Vec::new(), skipped: None, line_bytes_max }
    }

    /// None at the end.
    pub async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let bytes = self.reader.fill_buf().await?;
            if bytes.is_empty() {
                return Ok(self.end());
            }
            let end = memchr::memchr(b'\n', bytes);
            let part = &bytes[..end.unwrap_or(bytes.len())];
            match &mut self.skipped {
                Some(skipped) => *skipped += part.len() as u64,
                None if self.begun.len() + part.len() > self.line_bytes_max => {
                    self.skipped = Some((self.begun.len() + part.len()) as u64);
                    self.begun = Vec::new();
                }
                None => self.begun.extend_from_slice(part),
            }
            let used = part.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() {
                return Ok(Some(self.line()));
            }
        }
    }

    fn line(&mut self) -> Line {
        match self.skipped.take() {
            Some(bytes) => Line::Overlong { bytes },
            None => Line::Whole(std::mem::take(&mut self.begun)),
        }
    }

    fn end(&mut self) -> Option<Line> {
        (self.skipped.is_some() || !self.begun.is_empty()).then(|| self.line())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &[u8], expected: &[Line]) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let lines = runtime.block_on(async {
            let mut lines = Lines::with_max(text, 8);
            let mut read = Vec::new();
            while let Some(line) = lines.next().await.expect("memory can be read") {
                read.push(line);
            }
            read
        });
        assert_eq!(lines, expected);
    }

    fn whole(text: &[u8]) -> Line {
        Line::Whole(text.to_vec())
    }

    #[test]
    fn lines_are_cut_at_their_ends_and_the_last_may_have_none() {
        check(b"one\n\ntwo\nhalf", &[whole(b"one"), whole(b""), whole(b"two"), whole(b"half")]);
        check(b"", &[]);
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_the_next_is_read() {
        check(
            b"12345678\n123456789\nnext\n0123456789",
            &[
                whole(b"12345678"),
                Line::Overlong { bytes: 9 },
                whole(b"next"),
                Line::Overlong { bytes: 10 },
            ],
        );
    }
}
