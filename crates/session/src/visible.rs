//! Text as it may be shown: characters that hide or move others become marks, `⟨U+202E⟩`.
//!
//! Pure. `spec/visible-text.md` lists the characters; `web/src/visible.ts` is the page's half.
//! Invariant: only what is shown passes through here. What runs, and what is on record, does not.

/// What a text is, which decides how strictly it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// Commands, paths, tool inputs, diffs: every character is there to be seen.
    Code,
    /// Titles, messages, questions, plans: joiners and marks that languages need stay.
    Prose,
}

/// The text with a mark in the place of each hidden character, of long runs of spaces and of runs
/// of blank lines.
pub fn visible(text: &str, reading: Reading) -> String {
    let joined;
    let text = match reading {
        Reading::Code => text,
        Reading::Prose => {
            joined = text.replace("\r\n", "\n");
            &joined
        }
    };
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = '\n';
    while let Some(letter) = rest.chars().next() {
        let blank_lines = if before == '\n' { blank_lines(rest) } else { Run::NONE };
        let spaces = spaces(rest);
        if blank_lines.count > BLANK_LINES_MAX {
            shown.push_str(&format!("⟨{} blank lines⟩\n", blank_lines.count));
            rest = &rest[blank_lines.bytes..];
            before = '\n';
        } else if spaces.count > SPACES_MAX {
            let what = name_of_spaces(&rest[..spaces.bytes]);
            shown.push_str(&format!("⟨{} {what}⟩", spaces.count));
            rest = &rest[spaces.bytes..];
            before = ' ';
        } else if is_hidden(before, letter, reading) {
            let same = rest.chars().take_while(|next| *next == letter).count();
            let times = if same > 1 { format!(" ×{same}") } else { String::new() };
            shown.push_str(&format!("⟨U+{:04X}{times}⟩", u32::from(letter)));
            rest = &rest[same * letter.len_utf8()..];
            before = letter;
        } else {
            shown.push(letter);
            rest = &rest[letter.len_utf8()..];
            before = letter;
        }
    }
    shown
}

/// A command, a path or an input, as it may be shown.
pub fn visible_code(text: &str) -> String {
    visible(text, Reading::Code)
}

/// A title, a message or a question, as it may be shown.
pub fn visible_prose(text: &str) -> String {
    visible(text, Reading::Prose)
}

/// Whether a character is shown as a mark. The one before it matters to the style of an emoji.
pub fn is_hidden(before: char, letter: char, reading: Reading) -> bool {
    let code = u32::from(letter);
    let at = HIDDEN.partition_point(|(_, last, _)| *last < code);
    let Some((first, _, place)) = HIDDEN.get(at) else { return false };
    code >= *first
        && match (place, reading) {
            (Place::Everywhere, _) | (Place::Code, Reading::Code) => true,
            (Place::CodeUnlessPictograph, Reading::Code) => !is_pictograph(before),
            (Place::Code | Place::CodeUnlessPictograph, Reading::Prose) => false,
        }
}

/// How many of something there are, and how many bytes they take.
#[derive(Debug, Clone, Copy)]
struct Run {
    count: usize,
    bytes: usize,
}

impl Run {
    const NONE: Self = Self { count: 0, bytes: 0 };
}

fn spaces(text: &str) -> Run {
    let count = text.bytes().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    Run { count, bytes: count }
}

fn blank_lines(text: &str) -> Run {
    let mut run = Run::NONE;
    while let rest = &text[run.bytes..]
        && let blank = spaces(rest).bytes
        && rest[blank..].starts_with('\n')
    {
        run = Run { count: run.count + 1, bytes: run.bytes + blank + 1 };
    }
    run
}

fn name_of_spaces(run: &str) -> &'static str {
    match (run.contains(' '), run.contains('\t')) {
        (true, true) => "spaces and tabs",
        (false, true) => "tabs",
        (_, false) => "spaces",
    }
}

fn is_pictograph(letter: char) -> bool {
    matches!(letter, '\u{2190}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}')
}

/// More than these in a row are one mark: an indentation of code is seldom deeper.
const SPACES_MAX: usize = 40;

/// More than these in a row are one mark: paragraphs and functions have fewer between them.
const BLANK_LINES_MAX: usize = 3;

/// Where a character is shown as a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Everywhere,
    Code,
    CodeUnlessPictograph,
}

use Place::{Code, CodeUnlessPictograph, Everywhere};

/// First, last, and where they are marks; in order.
const HIDDEN: &[(u32, u32, Place)] = &[
    (0x0000, 0x0008, Everywhere),
    (0x000B, 0x001F, Everywhere),
    (0x007F, 0x009F, Everywhere),
    (0x00A0, 0x00A0, Code),
    (0x00AD, 0x00AD, Code),
    (0x034F, 0x034F, Code),
    (0x061C, 0x061C, Code),
    (0x070F, 0x070F, Code),
    (0x115F, 0x1160, Everywhere),
    (0x1680, 0x1680, Code),
    (0x17B4, 0x17B5, Code),
    (0x180B, 0x180F, Code),
    (0x2000, 0x200F, Code),
    (0x2028, 0x202E, Everywhere),
    (0x202F, 0x202F, Code),
    (0x205F, 0x205F, Code),
    (0x2060, 0x206F, Everywhere),
    (0x27E8, 0x27E8, Code),
    (0x2800, 0x2800, Code),
    (0x3000, 0x3000, Code),
    (0x3164, 0x3164, Everywhere),
    (0xD800, 0xDFFF, Everywhere),
    (0xE000, 0xF8FF, Code),
    (0xFDD0, 0xFDEF, Everywhere),
    (0xFE00, 0xFE0D, Code),
    (0xFE0E, 0xFE0F, CodeUnlessPictograph),
    (0xFEFF, 0xFEFF, Everywhere),
    (0xFFA0, 0xFFA0, Everywhere),
    (0xFFF0, 0xFFFB, Everywhere),
    (0xFFFC, 0xFFFC, Code),
    (0xFFFE, 0xFFFF, Everywhere),
    (0x13430, 0x1345F, Everywhere),
    (0x1BCA0, 0x1BCA3, Everywhere),
    (0x1D159, 0x1D159, Everywhere),
    (0x1D173, 0x1D17A, Everywhere),
    (0xE0000, 0xE0FFF, Everywhere),
    (0xF0000, 0x10FFFF, Everywhere),
];
