//! The last message as blocks of prose: what the agent says to its reader.
//!
//! Pure. Code, tables and quotations are kept as blocks without sentences: what is written there
//! was said by somebody else, or to somebody else. Only the end of a long message is read.

use super::sentence::{self, Sentence};

/// How much of the end of a message is read. A report of this length is many screens; what an
/// agent still wants stands near its end.
pub const TAIL_BYTES_MAX: usize = 16 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Paragraph,
    Heading,
    Item(Checkbox),
    Code,
    Table,
    Quotation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checkbox {
    Absent,
    Open,
    Ticked,
}

#[derive(Debug)]
pub struct Block {
    pub kind: Kind,
    /// As written, without its marker; the lines of a paragraph are joined by spaces, those of a
    /// table by line breaks.
    pub raw: String,
    pub sentences: Vec<Sentence>,
}

impl Block {
    pub fn is_item(&self) -> bool {
        matches!(self.kind, Kind::Item(_))
    }

    pub fn says_any(&self, phrases: &[&str]) -> bool {
        self.sentences.iter().any(|said| said.says_any(phrases))
    }

    pub fn is_prose(&self) -> bool {
        matches!(self.kind, Kind::Paragraph | Kind::Item(_))
    }
}

#[derive(Debug, Default)]
pub struct Message {
    pub blocks: Vec<Block>,
    pub ends_inside_fence: bool,
}

impl Message {
    pub fn read(text: &str) -> Self {
        let start = tail_start(text);
        let mut reader = Reader { fence: fence_open_after(&text[..start]), ..Reader::default() };
        for line in text[start..].lines() {
            reader.take(line);
        }
        reader.finish()
    }
}

/// A long message is read from the first whole line in its tail, or, when that tail is one line,
/// from the first whole character.
fn tail_start(text: &str) -> usize {
    if text.len() <= TAIL_BYTES_MAX {
        return 0;
    }
    let mut start = text.len() - TAIL_BYTES_MAX;
    while !text.is_char_boundary(start) {
        start += 1;
    }
    let next_line = text[start..].find('\n').map(|at| start + at + 1);
    next_line.filter(|at| *at < text.len()).unwrap_or(start)
}

/// An opening or closing line of a code fence: its character and length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fence {
    mark: char,
    len: usize,
}

impl Fence {
    fn opened_by(line: &str) -> Option<Self> {
        let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let len = line.chars().take_while(|c| *c == mark).count();
        // "```x```" on one line is inline code.
        let rest = line.get(len..).unwrap_or_default();
        (len >= 3 && !rest.contains('`')).then_some(Self { mark, len })
    }

    fn closed_by(self, line: &str) -> bool {
        let len = line.chars().take_while(|c| *c == self.mark).count();
        len >= self.len && line.trim_start_matches(self.mark).trim().is_empty()
    }
}

/// The fence that is still open at the end of the part that is not read.
fn fence_open_after(head: &str) -> Option<Fence> {
    head.lines().fold(None, |open, line| {
        let line = line.trim();
        match open {
            Some(fence) if Fence::closed_by(fence, line) => None,
            Some(fence) => Some(fence),
            None => Fence::opened_by(line),
        }
    })
}

#[derive(Debug, Default)]
struct Reader {
    blocks: Vec<Block>,
    fence: Option<Fence>,
    /// The line before this one was blank or not there.
    after_gap: bool,
    /// The fence was opened by the line before this one, and nothing is in it yet.
    fence_is_empty: bool,
    /// The line read last inside the fence.
    fenced: String,
}

impl Reader {
    fn take(&mut self, line: &str) {
        let trimmed = line.trim();
        if let Some(fence) = self.fence {
            self.fence_is_empty &= trimmed.is_empty();
            if !trimmed.is_empty() {
                self.fenced = trimmed.to_string();
            }
            if fence.closed_by(trimmed) {
                self.fence = None;
                self.after_gap = true;
            }
            return;
        }
        if trimmed.is_empty() || is_rule(trimmed) {
            self.after_gap = true;
            return;
        }
        self.take_outside_fence(line, trimmed);
        self.after_gap = false;
    }

    fn take_outside_fence(&mut self, line: &str, trimmed: &str) {
        if let Some(fence) = Fence::opened_by(trimmed) {
            self.fence = Some(fence);
            // A bare fence with nothing after it closes something; agents nest fences wrongly.
            self.fence_is_empty = trimmed.chars().all(|c| c == fence.mark);
            self.push(Kind::Code, "");
        } else if trimmed.starts_with('>') {
            self.extend_or_push(Kind::Quotation, trimmed);
        } else if trimmed.starts_with('|') {
            self.extend_or_push(Kind::Table, trimmed);
        } else if let Some(title) = heading(trimmed) {
            self.push(Kind::Heading, title);
        } else if let Some((checkbox, rest)) = item(trimmed) {
            self.push(Kind::Item(checkbox), rest);
        } else if is_indented_code(line) && self.may_start_indented_code() {
            self.extend_or_push(Kind::Code, "");
        } else {
            self.take_text(trimmed);
        }
    }

    fn take_text(&mut self, trimmed: &str) {
        match self.blocks.last_mut() {
            Some(block) if block.is_prose() && !self.after_gap => {
                block.raw.push(' ');
                block.raw.push_str(trimmed);
            }
            _ => self.push(Kind::Paragraph, trimmed),
        }
    }

    fn may_start_indented_code(&self) -> bool {
        match self.blocks.last() {
            Some(block) if block.is_item() => false,
            Some(block) if block.kind == Kind::Code => true,
            Some(_) | None => self.after_gap || self.blocks.is_empty(),
        }
    }

    fn extend_or_push(&mut self, kind: Kind, line: &str) {
        match self.blocks.last_mut() {
            Some(block) if block.kind == kind => {
                block.raw.push('\n');
                block.raw.push_str(line);
            }
            _ => self.push(kind, line),
        }
    }

    fn push(&mut self, kind: Kind, raw: &str) {
        let raw = raw.to_string();
        let sentences = Vec::new();
        self.blocks.push(Block { kind, raw, sentences });
    }

    fn finish(mut self) -> Message {
        // Fences nested wrongly leave one open over the prose that follows them.
        if self.fence.is_some() && is_sentence(&self.fenced) {
            self.fence = None;
            let prose = std::mem::take(&mut self.fenced);
            self.push(Kind::Paragraph, &prose);
        }
        let last = self.blocks.len().saturating_sub(1);
        for (at, block) in self.blocks.iter_mut().enumerate() {
            // A line that is bold from end to end titles what follows it.
            if block.kind == Kind::Paragraph && at < last && is_bold_line(&block.raw) {
                block.kind = Kind::Heading;
            }
            if block.is_prose() || block.kind == Kind::Heading {
                block.sentences = sentence::split(&block.raw);
            }
        }
        Message {
            blocks: self.blocks,
            ends_inside_fence: self.fence.is_some() && !self.fence_is_empty,
        }
    }
}

fn is_sentence(line: &str) -> bool {
    line.starts_with(char::is_uppercase)
        && line.ends_with(['.', '?', '!'])
        && line.split_whitespace().count() >= 6
}

fn is_rule(line: &str) -> bool {
    let mark = line.chars().next().filter(|c| matches!(c, '-' | '*' | '_' | '='));
    mark.is_some_and(|mark| line.len() >= 3 && line.chars().all(|c| c == mark))
}

fn is_indented_code(line: &str) -> bool {
    line.starts_with("    ") || line.starts_with('\t')
}

fn is_bold_line(raw: &str) -> bool {
    let inner = raw.strip_prefix("**").and_then(|rest| {
        let rest = rest.trim_end_matches(':');
        rest.strip_suffix("**")
    });
    inner.is_some_and(|inner| !inner.contains("**"))
}

fn heading(line: &str) -> Option<&str> {
    let title = line.trim_start_matches('#');
    let depth = line.len() - title.len();
    let spaced = title.is_empty() || title.starts_with(' ');
    ((1..=6).contains(&depth) && spaced).then_some(title.trim())
}

fn item(line: &str) -> Option<(Checkbox, &str)> {
    if line.starts_with(['✅', '❌', '⚠', '✓', '✔', '✗', '🔴', '🟢', '🟡', '☑', '☐', '⬜'])
    {
        return Some((Checkbox::Absent, line));
    }
    let unmarked = line.strip_prefix(['-', '*', '+', '•', '–']);
    let rest = unmarked.or_else(|| {
        let after_digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = line.len() - after_digits.len();
        let numbered = (1..=3).contains(&digits);
        after_digits.strip_prefix(['.', ')']).filter(|_| numbered)
    })?;
    if !rest.is_empty() && !rest.starts_with([' ', '\t']) {
        return None;
    }
    let rest = rest.trim_start();
    let boxed = |mark: &str| rest.strip_prefix(mark).map(str::trim_start);
    if let Some(rest) = boxed("[ ]").or_else(|| boxed("☐")) {
        return Some((Checkbox::Open, rest));
    }
    if let Some(rest) = boxed("[x]").or_else(|| boxed("[X]")).or_else(|| boxed("☑")) {
        return Some((Checkbox::Ticked, rest));
    }
    Some((Checkbox::Absent, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The blocks of a message, one a line.
    fn read(text: &str) -> String {
        let message = Message::read(text);
        let mut blocks: Vec<String> = message
            .blocks
            .iter()
            .map(|block| format!("{:?} {}", block.kind, block.raw.replace('\n', "⏎")))
            .map(|line| line.trim_end().to_owned())
            .collect();
        blocks.extend(message.ends_inside_fence.then(|| "open".to_owned()));
        blocks.join("\n")
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(read(text), expected.join("\n"), "{text}");
    }

    #[test]
    fn lines_become_blocks() {
        check("one\ntwo\n\nthree", &["Paragraph one two", "Paragraph three"]);
        check(
            "# one\ntwo\n### three\nfour",
            &["Heading one", "Paragraph two", "Heading three", "Paragraph four"],
        );
        check("####### one", &["Paragraph ####### one"]);
        check("#one", &["Paragraph #one"]);
        check("one\n##", &["Paragraph one", "Heading"]);
        check("> one\n> two\nthree", &["Quotation > one⏎> two", "Paragraph three"]);
        check("| a | b |\n|---|---|\n| c |", &["Table | a | b |⏎|---|---|⏎| c |"]);
        check("one\n---\ntwo", &["Paragraph one", "Paragraph two"]);
        check("one\n--\ntwo", &["Paragraph one -- two"]);
        check("one\n-=-\ntwo", &["Paragraph one -=- two"]);
        check("**one**\n\ntwo", &["Heading **one**", "Paragraph two"]);
        check("**one**:\n\ntwo", &["Heading **one**:", "Paragraph two"]);
        check(
            "**one** and **two**\n\nthree",
            &["Paragraph **one** and **two**", "Paragraph three"],
        );
        check("one\n\n**two**", &["Paragraph one", "Paragraph **two**"]);
    }

    #[test]
    fn items_and_their_boxes() {
        check(
            "- one\n* two\n+ three\n• four\n– five",
            &[
                "Item(Absent) one",
                "Item(Absent) two",
                "Item(Absent) three",
                "Item(Absent) four",
                "Item(Absent) five",
            ],
        );
        check(
            "1. one\n22) two\n333. three",
            &["Item(Absent) one", "Item(Absent) two", "Item(Absent) three"],
        );
        check("1234. one", &["Paragraph 1234. one"]);
        check("1.5 of it", &["Paragraph 1.5 of it"]);
        check("-5 of it", &["Paragraph -5 of it"]);
        check(". of it", &["Paragraph . of it"]);
        check("one\n-", &["Paragraph one", "Item(Absent)"]);
        check("-\tone", &["Item(Absent) one"]);
        check(
            "- [ ] one\n- [x] two\n- [X] three\n- ☐ four\n- ☑ five",
            &[
                "Item(Open) one",
                "Item(Ticked) two",
                "Item(Ticked) three",
                "Item(Open) four",
                "Item(Ticked) five",
            ],
        );
        check("✅ one\ntwo", &["Item(Absent) ✅ one two"]);
        check("- one\n  more", &["Item(Absent) one more"]);
        check("- one\n\nmore", &["Item(Absent) one", "Paragraph more"]);
    }

    #[test]
    fn code_is_fenced_or_indented() {
        check("```rust\none\n```\ntwo", &["Code", "Paragraph two"]);
        check("~~~\none\n```\n~~~\ntwo", &["Code", "Paragraph two"]);
        check("````\n```\n````\ntwo", &["Code", "Paragraph two"]);
        check("```\none\n`````\ntwo", &["Code", "Paragraph two"]);
        check("```\none\n``` two\n```\nthree", &["Code", "Paragraph three"]);
        check("``` one ``` two", &["Paragraph ``` one ``` two"]);
        check("``\none", &["Paragraph `` one"]);
        check("    one\n    two\n\nthree", &["Code ⏎", "Paragraph three"]);
        check("one\n    two", &["Paragraph one two"]);
        check("one\n\n\ttwo", &["Paragraph one", "Code"]);
        check("- one\n\n    two", &["Item(Absent) one", "Paragraph two"]);
        check("```\none\n```\n    two", &["Code ⏎"]);
    }

    #[test]
    fn a_fence_may_stay_open() {
        check("```rust\none", &["Code", "open"]);
        check("```rust\n\n", &["Code", "open"]);
        check("```\n", &["Code"]);
        check("```\n\none", &["Code", "open"]);
        // The prose after a fence that was nested wrongly.
        check(
            "```\nThe parser is split in two now.",
            &["Code", "Paragraph The parser is split in two now."],
        );
        check("```\nthe parser is split in two now.", &["Code", "open"]);
        check("```\nThe parser is split in two now", &["Code", "open"]);
        check("```\nThe parser is split now.", &["Code", "open"]);
    }

    #[test]
    fn only_the_end_of_a_long_message_is_read() {
        let long = |end: &str| format!("{}{end}", "x".repeat(TAIL_BYTES_MAX));
        assert_eq!(read(&long("\none")), "Paragraph one");
        assert_eq!(read(&long("\n")).len(), "Paragraph ".len() + TAIL_BYTES_MAX - 1);
        assert_eq!(read(&"x".repeat(TAIL_BYTES_MAX)).len(), "Paragraph ".len() + TAIL_BYTES_MAX);
        // Never in the middle of a character.
        let wide = "é".repeat(TAIL_BYTES_MAX) + "x";
        assert!(read(&wide).ends_with("éx"));
        assert!(read(&wide).len() <= "Paragraph ".len() + TAIL_BYTES_MAX);
        // A fence that was opened above is still open.
        let lines = "one\n".repeat(TAIL_BYTES_MAX / 4);
        assert_eq!(read(&format!("```rust\n{lines}")), "open");
        assert_eq!(
            read(&format!("```\n```\n{lines}```\n\ntwo")),
            format!("Paragraph {}\nCode\nopen", "one ".repeat(TAIL_BYTES_MAX / 4 - 3).trim_end())
        );
    }
}
