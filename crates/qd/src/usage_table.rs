//! The report as a person reads it: a table that fits the terminal.
//!
//! Where it is too wide, numbers are shortened first; then columns go that the total includes.

use std::io::{self, Write};

use qd_harness::usage::{PriceTable, Sum};
use qd_history::{Report, Row, Trouble};
use unicode_width::UnicodeWidthStr;

use crate::paper::Paper;

#[derive(Debug, Clone, Copy)]
pub struct Table<'a> {
    /// What a row is, as `Day`.
    pub head: &'a str,
    pub report: &'a Report,
    pub prices: &'a PriceTable,
}

impl Table<'_> {
    pub fn write(
        &self,
        out: &mut impl Write,
        troubles: &[Trouble],
        paper: Paper,
    ) -> io::Result<()> {
        if self.report.rows.is_empty() {
            writeln!(out, "No agent has used anything here, or not in these days.")?;
            return write_troubles(out, troubles, paper);
        }
        let fits = |lines: &Vec<Vec<String>>| {
            paper.width.is_none_or(|width| line_width(&widths(lines)) <= width)
        };
        let narrowest = || self.lines(DETAILS[DETAILS.len() - 1]);
        let lines = DETAILS.iter().map(|detail| self.lines(*detail)).find(fits);
        self.write_lines(out, &lines.unwrap_or_else(narrowest), paper)?;
        if self.report.totals.is_estimate {
            let date = &self.prices.date;
            writeln!(out, "~ is an estimate: a model's price is not in the table of {date}.")?;
        }
        write_troubles(out, troubles, paper)
    }

    fn has_sessions(&self) -> bool {
        self.report.rows.iter().any(|row| row.session.is_some())
    }

    /// Heading, rows and total.
    fn lines(&self, detail: Detail) -> Vec<Vec<String>> {
        let about: &[&str] = if self.has_sessions() { &["Project", "Context"] } else { &[] };
        let heading = std::iter::once(self.head).chain(about.iter().copied());
        let mut heading: Vec<String> = heading.map(str::to_owned).collect();
        heading.extend(detail.columns.iter().map(|column| column.head().to_owned()));
        let mut total = vec!["Total".to_owned()];
        total.extend(about.iter().map(|_| String::new()));
        total.extend(detail.numbers(&self.report.totals));
        let rows = self.report.rows.iter().map(|row| self.line(row, detail));
        std::iter::once(heading).chain(rows).chain([total]).collect()
    }

    fn line(&self, row: &Row, detail: Detail) -> Vec<String> {
        let mut line = vec![shown(row.name.as_deref().unwrap_or("(none)"), detail.name_chars)];
        if self.has_sessions() {
            let session = row.session.as_ref();
            let project = session.and_then(|session| session.project.as_deref()).unwrap_or("");
            line.push(shown(project, detail.name_chars));
            line.push(session.map_or_else(String::new, |session| match session.context_window {
                Some(window) if window > 0 => format!("{}%", 100 * session.context_tokens / window),
                _ => detail.number(session.context_tokens),
            }));
        }
        line.extend(detail.numbers(&row.sum));
        line
    }

    fn write_lines(
        &self,
        out: &mut impl Write,
        lines: &[Vec<String>],
        paper: Paper,
    ) -> io::Result<()> {
        let texts = if self.has_sessions() { 2 } else { 1 };
        let widths = widths(lines);
        let rule = paper.dim(&"─".repeat(line_width(&widths)));
        for (nth, line) in lines.iter().enumerate() {
            let is_total = nth == lines.len() - 1;
            if nth == 1 || is_total {
                writeln!(out, "{rule}")?;
            }
            let cells = line.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
                let room = " ".repeat(width - cell.width());
                if column < texts { format!("{cell}{room}") } else { format!("{room}{cell}") }
            });
            let text = cells.collect::<Vec<_>>().join(GAP);
            let text = text.trim_end();
            let text = if nth == 0 || is_total { paper.bold(text) } else { text.to_owned() };
            writeln!(out, "{text}")?;
        }
        Ok(())
    }
}

fn write_troubles(out: &mut impl Write, troubles: &[Trouble], paper: Paper) -> io::Result<()> {
    for trouble in troubles {
        let path = shown(&trouble.path.to_string_lossy(), usize::MAX);
        writeln!(out, "{} {path}: {}", paper.marked("!"), shown(&trouble.what, usize::MAX))?;
    }
    Ok(())
}

fn widths(lines: &[Vec<String>]) -> Vec<usize> {
    (0..lines[0].len())
        .map(|column| lines.iter().map(|line| line[column].width()).max().unwrap_or(0))
        .collect()
}

fn line_width(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP.len() * (widths.len() - 1)
}

/// How much is said in a line.
#[derive(Debug, Clone, Copy)]
struct Detail {
    columns: &'static [Column],
    is_short: bool,
    name_chars: usize,
}

#[derive(Debug, Clone, Copy)]
enum Column {
    Input,
    Output,
    CacheWrite,
    CacheRead,
    Total,
    Cost,
}

impl Column {
    fn head(self) -> &'static str {
        match self {
            Self::Input => "Input",
            Self::Output => "Output",
            Self::CacheWrite => "Cache write",
            Self::CacheRead => "Cache read",
            Self::Total => "Total",
            Self::Cost => "Cost",
        }
    }
}

impl Detail {
    fn numbers(self, sum: &Sum) -> impl Iterator<Item = String> {
        self.columns.iter().map(move |column| match column {
            Column::Input => self.number(sum.tokens.input),
            Column::Output => self.number(sum.tokens.output),
            Column::CacheWrite => self.number(sum.tokens.cache_written()),
            Column::CacheRead => self.number(sum.tokens.cache_read),
            Column::Total => self.number(sum.tokens.total()),
            Column::Cost => {
                format!("{}${:.2}", if sum.is_estimate { "~" } else { "" }, sum.dollars)
            }
        })
    }

    fn number(self, number: u64) -> String {
        if self.is_short { shortened(number) } else { grouped(number) }
    }
}

/// A name an agent wrote, on one line and without what a terminal would obey.
fn shown(name: &str, chars_max: usize) -> String {
    let name = crate::session_line::plain_code(name);
    match name.char_indices().rev().nth(chars_max) {
        // The end of a path tells more than its beginning.
        Some((begin, sign)) => format!("…{}", &name[begin + sign.len_utf8()..]),
        None => name,
    }
}

/// 1234567 as 1,234,567.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (nth, digit) in digits.chars().enumerate() {
        if nth > 0 && (digits.len() - nth).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// 1234567 as 1.2M.
fn shortened(number: u64) -> String {
    let (part, sign) = match number {
        0..1_000 => return number.to_string(),
        1_000..999_950 => (1e3, "k"),
        999_950..999_950_000 => (1e6, "M"),
        _ => (1e9, "G"),
    };
    format!("{:.1}{sign}", number as f64 / part)
}

const GAP: &str = "  ";

const ALL: &[Column] = &[
    Column::Input,
    Column::Output,
    Column::CacheWrite,
    Column::CacheRead,
    Column::Total,
    Column::Cost,
];

/// The first that fits is taken. A session's id is 36 long.
const DETAILS: [Detail; 4] = [
    Detail { columns: ALL, is_short: false, name_chars: 40 },
    Detail { columns: ALL, is_short: true, name_chars: 40 },
    Detail { columns: ALL, is_short: true, name_chars: 16 },
    Detail { columns: &[Column::Total, Column::Cost], is_short: true, name_chars: 14 },
];

#[cfg(test)]
mod tests {
    use qd_harness::usage::{Charge, Tokens};

    use super::*;

    #[test]
    fn thousands_are_set_apart_or_left_out() {
        assert_eq!([0, 999, 1_000, 12_345_678].map(grouped), ["0", "999", "1,000", "12,345,678"]);
        let all = [0, 999, 1_000, 999_949, 999_950, 12_345_678, 1_500_000_000].map(shortened);
        assert_eq!(all, ["0", "999", "1.0k", "999.9k", "1.0M", "12.3M", "1.5G"]);
    }

    #[test]
    fn a_name_cannot_write_on_the_terminal_and_keeps_its_end() {
        assert_eq!(shown("a\x1b[2Jb", 40), "a⟨U+001B⟩[2Jb");
        let long = shown(&format!("/home/{}/acme", "x".repeat(60)), 40);
        assert!(long.starts_with('…') && long.ends_with("/acme"), "{long}");
        assert_eq!(long.chars().count(), 41);
    }

    fn written(paper: Paper) -> String {
        let mut sum = Sum::default();
        let tokens = Tokens { input: 12_345_678, output: 1_000, ..Tokens::default() };
        sum.add(tokens, Charge { dollars: 1.5, is_estimate: true });
        let name = Some("2026-11-16".to_owned());
        let row = Row { name, sum, models: Vec::new(), session: None };
        let report = Report { rows: vec![row], totals: sum };
        let mut prices = PriceTable::bundled();
        prices.date = "2026-11-01".to_owned();
        let mut out = Vec::new();
        Table { head: "Day", report: &report, prices: &prices }
            .write(&mut out, &[], paper)
            .unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_file_gets_all_of_it_and_no_colours() {
        let expected = [
            "Day              Input  Output  Cache write  Cache read       Total    Cost",
            "───────────────────────────────────────────────────────────────────────────",
            "2026-11-16  12,345,678   1,000            0           0  12,346,678  ~$1.50",
            "───────────────────────────────────────────────────────────────────────────",
            "Total       12,345,678   1,000            0           0  12,346,678  ~$1.50",
            "~ is an estimate: a model's price is not in the table of 2026-11-01.",
        ];
        assert_eq!(written(Paper::PLAIN).lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_line_is_as_wide_as_the_terminal_at_most() {
        for width in [200, 70, 64, 40] {
            let text = written(Paper::terminal(width));
            assert!(text.contains("\x1b[1m"), "{text}");
            let plain = text.replace("\x1b[1m", "").replace("\x1b[2m", "").replace("\x1b[0m", "");
            let table = plain.lines().filter(|line| !line.starts_with('~'));
            assert!(table.clone().all(|line| line.width() <= width), "{width}: {plain}");
        }
    }
}
