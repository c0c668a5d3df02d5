//! A unified diff, as people read it.

use std::time::Duration;

use similar::{ChangeTag, TextDiff};

/// Longest search for the smallest diff. After it the diff is still right, only longer.
const SEARCH_MAX: Duration = Duration::from_millis(500);

/// Lines of context around a change.
const CONTEXT_LINES: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Paint {
    Plain,
    Coloured,
}

/// `None` for a file that is not there.
pub fn unified(name: &str, old: Option<&str>, new: Option<&str>, paint: Paint) -> String {
    let header = |text: Option<&str>| if text.is_some() { name } else { "/dev/null" }.to_owned();
    let mut out = format!("--- {}\n+++ {}\n", header(old), header(new));
    let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
    let diff = TextDiff::configure().timeout(SEARCH_MAX).diff_lines(old, new);
    for hunk in diff.unified_diff().context_radius(CONTEXT_LINES).iter_hunks() {
        out.push_str(&painted(paint, CYAN, &hunk.header().to_string()));
        out.push('\n');
        for change in hunk.iter_changes() {
            let (sign, colour) = match change.tag() {
                ChangeTag::Delete => ('-', RED),
                ChangeTag::Insert => ('+', GREEN),
                ChangeTag::Equal => (' ', ""),
            };
            let line = change.value().trim_end_matches(['\r', '\n']);
            out.push_str(&painted(paint, colour, &format!("{sign}{}", shown(line))));
            out.push('\n');
            if change.missing_newline() {
                out.push_str("\\ No newline at end of file\n");
            }
        }
    }
    out
}

/// A settings file may hold anything; a terminal shall not obey it.
fn shown(line: &str) -> String {
    let line = qd_session::visible::visible_code(line);
    if line.chars().count() <= LINE_CHARS_MAX {
        return line;
    }
    line.chars().take(LINE_CHARS_MAX).chain(['…']).collect()
}

fn painted(paint: Paint, colour: &str, text: &str) -> String {
    match paint {
        Paint::Coloured if !colour.is_empty() => format!("{colour}{text}{RESET}"),
        Paint::Coloured | Paint::Plain => text.to_owned(),
    }
}

/// Longest line shown. A settings file on one line may be megabytes long.
const LINE_CHARS_MAX: usize = 2_000;

const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const CYAN: &str = "\x1b[36m";
const RESET: &str = "\x1b[0m";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_shows_what_changes_and_a_little_around_it() {
        let old = "a\nb\nc\nd\ne\nf\n";
        let new = "a\nb\nc\nd\nE\x1b[2J\nf";
        let expected = "--- s.json\n+++ s.json\n@@ -2,5 +2,5 @@\n b\n c\n d\n-e\n-f\n+E⟨U+001B⟩[2J\n+f\n\\ No newline at end of file\n";
        assert_eq!(unified("s.json", Some(old), Some(new), Paint::Plain), expected);
    }

    #[test]
    fn colour_is_only_there_when_asked_for() {
        assert!(unified("x", Some("a\n"), Some("b\n"), Paint::Coloured).contains(RED));
        assert!(!unified("x", None, Some("b\n"), Paint::Plain).contains('\x1b'));
    }
}
