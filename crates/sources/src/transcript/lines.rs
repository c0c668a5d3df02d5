//! Pages of a file in which each line adds to what was said: read backwards from a place, or
//! forwards after it, a window at a time.

use std::collections::BTreeSet;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;

use memchr::{memchr, memrchr};
use qd_harness::conversation::{Conversation, Entry};
use qd_session::fnv::{BASIS, fnv};

use super::cursor::Cursor;
use super::{Page, Transcript, Unread};
use crate::tail::WINDOW_BYTES;
use crate::tail::{MARK_BYTES, TRANSCRIPT_LINE_BYTES_MAX};

/// Bytes of entries after which a page is full, whatever was asked for.
pub const TRANSCRIPT_PAGE_BYTES_MAX: usize = 4 << 20;

/// Bytes of a file that are read for one page. Between what is shown lie whole requests that are
/// not; a page may come out short, or empty, and the next one goes on.
pub const TRANSCRIPT_PAGE_READ_MAX: u64 = 16 << 20;

/// Bytes before a page in which the calls of its first results are looked for.
const CALL_LOOKBACK_BYTES: u64 = 1 << 20;

/// A line and its place in the file, as entries.
pub type ReadLine = fn(&[u8], u64) -> Vec<Entry>;

/// A line that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found<'a> {
    Line(&'a [u8]),
    /// Too long to be kept: only its length is known, or as much of it as was looked at.
    TooLong(u64),
}

/// The entries that end at the cursor, or at the end of the file.
pub fn page_before(
    transcript: &Transcript,
    read: ReadLine,
    cursor: Option<Cursor>,
    limit: usize,
) -> Result<Page, Unread> {
    let end = match cursor {
        Some(cursor) => transcript.checked(cursor)?,
        None => transcript.end_of_lines()?,
    };
    let mut gathering = Gathering::new(limit);
    let mut found = Vec::new();
    let begin = transcript.lines_before(end, TRANSCRIPT_PAGE_READ_MAX, |place, line| {
        let entries = entries(read, place, line);
        let flow = gathering.take(&entries);
        found.push(entries);
        flow
    })?;
    let mut conversation: Conversation = found.into_iter().rev().flatten().collect();
    complete(transcript, read, begin, &mut conversation)?;
    let more = begin > 0;
    Ok(Page {
        entries: conversation.into_entries(),
        before: if more { Some(transcript.cursor(begin)?) } else { None },
        after: Some(transcript.cursor(end)?),
        more,
        reason: None,
    })
}

/// The entries after the cursor, as far as they are written.
pub fn page_after(
    transcript: &Transcript,
    read: ReadLine,
    cursor: Cursor,
    limit: usize,
) -> Result<Page, Unread> {
    let begin = transcript.checked(cursor)?;
    let mut gathering = Gathering::new(limit);
    let mut conversation = Conversation::default();
    let (end, more) = transcript.lines_after(begin, TRANSCRIPT_PAGE_READ_MAX, |place, line| {
        let entries = entries(read, place, line);
        let flow = gathering.take(&entries);
        entries.into_iter().for_each(|entry| conversation.push(entry));
        flow
    })?;
    complete(transcript, read, begin, &mut conversation)?;
    Ok(Page {
        entries: conversation.into_entries(),
        before: if begin > 0 { Some(cursor.to_string()) } else { None },
        after: Some(transcript.cursor(end)?),
        more,
        reason: None,
    })
}

fn entries(read: ReadLine, place: u64, line: Found<'_>) -> Vec<Entry> {
    match line {
        Found::Line(bytes) => read(bytes, place),
        Found::TooLong(bytes) => vec![Entry::too_long(place, bytes)],
    }
}

/// Finds the calls of results whose calls stand before the page.
fn complete(
    transcript: &Transcript,
    read: ReadLine,
    begin: u64,
    conversation: &mut Conversation,
) -> Result<(), Unread> {
    if conversation.lacking() == 0 {
        return Ok(());
    }
    transcript.lines_before(begin, CALL_LOOKBACK_BYTES, |place, line| {
        if let Found::Line(bytes) = line {
            read(bytes, place).into_iter().for_each(|piece| conversation.complete(piece));
        }
        match conversation.lacking() {
            0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    })?;
    Ok(())
}

/// Says when a page is full.
struct Gathering {
    ids: BTreeSet<String>,
    limit: usize,
    bytes: usize,
}

impl Gathering {
    fn new(limit: usize) -> Self {
        Self { ids: BTreeSet::new(), limit, bytes: 0 }
    }

    fn take(&mut self, entries: &[Entry]) -> ControlFlow<()> {
        for entry in entries {
            self.bytes += entry.weight();
            self.ids.insert(entry.id.clone());
        }
        match self.ids.len() >= self.limit || self.bytes >= TRANSCRIPT_PAGE_BYTES_MAX {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

impl Transcript {
    pub fn cursor(&self, place: u64) -> Result<String, Unread> {
        let cursor = Cursor { place, check: self.check(place)?, grown: 0 };
        Ok(cursor.to_string())
    }

    /// The place of a cursor, if what stood before it still does.
    fn checked(&self, cursor: Cursor) -> Result<u64, Unread> {
        if cursor.place > self.size || self.check(cursor.place)? != cursor.check {
            return Err(Unread::Changed);
        }
        Ok(cursor.place)
    }

    fn check(&self, place: u64) -> io::Result<u64> {
        let mut mark = [0; MARK_BYTES];
        let len = MARK_BYTES.min(usize::try_from(place).unwrap_or(MARK_BYTES));
        self.file.read_exact_at(&mut mark[..len], place - len as u64)?;
        let file = self.identity.iter().fold(BASIS, |sum, part| fnv(sum, &part.to_le_bytes()));
        Ok(fnv(file, &mark[..len]))
    }

    /// Where the last whole line ends: what follows is still being written.
    fn end_of_lines(&self) -> io::Result<u64> {
        let mut window = vec![0; WINDOW_BYTES];
        let mut end = self.size;
        let enough = self.size.saturating_sub(TRANSCRIPT_PAGE_READ_MAX);
        while end > enough {
            let begin = end.saturating_sub(WINDOW_BYTES as u64);
            let bytes = &mut window[..(end - begin) as usize];
            self.file.read_exact_at(bytes, begin)?;
            if let Some(newline) = memrchr(b'\n', bytes) {
                return Ok(begin + newline as u64 + 1);
            }
            end = begin;
        }
        Ok(end)
    }

    /// Hands out the lines before `end`, the last one first, until it is told to stop or has read
    /// `read_max` bytes. Where the last line that was handed out begins.
    fn lines_before(
        &self,
        end: u64,
        read_max: u64,
        mut take: impl FnMut(u64, Found<'_>) -> ControlFlow<()>,
    ) -> io::Result<u64> {
        let mut window = vec![0; WINDOW_BYTES];
        // The line whose beginning was not found yet, without its newline, and where it ends.
        let (mut rest, mut line_end) = (Vec::new(), end);
        // Everything from here on was handed out.
        let mut taken = end;
        let mut place = end;
        let stop = end.saturating_sub(read_max);
        while place > 0 {
            if place <= stop {
                // A line that is longer than all that may be read is told of now.
                if taken == end && line_end - place > TRANSCRIPT_LINE_BYTES_MAX as u64 {
                    let _ = take(place, Found::TooLong(line_end - place));
                    return Ok(place);
                }
                return Ok(taken);
            }
            let begin = place.saturating_sub(WINDOW_BYTES as u64);
            let bytes = &mut window[..(place - begin) as usize];
            self.file.read_exact_at(bytes, begin)?;
            let mut upto = bytes.len();
            while let Some(newline) = memrchr(b'\n', &bytes[..upto]) {
                let after = begin + newline as u64 + 1;
                // The newline just before `end` is that of the first line.
                if after < line_end {
                    keep(&mut rest, &bytes[newline + 1..upto]);
                    let flow = take(after, found(&rest, line_end - after));
                    (taken, line_end) = (after, after);
                    rest.clear();
                    if flow.is_break() {
                        return Ok(taken);
                    }
                }
                upto = newline;
            }
            keep(&mut rest, &bytes[..upto]);
            place = begin;
        }
        if line_end > 0 {
            let _ = take(0, found(&rest, line_end));
        }
        Ok(0)
    }

    /// Hands out the whole lines after `begin` until it is told to stop or has read `read_max`
    /// bytes. Where it stopped, and whether there may be more.
    pub fn lines_after(
        &self,
        begin: u64,
        read_max: u64,
        mut take: impl FnMut(u64, Found<'_>) -> ControlFlow<()>,
    ) -> io::Result<(u64, bool)> {
        let mut window = vec![0; WINDOW_BYTES];
        let mut line = Vec::new();
        let (mut line_begin, mut place) = (begin, begin);
        while place < self.size {
            if place - begin >= read_max {
                if line_begin == begin {
                    let _ = take(begin, Found::TooLong(place - begin));
                    return Ok((place, true));
                }
                return Ok((line_begin, true));
            }
            let len = WINDOW_BYTES.min(usize::try_from(self.size - place).unwrap_or(WINDOW_BYTES));
            let mut bytes = &mut window[..len];
            self.file.read_exact_at(bytes, place)?;
            place += len as u64;
            while let Some(newline) = memchr(b'\n', bytes) {
                if line.len() <= TRANSCRIPT_LINE_BYTES_MAX {
                    line.extend_from_slice(&bytes[..newline]);
                }
                bytes = &mut bytes[newline + 1..];
                let next = place - bytes.len() as u64;
                let flow = take(line_begin, found(&line, next - line_begin));
                line_begin = next;
                line.clear();
                if flow.is_break() {
                    return Ok((next, next < self.size));
                }
            }
            if line.len() <= TRANSCRIPT_LINE_BYTES_MAX {
                line.extend_from_slice(bytes);
            }
        }
        Ok((line_begin, false))
    }
}

/// Puts bytes before the rest of a line, as long as it may yet be shown.
fn keep(rest: &mut Vec<u8>, bytes: &[u8]) {
    if rest.len() <= TRANSCRIPT_LINE_BYTES_MAX {
        rest.splice(..0, bytes.iter().copied());
    }
}

fn found(line: &[u8], bytes: u64) -> Found<'_> {
    match line.len() <= TRANSCRIPT_LINE_BYTES_MAX {
        true => Found::Line(line),
        false => Found::TooLong(bytes),
    }
}
