//! `spec/visible-text.md` beside the code: every character, and every example.

use qd_session::visible::{Reading, is_hidden, visible};

const SPEC: &str = include_str!("../../../spec/visible-text.md");

/// The rows of the table below a heading, without their head.
fn rows(heading: &str) -> Vec<Vec<String>> {
    let (_, section) = SPEC.split_once(&format!("## {heading}\n")).expect("the heading is there");
    let section = section.split("\n## ").next().unwrap_or_default();
    let lines = section.lines().filter(|line| line.starts_with('|')).skip(2);
    let cells = |line: &str| {
        let line = line.trim().trim_matches('|');
        line.split(" | ").map(|cell| cell.trim().to_owned()).collect()
    };
    lines.map(cells).collect()
}

#[test]
fn every_character_is_a_mark_where_the_table_says_so_and_nowhere_else() {
    let table = rows("Characters");
    assert!(table.len() > 30, "the table was read");
    let code = |cell: &str| u32::from_str_radix(cell, 16).expect("a code point");
    for letter in '\0'..=char::MAX {
        let row =
            table.iter().find(|row| (code(&row[0])..=code(&row[1])).contains(&u32::from(letter)));
        let is_mark = |column: usize, unless: bool| match row.map(|row| row[column].as_str()) {
            Some("mark") => true,
            Some("mark, unless a pictograph is before it") => !unless,
            Some("as it is") | None => false,
            Some(other) => panic!("{other}: what is that?"),
        };
        let sees = |before, reading| is_hidden(before, letter, reading);
        assert_eq!(sees('a', Reading::Code), is_mark(3, false), "{letter:?}");
        assert_eq!(sees('\u{26a0}', Reading::Code), is_mark(3, true), "{letter:?}");
        assert_eq!(sees('a', Reading::Prose), is_mark(4, false), "{letter:?}");
    }
}

#[test]
fn every_example_is_shown_as_the_table_says() {
    let examples = rows("Examples");
    assert!(examples.len() >= 20, "the table was read");
    for row in examples {
        let [text, code, prose] = [0, 1, 2].map(|column: usize| {
            let cell = row[column].trim_matches('`');
            serde_json::from_str::<String>(cell).expect("a JSON string")
        });
        assert_eq!(visible(&text, Reading::Code), code, "{text:?}");
        assert_eq!(visible(&text, Reading::Prose), prose, "{text:?}");
    }
}
