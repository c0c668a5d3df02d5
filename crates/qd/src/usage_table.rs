//! The report as a person reads it: a table as wide as the terminal allows.

use std::io::{self, Write};

use qd_broker::history::{Report, Row, Trouble};
use qd_harness::usage::{PriceTable, Sum};
use unicode_width::UnicodeWidthStr;

/// `head` is what a row is, as `Day`.
pub fn write(
    out: &mut impl Write,
    head: &str,
    report: &Report,
    prices: &PriceTable,
    troubles: &[Trouble],
) -> io::Result<()> {
    if report.rows.is_empty() {
        writeln!(out, "No agent has used anything here, or not in these days.")?;
        return write_troubles(out, troubles);
    }
    let has_sessions = report.rows.iter().any(|row| row.session.is_some());
    let mut table: Vec<Vec<String>> = vec![heading(head, has_sessions)];
    table.extend(report.rows.iter().map(|row| line(row, has_sessions)));
    let mut total = vec!["Total".to_owned()];
    if has_sessions {
        total.extend([String::new(), String::new()]);
    }
    total.extend(numbers(&report.totals));
    table.push(total);
    let texts = if has_sessions { 2 } else { 1 };
    let widths: Vec<usize> = (0..table[0].len())
        .map(|column| table.iter().map(|line| line[column].width()).max().unwrap_or(0))
        .collect();
    let rule: usize = widths.iter().sum::<usize>() + 2 * (widths.len() - 1);
    for (nth, line) in table.iter().enumerate() {
        if nth == 1 || nth == table.len() - 1 {
            writeln!(out, "{}", "─".repeat(rule))?;
        }
        let cells: Vec<String> = line
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, width))| {
                let room = " ".repeat(width - cell.width());
                if column < texts { format!("{cell}{room}") } else { format!("{room}{cell}") }
            })
            .collect();
        writeln!(out, "{}", cells.join("  ").trim_end())?;
    }
    if report.totals.is_estimate {
        writeln!(out, "~ is an estimate: a model's price is not in the table of {}.", prices.date)?;
    }
    write_troubles(out, troubles)
}

fn write_troubles(out: &mut impl Write, troubles: &[Trouble]) -> io::Result<()> {
    for trouble in troubles {
        writeln!(out, "! {}: {}", trouble.path.display(), trouble.what)?;
    }
    Ok(())
}

fn heading(head: &str, has_sessions: bool) -> Vec<String> {
    let about: &[&str] = if has_sessions { &["Project", "Context"] } else { &[] };
    let numbers = ["Input", "Output", "Cache write", "Cache read", "Total", "Cost"];
    let all = std::iter::once(head).chain(about.iter().copied()).chain(numbers);
    all.map(str::to_owned).collect()
}

fn line(row: &Row, has_sessions: bool) -> Vec<String> {
    let name = row.name.as_deref().unwrap_or("(none)");
    let mut line = vec![shown(name)];
    if has_sessions {
        let session = row.session.as_ref();
        line.push(shown(session.and_then(|session| session.project.as_deref()).unwrap_or("")));
        line.push(session.map_or_else(String::new, |session| match session.context_window {
            Some(window) if window > 0 => format!("{}%", 100 * session.context_tokens / window),
            _ => grouped(session.context_tokens),
        }));
    }
    line.extend(numbers(&row.sum));
    line
}

/// A name an agent wrote, on one line and without what a terminal would obey.
fn shown(name: &str) -> String {
    let name: String = name.chars().filter(|sign| !sign.is_control()).collect();
    match name.char_indices().rev().nth(NAME_CHARS_MAX) {
        // The end of a path tells more than its beginning.
        Some((begin, sign)) => format!("…{}", &name[begin + sign.len_utf8()..]),
        None => name,
    }
}

fn numbers(sum: &Sum) -> [String; 6] {
    let mark = if sum.is_estimate { "~" } else { "" };
    [
        grouped(sum.tokens.input),
        grouped(sum.tokens.output),
        grouped(sum.tokens.cache_written()),
        grouped(sum.tokens.cache_read),
        grouped(sum.tokens.total()),
        format!("{mark}${:.2}", sum.dollars),
    ]
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

/// A session's id is 36 long; with six numbers beside it the line still fits most terminals.
const NAME_CHARS_MAX: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        let all = [0, 999, 1_000, 12_345_678].map(grouped);
        assert_eq!(all, ["0", "999", "1,000", "12,345,678"]);
    }

    #[test]
    fn a_name_cannot_write_on_the_terminal_and_keeps_its_end() {
        assert_eq!(shown("a\x1b[2Jb"), "a[2Jb");
        let long = shown(&format!("/home/{}/acme", "x".repeat(60)));
        assert!(long.starts_with('…') && long.ends_with("/acme"), "{long}");
        assert_eq!(long.chars().count(), NAME_CHARS_MAX + 1);
    }
}
