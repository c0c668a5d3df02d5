//! `read_file`: a file's lines, numbered.

use std::io::{BufRead, BufReader, Read};

use serde::Deserialize;

use super::answer::{Answer, Lines, Trouble};
use super::limits::{
    LINE_BYTES_MAX, READ_LINES, READ_LINES_MAX, READ_PASSED_BYTES_MAX, SNIFFED_BYTES,
};
use super::pace::Pace;
use super::workspace::Workspace;
use crate::warden::readable;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadFile {
    path: String,
    /// First line, from 1.
    offset: Option<usize>,
    /// Lines.
    limit: Option<usize>,
}

impl ReadFile {
    pub fn run(&self, workspace: &Workspace, pace: &Pace) -> Answer {
        let path = workspace.relative(&self.path)?;
        let file = workspace.file(&path)?;
        let len = file.metadata().map_or(0, |found| found.len());
        let mut reader = BufReader::with_capacity(SNIFFED_BYTES, file);
        let first = reader.fill_buf().map_err(|error| self.unreadable(&error))?;
        if is_binary(first) {
            return Err(Trouble::mistake(format!("{} is no text; it has {len} bytes", self.path)));
        }
        if first.is_empty() {
            return Ok("[the file is empty]\n".to_owned());
        }
        self.lines(reader, pace)
    }

    fn lines(&self, mut reader: impl BufRead, pace: &Pace) -> Answer {
        let first = self.offset.unwrap_or(1).max(1);
        let limit = self.limit.unwrap_or(READ_LINES).clamp(1, READ_LINES_MAX);
        let mut lines = Lines::default();
        let (mut number, mut passed) = (0, 0);
        loop {
            pace.look()?;
            let line = Line::read(&mut reader).map_err(|error| self.unreadable(&error))?;
            let Some(line) = line else { break };
            number += 1;
            passed += line.len;
            if number < first && passed > READ_PASSED_BYTES_MAX {
                return Err(Trouble::mistake(format!(
                    "line {first} lies behind more than {READ_PASSED_BYTES_MAX} bytes; use a command"
                )));
            }
            if number < first {
                continue;
            }
            if number >= first + limit || !lines.push(&format!("{number}\t{}", line.text())) {
                let next = format!("more follows; go on with offset {number}");
                return Ok(lines.shown(next));
            }
        }
        match number < first {
            true => Err(Trouble::mistake(format!("the file has only {number} lines"))),
            false => Ok(lines.finish(None)),
        }
    }

    fn unreadable(&self, error: &std::io::Error) -> Trouble {
        Trouble::mistake(format!("{} cannot be read: {error}", self.path))
    }
}

pub(super) fn is_binary(beginning: &[u8]) -> bool {
    beginning.iter().take(SNIFFED_BYTES).any(|byte| *byte == 0)
}

/// One line, of which only the beginning is kept.
struct Line {
    kept: Vec<u8>,
    /// Of all of it, its end included.
    len: u64,
    has_end: bool,
}

impl Line {
    fn read(reader: &mut impl BufRead) -> std::io::Result<Option<Self>> {
        let mut line = Self { kept: Vec::new(), len: 0, has_end: false };
        loop {
            let bytes = reader.fill_buf()?;
            if bytes.is_empty() {
                return Ok((line.len > 0).then_some(line));
            }
            let end = memchr::memchr(b'\n', bytes);
            let taken = end.map_or(bytes.len(), |end| end + 1);
            let room = LINE_BYTES_MAX.saturating_sub(line.kept.len());
            line.kept.extend(&bytes[..end.unwrap_or(taken).min(room)]);
            line.len += taken as u64;
            reader.consume(taken);
            if end.is_some() {
                line.has_end = true;
                return Ok(Some(line));
            }
        }
    }

    fn text(&self) -> String {
        let text = readable(&self.kept);
        let text = text.strip_suffix('\r').unwrap_or(&text);
        match self.len - u64::from(self.has_end) - self.kept.len() as u64 {
            0 => text.to_owned(),
            left_out => format!("{text} [… {left_out} bytes left out]"),
        }
    }
}

/// A whole file that is not too long for it.
pub(super) fn whole(file: std::fs::File, bytes_max: u64) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= bytes_max).then_some(bytes))
}
