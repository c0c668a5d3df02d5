//! A file's lines through a window: whatever its size, only so much of it is in memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use memchr::memmem::Finder;
use memchr::{memchr, memrchr};

use serde::{Deserialize, Serialize};

use qd_session::fnv::{BASIS, fnv};
use qd_sources::tail::{TRANSCRIPT_LINE_BYTES_MAX, WINDOW_BYTES};

/// Bytes before the place where a history stopped that are looked at again. The lines of a session
/// of Claude Code end alike for two hundred bytes: the session, the folder, the version. In so many
/// stand a time and an id.
pub const HISTORY_MARK_BYTES: usize = 1 << 10;

/// One for each thread; it grows to the longest line it meets, up to that line's limit.
#[derive(Debug)]
pub struct Window {
    bytes: Vec<u8>,
}

/// Where reading came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reached {
    /// Where the next line begins.
    pub offset: u64,
    /// Of what stands before it.
    pub mark: Mark,
    /// Lines too long to be looked at.
    pub lines_too_long: u32,
}

/// A checksum of what stands before a place: tells whether it still does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Mark {
    len: u16,
    sum: u64,
}

impl Mark {
    /// Of the end of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let bytes = &bytes[bytes.len().saturating_sub(HISTORY_MARK_BYTES)..];
        Self { len: u16::try_from(bytes.len()).expect("a mark is short"), sum: fnv(BASIS, bytes) }
    }
}

/// What is done with a line.
pub trait Lines {
    /// Only lines in which this stands are given out; all are, where there is none.
    fn mark(&self) -> Option<&Finder<'static>>;

    fn line(&mut self, line: &[u8]);

    /// A last line that has no end yet. True if it is whole for all that, so that it need not be
    /// read again.
    fn unended(&mut self, line: &[u8]) -> bool;
}

impl Default for Window {
    fn default() -> Self {
        Self { bytes: vec![0; WINDOW_BYTES] }
    }
}

impl Window {
    /// Gives out the lines that begin at `from` or later and end before `to`. What is written
    /// meanwhile waits for the next time, so a file that grows as fast as it is read ends, too.
    pub fn read(
        &mut self,
        file: &File,
        from: Reached,
        to: u64,
        lines: &mut impl Lines,
    ) -> io::Result<Reached> {
        let mut reached = from;
        let (mut read_to, mut filled, mut is_too_long) = (from.offset, 0, false);
        while read_to < to {
            if filled == self.bytes.len() && !self.grow() {
                is_too_long = true;
                filled = 0;
            }
            let room = self.bytes.len() - filled;
            let wanted = usize::try_from(to - read_to).map_or(room, |rest| rest.min(room));
            let count = read_at(file, &mut self.bytes[filled..filled + wanted], read_to)?;
            if count == 0 {
                break;
            }
            let fresh = filled;
            filled += count;
            read_to += count as u64;
            let Some(last) = memrchr(b'\n', &self.bytes[fresh..filled]) else { continue };
            let end = fresh + last + 1;
            let mut whole = &self.bytes[..end];
            if std::mem::take(&mut is_too_long) {
                reached.lines_too_long += 1;
                let rest = memchr(b'\n', whole).map_or(end, |end_of_long| end_of_long + 1);
                whole = &whole[rest..];
            }
            give_out(whole, lines);
            reached.offset = read_to - (filled - end) as u64;
            reached.mark = Mark::of(&self.bytes[..end]);
            self.bytes.copy_within(end..filled, 0);
            filled -= end;
        }
        let rest = &self.bytes[..filled];
        if filled > 0 && !is_too_long && lines.unended(rest) {
            reached.offset = read_to;
            reached.mark = Mark::of(rest);
        }
        Ok(reached)
    }

    /// False once a line may not be longer.
    fn grow(&mut self) -> bool {
        let len = self.bytes.len();
        if len >= TRANSCRIPT_LINE_BYTES_MAX {
            return false;
        }
        self.bytes.resize((2 * len).min(TRANSCRIPT_LINE_BYTES_MAX), 0);
        true
    }
}

/// True if what stands before a place is what stood there.
pub fn is_unchanged(file: &File, before: Reached) -> io::Result<bool> {
    let mut bytes = [0; HISTORY_MARK_BYTES];
    let bytes = &mut bytes[..usize::from(before.mark.len).min(HISTORY_MARK_BYTES)];
    let Some(begin) = before.offset.checked_sub(bytes.len() as u64) else { return Ok(false) };
    match file.read_exact_at(bytes, begin) {
        Ok(()) => Ok(before.mark == Mark::default() || Mark::of(bytes) == before.mark),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn give_out(mut text: &[u8], lines: &mut impl Lines) {
    // Most of a history is tool output. A search for the mark does not stop at its lines.
    while !text.is_empty() {
        let hit = match lines.mark() {
            Some(mark) => match mark.find(text) {
                Some(hit) => hit,
                None => return,
            },
            None => 0,
        };
        let begin = memrchr(b'\n', &text[..hit]).map_or(0, |end_before| end_before + 1);
        let end = memchr(b'\n', &text[hit..]).map_or(text.len(), |end| hit + end);
        lines.line(&text[begin..end]);
        text = text.get(end + 1..).unwrap_or_default();
    }
}

fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    loop {
        match file.read_at(buffer, offset) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
