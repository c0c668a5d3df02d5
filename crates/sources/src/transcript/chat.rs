//! Pages of a chat that is read as a whole, because a line of it may change what others said.
//!
//! Places are counted in entries. The last few may still grow: a cursor knows how they looked, and
//! those that look different are told again.

use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;

use qd_harness::conversation::Entry;
use qd_harness::gemini_cli::Chat;
use qd_session::fnv::{BASIS, fnv};

use super::cursor::Cursor;
use super::lines::Found;
use super::{Page, Transcript, Unread};
use crate::transcript::lines::TRANSCRIPT_PAGE_BYTES_MAX;

/// Bytes of a chat file that are read, the last. Lines of it may change others, so all of it has
/// to be read for any part; real ones have a few megabytes.
const CHAT_BYTES_MAX: u64 = 64 << 20;

/// Longest chat that is one document: it takes several times that to read it.
const CHAT_DOCUMENT_BYTES_MAX: u64 = 16 << 20;

/// Entries that may still change: a reply and the tools of its batch.
const GROWING: usize = 16;

/// A page of all there is, before a place or at the end.
pub fn page_before(
    entries: Vec<Entry>,
    cursor: Option<Cursor>,
    limit: usize,
) -> Result<Page, Unread> {
    let end = match cursor {
        Some(cursor) => checked(&entries, cursor)?,
        None => entries.len(),
    };
    let mut begin = end;
    let mut bytes = 0;
    while begin > 0 && end - begin < limit && bytes < TRANSCRIPT_PAGE_BYTES_MAX {
        begin -= 1;
        bytes += entries[begin].weight();
    }
    Ok(page(entries, begin, end, begin > 0))
}

pub fn page_after(entries: Vec<Entry>, cursor: Cursor, limit: usize) -> Result<Page, Unread> {
    let seen = checked(&entries, cursor)?;
    let has_grown = grown(&entries, seen) != cursor.grown;
    let begin = if has_grown { seen.saturating_sub(GROWING) } else { seen };
    let mut end = begin;
    let mut bytes = 0;
    // What is told again does not count, or a small page would never come further.
    while end < entries.len() && (end < seen + limit) && bytes < TRANSCRIPT_PAGE_BYTES_MAX {
        bytes += entries[end].weight();
        end += 1;
    }
    let more = end < entries.len();
    Ok(page(entries, begin, end.max(seen), more))
}

fn page(mut entries: Vec<Entry>, begin: usize, end: usize, more: bool) -> Page {
    let before = (begin > 0).then(|| cursor(&entries, begin));
    let after = Some(cursor(&entries, end));
    entries.truncate(end);
    entries.drain(..begin);
    Page { entries, before, after, more, reason: None }
}

/// All that was said, as far as the file is read.
pub fn entries(transcript: &Transcript) -> Result<Vec<Entry>, Unread> {
    if transcript.is_document {
        return document(transcript);
    }
    let mut chat = Chat::default();
    let begin = transcript.size.saturating_sub(CHAT_BYTES_MAX);
    transcript.lines_after(begin, CHAT_BYTES_MAX, |place, line| {
        match line {
            Found::Line(bytes) => chat.take(bytes, place),
            Found::TooLong(bytes) => chat.skip(place, bytes),
        }
        ControlFlow::Continue(())
    })?;
    Ok(chat.into_entries())
}

fn document(transcript: &Transcript) -> Result<Vec<Entry>, Unread> {
    if transcript.size > CHAT_DOCUMENT_BYTES_MAX {
        return Ok(vec![Entry::too_long(0, transcript.size)]);
    }
    let mut bytes = vec![0; usize::try_from(transcript.size).unwrap_or_default()];
    transcript.file.read_exact_at(&mut bytes, 0)?;
    // Half a document is being written.
    let chat = Chat::of_document(&bytes).ok_or(Unread::Changed)?;
    Ok(chat.into_entries())
}

fn cursor(entries: &[Entry], place: usize) -> String {
    let (check, grown) = (check(entries, place), grown(entries, place));
    Cursor { place: place as u64, check, grown }.to_string()
}

/// The place of a cursor, if the entry before it is still the same one.
fn checked(entries: &[Entry], cursor: Cursor) -> Result<usize, Unread> {
    let place = usize::try_from(cursor.place).map_err(|_| Unread::NoCursor)?;
    match place <= entries.len() && check(entries, place) == cursor.check {
        true => Ok(place),
        false => Err(Unread::Changed),
    }
}

fn check(entries: &[Entry], place: usize) -> u64 {
    entries[..place].last().map_or(BASIS, |entry| fnv(BASIS, entry.id.as_bytes()))
}

fn grown(entries: &[Entry], place: usize) -> u64 {
    entries[place.saturating_sub(GROWING)..place].iter().fold(BASIS, |sum, entry| {
        let spelled = serde_json::to_vec(entry).unwrap_or_default();
        fnv(sum, &spelled)
    })
}
