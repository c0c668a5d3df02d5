//! Signs in the shape of a message that it breaks off before its end.
//!
//! Pure. These look at the last block only.

use super::sentence::{Mark, Sentence, is_unspaced_letter};
use super::text::{Block, Checkbox, Kind, Message};
use super::words;

/// A table row that stops before its last cell.
pub fn in_a_table_row(message: &Message) -> bool {
    let Some(table) = message.blocks.last().filter(|block| block.kind == Kind::Table) else {
        return false;
    };
    let cells = |row: &str| row.matches('|').count();
    let mut rows = table.raw.lines();
    let header = rows.next().unwrap_or_default();
    rows.next_back().is_some_and(|row| cells(row) < cells(header))
}

pub fn at_an_empty_item(message: &Message) -> bool {
    message.blocks.last().is_some_and(|block| block.is_item() && block.raw.trim().is_empty())
}

pub fn at_a_heading(message: &Message) -> bool {
    message.blocks.last().is_some_and(|block| block.kind == Kind::Heading)
}

pub fn at_a_colon(message: &Message) -> bool {
    closing(message).is_some_and(|said| said.mark == Mark::Colon)
}

pub fn at_an_ellipsis(message: &Message) -> bool {
    closing(message).is_some_and(|said| said.mark == Mark::Ellipsis)
}

/// A to-do list at the end, begun and not finished.
pub fn among_its_boxes(message: &Message) -> bool {
    let items = message.blocks.iter().rev().map_while(|block| match block.kind {
        Kind::Item(checkbox) => Some(checkbox),
        Kind::Paragraph | Kind::Heading | Kind::Code | Kind::Table | Kind::Quotation => None,
    });
    let boxes: Vec<Checkbox> = items.collect();
    boxes.contains(&Checkbox::Open) && boxes.contains(&Checkbox::Ticked)
}

/// The last sentence has no end.
pub fn in_a_sentence(message: &Message) -> bool {
    let Some(block) = message.blocks.last().filter(|block| block.is_prose()) else {
        return false;
    };
    let Some(last) = block.sentences.last().filter(|said| said.mark == Mark::Absent) else {
        return false;
    };
    let raw = block.raw.trim_end().trim_end_matches('*');
    let Some(end) = raw.chars().next_back() else {
        return false;
    };
    if is_unfinished(raw, end, last) {
        return true;
    }
    // List items and single remarks are often written without a full stop.
    let sentence_like = end.is_alphanumeric() || end == '`';
    block.kind == Kind::Paragraph
        && sentence_like
        && last.word_count() >= words_expected(message, last)
}

fn is_unfinished(raw: &str, end: char, last: &Sentence) -> bool {
    let opens = |open: char, close: char| raw.matches(open).count() > raw.matches(close).count();
    let goes_on = if is_unspaced_letter(end) {
        raw.chars().count() >= 8
            && words::GOES_ON_SUFFIXES.iter().any(|suffix| raw.ends_with(suffix))
    } else {
        last.word_count() >= 3 && words::GOES_ON.contains(&last.last_word()) && end.is_alphabetic()
    };
    matches!(end, ',' | '，' | '、' | '(' | '（' | '[' | '{' | '=' | '&' | '/')
        || opens('(', ')')
        || opens('[', ']')
        || raw.matches('`').count() % 2 == 1
        || goes_on
}

/// A writer who ends other sentences with a full stop would have ended this one.
fn words_expected(message: &Message, last: &Sentence) -> usize {
    let stops = |block: &Block| {
        block.kind == Kind::Paragraph && block.sentences.iter().any(|said| said.mark == Mark::Stop)
    };
    match message.blocks.iter().any(stops) {
        true if last.is_unspaced() => 1,
        true => 4,
        false => 12,
    }
}

fn closing(message: &Message) -> Option<&Sentence> {
    let block: &Block = message.blocks.last().filter(|block| block.is_prose())?;
    block.sentences.last()
}
