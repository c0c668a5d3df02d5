//! The lines a headless client writes, kept within bounds and awaited.

use std::io::{BufRead, BufReader, Read};

use crate::limits::{LINE_BYTES_MAX, LINES_BYTES_MAX, LINES_MAX, SEEN_BYTES_MAX};

#[derive(Debug, Default)]
pub(crate) struct Output {
    lines: Vec<String>,
    bytes: usize,
    /// Lines that came when there was no more room.
    lost: usize,
    closed: bool,
}

impl Output {
    pub(crate) fn lines(&self) -> &[String] {
        &self.lines
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    pub(crate) fn add(&mut self, line: String) {
        if self.lines.len() < LINES_MAX && self.bytes + line.len() <= LINES_BYTES_MAX {
            self.bytes += line.len();
            self.lines.push(line);
        } else {
            self.lost += 1;
        }
    }

    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    /// The last lines, for a failed test.
    pub(crate) fn tail(&self) -> String {
        let mut tail = Vec::new();
        let mut length = 0;
        for line in self.lines.iter().rev() {
            let line: String = line.chars().take(600).collect();
            length += line.len();
            if length > SEEN_BYTES_MAX {
                break;
            }
            tail.push(line);
        }
        tail.reverse();
        if self.lost > 0 {
            tail.push(format!("({} more lines were not kept)", self.lost));
        }
        tail.join("\n")
    }
}

/// Reads lines to the end; of one that is too long the beginning is kept.
pub(crate) fn read_lines(reader: impl Read, mut each: impl FnMut(String)) {
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    loop {
        line.clear();
        let limit = LINE_BYTES_MAX as u64;
        match reader.by_ref().take(limit).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let whole = line.ends_with(b"\n") || (line.len() as u64) < limit;
        each(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned());
        if !whole && reader.skip_until(b'\n').is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Output, read_lines};
    use crate::limits::{LINE_BYTES_MAX, LINES_MAX};

    #[test]
    fn a_line_that_is_too_long_is_cut_and_the_next_one_is_whole() {
        let text = format!("{}\nnext\r\nlast", "x".repeat(LINE_BYTES_MAX + 5));
        let mut lines = Vec::new();
        read_lines(text.as_bytes(), |line| lines.push(line));
        let lengths: Vec<usize> = lines.iter().map(String::len).collect();
        assert_eq!((lengths, lines[1].as_str()), (vec![LINE_BYTES_MAX, 4, 4], "next"));
    }

    #[test]
    fn lines_beyond_the_bound_are_counted() {
        let mut output = Output::default();
        for _ in 0..LINES_MAX + 3 {
            output.add("line".into());
        }
        assert_eq!((output.lines().len(), output.lost), (LINES_MAX, 3));
    }
}
